"""detect-mlperf-system: every recorded machine is described truthfully and is the known system that it should be."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import known_systems, probe, selection, system

recipe = load_recipe("detect-mlperf-system")
submission = load_module("detect-mlperf-system", "submission")


def run(name: str, **env: str) -> dict[str, Any]:
    """The hook's dict after it ran for a recorded machine."""
    i: dict[str, Any] = {"env": {"CM_MLPERF_SYSTEM_MACHINE": name, **env}, "state": {}}
    assert recipe.preprocess(i) == {"return": 0}
    return i


EXPECTED = {
    "a100-mig-7x1g5gb": ("exact", "A100-SXM4x1-MIG_1x1g.5gb", "MIG is on with 7 slices"),
    "a100-mig-empty": ("unknown", "", "MIG is on with 0 slices"),
    "a100-pciex2": ("exact", "A100-PCIex2", "the driver shows 2 x NVIDIA A100-PCIE-40GB"),
    "a100-sxm4x1": ("exact", "A100-SXM4x1", "the driver shows 1 x NVIDIA A100-SXM4-40GB"),
    "a100-sxm4x4": ("same-gpu", "A100-SXM4x8", "not with 4"),
    "a100-sxm4x8": ("exact", "A100-SXM4x8", "the driver shows 8 x NVIDIA A100-SXM4-40GB"),
    "arch-rtx3060": ("unknown", "", "no listed system has this GPU"),
    "azure-a100-sxm4-40gbx8": ("exact", "A100_SXM4_40GBx8", "the driver shows 8 x NVIDIA A100-SXM4-40GB"),
    "container-without-gpu": ("exact", "ND_H100_v5", "the bus has 8 x H100-SXM-80GB, but the driver shows none"),
    "docker-no-permission": ("exact", "T4x1", "the driver shows 1 x Tesla T4"),
    "driver-not-loaded": ("exact", "T4x1", "but the driver shows none"),
    "gpu-without-driver": ("exact", "T4x1", "but the driver shows none"),
    "h200x1": ("exact", "H200-SXM-141GBx1", "the driver shows 1 x NVIDIA H200"),
    "inf1-2xlarge": ("exact", "inf1.2xlarge", "EC2 instance type inf1.2xlarge, 1 Neuron device"),
    "inf1-6xlarge": ("exact", "inf1.6xlarge", "EC2 instance type inf1.6xlarge, 4 Neuron devices"),
    "jetson-agx-xavier": ("exact", "AGX_Xavier", "the device tree has Jetson-AGX"),
    "jetson-xavier-nx": ("exact", "Xavier_NX", "the device tree has NVIDIA Jetson Xavier NX"),
    "laptop": ("unknown", "", "no accelerator that is listed is here"),
    "nd-h100-v5": ("exact", "ND_H100_v5", "the driver shows 8 x NVIDIA H100 80GB HBM3"),
    "no-sudo-no-gpu": ("unknown", "", "no accelerator that is listed is here"),
    "rhel9-a30": ("unknown", "", "no listed system has this GPU"),
    "sles15": ("unknown", "", "no accelerator that is listed is here"),
    "t4x1": ("exact", "T4x1", "the driver shows 1 x Tesla T4"),
    "t4x20": ("exact", "T4x20", "the driver shows 20 x Tesla T4"),
    "t4x8": ("exact", "T4x8", "the driver shows 8 x Tesla T4"),
    "two-cuda-wrong-first": ("unknown", "", "no listed system has this GPU"),
    "wsl2": ("unknown", "", "no listed system has this GPU"),
}


def test_the_table_has_every_recorded_machine() -> None:
    assert tuple(sorted(EXPECTED)) == selection.shipped()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_machine_is_the_system_that_it_should_be(name: str) -> None:
    quality, nearest, reason = EXPECTED[name]
    i = run(name)
    match = i["state"]["mlperf_system"]["match"]
    assert (match["quality"], match["nearest"]) == (quality, nearest)
    assert reason in "; ".join(match["reasons"])
    assert match["system_id"] == i["env"]["CM_MLPERF_SYSTEM_ID"] == (nearest if quality == "exact" else "")
    assert i["env"]["CM_MLPERF_SYSTEM_IS_SIMULATED"] == "yes"


