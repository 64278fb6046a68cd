"""The cache on disk: start, commit, crash, look again, trust."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from recipe_engine.disk import entries, files, locks, store
from recipe_engine.disk.entries import CACHE_AUTOMATION_UID, SCRATCH_NAMES, EntryPaths
from recipe_engine.disk.store import Maker, Outcome, Store
from recipe_engine.rules.cachekey import match_tags
from recipe_engine.rules.errors import StoreError
from recipe_engine.rules.model import CacheEntry, CacheKey, RecipeId
from recipe_engine.rules.query import VersionRange

KEY = CacheKey(
    recipe=RecipeId("get-x", "a123456789abcdef"),
    required_tags=("get", "x"),
    excluded_tags=(),
    explicit=(),
    variations=(),
    extra_tags=(),
    inputs={},
    version=VersionRange(),
)
MAKER = Maker("digest", "stamp")
NOTHING = Outcome(
    new_env={}, new_state={}, dependencies=[], version="", added_tags=(), files=(), dependent_path="", details={}
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def make(root: Path, key: CacheKey = KEY, **outcome: Any) -> CacheEntry:
    """A finished entry, made through a store of its own."""
    made = Store(root)
    return made.commit(made.start(key, MAKER), key, NOTHING._replace(**outcome))


def test_a_finished_entry_is_found_by_another_store_with_what_it_gives(root: Path) -> None:
    entry = make(root, new_env={"CM_X": "1"}, new_state={"a": [1]}, version="1.2", added_tags=("more",))
    other = Store(root)
    assert other.find(KEY) == [entry]
    assert other.problem(entry) == ""
    assert other.load(entry) == ({"CM_X": "1"}, {"a": [1]})
    assert entry.tags == ("get", "x", "more", "version-1.2")


def test_an_unfinished_entry_is_not_found(root: Path) -> None:
    Store(root).start(KEY, MAKER)
    assert Store(root).find(KEY) == []
    assert len(Store(root).entries()) == 1


@pytest.mark.parametrize("writes", range(4))
def test_a_process_that_dies_while_finishing_leaves_nothing_that_is_trusted(
    root: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Dies after 0, 1, 2, 3 of the files that a commit puts in place; only the last one makes the entry count."""
    dying = Store(root)
    entry = dying.start(KEY, MAKER)
    replace, done = os.replace, 0

    def dies(*words: Any) -> None:
        nonlocal done
        if done == writes:
            raise SystemExit("killed")
        done += 1
        replace(*words)

    monkeypatch.setattr(os, "replace", dies)
    if writes < 3:
        with pytest.raises(SystemExit):
            dying.commit(entry, KEY, NOTHING)
    else:
        dying.commit(entry, KEY, NOTHING)
    monkeypatch.undo()
    assert len(Store(root).find(KEY)) == (1 if writes == 3 else 0)
    if writes < 3:
        assert make(root).path == entry.path


def test_what_an_attempt_that_was_killed_before_its_entry_left_does_not_stop_the_next(root: Path) -> None:
    left = Store(root)._lock_path(KEY.fingerprint).with_suffix(".new") / "file"
    left.parent.mkdir(parents=True)
    left.touch()
    assert [item.name for item in Store(root).start(KEY, MAKER).path.iterdir()] == ["_cm.json"]


def test_what_a_broken_off_attempt_left_is_emptied_except_half_loaded_files(root: Path) -> None:
    first = Store(root).start(KEY, MAKER)
    (first.path / "half.txt").write_text("x")
    (first.path / "model.onnx.part").write_text("half")
    (first.path / "folder").mkdir()
    (first.path / "folder" / "file").write_text("x")
    (first.path / "link").symlink_to(root.parent)
    second = Store(root).start(KEY, MAKER)
    assert second.path == first.path
    assert sorted(item.name for item in second.path.iterdir()) == ["_cm.json", "model.onnx.part"]
    assert root.parent.exists()


