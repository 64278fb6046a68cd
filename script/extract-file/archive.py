"""Reads archives: tar (plain, gzip, bzip2, xz), zip, and single files packed with gzip, bzip2 or xz.

The kind is told by the first bytes of the file, not by its name. `open_archive` gives an `Archive`: its members, and a
way to read one member's bytes.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from .members import Kind, Member

KNOWN = "tar, tar.gz, tar.bz2, tar.xz, zip, gz, bz2, xz"
# What a damaged archive makes the libraries raise.
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile)
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

    def open(self, member: Member) -> IO[bytes]:
        """The bytes of a member that is a file."""


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at a path. Raises ArchiveError for a kind that is not known and for damage."""
    try:
        with contextlib.ExitStack() as stack:
            if _is_tar(path):
                yield _Tar(stack.enter_context(tarfile.open(path)))
            elif zipfile.is_zipfile(path):
                yield _Zip(stack.enter_context(zipfile.ZipFile(path)), path)
            else:
                yield _Packed(path)
    except DAMAGE as error:
        raise ArchiveError(
            f"{path} is damaged ({type(error).__name__}: {error}). hint: download it again, with its checksum"
        ) from error


def _is_tar(path: Path) -> bool:
    """Whether it is a tar archive. A packed file of zeros also reads as one, without members; that is none."""
    if not tarfile.is_tarfile(path):
        return False
    with tarfile.open(path) as tar:
        return tar.firstmember is not None or not _packing(path)


def _packing(path: Path) -> tuple[str, Callable[..., IO[bytes]]] | None:
    """The suffix and the opener of the packing that the first bytes name, None for no packing."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((value for magic, value in PACKED.items() if start.startswith(magic)), None)


class _Tar:
    is_one_file = False

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._infos: list[tarfile.TarInfo] = []

    def members(self) -> Iterator[Member]:
        for position, info in enumerate(self._tar):
            self._infos.append(info)
            kind = Kind.OTHER
            if info.isreg():
                kind = Kind.FILE
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

    def open(self, member: Member) -> IO[bytes]:
        opened = self._tar.extractfile(self._infos[member.position])
        assert opened is not None, "only files are opened"
        return opened


class _Zip:
    is_one_file = False

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._zip = archive
        self._path = path
        self._infos = archive.infolist()

    def members(self) -> Iterator[Member]:
        for position, info in enumerate(self._infos):
            if info.flag_bits & 0x1:  # APPNOTE.TXT section 4.4.4, bit 0: encrypted
                raise ArchiveError(f"{self._path} is encrypted ({info.filename!r}). hint: unpack it by hand")
            mode = info.external_attr >> 16  # the Unix mode, where the archive was made on Unix; else 0
            kind = Kind.FOLDER if info.is_dir() else Kind.FILE
            target = ""
            if stat.S_ISLNK(mode):
                kind, target = Kind.SYMLINK, self._zip.read(info).decode("utf-8", "replace")
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

    def open(self, member: Member) -> IO[bytes]:
        return self._zip.open(self._infos[member.position])


class _Packed:
    is_one_file = True

    def __init__(self, path: Path) -> None:
        found = _packing(path)
        if found is None:
            raise ArchiveError(f"{path} is none of: {KNOWN}. hint: look at it with `file`; check the download")
        self._path = path
        self._suffix, self._opener = found

    def members(self) -> Iterator[Member]:
        name = self._path.name
        yield Member(name=name[: -len(self._suffix)] if name.endswith(self._suffix) else name + ".out", kind=Kind.FILE)

    def open(self, member: Member) -> IO[bytes]:
        return self._opener(self._path, "rb")
