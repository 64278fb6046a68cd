"""get-cuda-devices: the 18 properties, errors of the runtime explained, the driver's own tool as a fallback.

Devices are written by hand (no GPU here): a compiler and a program made up as shell scripts, and recorded machines.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from machine_builder import MACHINES
from recipe_loader import RECIPES, exported, load_module, load_recipe

from crowdperf.machine import nvidia, probe

recipe = load_recipe("get-cuda-devices")
advice = load_module("get-cuda-devices", "advice")
by_driver = load_module("get-cuda-devices", "by_driver")
properties = load_module("get-cuda-devices", "properties")
query = load_module("get-cuda-devices", "query")

A100 = """GPU Device ID: {number}
GPU Name: NVIDIA A100-SXM4-40GB
GPU compute capability: 8.0
CUDA driver version: 12.2
CUDA runtime version: 12.2
Global memory: 42298834944
Max clock rate: 1410.000000 MHz
Total amount of shared memory per block: 49152
Total number of registers available per block: 65536
Warp size: 32
Maximum number of threads per multiprocessor: 2048
Maximum number of threads per block: 1024
Max dimension size of a thread block X: 1024
Max dimension size of a thread block Y: 1024
Max dimension size of a thread block Z: 64
Max dimension size of a grid size X: 2147483647
Max dimension size of a grid size Y: 65535
Max dimension size of a grid size Z: 65535

"""
FAULT = "CUDA error: {}: words\nCUDA driver version: {}\nCUDA runtime version: {}\n"
NO_DRIVER = (
    "CUDA error: 35 cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version\n"
    "CUDA driver version: 0.0\nCUDA runtime version: 13.0\n"
)


@pytest.fixture
def nvcc(fake_tool: Any) -> Any:
    """Writes a compiler whose program prints ``says`` and its CUDA_VISIBLE_DEVICES, and ends with ``code``."""

    def write(says: str, code: int = 0, before: str = "") -> str:
        program = (
            f"#!/bin/sh\necho visible: $CUDA_VISIBLE_DEVICES, order: $CUDA_DEVICE_ORDER >&2\ncat <<'END'\n{says}END"
        )
        text = f"""{before}
            case "$1" in -V) echo "Cuda compilation tools, release 12.2"; exit 0;; esac
            while [ "$1" != -o ]; do shift; done
            cat > "$2" <<'PROGRAM'\n{program}\nexit {code}\nPROGRAM\nchmod +x "$2" """
        return str(fake_tool("nvcc", text))

    return write


def run(hook_input: Any, machine: Any = None, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """preprocess' answer and its whole input afterwards."""
    defaults = {"CM_CUDA_DEVICES_SOURCE": "nvcc", "CM_CUDA_DEVICES_MIN_MEMORY_GB": "8"}
    here = None if "CM_RECORDED_MACHINE" in env else probe.Machine()
    call = hook_input({**defaults, **env}, machine=machine or here)
    return recipe.preprocess(call), call


def test_eighteen_properties_per_device_are_printed_and_handed_on(
    hook_input: Any, inside: Path, nvcc: Any, capsys: Any
) -> None:
    answer, call = run(hook_input, CM_NVCC_BIN_WITH_PATH=nvcc(A100.format(number=0) + A100.format(number=1)))
    printed = capsys.readouterr().out
    assert answer == {"return": 0}
    for line in ("Checking compiler version ...", "Compiling program ...", "Running program ..."):
        assert line in printed
    assert printed.endswith(A100.format(number=0) + A100.format(number=1))
    env = exported("get-cuda-devices", call["env"])
    assert env["CM_CUDA_NUM_DEVICES"] == "2"
    assert env["CM_CUDA_DEVICE_PROP_GPU_DEVICE_ID"] == "0", "env has the first device"
    assert env["CM_CUDA_DEVICE_PROP_GLOBAL_MEMORY"] == "42298834944"
    assert env["CM_CUDA_DEVICE_PROP_MAX_CLOCK_RATE"] == "1410.000000 MHz"
    assert len([key for key in env if key.startswith("CM_CUDA_DEVICE_PROP_")]) == 18
    assert call["state"]["cm_cuda_num_devices"] == 2
    assert call["state"]["cm_cuda_devices_prop"][1]["GPU Device ID"] == "1"
    assert list(inside.iterdir()) == [], "nothing is left in the user's folder"


