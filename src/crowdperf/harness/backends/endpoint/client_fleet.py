"""The requests of a run, spread over several client processes, for servers that are faster than one core can read.

LoadGen and the queue of requests stay in this process. Each client process gets a request only when one of the
max_in_flight places is free, and sends what became of it back: one message for all that happened at once, and none for
the tokens between the first and the last. Each process's own time of a first token is compared with the time at which
LoadGen is told, since LoadGen takes the time of the call (loadgen.cc, FirstTokenComplete, LoadGen 6.0.17).
A process that ends takes its requests with it: each of them fails, once.
"""

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

import crowdperf
from crowdperf.harness.backends.endpoint import client_process
from crowdperf.harness.backends.endpoint.client_process import (
    ASK,
    BROKEN,
    DONE,
    FIRST,
    SET_UP,
    START,
    Messages,
    SetUp,
    message,
    read_answer,
    written,
)
from crowdperf.harness.backends.endpoint.conversation import due_now
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Listener, Request
from crowdperf.logs.run_log import Json

LOST = "client process"
"""The kind of failure of requests whose client process ended."""
READY_S = 60.0
"""The longest that a client process may take to load its packages: this project's choice."""
_END_S = 2.0
_NO_ANSWER = "no client process is left"


def _ending(code: int | None) -> str:
    """Return how a process ended, in words."""
    if code is None or code >= 0:
        return "closed its connection" if code is None else f"with exit code {code}"
    known = {one.value: one.name for one in signal.Signals}
    return f"by signal {known.get(-code, str(-code))}"


