"""Several client processes ask one server: what comes back, and what a killed one leaves behind."""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from endpoint_client import (  # noqa: F401
    Listening,
    asked,
    assert_right,
    folder_fixture,
    prompt,
    run,
    server_fixture,
)  # fmt: skip
from stub_openai import Stub

from crowdperf.harness.backends.endpoint import client_process
from crowdperf.harness.backends.endpoint import engine as engine_module
from crowdperf.harness.backends.endpoint.client_process import Messages, SetUp, message, read, written
from crowdperf.harness.backends.endpoint.engine import EndpointEngine, open_engine
from crowdperf.harness.backends.endpoint.settings import processes
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.engine import Prompt, Request
from crowdperf.harness.text.request import Endpoint

KILLS_IN_A_ROUND = 20


@contextlib.contextmanager
def opened(url: str, folder: Path, **text: object) -> Iterator[EndpointEngine]:
    engine = open_engine(asked(url, folder, **text))
    try:
        yield engine
    finally:
        engine.close()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pids(engine: EndpointEngine) -> list[int]:
    assert engine._fleet is not None
    return engine._fleet.pids()


def test_answers_and_counts_are_those_of_one_process(server: tuple[Stub, str], folder: Path) -> None:
    stub, url = server
    with opened(f"{url}/cached/v1", folder, max_in_flight=7, client_processes=3) as engine:
        assert_right(run(engine, 20), 20)
        stub.seen.clear()
        listener = run(engine, 60, start=100)
        assert_right(listener, 60)
        now_s = time.monotonic()
        for answer in listener.answers.values():
            assert answer.times is not None and answer.prompt_tokens == 3
            assert 0 < answer.times.began_s <= answer.times.first_s <= answer.times.ended_s <= now_s  # type: ignore[operator]
            assert sum(answer.times.gaps_s) <= answer.times.ended_s - answer.times.first_s + 1e-6  # type: ignore[operator]
        assert sorted(body["prompt"][0] for body in stub.seen) == list(range(100, 160))  # each was asked once
        record, living = engine.record(), pids(engine)
    counts = record["counts"]
    assert (counts["requests"], counts["answered"], counts["failed"], counts["waited"]) == (60, 60, 0, 53)
    assert 1 <= counts["peak_in_flight"] <= 7 and counts["cached_tokens"] > 0
    assert record["client_processes"] == {"value": 3, "origin": "user"} and record["problems"] == []
    late_ms = record["told_late_ms"]["value"]
    assert 0 < late_ms["p50"] <= late_ms["p99"]
    assert len(living) == 3 and all(map(is_gone, living))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_request_of_a_trace_takes_no_place_before_its_time(
    server: tuple[Stub, str], folder: Path, processes: int
) -> None:
    """LoadGen issues the requests of a trace in any order."""
    with opened(f"{server[1]}/v1", folder, max_in_flight=2, client_processes=processes) as engine:
        assert_right(run(engine, 2), 2)
        listener, now_s = Listening(6), time.monotonic()
        engine.start(listener)
        due_s = [now_s + 1.0, now_s + 1.0, *[now_s + 0.02] * 4]
        engine.submit([Request(number=number, prompt=prompt(number), issued_s=one) for number, one in enumerate(due_s)])
        assert_right(listener.wait(), 6)
        assert set(list(listener.answers)[:4]) == {2, 3, 4, 5}
        assert [listener.answers[number].times.began_s for number in range(6)] == due_s  # type: ignore[union-attr]


