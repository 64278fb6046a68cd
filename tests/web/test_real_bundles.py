"""Bundles of real, recorded runs: kept and shown by a collector, refused when changed, and by one that is killed."""

import gzip
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import tarfile
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from collector_client import BEARER, GZIP, TOKENS, collector
from running_collector import Running, running
from shared_results import bundle_of, members_of, packed, result_folder, signed_again

from crowdperf.store.local_tokens import known_token
from crowdperf.store.signatures import new_key
from crowdperf.web import bundle_checks
from crowdperf.web.access import tokens_of


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The members of a bundle of eight runs."""
    return members_of(bundle_of(result_folder(tmp_path_factory.mktemp("result"))))


def test_a_volunteer_sends_a_result_and_sees_it(tmp_path: Path, members: dict[str, bytes]) -> None:
    with collector(tmp_path) as client:
        client.app.state.collector.reader = bundle_checks.read_and_check  # type: ignore[attr-defined]
        content = packed(members)
        answer = client.post("/api/v1/bundles", content=content, headers=BEARER)
        assert answer.status_code == 201, answer.text
        told = answer.json()
        assert len(told["results"]) == 4 and told["verification"] == "logs consistent"
        text = client.get(told["url"]).text
        value = client.get(f"/api/v1/results/{told['id']}.json").json()["result"]["value"]
        assert value > 0 and "unofficial" in text and "cm run script" in text and "logs consistent" in text
        assert client.post("/api/v1/bundles", content=content, headers=BEARER).json()["id"] == told["id"]
        changed = members | {"results.json": members["results.json"].replace(b"9", b"8", 1)}
        refused = client.post("/api/v1/bundles", content=packed(changed), headers=BEARER)
        assert refused.status_code == 422 and refused.json()["problems"][0]["file"] == "results.json"
        name = "digits/Offline/performance/run_1/mlperf_log_summary.txt"
        better = members | {name: members[name].replace(b"Samples per second: ", b"Samples per second: 9", 1)}
        lying = client.post("/api/v1/bundles", content=signed_again(better), headers=BEARER)
        assert lying.status_code == 422 and lying.json()["problems"][0]["rule"].startswith("V")


def with_own_logs(members: dict[str, bytes], number: int) -> dict[str, bytes]:
    """The same result as if the 97th percentile of each run had been `number` ns higher, without the records of runs,
    which have the digests of the logs: a collector keeps no log twice."""
    percentile = re.compile(rb"""(97\.00.percentile[ a-z_()]*(?:", "value")?\s*: |"p97_ns": ?)(\d+)""")
    return {
        name: percentile.sub(lambda found: found[1] + b"%d" % (int(found[2]) + number), content)
        for name, content in members.items()
        if not name.endswith("record.json")
    }


def sent(url: str, content: bytes, token: str) -> tuple[int, dict[str, Any]]:
    """The answer to an upload; raises OSError or HTTPException where there is none."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("POST", "/api/v1/bundles", content, GZIP | {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def fetched(url: str, address: str) -> tuple[int, bytes]:
    """The answer to a request for a page."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", address)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_collector_greets_answers_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with running(tmp_path / "results.sqlite") as started:
        assert started.greeting[0].startswith("Results: http://127.0.0.1:")
        assert known_token(started.url, os.environ) == started.tokens["upload"]
        assert any(started.tokens["upload"] in line for line in started.greeting)
        assert fetched(started.url, "/healthz") == (200, b'{"status":"ok"}')
        assert started.end(signal.SIGTERM) == 0
        assert known_token(started.url, os.environ) == "", "another user's program may have the port next"
    with running(tmp_path / "results.sqlite") as again:
        assert not any(again.tokens["upload"] in line for line in again.greeting)
        assert again.end(signal.SIGINT) == 0


@pytest.mark.full
def test_what_was_kept_is_there_after_a_kill(tmp_path: Path, members: dict[str, bytes]) -> None:
    """Bundles are sent by four clients; the server is killed three times meanwhile; every 201 is there afterwards."""
    database = tmp_path / "results.sqlite"
    bundles = [signed_again(with_own_logs(members, number), new_key()) for number in range(200)]
    kept: list[dict[str, Any]] = []
    for part in range(4):
        with running(database) as started:
            work = iter(bundles[part * 50 : part * 50 + 50])
            threads = [threading.Thread(target=send_all, args=(started, work, kept)) for _ in range(4)]
            for thread in threads:
                thread.start()
            if part < 3:
                time.sleep(1.5)
                started.process.kill()
            for thread in threads:
                thread.join(60)
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        ids = {row[0] for row in connection.execute("SELECT id FROM result")}
        of_key = dict(connection.execute("SELECT signer, count(*) FROM result GROUP BY signer"))
    assert len(kept) > 20 and {one["id"] for told in kept for one in told["results"]} <= ids
    assert set(of_key.values()) == {4}, "a bundle of four results was kept in part"
    assert database.stat().st_size > 0


