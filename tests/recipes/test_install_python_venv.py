"""install-python-venv: names, real environments, and the ways to pip where ensurepip is missing."""

import os
import shlex
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import PYTHONPATH, exported, load_module, load_recipe, recipe_meta

recipe = load_recipe("install-python-venv")
environment = load_module("install-python-venv", "environment")

# A Python as Debian ships it without python3-venv: it refuses to import ensurepip.
WITHOUT_ENSUREPIP = """
for word in "$@"; do
  if [ "$word" = venv ]; then is_venv=1; fi
  if [ "$word" = --without-pip ]; then is_bare=1; fi
done
if [ -n "$is_venv" ] && [ -z "$is_bare" ]; then
  echo 'The virtual environment was not created successfully because ensurepip is not available.'
  exit 1
fi
exec {python} "$@"
"""


@pytest.mark.parametrize(
    ("name", "folder"), [("", "venv"), ("MLPerf-Inference", "mlperf-inference"), (" a_b.c ", "a_b.c"), ("9", "9")]
)
def test_the_folder_is_the_name_in_lower_case(name: str, folder: str) -> None:
    assert recipe.folder_name(name) == folder


@pytest.mark.parametrize("name", ["../x", "a/b", "-x", "a b", ".hidden", "x" * 101, "a,b"])
def test_a_name_that_could_be_a_path_or_several_tags_is_refused(name: str) -> None:
    with pytest.raises(recipe.BadName, match="hint:"):
        recipe.folder_name(name)


def test_the_newest_environment_of_a_name_sorts_first_and_all_ids_are_alike_long() -> None:
    ids = [recipe.venv_id(ms) for ms in (0, 1_700_000_000_000, 1_700_000_000_001, 4_000_000_000_000)]
    assert ids == sorted(ids, reverse=True)
    assert {len(text) for text in ids} == {11}


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt", "sudo apt-get install -y python3.11-venv"),
        ("dnf", "sudo dnf install -y python3-pip"),
        ("", "python3.11 -m ensurepip --default-pip"),
    ],
)
def test_the_command_that_helps_depends_on_the_distribution(manager: str, command: str) -> None:
    assert environment.help_command(manager, "3.11") == command


def test_an_environment_is_made_in_place_of_a_half_made_one_activated_and_declared(
    hook_input: Any, inside: Path
) -> None:
    (inside / "_cm.json").write_text("{}")
    (inside / "mine" / "bin").mkdir(parents=True)
    (inside / "mine" / "bin" / "python3").write_text("half")
    call = hook_input({"CM_NAME": "Mine", "CM_PYTHON_BIN_WITH_PATH": sys.executable}, {"script_prefix": ["umask 22"]})
    answer = recipe.preprocess(call)
    assert answer == {
        "return": 0,
        "version": ".".join(map(str, sys.version_info[:3])),
        "add_extra_cache_tags": ["name-mine"],
    }
    after = recipe.postprocess(call)
    folder = inside / "mine"
    assert exported("install-python-venv", call["env"]) == {
        "CM_PYTHON_BIN_WITH_PATH": str(folder / "bin" / "python3"),
        "CM_VIRTUAL_ENV_DIR": "mine",
        "CM_VIRTUAL_ENV_ID": call["env"]["CM_VIRTUAL_ENV_ID"],
        "CM_VIRTUAL_ENV_PATH": str(folder),
        "CM_VIRTUAL_ENV_SCRIPTS_PATH": str(folder / "bin"),
    }
    assert call["env"]["CM_GET_DEPENDENT_CACHED_PATH"] == os.path.realpath(sys.executable)
    assert all(Path(path).is_file() for path in after["files"])
    assert call["state"]["script_prefix"] == ["umask 22", f". {shlex.quote(str(folder / 'bin' / 'activate'))}"]
    lines = ["set -euo pipefail", *call["state"]["script_prefix"], 'echo "$VIRTUAL_ENV"; command -v python3']
    script = "\n".join(lines)
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split("\n")
    assert shown[:2] == [str(folder), str(folder / "bin" / "python3")]
    subprocess.run([folder / "bin" / "python3", "-I", "-m", "pip", "--version"], check=True, capture_output=True)


