"""get-python3: version rules, what is asked for, search order with made-up interpreters, and real ones."""

import os
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT, TemporaryHome
from recipe_engine.rules.errors import RecipeError
from recipe_loader import exported, load_module, load_recipe, recipe_meta

recipe = load_recipe("get-python3")
versions = load_module("get-python3", "versions")
request_rules = load_module("get-python3", "request")
interpreters = load_module("get-python3", "interpreters")

THIS_VERSION = ".".join(str(number) for number in sys.version_info[:3])


def fake_python(folder: Path, name: str, version: str) -> Path:
    """A shell script that answers the recipe's question as a Python of this version would."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{version}"\necho "{path}"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, no pyenv, none of the usual folders: only what a test puts on PATH is found."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setattr(interpreters, "USUAL_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "a") + os.pathsep + str(tmp_path / "b"))
    return tmp_path


def run(hook_input: Any, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(dict(env))
    return recipe.preprocess(call), call["env"]


@pytest.mark.parametrize(
    ("version", "limits", "fits"),
    [
        ("3.11.7", {}, True),
        ("3.11.7", {"exact": "3.11.7"}, True),
        ("3.11.7", {"exact": "3.11"}, False),
        ("3.11.0", {"exact": "3.11"}, True),
        ("3.9.18", {"minimum": "3.10"}, False),
        ("3.10.0", {"minimum": "3.10"}, True),
        ("3.13.0rc1", {"minimum": "3.13"}, False),
        ("3.13.0rc1", {"minimum": "3.13.0b4"}, True),
        ("3.13.0", {"maximum": "3.12.99"}, False),
        ("3.12.1", {"minimum": "3.10", "maximum": "3.12.1"}, True),
        ("3.13.0", {"maximum_usable": "3.12.99"}, False),
        ("3.13.0", {"maximum": "3.13.9", "maximum_usable": "3.12.99"}, True),
    ],
)
def test_a_version_fits_its_limits_with_both_ends(version: str, limits: dict[str, str], fits: bool) -> None:
    reason = versions.misfit(version, versions.Limits(**limits))
    assert (reason == "") is fits
    assert fits or version in reason


@pytest.mark.parametrize("text", ["latest", "3.x", "", "3.11.7-beta", "3.11.7.1"])
def test_a_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        versions.sort_key(text)


def test_the_first_fitting_one_in_the_order_of_path_is_taken(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.9.1")
    fake_python(only_path / "a", "python3.10", "3.10.4")
    chosen = fake_python(only_path / "a", "python3.12", "3.12.2")
    fake_python(only_path / "b", "python3", "3.12.3")
    answer, env = run(hook_input, CM_VERSION_MIN="3.10")
    assert answer == {
        "return": 0,
        "version": "3.12.2",
        "add_extra_cache_tags": ["version-3.12.2", "non-virtual"],
    }
    assert exported("get-python3", env) == {
        "CM_PYTHON_BIN": "python3.12",
        "CM_PYTHON_BIN_PATH": str(chosen.parent),
        "CM_PYTHON_BIN_WITH_PATH": str(chosen),
        "CM_PYTHON_CACHE_TAGS": "version-3.12.2,non-virtual",
        "CM_PYTHON_VERSION": "3.12.2",
        "CM_PYTHON_MAJOR_VERSION": "3",
        "CM_PYTHON_MINOR_VERSION": "12",
        "CM_PYTHON_PATCH_VERSION": "2",
    }
    assert env["CM_GET_DEPENDENT_CACHED_PATH"] == str(chosen)


def test_when_nothing_fits_every_interpreter_seen_is_listed_with_its_reason(only_path: Path, hook_input: Any) -> None:
    old = fake_python(only_path / "a", "python3", "3.9.1")
    broken = only_path / "b" / "python3.11"
    fake_python(only_path / "b", "python3.11", "")
    broken.write_text("#!/bin/sh\necho library missing >&2\nexit 127\n", encoding="utf-8")
    answer, _ = run(hook_input, CM_VERSION="3.12")
    assert answer["return"] == 16
    assert f"{old}: version 3.9.1 is not 3.12" in answer["error"]
    assert f"{broken}: does not run as Python 3 (exit code 127, library missing)" in answer["error"]
    assert "--version=3.9.1" in answer["error"]


def test_a_short_exact_version_is_answered_with_the_full_one_to_ask_for(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.12.4")
    answer, _ = run(hook_input, CM_VERSION="3.12")
    assert answer["return"] == 16
    assert "--version=3.12.4" in answer["error"]


def test_an_impossible_version_is_refused_before_the_search(only_path: Path, hook_input: Any) -> None:
    answer, _ = run(hook_input, CM_VERSION_MIN="newest")
    assert answer["return"] == 16
    assert "'newest'" in answer["error"]


def test_python_2_and_files_that_do_not_run_are_passed_over(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "2.7.18")
    text_file = only_path / "a" / "python3.11"
    text_file.write_bytes(b"\x7fELF nothing")
    text_file.chmod(0o755)
    chosen = fake_python(only_path / "b", "python", "3.11.1")
    _, env = run(hook_input)
    assert env["CM_PYTHON_BIN_WITH_PATH"] == str(chosen)


def test_links_to_one_interpreter_are_asked_once(only_path: Path) -> None:
    counter = only_path / "count"
    real = only_path / "a" / "python3.12"
    fake_python(only_path / "a", "python3.12", "3.12.0")
    real.write_text(f'#!/bin/sh\necho x >> "{counter}"\necho 3.12.0\necho "{real}"\n', encoding="utf-8")
    for name in ("python3", "python"):
        (only_path / "a" / name).symlink_to("python3.12")
    asked = request_rules.from_env({"CM_VERSION": "3.1"}, {})
    with pytest.raises(request_rules.RequestError):
        recipe.choose(asked, interpreters.in_folders([only_path / "a"]))
    assert counter.read_text() == "x\n"


def test_a_shim_is_replaced_by_the_interpreter_it_starts(only_path: Path, hook_input: Any) -> None:
    real = fake_python(only_path / "versions", "python3.12", "3.12.0")
    shim = only_path / "a" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    _, env = run(hook_input)
    assert env["CM_PYTHON_BIN_WITH_PATH"] == str(real)


def test_pyenv_versions_are_searched_after_path_and_newest_first(only_path: Path, hook_input: Any) -> None:
    root = only_path / "home" / ".pyenv" / "versions"
    fake_python(root / "3.9.18" / "bin", "python3", "3.9.18")
    chosen = fake_python(root / "3.13.0" / "bin", "python3", "3.13.0")
    fake_python(root / "3.2.1-dev" / "bin", "python3", "3.2.1")
    _, env = run(hook_input)
    assert env["CM_PYTHON_BIN_WITH_PATH"] == str(chosen)


def test_of_pyenvs_shims_only_the_current_one_is_asked(only_path: Path) -> None:
    root = only_path / "home" / ".pyenv"
    for name in ("python3", "python3.12", "python3.9", "python"):
        fake_python(root / "shims", name, "3.12.0")
    (root / "versions").mkdir()
    assert [path.name for path in interpreters.in_folders([root / "shims"])] == ["python3", "python"]


def test_path_given_by_the_user_replaces_the_search(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.12.0")
    chosen = fake_python(only_path / "elsewhere", "python3", "3.10.0")
    _, env = run(hook_input, CM_TMP_PATH=str(only_path / "elsewhere"))
    assert env["CM_PYTHON_BIN_WITH_PATH"] == str(chosen)


def test_a_path_that_is_no_folder_is_an_error_unless_told_to_ignore_it(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.12.0")
    answer, _ = run(hook_input, CM_TMP_PATH="/no/such/folder")
    assert answer["return"] == 16
    assert "not a folder: /no/such/folder (from --path)" in answer["error"]
    answer, _ = run(hook_input, CM_TMP_PATH="/no/such/folder", CM_TMP_PATH_IGNORE_NON_EXISTANT="yes")
    assert answer["return"] == 0, answer


def test_a_file_given_by_the_user_is_the_only_one_looked_at(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.12.0")
    given = fake_python(only_path / "x", "my-python", "3.10.0")
    answer, env = run(hook_input, CM_INPUT=str(given))
    assert env["CM_PYTHON_BIN_WITH_PATH"] == str(given)
    answer, _ = run(hook_input, CM_INPUT=str(given), CM_VERSION_MIN="3.11")
    assert (answer["return"], "3.12.0" in answer["error"]) == (16, False)


def test_an_unknown_name_never_becomes_the_systems_python(only_path: Path, hook_input: Any) -> None:
    left_over = fake_python(only_path / "a", "python3", "3.12.0")
    env = {"CM_PYTHON_BIN_WITH_PATH": str(left_over), "CM_PYTHON_CACHE_TAGS": "version-3.12.0,non-virtual"}
    answer, after = run(hook_input, CM_NAME="Mine", **env)
    assert answer["return"] == 16
    assert 'cm run script "install python-venv" --name=mine' in answer["error"]
    assert "CM_PYTHON_VERSION" not in after


def test_a_name_with_an_interpreter_is_registered(only_path: Path, hook_input: Any) -> None:
    given = fake_python(only_path / "x", "python3", "3.10.0")
    answer, env = run(hook_input, CM_NAME="Mine", CM_INPUT=str(given))
    assert answer["add_extra_cache_tags"] == ["version-3.10.0", "name-mine", "non-virtual"]
    assert env["CM_PYTHON_CACHE_TAGS"] == "version-3.10.0,name-mine,non-virtual"


def test_the_python_of_a_new_environment_is_registered_as_virtual(only_path: Path, hook_input: Any) -> None:
    fake_python(only_path / "a", "python3", "3.12.0")
    given = fake_python(only_path / "venv" / "bin", "python3", "3.11.0")
    answer, env = run(
        hook_input,
        CM_PYTHON_BIN_WITH_PATH=str(given),
        CM_PYTHON_CACHE_TAGS="version-3.12.0,non-virtual",
        CM_VIRTUAL_ENV_PATH=str(only_path / "venv"),
        CM_EXTRA_CACHE_TAGS="virtual,name-mine",
        CM_NAME="mine",
    )
    assert env["CM_PYTHON_CACHE_TAGS"] == "version-3.11.0,virtual,name-mine"
    assert answer["add_extra_cache_tags"] == ["version-3.11.0", "virtual", "name-mine"]


@pytest.mark.parametrize(
    "left_over",
    [{"CM_PYTHON_CACHE_TAGS": "version-3.11.0,virtual,name-x"}, {"CM_VIRTUAL_ENV_PATH": "VENV"}],
    ids=["found by another recipe", "inside the current environment"],
)
def test_a_python_left_in_env_by_another_recipe_is_not_taken_for_an_order(
    only_path: Path, hook_input: Any, left_over: dict[str, str]
) -> None:
    chosen = fake_python(only_path / "a", "python3", "3.12.0")
    other = fake_python(only_path / "venv" / "bin", "python3", "3.11.0")
    env = {key: value.replace("VENV", str(only_path / "venv")) for key, value in left_over.items()}
    _, after = run(hook_input, CM_PYTHON_BIN_WITH_PATH=str(other), **env)
    assert after["CM_PYTHON_BIN_WITH_PATH"] == str(chosen)


def test_a_real_interpreter_is_asked_without_the_callers_python_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = interpreters.ask(Path(sys.executable))
    assert answer.version.startswith(THIS_VERSION)
    assert answer.path == Path(sys.executable)


def test_a_virtual_environment_and_its_base_are_two_interpreters(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    inside, base = tmp_path / "env" / "bin" / "python3", Path(os.path.realpath(sys.executable))
    assert os.path.realpath(inside) == str(base)
    assert interpreters.identity(inside) != interpreters.identity(base)
    assert interpreters.ask(inside).path == inside


def test_every_key_that_leaves_the_recipe_is_named_and_none_is_the_dependent_path() -> None:
    keys = recipe_meta("get-python3")["new_env_keys"]
    assert "CM_GET_DEPENDENT_CACHED_PATH" not in keys
    assert not [key for key in keys if "*" in key]


def test_uvs_versions_and_builds_in_opt_are_searched_too(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = only_path / "home" / ".local" / "share" / "uv" / "python"
    old = fake_python(uv / "cpython-3.10.8-linux-x86_64-gnu" / "bin", "python3", "3.10.8")
    new = fake_python(uv / "cpython-3.12.1-linux-x86_64-gnu" / "bin", "python3", "3.12.1")
    fake_python(uv / "pypy-3.10.14-linux-x86_64-gnu" / "bin", "python3", "3.10.14")
    fake_python(uv / "cpython-latest-x" / "bin", "python3", "3.9.9")
    built = fake_python(only_path / "opt" / "python-3.9.2" / "bin", "python3", "3.9.2")
    monkeypatch.setattr(interpreters, "USUAL_FOLDERS", (f"{only_path}/opt/python*/bin",))
    found = list(interpreters.on_this_host({"PATH": ""}, only_path / "home"))
    assert found == [new, old, built]
    elsewhere = fake_python(only_path / "u" / "cpython-3.11.1-linux-x86_64-gnu" / "bin", "python3", "3.11.1")
    env = {"PATH": "", "UV_PYTHON_INSTALL_DIR": str(only_path / "u")}
    assert list(interpreters.on_this_host(env, only_path / "home")) == [elsewhere, built]


def test_a_missing_version_is_answered_with_the_nearest_and_the_ways_to_get_it(
    only_path: Path, hook_input: Any, fake_tool: Any
) -> None:
    fake_python(only_path / "a", "python3", "3.13.0")
    fake_python(only_path / "a", "python3.10", "3.10.13")
    fake_tool("pyenv", "exit 99", only_path / "b")
    answer, _ = run(hook_input, CM_VERSION="3.10.8")
    assert answer["return"] == 16
    assert "hint: take one that is there, by the same command with --version=3.10.13" in answer["error"]
    assert "pyenv install 3.10.8" in answer["error"]
    assert "uv python install 3.10.8" in answer["error"]
    assert "neither builds nor installs" in answer["error"]


@pytest.mark.parametrize(
    ("limits", "available", "lines"),
    [
        ({}, (), ()),
        (
            {"exact": "3.10.8"},
            ("apt-get",),
            ("sudo apt-get install -y python3.10 python3.10-venv", "uv python install 3.10.8"),
        ),
        ({"minimum": "3.12"}, ("zypper", "uv"), ("    uv python install 3.12 ", "sudo zypper install -y python312")),
        ({"maximum": "3.9.99"}, ("dnf",), ("sudo dnf install -y python3.9 ", "uv python install 3.9 ")),
        ({"exact": "3.11"}, ("brew", "pyenv"), ("brew install python@3.11", "pyenv install 3.11 ")),
    ],
)
def test_the_ways_fit_the_programs_that_are_there(
    limits: dict[str, str], available: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    told = "\n".join(recipe.ways(versions.Limits(**limits), available))
    assert all(line in told for line in lines)
    assert bool(told) is bool(lines)
    assert ("pyenv" in told) is ("pyenv" in available)


@pytest.mark.parametrize(
    ("limits", "found", "nearest"),
    [
        ({"exact": "3.10.8"}, ("3.9.1", "3.10.4", "3.10.13", "3.13.0"), "3.10.13"),
        ({"exact": "3.8.1"}, ("3.9.1", "3.10.4"), "3.10.4"),
        ({"minimum": "3.14"}, ("3.9.1", "3.13.0rc1"), "3.13.0rc1"),
    ],
)
def test_the_nearest_version_has_the_minor_version_asked_for(
    limits: dict[str, str], found: tuple[str, ...], nearest: str
) -> None:
    assert versions.nearest(versions.Limits(**limits), found) == nearest


@pytest.fixture
def chosen(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs the recipe, whose search finds a/python3 first, in one home; gives the folder of the Python it chose."""
    for name in "abc":
        fake_python(home.folder / name, "python3", "3.11.1")
    monkeypatch.setenv("PATH", os.pathsep.join((str(home.folder / "a"), os.environ["PATH"])))
    (home.repo / "script" / "get-python3").symlink_to(CHECKOUT / "script" / "get-python3")

    def run_recipe(**inputs: Any) -> str:
        path = home.run("get,python3", **inputs)["new_env"]["CM_PYTHON_BIN_WITH_PATH"]
        return str(Path(path).relative_to(home.folder))

    return run_recipe