DESCRIBED = {
    # name: GPUs on the bus, GPUs the driver shows, driver, CUDA, cuDNN, container, package of the Python
    "a100-sxm4x8": (8, 8, "535.161.08", "12.2.2", "8.9.7", ""),
    "container-without-gpu": (8, 0, "535.161.08", "12.2.0", "", "docker"),
    "driver-not-loaded": (1, 0, "", "11.0.3", "8.0.2", ""),
    "gpu-without-driver": (1, 0, "", "", "", ""),
    "inf1-6xlarge": (0, 0, "", "", "", ""),
    "jetson-agx-xavier": (0, 0, "", "10.2.89", "8.0.2", ""),
    "nd-h100-v5": (8, 8, "535.161.08", "12.2.0", "8.9.2", ""),
    "two-cuda-wrong-first": (1, 1, "535.161.08", "13.0.0,12.2.2", "8.9.7", ""),
    "wsl2": (0, 1, "560.94", "", "", ""),
    "no-sudo-no-gpu": (0, 0, "", "", "", ""),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_present_and_visible_gpus_driver_and_libraries(name: str) -> None:
    env = run(name)["env"]
    names = ("GPUS_PRESENT", "GPUS_VISIBLE", "DRIVER_VERSION", "CUDA_VERSIONS", "CUDNN_VERSIONS", "CONTAINER")
    assert tuple(env[f"CM_MLPERF_SYSTEM_{key}"] for key in names) == tuple(map(str, DESCRIBED[name]))


def test_numa_slices_and_the_fabric_manager() -> None:
    dgx = run("a100-sxm4x8")["state"]["mlperf_system"]
    assert [gpu["numa_node"] for gpu in dgx["gpus"]] == [3, 3, 1, 1, 7, 7, 5, 5]
    assert (dgx["nvswitches"], dgx["driver"]["fabric_manager"]) == (6, "535.161.08")
    assert [node["number"] for node in dgx["cpu"]["numa_nodes"]] == list(range(8))
    mig = run("a100-mig-7x1g5gb")["state"]["mlperf_system"]
    assert [part["profile"] for part in mig["mig_slices"]] == ["1g.5gb"] * 7


def test_the_versions_of_the_chosen_pythons_packages() -> None:
    packages = run("two-cuda-wrong-first")["state"]["mlperf_system"]["python_packages"]
    assert packages == {"onnxruntime-gpu": "1.17.1", "torch": "2.3.1+cu121"}


def test_fields_of_a_submission_are_known_or_empty() -> None:
    fields = run("a100-sxm4x8")["state"]["mlperf_system"]["submission"]
    assert len(fields) == 35
    assert all(isinstance(value, str) for value in fields.values())
    known = {
        "number_of_nodes": "1",
        "host_processor_model_name": "AMD EPYC 7742 64-Core Processor",
        "host_processors_per_node": "2",
        "host_processor_core_count": "64",
        "accelerators_per_node": "8",
        "accelerator_model_name": "NVIDIA A100-SXM4-40GB",
        "accelerator_memory_capacity": "40960 MiB",
        "operating_system": "Ubuntu 22.04.4 LTS (kernel 5.15.0-1042-nvidia)",
        "other_software_stack": "TensorRT 8.6.1.6, CUDA 12.2.2, cuDNN 8.9.7, Driver 535.161.08",
    }
    assert {key: fields[key] for key in known} == known
    for key in ("submitter", "division", "status", "cooling", "host_networking", "accelerator_interconnect"):
        assert fields[key] == "", "only the submitter knows it"
    assert fields["sw_notes"].startswith("SIMULATED")


@pytest.mark.parametrize(
    ("name", "count", "sockets", "cores"),
    [
        ("jetson-agx-xavier", "1", "1", "8"),
        ("jetson-xavier-nx", "1", "1", "6"),
        ("laptop", "0", "1", "10"),
        ("inf1-6xlarge", "4", "1", "12"),
    ],
)
def test_submission_fields_of_machines_without_an_nvidia_card(name: str, count: str, sockets: str, cores: str) -> None:
    state = run(name)["state"]["mlperf_system"]
    fields = state["submission"]
    keys = ("accelerators_per_node", "host_processors_per_node", "host_processor_core_count")
    assert tuple(fields[key] for key in keys) == (count, sockets, cores)
    assert set(state["submission_missing"]) == {
        key for key, value in fields.items() if not value and key not in submission.MAY_BE_EMPTY
    }


def test_a_recorded_machine_is_announced_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    run("t4x8")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("SIMULATED: the following describes the recorded machine")
    assert "Written by hand" in lines[2]
    assert any(line.startswith("system") and "T4x8" in line for line in lines)
    size = probe.recorded(selection.SHIPPED / "t4x8").read_text("/proc/meminfo").split()[1]
    assert any(re.search(rf"memory .*{int(size) / 2**20:.1f} GiB", line) for line in lines)


def test_this_machine_is_described_and_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    i: dict[str, Any] = {"env": {}, "state": {}}
    assert recipe.preprocess(i) == {"return": 0}
    out = capsys.readouterr().out
    assert "SIMULATED" not in out
    assert i["env"]["CM_MLPERF_SYSTEM_IS_SIMULATED"] == "no"
    assert i["state"]["mlperf_system"]["cpu"]["threads"] > 0
    assert i["state"]["mlperf_system"]["match"]["reasons"]


def test_every_key_leaves_the_recipe() -> None:
    env = run("t4x1")["env"]
    assert exported("detect-mlperf-system", env) == env


def test_system_json_is_written_only_when_a_folder_is_asked_for(inside: Path) -> None:
    run("t4x1")
    assert list(inside.iterdir()) == []
    i = run("t4x1", CM_OUTDIRNAME=str(inside))
    written = json.loads((inside / "system.json").read_text(encoding="utf-8"))
    assert written == i["state"]["mlperf_system"]
    assert i["env"]["CM_MLPERF_SYSTEM_JSON"] == str(inside / "system.json")


def test_a_plan_says_nothing_and_writes_nothing(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    i: dict[str, Any] = {"env": {"CM_MLPERF_SYSTEM_MACHINE": "t4x1", "CM_OUTDIRNAME": str(inside)}, "state": {}}
    assert recipe.plan(i) == {"return": 0}
    assert i["env"]["CM_MLPERF_SYSTEM_ID"] == "T4x1"
    assert capsys.readouterr().out == ""
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"CM_MLPERF_SYSTEM_MACHINE": "nope"}, "not a recorded machine"),
        ({"CM_MLPERF_SYSTEM_PYTHON": "/no/python"}, "--python=/no/python: there is no such Python"),
    ],
)
def test_a_wrong_input_is_refused_with_a_hint(env: dict[str, str], text: str) -> None:
    answer = recipe.preprocess({"env": dict(env), "state": {}})
    assert answer["return"] == 1
    assert text in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(
    ("name", "memory_mib", "key"),
    [
        ("NVIDIA A100-SXM4-40GB", 40960, "A100-SXM4-40GB"),
        ("A100-SXM4-40GB", 40536, "A100-SXM4-40GB"),
        ("NVIDIA A100-PCIE-40GB", 40960, "A100-PCIe-40GB"),
        ("NVIDIA A100 80GB PCIe", 81920, "A100-PCIe-80GB"),
        ("NVIDIA H100 80GB HBM3", 81559, "H100-SXM-80GB"),
        ("NVIDIA H100 PCIe", 81559, "H100-PCIe-80GB"),
        ("NVIDIA H100 SXM5 80GB", 0, "H100-SXM-80GB"),
        ("NVIDIA H100 NVL", 95830, "H100-NVL-94GB"),
        ("NVIDIA H200", 143771, "H200-SXM-141GB"),
        ("NVIDIA H200 NVL", 143771, "H200-NVL-141GB"),
        ("Tesla T4", 15360, "T4-16GB"),
        ("NVIDIA T4 16GB", 0, "T4-16GB"),
        ("NVIDIA GeForce RTX 4090", 24564, "GeForce-24GB"),
        ("", 0, ""),
    ],
)
def test_names_of_drivers_and_of_the_bus_give_one_key(name: str, memory_mib: int, key: str) -> None:
    assert known_systems.gpu_key(name, memory_mib) == key


