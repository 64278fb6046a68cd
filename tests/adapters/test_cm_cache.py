"""``cm show|find|rm cache`` with the real ``cm``."""

from pathlib import Path

import pytest
from helpers import TemporaryHome


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """A home with one entry of get-x (version 1.5, a secret in its env) and one of get-y."""
    home.recipe(
        "get-x",
        {"cache": True, "variations": {"v": {}}, "new_env_keys": ["CM_X", "CM_API_TOKEN"]},
        customize="""
            def postprocess(i):
                i["env"].update(CM_X="1", CM_API_TOKEN="hidden-value")
                return {"return": 0, "version": "1.5"}
        """,
        run_sh="head -c 5000 /dev/zero > data",
    )
    home.recipe("get-y", {"cache": True})
    home.run("get,x,_v")
    home.run("get,y")
    return home


def test_several_entries_are_a_table_with_a_total(filled: TemporaryHome) -> None:
    title, x, y, blank, total, more = filled.cm("show", "cache").stdout.splitlines()
    assert title.split() == ["recipe", "version", "variations", "and", "tags", "size", "made", "uid"]
    assert x.split()[:3] == ["get-x", "1.5", "_v"]
    assert y.split()[0] == "get-y"
    assert filled.entry("get-x").name in x
    assert blank == ""
    assert total.startswith("2 cache entries, ")
    assert total.endswith(f" in {filled.entry('get-x').parent}")
    assert more.startswith("cm show cache UID ")
    whole = filled.cm("show", "cache", "-v").stdout
    assert whole.count("  Path: ") == 2
    assert whole.splitlines()[-1] == total


def test_an_entry_is_shown_whole_with_its_env_and_no_secret(filled: TemporaryHome) -> None:
    done = filled.cm("show", "cache", "get x", "--env")
    for part in ("get,", "_v", str(filled.entry("get-x")), "Version: 1.5", "Recipe: get-x", "kB, ", '"CM_X": "1"'):
        assert part in done.stdout, part
    assert "hidden-value" not in done.stdout + done.stderr
    assert "get-y" not in done.stdout
    answer = filled.cm("show", "cache", "--tags=get,-x", "--out=json").answer
    assert [row["recipe"].partition(",")[0] for row in answer["entries"]] == ["get-y"]


def test_find_prints_the_folders(filled: TemporaryHome) -> None:
    done = filled.cm("find", "cache", "--tags=get,x")
    assert [Path(line) for line in done.stdout.splitlines() if line.startswith("/")] == [filled.entry("get-x")]


def test_rm_with_f_removes_only_what_fits(filled: TemporaryHome) -> None:
    entry = filled.entry("get-x")
    done = filled.cm("rm", "cache", "--tags=get,x", "-f")
    assert done.code == 0, done.stderr
    assert not entry.exists()
    assert filled.entry("get-y").is_dir()


def test_rm_of_nothing_ends_with_16(filled: TemporaryHome) -> None:
    done = filled.cm("rm", "cache", "--tags=no,such", "-f")
    assert done.code == 16
    assert "no cache entry to remove" in done.stderr
    assert len(filled.entries()) == 2


def test_update_writes_into_the_metadata_of_the_entries_that_fit(filled: TemporaryHome) -> None:
    done = filled.cm("update", "cache", "--search_tags=get,x", "--meta.note=mine")
    assert done.code == 0, done.stderr
    assert (filled.entries("get-x")[0]["note"], "note" in filled.entries("get-y")[0]) == ("mine", False)
    assert "reused" in filled.run_cm("get,x,_v").stderr


def test_a_pattern_of_uids_chooses_entries(filled: TemporaryHome) -> None:
    assert filled.cm("show", "cache", "*", "-v").stdout.count("* Tags:") == 2
    assert filled.cm("rm", "cache", "*", "-f").code == 0
    assert filled.entries() == []
