"""What somebody sends is unpacked within limits: a bomb ends early, a trick with a name is refused."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from results_store.refusal import BundleRefused
from results_store.unpacking import Limits, read_members
from shared_results import packed

SCRIPTS = Path(__file__).resolve().parents[2] / "script"


def _refusal(content: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(BundleRefused) as caught:
        read_members(io.BytesIO(content), limits or Limits())
    return str(caught.value)


def _tar_of(header: tarfile.TarInfo) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(header)
    return gzip.compress(raw.getvalue())


def test_members_come_in_their_order_with_their_contents() -> None:
    members = {"b/c.txt": b"x" * 1000, "a": b"", "d+1.json": b"{}"}
    assert list(read_members(io.BytesIO(packed(members))).items()) == list(members.items())


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x", "a/../b", "a//b", ".hidden", "a b", "a\nb", "a\x7fb", "ä", "-rf", "a/", "./a", "a" * 98,
     "/".join("abcdefghij"), "a" * 5000, "(" * 90],
)  # fmt: skip
def test_other_names_are_refused(name: str) -> None:
    limits = Limits(name_bytes=97)
    assert "a member is called" in _refusal(packed({name: b"x"}), limits) or "of type" in _refusal(packed({name: b"x"}))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE]
)
def test_only_regular_files_are_read(kind: bytes) -> None:
    header = tarfile.TarInfo("a")
    header.type, header.linkname = kind, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    assert "regular files only" in str(_problem(_tar_of(header)))


def _problem(content: bytes) -> object:
    with pytest.raises(BundleRefused) as caught:
        read_members(io.BytesIO(content))
    return caught.value.problems[0].expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends in the middle"),
        (b"no gzip", "cannot be unpacked"),
        (gzip.compress(b""), "the tar ends in the middle"),
        (gzip.compress(b"x" * 2000), "a damaged header"),
        (packed({"a": b"x"})[:-5], "ends in the middle"),
        (packed({"a": b"x"}) + b"more", "something stands behind the end of the gzip file"),
        (packed({"a": b"x"}) + packed({"b": b"x"}), "something stands behind the end of the gzip file"),
        (gzip.compress(gzip.decompress(packed({"a": b"x"})) + bytes(20_000)), "behind the end of the tar"),
        (gzip.compress(gzip.decompress(packed({"a": b"x"}))[:1024] + b"x" * 600), "a damaged header"),
    ],
)
def test_what_is_no_whole_gzip_tar_is_refused(content: bytes, message: str) -> None:
    assert message in _refusal(content)


def test_a_name_that_comes_twice_is_refused() -> None:
    raw = gzip.decompress(packed({"a": b"1"}))[:1024]
    assert "a name comes twice" in _refusal(gzip.compress(raw + raw + bytes(1024)))


def test_limits_are_kept() -> None:
    assert "more than 2 members" in _refusal(packed(dict.fromkeys("abc", b"")), Limits(members=2))
    assert "70000 bytes" in _refusal(packed({"a": bytes(70_000)}), Limits(unpacked_bytes=69_000))
    assert "unpacked" in _refusal(packed({"a": bytes(3000), "b": bytes(3000)}), Limits(unpacked_bytes=4000))
    assert "more than 90 bytes" in _refusal(packed({"a": os.urandom(200)}), Limits(body_bytes=90))


BOMBS = r"""
import gzip, io, resource, sys, tarfile, zlib
sys.path[:0] = sys.argv[1:3]
from results_store.refusal import BundleRefused
from results_store.unpacking import read_json_object, read_members
deflate = zlib.compressobj(9, wbits=31)
header = tarfile.TarInfo("a"); header.size = 500 << 20
zeros = b"".join([deflate.compress(header.tobuf()), *(deflate.compress(bytes(1 << 20)) for _ in range(500)),
                  deflate.flush()])
header.size = 30 << 20
inner = b"".join(tarfile.TarInfo(f"m{number}").tobuf() for number in range(20_000))
many = gzip.compress(inner * 50, 1)
deep = b"[" * 100_000 + b"]" * 100_000
quotes = b'{"a": "' + b'\\"' * 500_000
wide = b'{"a": [' + b"[]," * 600_000 + b"1]}"
before = resource.getrusage(resource.RUSAGE_SELF)
base = int(open("/proc/self/statm").read().split()[1]) * 4096
for call in (lambda: read_members(io.BytesIO(zeros)), lambda: read_members(io.BytesIO(many)),
             lambda: read_json_object("a", deep), lambda: read_json_object("a", quotes),
             lambda: read_members(io.BytesIO(gzip.compress(bytes(200 << 20), 1)))):
    try:
        call()
    except BundleRefused as error:
        print(error)
read_json_object("a", wide)
after = resource.getrusage(resource.RUSAGE_SELF)
print(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s",
      f"{(after.ru_maxrss * 1024) >> 20} MB", file=sys.stderr)
assert after.ru_maxrss * 1024 < 700 << 20
"""


@pytest.mark.full
def test_bombs_are_refused_in_little_memory() -> None:
    folders = [str(SCRIPTS / name) for name in ("get-mlperf-results-lib", "get-mlperf-results-store-lib")]
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, *folders], capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert "524288000 bytes" in lines[0] and "more than 400 members" in lines[1]
