"""The helpers of ``cm ... utils``, without cmind."""

import hashlib
import io
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from recipe_engine.actions import utils_actions as actions
from recipe_engine.rules.errors import HookFailed, NothingFound, RequestError

CONTENT = b"one line\n" * 1000


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a server whose ``/t.csv`` is CONTENT; all else is missing."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path == "/t.csv"
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Length", str(len(CONTENT) if is_there else 0))
            self.end_headers()
            self.wfile.write(CONTENT if is_there else b"")

        def log_message(self, *_: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def zip_of(path: Path, members: dict[str, str], modes: dict[str, int] | None = None) -> Path:
    """A zip archive with these texts."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, 0o644) << 16
            archive.writestr(info, text)
    return path


# --- downloads ---


def test_a_download_answers_name_path_and_size(address: str, work: Path) -> None:
    answer = actions.download_file({"url": f"{address}/t.csv"})
    assert answer == {"return": 0, "filename": "t.csv", "path": str(work / "t.csv"), "size": len(CONTENT)}
    assert (work / "t.csv").read_bytes() == CONTENT
    assert os.listdir(work) == ["t.csv"], "nothing half-loaded stays"


def test_a_download_takes_folder_name_and_checksums(address: str, work: Path) -> None:
    sums = {"md5sum": hashlib.md5(CONTENT).hexdigest(), "sha256sum": hashlib.sha256(CONTENT).hexdigest()}
    answer = actions.download_file({"url": f"{address}/t.csv", "path": "deep/er", "filename": "x", **sums})
    assert answer["path"] == str(work / "deep" / "er" / "x")
    assert (work / "deep" / "er" / "x").read_bytes() == CONTENT


def test_a_download_with_another_checksum_leaves_the_old_file(address: str, work: Path) -> None:
    (work / "t.csv").write_text("old")
    with pytest.raises(HookFailed, match="md5"):
        actions.download_file({"url": f"{address}/t.csv", "md5sum": "0" * 32})
    assert (work / "t.csv").read_text() == "old"


def test_a_missing_file_is_an_error_with_the_status(address: str, work: Path) -> None:
    with pytest.raises(HookFailed, match="404"):
        actions.download_file({"url": f"{address}/none.csv"})
    assert not (work / "none.csv").exists()


def test_a_download_without_address_says_so() -> None:
    with pytest.raises(RequestError, match="--url"):
        actions.download_file({})


@pytest.mark.parametrize(
    "given, variable, expected",
    [(True, None, "yes"), (False, None, "no"), ("no", None, "no"), (True, "no", "no"), (False, "yes", "yes")],
)
def test_verify_and_the_process_variable_decide_on_certificates(
    monkeypatch: pytest.MonkeyPatch, given: Any, variable: str | None, expected: str
) -> None:
    monkeypatch.delenv(actions.VERIFY_VARIABLE, raising=False)
    if variable:
        monkeypatch.setenv(actions.VERIFY_VARIABLE, variable)
    seen: list[dict[str, Any]] = []

    def hook(alias: str, name: str, env: dict[str, Any]) -> None:
        seen.append(dict(env))
        env["CM_DOWNLOAD_DOWNLOADED_PATH"] = __file__

    monkeypatch.setattr(actions, "_run_hook", hook)
    actions.download_file({"url": "https://files.example.org/t.csv", "verify": given})
    assert seen[0]["CM_VERIFY_SSL"] == expected


def test_without_the_recipes_beside_the_engine_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(actions, "CHECKOUT", tmp_path)
    with pytest.raises(RequestError, match="download-file") as caught:
        actions.download_file({"url": "https://files.example.org/t.csv"})
    assert "whole repository" in caught.value.hint


# --- archives ---


def test_a_zip_is_unpacked_beside_other_files_with_its_programs(work: Path) -> None:
    zip_of(work / "a.zip", {"top/run": "#!/bin/sh", "top/sub/b.txt": "b"}, {"top/run": 0o755})
    (work / "other").write_text("stays")
    actions.unzip_file({"filename": "a.zip"})
    assert (work / "top" / "sub" / "b.txt").read_text() == "b"
    assert os.access(work / "top" / "run", os.X_OK)
    assert (work / "other").read_text() == "stays"


def test_first_folders_are_stripped_and_old_files_replaced(work: Path) -> None:
    zip_of(work / "a.zip", {"top/b.txt": "new"})
    (work / "out").mkdir()
    (work / "out" / "b.txt").write_text("old")
    actions.unzip_file({"filename": str(work / "a.zip"), "path": "out", "strip_folders": 1})
    assert (work / "out" / "b.txt").read_text() == "new"


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped-by-test", "x/../../escaped"])
def test_an_archive_that_leaves_its_folder_is_refused_as_a_whole(work: Path, name: str) -> None:
    zip_of(work / "a.zip", {"good": "x", name: "bad"})
    (work / "out").mkdir()
    with pytest.raises(HookFailed, match="no files were unpacked"):
        actions.unzip_file({"filename": "a.zip", "path": "out"})
    assert os.listdir(work / "out") == []
    assert not (work / "escaped").exists()


def test_a_link_out_of_the_folder_is_refused(work: Path) -> None:
    with tarfile.open(work / "a.tar", "w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
        member = tarfile.TarInfo("out/passwd")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(HookFailed, match="no files were unpacked"):
        actions.unzip_file({"filename": "a.tar", "path": "out"})


def test_a_missing_or_broken_archive_is_an_error(work: Path) -> None:
    with pytest.raises(NothingFound) as caught:
        actions.unzip_file({"filename": "none.zip"})
    assert caught.value.code == 16
    (work / "bad.zip").write_text("no archive")
    with pytest.raises(HookFailed):
        actions.unzip_file({"filename": "bad.zip"})
    with pytest.raises(RequestError, match="strip_folders"):
        actions.unzip_file({"filename": "bad.zip", "strip_folders": "two"})


# --- versions, system ---


@pytest.mark.parametrize(
    "first, second, expected",
    [("1.10", "1.9", 1), ("3.9", "3.9.0", 0), ("3.9", "3.9.6", -1), ("3.9rc1", "3.9.1", -1), ("main", "1.0", -1)],
)
def test_versions_compare_as_1_0_or_minus_1(first: str, second: str, expected: int) -> None:
    assert actions.compare_versions({"version1": first, "version2": second})["comparison"] == expected


def test_a_command_gives_its_outputs_and_status(work: Path) -> None:
    answer = actions.system({"cmd": "echo out; echo err >&2; pwd; exit 3", "path": str(work)})
    assert answer == {
        "return": 0,
        "ret": 3,
        "stdout": f"out\n{work}",
        "stderr": "err",
        "std": f"out\n{work}\nerr",
    }
    assert os.listdir(work) == []


def test_a_command_can_leave_its_output_in_a_file_and_cannot_run_nowhere(work: Path) -> None:
    assert actions.system({"cmd": "echo kept # a comment", "stdout": "kept.txt"})["stdout"] == "kept"
    assert (work / "kept.txt").read_text() == "kept\n"
    with pytest.raises(RequestError, match="does not exist"):
        actions.system({"cmd": "true", "path": "none"})
    with pytest.raises(RequestError, match="--cmd"):
        actions.system({})


def test_os_info_is_a_copy_with_the_bits_asked_for() -> None:
    first = actions.get_host_os_info({"bits": "32"})["info"]
    first["env"]["X"] = "1"
    second = actions.get_host_os_info({})["info"]
    assert first["bits"] == "32"
    assert second["bits"] == "64" or sys.maxsize < 2**32
    assert second["env"] == {}
    assert second["bat_ext"] == ".sh"
