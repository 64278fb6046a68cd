"""doctor: the right advice for every recorded machine, tables with sources, and exit 0 whatever it finds."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import recipe_metas
from machine_builder import build
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import compatibility, findings, selection, versions

recipe = load_recipe("doctor")
advice = load_module("doctor", "advice")
backends = load_module("doctor", "backends")
surroundings = load_module("doctor", "surroundings")

SECTIONS = ("fits", "backends", "surroundings")


def run(name: str, **env: str) -> dict[str, Any]:
    """The hook's dict after it looked at a recorded machine."""
    i: dict[str, Any] = {"env": {"CM_DOCTOR_MACHINE": name, **env}, "state": {}}
    assert recipe.preprocess(i) == {"return": 0}
    return i


def lines_of(doctor: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(what, words, command) of each finding, once for each of its commands."""
    return [
        (row["what"], f"{row['level']}: {row['found']} {row['wanted']}", command)
        for section in SECTIONS
        for row in doctor[section]
        for command in [fix["command"] for fix in row["fixes"]] or [""]
    ]


# name: (problems), (what, words that its finding has, its command)
ADVICE: dict[str, tuple[tuple[str, ...], tuple[str, str, str]]] = {
    "a100-mig-7x1g5gb": ((), ("MIG", "ok: 7 slices. A program uses one of them CUDA_VISIBLE_DEVICES=", "")),
    "a100-mig-empty": (("MIG",), ("MIG", "MIG is on without slices on GPU 0", "--tags=manage,nvidia,mig,_configure")),
    "a100-pciex2": ((), ("TensorRT 8.6.1.6", "built for CUDA 11 or 12, compatible with 12.2.2", "")),
    "a100-sxm4x1": ((), ("CUDA 12.2.2", "driver 535.161.08 runs it", "")),
    "a100-sxm4x4": ((), ("cuDNN 8.9.7", "built for CUDA 11 or 12, compatible with 12.2.2", "")),
    "a100-sxm4x8": ((), ("fabric manager", "ok: 535.161.08, as the driver", "")),
    "arch-rtx3060": ((), ("packages", "ok: pacman", "")),
    "azure-a100-sxm4-40gbx8": ((), ("containers (gpu)", "ok: ready", "")),
    "container-without-gpu": (
        ("driver",),
        ("driver", "this container was started without them", "docker run --gpus all ..."),
    ),
    "docker-no-permission": (
        ("docker",),
        ("docker", "is there, but not for bench: permission denied", "sudo usermod -aG docker bench"),
    ),
    "driver-not-loaded": (("driver",), ("driver", "nvidia-smi fails: NVIDIA-SMI has failed", "sudo modprobe nvidia")),
    "gpu-without-driver": (
        ("driver",),
        ("driver", "1 NVIDIA GPU on the bus, no driver", "cm run script --tags=get,nvidia,driver"),
    ),
    "h200x1": ((), ("TensorRT 10.2.0.19", "built for CUDA 11 or 12, compatible with 12.4.1", "")),
    "inf1-2xlarge": ((), ("Neuron", "ok: 1 Neuron device, 4 NeuronCores", "")),
    "inf1-6xlarge": (
        (),
        ("neuron (triton)", "a server with AWS's torch-neuron or torch-neuronx", "--tags=get,triton,server,_neuron"),
    ),
    "jetson-agx-xavier": ((), ("driver", "ok: part of Jetson Linux 32.4.4", "")),
    "jetson-xavier-nx": ((), ("CUDA 10.2.89", "ok: in /usr/local/cuda-10.2, of JetPack", "")),
    "laptop": ((), ("onnxruntime (cpu)", "ok: ready", "")),
    "nd-h100-v5": (
        ("fabric manager",),
        (
            "fabric manager",
            "driver 535.161.08, fabric manager 535.54.03 fabric manager 535.161.08",
            "cm run script --tags=get,nvidia,driver,_fabricmanager-match",
        ),
    ),
    "no-sudo-no-gpu": ((), ("user bench", "has no sudo: an administrator", "")),
    "rhel9-a30": (
        (),
        ("containers (gpu)", "lacks NVIDIA's container toolkit", "cm run script --tags=get,nvidia,container-toolkit"),
    ),
    "sles15": ((), ("packages", "ok: zypper", "")),
    "t4x1": ((), ("CUDA 11.0.3", "driver 470.223.02 runs it", "")),
    "t4x20": ((), ("TensorRT 7.2.1.6", "built for CUDA 10 or 11, compatible with 11.0.3", "")),
    "t4x8": ((), ("torch (cuda)", "lacks the package torch", "-m pip install torch")),
    "two-cuda-wrong-first": (
        ("PATH",),
        ("PATH", "CUDA 13.0.0 is first on PATH", 'export PATH=/usr/local/cuda-12.2/bin:"$PATH"'),
    ),
    "wsl2": ((), ("driver", "in WSL the driver of Windows is used: install none in Linux", "")),
}


def test_the_table_has_every_recorded_machine() -> None:
    assert tuple(sorted(ADVICE)) == selection.shipped()


@pytest.mark.parametrize("name", ADVICE)
def test_every_machine_gets_the_right_advice(name: str) -> None:
    problems, (what, words, command) = ADVICE[name]
    i = run(name)
    doctor = i["state"]["doctor"]
    assert tuple(doctor["problems"]) == problems
    assert i["env"]["CM_DOCTOR_PROBLEMS"] == str(len(problems))
    told = [line for line in lines_of(doctor) if line[0] == what and words in line[1] and command in line[2]]
    assert told, [line for line in lines_of(doctor) if line[0] == what]


@pytest.mark.parametrize("name", ADVICE)
def test_every_lack_of_a_backend_has_a_command_unless_nothing_can_help(name: str) -> None:
    for row in run(name)["state"]["doctor"]["backends"]:
        assert row["level"] in ("ok", "note")
        if row["found"].startswith("lacks"):
            assert row["fixes"], row
        else:
            assert row["found"] == "ready" or row["found"].startswith("not on this machine"), row


@pytest.mark.parametrize("name", ADVICE)
def test_every_problem_has_a_command(name: str) -> None:
    doctor = run(name)["state"]["doctor"]
    for section in SECTIONS:
        assert all(row["fixes"] for row in doctor[section] if row["level"] == "problem")


def test_a_backend_is_not_ready_while_the_fabric_manager_differs() -> None:
    doctor = run("nd-h100-v5")["state"]["doctor"]
    tensorrt = next(row for row in doctor["backends"] if row["what"] == "tensorrt")
    assert tensorrt["found"] == "lacks a fabric manager of the driver's version"
    assert "tensorrt" in run("a100-sxm4x8")["state"]["doctor"]["ready"]


def test_what_onnxruntime_and_torch_are_made_for() -> None:
    doctor = run("two-cuda-wrong-first")["state"]["doctor"]
    found = {row["what"]: row["found"] for section in SECTIONS for row in doctor[section]}
    assert found["onnxruntime (cuda)"] == "lacks CUDA 11 (onnxruntime-gpu 1.17.1 is made for it)"
    assert found["torch 2.3.1+cu121"] == "brings CUDA 12.1, which driver 535.161.08 runs"
    assert doctor["ready"] == ["onnxruntime (cpu)", "torch (cpu)", "torch (cuda)"]


@pytest.mark.parametrize(
    ("cuda", "words"),
    [
        ("12.4", "onnxruntime-gpu up to 1.26.0, since the driver runs CUDA up to 12.4"),
        ("13.0", "onnxruntime-gpu"),
        ("", "onnxruntime-gpu"),
    ],
)
def test_the_release_that_the_driver_runs_is_told(cuda: str, words: str) -> None:
    system = SimpleNamespace(packages={}, tensorrt=(), driver=SimpleNamespace(cuda_version=cuda))
    facts = SimpleNamespace(system=system, has_benchmark_python=True)
    assert backends._still_to_install("onnxruntime (cuda)", facts) == words
    assert backends._still_to_install("onnxruntime (cpu)", facts) == "onnxruntime"


def machine(folder: Path, name: str, **changes: Any) -> Path:
    """A copy of a recorded machine's facts with changes of ``machine.json``; its files are those of the original."""
    facts = json.loads((selection.SHIPPED / name / "machine.json").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "root").symlink_to(selection.SHIPPED / name / "root")
    (folder / "machine.json").write_text(json.dumps({**facts, **changes}), encoding="utf-8")
    return folder


def findings_about(folder: Path, what: str) -> list[dict[str, Any]]:
    doctor = run(str(folder))["state"]["doctor"]
    return [row for section in SECTIONS for row in doctor[section] if row["what"] == what]


def test_scratch_space_that_cannot_be_written_or_is_small(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin", "MLPERF_SCRATCH_PATH": "/usr/bin"}
    (row,) = findings_about(machine(tmp_path / "a", "laptop", environment=environment), "scratch space")
    assert row["level"] == "problem"
    assert "/usr/bin is not a folder that bench may write to" in row["found"]
    (row,) = findings_about(
        machine(tmp_path / "b", "laptop", environment=environment, writable=["/usr/bin"]), "scratch space"
    )
    assert (row["level"], row["found"]) == ("note", "/usr/bin: 600 GB free")
    disks = {"/": {"total_bytes": 9 * 10**12, "free_bytes": 4 * 10**12}}
    (row,) = findings_about(
        machine(tmp_path / "c", "laptop", environment=environment, writable=["/usr/bin"], disks=disks), "scratch space"
    )
    assert row["level"] == "ok"


def test_missing_gpus_are_a_problem(tmp_path: Path) -> None:
    facts = json.loads((selection.SHIPPED / "t4x8" / "machine.json").read_text(encoding="utf-8"))
    commands = {
        key: {**row, "stdout": row.get("stdout", "").split("\n7, ")[0]} for key, row in facts["commands"].items()
    }
    (row,) = findings_about(machine(tmp_path / "b", "t4x8", commands=commands), "GPUs")
    assert (row["level"], row["found"]) == ("problem", "the driver shows 7 of the 8 GPUs on the bus")


def test_no_fabric_manager_beside_nvswitches_is_a_problem(tmp_path: Path) -> None:
    facts = json.loads((selection.SHIPPED / "a100-sxm4x8" / "machine.json").read_text(encoding="utf-8"))
    commands = {key: row for key, row in facts["commands"].items() if "fabric" not in key}
    (row,) = findings_about(machine(tmp_path / "a", "a100-sxm4x8", commands=commands), "fabric manager")
    assert (row["level"], row["found"]) == ("problem", "none, but 6 NVSwitch chips, which need it")


def test_an_engine_that_does_not_answer_is_told_with_its_words(tmp_path: Path) -> None:
    commands = {"docker info --format {{.ServerVersion}}": {"code": 1, "stderr": "Cannot connect to the Docker daemon"}}
    (row,) = findings_about(machine(tmp_path / "a", "docker-no-permission", commands=commands), "docker")
    assert (row["level"], row["found"]) == ("note", "it does not answer: Cannot connect to the Docker daemon")


def test_a_podman_that_is_refused_is_not_taken_for_docker(tmp_path: Path) -> None:
    commands = {
        "podman --version": {"stdout": "podman version 4.9.3\n"},
        "podman info --format {{.Version.Version}}": {"code": 125, "stderr": "permission denied: /run/user/1000"},
    }
    build(tmp_path, {"/usr/bin/podman": ""}, commands=commands)
    (row,) = findings_about(tmp_path, "podman")
    assert (row["level"], row["found"]) == ("note", "it does not answer: permission denied: /run/user/1000")


def test_limits_by_the_environment_are_told(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "0,2"}
    (row,) = findings_about(machine(tmp_path / "a", "t4x8", environment=environment), "CUDA_VISIBLE_DEVICES")
    assert row["found"].startswith("0,2: ")


def test_the_page_says_simulated_first_and_ends_with_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    run("nd-h100-v5")
    out = capsys.readouterr().out
    assert out.splitlines()[1].startswith("SIMULATED")
    titles = ("System", "Compatibility", "Backends (packages of", "User, containers, space")
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    assert "1 problem: fabric manager. No changes were made" in out


def test_this_machine_is_looked_at_without_failure(capsys: pytest.CaptureFixture[str]) -> None:
    i: dict[str, Any] = {"env": {}, "state": {}}
    assert recipe.preprocess(i) == {"return": 0}
    assert "SIMULATED" not in capsys.readouterr().out
    assert json.loads(json.dumps(i["state"])) == i["state"]
    assert exported("doctor", i["env"]) == i["env"]


def benchmark_environment(cache: Path, *packages: str, tags: tuple[str, ...] = ()) -> Path:
    """A made-up environment of benchmarks in a cache, with the metadata folders of some packages; its Python."""
    folder = cache / "0123456789abcdef" / "mlperf-inference"
    for package in packages:
        (folder / "lib" / "python3.11" / "site-packages" / f"{package}.dist-info").mkdir(parents=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / "bin" / "python3").write_text("")
    found = ["install", "python-venv", "name-mlperf-inference", *tags]
    (folder.parent / "_cm.json").write_text(json.dumps({"tags": found}))
    return folder / "bin" / "python3"


def look_here(cache: Path) -> dict[str, Any]:
    i: dict[str, Any] = {"env": {}, "state": {}, "automation": SimpleNamespace(cache_path=str(cache))}
    assert recipe.preprocess(i) == {"return": 0}
    found: dict[str, Any] = i["state"]["doctor"]
    return found


def row_of(doctor: dict[str, Any], what: str) -> dict[str, Any]:
    return next(row for row in doctor["backends"] if row["what"] == what)


def test_the_environment_of_benchmarks_is_judged_and_not_cms_own(tmp_path: Path) -> None:
    python = benchmark_environment(tmp_path, "onnxruntime-1.22.0")
    doctor = look_here(tmp_path)
    assert doctor["machine"]["python"] == str(python)
    assert row_of(doctor, "onnxruntime (cpu)")["found"] == "ready"
    assert row_of(doctor, "torch (cpu)")["found"] == "ready, the first run installs torch"
    assert row_of(doctor, "torch (cpu)")["level"] == "ok"


@pytest.mark.parametrize("tags", [None, ("tmp",)])
def test_before_the_first_run_nothing_is_missing_that_it_installs(
    tmp_path: Path, tags: tuple[str, ...] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if tags:
        benchmark_environment(tmp_path, "onnxruntime-1.22.0", tags=tags)
    doctor = look_here(tmp_path / "" if tags else tmp_path / "none")
    assert row_of(doctor, "onnxruntime (cpu)")["found"] == "ready, the first run installs onnxruntime"
    assert "the first run makes it" in capsys.readouterr().out
    assert {"onnxruntime (cpu)", "torch (cpu)"} <= set(doctor["ready"])


CAN_RUN = {
    "laptop": "The recorded machine can run digits and, with --source=tiny, all",
    "a100-sxm4x8": "on cuda with ",
    "two-cuda-wrong-first": "benchmarks, on",
}


@pytest.mark.parametrize("name", ADVICE)
def test_the_page_ends_with_what_the_machine_can_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    can_run = run(name)["state"]["doctor"]["can_run"]
    assert CAN_RUN.get(name, "The recorded machine can run") in can_run
    assert capsys.readouterr().out.rstrip().endswith(can_run) and can_run.endswith(".")


def test_neuron_devices_are_told_in_the_last_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    can_run = run("inf1-6xlarge")["state"]["doctor"]["can_run"]
    lacks = "because it lacks a server with AWS's torch-neuron or torch-neuronx"
    assert f"bert and resnet50 not on inferentia, {lacks}" in can_run
    assert "because lacks" not in can_run
    assert "inferentia" not in run("laptop")["state"]["doctor"]["can_run"]


def test_the_page_calls_cm_as_the_user_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROWDPERF_CM", "./cm")
    run("gpu-without-driver")
    assert "fix: ./cm run script --tags=get,nvidia,driver" in capsys.readouterr().out


def test_what_needs_more_disk_than_there_is_is_named() -> None:
    system = recipe.systems.look(selection.choose("laptop", Path()).machine)
    around = surroundings.look(selection.choose("laptop", Path()).machine)
    facts = load_module("doctor", "backends").Facts(system, around, "", "", True)
    summary = load_module("doctor", "summary")
    assert "for real data" in summary.text(facts, 10**9) and "than the 1 GB that are free" in summary.text(facts, 10**9)
    assert "for real data" not in summary.text(facts, 10**16)
    small = summary.text(facts, 10**16, 25 * 10**9)
    assert "at full size dlrm, dlrm-v2 and gptj need more memory than the 25 GB of the machine" in small
    assert "more memory" not in summary.text(facts, 10**16, 10**12)
    assert "gptj" in summary.text(facts, 70 * 10**9)
    assert "not on cuda, because it has no NVIDIA GPU" in summary.text(facts, None)


def test_a_plan_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    i: dict[str, Any] = {"env": {"CM_DOCTOR_MACHINE": "t4x1"}, "state": {}}
    assert recipe.plan(i) == {"return": 0}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"CM_DOCTOR_MACHINE": "nope"}, "not a recorded machine"),
        ({"CM_DOCTOR_PYTHON": "/no"}, "there is no such Python"),
    ],
)
def test_it_fails_only_when_it_cannot_look(env: dict[str, str], text: str) -> None:
    answer = recipe.preprocess({"env": dict(env), "state": {}})
    assert answer["return"] == 1
    assert text in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(
    ("release", "driver", "is_windows", "verdict"),
    [
        ("13.0", "580.65.06", False, "runs"),
        ("13.2", "580.65.06", False, "minor"),
        ("13.0", "535.161.08", False, "too-old"),
        ("12.4", "550.54.14", False, "runs"),
        ("12.4", "525.60.13", False, "minor"),
        ("12.4", "525.60.12", False, "too-old"),
        ("12.0", "527.41", True, "runs"),
        ("12.0", "526.00", True, "too-old"),
        ("11.8", "450.80.02", False, "minor"),
        ("10.2", "439.0", False, "too-old"),
        ("10.2", "535.1", False, "runs"),
        ("13.0", "581.0", True, "unknown"),
        ("14.0", "999.0", False, "unknown"),
        ("12.4", "", False, "unknown"),
    ],
)
def test_the_table_of_drivers(release: str, driver: str, is_windows: bool, verdict: str) -> None:
    assert compatibility.driver_verdict(release, driver, is_windows=is_windows) == verdict