def test_an_environment_in_a_folder_with_characters_of_a_shell_is_activated_as_it_is_named(tmp_path: Path) -> None:
    folder = tmp_path / """it's "5" $(echo hers) `id` $HOME \\ é""" / "env"
    environment.make(Path(sys.executable), folder, "apt")
    activate = shlex.quote(str(folder / "bin" / "activate"))
    for shell in ("bash", "sh"):
        lines = f'set -eu; . {activate}; printf "%s\\n" "$VIRTUAL_ENV"; command -v pip'
        shown = subprocess.run([shell, "-c", lines], capture_output=True, text=True, check=False)
        assert (shown.stdout.splitlines(), shown.stderr) == ([str(folder), str(folder / "bin" / "pip")], "")


def test_a_folder_that_is_not_utf_8_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "lat\udce9" / "env"
    with pytest.raises(environment.VenvError, match=r"lat\\udce9/env': .* valid UTF-8\nhint: move the checkout"):
        environment.make(Path(sys.executable), folder, "apt")
    assert environment.main([sys.executable, str(folder)]) == 2 and not folder.exists()
    assert "\n  hint: move the checkout" in capsys.readouterr().err


def test_without_a_wheel_of_pip_the_pip_of_another_python_installs_one(
    tmp_path: Path, fake_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wheel, *_) = environment._pip_wheels(Path(sys.executable))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setattr(environment, "_pip_wheels", lambda base: [])
    base = fake_tool("python3", WITHOUT_ENSUREPIP.format(python=sys.executable))
    environment.make(base, tmp_path / "env", "apt")
    assert (tmp_path / "env" / "bin" / "pip").is_file()


def test_pip_comes_from_a_wheel_on_the_host_without_network_and_ensurepip_and_a_damaged_one_is_passed_over(
    tmp_path: Path, fake_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/nothing")
    wheels = environment._pip_wheels(Path(sys.executable))
    (tmp_path / "pip-99.whl").write_text("half")
    monkeypatch.setattr(environment, "_pip_wheels", lambda base: [tmp_path / "pip-99.whl", *wheels])
    base = fake_tool("python3", WITHOUT_ENSUREPIP.format(python=sys.executable))
    folder = tmp_path / "the env"  # a blank in the path must not matter
    assert environment.make(base, folder, "apt") == ".".join(map(str, sys.version_info[:3]))
    shown = subprocess.run([folder / "bin" / "pip", "--version"], capture_output=True, text=True, check=True)
    assert str(folder) in shown.stdout


@pytest.mark.parametrize(
    ("renamed", "init", "is_copied"),
    [("", "", True), ("pip-1.0.dist-info", "", False), ("", "raise OSError('damaged')", True)],
    ids=["same", "another", "damaged"],
)
def test_the_pip_of_this_python_is_copied_with_its_compiled_files_if_it_is_the_one_of_the_wheel_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: str, init: str, is_copied: bool
) -> None:
    own = tmp_path / "own" / "site-packages"
    wheel = environment._pip_wheels(Path(sys.executable))[0]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(own)
    (metadata,) = own.glob("pip-*.dist-info")
    metadata.rename(own / (renamed or metadata.name))
    (own / "pip" / "__pycache__").mkdir()
    (own / "pip" / "__pycache__" / "marker.pyc").write_bytes(b"")
    if init:
        (own / "pip" / "__init__.py").write_text(init)
    monkeypatch.setattr(environment.sysconfig, "get_path", lambda name: str(own))
    environment.make(Path(sys.executable), tmp_path / "env", "apt")
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    assert (site / "pip" / "__pycache__" / "marker.pyc").is_file() is is_copied
    assert [path.name for path in site.glob("pip-*.dist-info")] == [metadata.name]
    assert "raise" not in (site / "pip" / "__init__.py").read_text()