def test_visible_devices_and_the_order_of_the_bus_reach_the_program(hook_input: Any, inside: Path, nvcc: Any) -> None:
    machine = probe.Machine()
    program = query.build(machine, nvcc(A100.format(number=0)), str(inside))
    assert "visible: 0,GPU-aa, order: PCI_BUS_ID" in query.run(machine, program, query.Visible("0,GPU-aa")).stderr


def test_a_device_that_does_not_exist_is_told(hook_input: Any, inside: Path, nvcc: Any) -> None:
    answer, _ = run(hook_input, CM_NVCC_BIN_WITH_PATH=nvcc(A100.format(number=0)), CM_CUDA_VISIBLE_DEVICES="0,7")
    assert answer["return"] == 1
    assert "names 2 devices, CUDA shows 1" in answer["error"]


@pytest.mark.parametrize("text", ["0;rm -rf /", "0,,1", "$(id)", "-", "-1"])
def test_a_bad_filter_is_refused_before_anything_is_run(hook_input: Any, text: str) -> None:
    answer, _ = run(hook_input, CM_CUDA_VISIBLE_DEVICES=text)
    assert answer["return"] == 1
    assert "must be numbers or UUIDs" in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (NO_DRIVER, ["(cudaErrorInsufficientDriver, 35)", "no working NVIDIA driver", "get nvidia driver"]),
        (
            FAULT.format("35 cudaErrorInsufficientDriver", "12.2", "13.0"),
            ["runs CUDA up to 12.2, the toolkit is 13.0", "--adr.cuda.version_max=12.2", "_with-nvml"],
        ),
        (FAULT.format("100 cudaErrorNoDevice", "12.2", "12.2"), ["shows no device", "nvidia-smi -L"]),
        (FAULT.format("802 cudaErrorSystemNotReady", "12.2", "12.2"), ["fabric manager", "exactly the same version"]),
        (FAULT.format("803 cudaErrorSystemDriverMismatch", "12.2", "12.2"), ["fabric manager"]),
        (FAULT.format("999 cudaErrorUnknown", "12.2", "12.2"), ["cudaErrorUnknown", "dmesg"]),
    ],
)
def test_errors_of_the_runtime_say_what_to_do(
    hook_input: Any, inside: Path, nvcc: Any, output: str, says: list[str]
) -> None:
    answer, _ = run(hook_input, CM_NVCC_BIN_WITH_PATH=nvcc(output, code=2))
    assert answer["return"] == 1
    for text in says:
        assert text in answer["error"]


def test_a_container_without_the_gpus_and_a_hidden_device_are_thought_of() -> None:
    fault = advice.fault_in(NO_DRIVER)
    assert "docker run --gpus=all" in advice.explain(fault, "", "")
    assert "nvidia-smi: it failed" in advice.explain(fault, "it failed", "")
    hidden = advice.fault_in(FAULT.format("100 cudaErrorNoDevice", "12.2", "12.2"))
    assert "CUDA_VISIBLE_DEVICES is '7'" in advice.explain(hidden, "", "7")


def test_a_host_compiler_that_is_too_new_is_let_pass(hook_input: Any, inside: Path, nvcc: Any) -> None:
    refuse = 'if [ "$1" = -o ]; then echo "#error -- unsupported GNU version! gcc 15" >&2; exit 1; fi'
    answer, _ = run(hook_input, CM_NVCC_BIN_WITH_PATH=nvcc(A100.format(number=0), before=refuse))
    assert answer == {"return": 0}


def test_a_compiler_that_fails_is_told_in_its_words(hook_input: Any, inside: Path, fake_tool: Any) -> None:
    broken = fake_tool("nvcc", "echo 'nvcc fatal: cannot find compiler cl' >&2; exit 1")
    answer, _ = run(hook_input, CM_NVCC_BIN_WITH_PATH=str(broken))
    assert answer["return"] == 1
    assert "cannot find compiler" in answer["error"]
    assert "_with-nvml" in answer["error"]


def test_a_program_that_dies_half_way_gives_no_devices(hook_input: Any, inside: Path, nvcc: Any) -> None:
    answer, _ = run(hook_input, CM_NVCC_BIN_WITH_PATH=nvcc(A100.format(number=0)[:200] + "\n", code=1))
    assert answer["return"] == 1
    assert "cut short" in answer["error"]


