"""get-nvidia-driver: versions in full, the fabric manager's rule, why no driver answers, and plans by distribution."""

from pathlib import Path
from typing import Any

import pytest
from machine_builder import QUERY, build, every_shipped, shipped, smi, t4
from recipe_loader import exported, load_module, load_recipe

rules = load_module("get-nvidia-driver", "rules")
install = load_module("get-nvidia-driver", "install")
probe = load_module("get-nvidia-driver", "probe")
recipe = load_recipe("get-nvidia-driver")

NVSWITCH = "0000\t10de1af1\t0\n"
DRIVER = {"/usr/bin/nvidia-smi": "", "/proc/bus/pci/devices": NVSWITCH}


def fabric(version: str) -> dict[str, Any]:
    return {"nv-fabricmanager --version": {"stdout": f"Fabric Manager version is : {version}\n"}}


def run(hook_input: Any, machine: Any, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(env, machine=machine)
    return recipe.preprocess(call), call


def test_the_driver_of_a_machine_without_nvswitch_needs_no_fabric_manager(
    tmp_path: Path, hook_input: Any, capsys: Any
) -> None:
    answer, call = run(hook_input, t4(tmp_path), CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH="yes")
    assert answer == {"return": 0, "version": "535.161.08"}
    assert exported("get-nvidia-driver", call["env"]) == {
        "CM_NVIDIA_DRIVER_VERSION": "535.161.08",
        "CM_NVIDIA_DRIVER_MAJOR_VERSION": "535",
        "CM_NVIDIA_DRIVER_MODULE_VERSION": "535.161.08",
        "CM_CUDA_VERSION_MAX_OF_DRIVER": "12.2",
        "CM_NVIDIA_FABRIC_MANAGER_VERSION": "",
        "CM_NVIDIA_FABRIC_MANAGER_NEEDED": "no",
        "CM_NVIDIA_NVSWITCH_COUNT": "0",
    }
    assert "no NVSwitch" in capsys.readouterr().out


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize("manager", ["535.54.03", "535.161.8", "535.161.08.1", ""])
def test_driver_and_fabric_manager_are_compared_in_full(
    tmp_path: Path, hook_input: Any, capsys: Any, manager: str, is_strict: bool
) -> None:
    commands = {**smi("535.161.08", "NVIDIA A100-SXM4-40GB"), **(fabric(manager) if manager else {})}
    machine = build(tmp_path, DRIVER, commands=commands)
    answer, _ = run(hook_input, machine, CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH="yes" if is_strict else "")
    text = str(answer.get("error", "")) + capsys.readouterr().out
    assert answer["return"] == (1 if is_strict else 0)
    assert "535.161.08" in text
    assert manager in text
    assert "nvidia-fabricmanager-535=535.161.08-*" in text


def test_exactly_the_same_version_is_fine_until_its_service_fails(tmp_path: Path, hook_input: Any) -> None:
    commands = {**smi("535.161.08", "NVIDIA A100-SXM4-40GB"), **fabric("535.161.08")}
    wanted = {"CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH": "yes"}
    answer, call = run(hook_input, build(tmp_path, DRIVER, commands=commands), **wanted)
    assert answer["return"] == 0, answer
    assert call["env"]["CM_NVIDIA_FABRIC_MANAGER_NEEDED"] == "yes"
    commands["systemctl is-active nvidia-fabricmanager"] = {"code": 3, "stdout": "failed\n"}
    answer, _ = run(hook_input, build(tmp_path, DRIVER, commands=commands), **wanted)
    assert "its service is failed" in answer["error"]


def test_the_recorded_nd_h100_v5_has_parted_versions(hook_input) -> None:  # type: ignore[no-untyped-def]
    machine = shipped("nd-h100-v5")
    there = probe.look(machine)
    answer, _ = run(hook_input, machine, CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH="yes")
    assert answer["return"] == 1 and there.driver.version != there.fabric_manager
    assert there.driver.version in answer["error"] and there.fabric_manager in answer["error"]


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({"CM_NVIDIA_DRIVER_MIN_VERSION": "510"}, 0),
        ({"CM_NVIDIA_DRIVER_MIN_VERSION": "535.161.08"}, 0),
        ({"CM_NVIDIA_DRIVER_MIN_VERSION": "510.xx"}, 0),
        ({"CM_NVIDIA_DRIVER_MIN_VERSION": "535.161.09"}, 1),
        ({"CM_VERSION_MIN": "550"}, 1),
        ({"CM_NVIDIA_DRIVER_MIN_VERSION": "latest"}, 1),
    ],
)
def test_a_minimum_is_an_error_with_a_plan(tmp_path: Path, hook_input: Any, env: dict[str, str], code: int) -> None:
    answer, _ = run(hook_input, t4(tmp_path), **env)
    assert answer["return"] == code
    assert code == 0 or "hint:" in answer["error"]
    if env.get("CM_NVIDIA_DRIVER_MIN_VERSION") == "535.161.09":
        assert "cm run script --tags=get,nvidia,driver --min=535.161.09" in answer["error"], "the hint asks for less"


