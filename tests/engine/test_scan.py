"""Noticing changed folders by times and sizes: what may be trusted, and what every kind of change looks like."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from recipe_engine.disk.scan import COARSE_TICK_NS, ROOT, TICK_NS, UNTRUSTED, FolderScan, is_fresh, look_at, stats_of

NOW_NS = 1_795_000_000_123_456_789
SECOND_NS = 1_000_000_000
WHOLE_SECOND_NS = NOW_NS // SECOND_NS * SECOND_NS


@pytest.mark.parametrize(
    ("stamp_ns", "took_ns", "expected"),
    [
        (NOW_NS - TICK_NS - 1, 0, False),
        (NOW_NS - TICK_NS + 1, 0, True),
        (NOW_NS, 0, True),
        (NOW_NS + 5 * SECOND_NS, 10 * SECOND_NS, True),
        (NOW_NS + TICK_NS + 1, 0, False),
        (NOW_NS + 3600 * SECOND_NS, 0, False),
        (WHOLE_SECOND_NS, 0, True),
        (WHOLE_SECOND_NS - SECOND_NS, 0, True),
        (WHOLE_SECOND_NS - COARSE_TICK_NS, 0, False),
        (-1, 0, False),
    ],
    ids=[
        "older than a tick",
        "within a tick",
        "now",
        "written while it was read",
        "a clock that was set back",
        "the far future",
        "this second, on a disk that keeps seconds",
        "the second before",
        "two seconds before",
        "not there",
    ],
)
def test_what_was_written_around_the_time_of_reading_is_fresh(stamp_ns: int, took_ns: int, expected: bool) -> None:
    assert is_fresh(stamp_ns, NOW_NS, NOW_NS + took_ns) is expected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / "script" / name).mkdir(parents=True)
        (tmp_path / "script" / name / "_cm.yaml").write_text(f"alias: {name}\n")
    return tmp_path / "script"


def scan_of(root: Path) -> FolderScan:
    """A scan as it is kept and read back, looked at an hour from now, so that everything is trusted."""
    later_ns = time.time_ns() + 3600 * SECOND_NS
    groups = {ROOT: look_at(str(root), ROOT, (), later_ns)}
    groups |= {
        name: look_at(str(root), name, [str(root / name / file) for file in ("_cm.yaml", "_cm.json")], later_ns)
        for name in ("a", "b")
    }
    scan = FolderScan.of_groups(groups)
    again = FolderScan.of_blocks(scan.paths_block, scan.numbers)
    assert again == scan
    assert again.groups == groups
    return again


def test_folders_that_nobody_touched_are_unchanged(root: Path) -> None:
    assert scan_of(root).is_unchanged(str(root))


def test_every_kind_of_change_is_noticed(root: Path) -> None:
    scan = scan_of(root)
    (root / "c").mkdir()
    assert not scan.is_unchanged(str(root))
    scan = scan_of(root)
    (root / "c").rename(root / "d")
    assert not scan.is_unchanged(str(root))
    scan = scan_of(root)
    file = root / "a" / "_cm.yaml"
    before = file.stat()
    file.write_text("alias: z\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert not scan.is_unchanged(str(root)), "the time of the change itself cannot be set back"


def test_a_new_file_and_a_lost_one_are_noticed(root: Path) -> None:
    scan = scan_of(root)
    (root / "a" / "__pycache__").mkdir()
    assert scan.is_unchanged(str(root)), "what was not asked for is of no interest"
    (root / "a" / "_cm.json").write_text("{}")
    assert not scan.is_unchanged(str(root))
    scan = scan_of(root)
    (root / "b" / "_cm.yaml").unlink()
    assert not scan.is_unchanged(str(root))


def test_a_file_that_was_not_there_is_noticed_when_it_appears(root: Path) -> None:
    wanted = root.parent.parent / "base" / "_cm.yaml"
    group = look_at(str(root), "a", [str(wanted)], time.time_ns() + 3600 * SECOND_NS)
    scan = FolderScan.of_groups({"a": group})
    assert scan.is_unchanged(str(root))
    wanted.parent.mkdir()
    wanted.write_text("x")
    assert not scan.is_unchanged(str(root))


def test_what_was_just_written_is_not_trusted_and_counts_as_changed(root: Path) -> None:
    (root / "a" / "_cm.yaml").write_text("alias: y\n")
    group = look_at(str(root), "a", [str(root / "a" / "_cm.yaml")], time.time_ns())
    assert not group.is_trusted
    assert group.numbers == UNTRUSTED * 2
    assert not FolderScan.of_groups({"a": group}).is_unchanged(str(root))


@pytest.mark.parametrize("time_s", [-1, 0, 9_000_000_000, 15_000_000_000])
def test_times_of_any_age_are_numbers(root: Path, time_s: int) -> None:
    os.utime(root / "a" / "_cm.yaml", (time_s, time_s))
    assert len(stats_of(str(root), ["a/_cm.yaml"])) == 3


def test_names_may_be_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff new\nline")
    (tmp_path / name).mkdir()
    scan = FolderScan.of_groups({name: look_at(str(tmp_path), name, [], time.time_ns() + 3600 * SECOND_NS)})
    assert FolderScan.of_blocks(scan.paths_block, scan.numbers).is_unchanged(str(tmp_path))


def test_no_folders_are_a_scan_too(tmp_path: Path) -> None:
    scan = FolderScan.of_blocks(b"", b"")
    assert scan.groups == {}
    assert not scan.is_unchanged(str(tmp_path)), "it says nothing of the root"


@pytest.mark.parametrize("numbers", [b"", b"1234567", b"\0" * 25])
def test_a_damaged_scan_is_an_error(numbers: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        FolderScan.of_blocks(b"a", numbers)


def test_a_folder_without_files_is_watched_itself(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    scan = FolderScan.of_groups({"a": look_at(str(tmp_path), "a", [], time.time_ns() + 3600 * SECOND_NS)})
    assert scan.is_unchanged(str(tmp_path))
    (tmp_path / "a" / "_cm.yaml").touch()
    assert not scan.is_unchanged(str(tmp_path))
