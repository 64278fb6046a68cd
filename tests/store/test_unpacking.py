"""What somebody sends is unpacked within limits: a bomb ends early, a trick with a name is refused."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import with_python_path
from shared_results import packed

from crowdperf.store.archive import Limits, read_members
from crowdperf.store.refusal import BundleRefused

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
        (packed({"a": b"x"}) + b"more", "there is data after the end of the gzip file"),
        (packed({"a": b"x"}) + packed({"b": b"x"}), "there is data after the end of the gzip file"),
        (gzip.compress(gzip.decompress(packed({"a": b"x"})) + bytes(20_000)), "after the end of the tar"),
        (gzip.compress(gzip.decompress(packed({"a": b"x"}))[:1024] + b"x" * 600), "a damaged header"),
    ],
    ids=["nothing", "no gzip", "empty", "no tar", "cut off", "more", "two", "padding", "no header"],
)
def test_what_is_no_whole_gzip_tar_is_refused(content: bytes, message: str) -> None:
    assert message in _refusal(content)


def test_a_name_that_comes_twice_is_refused() -> None:
    raw = gzip.decompress(packed({"a": b"1"}))[:1024]
    assert "a name comes twice" in _refusal(gzip.compress(raw + raw + bytes(1024)))


def test_limits_are_kept() -> None:
    assert "more than 2 members" in _refusal(packed(dict.fromkeys("abc", b"")), Limits(members=2))
    assert "70000 bytes" in _refusal(packed({"a": bytes(70_000)}), Limits(member_bytes=69_000))
    assert "unpacked" in _refusal(packed({"a": bytes(3000), "b": bytes(3000)}), Limits(unpacked_bytes=4000))
    assert "more than 90 bytes" in _refusal(packed({"a": os.urandom(200)}), Limits(body_bytes=90))


READ = r"""
import io, re, sys, time
from pathlib import Path
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.archive import read_json_object, read_members
for path in sys.argv[1:]:
    content, begun = Path(path).read_bytes(), time.process_time()
    try:
        read_json_object("a", content) if path.endswith(".json") else read_members(io.BytesIO(content))
        print("read", end="; ")
    except BundleRefused as error:
        print(str(error)[:80], end="; ")
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(f"{time.process_time() - begun:.2f} s, {int(peak[1]) >> 10} MB")
"""


def _bombs(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that become large, many or deep when they are read, each with what is said of it."""
    one = tarfile.TarInfo("a")
    for name, size, said in (("declared", 500 << 20, "524288000 bytes"), ("within", 15 << 20, "bytes unpacked")):
        packer, one.size = zlib.compressobj(9, wbits=31), size
        content = [packer.compress(one.tobuf() + bytes(size if size < 100 << 20 else 1 << 20))]
        for number in range(30):
            one.name = f"a{number}"
            content.append(packer.compress((one.tobuf() if name == "within" else b"") + bytes(15 << 20)))
        (folder / name).write_bytes(b"".join([*content, packer.flush()]))
        yield folder / name, said
    (folder / "many").write_bytes(
        gzip.compress(b"".join(tarfile.TarInfo(f"m{n}").tobuf() for n in range(10_000)) * 100)
    )
    yield folder / "many", "more than 400 members"
    (folder / "zeros").write_bytes(gzip.compress(bytes(200 << 20)))
    yield folder / "zeros", "there is data after the end of the tar"
    texts = {"deep": "[" * 100_000, "quotes": '{"a": "' + '\\"' * 500_000, "wide": '{"a": [' + "[]," * 300_000 + "1]}"}
    for name, said in (("deep", "maximum recursion depth"), ("quotes", "Unterminated string"), ("wide", "read")):
        path = folder / f"{name}.json"
        path.write_text(texts[name])
        yield path, said


@pytest.mark.full
def test_bombs_are_refused_soon_and_in_little_memory(tmp_path: Path) -> None:
    bombs = list(_bombs(tmp_path))
    words = [sys.executable, "-c", READ, *(str(path) for path, _ in bombs)]
    done = subprocess.run(words, env=with_python_path("src"), capture_output=True, text=True, timeout=120, check=True)
    for (path, said), line in zip(bombs, done.stdout.splitlines(), strict=True):
        assert said in line, path.name
        assert int(line.split()[-2]) < 150, line  # MB, the interpreter included
