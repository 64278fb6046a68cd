"""What is looked at before a step runs: containers, disk, the age of CM, choices of inputs, lifetimes of entries."""

import json
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.disk.store import Store
from recipe_engine.rules.errors import RequestError
from recipe_engine.running import context as host_module

INSIDE = {"CM_RUN_STATE_DOCKER": True}
MARK = {"run_sh": "touch ran.txt"}


# --- inside a container ---


@pytest.mark.parametrize("state", ["yes", "True", True, "1"])
def test_a_recipe_that_is_not_for_containers_is_left_out_of_one(home: TemporaryHome, state: Any) -> None:
    home.recipe("inner-x", {"docker": {"run": False}, "cache": True}, **MARK)
    home.recipe("outer-x", {"deps": [{"tags": "inner,x"}], "env": {"CM_X": "1"}, "new_env_keys": ["CM_X"]})
    assert home.run("outer,x", env={"CM_RUN_STATE_DOCKER": state})["new_env"] == {"CM_X": "1"}
    assert home.entries() == []
    assert any("skipped inside a container" in line for line in home.story)


@pytest.mark.parametrize("state", ["no", "", "False", False, None])
def test_outside_of_one_it_runs(home: TemporaryHome, state: Any) -> None:
    home.recipe("inner-x", {"docker": {"run": False, "real_run": False}}, **MARK)
    home.run("inner,x", env={} if state is None else {"CM_RUN_STATE_DOCKER": state})
    assert (home.work / "ran.txt").exists()


def test_inside_one_only_dependencies_of_a_recipe_without_real_run_run(home: TemporaryHome) -> None:
    home.recipe("inner-x", {"env": {"CM_X_INNER": "1"}, "new_env_keys": ["CM_X_INNER"]}, run_sh="touch inner.txt")
    home.recipe(
        "outer-x",
        {"docker": {"real_run": False}, "deps": [{"tags": "inner,x"}], "new_env_keys": ["CM_X*"], "cache": True},
        **MARK,
    )
    assert home.run("outer,x", env=INSIDE)["new_env"] == {"CM_X_INNER": "1"}
    assert [path.name for path in home.work.iterdir()] == ["inner.txt"]
    assert home.entries() == []


# --- the machine ---


def test_the_disk_space_of_recipe_and_variations_adds_up_and_stands_beside_what_is_free(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "free_disk_mb", lambda folder: 77)
    meta = {"cache": True, "required_disk_space": 1000, "variations": {"big": {"required_disk_space": 500}}}
    home.recipe("fetch-x", meta)
    home.run("fetch,x,_big")
    assert [line.strip() for line in home.story if "MB" in line] == [
        f"! fetch-x,_big: needs about 1500 MB of disk, 77 MB are free in {home.entry('fetch-x')}"
    ]
    home.run("fetch,x,_big")
    assert not any("MB of disk" in line for line in home.story), "a reused entry needs none"


@pytest.mark.parametrize(
    ("wanted", "present", "is_refused"),
    [
        ("4.2.0", "4.2.0", False),
        ("4.10", "4.2.0", True),
        ("4.2.1", "4.2.0", True),
        ("3.0", "4.2.0", False),
        ("", "4.2.0", False),
        ("99", "", False),
    ],
)
def test_a_recipe_that_needs_a_newer_cm_is_refused_before_its_dependencies_run(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, wanted: str, present: str, is_refused: bool
) -> None:
    monkeypatch.setattr(host_module, "cm_version", lambda: present)
    home.recipe("inner-x", {}, **MARK)
    home.recipe("new-x", {"min_cm_version": wanted, "deps": [{"tags": "inner,x"}]})
    if is_refused:
        with pytest.raises(RequestError, match=f"new-x needs CM {wanted} or newer .*, this is {present}") as caught:
            home.run("new,x")
        assert "pip install --upgrade cmind" in caught.value.hint
    else:
        home.run("new,x")
    assert (home.work / "ran.txt").exists() is not is_refused


# --- inputs ---


@pytest.mark.parametrize(
    ("choices", "given", "is_told"),
    [
        (["small", "big"], "big", False),
        (["small", "big"], "BIG", False),
        (["small", "big"], "huge", True),
        ([True, False], "true", False),
        ([True, False], True, False),
        ([1, 2], "2", False),
        ([1, 2], 3, True),
        ([], "huge", False),
        (["small"], ["a", "list"], True),
        (["small"], None, False),
    ],
)
def test_a_value_that_is_none_of_the_choices_is_told_and_taken(
    home: TemporaryHome, choices: list[Any], given: Any, is_told: bool
) -> None:
    meta = {"input_mapping": {"size": "CM_SIZE"}, "new_env_keys": ["CM_SIZE"]}
    home.recipe("new-x", {**meta, "input_description": {"size": {"desc": "how much", "choices": choices}}})
    answer = home.run("new,x", size=given)
    assert any("is not one of its values" in line for line in home.story) is is_told
    assert "CM_SIZE" in answer["new_env"] or given is None


# --- lifetimes ---


def lifetime_s(home: TemporaryHome, alias: str) -> float | None:
    """How long the entry of a recipe may be used, in seconds from when it was made, to the minute."""
    meta = json.loads((home.entry(alias) / "_cm.json").read_text(encoding="utf-8"))
    if "cache_expiration" not in meta:
        return None
    made_s = (home.entry(alias) / "_cm.json").stat().st_mtime
    return float(round((meta["cache_expiration"] - made_s) / 60) * 60)


@pytest.mark.parametrize(
    ("meta", "inputs", "seconds"),
    [
        ({}, {}, None),
        ({"cache_expiration": "90m"}, {}, 5400.0),
        ({"cache_expiration": "2h"}, {}, 7200.0),
        ({"cache_expiration": "3d"}, {"cache_expiration": "1h"}, 3600.0),
        ({"cache_expiration": "<<<CM_LIFE>>>", "env": {"CM_LIFE": "2h"}}, {}, 7200.0),
    ],
)
def test_an_entry_notes_when_its_time_is_over(
    home: TemporaryHome, meta: dict[str, Any], inputs: dict[str, Any], seconds: float | None
) -> None:
    home.recipe("new-x", {"cache": True, **meta})
    home.run("new,x", **inputs)
    assert lifetime_s(home, "new-x") == seconds


def test_an_entry_whose_time_is_over_is_made_again_and_the_reason_told(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.recipe("new-x", {"cache": True, "cache_expiration": "1h"})
    home.run("new,x")
    home.run("new,x")
    assert any("reused from the cache" in line for line in home.story)
    path = home.entry("new-x") / "_cm.json"
    meta = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**meta, "cache_expiration": meta["cache_expiration"] - 3601}), encoding="utf-8")
    home.run("new,x")
    assert any("it has expired (cache_expiration)" in line for line in home.story)
    assert not any("reused from the cache" in line for line in home.story)
    store = Store(home.store)
    (usable,) = [entry for entry in store.entries() if entry.is_complete and not store.problem(entry)]
    assert usable.expires_s is not None


@pytest.mark.parametrize("text", ["soon", "1w", "-1h", "1.5h", "h"])
def test_a_lifetime_that_is_none_is_refused_before_anything_runs(home: TemporaryHome, text: str) -> None:
    home.recipe("new-x", {"cache": True}, **MARK)
    with pytest.raises(RequestError, match="is not a lifetime"):
        home.run("new,x", cache_expiration=text)
    assert home.entries() == []
