"""download-file: rules as tables; downloads from a server in this process, with its faults."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from local_server import IgnoreRange, LocalServer, Slow, Status, Truncate, Unpromised
from recipe_loader import PYTHONPATH, RECIPES, exported, input_values, load_module, load_recipe, recipe_meta

recipe = load_recipe("download-file")
download = load_module("download-file", "download")
inputs = load_module("download-file", "inputs")
checks = load_module("download-file", "checks")
part = load_module("download-file", "part")

DATA = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(DATA).hexdigest()
RIGHT = (checks.Checksum(algorithm="sha256", value=SHA256),)
WRONG = (checks.Checksum(algorithm="sha256", value="0" * 64),)


def get(target: Path, *urls: str, checksums: tuple[Any, ...] = RIGHT) -> Any:
    request = inputs.FileRequest(urls=urls, target=target, checksums=checksums)
    return download.download(request, first_delay_s=0.001)


def leave_part(target: Path, data: bytes, url: str = "", validator: str = "") -> None:
    """What an interrupted download leaves behind."""
    part.part_path(target).write_bytes(data)
    if url:
        target.with_name(target.name + ".part.json").write_text(json.dumps({"url": url, "validator": validator}))


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- rules ---


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://host/file.bin?download=1", "https://host/file.bin?download=1"),
        ("https://user:pass@host/f", "https://***@host/f"),
        ("https://host/f?id=3&X-Amz-Signature=abc&token=def", "https://host/f?id=3&X-Amz-Signature=***&token=***"),
        ("url: /f?API_KEY=abc (Caused by x)", "url: /f?API_KEY=*** (Caused by x)"),
    ],
)
def test_secrets_in_addresses_are_masked(text: str, masked: str) -> None:
    assert inputs.mask_secrets(text) == masked


@pytest.mark.parametrize(
    ("url", "mirrors", "expected"),
    [
        ("http://a/f", "", ("http://a/f",)),
        ("http://a/f", "http://b/f,http://a/f", ("http://a/f", "http://b/f")),
        ("http://a/f", "http://b/f,https://c/f", ("http://a/f", "http://b/f", "https://c/f")),
        ("http://a/x,y", "http://b/x,y http://c/x,y", ("http://a/x,y", "http://b/x,y", "http://c/x,y")),
        ("", "", ()),
    ],
)
def test_mirrors_have_commas_or_blanks_between_them(url: str, mirrors: str, expected: tuple[str, ...]) -> None:
    assert inputs.addresses(url, mirrors) == expected


@pytest.mark.parametrize(
    ("url", "name"),
    [("https://h/a/model.onnx", "model.onnx"), ("https://h/my%20file?x=1", "my file"), ("https://h/f#part", "f")],
)
def test_the_file_name_is_the_last_part_of_the_address(url: str, name: str) -> None:
    assert inputs.url_file_name(url) == name


def asked_in(env: dict[str, Any]) -> Any:
    return inputs.asked_in(env, input_values("download-file", env))


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "no address"),
        ({"CM_DOWNLOAD_URL": "https://host/"}, "--filename"),
        ({"CM_DOWNLOAD_URL": "ftp://host/f"}, "allowed: http, https"),
        ({"CM_DOWNLOAD_URL": "host/f"}, "allowed: http, https"),
        ({"CM_DOWNLOAD_URL": "https://h/f", "CM_DOWNLOAD_CHECKSUM": "g" * 32}, "32 hexadecimal digits"),
        ({"CM_DOWNLOAD_URL": "https://h/f", "CM_DOWNLOAD_FILENAME": "../f"}, "not the name of a file"),
        ({"CM_DOWNLOAD_URL": "https://h/%2e%2e"}, "not the name of a file"),
        ({"CM_DOWNLOAD_URL": "https://h/%2Fetc%2Fpasswd"}, "not the name of a file"),
        ({"CM_DOWNLOAD_URL": "https://h/f", "CM_DOWNLOAD_FINAL_ENV_NAME": "A-B"}, "--env_key"),
        ({"CM_DOWNLOAD_LOCAL_FILE_PATH": "/no/such/file"}, "does not exist"),
        ({"CM_DOWNLOAD_URL": "http://[::1/f"}, "is not an address"),
        ({"CM_DOWNLOAD_URL": "http://[1:2/f]/x"}, "is not an address"),
        ({"CM_DOWNLOAD_URL": "http://a]b/f"}, "is not an address"),
        ({"CM_DOWNLOAD_URL": "http://h:99999/f"}, "is not an address"),
        ({"CM_DOWNLOAD_URL": "file://[::1/f"}, "is not an address"),
        ({"CM_DOWNLOAD_URL": "https://h/f", "CM_DOWNLOAD_MIRRORS": "http://[::1/f"}, "is not an address"),
        *(
            ({"CM_DOWNLOAD_URL": f"https://h/{name}"}, "is a name that the engine uses")
            for name in ("_cm.json", "_CM.JSON", "%5fcm.json", "tmp-run.sh", "entry.json", "log.txt", "used")
        ),
        ({"CM_DOWNLOAD_URL": "https://h/f", "CM_DOWNLOAD_FILENAME": "cm-cached-state.json"}, "the engine uses"),
        ({"CM_DOWNLOAD_URL": "https://h/-rf"}, "would be read as a flag"),
        *(
            ({"CM_DOWNLOAD_URL": f"https://h/{name}"}, "is not the name of a file")
            for name in ("a%0Ab", "%1b[31mx", "a%00", "a%E2%80%AEb", "a%E2%80%8Bb", "%C2%85", "%2e", "n" * 241)
        ),
    ],
)
def test_an_order_that_cannot_be_is_refused_with_a_hint(env: dict[str, str], says: str) -> None:
    with pytest.raises(inputs.InputError) as caught:
        asked_in(env)
    text, _, hint = str(caught.value).partition("\nhint: ")
    assert says in str(caught.value)
    assert hint
    assert f"{text}{hint}".isprintable()


def test_a_local_file_may_have_any_name_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(DATA)
    env = {"CM_DOWNLOAD_LOCAL_FILE_PATH": str(tmp_path / "log.txt")}
    assert asked_in(env).target == tmp_path / "log.txt"
    with pytest.raises(inputs.InputError, match="the engine uses"):
        asked_in({**env, "CM_DOWNLOAD_PATH": str(tmp_path / "elsewhere")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bytes 5-9/10", (5, 10)), ("bytes */10", (None, 10)), ("bytes 5-9/*", (5, None)), ("", (None, None))],
)
def test_content_range_gives_start_and_length(text: str, expected: tuple[int | None, int | None]) -> None:
    assert part.parse_content_range(text) == expected


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"ETag": '"abc"', "Last-Modified": "Mon"}, '"abc"'),
        ({"ETag": 'W/"abc"', "Last-Modified": "Mon"}, "Mon"),
        ({"ETag": 'W/"abc"'}, ""),
    ],
)
def test_a_weak_etag_is_no_validator(headers: dict[str, str], validator: str) -> None:
    assert part.validator_of(headers) == validator


def test_progress_is_a_line_a_second_where_there_is_no_terminal() -> None:
    class Lines(list[str]):
        write = list.append

        def isatty(self) -> bool:
            return False

        def flush(self) -> None:
            """Nothing to do."""

    lines = Lines()
    times = iter([0.0, 0.2, 1.1, 1.5, 2.0])
    report = recipe.terminal_progress("f", lines, lambda: next(times))
    for done in (1, 2, 3, 4):
        report(done * 1024 * 1024, 4 * 1024 * 1024)
    assert [line.split(",")[0] for line in lines] == [
        "download f: 2.0 of 4.0 MiB (50 %)",
        "download f: 4.0 of 4.0 MiB (100 %)",
    ]
    assert recipe.progress_line("f", 5, None, 0.0) == "download f: 0.0 MiB, 0.0 MiB/s"


# --- downloads ---


def test_a_file_is_downloaded_whole_and_nothing_else_is_left(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA)
    result = get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert (result.size_bytes, result.resumed_bytes) == (len(DATA), 0)
    assert names_in(tmp_path) == {"f"}


@pytest.mark.parametrize("size", [0, 1])
def test_an_empty_file_is_a_file(server: LocalServer, tmp_path: Path, size: int) -> None:
    server.put("/f", b"x" * size)
    get(tmp_path / "f", server.url("/f"), checksums=())
    assert (tmp_path / "f").read_bytes() == b"x" * size
    assert names_in(tmp_path) == {"f"}


@pytest.mark.parametrize(
    "faults",
    [[Status(503)], [Status(500), Status(429, retry_after_s=0)], [Truncate(1000)], [Truncate(1000), Status(502)]],
    ids=["503", "500 and 429", "short body", "short body and 502"],
)
def test_passing_faults_are_tried_again(server: LocalServer, tmp_path: Path, faults: list[Any]) -> None:
    server.put("/f", DATA, faults=faults)
    get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert len(server.requests) == len(faults) + 1


def test_after_a_short_body_only_the_rest_is_asked_for(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Truncate(500_000)])
    result = get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert result.resumed_bytes > 0
    assert server.requests[1].range == f"bytes={result.resumed_bytes}-"
    assert server.requests[1].if_range == '"one"'
    assert server.statuses == [200, 206]


def test_a_fault_that_stays_is_given_up_after_four_tries_and_named_once(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Status(503)] * 9)
    with pytest.raises(download.DownloadError) as caught:
        get(tmp_path / "f", server.url("/f?token=abc"))
    assert server.statuses == [503] * 4
    assert str(caught.value).count("the server answered 503") == 1 and "(4 times)" in str(caught.value)
    assert "--from=FILE" in str(caught.value)
    assert "abc" not in str(caught.value)
    assert names_in(tmp_path) == set()


def test_a_missing_file_is_not_tried_again_but_the_mirror_is(server: LocalServer, tmp_path: Path) -> None:
    server.put("/mirror/f", DATA)
    result = get(tmp_path / "f", server.url("/f"), server.url("/mirror/f"))
    assert result.url == server.url("/mirror/f")
    assert server.statuses == [404, 200]


def test_a_server_that_is_not_there_is_an_error_without_a_trace(tmp_path: Path) -> None:
    with pytest.raises(download.DownloadError, match=r"no connection to [\w.]+: Connection refused"):
        get(tmp_path / "f", "http://127.0.0.1:9/f")


CLOSED = "http://127.0.0.1:9/f"


@pytest.mark.parametrize(
    ("mirror", "proxies", "says"),
    [
        ("", {}, ["http://127.0.0.1:9/f: no connection to 127.0.0.1: Connection refused"]),
        ("/f", {}, []),
        ("", {"http_proxy": "http://proxy.example.org:3128"}, []),
        ("", {"NO_PROXY": "127.0.0.1"}, ["http://127.0.0.1:9/f: no connection to 127.0.0.1: Connection refused"]),
    ],
)
def test_a_server_is_unreachable_only_where_no_mirror_and_no_proxy_is_a_way(
    mirror: str, proxies: dict[str, str], says: list[str], server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "getproxies", dict)
    urls = (CLOSED, server.url(mirror)) if mirror else (CLOSED,)
    assert download.unreachable(urls, proxies) == says
    assert server.requests == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "no connection to 127.0.0.1: Connection refused"),
        (("--mirrors=http://h:99999/f",), "'http://h:99999/f' is not an address"),
        (("--from={file}",), ""),
        (("--mirrors={server}",), ""),
    ],
)
def test_before_packages_are_installed_it_is_asked_whether_the_server_of_a_download_is_there(
    words: tuple[str, ...], why: str, home: TemporaryHome, server: LocalServer, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_bytes(DATA)
    server.put("/f", DATA)
    keys = {"from": "CM_DOWNLOAD_LOCAL_FILE_PATH", "mirrors": "CM_DOWNLOAD_MIRRORS"}
    data = {"env": {"CM_DOWNLOAD_URL": CLOSED}, "input_mapping": keys, "prehook_deps": [{"tags": "download,file"}]}
    home.recipe("get-package", {"cache": True})
    home.recipe("get-data", {"cache": True, **data})
    deps = [{"tags": "get,package"}, {"tags": "get,data"}]
    home.recipe("run-all", {"plan_first": True, "deps": deps, "input_mapping": keys})
    line = [word.format(file=tmp_path / "mine", server=server.url("/f")) for word in words]
    done = home.cm("run", "script", "--tags=run,all", "--quiet", *line, "--out=json")
    found = [entry["associated_script_artifact"].partition(",")[0] for entry in home.entries()]
    made = [] if why else ["get-package", "get-data"]
    assert (done.code == 0, sorted(found, reverse=True)) == (not why, made), done.stdout
    assert why in done.answer.get("error", "")


def test_a_wrong_checksum_names_both_values_and_leaves_nothing(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA)
    with pytest.raises(download.DownloadError) as caught:
        get(tmp_path / "f", server.url("/f"), checksums=WRONG)
    assert SHA256 in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert server.statuses == [200]
    assert names_in(tmp_path) == set()


def test_a_mirror_with_another_file_is_passed_over(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", b"something else")
    server.put("/mirror/f", DATA)
    get(tmp_path / "f", server.url("/f"), server.url("/mirror/f"))
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_part_of_an_earlier_run_is_gone_on_with(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA)
    leave_part(tmp_path / "f", DATA[:700_000], server.url("/f"), '"one"')
    result = get(tmp_path / "f", server.url("/f"), checksums=())
    assert (tmp_path / "f").read_bytes() == DATA
    assert result.resumed_bytes == 700_000
    assert server.statuses == [206]


def test_a_part_of_another_version_of_the_file_is_not_mixed_with_it(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, etag='"two"')
    leave_part(tmp_path / "f", b"old" * 1000, server.url("/f"), '"one"')
    result = get(tmp_path / "f", server.url("/f"), checksums=())
    assert (tmp_path / "f").read_bytes() == DATA
    assert result.resumed_bytes == 0


@pytest.mark.parametrize(("url", "validator"), [("", ""), ("http://other/f", '"one"'), ("SAME", "")])
def test_without_checksum_a_part_nobody_vouches_for_is_thrown_away(
    server: LocalServer, tmp_path: Path, url: str, validator: str
) -> None:
    server.put("/f", DATA)
    leave_part(tmp_path / "f", b"old" * 1000, server.url("/f") if url == "SAME" else url, validator)
    get(tmp_path / "f", server.url("/f"), checksums=())
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.requests[0].range is None


def test_with_a_checksum_a_part_is_used_and_if_it_was_wrong_all_is_fetched_anew(
    server: LocalServer, tmp_path: Path
) -> None:
    server.put("/f", DATA)
    leave_part(tmp_path / "f", b"\xff" * 1000)
    get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.statuses == [206, 200]


def test_a_part_that_is_already_whole_is_only_checked(server: LocalServer, tmp_path: Path) -> None:
    """What a kill between the last byte and the move leaves."""
    server.put("/f", DATA)
    leave_part(tmp_path / "f", DATA, server.url("/f"), '"one"')
    get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.statuses == [416]


def test_a_part_longer_than_the_file_is_thrown_away(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA)
    leave_part(tmp_path / "f", DATA + b"more", server.url("/f"), '"one"')
    get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.statuses == [416, 200]


def test_a_server_without_ranges_sends_all_and_nothing_is_doubled(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Truncate(500_000), IgnoreRange()])
    get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.statuses == [200, 200]


def get_limited(server: LocalServer, tmp_path: Path, limit: int | None) -> Any:
    request = inputs.FileRequest(urls=(server.url("/f"),), target=tmp_path / "f", max_size_bytes=limit)
    return download.download(request, first_delay_s=0.001)


def test_a_stream_without_a_length_ends_at_the_default_limit(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_UNPROMISED_BYTES", len(DATA) - 1)
    server.put("/f", DATA, faults=[Unpromised()])
    with pytest.raises(download.DownloadError, match=rf"more than {len(DATA) - 1} bytes came.*--max_size_bytes=N"):
        get_limited(server, tmp_path, None)
    assert names_in(tmp_path) == set()
    assert server.statuses == [200], "an endless stream is not tried again"


def test_the_users_limit_allows_more_and_counts_for_a_promised_length_too(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_UNPROMISED_BYTES", 1000)
    server.put("/f", DATA, faults=[Unpromised()])
    assert get_limited(server, tmp_path, len(DATA)).size_bytes == len(DATA)
    (tmp_path / "f").unlink()
    with pytest.raises(download.DownloadError, match=f"has {len(DATA)} bytes, --max_size_bytes allows 1000"):
        get_limited(server, tmp_path, 1000)
    assert names_in(tmp_path) == set()


def test_the_free_space_is_watched_while_bytes_come(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    sizes = iter([usage(10**9, 0, 10**9), usage(10**9, 0, 1000)])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: next(sizes))
    monkeypatch.setattr(download, "BLOCKS_PER_LOOK", 2)
    server.put("/f", DATA, faults=[Unpromised()])
    with pytest.raises(download.DownloadError, match="1000 are free"):
        get(tmp_path / "f", server.url("/f"))


def test_what_a_server_says_is_shown_without_escapes(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Status(404, reason="\x1b[31mgone\x9b")])
    with pytest.raises(download.DownloadError, match=r"answered 404 \\x1b\[31mgone\\x9b"):
        get(tmp_path / "f", server.url("/f"))


def test_a_redirect_to_no_address_is_an_error_of_the_download(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Status(302, location="http://[::1/f")] * 4)
    with pytest.raises(download.DownloadError, match="Invalid"):
        get(tmp_path / "f", server.url("/f"))


def test_too_little_disk_is_noticed_before_the_first_byte(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 5, 5))
    server.put("/f", DATA)
    with pytest.raises(download.DownloadError, match=rf"{len(DATA)} bytes are needed .* 5 are free"):
        get(tmp_path / "f", server.url("/f"))
    assert names_in(tmp_path) == set()


def test_a_file_that_is_there_stays_whole_until_the_new_one_is(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    server.put("/f", DATA, faults=[Status(503)] * 9)
    with pytest.raises(download.DownloadError):
        get(tmp_path / "f", server.url("/f"))
    assert (tmp_path / "f").read_bytes() == b"old"


def test_two_processes_never_write_one_part(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA)
    with part.open_part(tmp_path / "f"), pytest.raises(part.PartBusy, match="another process"):
        get(tmp_path / "f", server.url("/f"))


def test_a_killed_download_goes_on_where_it_ended(server: LocalServer, tmp_path: Path) -> None:
    server.put("/f", DATA, faults=[Slow(pieces=200, pause_s=0.02)])
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from recipe_loader import load_module\n"
        "download = load_module('download-file', 'download')\n"
        "request = download.inputs.FileRequest(urls=(sys.argv[1],), target=Path(sys.argv[2]))\n"
        "download.download(request)\n"
    )
    target = tmp_path / "f"
    command = [sys.executable, "-c", code, server.url("/f"), str(target)]
    running = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": PYTHONPATH})
    while running.poll() is None and not (part.part_path(target).exists() and part.part_path(target).stat().st_size):
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert not target.exists()
    result = get(target, server.url("/f"))
    assert result.resumed_bytes > 0
    assert target.read_bytes() == DATA
    assert names_in(tmp_path) == {"f"}


# --- the hook ---


def test_the_hook_downloads_into_the_current_folder_and_declares_the_file(
    hook_input: Any, server: LocalServer, inside: Path
) -> None:
    server.put("/model.onnx", DATA)
    env = {
        "CM_DOWNLOAD_URL": server.url("/model.onnx"),
        "CM_DOWNLOAD_SHA256": SHA256.upper(),
        "CM_DOWNLOAD_CHECKSUM": hashlib.md5(DATA).hexdigest(),
        "CM_DOWNLOAD_FINAL_ENV_NAME": "CM_MODEL",
    }
    call = hook_input(env)
    assert recipe.preprocess(call) == {"return": 0}
    path = str(inside / "model.onnx")
    assert exported("download-file", call["env"]) == {
        "CM_DOWNLOAD_DOWNLOADED_FILENAME": "model.onnx",
        "CM_DOWNLOAD_DOWNLOADED_PATH": path,
        "CM_GET_DEPENDENT_CACHED_PATH": path,
    }
    assert call["env"]["CM_MODEL"] == path
    locked = {"locked": {"downloads": {"model.onnx": SHA256}}}
    assert recipe.postprocess(call) == {"return": 0, "files": [path], **locked}


def test_a_file_with_the_right_checksum_is_not_downloaded_again_and_a_wrong_one_is(
    hook_input: Any, server: LocalServer, inside: Path
) -> None:
    server.put("/f", DATA)
    env = {"CM_DOWNLOAD_URL": server.url("/f"), "CM_DOWNLOAD_SHA256": SHA256}
    (inside / "f").write_bytes(DATA)
    assert recipe.preprocess(hook_input(dict(env))) == {"return": 0}
    assert server.requests == []
    (inside / "f").write_bytes(b"edited")
    assert recipe.preprocess(hook_input(dict(env))) == {"return": 0}
    assert (inside / "f").read_bytes() == DATA


@pytest.mark.parametrize(
    ("checksums", "checked", "says"),
    [
        ({}, "", "WARNING: no checksum is known for f"),
        (
            {"CM_DOWNLOAD_CHECKSUM": hashlib.md5(DATA).hexdigest()},
            "md5",
            "over http, which can be changed in transit",
        ),
        ({"CM_DOWNLOAD_SHA256": SHA256}, "sha256", ""),
    ],
)
def test_the_sha256_is_written_down_at_the_first_use(
    hook_input: Any, server: LocalServer, inside: Path, capsys: Any, checksums: dict[str, str], checked: str, says: str
) -> None:
    server.put("/f", DATA)
    server.put("/g", b"other")
    url = server.url("/f").replace("http://", "http://user:secret@") if not checksums else server.url("/f")
    call = hook_input({"CM_DOWNLOAD_URL": url, **checksums})
    assert recipe.preprocess(call) == {"return": 0}
    assert says in (told := capsys.readouterr().err)
    assert (SHA256 in told) is bool(says)
    assert recipe.preprocess(hook_input({"CM_DOWNLOAD_URL": server.url("/g")})) == {"return": 0}
    content = json.loads((inside / "downloads.json").read_text())
    assert (content["format"], sorted(content["files"])) == (1, ["f", "g"])
    row = content["files"]["f"]
    assert (row["sha256"], row["size_bytes"], row["checked"]) == (SHA256, len(DATA), checked)
    assert "secret" not in row["url"]
    assert recipe.postprocess(call)["locked"] == {"downloads": {"f": SHA256}}


def test_a_locked_sha256_is_asked_of_the_next_download(hook_input: Any, server: LocalServer, inside: Path) -> None:
    server.put("/f", DATA)
    call = {**hook_input({"CM_DOWNLOAD_URL": server.url("/f")}), "locked": {"downloads": {"f": "0" * 64}}}
    answer = recipe.preprocess(call)
    assert answer["return"] == 1
    assert SHA256 in answer["error"] and "0" * 64 in answer["error"]
    assert names_in(inside) == set()
    assert recipe.preprocess({**call, "locked": {"downloads": {"f": SHA256}}}) == {"return": 0}


def test_a_failed_download_is_cms_error_and_not_an_exception(
    hook_input: Any, server: LocalServer, inside: Path
) -> None:
    answer = recipe.preprocess(hook_input({"CM_DOWNLOAD_URL": server.url("/none")}))
    assert answer["return"] == 1
    assert answer["error"].startswith("none could not be downloaded")
    assert "404" in answer["error"]
    assert os.listdir(inside) == []


@pytest.mark.parametrize("way", ["from", "file address"])
def test_a_local_file_is_taken_where_it_lies(hook_input: Any, inside: Path, tmp_path: Path, way: str) -> None:
    source = tmp_path / "my file.bin"
    source.write_bytes(DATA)
    given = {"CM_DOWNLOAD_LOCAL_FILE_PATH": str(source)}
    if way == "file address":
        given = {"CM_DOWNLOAD_URL": source.as_uri()}
    call = hook_input({**given, "CM_DOWNLOAD_SHA256": SHA256})
    assert recipe.preprocess(call) == {"return": 0}
    assert call["env"]["CM_DOWNLOAD_DOWNLOADED_PATH"] == str(source)
    assert recipe.postprocess(call)["files"] == []
    assert os.listdir(inside) == []


def test_a_local_file_is_copied_to_a_place_that_is_named_and_checked(
    hook_input: Any, inside: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(DATA)
    env = {"CM_DOWNLOAD_LOCAL_FILE_PATH": str(source), "CM_DOWNLOAD_FILENAME": "copy.bin"}
    call = hook_input(dict(env))
    assert recipe.preprocess(call) == {"return": 0}
    assert (inside / "copy.bin").read_bytes() == DATA
    answer = recipe.preprocess(hook_input({**env, "CM_DOWNLOAD_SHA256": "0" * 64}))
    assert answer["return"] == 1
    assert SHA256 in answer["error"]


def test_what_names_the_next_download_does_not_leave_the_recipe() -> None:
    meta = recipe_meta("download-file")
    assert not {"CM_DOWNLOAD_FILENAME", "CM_DOWNLOAD_SHA256", "CM_DOWNLOAD_URL"} & set(meta["new_env_keys"])
    assert set(meta["input_description"]) == set(meta["input_mapping"])


def test_no_recipe_downloads_over_plain_http_without_a_sha256() -> None:
    plain = [
        (path.parent.name, line.partition(":")[0].strip())
        for path in sorted(RECIPES.glob("*/_cm.yaml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if ": http://" in line
    ]
    assert plain == [("get-dataset-imagenet-val", "CM_IMAGENET_AUX_MIRROR")]
    env = recipe_meta("get-dataset-imagenet-val")["variations"]["2012-500"]["env"]
    assert len(env["CM_IMAGENET_AUX_SHA256"]) == 64


def test_a_lockfile_keeps_the_sha256_of_a_download_without_checksum(
    home: TemporaryHome, server: LocalServer, tmp_path: Path
) -> None:
    server.put("/f", DATA)
    words = (f"--url={server.url('/f')}", "--force_cache")
    done = home.run_cm("download,file", *words)
    assert done.code == 0, done.stderr
    assert "WARNING: no checksum is known for f" in done.stderr
    lock = tmp_path / "crowdperf.lock"
    home.cm("lock", "script", "--tags=download,file", *words, f"--file={lock}")
    assert SHA256 in lock.read_text()
    home.cm("rm", "cache", "-f")
    server.put("/f", b"another file")
    again = home.run_cm("download,file", *words, f"--locked={lock}")
    assert again.code != 0
    assert SHA256 in again.answer["error"], "it is refused before anything uses it"
    server.put("/f", DATA)
    assert home.run_cm("download,file", *words, f"--locked={lock}").code == 0


def test_each_published_file_of_a_model_is_a_cache_entry_of_its_own(home: TemporaryHome, server: LocalServer):
    download, *_ = recipe_meta("get-ml-model-3d-unet")["prehook_deps"]
    keys = {"url": "CM_PUBLISHED_MODEL_URL", "name": "CM_PUBLISHED_MODEL_FILE_NAME"}
    env = {"CM_PUBLISHED_MODEL_IS_FETCHED": "yes", "CM_PUBLISHED_MODEL_MD5": ""}
    home.recipe("get-one", {"env": env, "input_mapping": keys, "new_env_keys": ["CM_*"], "prehook_deps": [download]})
    for name in ("one.onnx", "other.onnx"):
        server.put(f"/{name}", name.encode())
        done = home.cm(
            "run", "script", "--tags=get,one", f"--url={server.url('/' + name)}", f"--name={name}", "--out=json"
        )
        assert Path(done.answer["new_env"]["CM_PUBLISHED_MODEL_FILE_WITH_PATH"]).read_text() == name