def test_the_registry_has_the_systems_of_the_documents_with_their_sources() -> None:
    rows = known_systems.read()
    wanted = {
        "A100-SXM4x8",
        "A100-PCIex2",
        "T4x8",
        "T4x20",
        "A100-SXM4x1",
        "A100-SXM4x1-MIG_1x1g.5gb",
        "T4x1",
        "AGX_Xavier",
        "Xavier_NX",
        "ND_H100_v5",
        "inf1.2xlarge",
        "inf1.6xlarge",
        "A100_SXM4_40GBx8",
        "H100-SXM-80GBx8",
        "H200-SXM-141GBx1",
    }
    assert wanted <= {row.system_id for row in rows}
    assert len({row.system_id for row in rows}) == len(rows)
    assert all(row.source and row.date for row in rows)


def test_a_broken_registry_is_told_with_its_line(tmp_path: Path) -> None:
    header = known_systems.TABLE.read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / "systems.csv"
    path.write_text(f"{header}\nA,nvidia,T4-16GB,many,,,,,,,,,,\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"systems\.csv:2"):
        known_systems.read(path)
    path.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match="columns"):
        known_systems.read(path)


def test_gpus_of_two_kinds_are_no_known_system(tmp_path: Path) -> None:
    described = system.look(probe.recorded(selection.SHIPPED / "t4x8"))
    gpus = (described.driver.gpus[0]._replace(name="NVIDIA A30", memory_mib=24576), *described.driver.gpus[1:])
    mixed = described.__class__(**{**vars(described), "driver": described.driver._replace(gpus=gpus)})
    match = known_systems.match(mixed, known_systems.read())
    assert match.quality == "unknown"
    assert "different GPUs" in match.reasons[0]