def test_little_memory_and_old_devices_are_warned_of() -> None:
    device = properties.parse(A100.format(number=0))[0]
    old = {**device, properties.MEMORY: "6442188800", properties.CAPABILITY: "7.0"}
    eight = {**device, properties.MEMORY: "8361345024", properties.CAPABILITY: "12.0"}
    assert properties.warnings([device, eight], 8) == []
    low, aged = properties.warnings([old], 8)
    assert "6.4 GB of memory, less than 8 GB" in low
    assert "compute capability 7.0" in aged


def smi(folder: Path, rows: str, clocks: str = "") -> probe.Machine:
    """A machine with nvidia-smi that tells these GPUs."""
    (folder / "root/usr/bin").mkdir(parents=True)
    (folder / "root/usr/bin/nvidia-smi").touch()
    commands = {
        " ".join(nvidia.QUERY): {"stdout": rows},
        "nvidia-smi": {"stdout": "| NVIDIA-SMI 535.161.08  Driver Version: 535.161.08  CUDA Version: 12.2 |\n"},
        f"nvidia-smi --query-gpu={','.join(by_driver.CLOCK_FIELDS)} {nvidia.QUERY[2]}": {"stdout": clocks},
    }
    (folder / "machine.json").write_text(json.dumps({"commands": commands}), encoding="utf-8")
    return probe.recorded(folder)


TWO = (
    "0, GPU-aaaa, Tesla T4, 15360, 535.161.08, 7.5, [N/A], 00000000:3B:00.0\n"
    "1, GPU-bbbb, NVIDIA A100-SXM4-40GB, 40960, 535.161.08, 8.0, Enabled, 00000000:5E:00.0\n"
)


def test_without_nvcc_the_driver_is_asked_and_it_is_said(hook_input: Any, tmp_path: Path, capsys: Any) -> None:
    answer, call = run(hook_input, smi(tmp_path, TWO, "0, 1590\n1, 1410\n"))
    told = capsys.readouterr()
    assert answer == {"return": 0}
    assert "asking nvidia-smi (NVML): there is no nvcc" in told.err
    assert "does not report the CUDA runtime version" in told.err
    assert "MIG mode" in told.err
    assert "GPU Name: Tesla T4\n" in told.out
    assert "Max clock rate: 1590.000000 MHz\n" in told.out
    assert "Global memory: 16106127360\n" in told.out, "bytes, as the query has it"
    assert "CUDA runtime version: not known\n" in told.out
    assert "Maximum number of threads per multiprocessor: 1024\n" in told.out
    assert told.out.count("\n") == 2 * (18 + 1)
    assert call["env"]["CM_CUDA_DEVICES_TOLD_BY"] == "nvml"
    assert "CM_CUDA_DEVICE_PROP_CUDA_RUNTIME_VERSION" not in call["env"], "what is not known is no value"


