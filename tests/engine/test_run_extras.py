"""Flags that ask for something besides the run."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, Terminal
from recipe_engine.actions.run import run_action
from recipe_engine.rules.errors import RecipeError, RequestError, ScriptFailed

SECRET = "tok-very-secret"


@pytest.fixture
def pair(home: TemporaryHome) -> TemporaryHome:
    """A home where ``make-x`` needs the cached ``get-y`` of version 1.2."""
    home.recipe(
        "get-y",
        {"cache": True, "new_env_keys": ["CM_Y"], "default_version": "1.2", "variations": {"v": {}}},
        run_sh="echo CM_Y=2 > tmp-run-env.out",
    )
    home.recipe(
        "make-x",
        {"deps": [{"tags": "get,y,_v"}], "new_env_keys": ["CM_X", "MY_TOKEN"], "default_version": "7"},
        run_sh="echo CM_X=1 > tmp-run-env.out",
    )
    return home


def story(home: TemporaryHome) -> str:
    """All that the last run told."""
    return "\n".join(home.story)


def test_versions_are_printed_and_written_for_every_step(pair: TemporaryHome) -> None:
    for _ in ("made", "reused"):
        pair.run("make,x", print_versions=True, dump_version_info=True)
        assert "Versions:\n  get,y,_v: 1.2" in story(pair)
        rows = json.loads((pair.work / "version_info.json").read_text())
        assert [list(row) for row in rows] == [["get,y,_v"], ["make,x"]]
        assert rows[0]["get,y,_v"]["version"] == "1.2"
        assert rows[0]["get,y,_v"]["parent"] == "make-x"
        assert rows[0]["get,y,_v"]["script_variations"] == "v"
        assert rows[1]["make,x"]["parent"] == ""
        assert json.loads((pair.work / "cm-run-script-versions.json").read_text()) == rows


def test_time_and_space_tell_figures(pair: TemporaryHome) -> None:
    pair.run("make,x", time=True, space=True)
    lines = story(pair).splitlines()
    start = lines.index("Seconds (including dependencies):")
    assert [line.split()[1] for line in lines[start + 1 : start + 3]] == ["get-y,_v", "make-x"]
    assert all(float(line.split()[0]) >= 0 for line in lines[start + 1 : start + 3])
    assert any(line.startswith("Disk space used where") and line.endswith(" MB") for line in lines)


def test_time_and_versions_count_the_runs_that_a_recipe_makes_itself(pair: TemporaryHome) -> None:
    class Cm:
        """What a hook calls: the engine of this process."""

        def access(self, i: dict[str, Any]) -> dict[str, Any]:
            return run_action(i, pair.engine_home, self)

    hook = """
    def preprocess(i):
        for _ in range(3):
            i["automation"].cmind.access({"tags": "make,x", "quiet": True})
        return {"return": 0}
    """
    pair.recipe("call-x", customize=hook)
    pair.run("call,x", time=True, print_versions=True, cmind=Cm())
    lines = story(pair).splitlines()
    start = lines.index("Seconds (including dependencies):")
    assert [line.split(maxsplit=1)[1] for line in lines[start + 1 : start + 4]] == [
        "get-y,_v (3 times)", "make-x (3 times)", "call-x",
    ]  # fmt: skip
    start = lines.index("Versions:")
    assert lines[start + 1] == "  get,y,_v: 1.2"
    assert lines[start + 1 :].count("  get,y,_v: 1.2") == 1
    pair.run("make,x")
    assert "Seconds" not in story(pair)


@pytest.mark.parametrize("flag", ["time", "space", "print_versions", "print_readme", "repro", "print_env"])
def test_a_flag_that_is_switched_off_does_nothing(pair: TemporaryHome, flag: str) -> None:
    pair.run("make,x", **{flag: False})
    assert not any(word in story(pair) for word in ("Seconds", "Disk space", "Versions:", "env of"))
    assert list(pair.work.iterdir()) == []


def test_a_page_tells_the_command_and_all_steps(pair: TemporaryHome) -> None:
    pair.run("make,x", print_readme=True, script_call_prefix="cmr", hf_token=SECRET)
    page = (pair.work / "README-cm.md").read_text()
    assert page.index("1. get-y (ran, version 1.2)") < page.index("2. make-x (ran")
    assert "cmr --tags=get,y,_v" in page
    assert "    cmr --tags=make,x " in page
    assert SECRET not in page


def test_the_page_repeats_a_recipe_that_was_called_by_its_name(pair: TemporaryHome) -> None:
    pair.run("", artifact="make-x", print_readme=True)
    page = (pair.work / "README-cm.md").read_text()
    assert "       cm run script make-x\n" in page
    assert "--tags=make-x" not in page


def test_a_record_holds_input_host_answer_and_steps_and_no_secret(pair: TemporaryHome) -> None:
    given: dict[str, Any] = {"env": {"MY_TOKEN": SECRET, "CM_A": "1"}, "hf_token": SECRET}
    answer = pair.run("make,x", repro=True, **given)
    assert answer["new_env"]["MY_TOKEN"] == SECRET
    folder = pair.work / "cm-repro"
    values = {path.stem.removeprefix("cm-run-script-"): json.loads(path.read_text()) for path in folder.glob("*.json")}
    assert set(values) == {"input", "info", "output", "run-state"}
    assert values["input"]["env"] == {"CM_A": "1"}
    assert values["output"]["new_env"] == {"CM_X": "1"}
    assert len(values["run-state"]["version_info"]) == 2
    assert json.loads((pair.work / "cm-output.json").read_text())["output"] == values["output"]
    assert (folder / "cm-run-script-README-cm.md").exists()
    written = [path for path in pair.work.rglob("*") if path.is_file()]
    assert not any(SECRET in path.read_text() for path in written)


def test_a_record_goes_where_it_was_asked_to_go_and_tells_a_failure(home: TemporaryHome) -> None:
    home.recipe("make-x", run_sh="exit 3")
    with pytest.raises(ScriptFailed):
        home.run("make,x", repro=True, repro_dir=str(home.folder / "there"), repro_prefix="r")
    output = json.loads((home.folder / "there" / "r-output.json").read_text())
    assert output["return"] == 2
    assert "exit code 3" in output["error"]


def test_the_env_of_each_native_script_is_shown_without_secrets(pair: TemporaryHome) -> None:
    pair.run("make,x", print_env=True, env={"MY_TOKEN": SECRET})
    told = story(pair)
    assert told.index("env of get-y,_v:") < told.index("env of make-x:")
    assert '"CM_Y": "2"' in told[told.index("env of make-x:") :]
    assert SECRET not in told


@pytest.mark.parametrize(
    "flags, kept",
    [
        ({"debug_script": True}, ["make-x"]),
        ({"debug_script_tags": "get,y"}, ["get-y"]),
        ({"debug_script_tags": "x"}, ["make-x"]),
        ({"debug_script_tags": "none"}, []),
        ({"debug_script_tags": True}, []),
    ],
)
def test_the_script_that_was_run_can_be_kept(pair: TemporaryHome, flags: dict[str, Any], kept: list[str]) -> None:
    pair.run("make,x", **flags)
    places = {"make-x": pair.work, "get-y": pair.entry("get-y")}
    found = [alias for alias, folder in sorted(places.items()) if (folder / "tmp-run-without-cm.sh").exists()]
    assert found == kept
    for alias in kept:
        assert "run.sh" in (places[alias] / "tmp-run-without-cm.sh").read_text()


def test_the_script_is_kept_when_it_fails(home: TemporaryHome) -> None:
    home.recipe("make-x", run_sh="exit 3")
    with pytest.raises(ScriptFailed):
        home.run("make,x", debug_script=True)
    assert (home.work / "tmp-run-without-cm.sh").exists()


def test_flags_for_recipes_become_their_env(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        {"new_env_keys": ["CM_SEEN"]},
        run_sh='echo "CM_SEEN=$CM_SKIP_SYS_UTILS,$CM_TMP_SKIP_SUDO,$CM_TMP_DEBUG_UID" > tmp-run-env.out',
    )
    assert home.run("get,x")["new_env"]["CM_SEEN"] == ",,"
    answer = home.run("get,x", skip_sys_utils="yes", skip_sudo=True, debug_uid="abc")
    assert answer["new_env"]["CM_SEEN"] == "yes,yes,abc"


def test_a_shell_without_a_terminal_is_refused_before_anything_runs(
    pair: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(RequestError, match="needs a terminal"):
        pair.run("make,x", shell=True)
    assert pair.entries() == []


def test_a_shell_gets_the_result_and_its_secrets(pair: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    from recipe_engine.actions import run_extras
    from recipe_engine.running import process

    seen: list[tuple[list[str], Path, dict[str, str]]] = []

    def hand_over(command: list[str], folder: Path, *, extra_env: dict[str, str]) -> int:
        seen.append((command, folder, extra_env))
        return 0

    monkeypatch.setattr(run_extras, "has_terminal", lambda: True)
    monkeypatch.setattr(process, "hand_over", hand_over)
    pair.run("make,x", shell=True, env={"MY_TOKEN": SECRET})
    ((command, folder, extra_env),) = seen
    assert command == ["bash", "--rcfile", str(pair.work / "tmp-env.sh"), "-i"]
    assert folder == pair.work
    assert extra_env == {"MY_TOKEN": SECRET}
    text = (pair.work / "tmp-env.sh").read_text()
    assert "export CM_X=1" in text
    assert SECRET not in text


@pytest.mark.parametrize("typed", ["\n", ""])
def test_a_pause_ends_with_enter_or_the_end_of_the_input(
    pair: TemporaryHome, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert pair.run("make,x", pause=True)["return"] == 0


def test_a_pause_without_a_terminal_goes_on(pair: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert pair.run("make,x", pause=True)["return"] == 0
    assert "! --pause has no effect: stdin is not a terminal" in pair.story


def test_choices_can_be_asked_for_each_time(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    from recipe_engine.running import engine

    home.recipe("get-tool-a", {"tags": ["get", "tool"]})
    home.recipe("get-tool-b", {"tags": ["get", "tool"]})
    home.recipe("make-x", {"deps": [{"tags": "get,tool"}, {"tags": "get,tool"}]})
    asked: list[str] = []

    def ask(text: str, _: Any) -> int:
        asked.append(text)
        return 0

    monkeypatch.setattr(engine, "ask_which", ask)
    home.run("make,x", quiet=False)
    assert len(asked) == 1
    asked.clear()
    home.run("make,x", quiet=False, skip_remembered_selections=True)
    assert len(asked) == 2


def test_an_error_stays_the_same_error(home: TemporaryHome) -> None:
    with pytest.raises(RecipeError, match="no recipe"):
        home.run("nothing,here", time=True)
