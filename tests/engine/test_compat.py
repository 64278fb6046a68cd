"""The helpers that recipes call on ``i['automation']``, with CM's arguments, answers and codes."""

from pathlib import Path
from typing import Any

import pytest
from recipe_engine.rules.errors import ScriptFailed
from recipe_engine.running.compat import Automation


def automation(versions: dict[str, str] | None = None) -> Automation:
    """Helpers whose native script knows the version of each file named by CM_BIN; a file it lacks does not run."""
    known = versions or {}

    def run_native(name: str, env: dict[str, Any]) -> dict[str, Any]:
        file = str(env.get("CM_BIN", ""))
        if file not in known:
            raise ScriptFailed(f"{name}.sh failed with exit code 1")
        return {**env, "CM_SEEN": known[file]}

    return Automation(None, run_native=run_native, detect_version=lambda env: {"version": env["CM_SEEN"]})


def tool(folder: Path, *names: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(name, encoding="utf-8")
    return [str(folder / name) for name in names]


@pytest.fixture
def search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder of the process variable MY_PATH."""
    folder = tmp_path / "default"
    folder.mkdir()
    monkeypatch.setenv("MY_PATH", f"{folder}::")
    return folder


def find(helpers: Automation, env: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {"file_name": "tool", "env": env, "default_path_env_key": "MY_PATH", "env_path_key": "CM_BIN"}
    return helpers.find_artifact({**asked, "os_info": {}, "recursion_spaces": "", **more})


def test_the_default_path_list_has_no_empty_parts(search_path: Path) -> None:
    assert automation().get_default_path_list({"default_path_env_key": "MY_PATH"}) == [str(search_path)]


def test_a_file_in_the_default_path_is_found_and_the_path_stays(search_path: Path) -> None:
    (file,) = tool(search_path, "tool")
    env: dict[str, Any] = {}
    answer = find(automation(), env)
    assert (answer["return"], answer["found_file_path"], answer["found_file_name"]) == (0, file, "tool")
    assert (answer["found_path"], answer["default_path_list"]) == (str(search_path), [str(search_path)])
    assert env == {"CM_BIN": file}


def test_a_file_elsewhere_puts_its_folder_in_front(tmp_path: Path, search_path: Path) -> None:
    (file,) = tool(tmp_path / "opt" / "bin", "tool")
    (tmp_path / "opt" / "lib").mkdir()
    env: dict[str, Any] = {"CM_TMP_PATH": str(tmp_path / "opt" / "bin"), "+MY_PATH": ["/old"]}
    find(automation(), env, extra_paths={"lib": "+LD_LIBRARY_PATH", "include": "+C_INCLUDE_PATH"})
    assert env["CM_BIN"] == file
    assert env["+MY_PATH"] == [str(tmp_path / "opt" / "bin"), "/old"]
    assert env["+LD_LIBRARY_PATH"] == [str(tmp_path / "opt" / "lib")]
    assert "+C_INCLUDE_PATH" not in env


def test_a_file_given_as_input_names_the_file_and_its_folder(tmp_path: Path, search_path: Path) -> None:
    (file,) = tool(tmp_path / "mine", "my-tool-7")
    env: dict[str, Any] = {"CM_INPUT": file}
    assert find(automation(), env)["found_file_name"] == "my-tool-7"
    assert env["CM_BIN"] == file


@pytest.mark.parametrize(
    ("env", "code"),
    [
        ({}, 16),
        ({"CM_TMP_PATH": "/no/such/folder"}, 1),
        ({"CM_TMP_PATH": "/no/such/folder", "CM_TMP_PATH_IGNORE_NON_EXISTANT": "yes"}, 16),
        ({"CM_INPUT": "/no/such/file"}, 1),
    ],
)
def test_what_is_not_there_has_the_code_of_cm(search_path: Path, env: dict[str, Any], code: int) -> None:
    answer = find(automation(), env)
    assert answer["return"] == code
    assert answer["error"]


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("tool", True),
        ("tool-7", True),
        ("tool.3", True),
        ("tool12", True),
        ("tool3.11", True),
        ("tool-config", False),
        ("toolbox", False),
        ("my-tool", False),
    ],
)
def test_a_version_may_stand_behind_the_name(search_path: Path, name: str, is_found: bool) -> None:
    tool(search_path, name)
    assert find(automation(), {})["return"] == (0 if is_found else 16)


def test_a_list_key_that_holds_a_text_keeps_it_as_one_folder(tmp_path: Path, search_path: Path) -> None:
    tool(tmp_path / "opt", "tool")
    env: dict[str, Any] = {"CM_TMP_PATH": str(tmp_path / "opt"), "+MY_PATH": "/old"}
    find(automation(), env)
    assert env["+MY_PATH"] == [str(tmp_path / "opt"), "/old"]


@pytest.mark.parametrize("quiet", [{}, {"CM_QUIET": "yes"}])
def test_no_program_is_started_behind_the_one_that_is_taken(search_path: Path, quiet: dict[str, str]) -> None:
    started: list[str] = []

    class Versions(dict[str, str]):
        def __getitem__(self, file: str) -> str:
            started.append(Path(file).name)
            return "1.0"

    files = tool(search_path, "tool", "tool-7", "tool3.11")
    helpers = automation(Versions(dict.fromkeys(files, "1.0")))
    assert find(helpers, dict(quiet), detect_version=True)["found_file_path"] == files[0]
    assert started == ["tool"]


def test_a_link_to_the_same_file_is_found_once(search_path: Path) -> None:
    (file,) = tool(search_path, "tool")
    (search_path / "tool3").symlink_to(file)
    found = automation().find_file_in_paths({"paths": [str(search_path)], "file_name": "tool", "env": {}})
    assert found["found_files"] == [file]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ({}, "tool"),
        ({"CM_VERSION": "3.11.2"}, "tool3.11"),
        ({"CM_VERSION_MIN": "3.10"}, "tool3.11"),
        ({"CM_VERSION_MAX": "3.9"}, "tool"),
        ({"CM_VERSION_MIN": "4"}, None),
    ],
)
def test_with_detect_version_only_a_file_that_runs_and_fits_is_taken(
    search_path: Path, wanted: dict[str, str], chosen: str | None
) -> None:
    plain, newer, refusing, _broken = tool(search_path, "tool", "tool3.11", "tool3.12", "tool3.13")
    helpers = automation({plain: "3.8.1", newer: "3.11.2", refusing: "-1"})
    env: dict[str, Any] = {**wanted, "CM_QUIET": "yes"}
    answer = find(helpers, env, detect_version=True)
    if chosen:
        assert Path(env["CM_BIN"]).name == chosen
    else:
        assert answer["return"] == 16
        assert "3.11.2" in answer["error"]


def test_parse_version_sets_both_keys(tmp_path: Path) -> None:
    (file,) = tool(tmp_path, "tmp-ver.out")
    Path(file).write_text("Tool version 1.2.3 (x)\n", encoding="utf-8")
    env: dict[str, Any] = {}
    asked = {"file_name": file, "match_text": r"version\s*([\d.]+)", "group_number": 1, "env_key": "CM_V"}
    answer = automation().parse_version({**asked, "which_env": env})
    assert (answer["return"], answer["version"]) == (0, "1.2.3")
    assert env == {"CM_V": "1.2.3", "CM_DETECTED_VERSION": "1.2.3"}
    assert automation().parse_version({**asked, "match_text": "none(x)", "which_env": {}})["return"] == 1
    assert automation().parse_version({**asked, "file_name": file + "-no", "which_env": {}})["return"] == 16


def test_run_native_script_changes_the_env_in_place() -> None:
    env: dict[str, Any] = {"CM_BIN": "/t"}
    answer = automation({"/t": "9"}).run_native_script({"env": env, "script_name": "s"})
    assert answer == {"return": 0, "env_tmp": {"CM_BIN": "/t", "CM_SEEN": "9"}}
    assert env["CM_SEEN"] == "9"
    assert automation().run_native_script({"env": {}, "script_name": "s"})["return"] == 2


@pytest.mark.parametrize(("wanted", "code"), [("9.1", 0), ("8", 16)])
def test_detect_version_using_script_refuses_another_version(wanted: str, code: int) -> None:
    env: dict[str, Any] = {"CM_BIN": "/t", "CM_VERSION": wanted}
    answer = automation({"/t": "9.1"}).detect_version_using_script({"env": env, "run_script_input": {}})
    assert answer["return"] == code
    assert answer.get("detected_version") == ("9.1" if code == 0 else None)
    assert automation().detect_version_using_script({"env": {}})["return"] == 16


def test_update_deps_changes_named_entries_in_place_and_ignores_unknown_handles() -> None:
    deps: list[dict[str, Any]] = [{"tags": "get,a", "names": ["a"]}, {"tags": "get,b", "names": ["b"]}]
    changes = {"a": {"tags": "_v", "version": "2"}, "unknown": {"tags": "x"}}
    assert automation().update_deps({"deps": deps[:1] + deps[1:], "update_deps": changes})["return"] == 0
    assert (deps[0]["tags"], deps[0]["version"]) == ("get,a,_v", "2")
    assert deps[1] == {"tags": "get,b", "names": ["b"]}


def test_files_are_found_upwards_and_below(tmp_path: Path) -> None:
    tool(tmp_path / "a", "mark")
    tool(tmp_path / "a" / "lib" / "b", "deep")
    tool(tmp_path / "c", "deep")
    helpers = automation()
    start = str(tmp_path / "a" / "lib" / "b")
    assert helpers.find_file_back({"path": start, "file_name": "mark"})["found_path"] == str(tmp_path / "a")
    assert helpers.find_file_back({"path": start, "file_name": "no-such-mark"})["found_path"] == ""
    asked = {"paths": [str(tmp_path)], "file_name": "deep"}
    assert helpers.find_file_deep(asked)["found_paths"] == [start, str(tmp_path / "c")]
    assert helpers.find_file_deep({**asked, "restrict_paths": ["lib"]})["found_paths"] == [start]


def test_a_pattern_takes_the_place_of_version_suffixes(search_path: Path) -> None:
    tool(search_path, "tool-3", "toolbox", "tool-x")
    env: dict[str, Any] = {}
    assert find(automation(), env, file_name_re="tool-[a-z]$")["found_file_name"] == "tool-x"


def test_a_hook_of_the_recipe_may_skip_files_or_stop_the_search(search_path: Path) -> None:
    tool(search_path, "tool", "tool-2")
    skipped = find(automation(), {}, hook=lambda i: {"return": 0, "skip": i["file"].endswith("tool")})
    assert skipped["found_file_name"] == "tool-2"
    assert find(automation(), {}, hook=lambda i: {"return": 3, "error": "no"}) == {"return": 3, "error": "no"}


def test_versions_that_do_not_fit_are_all_named(search_path: Path) -> None:
    files = tool(search_path, "tool", "tool-1", "tool-2")
    helpers = automation({files[1]: "1.0", files[2]: "2.0"})
    answer = find(helpers, {"CM_VERSION": "7"}, detect_version=True)
    assert answer["return"] == 16
    for text in (f"{files[0]} (does not run)", f"{files[1]} (1.0)", f"{files[2]} (2.0)", "7"):
        assert text in answer["error"]


def test_a_failing_native_script_is_an_answer_with_its_code_and_leaves_the_env() -> None:
    env = {"CM_A": "1"}
    answer = automation().run_native_script({"env": env, "script_name": "install"})
    assert answer == {"return": 2, "error": "install.sh failed with exit code 1"}
    assert env == {"CM_A": "1"}


def test_a_handle_is_a_whole_name_even_when_names_is_a_text() -> None:
    deps: list[dict[str, Any]] = [{"tags": "get,a", "names": "python-tool"}]
    automation().update_deps({"deps": deps, "update_deps": {"tool": {"version": "2"}}})
    assert "version" not in deps[0]
    automation().update_deps({"deps": deps, "update_deps": {"python-tool": {"version": "2"}}})
    assert deps[0]["version"] == "2"


def test_a_change_of_dependencies_may_have_a_condition_which_is_no_part_of_it() -> None:
    deps: list[dict[str, Any]] = [{"tags": "get,a", "names": ["x"]}]
    changes = {"x": {"version": "2", "enable_if_env": {"CM_Y": ["yes"]}}}
    automation().update_deps({"deps": deps, "update_deps": changes, "env": {"CM_Y": "no"}})
    assert "version" not in deps[0]
    automation().update_deps({"deps": deps, "update_deps": changes, "env": {"CM_Y": "yes"}})
    assert deps[0] == {"tags": "get,a", "names": ["x"], "version": "2"}


def test_scratch_files_are_removed_from_the_working_folder_only(tmp_path: Path) -> None:
    for name in ("tmp-state.json", "tmp-run.bat", "other"):
        (tmp_path / name).touch()
    automation().clean_some_tmp_files({"env": {"CM_TMP_CURRENT_SCRIPT_WORK_PATH": str(tmp_path)}})
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_missing_variation_is_refused_with_the_list() -> None:
    answer = automation()._available_variations({"meta": {"variations": {"b": {}, "a": {}}}})
    assert answer == {"return": 1, "error": "this recipe needs a variation, one of: _a, _b"}