@pytest.mark.parametrize("processes", [1, 2])
def test_counts_are_set_to_zero_where_they_are_counted(
    server: tuple[Stub, str], folder: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections to client processes, and the counts, are those of the loop's thread alone."""
    with opened(f"{server[1]}/v1", folder, client_processes=processes) as engine:
        begun, kind = [], type(engine._conversations)
        real = kind.start
        monkeypatch.setattr(kind, "start", lambda *given: (begun.append(threading.current_thread().name), real(*given)))
        assert_right(run(engine, 2), 2)
    assert begun == ["endpoint"]


def test_a_request_that_waits_for_a_place_is_sent_late(server: tuple[Stub, str], folder: Path) -> None:
    with opened(f"{server[1]}/ttft_ms=60/v1", folder, max_in_flight=1) as engine:
        listener, due_s = Listening(3), time.monotonic() + 0.02
        engine.start(listener)
        engine.submit([Request(number=number, prompt=prompt(number), issued_s=due_s) for number in range(3)])
        assert_right(listener.wait(), 3)
        assert engine.record()["counts"]["sent_late"] >= 2


def test_the_busiest_process_says_whether_the_client_is_the_limit(
    server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "MIN_JUDGED_S", 0.0)
    monkeypatch.setattr(engine_module, "MAX_BUSY_PART", 0.0)
    monkeypatch.setattr(engine_module.Loop, "used_s", lambda _: 0.0)  # this process is never the busiest here
    with opened(f"{server[1]}/v1", folder, client_processes=2) as engine:
        assert_right(run(engine, 200), 200)
        busy_part = engine.busy_part()
        assert busy_part is not None and 0 < busy_part <= 1
        (note,) = engine.record()["notes"]
        assert note.startswith("limited by the client: its thread was busy ") and "--client_processes=4" in note


def test_failed_requests_and_a_hopeless_server_are_reported(server: tuple[Stub, str], folder: Path) -> None:
    _, url = server
    with opened(f"{url}/after=4,status=500/v1", folder, client_processes=2) as engine:
        listener = run(engine, 400)
        assert "none of the last 100 requests" in str(listener.error) and isinstance(listener.error, HarnessError)
    assert len(listener.failures) == 400 - len(listener.answers)
    assert set(listener.kinds.values()) <= {"status 500", "not sent"}


def kill(living: list[int], pause_s: float) -> None:
    for pid in living:
        time.sleep(pause_s * random.random())
        os.kill(pid, signal.SIGKILL)


def kill_all_but_one(url: str, folder: Path, requests: int = 300) -> None:
    """Kill all client processes but one while they ask. Every request gets one answer, the right one, or fails."""
    with opened(url, folder, max_in_flight=60, client_processes=KILLS_IN_A_ROUND + 1) as engine:
        listener = Listening(requests)  # refuses a second report of a request
        engine.start(listener)
        killer = threading.Thread(target=kill, args=(pids(engine)[1:], 0.02))
        engine.submit([Request(number=number, prompt=prompt(number)) for number in range(requests)])
        killer.start()
        listener.wait()
        killer.join()
        said = itertools.chain(listener.failures.values(), waited_for(lambda: engine.record()["problems"]))
        assert any("client process" in one and "ended by signal SIGKILL" in one for one in said)
        assert set(listener.kinds.values()) <= {"client process"} and listener.error is None
        assert len(listener.answers) + len(listener.failures) == requests and listener.answers
        failed = set(listener.failures)
        listener.failures.clear()
        whole = {number: answer for number, answer in listener.answers.items() if number not in failed}
        assert len(whole) == len(listener.answers)
        assert_right(listener, len(whole))


def waited_for(value: Callable[[], list]) -> list:
    end_s = time.monotonic() + 5
    while not value() and time.monotonic() < end_s:
        time.sleep(0.01)
    return value()


def test_killed_processes_lose_and_double_no_request(server: tuple[Stub, str], folder: Path) -> None:
    kill_all_but_one(f"{server[1]}/ttft_ms=5,tpot_ms=1/v1", folder)


@pytest.mark.full
def test_a_thousand_killed_processes_lose_and_double_no_request(server: tuple[Stub, str], folder: Path) -> None:
    for _ in range(1000 // KILLS_IN_A_ROUND):
        kill_all_but_one(f"{server[1]}/ttft_ms=5,tpot_ms=1/v1", folder)


def test_a_process_without_requests_that_ends_is_a_problem_and_without_any_process_the_run_ends(
    server: tuple[Stub, str], folder: Path
) -> None:
    with opened(f"{server[1]}/v1", folder, client_processes=2) as engine:
        assert_right(run(engine, 4), 4)
        first, last = pids(engine)
        os.kill(first, signal.SIGTERM)
        (problem,) = waited_for(lambda: engine.record()["problems"])
        assert problem.startswith("client process 1 of 2 ended by signal SIGTERM: fewer processes")
        os.kill(last, signal.SIGKILL)
        waited_for(lambda: engine.record()["problems"][1:])
        listener = Listening(3)
        engine._fleet._listener = listener
        engine.submit([Request(number=number, prompt=prompt(number)) for number in range(3)])
        listener.wait()
        assert set(listener.failures.values()) == {"not sent: no client process is left"}


def test_a_process_that_cannot_be_set_up_ends_at_once(
    server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the process that started it need not wait until its patience ends."""
    with opened(f"{server[1]}/v1", folder) as engine:
        given = SetUp(
            endpoint=Endpoint(url="ftp://here"), settings=engine._settings, probed=engine._probed, tokenizer=None
        )
    monkeypatch.setattr(client_process.os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        asyncio.run(client_process._Port()._set_up(given))
    assert ended.value.code == 1


_STARTER = """
import os, signal, sys
from pathlib import Path
from endpoint_client import asked
from crowdperf.harness.backends.endpoint.engine import open_engine
engine = open_engine(asked(sys.argv[1], Path(sys.argv[2]), client_processes=2))
print(*engine._fleet.pids(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_process_that_started_them_takes_them_along(server: tuple[Stub, str], folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _STARTER, f"{server[1]}/v1", str(folder)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    living = [int(one) for one in ended.stdout.split()]
    assert ended.returncode == -signal.SIGKILL and len(living) == 2, ended.stderr
    assert waited_for(lambda: [True] if all(map(is_gone, living)) else [])


@pytest.mark.parametrize(
    ("given", "in_flight", "cores", "is_one_at_a_time", "expected"),
    [
        (None, 1024, 2, False, (1, "default")),
        (None, 1024, 16, False, (4, "default")),
        (None, 1024, 128, False, (8, "default")),
        (None, 100, 128, False, (1, "default")),
        (None, 300, 128, False, (2, "default")),
        (None, 1024, 128, True, (1, "default")),
        (5, 1024, 2, True, (5, "user")),
    ],
)
def test_how_many_processes_there_are(
    given: int | None, in_flight: int, cores: int, is_one_at_a_time: bool, expected: tuple[int, str]
) -> None:
    assert processes(given, in_flight, cores, is_one_at_a_time) == expected


def test_more_processes_than_requests_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"text.client_processes: found 5; allowed: at most max_in_flight, 4"):
        processes(5, 4, 64, False)


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_messages_are_the_same_however_the_socket_cuts_them(size: int) -> None:
    sent = [["ask", [(1, None, b"\x00", "\ud83d", None)]], ["start", None], [1.5, {"a": -1}]]
    content, messages, found = b"".join(map(message, sent)) + message(["cut"])[:-1], Messages(), []
    for start in range(0, len(content), size):
        found += messages.feed(content[start : start + size])
    assert found == sent


@pytest.mark.parametrize("form", ["tokens", "text", "chat"])
def test_a_request_is_handed_over_with_the_form_that_is_sent(form: str) -> None:
    given = Prompt(tokens=np.arange(3, dtype=np.int32), text="a", messages=({"role": "user", "content": "b"},))
    found = read(written(Request(number=3, prompt=given, issued_s=1.5), form))
    kept = {"tokens": found.prompt.tokens is not None, "text": found.prompt.text is not None}
    kept["chat"] = found.prompt.messages is not None
    assert (found.number, found.issued_s) == (3, 1.5) and [name for name in kept if kept[name]] == [form]
    if form == "tokens":
        assert found.prompt.tokens is not None and found.prompt.tokens.tolist() == [0, 1, 2]
