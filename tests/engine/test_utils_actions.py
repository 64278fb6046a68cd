"""The helpers of ``cm ... utils``, without cmind."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from recipe_engine.actions import utils_actions as actions
from recipe_engine.rules.errors import HookFailed, RecipeError, RequestError

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
    with pytest.raises(HookFailed, match="nothing was unpacked"):
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
    with pytest.raises(HookFailed, match="nothing was unpacked"):
        actions.unzip_file({"filename": "a.tar", "path": "out"})


def test_a_missing_or_broken_archive_is_an_error(work: Path) -> None:
    with pytest.raises(actions.FileMissing) as caught:
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


# --- files ---


def test_json_and_yaml_become_each_other(work: Path) -> None:
    value = {"z": [1, "zwölf"], "a": {"no": False, "text": "no"}}
    (work / "a.json").write_text(json.dumps(value))
    assert actions.json2yaml({"input": "a.json"})["path"] == "a.yaml"
    assert actions.print_yaml({"file": "a.yaml"})["meta"] == value
    actions.yaml2json({"input": "a.yaml", "output": "b.json"})
    assert actions.print_json({"file": "b.json"})["meta"] == value
    assert (work / "b.json").read_text().index('"z"') < (work / "b.json").read_text().index('"a"')
    actions.sort_json({"input": "b.json"})
    assert (work / "b.json").read_text().index('"a"') < (work / "b.json").read_text().index('"z"')


def test_text_files_are_changed_as_a_whole(work: Path) -> None:
    (work / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    actions.dos2unix({"input": "a.txt", "output": "b.txt"})
    assert (work / "b.txt").read_bytes() == b"one\ntwo\n"
    assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert actions.replace_string_in_file({"input": "b.txt", "string": "two", "replacement": ""})["update"] is True
    assert (work / "b.txt").read_bytes() == b"one\n\n"
    assert actions.replace_string_in_file({"input": "b.txt", "string": "two", "replacement": "x"})["update"] is False
    with pytest.raises(RequestError, match="--replacement"):
        actions.replace_string_in_file({"input": "b.txt", "string": "two"})


def test_a_table_of_contents_links_the_headings_and_no_comments_in_code(work: Path) -> None:
    (work / "a.md").write_text("# Top, level\n```\n# no heading\n```\n## Sub (two)\n")
    actions.create_toc_from_md({"input": "a.md"})
    lines = (work / "a.md.toc").read_text().splitlines()
    assert lines[3:5] == ["* [Top, level](#top-level)", "  * [Sub (two)](#sub-two)"]


@pytest.mark.parametrize(
    "action, i, text",
    [
        (actions.json2yaml, {}, "--input"),
        (actions.sort_json, {"input": "bad.txt"}, "no JSON"),
        (actions.yaml2json, {"input": "bad.txt"}, "no YAML"),
        (actions.dos2unix, {"input": "binary"}, "UTF-8"),
        (actions.print_json, {"file": "none"}, "is not there"),
        (actions.prune_input, {}, "must be the input"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_clear_error(work: Path, action: Any, i: dict[str, Any], text: str) -> None:
    (work / "bad.txt").write_text("{: [")
    (work / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match=text):
        action(i)


def test_files_are_listed_with_commas(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "b").mkdir()
    (work / "b" / "c").touch()
    (work / "a").touch()
    assert actions.list_files_recursively({"out": "con"})["files"] == ["a", "b/c"]
    assert capsys.readouterr().out == "a,b/c\n"


# --- inputs of other actions ---


def test_tags_in_the_first_word_are_found() -> None:
    given: dict[str, Any] = {"artifact": "get python3", "parsed_artifact": [1]}
    actions.detect_tags_in_artifact({"input": given})
    assert given == {"tags": "get,python3"}
    given = {"artifact": "."}
    actions.detect_tags_in_artifact({"input": given})
    assert given == {}
    given = {"artifact": "detect-os"}
    actions.detect_tags_in_artifact({"input": given})
    assert given == {"artifact": "detect-os"}


def test_an_input_is_pruned_into_a_copy() -> None:
    given = {"action": "run", "out": "con", "tags": "a", "docker_x": 1, "env": {"A": "1"}}
    pruned = actions.prune_input({"input": given, "extra_keys_starts_with": ["docker_"]})["new_input"]
    assert pruned == {"tags": "a", "env": {"A": "1"}}
    pruned["env"]["A"] = "2"
    assert given["env"] == {"A": "1"}


def test_uids_and_secrets_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = actions.uid({"out": "con"})["uid"], actions.uid({})["uid"]
    assert capsys.readouterr().out == first + "\n"
    assert len(first) == 16 and int(first, 16) >= 0 and first != second
    assert actions.generate_secret({})["secret"] != actions.generate_secret({})["secret"]


def test_without_a_desktop_the_clipboard_is_an_error_or_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tkinter", None)
    with pytest.raises(RequestError, match="clipboard"):
        actions.copy_to_clipboard({"string": "x"})
    assert "tkinter" in actions.copy_to_clipboard({"string": "x", "skip_fail": True})["warning"]


@pytest.mark.parametrize(
    ("action", "extra", "text"),
    [
        (actions.dos2unix, {}, "#!/bin/sh\necho a\n"),
        (actions.replace_string_in_file, {"string": "echo a", "replacement": "true"}, "#!/bin/sh\r\ntrue\r\n"),
    ],
)
@pytest.mark.parametrize("mode", [0o755, 0o640, 0o4711])
def test_a_rewritten_file_keeps_its_mode_and_a_link_stays_a_link(
    work: Path, action: Callable[[dict[str, Any]], dict[str, Any]], extra: dict[str, str], text: str, mode: int
) -> None:
    Path("real").mkdir()
    script = Path("real/run.sh")
    script.write_bytes(b"#!/bin/sh\r\necho a\r\n")
    script.chmod(mode)
    link = Path("link.sh")
    link.symlink_to(script)
    action({"input": str(link), **extra})
    assert link.is_symlink()
    assert script.read_bytes().decode() == text
    assert script.stat().st_mode & 0o7777 == mode
    assert os.listdir("real") == ["run.sh"], "nothing else is left"


def test_sort_json_keeps_the_mode(work: Path) -> None:
    Path("a.json").write_text('{"b": 1, "a": 2}')
    Path("a.json").chmod(0o600)
    actions.sort_json({"input": "a.json"})
    assert Path("a.json").stat().st_mode & 0o777 == 0o600
