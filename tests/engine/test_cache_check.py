"""cm verify cache: every way in which an entry can differ from what its recipe made."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, finish, shell_wait, wait_until
from recipe_engine.actions.cache_report import KINDS, check_entry, verify_action
from recipe_engine.disk.entries import CACHE_AUTOMATION_UID
from recipe_engine.disk.repos import RecipeSource
from recipe_engine.rules.errors import NothingFound, RequestError


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """``get-x`` with two declared files and a path on which it depends, made with ``get-y``, whose file it names."""
    (home.folder / "tool").touch()
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['data']}\n"
    home.recipe(
        "get-y", {"cache": True, "new_env_keys": ["CM_Y"]}, run_sh="touch y; echo CM_Y=$PWD/y > tmp-run-env.out"
    )
    home.recipe("get-z", {"cache": True})
    run_sh = f"""
        mkdir data; echo 12345 > data/a; echo 67890 > data/b
        echo CM_GET_DEPENDENT_CACHED_PATH={home.folder}/tool > tmp-run-env.out
    """
    meta = {"cache": True, "deps": [{"tags": "get,y"}, {"tags": "get,z"}], "new_env_keys": ["CM_Y"]}
    home.recipe("get-x", {**meta, "variations": {"v": {}}}, customize=customize, run_sh=run_sh)
    home.run("get,x")
    return home


def problems(home: TemporaryHome, tags: str = "get,x", **i: Any) -> list[tuple[str, str]]:
    """Kind and text of all problems."""
    answer = verify_action({"tags": tags, **i}, home.engine_home)
    found = [(one["kind"], one["text"]) for row in answer["entries"] for one in row["problems"]]
    assert answer["return"] == (1 if found else 0)
    assert bool(answer.get("error")) is bool(found)
    json.dumps(answer)
    return found


def test_a_whole_cache_is_found_whole(filled: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    answer = verify_action({"out": "con"}, filled.engine_home)
    assert answer["return"] == 0, answer
    assert answer["wrong"] == answer["unfinished"] == []
    assert {row["recipe"].split(",")[0]: row["files"] for row in answer["entries"]} == {
        "get-x": 2,
        "get-y": 1,
        "get-z": 0,
    }
    assert "3 entries with 3 recorded files (12 B) verified: all unchanged" in capsys.readouterr().out


def test_an_entry_without_recorded_files_is_not_called_whole(
    filled: TemporaryHome, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify_action({"out": "con", "tags": "get,z"}, filled.engine_home)["return"] == 0
    told = capsys.readouterr().out
    assert "no files were recorded, so they cannot be verified" in told and "as they were made" not in told


def edit(path: Path, *, keeps_time: bool = True) -> None:
    """Other bytes of the same number, and the same time."""
    before = path.stat()
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    if keeps_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def written(text: str) -> Callable[[Path], object]:
    """Another content, whatever it was."""
    return lambda path: path.write_text(text)


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def of_another_request(path: Path) -> None:
    details = json.loads(path.read_text())
    details["request"]["variations"] = ["v"]
    path.write_text(json.dumps(details))


def naming_no_module(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "library": ["no_such_module"]}))


STATE = "cm-cached-state.json"
OF_GET_X = "script/get-x"
DAMAGE: dict[str, tuple[str, Callable[[Path], object], str, str]] = {
    "a lost file": ("data/a", Path.unlink, "file", "data/a is missing"),
    "an edited file": ("data/b", edit, "file", "data/b was edited (the SHA-256 differs)"),
    "a file that grew": ("data/b", written("more, more"), "file", "has 10 bytes instead"),
    "a folder in its place": ("data/a", made_a_folder, "file", "bytes instead of 6"),
    "lost results": (STATE, Path.unlink, "state", "is missing"),
    "cut results": (STATE, written("{"), "state", "was edited"),
    "edited results": (STATE, written('{"new_env": {"CM_X": "2"}}'), "state", "was edited"),
    "lost details": ("entry.json", Path.unlink, "entry", "entry.json is missing or damaged"),
    "cut details": ("entry.json", written("{"), "entry", "entry.json is missing or damaged"),
    "another request": (
        "entry.json", of_another_request, "entry", "_cm.json says the variations [], entry.json ['v']",
    ),
    "a lost tool": ("tool", Path.unlink, "dependency", "tool (a dependency) is missing"),
    "a named entry": ("get-y", shutil.rmtree, "dependency", "which CM_Y names, is gone"),
    "an entry it was made with": ("get-z", shutil.rmtree, "dependency", "with which it was made, is gone"),
    "an edited recipe": (
        f"{OF_GET_X}/run.sh", written("true"), "recipe", "has changed since. --renew rebuilds the entry",
    ),
    "an unusable recipe": (f"{OF_GET_X}/_cm.json", naming_no_module, "recipe", "get-x cannot be used: "),
    "a removed recipe": (OF_GET_X, shutil.rmtree, "recipe", "is not registered"),
}  # fmt: skip
"""What is damaged: a file of the entry of get-x, the tool, the entry of a dependency or the recipe. How it is damaged,
and the kind and a part of the text of the problem."""


def place_of(home: TemporaryHome, name: str) -> Path:
    """Where the damage is done."""
    if name in ("get-y", "get-z"):
        return home.entry(name)
    return (home.folder if name == "tool" else home.repo if OF_GET_X in name else home.entry("get-x")) / name


@pytest.mark.parametrize(("name", "damage", "kind", "text"), DAMAGE.values(), ids=DAMAGE.keys())
def test_each_damage_is_named_and_nothing_else(
    filled: TemporaryHome, name: str, damage: Callable[[Path], object], kind: str, text: str
) -> None:
    damage(place_of(filled, name))
    found = problems(filled)
    assert [one for one, _ in found] == [kind]
    assert text in found[0][1]
    assert problems(filled, skip=kind) == []


def test_all_damages_are_told_at_once(filled: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    entry = filled.entry("get-x")
    (entry / "data" / "a").unlink()
    edit(entry / "data" / "b")
    (filled.folder / "tool").unlink()
    assert len(problems(filled, out="con")) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{entry} (get-x: ")
    assert [line.split(":")[0] for line in lines[1:4]] == ["  file", "  file", "  dependency"]


def test_a_touched_recipe_and_touched_files_are_no_damage(filled: TemporaryHome) -> None:
    os.utime(filled.repo / "script" / "get-x" / "_cm.json")
    os.utime(filled.entry("get-x") / "data" / "a")
    assert problems(filled) == []


def test_entries_are_chosen_by_tags_or_uid(filled: TemporaryHome) -> None:
    (filled.entry("get-x") / "data" / "a").unlink()
    assert problems(filled, "get,y") == []
    assert len(problems(filled, "", artifact=filled.entry("get-x").name)) == 1
    with pytest.raises(NothingFound):
        problems(filled, "none")


def test_an_unknown_kind_is_an_error_with_the_known_ones(filled: TemporaryHome) -> None:
    for given, word in (("files", "files"), (True, "True"), (["state", "x"], "x")):
        with pytest.raises(RequestError, match=f"--skip={word} is") as caught:
            problems(filled, skip=given)
        assert all(kind in caught.value.hint for kind in KINDS)


def test_an_empty_cache_is_whole(home: TemporaryHome) -> None:
    assert verify_action({}, home.engine_home)["entries"] == []


def test_unfinished_entries_are_named_but_not_wrong(filled: TemporaryHome) -> None:
    filled.recipe("get-w", {"cache": True}, run_sh="exit 1")
    with pytest.raises(Exception, match="exit code 1"):
        filled.run("get,w")
    answer = verify_action({}, filled.engine_home)
    assert answer["return"] == 0, answer
    assert len(answer["unfinished"]) == 1


def test_an_entry_of_cm_itself_is_checked_as_far_as_that_goes(filled: TemporaryHome) -> None:
    folder = filled.store / "c123456789abcdef"
    folder.mkdir()
    gone = filled.store / "d123456789abcdef"
    meta = {"automation_uid": CACHE_AUTOMATION_UID, "tags": ["get", "w"], "associated_script_artifact": "get-w,a0"}
    (folder / "_cm.json").write_text(json.dumps(meta))
    (folder / "cm-cached-state.json").write_text(json.dumps({"new_env": {"+PATH": [f"{gone}/bin"]}}))
    ((kind, text),) = problems(filled, "get,w")
    assert (kind, text) == ("dependency", f"the entry {gone.name}, which +PATH names, is gone")
    gone.mkdir()
    assert problems(filled, "get,w") == []
    assert "built by CM" in verify_action({"tags": "get,w"}, filled.engine_home)["entries"][0]["note"]


def test_a_cache_that_was_moved_is_whole(filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = filled.folder / "moved"
    filled.store.rename(moved)
    monkeypatch.setenv("CROWDPERF_CACHE", str(moved))
    assert problems(filled, "get") == []
    shutil.rmtree(next(path.parent for path in moved.glob("*/y")))
    assert [kind for kind, _ in problems(filled)] == ["dependency"]


HOLDING = 'touch started; [ -z "${HOLD:-}" ] || ' + shell_wait("[ -e go ]")


def test_an_entry_is_checked_while_it_is_renewed_and_left_alone_once_it_was_replaced(filled: TemporaryHome) -> None:
    filled.recipe("get-w", {"cache": True}, run_sh=HOLDING)
    filled.run("get,w")
    entry = filled.entry("get-w")
    (known,) = [one for one in filled.open_store().entries() if one.path == entry]
    source = RecipeSource(filled.engine_home.repos, filled.engine_home.index_folder)
    child = filled.start_run("get,w", "--renew", env={"HOLD": "yes"})
    started = entry / "started"
    (renewed,) = wait_until(lambda: set(filled.store.glob("*/started")) - {started}, "the script")
    checked = check_entry(known, filled.open_store(), source)
    assert (checked.problems, checked.note) == ((), "")
    (renewed.parent / "go").touch()
    assert finish(child).code == 0
    assert "replaced or removed" in check_entry(known, filled.open_store(), source).note


def test_the_command_ends_with_code_1_and_one_json_object(filled: TemporaryHome) -> None:
    assert filled.cm("verify", "cache").code == 0
    edit(filled.entry("get-x") / "data" / "a")
    shown = filled.cm("verify", "cache", "--tags=get,x")
    assert shown.code == 1
    assert "data/a was edited" in shown.stdout
    answer = filled.cm("verify", "cache", filled.entry("get-x").name, "--out=json")
    assert answer.code == 1
    assert answer.answer["wrong"] == [filled.entry("get-x").name]