@pytest.mark.parametrize(
    ("cloud", "cpu", "system_id"),
    [
        ("", "AMD EPYC 7742", "A100-SXM4x8"), ("azure", "AMD EPYC 7V12", "A100_SXM4_40GBx8"),
        ("aws", "AMD EPYC 7742", "A100-SXM4x8"), ("aws", "AMD EPYC 7V12", "A100_SXM4_40GBx8"),
    ],
)  # fmt: skip
def test_of_systems_with_the_same_gpus_the_nearest_is_meant(cloud: str, cpu: str, system_id: str) -> None:
    found = system.look(probe.recorded(selection.SHIPPED / "t4x8"))
    gpus = tuple(one._replace(name="NVIDIA A100-SXM4-40GB", memory_mib=40960) for one in found.driver.gpus)
    parts = {"driver": found.driver._replace(gpus=gpus), "host": found.host._replace(cloud=cloud)}
    other = found.__class__(**{**vars(found), **parts, "cpu": found.cpu._replace(model_name=cpu)})
    assert known_systems.match(other, known_systems.read()).system_id == system_id


def test_another_processor_is_told_and_is_still_a_match() -> None:
    described = system.look(probe.recorded(selection.SHIPPED / "t4x8"))
    other = described.__class__(**{**vars(described), "cpu": described.cpu._replace(model_name="AMD EPYC 9654")})
    match = known_systems.match(other, known_systems.read())
    assert (match.quality, match.system_id) == ("exact", "T4x8")
    assert "its CPU is AMD EPYC 9654, not Platinum 8280" in "; ".join(match.reasons)
