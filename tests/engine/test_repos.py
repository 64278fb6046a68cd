"""Reading recipe folders: what is remembered, what is noticed, and what one broken recipe does not stop."""

import json
import os
import shutil
from pathlib import Path

import pytest
from helpers import uid_of, write_recipe
from recipe_engine.disk import metadata, repos
from recipe_engine.disk.digests import recipe_digest, recipe_stamp
from recipe_engine.disk.repos import RecipeSource, RepoInfo
from recipe_engine.rules.errors import MetaError
from recipe_engine.rules.model import EntryRecord


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    write_recipe(folder, "get-a")
    write_recipe(folder, "get-b")
    return folder


def source(root: Path) -> RecipeSource:
    return RecipeSource([RepoInfo(root, "repo", "0123456789abcdef")], root.parent / "index")


def aliases(root: Path) -> list[str]:
    return [entry.alias for entry in source(root).index.entries]


def never(*_: object) -> None:
    raise AssertionError("parsed again")


def test_a_second_start_parses_nothing_and_writes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = source(root)
    entries = first.index.entries
    recipe = first.recipe(entries[0])
    (file,) = (root.parent / "index").iterdir()
    before = file.read_bytes(), file.stat().st_mtime_ns
    monkeypatch.setattr(metadata, "read_meta", never)
    second = source(root)
    assert second.index.entries == entries
    assert second.recipe(second.index.entries[0]) == recipe
    assert second.index.by_tags(["get", "b"], [])[0].alias == "get-b"
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_start_never_leaves_the_current_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads of the process have the same one."""
    source(root)
    monkeypatch.setattr(os, "chdir", never)
    monkeypatch.setattr(os, "fchdir", never)
    monkeypatch.setattr(metadata, "read_meta", never)
    assert [entry.alias for entry in source(root).index.entries] == ["get-a", "get-b"]


def test_an_updated_engine_reads_all_recipes_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source(root)
    monkeypatch.setattr(repos, "_maker", lambda: "of another version")
    monkeypatch.setattr(metadata, "read_meta", never)
    with pytest.raises(AssertionError, match="parsed again"):
        source(root)


@pytest.mark.parametrize("name", ["rules/env.py", "rules/schema.py", "disk/repos.py"])
def test_every_module_that_reads_recipes_counts_as_the_engines_update(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    copied = tmp_path / "engine"
    shutil.copytree(repos.ENGINE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(repos, "ENGINE", copied)
    source(root)
    with (copied / name).open("a") as file:
        file.write("# updated")
    monkeypatch.setattr(metadata, "read_meta", never)
    with pytest.raises(AssertionError, match="parsed again"):
        source(root)


def test_two_checkouts_with_one_home_each_keep_their_index(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source(root)
    first = repos.ENGINE
    monkeypatch.setattr(repos, "ENGINE", Path(shutil.copytree(first, tmp_path / "engine")))
    source(root)
    monkeypatch.setattr(metadata, "read_meta", never)
    source(root)
    monkeypatch.setattr(repos, "ENGINE", first)
    assert [entry.alias for entry in source(root).index.entries] == ["get-a", "get-b"]


def test_an_edited_recipe_is_noticed(root: Path) -> None:
    assert not source(root).index.by_tags(["new"], [])
    write_recipe(root, "get-a", {"tags": ["get", "new"]})
    assert [entry.alias for entry in source(root).index.by_tags(["new"], [])] == ["get-a"]
    assert not source(root).index.by_tags(["a"], [])


def test_an_edit_that_keeps_the_size_is_noticed(root: Path) -> None:
    source(root)
    path = root / "script" / "get-a" / "_cm.json"
    before = path.stat()
    path.write_text(path.read_text().replace('"a"', '"z"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert path.stat().st_size == before.st_size
    assert source(root).index.by_tags(["z"], [])


def test_new_and_removed_recipes_are_noticed(root: Path) -> None:
    assert aliases(root) == ["get-a", "get-b"]
    write_recipe(root, "get-c")
    shutil.rmtree(root / "script" / "get-a")
    assert aliases(root) == ["get-b", "get-c"]
    (root / "script" / "get-b" / "_cm.json").unlink()
    assert aliases(root) == ["get-c"]


def test_a_json_file_added_to_a_yaml_one_is_noticed(root: Path) -> None:
    folder = root / "script" / "get-y"
    folder.mkdir()
    text = f"alias: get-y\nautomation_uid: '5b4e0237da074764'\nuid: '{uid_of('get-y')}'\ntags: [get, y]\nsort: 5\n"
    (folder / "_cm.yaml").write_text(text)
    assert source(root).index.by_tags(["y"], [])
    (folder / "_cm.json").write_text(json.dumps({"tags": ["get", "j"]}))
    assert not source(root).index.by_tags(["y"], [])
    assert source(root).index.by_tags(["j"], [])[0].sort == 5


BROKEN = {
    "no YAML": "alias: [unclosed",
    "a tab": "alias:\n\t- x",
    "a list": "- a\n- b\n",
    "a text": "just words",
    "empty": "",
    "no uid": "alias: get-broken\ntags: [get, broken]\n",
    "numeric uid": "alias: get-broken\nuid: 1234567890123456\ntags: [get, broken]\n",
    "tags are a number": "alias: get-broken\nuid: 'a234567890123456'\ntags: 7\n",
    "deps are a text": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\ndeps: no\n",
    "deps hold a text": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\ndeps: [get,x]\n",
    "variations are a list": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\nvariations: [a]\n",
    "env is a list": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\nenv: [a]\n",
    "unhashable key": "? [a, b]\n: c\n",
    "python object": "alias: !!python/object/apply:os.system ['touch injected']\n",
    "bytes that are no text": "alias: \udcff\n",
    "inside itself": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\nenv: &e\n  CM_X: *e\n",
    "deep": "alias: get-broken\nuid: 'a234567890123456'\ntags: [get]\nstate: " + "[" * 5000 + "]" * 5000 + "\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_recipe_does_not_stop_the_others(
    root: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = root / "script" / "get-broken"
    folder.mkdir()
    (folder / "_cm.yaml").write_text(text, errors="surrogateescape")
    for _ in range(2):
        index = source(root).index
        assert [entry.alias for entry in index.entries] == ["get-a", "get-b"]
        assert list(index.broken) == [str(folder)]
        assert index.broken[str(folder)], "the trouble must have a text"
    assert not (tmp_path / "injected").exists()


def test_a_mended_recipe_is_taken_again(root: Path) -> None:
    path = root / "script" / "get-a" / "_cm.json"
    good = path.read_text()
    path.write_text("{")
    assert aliases(root) == ["get-b"]
    path.write_text(good)
    assert aliases(root) == ["get-a", "get-b"]


def test_folders_of_other_automations_and_plain_files_are_passed_over(root: Path) -> None:
    write_recipe(root, "other", {"automation_alias": "experiment", "automation_uid": "0000000000000abc"})
    (root / "script" / "README.md").write_text("text")
    (root / "script" / "empty").mkdir()
    index = source(root).index
    assert [entry.alias for entry in index.entries] == ["get-a", "get-b"]
    assert index.broken == {}


@pytest.mark.parametrize("alias", ["script", None])
def test_a_recipe_with_the_uid_of_another_automation_is_broken_and_named(root: Path, alias: str | None) -> None:
    folder = write_recipe(root, "get-c", {"automation_uid": "5b4e0237da074765", "automation_alias": alias})
    if alias is None:
        path = folder / "_cm.json"
        path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if value}))
    index = source(root).index
    assert [entry.alias for entry in index.entries] == ["get-a", "get-b"]
    found = index.broken[str(folder)]
    assert f"{folder / '_cm.json'}: automation_uid: expected 5b4e0237da074764, found '5b4e0237da074765'" in found


DATES = """
alias: get-d
uid: a000000000000d1e
tags: [get, d]
versions:
  2024-01-31: {env: {CM_D: '1'}}
  11.8: {env: {CM_D: '2'}}
  3: {env: {CM_D: '3'}}
