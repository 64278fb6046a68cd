"""share,mlperf,result shows what leaves the machine, asks, sends it to the named address alone, keeps what failed."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from shared_results import HOME, OFFLINE, change_json, recorded, result_folder

from crowdperf.store import share, signatures
from crowdperf.store.bundle import read_bundle
from crowdperf.store.keys import key_id_of
from crowdperf.store.share import NotShared, collector_address, main
from crowdperf.store.signatures import KEY_FILE, read_or_make_key, read_withdrawal


class Collector:
    """A collector that answers what it is told, and remembers what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, Any], dict[str, str]]] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.command, self.path, dict(self.headers.items()), body))
                status, content, headers = outer.answers.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            do_POST = do_DELETE = _answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(name="collector", scope="module")
def _collector() -> Iterator[Collector]:
    found = Collector()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small result: one scenario's performance run."""
    folder = result_folder(tmp_path_factory.mktemp("results"))
    kept = [name for name in recorded() if OFFLINE in name or "/" not in name]
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in kept:
            path.unlink()
    (folder / OFFLINE / "result.json").write_bytes(recorded()[f"{OFFLINE}/result.json"])

    def only_offline(content: dict[str, Any]) -> None:
        content["scenarios"] = [row for row in content["scenarios"] if row["scenario"] == "Offline"]
        content["scenarios"][0]["accuracy"] = None

    change_json(folder / "results.json", only_offline)
    return folder