def test_without_ensurepip_and_without_any_pip_the_error_has_the_one_command(
    tmp_path: Path, fake_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_pip_wheels", lambda base: [])
    base = fake_tool(
        "python3",
        'case "$*" in *pip*--python*) echo no module named pip >&2; exit 1;; esac'
        + WITHOUT_ENSUREPIP.format(python=sys.executable),
    )
    monkeypatch.setattr(environment.sys, "executable", "/no/such/python")
    with pytest.raises(environment.VenvError) as caught:
        environment.make(base, tmp_path / "env", "apt")
    minor = ".".join(map(str, sys.version_info[:2]))
    assert f"hint: sudo apt-get install -y python{minor}-venv," in str(caught.value)
    assert "ensurepip is not available" in str(caught.value)
    assert "no module named pip" in str(caught.value)


def test_a_folder_that_is_not_ours_is_left_alone(hook_input: Any, inside: Path) -> None:
    (inside / "venv").mkdir()
    (inside / "venv" / "precious.txt").write_text("mine")
    answer = recipe.preprocess(hook_input({"CM_NAME": "venv", "CM_PYTHON_BIN_WITH_PATH": sys.executable}))
    assert answer["return"] == 1
    assert "exists already" in answer["error"]
    assert (inside / "venv" / "precious.txt").read_text() == "mine"


@pytest.mark.full
def test_a_killed_attempt_whose_programs_go_on_is_waited_for(tmp_path: Path, fake_tool: Any) -> None:
    """The programs of a killed process write into the folder until they end; only then the next attempt starts."""
    trace = tmp_path / "trace"
    late = tmp_path / "env" / "late"
    first = f"mkdir -p '{late.parent}'; touch '{late}'; echo end >> '{trace}'; exit 1"
    begin = f"echo begin >> '{trace}'; [ $(wc -l < '{trace}') -gt 1 ] || {{ sleep 1; {first}; }}"
    base = fake_tool("python3", f'{begin}; exec {sys.executable} "$@"')
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from recipe_loader import load_module\n"
        "environment = load_module('install-python-venv', 'environment')\n"
        "environment.make(Path(sys.argv[1]), Path(sys.argv[2]), '')\n"
    )
    command = [sys.executable, "-c", code, str(base), str(tmp_path / "env")]
    env = {**os.environ, "PYTHONPATH": PYTHONPATH}
    killed = subprocess.Popen(command, env=env)
    while killed.poll() is None and not trace.exists():
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert trace.read_text() == "begin\n"
    subprocess.run(command, check=True, env=env)
    assert trace.read_text().splitlines()[:3] == ["begin", "end", "begin"]
    assert not late.exists()
    subprocess.run([tmp_path / "env" / "bin" / "python3", "-I", "-m", "pip", "--version"], check=True)


def test_the_python_is_registered_by_tags_that_need_no_hook() -> None:
    """The dependency is dynamic, so an entry of get-python3 that was removed comes back on the next use."""
    [dependency] = recipe_meta("install-python-venv")["post_deps"]
    assert dependency["dynamic"] is True
    assert dependency["tags"] == "get,python3"
    assert dependency["extra_cache_tags"].split(",")[0] == "virtual"
    assert "python" not in dependency["names"]


@pytest.fixture
def paths(home: Any, fake_tool: Any) -> str:
    """A PATH whose first Python is 3.8."""
    old = fake_tool("python3", 'printf "3.8.18\n%s\n" "$0"', home.folder / "old")
    return os.pathsep.join((str(old.parent), str(Path(sys.executable).parent), os.environ["PATH"]))


def test_a_python_older_than_the_project_is_refused_and_not_taken_for_a_base(home: Any, paths: str) -> None:
    refused = home.run_cm("install,python-venv", "--version=3.8.18", env={"PATH": paths})
    assert refused.code != 0 and ">= 3.10" in refused.answer["error"]
    least = recipe_meta("install-python-venv")["default_env"]["CM_VERSION_MIN"]
    base = home.run_cm("get,python3,-virtual", f"--version_min={least}", env={"PATH": paths})
    assert not base.answer["new_env"]["CM_PYTHON_BIN_WITH_PATH"].startswith(str(home.folder))


@pytest.mark.full
def test_a_python_older_than_the_project_is_passed_over_though_it_is_first_on_path(home: Any, paths: str) -> None:
    done = home.run_cm("install,python-venv", env={"PATH": paths})
    assert done.code == 0, done.stderr
    made = done.answer["new_env"]["CM_PYTHON_BIN_WITH_PATH"]
    assert not made.startswith(paths.partition(os.pathsep)[0])
    assert subprocess.run([made, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], check=False).returncode == 0


@pytest.mark.parametrize(("said", "sees"), [("yes", True), ("no", False)])
def test_an_environment_may_see_the_packages_of_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, sees: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    done: list[list[str]] = []
    monkeypatch.setattr(environment, "_add_pip", lambda *words: True)
    monkeypatch.setattr(environment, "_python_version", lambda python: "3.12.1")
    ok = environment.Outcome(is_ok=True, output="", said="")
    monkeypatch.setattr(environment, "_run", lambda command, *rest, **names: done.append(command) or ok)
    env = {"CM_NAME": "mine", "CM_PYTHON_BIN_WITH_PATH": sys.executable, "CM_VIRTUAL_ENV_SYSTEM_PACKAGES": said}
    assert recipe.preprocess({"env": env})["return"] == 0
    assert ("--system-site-packages" in done[0]) == sees
