"""Makes a gzip tar, and reads one that somebody sent: in memory, within limits, regular files only, nothing on disk.

A block of 512 bytes at a time is unpacked and judged, so that a bomb ends at the first limit that it breaks. Names are
those of `parts/of/these-letters`; extended headers (PAX, GNU) are not read, because bundles have none.
"""

import gzip
import io
import json
import math
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from crowdperf.store.refusal import refused

_BLOCK = 512
_READ_BYTES = 64 * 1024
_PADDING_BYTES = 20 * _BLOCK
"""The end of a tar is padded with zeros to records of 20 blocks."""

_PART = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that a bundle may have. body_bytes: as it is sent. depth: parts of a name; json_depth: of brackets."""

    body_bytes: int = 4 << 20
    unpacked_bytes: int = 64 << 20
    member_bytes: int = 16 << 20
    members: int = 400
    depth: int = 9
    name_bytes: int = 200
    json_bytes: int = 1 << 20
    json_bytes_in_all: int = 4 << 20
    json_depth: int = 32
    string_length: int = 64 << 10


DEFAULT_LIMITS = Limits()


def packed(members: Mapping[str, bytes]) -> bytes:
    """Return a gzip tar without times, names of users or anything else of this machine."""
    stored = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=stored, mode="wb", filename="", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(content), 0o644
            tar.addfile(header, io.BytesIO(content))
    return stored.getvalue()


class _Unpacked:
    """The bytes behind the compression, in pieces of a given size."""

    def __init__(self, stream: IO[bytes], limits: Limits) -> None:
        self._stream, self._limits = stream, limits
        self._inflater = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self._waiting = bytearray()
        self._read = self._unpacked = 0

    def _more(self) -> bool:
        """Unpacks some more; returns False at the end."""
        if self._inflater.eof:
            return False
        packed = self._inflater.unconsumed_tail
        if not packed:
            packed = self._stream.read(_READ_BYTES)
            self._read += len(packed)
            if self._read > self._limits.body_bytes:
                raise refused("LIMIT", "", f"more than {self._limits.body_bytes} bytes", "a smaller bundle")
        try:
            piece = self._inflater.decompress(packed, _READ_BYTES)
        except zlib.error as error:
            raise refused("FORM", "", f"cannot be unpacked ({error})", "a gzip file") from None
        if not (packed or piece or self._inflater.eof):
            raise refused("FORM", "", "ends in the middle", "a whole gzip file")
        self._unpacked += len(piece)
        if self._unpacked > self._limits.unpacked_bytes:
            raise refused("LIMIT", "", f"more than {self._limits.unpacked_bytes} bytes unpacked", "a smaller bundle")
        self._waiting += piece
        return True

    def exactly(self, count: int) -> bytes:
        """Return so many bytes; raises BundleRefused where there are fewer."""
        while len(self._waiting) < count:
            if not self._more():
                raise refused("FORM", "", "the tar ends in the middle", "a whole tar")
        found = bytes(memoryview(self._waiting)[:count])
        del self._waiting[:count]
        return found

    def finish(self) -> None:
        """Raises BundleRefused for anything but a little padding behind the tar's end."""
        seen = 0
        while True:
            seen += len(self._waiting)
            if seen > _PADDING_BYTES or any(self._waiting):
                raise refused("FORM", "", "there is data after the end of the tar", "nothing")
            self._waiting.clear()
            if not self._more():
                break
        if self._inflater.unused_data or self._stream.read(1):
            raise refused("FORM", "", "there is data after the end of the gzip file", "nothing")


def _checked_name(header: tarfile.TarInfo, limits: Limits) -> str:
    name = header.name
    parts = name.split("/")
    is_usual = all(_PART.fullmatch(part) for part in parts) and len(name) <= limits.name_bytes
    if not is_usual or len(parts) > limits.depth:
        expected = f"at most {limits.depth} parts of letters, digits and . _ + -, {limits.name_bytes} in all"
        raise refused("NAME", "", f"a member is called {name[:80]!r}", expected)
    if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise refused("NAME", name, f"a member of type {header.type!r}", "regular files only")
    if header.size < 0:
        raise refused("FORM", name, f"{header.size} bytes", "0 or more")
    return name


def read_members(stream: IO[bytes], limits: Limits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """Return the files of a gzip tar in its order. Raises BundleRefused; reads no more than the limits allow."""
    source, found = _Unpacked(stream, limits), dict[str, bytes]()
    while True:
        block = source.exactly(_BLOCK)
        if not any(block):
            source.finish()
            return found
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError):
            raise refused("FORM", "", "a damaged header", "a tar of regular files") from None
        name = _checked_name(header, limits)
        if len(found) == limits.members:
            raise refused("LIMIT", name, f"more than {limits.members} members", "fewer")
        if name in found:
            raise refused("NAME", name, "a name comes twice", "each name once")
        if header.size > limits.member_bytes:
            raise refused("LIMIT", name, f"{header.size} bytes", f"at most {limits.member_bytes}")
        found[name] = source.exactly(header.size)
        source.exactly(-header.size % _BLOCK)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _texts_of(value: Any, most_depth: int) -> list[str]:
    """Every text in a JSON value, the names of fields included. Raises ValueError for one that is deeper, or has a
    number that is too large, such as 1e999."""
    texts, level = list[str](), [value]
    for _ in range(most_depth + 1):
        objects = [one for one in level if type(one) is dict]
        texts += [one for one in level if type(one) is str]
        if any(type(one) is float and math.isinf(one) for one in level):
            raise ValueError("a number is too large")
        texts += [name for one in objects for name in one]
        level = [inner for one in objects for inner in one.values()] + [
            inner for one in level if type(one) is list for inner in one
        ]
        if not level:
            return texts
    raise ValueError(f"more than {most_depth} brackets in each other")


def read_json_object(name: str, content: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Return the object in a JSON file that somebody sent. Raises BundleRefused for one that is damaged, too large or
    too deep, or has a name twice, a text that is too long or no Unicode, or a number that is none.
    """
    if len(content) > limits.json_bytes:
        raise refused("LIMIT", name, f"{len(content)} bytes of JSON", f"at most {limits.json_bytes}")
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant)
        texts = _texts_of(value, limits.json_depth)
    except (ValueError, RecursionError) as error:  # the parser ends a deep one so
        raise refused("FORM", name, f"not used: {str(error)[:120]}", "a JSON object of usual depth") from None
    if not isinstance(value, dict):
        raise refused("FORM", name, f"a JSON {type(value).__name__}", "a JSON object")
    if max(map(len, texts), default=0) > limits.string_length:
        longest = max(map(len, texts))
        raise refused("LIMIT", name, f"a text of {longest} characters", f"at most {limits.string_length}")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise refused("FORM", name, "a text with half a character", "Unicode") from None
    return value
