"""Reads archives: tar (plain, gzip, bzip2, xz), zip, and single files packed with gzip, bzip2 or xz.

The kind is told by the first bytes of the file, not by its name. `open_archive` gives an `Archive`: its members, and a
way to read one member's bytes. Nothing of an archive is read whole.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from .members import MAX_PATH_BYTES, Kind, Member, Refused

KNOWN = "tar, tar.gz, tar.bz2, tar.xz, zip, gz, bz2, xz"
BLOCK_BYTES = 1024 * 1024
MAX_HEADER_BYTES = 1024 * 1024
"""What a tar archive may say about one member (pax headers, long names, maps of holes): libarchive's limit, too."""
MAX_GLOBAL_HEADERS = 64
"""Fields of a tar archive that count for all members; `git archive` writes one."""
# What a damaged archive makes the libraries raise.
DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, gzip.BadGzipFile,
    ValueError, OverflowError, IndexError, KeyError, RecursionError, NotImplementedError,
)  # fmt: skip
# Magic numbers: RFC 1952 section 2.3.1; bzip2's "BZh"; the .xz file format, section 2.1.1.1.
PACKED: dict[bytes, tuple[str, Callable[..., IO[bytes]]]] = {
    b"\x1f\x8b": (".gz", gzip.open),
    b"BZh": (".bz2", bz2.open),
    b"\xfd7zXZ\x00": (".xz", lzma.open),
}


class ArchiveError(Exception):
    """The file is not an archive that can be read."""


class Archive(Protocol):
    """An open archive. `is_one_file` says that it is a file that was packed, not a collection."""

    is_one_file: bool

    def members(self) -> Iterator[Member]:
        """Its members, in order."""

    def blocks(self, member: Member) -> Iterator[bytes]:
        """The bytes of a member that is a file."""


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at a path. Raises ArchiveError for a kind that is not known and for damage."""
    try:
        with contextlib.ExitStack() as stack:
            tar = _open_tar(path, stack)
            if tar is not None:
                yield tar
            elif zipfile.is_zipfile(path):
                yield _Zip(stack.enter_context(zipfile.ZipFile(path)), path)
            else:
                yield _Packed(path)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's; a library's own has no number
            raise
        raise ArchiveError(
            f"{path} is damaged ({type(error).__name__}: {str(error)[:200]!r})\n"
            "hint: download it again, with its checksum"
        ) from error


def _open_tar(path: Path, stack: contextlib.ExitStack) -> _Tar | None:
    """The file as a tar archive, None when it is none. A packed file of zeros also reads as one, without members."""
    packing = _packing(path)
    file = stack.enter_context(packing[1](path, "rb") if packing else path.open("rb"))
    stream = _HeaderStream(file)
    try:
        tar = stack.enter_context(tarfile.TarFile(fileobj=stream))  # type: ignore[arg-type]
    except tarfile.TarError:
        return None
    return None if tar.firstmember is None and packing else _Tar(tar, stream)


def _packing(path: Path) -> tuple[str, Callable[..., IO[bytes]]] | None:
    """The suffix and the opener of the packing that the first bytes name, None for no packing."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((value for magic, value in PACKED.items() if start.startswith(magic)), None)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """What is in a file, in blocks; the file is closed at the end."""
    with file:
        while block := file.read(BLOCK_BYTES):
            yield block


class _HeaderStream:
    """A tar archive's bytes for `tarfile`, which reads a header of any size whole: here at most so much at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left_bytes = MAX_HEADER_BYTES
        self.seek, self.tell = file.seek, file.tell

    def read(self, size_bytes: int) -> bytes:
        """The next bytes. Raises Refused when more are asked for than are left."""
        if not 0 <= size_bytes <= self.left_bytes:
            raise Refused(
                f"no files were unpacked, because the headers of a member require {size_bytes} bytes more, "
                f"the limit is {MAX_HEADER_BYTES} in all\nhint: check that this is the right archive"
            )
        self.left_bytes -= size_bytes
        return self._file.read(size_bytes)