def test_the_branch_that_is_asked_for_is_planned_whatever_the_minimum(tmp_path: Path, hook_input: Any) -> None:
    wanted = {"CM_NVIDIA_DRIVER_MIN_VERSION": "550"}
    for more, branch in (({}, "550"), ({"CM_NVIDIA_DRIVER_BRANCH": "570"}, "570")):
        answer, _ = run(hook_input, t4(tmp_path / branch), **wanted, **more)
        assert answer["return"] == 1 and f"install -y nvidia-driver-{branch}" in answer["error"]


@pytest.mark.parametrize(
    ("expected", "is_noted"),
    [("535", False), ("535.161.08", False), ("cuda_12.4.0_550.54.14_linux.run", True), ("535.54.03", True)],
)
def test_a_driver_other_than_the_run_files_is_noted(
    tmp_path: Path, hook_input: Any, capsys: Any, expected: str, is_noted: bool
) -> None:
    answer, _ = run(hook_input, t4(tmp_path), CM_NVIDIA_DRIVER_EXPECTED=expected)
    assert answer["return"] == 0, answer
    assert ("note" in capsys.readouterr().out) is is_noted


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("driver-not-loaded", "modprobe nvidia"),
        ("container-without-gpu", "docker run --gpus all"),
        ("jetson-agx-xavier", "Jetson Linux"),
        ("laptop", "no NVIDIA GPU on the bus"),
        ("no-sudo-no-gpu", "no NVIDIA GPU on the bus"),
    ],
)
def test_without_a_driver_the_nearest_cause_is_told(hook_input: Any, name: str, told: str) -> None:
    answer, call = run(hook_input, shipped(name))
    assert answer["return"] == 16
    assert told in answer["error"]
    assert "hint:" in answer["error"]
    assert call["state"]["nvidia_driver"]["is_working"] is False
    assert exported("get-nvidia-driver", call["env"]) == {}


@pytest.mark.parametrize(
    ("files", "owner"),
    [({"/.dockerenv": ""}, "the host"), ({"/proc/sys/kernel/osrelease": "5.15-microsoft-WSL2\n"}, "Windows")],
)
def test_a_driver_that_belongs_to_somebody_else_is_updated_there(
    tmp_path: Path, hook_input: Any, files: dict[str, str], owner: str
) -> None:
    answer, _ = run(hook_input, t4(tmp_path, files=files), CM_NVIDIA_DRIVER_MIN_VERSION="570")
    assert f"the driver is {owner}'s: update it there" in answer["error"]
    assert "apt-get" not in answer["error"]