def test_killed_while_it_empties_a_left_over_an_attempt_leaves_it_an_entry(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Store(root).start(KEY, MAKER)
    (first.path / "half.txt").write_text("x")

    def dies(*_: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(SystemExit):
        Store(root).start(KEY, MAKER)
    monkeypatch.undo()
    assert not (first.path / "half.txt").exists()
    assert Store(root).start(KEY, MAKER).path == first.path


def test_what_another_request_left_is_not_touched(root: Path) -> None:
    first = Store(root).start(KEY, MAKER)
    (first.path / "mine").write_text("x")
    second = Store(root).start(KEY._replace(variations=("v",)), MAKER)
    assert second.path != first.path
    assert (first.path / "mine").exists()


def test_an_entry_that_was_finished_since_we_looked_is_never_taken_for_a_left_over(root: Path) -> None:
    maker = Store(root)
    entry = maker.start(KEY, MAKER)
    waiting = Store(root)
    assert [known.is_complete for known in waiting.entries()] == [False]
    (entry.path / "result").write_text("x")
    maker.commit(entry, KEY, NOTHING)
    os.utime(EntryPaths(entry.path).meta, ns=(0, 0))
    second = waiting.start(KEY, MAKER)
    assert second.path != entry.path
    assert (entry.path / "result").exists()


def test_a_look_again_sees_an_entry_finished_within_the_same_tick_of_the_clock(root: Path) -> None:
    maker = Store(root)
    entry = maker.start(KEY, MAKER)
    meta = EntryPaths(entry.path).meta
    os.utime(meta, ns=(0, 0))
    waiting = Store(root)
    assert waiting.find(KEY) == []
    maker.commit(entry, KEY, NOTHING)
    os.utime(meta, ns=(0, 0))
    assert [found.uid for found in waiting.find(KEY, refresh=True)] == [entry.uid]


def declare(root: Path, **outcome: Any) -> CacheEntry:
    """A finished entry that declares ``data/a`` and names ``tool`` in its env."""
    made = Store(root)
    entry = made.start(KEY, MAKER)
    (entry.path / "data").mkdir()
    (entry.path / "data" / "a").write_bytes(b"12345")
    (entry.path / "tool").write_bytes(b"tool")
    found = NOTHING._replace(files=("data",), new_env={"CM_TOOL": str(entry.path / "tool")}, **outcome)
    return made.commit(entry, KEY, found)


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("data/a", "remove", "data/a is missing"),
        ("data/a", "edit", "data/a was edited"),
        ("data/a", "grow", "data/a has 6 bytes instead of 5"),
        ("tool", "remove", "tool is missing"),
        ("cm-cached-state.json", "remove", "cm-cached-state.json is missing"),
        ("entry.json", "remove", "entry.json is missing or damaged"),
        ("_cm.json", "remove", "just removed it"),
    ],
)
def test_a_changed_file_of_an_entry_is_noticed(root: Path, name: str, change: str, text: str) -> None:
    entry = declare(root)
    looking = Store(root)
    assert looking.find(KEY) == [entry]
    path = entry.path / name
    if change == "remove":
        path.unlink()
    else:
        path.write_bytes(b"54321" if change == "edit" else b"123456")
        os.utime(path, ns=(0, 0))
    assert text in looking.problem(entry)


def test_an_entry_changed_by_another_process_is_noticed(root: Path) -> None:
    entry = make(root)
    looking = Store(root)
    looking.find(KEY)
    Store(root).retire(entry, "edited")
    assert looking.problem(entry) == "another process has just changed it"


def test_a_recipe_may_declare_its_whole_folder(root: Path) -> None:
    made = Store(root)
    entry = made.start(KEY, MAKER)
    for name in ("a", *SCRATCH_NAMES, "log.txt"):
        (entry.path / name).write_text("x")
    entry = made.commit(entry, KEY, NOTHING._replace(files=(".",)))
    assert Store(root).problem(entry) == ""
    details = entries.details_of(entry)
    assert details is not None
    assert [record.path for record in details.files] == ["a"]


def test_secrets_are_in_no_file_of_an_entry(root: Path) -> None:
    dependency = {"tags": "get,y", "gh_token": "hunter22", "env": {"CM_HF_TOKEN": "hunter22"}}
    entry = make(root, new_env={"CM_GH_TOKEN": "hunter22", "CM_X": "1"}, dependencies=[dependency])
    assert Store(root).load(entry)[0] == {"CM_X": "1"}
    assert not [path for path in entry.path.iterdir() if "hunter22" in path.read_text()]


