"""get-nvidia-container-toolkit: is it new enough, and which way gives GPUs to a container."""

from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, t4
from recipe_loader import exported, load_module, load_recipe

toolkit = load_module("get-nvidia-container-toolkit", "toolkit")
recipe = load_recipe("get-nvidia-container-toolkit")

CTK = {"nvidia-ctk --version": {"stdout": "NVIDIA Container Toolkit CLI version 1.14.3\ncommit: 53b24618a\n"}}
OLD = {"nvidia-container-cli --version": {"stdout": "version: 1.3.3\nbuild date: 2021-02-05\n"}}
NEW = {"nvidia-container-cli --version": {"stdout": "cli-version: 1.17.8\nlib-version: 1.17.8\nbuild date: 2025\n"}}
FILES = {"/usr/bin/nvidia-ctk": "", "/usr/bin/nvidia-container-cli": ""}
CDI = {"/etc/cdi/nvidia.yaml": "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n"}


def engine(name: str = "docker", version: str = "24.0.7", is_usable: bool = True) -> dict[str, Any]:
    trouble = "" if is_usable else "Cannot connect"
    return {"name": name, "program": name, "version": version, "is_usable": is_usable, "trouble": trouble}


def run(hook_input: Any, machine: Any, engines: list[dict[str, Any]], **env: str) -> tuple[Any, Any]:
    call = hook_input(env, {"container_engines": engines}, machine=machine)
    return recipe.preprocess(call), call


def test_the_toolkit_and_the_way_of_a_usual_machine(tmp_path: Path, hook_input: Any) -> None:
    answer, call = run(hook_input, t4(tmp_path, files=FILES, commands=CTK), [engine()])
    assert answer == {"return": 0, "version": "1.14.3"}
    assert exported("get-nvidia-container-toolkit", call["env"]) == {
        "CM_CONTAINER_GPU_PROGRAM": "docker",
        "CM_CONTAINER_GPU_RUN_ARGS": "--gpus all",
        "CM_CONTAINER_GPU_WAY": "gpus",
        "CM_LIBNVIDIA_CONTAINER_VERSION": "1.14.3",
        "CM_NVIDIA_CONTAINER_TOOLKIT_BIN_WITH_PATH": "/usr/bin/nvidia-ctk",
        "CM_NVIDIA_CONTAINER_TOOLKIT_VERSION": "1.14.3",
    }


@pytest.mark.parametrize(
    ("files", "engines", "way", "program"),
    [
        ({"/usr/bin/nvidia-docker": ""}, [engine()], "nvidia-docker", "nvidia-docker"),
        ({}, [engine(version="18.09.1")], "runtime", "docker"),
        (CDI, [engine("podman", "4.6.1")], "cdi", "podman"),
        ({}, [engine("apptainer", "1.3.4")], "nv", "apptainer"),
        (CDI, [engine(is_usable=False), engine("podman", "4.6.1")], "cdi", "podman"),
        ({}, [engine(is_usable=False)], "gpus", "docker"),
        ({}, [], "", ""),
    ],
)
def test_the_way_follows_from_the_engine(
    tmp_path: Path, hook_input: Any, files: dict[str, str], engines: list[Any], way: str, program: str
) -> None:
    answer, call = run(hook_input, t4(tmp_path, files={**FILES, **files}, commands=CTK), engines)
    assert answer["return"] == 0, answer
    assert (call["env"]["CM_CONTAINER_GPU_WAY"], call["env"]["CM_CONTAINER_GPU_PROGRAM"]) == (way, program)


@pytest.mark.parametrize(
    ("commands", "env", "code", "told"),
    [
        (OLD, {}, 1, "libnvidia-container 1.3.3; wanted: 1.4.0 or newer"),
        (NEW, {}, 0, ""),
        (NEW, {"CM_LIBNVIDIA_CONTAINER_MIN_VERSION": "1.18"}, 1, "1.17.8; wanted: 1.18 or newer"),
        ({}, {}, 16, "not installed; wanted: 1.4.0 or newer"),
        (NEW, {"CM_LIBNVIDIA_CONTAINER_MIN_VERSION": "new"}, 1, "is not a version"),
    ],
)
def test_the_library_has_to_be_new_enough(
    tmp_path: Path, hook_input: Any, commands: dict[str, Any], env: dict[str, str], code: int, told: str
) -> None:
    answer, _ = run(hook_input, t4(tmp_path, commands=commands), [engine()], **env)
    assert answer["return"] == code
    assert told in str(answer.get("error", ""))