def test_the_interpreter_that_the_user_names_is_taken_though_another_is_cached(
    home: TemporaryHome, chosen: Callable[..., str]
) -> None:
    assert chosen() == "a/python3"
    assert chosen(path=str(home.folder / "b")) == "b/python3"
    assert chosen(input=str(home.folder / "c" / "python3")) == "c/python3"
    assert chosen() == "a/python3"
    assert len(home.entries("get-python3")) == 3


def test_one_that_the_user_names_is_refused_with_the_reason_though_another_is_cached(
    home: TemporaryHome, chosen: Callable[..., str]
) -> None:
    chosen()
    with pytest.raises(RecipeError, match="no Python matches"):
        chosen(path=str(home.work))
    with pytest.raises(RecipeError, match="/no/such/python3 does not exist"):
        chosen(input="/no/such/python3")
    assert chosen() == "a/python3"


def test_names_of_files_and_folders_count_from_where_the_command_was_given(chosen: Callable[..., str]) -> None:
    assert chosen(input="../b/python3") == "b/python3"
    assert chosen(path="../c") == "c/python3"


def test_folders_may_be_a_list(home: TemporaryHome, chosen: Callable[..., str]) -> None:
    assert chosen(path=[str(home.work), str(home.folder / "b")]) == "b/python3"
