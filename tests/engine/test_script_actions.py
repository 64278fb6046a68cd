"""cm help, version, test, doc, prepare and native-run script, without the console."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions import script_actions as actions
from recipe_engine.actions.help import help_action
from recipe_engine.rules.errors import Ambiguous, MetaError, NotFound, RequestError, ScriptFailed

TESTS = {
    "run_inputs": [
        {"id": "first", "size": "1", "env": {"CM_A": "own"}},
        {"id": "second", "variations_list": ["_a", "b,_c"], "docker": "yes", "docker_os": "ubuntu"},
        {"test-all-variations": "yes"},
    ]
}
VARIATIONS: dict[str, Any] = {
    "a": {},
    "b": {},
    "c": {"exclude-in-test": "yes"},
    "d": {"group": "g"},
    "p.#": {},
    "a,b": {},
}


class Runs:
    """Stands for cmind: keeps what its ``access`` was asked, fails for the tags given."""

    def __init__(self, *failing: str) -> None:
        self.asked: list[dict[str, Any]] = []
        self._failing = failing

    def access(self, i: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(i)
        return {"return": 2, "error": "no luck"} if i["tags"] in self._failing else {"return": 0}


@pytest.fixture
def tested(home: TemporaryHome) -> TemporaryHome:
    """A home with a recipe that has tests and one that has none."""
    home.recipe("get-x", {"tests": TESTS, "variations": VARIATIONS, "input_mapping": {"size": "CM_SIZE"}})
    home.recipe("get-y")
    return home


# --- help ---


class Adapter:
    """Stands for the adapter that cmind calls."""

    def describe(self) -> None:
        """Show how to call a recipe: cm help script RECIPE."""

    def native_run(self) -> None:
        """Run a command."""

    def docker(self) -> None:
        """Not there."""

    def _own(self) -> None:
        """Not an action."""


def test_help_names_the_recipe_or_lists_the_actions(tested: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    answer = help_action({"artifact": "get-x", "out": "con"}, tested.engine_home, Adapter)
    assert answer["recipe"]["alias"] == "get-x"
    assert "--size=" in capsys.readouterr().out
    answer = help_action({"out": "con"}, tested.engine_home, Adapter)
    assert answer["actions"] == ["help", "native-run"]
    assert "  help       Show how to call a recipe\n" in capsys.readouterr().out


def test_help_of_several_recipes_names_them_and_with_quiet_takes_the_first(tested: TemporaryHome) -> None:
    with pytest.raises(Ambiguous, match="get-y"):
        help_action({"tags": "get"}, tested.engine_home, Adapter)
    answer = help_action({"tags": "get", "quiet": True}, tested.engine_home, Adapter)
    assert answer["recipe"]["alias"] == "get-x"
    with pytest.raises(NotFound):
        help_action({"tags": "nothing"}, tested.engine_home, Adapter)


def test_help_shows_the_recipe_that_a_run_would_choose(home: TemporaryHome) -> None:
    home.recipe("a-tool", {"tags": ["run", "tool", "check"]})
    home.recipe("run-tool", {"tags": ["run", "tool"], "tags_help": "run tool"})
    answer = help_action({"tags": "run,tool", "help": True}, home.engine_home, Adapter)
    assert answer["recipe"]["alias"] == "run-tool"


# --- version ---


def test_version_is_the_projects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src" / "crowdperf").mkdir(parents=True)
    (tmp_path / "src" / "crowdperf" / "__init__.py").write_text('__version__ = "7.8.9"\n')
    answer = actions.version_action({"out": "con"}, tmp_path)
    assert answer["version"] == "7.8.9"
    assert "crowdperf 7.8.9" in capsys.readouterr().out
    assert actions.version_action({}, tmp_path / "none")["version"] == "unknown"


# --- test ---


def test_all_tests_of_a_recipe_run_with_their_inputs_and_variations(tested: TemporaryHome) -> None:
    runs = Runs()
    answer = actions.test_action({"artifact": "get-x", "out": "con"}, tested.engine_home, runs)
    assert [row["tags"] for row in answer["tests"]] == ["get,x", "get,x,_a", "get,x,_b,_c", "get,x,_a", "get,x,_b"]
    first, second = runs.asked[:2]
    assert first == {
        "action": "run",
        "automation": "script,5b4e0237da074764",
        "tags": "get,x",
        "size": "1",
        "env": {"CM_A": "own"},
        "quiet": True,
    }
    assert "docker_os" not in second
    assert "out" not in second


@pytest.mark.parametrize(
    "i, tests",
    [
        ({"test_input_index": "1"}, [1]),
        ({"test_input_index": "2+"}, [2, 2, 3, 3]),
        ({"test_input_index": 2}, [2, 2]),
        ({"test_input_index": "9"}, []),
        ({"test_input_id": "second"}, [2, 2]),
        ({"test_input_id": "none"}, []),
    ],
)
def test_single_tests_can_be_chosen(tested: TemporaryHome, i: dict[str, Any], tests: list[int]) -> None:
    answer = actions.test_action({"artifact": "get-x", **i}, tested.engine_home, Runs())
    assert [row["test"] for row in answer["tests"]] == tests


@pytest.mark.parametrize("number", ["0", "-1", "x", "+", "1+2"])
def test_a_bad_number_of_a_test_is_refused(tested: TemporaryHome, number: str) -> None:
    with pytest.raises(RequestError, match="test_input_index"):
        actions.test_action({"artifact": "get-x", "test_input_index": number}, tested.engine_home, Runs())


@pytest.mark.parametrize(
    ("tests", "text"),
    [
        ({"run_inputs": 3}, "tests.run_inputs: expected a list, found int 3"),
        ({"run_inputs": [{}, "x"]}, "tests.run_inputs[1]: expected a mapping, found str 'x'"),
    ],
)
def test_tests_of_another_shape_are_named(home: TemporaryHome, tests: dict[str, Any], text: str) -> None:
    home.recipe("get-x", {"tests": tests})
    with pytest.raises(MetaError, match=re.escape(text)):
        actions.test_action({"artifact": "get-x"}, home.engine_home, Runs())


def test_inputs_given_replace_those_of_the_test(tested: TemporaryHome) -> None:
    runs = Runs()
    i = {"artifact": "get-x", "test_input_index": 1, "size": "2", "env": {"CM_B": "given"}}
    actions.test_action(i, tested.engine_home, runs)
    assert runs.asked[0]["size"] == "2"
    assert runs.asked[0]["env"] == {"CM_A": "own", "CM_B": "given"}
    with pytest.raises(RequestError, match="--env needs a key, found 'CM_B=given'"):
        actions.test_action({**i, "env": "CM_B=given"}, tested.engine_home, runs)


def test_all_tests_run_even_when_one_fails_and_the_failed_one_is_named(tested: TemporaryHome) -> None:
    runs = Runs("get,x,_a")
    with pytest.raises(actions.TestsFailed, match=r"2 of 5 tests failed: get-x test 2 \(get,x,_a\)") as caught:
        actions.test_action({"artifact": "get-x"}, tested.engine_home, runs)
    assert caught.value.code == 2
    assert len(runs.asked) == 5


def test_a_recipe_without_tests_runs_none(tested: TemporaryHome) -> None:
    assert actions.test_action({"artifact": "get-y"}, tested.engine_home, Runs())["tests"] == []


# --- doc ---


def test_pages_are_written_with_a_list_and_never_over_the_recipes(tested: TemporaryHome, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    answer = actions.doc_action({"tags": "get", "output_dir": str(folder)}, tested.engine_home)
    assert (folder / "get-x" / "README.md").read_text().startswith("# get-x\n")
    assert "- [get-y](get-y/README.md)" in (folder / "list_of_scripts.md").read_text()
    assert set(answer["files"]) == {str(path) for path in folder.rglob("*.md")}
    with pytest.raises(RequestError, match="overwritten"):
        actions.doc_action({"output_dir": str(tested.repo / "script")}, tested.engine_home)
    assert not (tested.repo / "script" / "get-x" / "README.md").exists()


def test_without_a_folder_the_page_is_printed(tested: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    answer = actions.doc_action({"artifact": "get-y", "out": "con"}, tested.engine_home)
    assert capsys.readouterr().out.startswith("# get-y\n")
    assert list(answer["pages"]) == ["get-y"]


# --- prepare, native-run, what is not there ---


def test_prepare_runs_the_dependencies_only(tested: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    tested.recipe("make-z", {"deps": [{"tags": "note,dep"}]}, run_sh=f"touch {tested.folder}/made")
    tested.recipe("note-dep", run_sh=f"touch {tested.folder}/dep")
    monkeypatch.chdir(tested.work)
    assert actions.prepare_action({"tags": "make,z", "quiet": True}, tested.engine_home, None)["return"] == 0
    assert (tested.folder / "dep").exists()
    assert not (tested.folder / "made").exists()


def test_a_native_command_gets_its_env_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    i = {"command": 'printf "%s" "$A $MY_TOKEN" > out', "env": {"A": "$(touch bad) 'x'", "MY_TOKEN": "tok-secret"}}
    assert actions.native_run_action(i)["return_code"] == 0
    assert (tmp_path / "out").read_text() == "$(touch bad) 'x' tok-secret"
    assert not (tmp_path / "bad").exists()
    assert "tok-secret" not in (tmp_path / "tmp-native-run.sh").read_text()


def test_a_native_command_gets_lists_and_lines_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    i = {"command": 'printf "%s" "$B $PATH" > out', "env": {"+PATH": "/opt/x"}, "script": "export B='a  b'"}
    assert actions.native_run_action(i)["return_code"] == 0
    assert (tmp_path / "out").read_text() == f"a  b /opt/x:{os.environ['PATH']}"
    with pytest.raises(RequestError, match="--env needs a key"):
        actions.native_run_action({**i, "env": "A=1"})
    with pytest.raises(RequestError, match="--script contains no lines, found True"):
        actions.native_run_action({**i, "script": True})


def test_a_failing_native_command_tells_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScriptFailed, match="exit code 3") as caught:
        actions.native_run_action({"command": "echo why >&2; exit 3"})
    assert "why" in caught.value.describe()
    with pytest.raises(RequestError, match="no command"):
        actions.native_run_action({})


def test_removing_needs_a_name_and_somebody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RequestError, match="no recipe was selected"):
        actions.check_removal({"f": True, "out": "con"})
    with pytest.raises(RequestError, match="stdin is not a terminal"):
        actions.check_removal({"artifact": "get-x", "out": "con"})
    actions.check_removal({"artifact": "get-x", "out": "con", "f": True})


def test_who_asks_for_the_web_page_hears_of_the_page_of_results_and_of_show() -> None:
    with pytest.raises(RequestError) as caught:
        actions.unsupported_action({"action": "gui"})
    for word in ("results.html", "show,mlperf,results", "cm diff script", "cm show cache", "cm help script"):
        assert word in caught.value.hint