def test_a_container_cannot_see_the_hosts_fabric_manager(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    machine = build(tmp_path, {**DRIVER, "/.dockerenv": ""}, commands=smi("535.161.08", "NVIDIA A100-SXM4-40GB"))
    assert run(hook_input, machine)[0]["return"] == 0
    assert "cannot be seen from this container" in capsys.readouterr().out
    answer, _ = run(hook_input, machine, CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH="yes")
    assert "run this recipe on the host" in answer["error"]


def test_gpus_older_than_turing_are_noted(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    commands = smi("535.161.08", "Tesla V100-SXM2-16GB")
    commands[QUERY]["stdout"] = commands[QUERY]["stdout"].replace("8.0", "7.0")
    assert run(hook_input, build(tmp_path, {"/usr/bin/nvidia-smi": ""}, commands=commands))[0]["return"] == 0
    assert "has compute capability 7.0; wanted: 7.5 or newer" in capsys.readouterr().out


def test_module_and_libraries_of_two_drivers_need_a_reboot(tmp_path: Path, hook_input: Any) -> None:
    said = {"code": 18, "stdout": "Failed to initialize NVML: Driver/library version mismatch\n"}
    files = {**DRIVER, "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  535.54.03  x\n"}
    answer, _ = run(hook_input, build(tmp_path, files, commands={"nvidia-smi": said, **dict.fromkeys([QUERY], said)}))
    assert "driver 535.54.03 is loaded" in answer["error"]
    assert "fix: sudo reboot" in answer["error"]


def test_wsl_without_a_driver_is_sent_to_windows(tmp_path: Path, hook_input: Any) -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    answer, _ = run(hook_input, build(tmp_path, files))
    assert "in Windows, none in WSL" in answer["error"]


OS = 'ID={0}\nID_LIKE="{1}"\nVERSION_ID="{2}"\n'
GPU = "0000\t10de20b0\t0\tnvidia\n"


@pytest.mark.parametrize(
    ("system", "tool", "nvswitch", "commands"),
    [
        (OS.format("ubuntu", "debian", "22.04"), "apt-get", True, "nvidia-dkms-550-server nvidia-fabricmanager-550"),
        (OS.format("debian", "", "12"), "apt-get", True, "cuda-drivers-550 cuda-drivers-fabricmanager-550"),
        (OS.format("rhel", "fedora", "9.3"), "dnf", True, "nvidia-driver:550/fm"),
        (OS.format("rocky", "rhel fedora", "8.9"), "dnf", False, "nvidia-driver:550-dkms"),
        (OS.format("sles", "suse", "15.5"), "zypper", True, "cuda-drivers-550 cuda-drivers-fabricmanager-550"),
        (OS.format("arch", "", ""), "pacman", False, "nvidia-open-dkms nvidia-utils"),
        (OS.format("fedora", "", "42"), "dnf", False, ""),
        (OS.format("alpine", "", "3.20"), "apk", False, ""),
    ],
)
def test_a_plan_names_the_packages_of_the_distribution(
    tmp_path: Path, hook_input: Any, capsys: Any, system: str, tool: str, nvswitch: bool, commands: str
) -> None:
    machine = build(
        tmp_path, {"/etc/os-release": system, "/proc/bus/pci/devices": GPU + (NVSWITCH if nvswitch else "")}
    )
    (tmp_path / "root/usr/bin/apt-get").unlink()
    (tmp_path / "root/usr/bin" / tool).write_text("", encoding="utf-8")
    answer, _ = run(hook_input, machine, CM_NVIDIA_DRIVER_SHOW_PLAN="yes")
    out = capsys.readouterr().out
    assert answer == {"return": 0}
    assert commands in out if commands else "no plan is known" in out
    error = run(hook_input, machine)[0]["error"]
    assert commands in error


def test_the_branch_is_no_older_than_what_is_wanted() -> None:
    assert install.branch("510") == 550
    assert install.branch("570.12", "550.54.14") == 570


def test_planning_only_looks(tmp_path: Path, hook_input: Any) -> None:
    assert recipe.plan(hook_input({}, machine=t4(tmp_path)))["return"] == 0


@pytest.mark.parametrize("name", every_shipped())
def test_each_shipped_machine_gets_an_answer_or_a_cause(hook_input: Any, name: str) -> None:
    answer, call = run(hook_input, shipped(name), CM_NVIDIA_FABRIC_MANAGER_MUST_MATCH="yes")
    assert answer["return"] in (0, 1, 16)
    assert (answer["return"] == 16) is not call["state"]["nvidia_driver"]["is_working"]
    assert answer["return"] == 0 or "hint:" in answer["error"]


def test_an_unknown_recorded_machine_is_an_error(hook_input) -> None:  # type: ignore[no-untyped-def]
    answer = recipe.preprocess(hook_input({"CM_RECORDED_MACHINE": "no-such-machine"}))
    assert answer["return"] == 1
    assert "shipped:" in answer["error"]