def test_podman_without_a_cdi_specification_is_told_how_to_make_one(tmp_path: Path, hook_input: Any) -> None:
    other = {"/etc/cdi/other.yaml": "kind: vendor.com/net\n"}
    answer, _ = run(hook_input, t4(tmp_path, files={**FILES, **other}, commands=CTK), [engine("podman", "4.6.1")])
    assert answer["return"] == 1
    assert "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml" in answer["error"]


def test_apptainer_alone_needs_no_toolkit(tmp_path: Path, hook_input: Any) -> None:
    answer, call = run(hook_input, t4(tmp_path), [engine("apptainer", "1.3.4")])
    assert answer["return"] == 0, answer
    assert call["env"]["CM_CONTAINER_GPU_RUN_ARGS"] == "--nv"


@pytest.mark.parametrize(
    ("way", "files", "engines", "told"),
    [
        ("cdi", CDI, [engine(version="25.0.1")], ""),
        ("cdi", CDI, [engine()], "needs Docker 25.0, found 24.0.7"),
        ("cdi", {}, [engine(version="25.0.1")], "needs a CDI specification"),
        ("gpus", {}, [engine(version="18.09.1")], "needs Docker 19.03"),
        ("gpus", {}, [engine("podman", "4")], "needs docker, found: podman"),
        ("nvidia-docker", {}, [engine()], "needs /usr/bin/nvidia-docker"),
        ("nv", {}, [], "found: none"),
    ],
)
def test_an_asked_way_is_taken_or_refused_with_the_reason(
    tmp_path: Path, hook_input: Any, way: str, files: dict[str, str], engines: list[Any], told: str
) -> None:
    machine = t4(tmp_path, files={**FILES, **files}, commands=CTK)
    answer, call = run(hook_input, machine, engines, CM_CONTAINER_GPU_WAY_ASKED=way)
    if told:
        assert answer["return"] == 1
        assert told in answer["error"]
    else:
        assert call["env"]["CM_CONTAINER_GPU_WAY"] == way


OS = 'ID={0}\nID_LIKE="{1}"\nVERSION_ID="{2}"\n'


@pytest.mark.parametrize(
    ("system", "tool", "engines", "told"),
    [
        (OS.format("ubuntu", "debian", "22.04"), "apt-get", ["docker"], "stable/deb/nvidia-container-toolkit.list"),
        (OS.format("rhel", "fedora", "9"), "dnf", ["podman"], "sudo nvidia-ctk cdi generate"),
        (OS.format("sles", "suse", "15.5"), "zypper", ["docker"], "sudo zypper addrepo"),
        (OS.format("arch", "", ""), "pacman", ["docker"], "sudo nvidia-ctk runtime configure --runtime=docker"),
        (OS.format("alpine", "", "3"), "apk", ["docker"], "no plan is known"),
    ],
)
def test_the_installation_is_shown_by_distribution(
    tmp_path: Path, hook_input: Any, capsys: Any, system: str, tool: str, engines: list[Any], told: str
) -> None:
    machine = build(tmp_path, {"/etc/os-release": system})
    (tmp_path / "root/usr/bin/apt-get").unlink()
    (tmp_path / "root/usr/bin" / tool).write_text("", encoding="utf-8")
    known = [engine(name) for name in engines]
    assert run(hook_input, machine, known, CM_CONTAINER_TOOLKIT_SHOW_PLAN="yes")[0] == {"return": 0}
    assert told in capsys.readouterr().out


def test_a_container_does_not_configure_the_hosts_daemon(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    run(hook_input, build(tmp_path, {"/.dockerenv": ""}), [engine()], CM_CONTAINER_TOOLKIT_SHOW_PLAN="yes")
    out = capsys.readouterr().out
    assert "apt-get install -y nvidia-container-toolkit" in out
    assert "runtime configure" not in out


def test_a_plan_that_does_not_know_the_engines_says_nothing_of_them(tmp_path: Path, hook_input: Any) -> None:
    call = hook_input({}, machine=t4(tmp_path, files=FILES, commands=CTK))
    assert recipe.plan(call)["return"] == 0
    assert not [one for one in call["state"]["nvidia_container_toolkit"]["findings"] if one["what"] == "engine"]
