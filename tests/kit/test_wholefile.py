"""Files that are put in place whole, or once."""

from __future__ import annotations

import errno
import io
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crowdperf.kit.whole_file import copy_whole, link_or_copy, read_object, write_json, write_once, write_whole


def test_a_file_is_written_once_by_whoever_is_first(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with ThreadPoolExecutor(8) as pool:
        put = list(pool.map(lambda number: write_once(path, b"%d" % number * 1000, 0o600), range(8)))
    assert put.count(True) == 1
    assert path.read_bytes() == b"%d" % put.index(True) * 1000
    assert (stat.S_IMODE(path.stat().st_mode), os.listdir(tmp_path)) == (0o600, ["key"])
    assert not write_once(path, b"")


def test_a_file_is_shared_where_links_can_be_made_and_copied_where_not(tmp_path: Path, monkeypatch) -> None:
    source = tmp_path / "source"
    source.write_text("one", encoding="utf-8")
    (tmp_path / "link").symlink_to(source)
    link_or_copy(tmp_path / "link", tmp_path / "shared")
    assert (tmp_path / "shared").stat().st_ino == source.stat().st_ino

    def refuse(*paths: object) -> None:
        raise OSError("no links here")

    with pytest.raises(FileNotFoundError):
        link_or_copy(tmp_path / "gone", tmp_path / "nothing")
    monkeypatch.setattr("os.link", refuse)
    link_or_copy(tmp_path / "link", tmp_path / "copied")
    assert (tmp_path / "copied").read_text(encoding="utf-8") == "one"
    assert (tmp_path / "copied").stat().st_ino != source.stat().st_ino


def test_a_copy_takes_the_place_of_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "made" / "b"
    for text in ("1", "2"):
        source.write_text(text, encoding="utf-8")
        copy_whole(source, target)
        assert [(path.name, path.read_text(encoding="utf-8")) for path in target.parent.iterdir()] == [("b", text)]


def test_a_file_that_finds_no_room_is_named_and_its_beginning_removed(tmp_path: Path, monkeypatch) -> None:
    class Full(io.BytesIO):
        def write(self, content: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fdopen(descriptor: int, mode: str) -> Full:
        os.close(descriptor)
        return Full()

    monkeypatch.setattr("os.fdopen", fdopen)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_whole(tmp_path / "results.json", "{}")
    assert caught.value.filename == str(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    (tmp_path / f".folder.{os.getpid()}.part").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path / "folder", "{}")
    assert caught.value.filename == str(tmp_path / "folder")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({}, '{\n  "a": "\\u00e9",\n  "B": 1\n}\n'),
        ({"indent": 1, "end": ""}, '{\n "a": "\\u00e9",\n "B": 1\n}'),
        ({"indent": None, "ensure_ascii": False, "sort_keys": True}, '{"B": 1, "a": "\u00e9"}\n'),
    ],
)
@pytest.mark.parametrize("is_durable", [False, True])
def test_json_is_written_as_the_caller_says_and_on_disk_only_where_it_must_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: dict, text: str, is_durable: bool
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(os, "fsync", kept.append)
    write_json(tmp_path / "new" / "x.json", {"a": "\u00e9", "B": 1}, is_durable=is_durable, **form)
    assert (tmp_path / "new" / "x.json").read_text(encoding="utf-8") == text
    assert len(kept) == is_durable and [path.name for path in (tmp_path / "new").iterdir()] == ["x.json"]


@pytest.mark.parametrize("content", [b"[1]", b"1", b"null", b"{", b"\xff", b"[" * 100_000])
def test_any_other_content_is_no_object(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert read_object(tmp_path / "x.json") is None