default_env: {CM_WHEN: 2024-02-29, CM_ON: yes}
"""


@pytest.mark.parametrize("is_kept", [True, False])
def test_keys_that_yaml_takes_for_dates_or_numbers_are_texts(root: Path, is_kept: bool) -> None:
    (root / "script" / "get-d").mkdir()
    (root / "script" / "get-d" / "_cm.yaml").write_text(DATES)
    if not is_kept:
        (root.parent / "index").write_text("a file in the way")
    recipes = source(root)
    assert recipes.index.broken == {}
    recipe = recipes.recipe(recipes.index.by_name("get-d")[0])
    assert list(recipe.versions) == ["2024-01-31", "11.8", "3"]
    assert recipe.layer.default_env["CM_WHEN"] == "2024-02-29"


def test_an_index_that_cannot_be_kept_only_costs_time(root: Path) -> None:
    entries = source(root).index.entries
    recipe = source(root).recipe(entries[0])
    shutil.rmtree(root.parent / "index")
    (root.parent / "index").write_text("a file in the way")
    without = source(root)
    assert without.index.entries == entries
    assert without.recipe(entries[0]) == recipe
    write_recipe(root, "get-c")
    (root / "script" / "get-a" / "_cm.json").write_text("{")
    index = source(root).index
    assert [entry.alias for entry in index.entries] == ["get-b", "get-c"]
    assert list(index.broken) == [str(root / "script" / "get-a")]


def test_a_repository_without_recipes_has_none(tmp_path: Path) -> None:
    assert source(tmp_path / "nowhere").index.entries == ()


def test_the_digest_changes_with_what_a_recipe_does_and_only_then(root: Path) -> None:
    folder = root / "script" / "get-a"
    first = recipe_digest(folder)
    for name in ("README.md", "tmp-run.sh", "__pycache__/x.pyc", "tests/test_x.py", "docs/x.txt", ".git/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    assert recipe_digest(folder) == first
    (folder / "table.py").write_text("x = 1")
    second = recipe_digest(folder)
    assert second != first
    (folder / "table.py").rename(folder / "other.py")
    assert recipe_digest(folder) not in (first, second)


def test_a_recipe_is_unchanged_by_its_stamp_or_by_its_content(root: Path) -> None:
    recipes = source(root)
    recipe = recipes.recipe(recipes.index.by_name("get-a")[0])
    digest, stamp = recipe_digest(recipe.path), recipe_stamp(recipe.path)
    record = EntryRecord("", digest, stamp, (), (), (), {}, "")
    os.utime(recipe.path / "_cm.json")
    assert recipe_stamp(recipe.path) != stamp
    assert recipes.is_unchanged(recipe, record)
    (recipe.path / "run.sh").write_text("true")
    assert not source(root).is_unchanged(recipe, record)


def test_a_file_that_does_not_parse_is_named(root: Path) -> None:
    folder = root / "script" / "get-a"
    (folder / "_cm.json").write_text("{")
    with pytest.raises(MetaError, match=r"get-a/_cm\.json: not valid JSON"):
        metadata.read_meta(folder)
