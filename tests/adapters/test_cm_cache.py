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


def test_show_tells_tags_path_version_recipe_size_and_age(filled: TemporaryHome) -> None:
    done = filled.cm("show", "cache", "--tags=get,x")
    assert done.code == 0, done.stderr
    for part in ("get,", "_v", str(filled.entry("get-x")), "Version: 1.5", "Recipe: get-x", "kB, ", " made ", "ago"):
        assert part in done.stdout, part
    assert "get-y" not in done.stdout


@pytest.mark.parametrize(
    ("words", "aliases"),
    [
        ((), ["get-x", "get-y"]),
        (("--tags=get",), ["get-x", "get-y"]),
        (("--tags=get,x",), ["get-x"]),
        (("--tags=get,-x",), ["get-y"]),
        (("--tags=get,_v",), ["get-x"]),
        (("--tags=version-1.5",), ["get-x"]),
        (("--tags=no,such",), []),
        (("get x",), ["get-x"]),
    ],
)
def test_show_lists_the_entries_that_fit(filled: TemporaryHome, words: tuple[str, ...], aliases: list[str]) -> None:
    answer = filled.cm("show", "cache", *words, "--out=json").answer
    assert sorted(row["recipe"].partition(",")[0] for row in answer["entries"]) == aliases
    assert all(row["size_bytes"] > 0 and row["age_s"] >= 0 and row["is_complete"] for row in answer["entries"])


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


def test_show_env_prints_what_an_entry_gives_but_no_secret(filled: TemporaryHome) -> None:
    done = filled.cm("show", "cache", "--tags=get,x", "--env")
    assert '"CM_X": "1"' in done.stdout
    assert "hidden-value" not in done.stdout + done.stderr
    assert '"CM_X"' not in filled.cm("show", "cache", "--tags=get,x").stdout


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


@pytest.mark.parametrize("pattern", ["*", "????????????????"])
def test_a_pattern_of_uids_chooses_entries(filled: TemporaryHome, pattern: str) -> None:
    assert filled.cm("show", "cache", pattern, "-v").stdout.count("* Tags:") == 2
    assert filled.cm("rm", "cache", pattern, "-f").code == 0
    assert filled.entries() == []