class _Member(asyncio.Protocol):
    """One client process. flights: the numbers of its requests. report: its last times and counts."""

    def __init__(self, fleet: "ClientFleet", name: str) -> None:
        self.name = name
        self.flights: set[int] = set()
        self.report: tuple[float, float, float, dict[str, Any]] | None = None
        self.ready: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None
        self._fleet = fleet
        self._messages = Messages()
        self._socket, other = socket.socketpair()
        root = str(Path(crowdperf.__file__).parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", client_process.__name__, str(other.fileno())], pass_fds=(other.fileno(),), cwd="/",
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        other.close()

    async def open(self, set_up: bytes) -> None:
        """Wait until the process can send. Raises HarnessError."""
        loop = asyncio.get_running_loop()
        self.ready = loop.create_future()
        await loop.create_unix_connection(lambda: self, sock=self._socket)
        self.send([SET_UP, set_up])
        try:
            await asyncio.wait_for(self.ready, READY_S)
        except (asyncio.TimeoutError, ConnectionError):
            hint = "its own words are above. --client_processes=1 needs none of them"
            raise HarnessError(f"{self.name} was not ready within {READY_S:g} s, or ended", hint) from None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for told, began_s, ended_s, used_s, counts in self._messages.feed(data):
            if self.ready is not None and not self.ready.done():
                self.ready.set_result(None)
            self.report = began_s, ended_s, used_s, counts
            self._fleet.hear(self, told)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.ready is not None and not self.ready.done():
            self.ready.set_exception(ConnectionError())
        self._fleet.lose(self)

    def send(self, content: Sequence[Any]) -> None:
        """Send a message to the process, if it is there."""
        if self.transport is not None:
            self.transport.write(message(content))

    def ending(self) -> str:
        try:
            return _ending(self._process.wait(_END_S))
        except subprocess.TimeoutExpired:
            return _ending(None)

    @property
    def number(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the process: it ends when its socket is closed."""
        if self.transport is None:
            self._socket.close()
        else:
            self.transport.abort()

    def wait(self) -> None:
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ClientFleet:
    """Several client processes. All methods but `__init__` and `wait` run in the loop. form: of prompts. problems: why
    the results of a run cannot be used."""

    def __init__(self, count: int) -> None:
        self.problems: list[str] = []
        self.told_late_s = array("d")
        self._members = [_Member(self, f"client process {place + 1} of {count}") for place in range(count)]
        self._live = list(self._members)
        self._waiting: deque[Request] = deque()
        self._listener: Listener | None = None
        self._form, self._most, self._in_flight = "", 0, 0
        self._waited = self._peak = self._lost = 0

    async def open(self, set_up: SetUp) -> None:
        """Wait until all processes can send. Raises HarnessError."""
        self._form, self._most = set_up.probed.form.prompt, set_up.settings.max_in_flight
        content = pickle.dumps(set_up)
        await asyncio.gather(*(member.open(content) for member in self._members))

    def start(self, listener: Listener) -> None:
        self._listener = listener
        self._waited = self._peak = self._lost = 0
        self.told_late_s = array("d")
        for member in self._live:
            member.report = None
            member.send([START, None])

    def take(self, requests: Sequence[Request]) -> None:
        """Accept requests, and hand them out, queue them, or wait until they are due: until then they take none of the
        places."""
        requests = due_now(requests, self._arrive)
        self._waited += max(0, len(requests) - max(0, self._most - self._in_flight - len(self._waiting)))
        self._waiting.extend(requests)
        self._hand_out()

    def _arrive(self, request: Request) -> None:
        if self._listener is not None:
            self.take([request])

    def _hand_out(self) -> None:
        """Give requests that wait to the processes that have the fewest, up to max_in_flight at once."""
        given: dict[_Member, list[Any]] = {}
        while self._waiting and self._in_flight < self._most and self._live:
            member = min(self._live, key=lambda one: len(one.flights))
            request = self._waiting.popleft()
            member.flights.add(request.number)
            self._in_flight += 1
            given.setdefault(member, []).append(written(request, self._form))
        self._peak = max(self._peak, self._in_flight)
        for member, requests in given.items():
            member.send([ASK, requests])
        if not self._live:
            self._fail([request.number for request in self._waiting], f"not sent: {_NO_ANSWER}", "not sent")
            self._waiting.clear()

    def hear(self, member: _Member, told: Sequence[tuple[int, int, float, Any]]) -> None:
        """Report the news of a process."""
        listener, now_s = self._listener, time.monotonic()
        for kind, number, told_s, content in told:
            if kind == BROKEN:
                if listener is not None:
                    listener.broken(HarnessError(*content))
                continue
            if kind == FIRST:
                self.told_late_s.append(now_s - told_s)
                if listener is not None:
                    listener.first(number, np.frombuffer(content, np.int32))
                continue
            member.flights.discard(number)
            self._in_flight -= 1
            if listener is None:
                continue
            if kind == DONE:
                listener.done(number, read_answer(content))
            else:
                listener.failed(number, *content)
        if self._waiting:
            self._hand_out()

    def lose(self, member: _Member) -> None:
        """Fail the requests of a process that has ended."""
        self._live.remove(member)
        if self._listener is None:
            return
        why = f"{member.name} ended {member.ending()}"
        lost, member.flights = sorted(member.flights), set()
        self._in_flight -= len(lost)
        if not lost:
            self.problems.append(f"{why}: fewer processes sent the requests than at the start")
        self._fail(lost, why, LOST)
        if not self._live:
            self._listener.broken(HarnessError(f"{_NO_ANSWER}: {why}", "look into the system's log (dmesg) for why"))
        self._hand_out()

    def _fail(self, numbers: Sequence[int], why: str, kind: str) -> None:
        self._lost += len(numbers)
        for number in numbers:
            if self._listener is not None:
                self._listener.failed(number, why, kind)

    @property
    def _reports(self) -> list[tuple[float, float, float, dict[str, Any]]]:
        return [one.report for one in self._members if one.report is not None and one.report[0]]

    @property
    def began_s(self) -> float:
        """The first request, in s of time.monotonic(), 0 before it."""
        return min((began_s for began_s, *_ in self._reports), default=0.0)

    @property
    def ended_s(self) -> float:
        """The last answer, in s of time.monotonic(), 0 before one."""
        return max((ended_s for _, ended_s, *_ in self._reports), default=0.0)

    @property
    def used_s(self) -> float:
        """The CPU time of the process that used most since the start, in s."""
        return max((used_s for _, _, used_s, _ in self._reports), default=0.0)

    def record(self) -> dict[str, Json]:
        found: dict[str, Any] = {}
        for _, _, _, counts in self._reports:
            _add(found, counts)
        found["failed"] = found.get("failed", 0) + self._lost
        return {**found, "peak_in_flight": self._peak, "waited": self._waited}

    def pids(self) -> list[int]:
        return [member.number for member in self._live]

    async def close(self) -> None:
        """End everything without telling anybody."""
        self._listener = None
        self._waiting.clear()
        for member in self._members:
            member.close()

    def wait(self) -> None:
        for member in self._members:
            member.wait()


def _add(total: dict[str, Any], counts: Mapping[str, Any]) -> None:
    """Add counts by name, also those within."""
    for name, value in counts.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