class _Tar:
    is_one_file = False

    def __init__(self, tar: tarfile.TarFile, stream: _HeaderStream) -> None:
        self._tar = tar
        self._stream = stream
        self._files: dict[int, tarfile.TarInfo] = {}
        self._is_empty = tar.firstmember is None

    def members(self) -> Iterator[Member]:
        for position in itertools.count():
            info = None if self._is_empty else self._tar.next()  # of an empty one Python 3.10 seeks to byte -1
            if info is None:
                break
            if info.size < 0:
                raise tarfile.ReadError(f"a size of {info.size} bytes")
            self._tar.members.clear()  # tarfile keeps all, with their headers
            info.pax_headers = {}
            if len(self._tar.pax_headers) > MAX_GLOBAL_HEADERS:
                raise Refused(f"no files were unpacked, because it has more than {MAX_GLOBAL_HEADERS} global headers")
            kind = Kind.OTHER
            if info.isreg():
                kind = Kind.FILE
                self._files[position] = info
            elif info.isdir():
                kind = Kind.FOLDER
            elif info.issym():
                kind = Kind.SYMLINK
            elif info.islnk():
                kind = Kind.HARDLINK
            yield Member(
                name=info.name,
                kind=kind,
                size_bytes=info.size if kind is Kind.FILE else 0,
                mode=info.mode,
                target=info.linkname,
                position=position,
            )
            self._stream.left_bytes = MAX_HEADER_BYTES
        self._stream.seek(self._tar.offset)  # tarfile takes a header that it cannot read for the end
        if self._stream.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError(f"no header at byte {self._tar.offset}")

    def blocks(self, member: Member) -> Iterator[bytes]:
        opened = self._tar.extractfile(self._files[member.position])
        assert opened is not None, "only files are opened"
        self._stream.left_bytes = member.size_bytes + BLOCK_BYTES
        return _blocks(opened)


class _Zip:
    is_one_file = False

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._zip = archive
        self._path = path
        self._infos = archive.infolist()

    def members(self) -> Iterator[Member]:
        for position, info in enumerate(self._infos):
            if info.flag_bits & 0x1:  # APPNOTE.TXT section 4.4.4, bit 0: encrypted
                raise ArchiveError(f"{self._path} is encrypted ({info.filename!r})\nhint: decrypt it first")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others unpack without limit
                raise ArchiveError(
                    f"{self._path} has {info.filename!r} packed by method {info.compress_type}, allowed are "
                    "0 (stored) and 8 (deflate)\nhint: pack it again, for example as tar.xz"
                )
            mode = info.external_attr >> 16  # the Unix mode, where the archive was made on Unix; else 0
            kind = Kind.FOLDER if info.is_dir() else Kind.FILE
            target = ""
            if stat.S_ISLNK(mode):
                kind, target = Kind.SYMLINK, self._target(info)
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = Kind.OTHER
            yield Member(
                name=info.filename,
                kind=kind,
                size_bytes=info.file_size if kind is Kind.FILE else 0,
                mode=stat.S_IMODE(mode) or 0o644,
                target=target,
                position=position,
            )

    def _target(self, info: zipfile.ZipInfo) -> str:
        """The target of a link, which is its contents; no more of it is read than a path may have."""
        with self._zip.open(info) as file:
            return os.fsdecode(file.read(MAX_PATH_BYTES))

    def blocks(self, member: Member) -> Iterator[bytes]:
        return _blocks(self._zip.open(self._infos[member.position]))


class _Packed:
    is_one_file = True

    def __init__(self, path: Path) -> None:
        found = _packing(path)
        if found is None:
            raise ArchiveError(f"{path} is none of: {KNOWN}\nhint: look at it with file, and check the download")
        self._path = path
        self._suffix, self._opener = found

    def members(self) -> Iterator[Member]:
        name = self._path.name
        yield Member(name=name[: -len(self._suffix)] if name.endswith(self._suffix) else name + ".out", kind=Kind.FILE)

    def blocks(self, member: Member) -> Iterator[bytes]:
        return _blocks(self._opener(self._path, "rb"))