@pytest.mark.parametrize(
    ("visible", "names"), [("", [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("GPU-bbbb", [1]), ("all", [0, 1])]
)
def test_devices_are_chosen_by_number_or_uuid(hook_input: Any, tmp_path: Path, visible: str, names: list[int]) -> None:
    _, call = run(hook_input, smi(tmp_path, TWO), CM_CUDA_DEVICES_SOURCE="nvml", CM_CUDA_VISIBLE_DEVICES=visible)
    devices = call["state"]["cm_cuda_devices_prop"]
    assert [int(devices[number]["GPU Device ID"]) for number in devices] == names


def test_a_slice_is_chosen_by_its_uuid_and_is_not_the_whole_gpu(hook_input: Any, capsys: Any) -> None:
    machine = probe.recorded(MACHINES / "a100-mig-7x1g5gb")
    uuid = nvidia.look(machine).slices[2].uuid
    answer, call = run(hook_input, machine, CM_CUDA_DEVICES_SOURCE="nvml", CM_CUDA_VISIBLE_DEVICES=uuid)
    assert answer == {"return": 0}
    found = call["state"]["cm_cuda_device_prop"]
    assert found["GPU Name"] == "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    assert found["Global memory"] == "not known"
    assert "in MIG mode" not in capsys.readouterr().err


def test_an_unknown_device_is_refused_with_those_that_are_there(hook_input: Any, tmp_path: Path) -> None:
    answer, _ = run(hook_input, smi(tmp_path, TWO), CM_CUDA_VISIBLE_DEVICES="GPU-cccc")
    assert answer["return"] == 1
    assert "0 (GPU-aaaa), 1 (GPU-bbbb)" in answer["error"]


def test_limits_of_a_capability_that_is_not_in_the_table_are_not_guessed(hook_input: Any, tmp_path: Path) -> None:
    rows = "0, GPU-aaaa, NVIDIA Next, 300000, 900.1, 99.0, Disabled, 00000000:3B:00.0\n"
    _, call = run(hook_input, smi(tmp_path, rows))
    assert call["state"]["cm_cuda_device_prop"]["Warp size"] == "not known"


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("t4x1", "Tesla T4"),
        ("h200x1", "NVIDIA H200"),
        ("wsl2", "NVIDIA GeForce RTX 3080 Laptop GPU"),
        ("a100-mig-7x1g5gb", "NVIDIA A100-SXM4-40GB"),
    ],
)
def test_recorded_machines(hook_input: Any, name: str, gpu: str) -> None:
    answer, call = run(hook_input, probe.recorded(MACHINES / name), CM_CUDA_DEVICES_SOURCE="nvml")
    assert answer == {"return": 0}
    assert call["env"]["CM_CUDA_DEVICE_PROP_GPU_NAME"] == gpu


def test_a_driver_that_is_not_loaded_is_told_in_nvidia_smis_words(hook_input: Any) -> None:
    answer, _ = run(hook_input, probe.recorded(MACHINES / "driver-not-loaded"), CM_CUDA_DEVICES_SOURCE="nvml")
    assert answer["return"] == 1
    assert "couldn't communicate with the NVIDIA driver" in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="this machine has no nvcc")
def test_the_query_compiles_and_without_a_driver_says_so(home: Any) -> None:
    done = home.run_cm("get,cuda-devices")
    if done.code == 0:  # a machine with a GPU
        assert int(done.answer["new_env"]["CM_CUDA_NUM_DEVICES"]) > 0
        return
    assert "Running program ..." in done.stderr
    assert done.code == 1
    assert "cudaErrorInsufficientDriver" in done.answer["error"]
    assert "Traceback" not in done.stdout + done.stderr
    assert list(home.work.iterdir()) == [], "nothing is left in the user's folder"
    assert not list((RECIPES / "get-cuda-devices").glob("*.out"))


def test_with_pycuda_is_another_word_for_with_nvml(home: Any) -> None:
    done = home.run_cm("get,cuda-devices,_with-pycuda")
    assert "asking nvidia-smi (NVML): as asked" in done.stderr


@pytest.mark.parametrize(("name", "clock"), [("a100-sxm4x8", "1410.000000 MHz"), ("t4x1", "1590.000000 MHz")])
def test_a_recorded_machine_shows_its_eighteen_properties_and_says_that_it_is_simulated(
    hook_input: Any, inside: Path, capsys: Any, name: str, clock: str
) -> None:
    answer, call = run(hook_input, CM_RECORDED_MACHINE=name)
    printed = capsys.readouterr()
    assert answer == {"return": 0}
    assert "SIMULATED" in printed.out
    assert "no program can be compiled or run on a recorded machine" in printed.err
    assert "CUDA runtime version: that of the recorded toolkit in /usr/local/cuda-" in printed.err
    first = call["state"]["cm_cuda_device_prop"]
    assert tuple(first) == properties.NAMES
    assert properties.NOT_KNOWN not in first.values()
    assert first["Max clock rate"] == clock


def test_what_a_recording_lacks_is_not_known(hook_input: Any, inside: Path) -> None:
    _, call = run(hook_input, CM_RECORDED_MACHINE="nd-h100-v5")
    assert call["state"]["cm_cuda_device_prop"]["Max clock rate"] == properties.NOT_KNOWN
    assert call["state"]["cm_cuda_num_devices"] == 8


def test_an_unknown_recorded_machine_is_refused_with_those_there_are(hook_input: Any, inside: Path) -> None:
    answer, _ = run(hook_input, CM_RECORDED_MACHINE="dgx-9000")
    assert answer["return"] == 1
    assert "a100-sxm4x8" in answer["error"]