@pytest.fixture(autouse=True)
def _around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("USER", "annamaria")
    monkeypatch.setattr(share.Path, "home", lambda: Path(HOME))
    monkeypatch.setattr("crowdperf.kit.privacy.socket.gethostname", lambda: "anna-laptop")
    monkeypatch.delenv("CM_MLPERF_COLLECTOR_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)


def _told() -> dict[str, Any]:
    return json.loads(Path("tmp-share.json").read_text())


def test_a_dry_run_writes_the_bundle_and_sends_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {f"CM_HOST_CPU_{name}": "yes" for name in ("BUGS", "HAS_SVE", "HAS_SVE2", "TLB_SIZE")}
    change_json(folder / "environment.json", lambda content: content["host"].update(facts))
    assert main([f"--result={folder}", "--collector=http://127.0.0.1:9", "--dry_run", "--alias=otter"]) == 0
    shown, told = capsys.readouterr().out, _told()
    bundle = read_bundle(io.BytesIO(Path(told["bundle"]).read_bytes()))
    assert (told["sent"], bundle.signer.alias, told["key"]) == (False, "otter", bundle.signer.key_id)
    assert "host.CM_HOST_SYSTEM_NAME" in shown and "4 facts of the processor (host.*)" in shown
    assert "CM_HOST_CPU_" not in shown and f"{OFFLINE}/mlperf_log_detail.txt" in shown
    assert "created your key in " in shown and "(1x)" not in shown
    assert shown.endswith(f"Not uploaded. The bundle: {told['bundle']}\n")
    assert "digits Offline: throughput 179,951 samples/s, VALID [unofficial, test run, origin not recorded]" in shown
    assert b"annamaria" not in b"".join(bundle.files.values())


def test_it_is_sent_with_the_token_and_the_link_is_printed(
    folder: Path,
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "token").write_text("upload secret-word\nmoderation other\n")
    monkeypatch.setenv("CM_MLPERF_COLLECTOR_TOKEN", str(tmp_path / "token"))
    answer = {"id": "a1", "url": "/r/a1", "results": [{"id": "a1", "url": "/r/a1"}]}
    collector.answers[:] = [(201, answer, {}), (200, answer, {})]
    for _ in range(2):
        assert main([f"--result={folder}", f"--collector={collector.url}/", "--yes"]) == 0
    (method, path, headers, body), (*_, again) = collector.requests[-2:]
    assert (method, path, headers["Authorization"]) == ("POST", "/api/v1/bundles", "Bearer secret-word")
    assert headers["Content-Type"] == "application/gzip" and body == again
    assert _told()["results"] == [{"id": "a1", "url": f"{collector.url}/r/a1"}]
    shown = capsys.readouterr().out
    assert f"{collector.url}/r/a1" in shown and "The collector has it already." in shown and "secret-word" not in shown


@pytest.mark.parametrize(
    ("code", "answer", "message"),
    [
        (1, (422, {"problems": [{"rule": "V4", "file": "x", "found": "1", "expected": "2"}]}, {}),
         "V4 x: 1; expected: 2"),
        (1, (401, {"error": "no token"}, {}), "--token=FILE"),
        (1, (409, {}, {}), "another result with this run id"),
        (1, (409, {"error": "x", "reason": "same log"}, {}), "contact the collector's moderator to free it"),
        (1, (302, {}, {"Location": "http://127.0.0.1:9/elsewhere"}), "refused it (302)"),
        (1, (200, {}, {}), "but not as a collector: it names no result"),
        (1, (201, {"results": ["x"]}, {}), "but not as a collector: it names no result"),
        (2, (429, {}, {}), "wait a little"),
        (2, (500, {"error": "\x1b[31mred"}, {}), "\\x1b[31mred"),
        (1, (404, {}, {}), "a collector that only shows results"),
        (2, (503, {"error": "too many uploads are being checked"}, {}), "cannot accept it now"),
    ],
)  # fmt: skip
def test_what_a_collector_refuses_stays_with_the_reason(
    folder: Path, collector: Collector, code: int, answer: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    collector.answers[:] = [answer]
    assert main([f"--result={folder}", f"--collector={collector.url}", "--yes"]) == code
    assert message in capsys.readouterr().err and message in _told()["error"] and _told()["return"] == code
    assert message in (folder / "share" / "not-sent.txt").read_text()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfsecret-word\r\n",
        "upload secret-word\nmoderation other\n".encode("utf-16"),
        b"caf\xc3\xa9-word",
        None,
    ],
)
def test_a_token_of_other_programs_is_read_or_refused_without_being_shown(
    folder: Path, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    given = "secret-word " + "k" * 300  # longer than a file's name can be
    if content is not None:
        (tmp_path / "token").write_bytes(content)
        given = str(tmp_path / "token")
    monkeypatch.setenv("CM_MLPERF_COLLECTOR_TOKEN", given)
    collector.answers[:] = [(201, {"id": "a1", "url": "/r/a1"}, {})]
    code = main([f"--result={folder}", f"--collector={collector.url}", "--yes"])
    shown = capsys.readouterr()
    assert "word" not in shown.out + shown.err
    if content is not None and content.startswith(b"\xef"):
        assert code == 0 and collector.requests[-1][2]["Authorization"] == "Bearer secret-word"
    else:
        assert code == 1 and "--token must be a token without whitespace" in shown.err


def test_nobody_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--result={folder}", "--collector=http://127.0.0.1:1", "--yes"]) == 2
    assert "does not answer" in capsys.readouterr().err


def test_without_a_terminal_nothing_is_sent_unasked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(share.sys, "stdin", io.StringIO("y\n"))
    assert main([f"--result={folder}", "--collector=http://127.0.0.1:9"]) == 1
    assert "pass --yes to confirm" in capsys.readouterr().err


def test_no_is_no(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stdin = io.StringIO("no\n")
    stdin.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(share.sys, "stdin", stdin)
    assert main([f"--result={folder}", "--collector=http://127.0.0.1:9"]) == 0
    assert _told()["sent"] is False
    assert capsys.readouterr().out.endswith(f"Not uploaded. The bundle: {_told()['bundle']}\n")


def test_a_changed_result_is_not_sent(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    changed = Path(shutil.copytree(folder, tmp_path / folder.name))
    change_json(changed / OFFLINE / "result.json", lambda content: content["metric"].update(value=999999.0))
    assert main([f"--result={changed}"]) == 1
    assert "a collector would reject it" in capsys.readouterr().err


def test_a_withdrawal_is_signed_by_the_same_key(
    collector: Collector, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--collector={collector.url}", "--withdraw=a/1"]) == 1
    assert "no key in" in capsys.readouterr().err
    key, _ = read_or_make_key(tmp_path / "config" / "crowdperf")
    collector.answers[:] = [(200, {}, {}), (200, {"state": "withdrawn"}, {})]
    assert main([f"--collector={collector.url}", "--withdraw=a/1"]) == 1
    assert "not as a collector" in capsys.readouterr().err
    assert main([f"--collector={collector.url}", "--withdraw=a/1"]) == 0
    method, path, _, body = collector.requests[-1]
    assert (method, path) == ("DELETE", "/api/v1/results/a%2F1")
    found = read_withdrawal(body)
    assert (found.result_id, found.signer.key_id) == ("a/1", key_id_of(key.public_key))


@pytest.mark.parametrize(
    "address",
    ["", "ftp://x", "http://", "http://user:pass@x/", "http://x/?a=b", "file:///etc/passwd", "x:8090", "http://x:PORT"],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(NotShared, match="--collector must be"):
        collector_address(address)


def test_a_key_is_made_once_and_read_only_by_its_owner(tmp_path: Path) -> None:
    first, is_made = read_or_make_key(tmp_path / "keys")
    second, is_made_again = read_or_make_key(tmp_path / "keys")
    assert (is_made, is_made_again, first.public_key) == (True, False, second.public_key)
    path = tmp_path / "keys" / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600 and [one.name for one in path.parent.iterdir()] == [KEY_FILE]


@pytest.mark.parametrize(
    ("mode", "content", "message"), [(0o644, b"x" * 32, "chmod 600"), (0o600, b"x", "has 1 bytes")]
)
def test_a_key_that_cannot_be_used_is_named(tmp_path: Path, mode: int, content: bytes, message: str) -> None:
    path = tmp_path / KEY_FILE
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(share.KeyProblem, match=message):
        read_or_make_key(tmp_path)


def _doubled(point: tuple[int, int]) -> tuple[int, int]:
    """Twice a point of the curve -x^2 + y^2 = 1 + d x^2 y^2 of RFC 8032."""
    (x, y), d = point, -121665 * pow(121666, -1, PRIME)
    product = d * x * x * y * y
    return 2 * x * y * pow(1 + product, -1, PRIME) % PRIME, (y * y + x * x) * pow(1 - product, -1, PRIME) % PRIME


PRIME = 2**255 - 19


def test_keys_of_small_order_sign_nothing() -> None:
    d = -121665 * pow(121666, -1, PRIME)
    for encoded in signatures._SMALL_ORDER:
        y = int.from_bytes(encoded, "little") % PRIME
        square = (y * y - 1) * pow(d * y * y + 1, -1, PRIME) % PRIME
        x = pow(square, (PRIME + 3) // 8, PRIME)
        x = x if (x * x - square) % PRIME == 0 else x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
        assert (x * x - square) % PRIME == 0  # on the curve
        point = (x, y)
        for _ in range(3):
            point = _doubled(point)
        assert point == (0, 1)  # 8 times the point is the neutral one
        for sign in (0, 0x80):
            key = encoded[:31] + bytes([encoded[31] | sign])
            assert signatures.is_of_small_order(key)
            signature = bytes([1]) + bytes(63)  # R neutral, S = 0
            assert not any(signatures.is_signed_by(key, signature, bytes([number])) for number in range(32))
    assert not signatures.is_of_small_order(signatures.new_key().public_key)
