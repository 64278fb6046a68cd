"""A bundle costs a limited amount of CPU time and memory, its key is counted, and the server ends when asked."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the packages of the results server are not installed")
pytest.importorskip("cryptography", reason="the packages of the results server are not installed")

import uvicorn
from running_collector import running
from shared_results import OFFLINE, bundle_of, members_of, result_folder, signed_again
from test_real_bundles import sent

from crowdperf.store.archive import DEFAULT_LIMITS
from crowdperf.store.bundle import LONGEST_FILES
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.signatures import new_key
from crowdperf.web import __main__ as server
from crowdperf.web import bundle_checks


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The members of a bundle of eight runs."""
    return members_of(bundle_of(result_folder(tmp_path_factory.mktemp("result"))))


def spinning(content: bytes, *_: object) -> object:
    """A check that does not end; the first byte of the content chooses what it takes."""
    on_signed = _[-1]
    on_signed("a-key")  # type: ignore[operator]
    if content.startswith(b"fault"):
        raise TypeError("of a check")
    if content.startswith(b"memory"):
        return bytearray(bundle_checks.MAX_MEMORY_BYTES)
    while not content.startswith(b"sleep"):
        pass
    time.sleep(60)
    return None


@pytest.fixture
def checker(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[bundle_checks.Checker, list[str]]]:
    """A checker whose processes never end by themselves, and the keys that it counts."""
    import multiprocessing

    monkeypatch.setattr(bundle_checks, "_FORKS", multiprocessing.get_context("fork"))
    monkeypatch.setattr(bundle_checks, "read_and_check", spinning)
    counted: list[str] = []
    made = bundle_checks.Checker(1.0, lambda key: 7.0 if len(counted) > 2 else 0.0, counted.append)
    yield made, counted
    made.close()


def test_a_dear_bundle_ends_and_its_key_is_counted(
    checker: tuple[bundle_checks.Checker, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    check, counted = checker
    monkeypatch.setattr(
        bundle_checks, "CLOCK_FACTOR", 60
    )  # a busy machine may give it a second of CPU time only so late
    expected = ((b"fault", "FORM", "cannot be checked (TypeError)"), (b"spin", "LIMIT", "CPU time"),
                (b"memory", "LIMIT", "memory"))  # fmt: skip
    for content, rule, found in expected:
        with pytest.raises(BundleRefused) as refused:
            check(content, DEFAULT_LIMITS)
        assert refused.value.problems[0].rule == rule and found in refused.value.problems[0].found
    assert counted == ["a-key"] * 3
    with pytest.raises(bundle_checks.OverLimit, match="7 s"):
        check(b"spin", DEFAULT_LIMITS)
    assert not check._running


def test_a_check_that_had_to_wait_is_no_fault_of_the_bundle(
    checker: tuple[bundle_checks.Checker, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    check, counted = checker
    monkeypatch.setattr(bundle_checks, "CLOCK_FACTOR", 0.2)
    with pytest.raises(bundle_checks.CheckBusy):
        check(b"sleep", DEFAULT_LIMITS)
    assert counted == []


def test_a_closed_checker_ends_what_is_under_way(checker: tuple[bundle_checks.Checker, list[str]]) -> None:
    check, counted = checker
    told: list[BaseException] = []

    def run() -> None:
        try:
            check(b"sleep", DEFAULT_LIMITS)
        except bundle_checks.CheckBusy as busy:
            told.append(busy)

    thread = threading.Thread(target=run)
    thread.start()
    while not check._running:
        time.sleep(0.01)
    check.close()
    thread.join(10)
    assert len(told) == 1 and counted == []
    with pytest.raises(bundle_checks.CheckBusy):
        check(b"sleep", DEFAULT_LIMITS)


def dear(members: dict[str, bytes]) -> bytes:
    """A bundle of a new key, with 15 MB of what a search for secrets begins at everywhere."""
    name = f"{OFFLINE}/mlperf_log_detail.txt"
    return signed_again(members | {name: members[name] + b"token= " * (15 << 20 >> 3)}, new_key())


@pytest.mark.parametrize("name", sorted(LONGEST_FILES))
def test_a_file_that_is_longer_than_any_honest_one_is_refused(members: dict[str, bytes], name: str) -> None:
    path = f"{OFFLINE}/{name}"
    content = signed_again({**members, path: b"#" * (LONGEST_FILES[name] + 1)})
    with pytest.raises(BundleRefused) as refused:
        bundle_checks.read_and_check(content, DEFAULT_LIMITS)
    assert [(one.rule, one.file) for one in refused.value.problems] == [("LIMIT", path)]


def test_dear_bundles_stop_no_collector(tmp_path: Path, members: dict[str, bytes]) -> None:
    with running(tmp_path / "results.db", "--bundles_per_hour=1") as started:
        token, content = started.tokens["upload"], dear(members)
        refused = signed_again({**members, f"{OFFLINE}/user.conf": b"#" * 20_000})
        assert [sent(started.url, refused, token)[0] for _ in range(2)] == [422, 429]  # its key is counted
        threads = [threading.Thread(target=_sent_quietly, args=(started.url, content, token)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        assert started.end() == 0
        for thread in threads:
            thread.join(20)


def _sent_quietly(url: str, content: bytes, token: str) -> None:
    with contextlib.suppress(Exception):
        sent(url, content, token)


async def _hello(scope: dict[str, object], receive: object, send: object) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"ok"})  # type: ignore[operator]


@contextlib.contextmanager
def serving(protocol: type[asyncio.Protocol]) -> Iterator[tuple[str, int]]:
    """The address of a server with this protocol, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_hello, http=protocol, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)  # type: ignore[arg-type]
    found = uvicorn.Server(config)
    thread = threading.Thread(target=found.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[:2]
    finally:
        found.should_exit = True
        thread.join(10)


def test_a_head_that_does_not_end_is_cut_off_and_a_whole_one_is_answered() -> None:
    class Quick(server.TimedHeads):
        head_within_s = 0.3

    with serving(Quick) as address:
        half = [socket.create_connection(address, 10) for _ in range(20)]
        for one in half:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with socket.create_connection(address, 10) as whole:
            whole.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert whole.recv(1000).startswith(b"HTTP/1.1 200")
            whole.sendall(b"GET / HT")  # the second head of the connection
            ended = [_ends(one) for one in (*half, whole)]
        assert ended == [True] * 21
        for one in half:
            one.close()


def _answered(one: socket.socket) -> bool:
    found = b""
    while not found.endswith(b"ok"):
        found += one.recv(1000)
    return found.startswith(b"HTTP/1.1 200")


def _ends(one: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        while one.recv(1000):
            pass
    return True


def test_one_address_holds_a_part_of_the_connections_only() -> None:
    class Few(server.LimitedHeads):
        most = 3

    with serving(Few) as address:
        first = [socket.create_connection(address, 10) for _ in range(3)]
        for one in first:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _answered(one)
        with socket.create_connection(address, 10) as more:
            assert _ends(more)
        for one in first:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _answered(one)
            one.close()
