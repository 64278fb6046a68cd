"""What stands in the files of a cache entry, and what is noticed about declared files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from recipe_engine.disk.entries import (
    CACHE_AUTOMATION_UID,
    EntryPaths,
    details_of,
    file_problem,
    parse_entry,
    record_file,
    stamp_of,
)
from recipe_engine.disk.files import write_json
from recipe_engine.rules.model import EntryDetails, EntryRecord

RECORD = EntryRecord(
    fingerprint="f" * 64,
    recipe_digest="d" * 64,
    recipe_stamp="s" * 8,
    explicit=("v",),
    variations=("base", "v"),
    extra_tags=("mine",),
    inputs={"model": "a"},
    created_utc="2026-11-21T01:02:03Z",
)
CM_META: dict[str, Any] = {
    "automation_uid": CACHE_AUTOMATION_UID,
    "uid": "0123456789abcdef",
    "tags": ["get", "x", "_v"],
    "version": "1.2",
    "associated_script_artifact": "get-x,a123456789abcdef",
    "associated_script_artifact_uid": "a123456789abcdef",
    "dependent_cached_path": "/usr/bin/x",
}
OUR_META = {**CM_META, "crowdperf": {"format": 1, **RECORD._asdict()}}


def test_an_entry_of_cm_itself_is_read_without_a_record() -> None:
    entry = parse_entry(CM_META, Path("/c/0123456789abcdef"))
    assert entry is not None
    assert entry.record is None
    assert (entry.uid, entry.version, entry.dependent_path) == ("0123456789abcdef", "1.2", "/usr/bin/x")
    assert (entry.recipe.alias, entry.recipe.uid) == ("get-x", "a123456789abcdef")
    assert entry.is_complete


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    write_json(tmp_path / "_cm.json", {**CM_META, "crowdperf": {"format": 1, **RECORD._asdict()}})
    entry = parse_entry(json.loads((tmp_path / "_cm.json").read_text()), tmp_path)
    assert entry is not None
    assert entry.record == RECORD


@pytest.mark.parametrize("ours", [None, 7, {}, {"format": 999, **RECORD._asdict()}])
def test_a_record_of_another_format_is_none(ours: Any) -> None:
    entry = parse_entry({**CM_META, "crowdperf": ours}, Path("/c/x"))
    assert entry is not None
    assert entry.record is None


def test_names_in_a_record_are_texts_whatever_was_edited() -> None:
    ours = {"format": 1, **RECORD._asdict(), "explicit": [None, 3]}
    entry = parse_entry({**CM_META, "crowdperf": ours}, Path("/c/x"))
    assert entry and entry.record and entry.record.explicit == ("None", "3")


@pytest.mark.parametrize("meta", [None, [], "x", {}, {**CM_META, "automation_uid": "5b4e0237da074764"}])
def test_what_is_no_cache_entry_is_none(meta: Any) -> None:
    assert parse_entry(meta, Path("/c/x")) is None


def test_the_tag_tmp_marks_an_unfinished_entry() -> None:
    entry = parse_entry({**CM_META, "tags": ["tmp", "get"]}, Path("/c/x"))
    assert entry is not None
    assert not entry.is_complete


def test_an_unchanged_file_is_fine_and_a_touched_one_too(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    record = record_file(path, tmp_path)
    assert record.path == "data"
    assert file_problem(path, record, is_thorough=False) == ""
    os.utime(path)
    assert file_problem(path, record, is_thorough=False) == ""
    assert file_problem(path, record, is_thorough=True) == ""


def test_an_edit_that_hides_its_time_is_noticed_by_a_thorough_look_only(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    record = record_file(path, tmp_path)
    path.write_bytes(b"54321")
    os.utime(path, ns=(record.mtime_ns, record.mtime_ns))
    assert file_problem(path, record, is_thorough=False) == ""
    assert "was edited" in file_problem(path, record, is_thorough=True)


def test_a_file_outside_the_entry_is_recorded_with_its_whole_path(tmp_path: Path) -> None:
    path = tmp_path / "outside"
    path.write_bytes(b"x")
    assert record_file(path, tmp_path / "entry").path == str(path)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"files": 7}', '{"files": []}'])
def test_an_entry_whose_list_of_files_is_lost_says_so(tmp_path: Path, text: str | None) -> None:
    entry = parse_entry(OUR_META, tmp_path)
    assert entry is not None
    if text is not None:
        EntryPaths(tmp_path).details.write_text(text)
    assert details_of(entry) is None


def test_declared_files_survive_writing_and_reading(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x")
    record = record_file(tmp_path / "data", tmp_path)
    entry = parse_entry(OUR_META, tmp_path)
    assert entry is not None
    write_json(EntryPaths(tmp_path).details, {"files": [record._asdict()], "state_sha256": "a"})
    assert details_of(entry) == EntryDetails(files=(record,), state_sha256="a")
    write_json(EntryPaths(tmp_path).details, {"files": [{**record._asdict(), "size_bytes": []}], "state_sha256": "a"})
    assert details_of(entry) is None, "edited"
    write_json(EntryPaths(tmp_path).details, {"files": [{**record._asdict(), "path": 7}], "state_sha256": "a"})
    assert [file.path for file in (details_of(entry) or EntryDetails()).files] == ["7"]


def test_each_writing_has_another_stamp_even_in_the_same_tick(tmp_path: Path) -> None:
    path = tmp_path / "_cm.json"
    write_json(path, {"a": 1})
    os.utime(path, ns=(5, 5))
    first = stamp_of(path)
    write_json(path, {"a": 2})
    os.utime(path, ns=(5, 5))
    assert stamp_of(path) != first
