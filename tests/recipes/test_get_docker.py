"""get-docker: which engine there is, whether it could start a container, and what to do when it could not."""

from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, every_shipped, shipped
from recipe_loader import exported, load_recipe

from crowdperf.machine import engines

recipe = load_recipe("get-docker")

INFO = "docker info --format {{.ServerVersion}}"
VERSION = {"docker --version": {"stdout": "Docker version 24.0.7, build afdd53b\n"}}
DOCKER = {"/usr/bin/docker": ""}
STOPPED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
DENIED = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock\n"


def docker(folder: Path, info: dict[str, Any], files: dict[str, str] | None = None, **facts: Any) -> Any:
    commands = {**VERSION, INFO: info, **facts.pop("commands", {})}
    return build(folder, {**DOCKER, **(files or {})}, commands=commands, **facts)


def run(hook_input: Any, machine: Any, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(env, machine=machine)
    return recipe.preprocess(call), call


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("docker", "to install Docker (no command was run):"),
        ("podman", "to install Podman (no command was run):\n  sudo apt-get install -y podman\n"),
        ("apptainer", "no plan is known. See https://apptainer.org/docs/admin/latest/installation.html"),
    ],
)
def test_an_engine_that_is_missing_is_offered_and_no_other(
    tmp_path: Path, hook_input: Any, asked: str, words: str
) -> None:
    answer, _ = run(hook_input, build(tmp_path), CM_CONTAINER_ENGINES=asked)
    assert answer["return"] == 16
    assert f"{asked} is not on PATH." in answer["error"] and words in answer["error"]


def test_a_daemon_that_answers(tmp_path: Path, hook_input: Any) -> None:
    runtimes = {"docker info --format {{json .Runtimes}}": {"stdout": '{"nvidia": {}, "runc": {}}\n'}}
    machine = docker(tmp_path, {"stdout": "24.0.5\n"}, commands=runtimes)
    answer, call = run(hook_input, machine)
    assert answer == {"return": 0, "version": "24.0.7"}
    assert exported("get-docker", call["env"]) == {
        "CM_CONTAINER_TOOL": "docker",
        "CM_DOCKER_BIN_WITH_PATH": "/usr/bin/docker",
        "CM_DOCKER_INSTALLED_PATH": "/usr/bin",
        "CM_DOCKER_IS_REACHABLE": "yes",
        "CM_DOCKER_SERVER_VERSION": "24.0.5",
        "CM_DOCKER_TROUBLE": "",
        "CM_DOCKER_VERSION": "24.0.7",
    }
    assert call["state"]["container_engines"][0]["runtimes"] == ["nvidia", "runc"]


@pytest.mark.parametrize(
    ("info", "files", "cause", "fix"),
    [
        ({"code": 1, "stderr": DENIED}, {}, "permission", "sudo usermod -aG docker bench"),
        ({"code": 1, "stderr": STOPPED}, {"/run/systemd/system/x": ""}, "stopped", "sudo systemctl start docker"),
        ({"code": 0, "stdout": "\n", "stderr": STOPPED}, {}, "stopped", "sudo service docker start"),
        ({"code": 1, "stderr": STOPPED}, {"/.dockerenv": ""}, "stopped", "-v /var/run/docker.sock:"),
        ({"code": 1, "stderr": "error during connect: Get http://h: no such host"}, {}, "remote", "docker context ls"),
        ({"code": 124, "stderr": "docker did not answer within 20 s"}, {}, "timeout", "service docker start"),
        ({"code": 1}, {}, "other", "service docker start"),
    ],
)
def test_a_daemon_out_of_reach_is_told_in_its_words_with_a_fix(
    tmp_path: Path, hook_input: Any, info: dict[str, Any], files: dict[str, str], cause: str, fix: str
) -> None:
    machine = docker(tmp_path, info, files)
    answer, call = run(hook_input, machine)
    assert answer["return"] == 1
    assert str(info.get("stderr", "code 1")).strip() in answer["error"]
    assert fix in answer["error"]
    assert call["state"]["container_engines"][0]["cause"] == cause
    answer, call = run(hook_input, machine, CM_DOCKER_ACTION="look")
    assert answer["return"] == 0, answer
    assert call["env"]["CM_DOCKER_IS_REACHABLE"] == "no"


def test_windows_subsystem_is_sent_to_docker_desktop(tmp_path: Path, hook_input: Any) -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15-microsoft-standard-WSL2\n"}
    assert "Docker Desktop" in run(hook_input, docker(tmp_path, {"code": 1, "stderr": STOPPED}, files))[0]["error"]


def test_podman_steps_in_for_a_docker_without_a_daemon_unless_docker_is_asked_for(
    tmp_path: Path, hook_input: Any
) -> None:
    commands = {
        "podman --version": {"stdout": "podman version 4.6.1\n"},
        "podman info --format {{.Version.Version}}": {"stdout": "4.6.1\n"},
    }
    machine = docker(tmp_path, {"code": 1, "stderr": STOPPED}, {"/usr/bin/podman": ""}, commands=commands)
    answer, call = run(hook_input, machine)
    assert (answer["return"], call["env"]["CM_CONTAINER_TOOL"], call["env"]["CM_DOCKER_VERSION"]) == (
        0,
        "podman",
        "4.6.1",
    )
    assert run(hook_input, machine, CM_CONTAINER_ENGINES="docker")[0]["return"] == 1