def test_the_table_of_drivers_is_in_order_and_asks_no_more_than_what_a_toolkit_came_with() -> None:
    rows = compatibility.driver_rows()

    assert [row.release for row in rows] == sorted((row.release for row in rows), key=versions.key, reverse=True)
    for row in rows:
        # 11.0 came before the driver that minor version compatibility needs (NVIDIA's footnote)
        is_before = row.release == "11.0"
        assert is_before or versions.is_within(row.toolkit_linux, row.minimum_linux), row


@pytest.mark.parametrize(
    ("library", "version", "majors"),
    [
        ("cuDNN", "7.6.5", ("9", "10")),
        ("cuDNN", "8.7.0.84", ("10", "11")),
        ("cuDNN", "8.9.7", ("11", "12")),
        ("cuDNN", "9.10.2", ("11", "12")),
        ("cuDNN", "9.17.0", ("12", "13")),
        ("cuDNN", "99.0", ()),
        ("TensorRT", "8.5.1.7", ("10", "11")),
        ("TensorRT", "8.6.1.6", ("11", "12")),
        ("TensorRT", "10.13.2.6", ("12", "13")),
        ("TensorRT", "11.4.0", ()),
    ],
)
def test_the_table_of_libraries(library: str, version: str, majors: tuple[str, ...]) -> None:
    assert compatibility.cuda_majors_of(library, version) == majors


