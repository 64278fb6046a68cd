"""Configuration files of ``cfg/`` folders, as ``load_cfg`` and ``select_cfg`` give them."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.utils_actions import load_cfg, select_cfg
from recipe_engine.rules.errors import Ambiguous, MetaError, NothingFound


def write_cfg(home: TemporaryHome, alias: str, meta: dict[str, Any], files: dict[str, Any]) -> Path:
    """A ``cfg`` artifact with these configurations."""
    folder = home.repo / "cfg" / alias
    folder.mkdir(parents=True)
    full = {"alias": alias, "uid": alias * 4, **meta}
    for name, value in {"_cm.json": full, **files}.items():
        (folder / name).write_text(json.dumps(value))
    return folder


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """A home with two artifacts of configurations."""
    write_cfg(
        home,
        "comp",
        {"tags": ["benchmark", "compute"], "supported_compute": ["c1"]},
        {
            "a.json": {"uid": "aa", "tags": "gpu,big", "kind": "x"},
            "b.yaml": {"uid": "bb", "name": "Small one", "kind": "y"},
            "notes.txt": "",
        },
    )
    write_cfg(home, "list", {"tags": ["benchmark", "list"]}, {"run-c.json": {"uid": "cc"}})
    return home


def uids(answer: dict[str, Any]) -> list[str]:
    """The uids of what was selected."""
    return [row["uid"] for row in answer["selection"]]


@pytest.mark.parametrize(
    "i, expected",
    [
        ({"tags": "benchmark"}, ["aa", "bb", "cc"]),
        ({"tags": "benchmark,compute"}, ["aa", "bb"]),
        ({"artifact": "list"}, ["cc"]),
        ({"tags": "benchmark", "key": "run-"}, ["cc"]),
        ({"tags": "benchmark", "key_end": ["b.yaml", "c.json"]}, ["bb", "cc"]),
        ({"tags": "benchmark", "prune": {"uid": "bb"}}, ["bb"]),
        ({"tags": "benchmark", "prune": {"list": ["aa", "cc"]}}, ["aa", "cc"]),
        ({"tags": "benchmark", "prune": {"key": "kind", "key_uid": "y"}}, ["bb"]),
        ({"tags": "benchmark", "prune": {"meta_key": "supported_compute", "meta_key_uid": "c1"}}, ["aa", "bb"]),
        ({"tags": "benchmark", "skip_files": True}, ["comp" * 4, "list" * 4]),
        ({"tags": "none"}, []),
    ],
)
def test_configurations_are_selected(filled: TemporaryHome, i: dict[str, Any], expected: list[str]) -> None:
    assert uids(load_cfg(i, filled.engine_home)) == expected


def test_a_configuration_knows_its_tags_its_name_and_where_it_is_from(filled: TemporaryHome) -> None:
    answer = load_cfg({"tags": "compute"}, filled.engine_home)
    first, second = answer["selection"]
    assert first["all_tags"] == ["benchmark", "compute", "gpu", "big"]
    assert (first["name"], second["name"]) == ("gpu big", "Small one")
    assert second["all_tags"] == ["benchmark", "compute", "small", "one"]
    assert first["full_path"] == str(filled.repo / "cfg" / "comp" / "a.json")
    assert first["main_meta"]["alias"] == "comp"
    assert answer["lst"][0].path == str(filled.repo / "cfg" / "comp")
    assert answer["lst"][0].meta["alias"] == "comp"


def test_a_base_lies_below_what_a_configuration_says(home: TemporaryHome) -> None:
    write_cfg(home, "base", {"tags": ["b"]}, {"x.yaml": {"uid": "b", "tags": "one", "list": [1], "deep": {"a": 1}}})
    top = {"_base": "base:x.yaml", "uid": "t", "tags": ",two", "list": [2], "deep": {"b": 2}}
    write_cfg(home, "tops", {"tags": ["t"]}, {"t.json": top, "u.json": {"_base": "t.json", "uid": "u"}})
    first, second = load_cfg({"tags": "t"}, home.engine_home)["selection"]
    for row in (first, second):
        assert (row["tags"], row["list"], row["deep"]) == ("one,two", [1, 2], {"a": 1, "b": 2})
    assert [first["uid"], second["uid"]] == ["t", "u"]


@pytest.mark.parametrize("base", ["none.json", "none:x.json", "self.json", "x.txt"])
def test_a_base_that_cannot_be_used_is_an_error(home: TemporaryHome, base: str) -> None:
    write_cfg(home, "tops", {"tags": ["t"]}, {"self.json": {"_base": base, "uid": "t"}, "x.txt": {}})
    with pytest.raises(MetaError, match=r"self\.json: _base"):
        load_cfg({"tags": "t"}, home.engine_home)


def test_one_configuration_is_selected_by_name_or_uid(filled: TemporaryHome) -> None:
    for i in ({"alias": "b"}, {"uid": "bb"}):
        chosen = select_cfg({"tags": "compute", **i}, filled.engine_home)["selection"]
        assert chosen["alias"] == "b"
        assert chosen["meta"]["name"] == "Small one"
    with pytest.raises(NothingFound) as caught:
        select_cfg({"tags": "compute", "alias": "z"}, filled.engine_home)
    assert caught.value.code == 16
    with pytest.raises(NothingFound):
        select_cfg({}, filled.engine_home)


def test_nobody_to_ask_means_a_list_and_no_prompt(filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(Ambiguous, match="Small one") as caught:
        select_cfg({"tags": "compute"}, filled.engine_home)
    assert "--alias" in caught.value.hint
