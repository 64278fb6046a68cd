"""extract-file against random hostile archives: nothing outside of the folder changes, and the answer is honest.

The members draw from few names, so that they collide: links and what goes through them, other cases and spellings of a
name, hard links, files in the place of folders; the folder may hold files, links to the outside and hard links already.
"""

import io
import os
import random
import shutil
import stat
import tarfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_module

place = load_module("extract-file", "place")
archive = load_module("extract-file", "archive")
members = load_module("extract-file", "members")
inputs = load_module("extract-file", "inputs")

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")

REFUSALS = (members.Refused, archive.ArchiveError, place.PlaceError)
PARTS = ("a", "b", "a", "b", "A", "c", "up", "\u00e9", "e\u0301")
HOSTILE_NAMES = (
    "..",
    "../outside/new",
    "a/../../outside/secret",
    "",
    ".",
    "/",
    "-rf",
    "new\nline",
    "\x1b[31m",
    "a\\..\\b",
)
TARGETS = (".", "..", "../..", "a", "b", "a/b", "b/..", "../a", "a/up", "up/..", "../outside", "a/../b", "up/a", "old")
TAR_TYPES = (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.CONTTYPE, b"9")


@dataclass
class Draw:
    """Random archives; `world` is the folder that holds the place and what must not change."""

    random: random.Random
    world: Path
    counts: Counter[str] = field(default_factory=Counter)
    parts: tuple[str, ...] = PARTS

    def archive(self, count: int) -> bytes:
        """A tar or a zip; every other one with so many names that they rarely collide, so that it is unpacked."""
        self.parts = self.random.choice((PARTS, (*PARTS[:4], "up", *(f"n{number}" for number in range(60)))))
        return (self.tar if self.random.random() < 0.7 else self.zip)(count)

    def name(self) -> str:
        if self.random.random() < 0.01:
            return self.random.choice((*HOSTILE_NAMES, f"{self.world}/outside/secret", "n" * 300))
        return "/".join(self.random.choices(self.parts, k=self.random.choice((1, 1, 2, 2, 3))))

    def target(self) -> str:
        if self.random.random() < 0.02:
            return self.random.choice(("", "/", f"{self.world}/outside", "x" * 5000, "../place/../outside"))
        parts = self.random.choices((*self.parts, *TARGETS), k=self.random.choice((1, 1, 2, 3)))
        return "/".join(parts)

    def kind(self) -> str:
        return self.random.choices(("file", "folder", "link", "hard", "odd"), (50, 20, 25, 4, 1))[0]

    def tar(self, count: int) -> bytes:
        buffer = io.BytesIO()
        mode = self.random.choice(("w", "w", "w:gz"))
        with tarfile.open(fileobj=buffer, mode=mode, format=self.random.choice((0, 1, 2))) as tar:
            for number in range(count):
                info = tarfile.TarInfo("x")
                info.name, kind, data = self.name(), self.kind(), b""
                if kind == "file":
                    data = f"evil {number}".encode()
                info.size = len(data)
                info.type = {
                    "file": tarfile.REGTYPE,
                    "folder": tarfile.DIRTYPE,
                    "link": tarfile.SYMTYPE,
                    "hard": tarfile.LNKTYPE,
                    "odd": self.random.choice(TAR_TYPES),
                }[kind]
                info.linkname = {"link": self.target(), "hard": self.name()}.get(kind, "")
                try:
                    tar.addfile(info, io.BytesIO(data))
                except (ValueError, UnicodeError):  # a name that this format of tar cannot hold
                    self.counts["members left out"] += 1
        return buffer.getvalue()

    def zip(self, count: int) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", self.random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as packed:
            for number in range(count):
                kind = self.kind()
                info = zipfile.ZipInfo(self.name() + ("/" if kind == "folder" else ""))
                mode = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}.get(kind, stat.S_IFIFO)
                info.external_attr = (mode | 0o777) << 16
                data = self.target() if kind == "link" else "" if kind == "folder" else f"evil {number}"
                packed.writestr(info, data)
        return buffer.getvalue()

    def fill(self, folder: Path) -> None:
        """Puts into the place what an honest user, or an earlier hostile archive, left there."""
        for name in ("a", "b", "c"):
            kind = self.random.randrange(7)
            path = folder / name
            if kind == 0:
                path.symlink_to(self.random.choice(("../outside", "../outside/secret", "b", "nowhere")))
            elif kind == 1:
                path.mkdir()
                (path / "up").symlink_to(self.random.choice(("../../outside", "..")))
            elif kind == 2:
                os.link(self.world / "outside" / "secret", path)
            elif kind == 3:
                path.write_text("mine")


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder: kind, mode, inode, contents or target; of files the time, too."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            is_file = stat.S_ISREG(status.st_mode)
            content = Path(path).read_bytes() if is_file else os.readlink(path) if stat.S_ISLNK(status.st_mode) else b""
            time_ns = status.st_mtime_ns if is_file else 0
            found[os.path.relpath(path, root)] = (status.st_mode, status.st_ino, time_ns, content)
    return found


