"""crowdperf/machine: looking at this machine, at recorded ones, and at what NVIDIA's tools say."""

import os
from pathlib import Path
from typing import Any

import pytest
from machine_builder import bare as machine

from crowdperf.machine import nvidia, probe, versions

SMI_L = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)
  MIG 1g.5gb      Device  0: (UUID: MIG-1)
  MIG 3g.20gb     Device  1: (UUID: MIG-2)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb)
"""
HEADER = "| NVIDIA-SMI 535.161.08   Driver Version: 535.161.08   CUDA Version: 12.2     |\n"
ROWS = (
    "0, GPU-aaaa, NVIDIA A100-SXM4-40GB, 40960, 535.161.08, 8.0, Enabled, 00000000:07:00.0\n"
    "1, GPU-bbbb, NVIDIA A100-SXM4-40GB, 40960, 535.161.08, 8.0, Disabled, 00000000:0F:00.0\n"
)
PROC = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 24 01:24:51 UTC 2024\n"
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"


def with_smi(folder: Path, commands: dict[str, Any], **files: str) -> probe.Machine:
    return machine(folder, {"/usr/bin/nvidia-smi": "", **files}, commands=commands)


def test_a_working_driver_its_gpus_and_slices(tmp_path: Path) -> None:
    commands = {
        " ".join(nvidia.QUERY): {"stdout": ROWS},
        "nvidia-smi": {"stdout": HEADER},
        "nvidia-smi -L": {"stdout": SMI_L},
    }
    driver = nvidia.look(with_smi(tmp_path, commands))
    assert driver.version == "535.161.08"
    assert driver.cuda_version == "12.2"
    assert [(gpu.number, gpu.memory_mib, gpu.compute_capability, gpu.is_mig) for gpu in driver.gpus] == [
        (0, 40960, "8.0", True),
        (1, 40960, "8.0", False),
    ]
    assert [(part.gpu_index, part.profile, part.uuid) for part in driver.slices] == [
        (0, "1g.5gb", "MIG-1"),
        (0, "3g.20gb", "MIG-2"),
    ]


def test_a_driver_that_does_not_answer_is_told_in_its_words(tmp_path: Path) -> None:
    commands = {" ".join(nvidia.QUERY): {"code": 9, "stdout": FAILED}}
    driver = nvidia.look(machine(tmp_path, {"/usr/bin/nvidia-smi": "", nvidia.PROC_VERSION: PROC}, commands=commands))
    assert not driver.is_working
    assert driver.trouble == FAILED.strip()
    assert driver.version == "535.161.08", "the kernel module tells it still"


def test_no_driver_at_all(tmp_path: Path) -> None:
    assert nvidia.look(machine(tmp_path)) == nvidia.Driver()


def test_a_hanging_nvidia_smi_is_told(tmp_path: Path) -> None:
    commands = {" ".join(nvidia.QUERY): {"code": probe.TIMED_OUT, "stderr": "nvidia-smi did not answer within 20 s"}}
    assert "did not answer" in nvidia.look(with_smi(tmp_path, commands)).trouble


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({"stdout": "Fabric Manager version is : 535.161.08\n"}, "535.161.08"),
        ({"code": 1, "stderr": "535.1.1"}, ""),
        (None, ""),
    ],
)
def test_the_fabric_managers_full_version(tmp_path: Path, said: Any, version: str) -> None:
    commands = {"nv-fabricmanager --version": said} if said else {}
    assert nvidia.fabric_manager_version(machine(tmp_path, commands=commands)) == version


def test_links_of_a_recorded_machine_stay_inside_it(tmp_path: Path) -> None:
    here = machine(tmp_path, {"/usr/local/cuda-12.2/version.json": "12.2", "/etc/passwd": "recorded"})
    (tmp_path / "root/usr/local/cuda").symlink_to("/usr/local/cuda-12.2")
    (tmp_path / "root/usr/local/out").symlink_to("../../../../../../../../etc")
    (tmp_path / "root/usr/local/loop").symlink_to("loop")
    assert here.read_text("/usr/local/cuda/version.json") == "12.2"
    assert here.real_path("/usr/local/cuda/version.json") == "/usr/local/cuda-12.2/version.json"
    assert here.read_text("/usr/local/out/passwd") == "recorded"
    assert here.read_text("/usr/local/loop/x") == ""
    assert here.glob("/usr/local/cuda*/version.json") == (
        "/usr/local/cuda-12.2/version.json",
        "/usr/local/cuda/version.json",
    )


def test_what_is_not_recorded_is_not_there(tmp_path: Path) -> None:
    here = machine(
        tmp_path, disks={"/": {"total_bytes": 10, "free_bytes": 4}, "/data": {"total_bytes": 9, "free_bytes": 9}}
    )
    assert here.run(["docker", "info"]).is_missing
    assert here.which("docker") == ""
    assert here.names("/nowhere") == ()
    assert not here.can_write("/")
    assert here.owner_uid("/nowhere") is None
    assert here.disk("/data/x") == probe.Disk(9, 9)
    assert here.disk("/database") == probe.Disk(10, 4)


def test_this_machine_answers_and_never_raises(tmp_path: Path) -> None:
    here = probe.Machine()
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    assert here.read_text(str(tmp_path / "a.txt")) == "x"
    assert here.read_text(str(tmp_path / "b.txt")) == ""
    assert here.glob(f"{tmp_path}/*.txt") == (str(tmp_path / "a.txt"),)
    assert here.run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == probe.Ran(3, "out\n", "err\n")
    assert here.run(["no-such-program-here"]).is_missing
    assert here.run([str(tmp_path / "a.txt")]).code == 126
    assert here.run(["sleep", "5"], timeout_s=0.05).code == probe.TIMED_OUT
    assert here.user.uid == os.getuid()
    disk = here.disk(str(tmp_path))
    assert disk is not None
    assert 0 < disk.free_bytes <= disk.total_bytes


@pytest.mark.parametrize(
    ("version", "minimum", "maximum", "is_right"),
    [
        ("12.4.131", "", "", True),
        ("12.4.131", "12", "12.4", True),
        ("12.4.131", "12.5", "", False),
        ("12.5.0", "", "12.4", False),
        ("9.1.0", "8.9.7", "", True),
        ("535.161.08", "535.161.8", "535.161.8", True),
        ("12", "12.0", "12.0", True),
    ],
)
def test_versions_in_bounds(version: str, minimum: str, maximum: str, is_right: bool) -> None:
    assert versions.is_within(version, minimum, maximum) is is_right


@pytest.mark.parametrize(
    ("version", "wanted", "is_right"), [("12.4.131", "12.4", True), ("12.40", "12.4", False), ("12.4", "12.4.1", False)]
)
def test_an_exact_version_as_far_as_it_is_written(version: str, wanted: str, is_right: bool) -> None:
    assert versions.is_exact(version, wanted) is is_right
