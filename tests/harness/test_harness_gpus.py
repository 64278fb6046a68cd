"""Which GPUs a run used and what the driver says of them, on machines that are stand-ins for NVML and CUDA."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import harness_support
import pytest
from harness_libraries import need

harness_support.need("numpy")

from fake_nvml import FakeCudaDriver, FakePynvml, Gpu  # noqa: E402

from crowdperf.harness.base.tensors import NetworkSpec  # noqa: E402
from crowdperf.harness.watch import nvml as nvml_module  # noqa: E402
from crowdperf.harness.watch.machine import GpuFacts, machine_facts, system_name  # noqa: E402
from crowdperf.harness.watch.monitor import Monitor  # noqa: E402
from crowdperf.harness.watch.nvml import GpuLoad, Nvml, is_own_process, near_gpus  # noqa: E402
from crowdperf.logs.interference import disturbances  # noqa: E402

H100 = "NVIDIA H100 80GB HBM3"


def eight() -> list[Gpu]:
    """Eight GPUs, of which one works."""
    return [Gpu(n, percent=98 if n == 3 else 0, power_mw=650_000 if n == 3 else 70_000) for n in range(8)]


def with_slices() -> list[Gpu]:
    """A GPU with two MIG slices beside a whole one; the driver does not tell a slice's load or power."""
    whole, cut = Gpu(0), Gpu(1)
    name = f"{H100} MIG 1g.10gb"
    parts = [Gpu(n, name, 10 * 10**9, parent=cut, percent=None, power_mw=None) for n in (7, 8)]
    return [whole, cut, *parts]


def plug(monkeypatch: Any, gpus: Sequence[Gpu], environment: Mapping[str, str], **changes: Any) -> FakePynvml:
    fake = FakePynvml(gpus, **changes)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(nvml_module, "cuda_driver", lambda: FakeCudaDriver(gpus, environment))
    return fake


@pytest.mark.parametrize(
    ("ordinals", "environment", "used"),
    [
        ((0,), {}, [0]),
        ((0,), {"CUDA_VISIBLE_DEVICES": "3"}, [3]),
        ((1, 0), {"CUDA_VISIBLE_DEVICES": "5,3"}, [3, 5]),
        ((2, 6), {}, [2, 6]),
        ((0,), {"CUDA_VISIBLE_DEVICES": f"GPU-{Gpu(6).uuid}"}, [6]),  # as Slurm sets it with UUIDs
    ],
)
def test_a_run_has_the_gpus_that_it_used_and_no_others(monkeypatch, ordinals, environment, used) -> None:
    plug(monkeypatch, eight(), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environment})
    with Monitor(gpus=ordinals, interval_s=0.01) as watched:
        time.sleep(0.03)
    assert [gpu.index for gpu in watched.gpus] == used
    facts = machine_facts(watched.gpus)
    assert [gpu["index"] for gpu in facts["gpus"]] == used
    assert system_name(facts, "tensorrt") == f"H100_80GB_HBM3x{len(used)}_TRT"
    summary = watched.record().summary()
    assert [(gpu["index"], gpu["mean_percent"]) for gpu in summary["gpus"]] == [(n, 98.0 * (n == 3)) for n in used]
    content = json.loads(json.dumps(watched.record().content()))
    assert all(len(row) == len(content["columns"]) for row in content["rows"])