def test_a_retired_entry_is_kept_but_never_found_nor_reused_as_a_left_over(root: Path) -> None:
    entry = make(root)
    (entry.path / "data").write_text("x")
    made = Store(root)
    made.retire(entry, "edited")
    assert made.find(KEY, refresh=True) == []
    assert make(root).path != entry.path
    assert (entry.path / "data").exists()


def renew(root: Path, entry: CacheEntry, key: CacheKey = KEY, **outcome: Any) -> CacheEntry:
    """The finished entry that answers in place of ``entry``."""
    made = Store(root)
    return made.commit(made.start(key, Maker("newer", "newer"), entry), key, NOTHING._replace(**outcome))


def test_a_renewal_makes_an_entry_with_a_folder_of_its_own_and_the_tags_variations_and_pin_of_the_old_one(
    root: Path,
) -> None:
    key = KEY._replace(required_tags=("get", "x", "_v", "mine"), variations=("v",), extra_tags=("mine",))
    entry = make(root, key, version="1.0")
    EntryPaths(entry.path).pinned.touch()
    plain = KEY._replace(variations=("v",))
    renewed = renew(root, entry, plain, version="2.0")
    assert renewed.path != entry.path
    assert set(renewed.tags) == {"get", "x", "_v", "mine", "version-2.0"}
    assert renewed.record is not None
    assert (renewed.record.variations, renewed.record.recipe_digest) == (("v",), "newer")
    assert EntryPaths(renewed.path).pinned.exists()
    assert not entry.path.exists()
    assert Store(root).find(plain) == [renewed]


def test_while_an_entry_is_renewed_and_when_that_fails_the_old_one_answers(root: Path) -> None:
    entry = make(root, new_env={"CM_X": "1"})
    for _ in range(2):
        Store(root).start(KEY, MAKER, entry)
        assert Store(root).find(KEY) == [entry]
        assert Store(root).problem(entry) == ""
    assert len(Store(root).entries()) == 2, "the second attempt takes over what the first one left"


def test_what_a_failed_renewal_left_is_no_renewal_when_an_entry_is_made_from_it(root: Path) -> None:
    entry = make(root, KEY._replace(required_tags=("get", "x", "mine"), extra_tags=("mine",)))
    left = Store(root).start(KEY, MAKER, entry)
    made = make(root)
    assert made.path == left.path
    assert "mine" not in made.tags
    assert {found.path for found in Store(root).entries() if found.is_complete} == {entry.path, made.path}


def test_a_replaced_entry_that_is_in_use_or_needed_is_kept_but_does_not_answer(root: Path) -> None:
    for number, is_used in enumerate((True, False)):
        key = KEY._replace(variations=(str(number),))
        user, entry = Store(root), make(root, key)
        if is_used:
            assert user.claim(entry) == ""
        else:
            make(root, KEY._replace(variations=("needs it",)), new_env={"CM_X": str(entry.path / "x")})
        renewed = renew(root, entry, key)
        assert Store(root).find(key) == [renewed]
        (old,) = [found for found in Store(root).entries() if found.uid == entry.uid]
        assert old.retired == f"replaced by {renewed.uid}"
        assert not old.is_complete
        del user


def test_killed_after_the_swap_a_renewal_leaves_an_old_entry_that_never_answers_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make(root)
    monkeypatch.setattr(Store, "put_away", lambda *_: None)
    renewed = renew(root, entry)
    monkeypatch.undo()
    assert Store(root).find(KEY) == [renewed]
    again = Store(root)
    with again.lock(KEY, "get-x"):
        latest = again.commit(again.start(KEY, MAKER, again.find(KEY)[0]), KEY, NOTHING)
    assert Store(root).entries() == [latest]
    monkeypatch.setattr(Store, "put_away", lambda *_: None)
    renew(root, latest)
    monkeypatch.undo()
    opened = Store(root)
    opened.remove(opened.find(KEY)[0])
    assert Store(root).find(KEY) == []


def test_a_renewed_entry_counts_as_made_with_the_inputs_of_now(root: Path) -> None:
    renew(root, make(root, KEY._replace(inputs={"model": "a"})))
    assert Store(root).find(KEY._replace(inputs={"model": "a"})) == []
    assert len(Store(root).find(KEY)) == 1