def order_of(draw: Draw, path: Path, folder: Path) -> Any:
    return inputs.ExtractRequest(
        archive=path,
        folder=folder,
        inner=draw.random.choice(("", "", "", "a")),
        result_name="",
        strip_folders=draw.random.choice((0, 0, 0, 1)),
        max_size_bytes=10_000,
        max_members=1000,
        overwrites=draw.random.random() < 0.7,
        removes_archive=False,
        final_env_name="",
    )


def check_one(draw: Draw, count: int) -> None:
    """Unpacks one random archive and looks at everything around it."""
    target, outside, path = (draw.world / name for name in ("place", "outside", "x.archive"))
    target.mkdir()
    is_fresh = draw.random.random() < 0.4
    if not is_fresh:
        draw.fill(target)
    path.write_bytes(draw.archive(count))
    asked = order_of(draw, path, target)
    before, place_before = snapshot(outside), snapshot(target)
    names_before = sorted(os.listdir(draw.world))
    try:
        unpacked = place.unpack(asked)
    except REFUSALS as error:
        draw.counts["refused"] += 1
        assert "some files may exist" not in str(error)
        assert snapshot(target) == place_before, f"not honest: {error}"
    else:
        draw.counts["unpacked"] += 1
        assert unpacked.tops
        draw.counts["paths made"] += len(set(snapshot(target)) - set(place_before))
        if is_fresh:
            for name, (mode, *_) in snapshot(target).items():
                if stat.S_ISLNK(int(str(mode))):
                    draw.counts["links made"] += 1
                    real = Path(os.path.realpath(target / name))
                    assert target in (real, *real.parents), f"{name} leads to {real}"
    assert snapshot(outside) == before
    assert sorted(os.listdir(draw.world)) == names_before
    assert not any(name.startswith(".extracting") for name in os.listdir(target))
    shutil.rmtree(target)


def fuzz(world: Path, seed: int, member_count: int) -> Counter[str]:
    """Unpacks random archives until they had so many members; returns what happened."""
    (world / "outside" / "folder").mkdir(parents=True)
    (world / "outside" / "secret").write_text("mine")
    (world / "outside" / "folder" / "more").write_text("mine")
    draw = Draw(random.Random(seed), world)
    while draw.counts["members"] < member_count:
        count = draw.random.choice((1, 2, 3, 4, 5, 6, 8, 12, 20, 40))
        try:
            check_one(draw, count)
        except BaseException:
            print(f"seed {seed}, archive {draw.counts['archives']}: kept in {world}")
            raise
        draw.counts["members"] += count
        draw.counts["archives"] += 1
    return draw.counts


def test_random_hostile_archives_change_nothing_outside(tmp_path: Path) -> None:
    counts = fuzz(tmp_path, seed=1, member_count=3000)
    assert counts["unpacked"] > 30, "most archives of the fuzzer are refused: it does not test the writing"
    assert counts["links made"] > 10


@pytest.mark.full
def test_a_hundred_thousand_hostile_members_change_nothing_outside(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    counts = fuzz(tmp_path, seed=seed, member_count=100_000)
    print(f"seed {seed}: {dict(counts)}; 0 changes outside of the place")
    assert counts["links made"] > 300