def test_a_docker_that_is_podman_in_disguise_is_found_as_podman(tmp_path: Path) -> None:
    commands = {
        "docker --version": {"stdout": "podman version 4.9.3\n"},
        "docker info --format {{.Version.Version}}": {"code": 125, "stderr": "newuidmap: not found\n"},
    }
    (found,) = engines.look(build(tmp_path, DOCKER, commands=commands))
    assert (found.name, found.program, found.version, found.trouble) == (
        "podman",
        "docker",
        "4.9.3",
        "newuidmap: not found",
    )


@pytest.mark.parametrize(
    ("program", "said", "version"),
    [
        ("apptainer", "apptainer version 1.3.4-1.el9\n", "1.3.4"),
        ("singularity", "singularity-ce version 3.11.4\n", "3.11.4"),
    ],
)
def test_apptainer_needs_no_daemon(tmp_path: Path, hook_input: Any, program: str, said: str, version: str) -> None:
    machine = build(tmp_path, {f"/usr/bin/{program}": ""}, commands={f"{program} --version": {"stdout": said}})
    answer, call = run(hook_input, machine)
    assert answer == {"return": 0, "version": version}
    assert call["env"]["CM_CONTAINER_TOOL"] == program


@pytest.mark.parametrize(("limit", "code"), [({"CM_VERSION_MIN": "20.10"}, 0), ({"CM_VERSION_MIN": "25"}, 16)])
def test_another_version_is_an_error(tmp_path: Path, hook_input: Any, limit: dict[str, str], code: int) -> None:
    answer, _ = run(hook_input, docker(tmp_path, {"stdout": "24.0.7\n"}), **limit)
    assert answer["return"] == code
    assert code == 0 or "24.0.7, required: version 25 or newer" in answer["error"]


OS = 'ID={0}\nID_LIKE="{1}"\nVERSION_ID="{2}"\n'


@pytest.mark.parametrize(
    ("system", "tool", "told"),
    [
        (OS.format("ubuntu", "debian", "22.04"), "apt-get", "https://download.docker.com/linux/ubuntu/gpg"),
        (OS.format("debian", "", "12"), "apt-get", "https://download.docker.com/linux/debian/gpg"),
        (
            OS.format("rocky", "rhel", "9.3"),
            "dnf",
            "--add-repo https://download.docker.com/linux/centos/docker-ce.repo",
        ),
        (OS.format("rhel", "fedora", "9.3"), "dnf", "--add-repo https://download.docker.com/linux/rhel/docker-ce.repo"),
        (OS.format("fedora", "", "42"), "dnf", "addrepo --from-repofile https://download.docker.com/linux/fedora"),
        (OS.format("centos", "rhel", "7"), "yum", "sudo yum-config-manager --add-repo"),
        (OS.format("sles", "suse", "15.5"), "zypper", "sudo zypper --non-interactive install docker"),
        (OS.format("arch", "", ""), "pacman", "sudo pacman -S --noconfirm docker"),
        (OS.format("alpine", "", "3.20"), "apk", "sudo rc-update add docker"),
        (OS.format("haiku", "", "1"), "pkgman", "docs.docker.com"),
    ],
)
def test_no_engine_at_all_is_told_with_the_commands_of_the_distribution(
    tmp_path: Path, hook_input: Any, capsys: Any, system: str, tool: str, told: str
) -> None:
    machine = build(tmp_path, {"/etc/os-release": system})
    (tmp_path / "root/usr/bin/apt-get").unlink()
    (tmp_path / "root/usr/bin" / tool).write_text("", encoding="utf-8")
    answer, _ = run(hook_input, machine)
    assert answer["return"] == 16
    assert told in answer["error"]
    assert run(hook_input, machine, CM_DOCKER_ACTION="install")[0] == {"return": 0}
    assert told in capsys.readouterr().out


def test_restarting_is_shown_and_refused_on_a_recorded_machine(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    machine = docker(tmp_path, {"stdout": "24.0.7\n"}, {"/run/systemd/system/x": ""})
    assert run(hook_input, machine, CM_DOCKER_ACTION="restart")[0] == {"return": 0}
    assert "sudo systemctl restart docker" in capsys.readouterr().out
    answer, _ = run(hook_input, machine, CM_DOCKER_ACTION="restart", CM_DOCKER_APPLY="yes")
    assert answer["return"] == 1
    assert "recorded machine" in answer["error"]
    call = hook_input({"CM_DOCKER_ACTION": "restart"}, machine=machine, input={"apply": True})
    assert recipe.plan(call) == {"return": 0}, "a plan applies nothing"


@pytest.mark.parametrize("name", every_shipped())
def test_each_shipped_machine_gets_an_answer(hook_input: Any, name: str) -> None:
    assert run(hook_input, shipped(name), CM_DOCKER_ACTION="look")[0]["return"] == 0
    answer, _ = run(hook_input, shipped(name))
    assert answer["return"] == 0 or "hint:" in answer["error"]