def test_an_entry_whose_results_were_edited_cut_or_lost_has_a_problem(root: Path) -> None:
    state = EntryPaths(make(root, new_env={"CM_X": "/bin/x"}).path).state
    text = state.read_text()
    for damage in ("{}", "", text.replace("/bin/x", "/etc/x"), "[" * 200_000):
        state.write_text(damage)
        assert Store(root).problem(Store(root).find(KEY)[0]) == f"its file {state} was edited (the SHA-256 differs)"
    state.write_text(text)
    os.utime(state, (1, 1))
    assert Store(root).problem(Store(root).find(KEY)[0]) == ""


@pytest.mark.parametrize("name", ["_cm.json", "cm-cached-state.json", "entry.json", "used"])
@pytest.mark.parametrize("what", ["fifo", "folder", "deep"])
def test_an_entry_with_something_else_in_place_of_a_file_is_a_broken_one(root: Path, name: str, what: str) -> None:
    entry = make(root)
    (entry.path / name).unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(entry.path / name)
    elif what == "folder":
        (entry.path / name).mkdir()
    else:
        (entry.path / name).write_text("[" * 200_000 + "]" * 200_000)
    opened = Store(root)
    found = opened.find(KEY)
    assert [bool(opened.problem(known)) for known in found] == {"_cm.json": [], "used": [False]}.get(name, [True])
    for known in found:
        opened.claim(known)
        assert not store.dependencies(known, ())
        opened.put_away(known, "broken", KEY)
    assert make(root).path != entry.path


def test_a_removed_entry_is_gone_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make(root)
    monkeypatch.setattr(locks, "remove_tree", lambda _: None)
    Store(root).remove(entry)
    assert Store(root).entries() == []
    monkeypatch.undo()
    Store(root).remove(entry)
    assert not entry.path.exists()


def test_an_entry_with_unreadable_state_names_the_command_that_helps(root: Path) -> None:
    entry = make(root)
    EntryPaths(entry.path).state.write_text("{")
    with pytest.raises(StoreError) as caught:
        Store(root).load(entry)
    assert caught.value.hint == f"cm rm cache {entry.uid} -f, then rerun"


def test_the_folder_says_what_it_is(root: Path) -> None:
    make(root)
    assert "cache" in (root / "README.md").read_text()
    assert (root / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_a_cache_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"file/cache"):
        make(tmp_path / "file" / "cache")


def test_uids_are_no_numbers_for_yaml(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([bytes.fromhex(text) for text in ("1234567890123456", "12345678901234e5", "b234567890123456")])
    monkeypatch.setattr(os, "urandom", lambda _: next(values))
    assert Store(root).start(KEY, MAKER).uid == "b234567890123456"


def test_an_entry_of_cm_itself_serves_the_same_explicit_variations(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    folder = root / "b123456789abcdef"
    folder.mkdir(parents=True)
    meta = {
        "automation_uid": CACHE_AUTOMATION_UID,
        "uid": folder.name,
        "tags": ["get", "x", "_v", "script-artifact-a123456789abcdef"],
        "associated_script_artifact": KEY.recipe.text,
        "associated_script_artifact_uid": KEY.recipe.uid,
    }
    (folder / "_cm.json").write_text(json.dumps(meta))
    with_variation = KEY._replace(required_tags=("get", "x", "_v"), explicit=("v",), variations=("v",))
    assert Store(root).find(KEY) == []
    (found,) = Store(root).find(with_variation)
    assert "cm-cached-state.json is missing" in Store(root).problem(found)
    files.write_json(EntryPaths(folder).state, {"new_env": {"CM_X": "1"}})
    assert Store(root).problem(found) == ""
    assert Store(root).load(found) == ({"CM_X": "1"}, {})


def test_entries_are_matched_by_tags_like_cm_does(root: Path) -> None:
    first = make(root, KEY._replace(required_tags=("get", "x", "_v", "b"), variations=("v",)))
    second = make(root, KEY._replace(required_tags=("get", "x", "a")))
    entries = Store(root).entries()
    assert list(match_tags(entries, ["get"])) == [first, second]
    assert list(match_tags(entries, ["get", "_v"])) == [first]
    assert list(match_tags(entries, ["get", "-_v"])) == [second]
    assert list(match_tags(entries, ["none"])) == []