def send_all(started: Running, work: Iterator[bytes], kept: list[dict[str, Any]]) -> None:
    """Send bundles until none is left or the server is gone."""
    for content in work:
        try:
            status, told = sent(started.url, content, started.tokens["upload"])
        except (OSError, http.client.HTTPException, ValueError):
            return
        assert status == 201, told
        kept.append(told)


def bombs() -> dict[str, bytes]:
    """Bodies that want to become large, or to be somewhere else."""
    tar = BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as made:
        for number in range(30_000):
            made.addfile(tarfile.TarInfo(f"{number}"))
    return {
        "zeros": gzip.compress(bytes(500_000_000), 9),
        "members": gzip.compress(tar.getvalue(), 1),
        "names": packed({"../../etc/passwd": b"x"}),
        "slow name": packed({"a" * 90 + "!": b"x"}),
        "deep": packed({"manifest.json": b"[" * 100_000, "manifest.sig": b"x"}),
        "no gzip": b"x" * 3_000_000,
        "two": gzip.compress(b"") * 100_000,
    }


@pytest.mark.full
def test_bombs_are_refused_in_no_time_and_little_memory(tmp_path: Path) -> None:
    with running(tmp_path / "results.sqlite", "--bundles_per_hour=1000") as started:
        status_file = Path(f"/proc/{started.process.pid}/status")
        for name, content in bombs().items():
            status, told = sent(started.url, content, started.tokens["upload"])
            assert status in (413, 422), (name, told)
        peak = next(line for line in status_file.read_text().splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 150_000, peak
        assert fetched(started.url, "/")[0] == 200


@pytest.mark.full
def test_a_slow_body_is_cut_while_others_are_served(tmp_path: Path) -> None:
    with running(tmp_path / "results.sqlite") as started:
        host, port = urlsplit(started.url).netloc.split(":")
        head = (
            f"POST /api/v1/bundles HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/gzip\r\n"
            f"Authorization: Bearer {started.tokens['upload']}\r\nContent-Length: 100000\r\n\r\n"
        )
        slow = [socket.create_connection((host, int(port))) for _ in range(20)]
        for one in slow:
            one.sendall(head.encode())
        begin, answers, waiting = time.monotonic(), [], [*slow]
        while waiting and time.monotonic() - begin < 40:
            for one in [*waiting]:
                one.settimeout(0.01)
                try:
                    one.sendall(b"x")
                    answers.append(one.recv(12))
                except TimeoutError:
                    continue
                except OSError:  # cut, and its answer is lost
                    pass
                waiting.remove(one)
            assert fetched(started.url, "/")[0] == 200
            time.sleep(0.5)
        assert time.monotonic() - begin > 20
        assert waiting == [] and {answer for answer in answers if answer} == {b"HTTP/1.1 408"}
        for one in slow:
            one.close()


@pytest.mark.full
def test_a_collector_is_not_started_where_it_must_not_be(tmp_path: Path) -> None:
    import subprocess
    import sys

    from running_collector import environment

    for words in (
        ["--host=0.0.0.0"],
        ["--host=0.0.0.0", "--token=none", "--behind_proxy=yes"],
        ["--port=x"],
        ["nothing"],
    ):
        command = [sys.executable, "-m", "crowdperf.web", f"--db={tmp_path / 'x.sqlite'}", *words]
        found = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
        assert found.returncode == 1 and found.stderr.startswith("serve-mlperf-results: "), found.stderr
        assert "Traceback" not in found.stderr
    (tmp_path / "notes.md").write_text("# no database")
    words = [sys.executable, "-m", "crowdperf.web", f"--db={tmp_path / 'notes.md'}"]
    found = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60)
    assert "notes.md cannot be opened: " in found.stderr and "Traceback" not in found.stderr
    assert not (tmp_path / "notes.md.tokens").exists()
    tokens, _ = tokens_of(tmp_path / "tokens")
    assert tokens != TOKENS and not (tmp_path / "x.sqlite").exists()