def test_recipes_that_are_named_in_advice_exist() -> None:
    known = [(set(meta.get("tags", ())), set(meta.get("variations", {}))) for meta in recipe_metas()]
    commands = [value for value in vars(advice).values() if isinstance(value, findings.Command)]
    commands += [advice.package("torch", "/x/python3"), advice.driver_at_least("580"), advice.cuda("12")]
    for command in commands:
        for word in command.words:
            if word.startswith("--tags="):
                asked = word.removeprefix("--tags=").split(",")
                tags = {tag for tag in asked if not tag.startswith("_")}
                variations = {tag[1:].split(".")[0] for tag in asked if tag.startswith("_")}
                assert any(
                    tags <= has and variations <= {name.split(".")[0] for name in offers} for has, offers in known
                ), word


def test_an_amd_gpu_is_told_and_promises_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "amd"
    (folder / "root/sys/bus/pci/devices/0").mkdir(parents=True)
    for name, value in (("vendor", "0x1002"), ("device", "0x740f"), ("class", "0x038000")):
        (folder / "root/sys/bus/pci/devices/0" / name).write_text(value, encoding="utf-8")
    (folder / "machine.json").write_text("{}", encoding="utf-8")
    (row,) = findings_about(folder, "AMD GPU")
    assert (row["level"], row["fixes"]) == ("note", [])