def test_cudas_own_order_names_the_gpu_that_computes(monkeypatch) -> None:
    slow, fast = Gpu(0, "NVIDIA T400"), Gpu(1, speed=9)
    plug(monkeypatch, [slow, fast], {})
    assert [(gpu.index, gpu.name) for gpu in Nvml([0]).gpus] == [(1, H100)]
    plug(monkeypatch, [slow, fast], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert [(gpu.index, gpu.name) for gpu in Nvml([0]).gpus] == [(0, "NVIDIA T400")]


def test_a_slice_is_described_as_a_slice(monkeypatch) -> None:
    gpus = with_slices()
    fake = plug(monkeypatch, gpus, {"CUDA_VISIBLE_DEVICES": f"MIG-{gpus[2].uuid}"})
    nvml = Nvml([0])
    (found,) = nvml.gpus
    assert found == GpuFacts(
        index=1, name=f"{H100} MIG 1g.10gb", memory_bytes=10 * 10**9, mig_profile="1g.10gb", mig_parent=H100
    )
    assert found.record()["mig"] == {"profile": "1g.10gb", "parent": H100}
    assert "mig" not in GpuFacts(index=0, name="x", memory_bytes=1).record()
    (load,) = nvml.loads()
    assert (load.utilization_percent, load.power_w, load.used_bytes) == (None, None, 10**9)
    assert nvml.energies_j() == (None,)
    nvml.close()
    assert fake.is_shut


@pytest.mark.parametrize(("slices", "profile"), [((1, 1), "1g"), ((2, 1), "1c.2g"), ((3, 0), "3g")])
def test_a_slice_without_a_profile_in_its_name_has_the_number_of_its_parts(monkeypatch, slices, profile) -> None:
    gpus = [Gpu(0), Gpu(4, H100, parent=Gpu(0), slices=slices)]
    plug(monkeypatch, gpus, {"CUDA_VISIBLE_DEVICES": f"MIG-{gpus[1].uuid}"})
    assert [gpu.name for gpu in Nvml([0]).gpus] == [f"{H100} MIG {profile}"]


@pytest.mark.parametrize("old", [False, True])
def test_loads_are_read_whatever_the_package_calls_them(monkeypatch, old) -> None:
    plug(monkeypatch, [Gpu(0, H100.encode(), percent=97, power_mw=612_500, reasons=0x4)], {}, old=old)
    nvml = Nvml([0])
    assert nvml.gpus == (GpuFacts(index=0, name=H100, memory_bytes=85 * 10**9),)
    assert nvml.loads() == (
        GpuLoad(
            utilization_percent=97, used_bytes=10**9, power_w=612.5, sm_mhz=1980, memory_mhz=2619, temperature_c=61,
            reasons=0x4, other_processes=0,
        ),
    )  # fmt: skip
    nvml.close()
    assert nvml.loads() == ()


@pytest.mark.parametrize(
    ("module", "driver", "words"),
    [
        (FakePynvml(has_driver=False), None, "Library Not Found"),
        (None, None, "pip install nvidia-ml-py"),
        (FakePynvml([Gpu(0)]), OSError("libcuda.so.1: cannot open"), "does not report which of the machine's GPUs"),
        (FakePynvml([Gpu(0)]), [Gpu(0), Gpu(1)], "NVML shows 1 of the 2 CUDA devices"),
        (FakePynvml([Gpu(0)]), [Gpu(0)], "cuDeviceGet of CUDA's driver failed with code 101"),
    ],
)
def test_where_the_gpus_cannot_be_told_a_note_says_why(monkeypatch, capsys, module, driver, words) -> None:
    def cuda_driver() -> FakeCudaDriver:
        if isinstance(driver, Exception) or driver is None:
            raise driver or OSError("none")
        return FakeCudaDriver(driver, {})

    monkeypatch.setitem(sys.modules, "pynvml", module)  # None: the import fails
    monkeypatch.setattr(nvml_module, "cuda_driver", cuda_driver)
    nvml = Nvml([0, 1])
    assert len(nvml.gpus) == ("1 of the 2" in words)
    nvml.close()
    assert words in capsys.readouterr().err


def test_the_energy_of_a_run_is_that_of_the_drivers_counter(monkeypatch) -> None:
    plug(monkeypatch, [Gpu(0)], {})
    with Monitor(gpus=[0], interval_s=10.0) as watched:
        pass
    assert watched.record().summary()["gpus"][0]["energy_j"] == 650.0


def test_programs_of_others_on_the_gpu_disturb_a_run_and_its_own_do_not(monkeypatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_own_process(child.pid, os.getpid()) and not is_own_process(os.getppid(), os.getpid())
        for pids, others in (
            ([os.getpid(), child.pid], 0),
            ([os.getpid(), 1, os.getppid()], 2),
            ([2**30], None),  # in a container NVML shows other numbers: nothing is known
            ([], None),
        ):
            plug(monkeypatch, [Gpu(0, pids=pids)], {})
            assert [load.other_processes for load in Nvml([0]).loads()] == [others]
        child.communicate(b"\n")


@pytest.mark.parametrize(
    ("gpu", "words"),
    [
        ({"other_processes": 2, "heat_throttled_percent": 0.0}, ["2 other programs had GPU 3 open"]),
        ({"other_processes": 1}, ["1 other program had GPU 3 open"]),
        ({"heat_throttled_percent": 12.0}, ["heat or power supply slowed GPU 3 down for 12 % of the time"]),
        ({"heat_throttled_percent": 0.9, "power_capped_percent": 100.0, "other_processes": 0}, []),
        ({"other_processes": None, "heat_throttled_percent": None}, []),
    ],
)
def test_a_gpu_can_be_what_disturbed_a_run(gpu: dict, words: list[str]) -> None:
    result = {"metric": {"name": "throughput"}, "duration_s": 60.0, "load": {"gpus": [{"index": 3, **gpu}]}}
    assert [str(found) for found in disturbances(result)] == words


@pytest.mark.parametrize(
    ("ordinals", "instances", "near"),
    [
        ((0, 1), 4, [(0, 1), (2, 130), (0, 1), (2, 130)]),
        ((1,), 2, [(2, 130), (2, 130)]),
        ((2,), 2, []),  # the driver does not tell
        ((3,), 1, []),  # all processors are near it
    ],
)
def test_instances_run_near_their_gpu_where_the_driver_says_what_is_near(
    monkeypatch, ordinals, instances, near
) -> None:
    usable = (0, 1, 2, 130)
    cores = [(0, 1, 64), (2, 3, 130), (), usable]
    plug(monkeypatch, [Gpu(number, cores=own) for number, own in enumerate(cores)], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    monkeypatch.setattr(nvml_module, "available_cores", lambda: usable)
    assert list(near_gpus(ordinals, instances)) == near


def test_without_nvml_nothing_is_near_and_nothing_is_said(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert near_gpus((0,), 2) == ()
    assert capsys.readouterr().err == ""


def test_what_an_instance_allocates_is_touched_first_near_its_gpu(monkeypatch) -> None:
    need("mlperf_loadgen")
    from crowdperf.harness.runner import components

    told: list[tuple[str, object]] = []

    class Backend:
        def instance(self, number: int) -> Any:
            told.append(("instance", number))
            return lambda inputs: {}

    @contextlib.contextmanager
    def at_cores(cores: Sequence[int]) -> Any:
        told.append(("at", cores))
        yield

    monkeypatch.setattr(components, "near_gpus", lambda gpus, instances: ((4, 5), (6, 7))[:instances])
    monkeypatch.setattr(components, "at_cores", at_cores)
    network = NetworkSpec(name="model", inputs=(), outputs=())
    facts = SimpleNamespace(files={}, config={}, engine={})
    config = SimpleNamespace(
        model="digits", device="cuda", gpus=(0, 1), serving=None, precision="fp32", output_dir=None
    )
    model = SimpleNamespace(networks=[network], predict=None, response=None)
    parts = SimpleNamespace(
        config=config, facts=facts, model=model, backend=SimpleNamespace(open_backend=lambda request: Backend())
    )
    opened = components.open_work(parts, None, components.Layout(2, 1), 8)  # type: ignore[arg-type]
    assert told == [("at", (4, 5)), ("instance", 0), ("at", (6, 7)), ("instance", 1)]
    with opened.work.at_core(1):
        assert told[-1] == ("at", (6, 7))
