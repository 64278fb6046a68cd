"""The file `<name>.part` that a download grows in, its record beside it, and when its bytes may be used again."""

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


class PartBusy(Exception):
    """Another process downloads to the same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Where the bytes of a part come from, and the validator (strong ETag or date) that the server gave, or ""."""

    url: str
    validator: str


class Part:
    """An open, locked part. Its lifetime is that of one download; `open_part` makes it."""

    def __init__(self, target: Path, descriptor: int) -> None:
        self.target = target
        self.path = part_path(target)
        self.record_path = target.with_name(target.name + ".part.json")
        self._descriptor = descriptor

    @property
    def size_bytes(self) -> int:
        """How many bytes are there."""
        return os.fstat(self._descriptor).st_size

    def usable_bytes(self, url: str, *, has_checksum: bool) -> int:
        """How many bytes of an earlier try may be kept: all of them if it is sure to notice another file, else none.

        It is sure with a checksum to compare at the end, or when the same address gave a validator to ask with.
        """
        record = read_record(self.record_path)
        is_same = record is not None and record.url == url and bool(record.validator)
        return self.size_bytes if has_checksum or is_same else 0

    def resume_headers(self, url: str, have: int) -> dict[str, str]:
        """The headers that ask for the rest of the file: RFC 9110 section 13.1.5 (If-Range) and 14.2 (Range)."""
        if not have:
            return {}
        record = read_record(self.record_path)
        headers = {"Range": f"bytes={have}-"}
        if record is not None and record.url == url and record.validator:
            headers["If-Range"] = record.validator
        return headers

    def begin(self, start: int, url: str, headers: Mapping[str, str]) -> None:
        """Cuts the part to `start` bytes and writes down where what follows comes from."""
        os.ftruncate(self._descriptor, start)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        text = json.dumps({"url": url, "validator": validator_of(headers)})
        partial = self.record_path.with_name(self.record_path.name + ".tmp")
        partial.write_text(text, encoding="utf-8")
        partial.chmod(0o600)  # the address may hold a secret
        partial.replace(self.record_path)

    def append(self, block: bytes) -> None:
        """Writes at the end."""
        view = memoryview(block)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def discard(self) -> None:
        """Throws the bytes away; the part stays open and empty."""
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.record_path.unlink(missing_ok=True)

    def finish(self) -> None:
        """Moves the part to its name, with its bytes on the disk."""
        os.fsync(self._descriptor)
        self.path.replace(self.target)
        self.record_path.unlink(missing_ok=True)


# Not crowdperf.kit.file_locks: a base recipe depends on no library of MLPerf; the locked file is the download itself.
@contextlib.contextmanager
def open_part(target: Path) -> Iterator[Part]:
    """The part of a target, locked while in use. An empty part is removed at the end. Raises PartBusy."""
    path = part_path(target)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise PartBusy(f"another process is downloading to {path}\nhint: wait for it to end") from error
        # Another process may have moved the file to its name between open and lock.
        if path.exists() and os.stat(path).st_ino == os.fstat(descriptor).st_ino:
            break
        os.close(descriptor)
    part = Part(target, descriptor)
    try:
        yield part
    finally:
        if path.exists() and part.size_bytes == 0:
            path.unlink()
        os.close(descriptor)


def part_path(target: Path) -> Path:
    """Where a target's bytes are while they are not all there."""
    return target.with_name(target.name + ".part")


def read_record(path: Path) -> Record | None:
    """The record at a path, None where there is none that can be read."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Record(url=str(values["url"]), validator=str(values["validator"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def validator_of(headers: Mapping[str, str]) -> str:
    """The validator in a server's headers that If-Range may use: a strong ETag, else the date of change, else ""."""
    etag = headers.get("ETag", "")
    if etag and not etag.startswith("W/"):
        return etag
    return headers.get("Last-Modified", "")


def parse_content_range(text: str) -> tuple[int | None, int | None]:
    """First byte and length of the file in a Content-Range header ("bytes 5-9/10", "bytes */10"); None if not told."""
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", text.strip())
    if not found:
        return None, None
    start = int(found[1]) if found[1] else None
    return start, None if found[2] == "*" else int(found[2])
