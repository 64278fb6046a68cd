"""A cache on a disk without a byte or an inode left: removing works, everything else says what is missing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import TemporaryHome

SIZE = "256k"
INODES = 64


@pytest.fixture
def disk(home: TemporaryHome, tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own with an entry of get-thing in the cache on it; get-other is not made yet."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={SIZE},nr_inodes={INODES}"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a file system")
    try:
        for alias in ("get-thing", "get-other"):
            home.recipe(alias, {"cache": True}, run_sh="echo x > data; echo CM_THING=$PWD/data > tmp-run-env.out")
        assert home.run_cm("get,thing", env=cache(folder)).code == 0
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def cache(disk: Path) -> dict[str, str]:
    return {"CROWDPERF_CACHE": str(disk / "cache")}


def fill_bytes(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass
    assert os.statvfs(disk).f_bavail == 0


def fill_inodes(disk: Path) -> None:
    try:
        for number in range(INODES):
            (disk / f"ballast-{number}").touch()
    except OSError:
        pass
    assert os.statvfs(disk).f_favail == 0


FILLS = [fill_bytes, fill_inodes]


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("words", [("gc", "cache", "-f", "--max-size=1"), ("rm", "cache", "--tags=get,thing", "-f")])
def test_entries_can_be_removed_from_a_full_disk(
    home: TemporaryHome, disk: Path, fill: object, words: tuple[str, ...]
) -> None:
    fill(disk)  # type: ignore[operator]
    done = home.cm(*words, env=cache(disk))
    assert done.code == 0, done.stderr
    assert list((disk / "cache").glob("*/_cm.json")) == []


@pytest.mark.parametrize("fill", FILLS)
def test_a_run_on_a_full_disk_says_what_is_free_where_and_what_frees_more(
    home: TemporaryHome, disk: Path, fill: object
) -> None:
    fill(disk)  # type: ignore[operator]
    failed = home.run_cm("get,other", env=cache(disk))
    text = failed.answer["error"]
    assert failed.code == 1
    assert "internal error" not in text
    assert "No space left on device" in text
    assert f"are free in {disk}/cache" in text
    assert ("0 B of 262.1 kB" if fill is fill_bytes else f"0 of {INODES} inodes") in text
    assert "cm gc cache -f" in text
    assert "CROWDPERF_CACHE" in text
    assert home.run_cm("get,thing", env=cache(disk)).code == 0, "an entry that is there can be used"
