"""get-sys-utils-cm: what is missing on each system, the commands for it, when it fails; nothing is done unasked."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine_builder import MACHINES, bare
from recipe_loader import RECIPES, exported, load_module, load_recipe

from crowdperf.machine import probe

recipe = load_recipe("get-sys-utils-cm")
tools = load_module("get-sys-utils-cm", "tools")
install = load_module("get-sys-utils-cm", "install")
jetson = load_module("get-sys-utils-cm", "jetson")

VALIDATE = RECIPES / "get-sys-utils-cm" / "validate_cache.sh"


def machine(folder: Path, *paths: str, **facts: Any) -> probe.Machine:
    """A recorded machine with these files."""
    return bare(folder, dict.fromkeys(paths, ""), **facts)


class Pretended(probe.Machine):
    """This process as another user on a machine where a command may make files appear; it records what it is asked."""

    def __init__(
        self, inner: probe.Machine, user: probe.User, codes: dict[str, int], makes: tuple[Path, ...] = ()
    ) -> None:
        self.inner, self.who, self.codes, self.makes = inner, user, codes, makes
        self.ran: list[str] = []

    def read_text(self, path: str) -> str:
        return self.inner.read_text(path)

    def is_file(self, path: str) -> bool:
        return self.inner.is_file(path)

    def is_dir(self, path: str) -> bool:
        return self.inner.is_dir(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        return self.inner.glob(pattern)

    def which(self, name: str) -> str:
        return self.inner.which(name)

    @property
    def user(self) -> probe.User:
        return self.who

    def run(self, words: Any, *, timeout_s: float = 0) -> probe.Ran:
        text = " ".join(words)
        self.ran.append(text)
        code = next((code for start, code in self.codes.items() if text.startswith(start)), 0)
        if code == 0 and " install " in text:
            for path in self.makes:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("")
        return probe.Ran(code, "", "E: no such luck\nmore" if code else "")


def run(hook_input: Any, here: probe.Machine, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(dict(env), machine=here)
    return recipe.preprocess(call), call


@pytest.mark.parametrize(
    ("name", "start", "words"),
    [
        (
            "laptop",
            "sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ",
            {"xz-utils", "openssh-client", "g++", "libssl-dev", "ninja-build", "libgl1"},
        ),
        (
            "rhel9-a30",
            "sudo dnf install -y ",
            {"xz", "openssh-clients", "gcc-c++", "openssl-devel", "pkgconf-pkg-config", "mesa-libGL"},
        ),
        (
            "sles15",
            "sudo zypper --non-interactive install ",
            {"gcc-c++", "libopenssl-devel", "xz-devel", "Mesa-libGL1"},
        ),
        ("arch-rtx3060", "sudo pacman -S --noconfirm ", {"openssh", "pkgconf", "libffi", "python-pip", "libglvnd"}),
    ],
)
def test_each_distribution_gets_its_own_names_in_one_command(name: str, start: str, words: set[str]) -> None:
    seen = install.look(probe.recorded(MACHINES / name), tools.TABLE)
    steps = install.commands(seen)
    shown = steps[-1].shown(seen.packages.rights)
    assert shown.startswith(start)
    assert words <= set(shown[len(start) :].split())
    assert len(steps) == (2 if "apt-get" in start else 1)
    assert "python3" not in shown.split(), "it is there"


def test_without_sudo_an_administrator_is_named(hook_input: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer, _ = run(hook_input, probe.recorded(MACHINES / "no-sudo-no-gpu"))
    assert answer == {"return": 0}
    told = capsys.readouterr().out
    assert "an administrator has to run" in told
    assert "\n  # apt-get update\n" in told
    assert "sudo apt-get" not in told


def test_a_system_without_a_known_package_tool_has_a_package_for_none_of_the_missing(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    here = machine(tmp_path, "/usr/bin/make")
    run(hook_input, here, CM_SYS_UTILS_TOOLS="git,g++,cmake,make")
    told = capsys.readouterr().out
    assert "no package is known on this system (no known package tool) for: git, g++, cmake\n" in told
    assert "without root, from PyPI (cmake)" in told


def test_every_package_tool_has_a_name_or_is_left_out_on_purpose() -> None:
    left_out = {
        (one.name, tool)
        for one in tools.TABLE
        for tool in ("apt", "dnf", "yum", "zypper", "pacman", "apk")
        if not one.package(tool)
    }
    assert left_out == {(name, tool) for name in ("ninja", "patchelf") for tool in ("dnf", "yum", "zypper")}
    assert all(one.programs or one.headers or one.libraries for one in tools.TABLE)


def test_programs_headers_and_libraries_are_found_however_they_came(tmp_path: Path) -> None:
    here = machine(
        tmp_path,
        "/opt/own/bin/cmake",
        "/usr/bin/gmake",
        "/usr/include/x86_64-linux-gnu/ffi.h",
        "/usr/include/python3.11/Python.h",
        "/usr/lib/x86_64-linux-gnu/libGL.so.1",
        environment={"PATH": "/opt/own/bin:/usr/bin"},
    )
    found = {
        name: tools.place(here, tools.KNOWN[name])
        for name in ("cmake", "make", "libffi", "python-headers", "libgl", "git")
    }
    assert found == {
        "cmake": "/opt/own/bin/cmake",
        "make": "/usr/bin/gmake",
        "libffi": "/usr/include/x86_64-linux-gnu/ffi.h",
        "python-headers": "/usr/include/python3.11/Python.h",
        "libgl": "/usr/lib/x86_64-linux-gnu/libGL.so.1",
        "git": "",
    }


def test_the_tutorials_banner_comes_first_and_missing_tools_are_no_error(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    here = machine(tmp_path, "/usr/bin/git", "/usr/bin/apt-get", user={"uid": 0, "name": "root"})
    answer, call = run(hook_input, here, CM_QUIET="yes", CM_SYS_UTILS_TOOLS="git,rsync")
    assert answer == {"return": 0}
    told = capsys.readouterr().out
    assert "This script will attempt to install minimal system dependencies for CM" in told.splitlines()[1]
    assert told.splitlines()[0] == "*" * 71
    assert "missing: rsync" in told
    assert "/usr/bin/git" not in told, "quiet"
    assert exported("get-sys-utils-cm", call["env"])["CM_SYS_UTILS_MISSING"] == "rsync"
    assert call["state"]["sys_utils"]["commands"][-1]["command"].endswith("--no-install-recommends rsync")


def test_everything_present_ends_with_0_and_no_command(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, call = run(
        hook_input, machine(tmp_path, "/usr/bin/git"), CM_SYS_UTILS_TOOLS="git", CM_SYS_UTILS_APPLY="yes"
    )
    assert answer == {"return": 0}
    assert "all 1 tools are installed" in capsys.readouterr().out
    assert call["env"]["CM_SYS_UTILS_MISSING"] == ""


def test_a_required_tool_that_is_missing_is_an_error_with_its_own_command(tmp_path: Path, hook_input: Any) -> None:
    here = machine(tmp_path, "/usr/bin/git", "/usr/bin/apt-get", user={"uid": 0})
    answer, _ = run(hook_input, here, CM_SYS_UTILS_TOOLS="git", CM_SYS_UTILS_REQUIRED="make,git")
    assert answer["return"] == 16
    assert "required and missing: make\n" in answer["error"]
    assert "hint: apt-get update && env DEBIAN_FRONTEND=noninteractive apt-get install" in answer["error"]
    assert answer["error"].endswith(" make")


def test_an_unknown_tool_is_refused_with_the_known_ones(tmp_path: Path, hook_input: Any) -> None:
    for key in ("CM_SYS_UTILS_TOOLS", "CM_SYS_UTILS_REQUIRED"):
        answer, _ = run(hook_input, machine(tmp_path), **{key: "gti"})
        assert answer["return"] == 1
        assert "gti" in answer["error"] and "known: all, git" in answer["error"]


def test_skip_ends_at_once(hook_input: Any) -> None:
    assert recipe.preprocess(hook_input({"CM_SKIP_SYS_UTILS": "yes"})) == {"return": 0, "skip": True}


def test_nothing_is_run_without_apply_nor_by_a_plan(tmp_path: Path, hook_input: Any) -> None:
    here = Pretended(machine(tmp_path, "/usr/bin/apt-get"), probe.User("root", 0, ()), {})
    assert run(hook_input, here)[0] == {"return": 0}
    assert recipe.plan(hook_input(machine=here, input={"apply": True})) == {"return": 0}
    assert here.ran == []


def test_apply_runs_the_shown_commands_as_root_and_tells_what_came(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = machine(tmp_path, "/usr/bin/apt-get")
    here = Pretended(inner, probe.User("root", 0, ()), {}, (tmp_path / "root/usr/bin/rsync",))
    answer, call = run(hook_input, here, CM_SYS_UTILS_APPLY="yes", CM_SYS_UTILS_TOOLS="rsync")
    assert answer == {"return": 0}
    assert here.ran == [
        "apt-get update",
        "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends rsync",
    ]
    assert "--apply: installed rsync" in capsys.readouterr().out
    assert call["env"]["CM_SYS_UTILS_INSTALLED"] == "rsync"
    assert call["env"]["CM_SYS_UTILS_MISSING"] == ""


@pytest.mark.parametrize(
    ("uid", "apply", "is_installed"), [(0, "", True), (0, "no", False), (1000, "", False)], ids=["root", "no", "user"]
)
def test_quiet_installs_for_root_alone_and_prints_for_others(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str], uid: int, apply: str, is_installed: bool
) -> None:
    inner = machine(tmp_path, "/usr/bin/apt-get", "/usr/bin/sudo")
    here = Pretended(inner, probe.User("u", uid, ("sudo",)), {}, (tmp_path / "root/usr/bin/rsync",))
    order = {"CM_QUIET": "yes", "CM_SYS_UTILS_APPLY": apply, "CM_SYS_UTILS_TOOLS": "rsync"}
    assert run(hook_input, here, **order)[0] == {"return": 0}
    told = capsys.readouterr().out
    assert bool(here.ran) is is_installed
    assert ("--quiet: installed rsync" in told) is is_installed
    assert ("apt-get install -y --no-install-recommends rsync" in told) and not any("sudo" in line for line in here.ran)


def test_quiet_that_cannot_install_tells_why_and_is_no_error(tmp_path: Path, hook_input: Any, capsys) -> None:
    here = Pretended(machine(tmp_path, "/usr/bin/apt-get"), probe.User("root", 0, ()), {"apt-get update": 100})
    assert run(hook_input, here, CM_QUIET="yes", CM_SYS_UTILS_TOOLS="git")[0] == {"return": 0}
    assert "! apt-get update ended with code 100" in capsys.readouterr().out


def test_apply_uses_sudo_only_where_it_asks_for_no_password(tmp_path: Path, hook_input: Any) -> None:
    inner = machine(tmp_path, "/usr/bin/dnf", "/usr/bin/sudo")
    who = probe.User("bench", 1000, ("wheel",))
    here = Pretended(inner, who, {}, (tmp_path / "root/usr/bin/git",))
    order = {"CM_SYS_UTILS_APPLY": "yes", "CM_SYS_UTILS_TOOLS": "git"}
    assert run(hook_input, here, **order)[0] == {"return": 0}
    assert here.ran == ["sudo -n true", "sudo -n dnf install -y git"]
    (tmp_path / "root/usr/bin/git").unlink()
    here = Pretended(inner, who, {"sudo -n true": 1})
    answer, _ = run(hook_input, here, **order)
    assert answer["return"] == 1
    assert here.ran == ["sudo -n true"]
    assert "need root rights" in answer["error"]
    assert answer["error"].endswith("\n  sudo dnf install -y git")


def test_a_command_that_fails_ends_apply_with_its_words(tmp_path: Path, hook_input: Any) -> None:
    here = Pretended(machine(tmp_path, "/usr/bin/apt-get"), probe.User("root", 0, ()), {"apt-get update": 100})
    answer, call = run(hook_input, here, CM_SYS_UTILS_APPLY="yes", CM_SYS_UTILS_TOOLS="git")
    assert answer["return"] == 1
    assert "apt-get update ended with code 100: E: no such luck" in answer["error"]
    assert here.ran == ["apt-get update"]
    assert call["env"]["CM_SYS_UTILS_INSTALLED"] == ""


@pytest.mark.parametrize("paths", [(), ("/usr/bin/git",)])
def test_a_system_without_a_known_package_tool_is_told_so(
    tmp_path: Path, hook_input: Any, paths: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    answer, _ = run(hook_input, machine(tmp_path, *paths), CM_SYS_UTILS_TOOLS="rsync", CM_SYS_UTILS_APPLY="yes")
    assert answer["return"] == 1
    assert "packages cannot be installed here (no known package tool)" in answer["error"]
    assert run(hook_input, machine(tmp_path, *paths), CM_SYS_UTILS_TOOLS="rsync")[0] == {"return": 0}


def test_a_recorded_machine_is_never_changed(hook_input: Any) -> None:
    answer, call = run(hook_input, probe.recorded(MACHINES / "sles15"), CM_SYS_UTILS_APPLY="yes")
    assert answer["return"] == 1
    assert "recorded machine" in answer["error"]
    assert call["env"]["CM_SYS_UTILS_SIMULATED"] == "yes"


def test_brew_needs_no_root(tmp_path: Path) -> None:
    seen = install.look(machine(tmp_path, "/usr/bin/brew"), tools.named(("tar", "openssl", "c-headers")))
    assert [step.words for step in install.commands(seen)] == [("brew", "install", "gnu-tar", "openssl@3")]
    assert [one.name for one in seen.without_package] == ["c-headers"]


def test_as_a_user_what_pypi_has_comes_into_a_folder_of_its_own(hook_input: Any, inside: Path, tmp_path: Path) -> None:
    here = machine(tmp_path / "m", "/usr/bin/apt-get")
    answer, call = run(hook_input, here, CM_SYS_UTILS_AS_USER="yes", CM_SYS_UTILS_TOOLS="cmake,git")
    assert answer == {"return": 0}
    assert call["env"]["CM_SYS_UTILS_FROM_PIP"] == "cmake"
    assert call["env"]["CM_SYS_UTILS_NEEDS_VENV"] == "yes"
    for name in ("python3", "cmake"):
        (tmp_path / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / "venv" / "bin" / name).write_text("")
    python = str(tmp_path / "venv" / "bin" / "python3")
    call["env"]["CM_PYTHON_BIN_WITH_PATH"] = python
    call["machine"] = Pretended(here, probe.User("bench", 1000, ()), {})
    assert recipe.postprocess(call) == {"return": 0}
    assert call["machine"].ran == [f"{python} -I -m pip install --no-input --disable-pip-version-check cmake"]
    assert call["env"]["+PATH"] == [str(inside / "bin")]
    assert [path.name for path in (inside / "bin").iterdir()] == ["cmake"], "not the environment's Python"
    assert call["env"]["CM_SYS_UTILS_MISSING"] == "git"
    assert call["state"]["sys_utils"]["there"] == {"cmake": str(inside / "bin" / "cmake")}
    call["env"]["CM_SYS_UTILS_FROM_PIP"] = "cmake"
    call["machine"] = Pretended(here, probe.User("bench", 1000, ()), {python: 1})
    failed = recipe.postprocess(call)
    assert failed["return"] == 1 and "code 1): more" in failed["error"] and "hint:" in failed["error"]


def test_nothing_is_installed_afterwards_where_nothing_was_asked(hook_input: Any) -> None:
    assert recipe.postprocess(hook_input({})) == {"return": 0}


def test_the_jetson_plan_is_shown_and_never_run(hook_input: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for name, board in (
        ("jetson-xavier-nx", "NVIDIA Jetson Xavier NX"),
        ("jetson-agx-xavier", "Jetson-AGX"),
        ("sles15", "no Jetson"),
    ):
        order = {"CM_SYS_UTILS_SHOW_JETSON": "yes", "CM_SYS_UTILS_APPLY": "yes"}
        answer, _ = run(hook_input, probe.recorded(MACHINES / name), **order)
        assert answer == {"return": 0}
        told = capsys.readouterr().out
        assert f"this machine: {board}" in told
        assert "apt-get install -y cuda-toolkit-10.2" in told
        assert "DALI 0.25.0" in told and "hours" in told and "no command was run" in told


@pytest.mark.parametrize(
    ("env", "is_good"),
    [
        ({"CM_SYS_UTILS_MISSING": "", "CM_SYS_UTILS_PLACES": "/bin/sh:/usr/bin"}, True),
        ({"CM_SYS_UTILS_MISSING": "git", "CM_SYS_UTILS_PLACES": "/bin/sh"}, False),
        ({"CM_SYS_UTILS_MISSING": "", "CM_SYS_UTILS_PLACES": "/bin/sh:/no/such/tool"}, False),
        ({"CM_SYS_UTILS_MISSING": "", "CM_SYS_UTILS_PLACES": "/bin/sh", "CM_SYS_UTILS_SIMULATED": "yes"}, False),
        ({}, True),
    ],
)
def test_an_entry_is_reused_only_while_nothing_is_missing_or_gone(env: dict[str, str], is_good: bool) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-euo", "pipefail", str(VALIDATE)], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is is_good
    assert bool(done.stderr) is not is_good


def test_this_machine_is_looked_at_without_a_change(hook_input: Any, inside: Path) -> None:
    answer, call = run(hook_input, probe.Machine())
    assert answer == {"return": 0}
    assert list(inside.iterdir()) == []
    assert all(Path(place).exists() for place in call["state"]["sys_utils"]["there"].values())
