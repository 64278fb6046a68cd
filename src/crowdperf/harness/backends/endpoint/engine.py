"""The endpoint backend: a server behind a URL answers, by OpenAI's HTTP API, over connections that stay open.

One thread has an event loop in which everything happens: requests are sent as they come, up to max_in_flight at once,
their streams read, and the listener told. Latencies are those that this thread sees. With several client processes the
thread only hands requests out to them, and the listener gets what they tell (`client_fleet.py`).
"""

import asyncio
import concurrent.futures
import contextlib
import importlib.metadata
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tokenizers

from crowdperf.harness.backends.endpoint.address import Address, parse_address
from crowdperf.harness.backends.endpoint.client import Client
from crowdperf.harness.backends.endpoint.client_fleet import READY_S, ClientFleet
from crowdperf.harness.backends.endpoint.client_process import SetUp
from crowdperf.harness.backends.endpoint.conversation import Conversations
from crowdperf.harness.backends.endpoint.probe import Probed, Prober, Question, default_prompt
from crowdperf.harness.backends.endpoint.request_body import TEMPERATURE
from crowdperf.harness.backends.endpoint.settings import ClientSettings, resolve_client
from crowdperf.harness.backends.endpoint.stream_loop import new_loop
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.engine import EngineRequest, Listener, Request
from crowdperf.harness.text.tokenizer import FILE, Tokenizer, open_tokenizer
from crowdperf.kit.records import Problem
from crowdperf.logs.run_log import Json
from crowdperf.rules.prompt_settings import AccessSettings

_CLOSE_S = 8.0
_OPEN_S = 2400.0
"""The longest that a probe may take: a few requests of at most 300 s each, so that nothing waits for ever."""
MAX_BUSY_PART = 0.7
"""A client that was busy for a larger part of the time was late: the results are partly its own. This project's
choice."""
MIN_JUDGED_S = 1.0
"""Shorter runs begin and end with work at once, so that they show nothing: this project's choice."""
Result = TypeVar("Result")


def waited_s(path: str) -> float:
    """Return how long a thread was ready to run but had no core, in s, by its schedstat file (the second number:
    Documentation/scheduler/sched-stats.rst of Linux); 0 where the system does not tell."""
    try:
        return int(Path(path).read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = new_loop()
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def result(self, work: Coroutine[Any, Any, Result], limit_s: float) -> Result:
        """Return the result of `work` in the loop. Raises its errors, and HarnessError if it takes too long."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(limit_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise HarnessError(f"the endpoint did not answer within {limit_s:g} s", "check the server's log") from None

    def used_s(self) -> float:
        number = self._thread.ident
        if number is None or not self._thread.is_alive():
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(number))

    @property
    def waits(self) -> str:
        """The file with the times for which the thread was ready to run but had no core."""
        return f"/proc/self/task/{self._thread.native_id}/schedstat"

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self.loop.close()


class EndpointEngine:
    """A probed server."""

    def __init__(self, loop: Loop, client: Client, settings: ClientSettings, vocabulary: Tokenizer | None) -> None:
        self._loop = loop
        self._client = client
        self._settings = settings
        self._vocabulary = vocabulary
        self._probed: Probed | None = None
        self._conversations: Conversations | ClientFleet | None = None
        self._fleet = ClientFleet(settings.client_processes) if settings.client_processes > 1 else None
        self._arrived: deque[Request] = deque()
        self._is_closed = False
        self._used_s = 0.0
        self._waited_s: dict[str, float] = {}
        self._access = AccessSettings()

    def probe(self, question: Question, tokenizer: Path | None) -> None:
        """Probe the server before the run. tokenizer: the folder with it. Raises HarnessError."""
        self._access = question.endpoint.access
        self._probed = self._loop.result(self._open(question), _OPEN_S)
        fleet = self._fleet
        if fleet is None:
            self._conversations = Conversations(self._client, self._probed, self._settings, self._vocabulary)
            return
        given = SetUp(endpoint=question.endpoint, settings=self._settings, probed=self._probed, tokenizer=tokenizer)
        self._loop.result(fleet.open(given), 2 * READY_S)
        self._conversations = fleet

    async def _open(self, question: Question) -> Probed:
        await self._client.open()
        return await Prober(self._client, question).probe()

    @property
    def server(self) -> Mapping[str, object]:
        """The input of the watch of the server's metrics."""
        return {"url": self._client.address.url, **asdict(self._access)}

    def start(self, listener: Listener) -> None:
        self._loop.result(self._start(listener), READY_S)
        self._used_s = self._loop.used_s()
        processes = () if self._fleet is None else self._fleet.pids()
        waits = [self._loop.waits, *(f"/proc/{pid}/schedstat" for pid in processes)]
        self._waited_s = {path: waited_s(path) for path in waits}

    async def _start(self, listener: Listener) -> None:
        self._opened().start(listener)

    def busy_part(self) -> float | None:
        """Return the part of the time from the first request to the last answer for which the client's thread was
        busy, or the busiest of its processes. None for a run that was too short to judge."""
        lasted_s = self._judged_s()
        if lasted_s is None:
            return None
        used_s = self._loop.used_s() - self._used_s
        return min(1.0, max(used_s, 0.0 if self._fleet is None else self._fleet.used_s) / lasted_s)

    def waiting_part(self) -> float | None:
        """Return the part of the same time for which the client's thread was ready to run while other programs had the
        cores, or that of its processes which waited longest. None for a run that was too short to judge."""
        lasted_s = self._judged_s()
        if lasted_s is None:
            return None
        waits_s = (waited_s(path) - before_s for path, before_s in self._waited_s.items())
        return min(1.0, max(0.0, *waits_s) / lasted_s)

    def _judged_s(self) -> float | None:
        run = self._opened()
        lasted_s = run.ended_s - run.began_s
        return lasted_s if run.ended_s and lasted_s >= MIN_JUDGED_S else None

    def _limit_notes(self, busy_part: float | None, waiting_part: float | None) -> list[str]:
        if busy_part is None or waiting_part is None:
            return []
        if busy_part <= MAX_BUSY_PART < busy_part + waiting_part:
            return [
                f"other programs slowed the client down: its thread was busy {busy_part:.0%} of the time and waited "
                f"{waiting_part:.0%} for a core, allowed: {MAX_BUSY_PART:.0%} together. Latencies include the wait: "
                "stop the other programs, or reserve cores for the client (taskset)"
            ]
        if busy_part <= MAX_BUSY_PART:
            return []
        quick = "" if {"uvloop", "orjson"} <= sys.modules.keys() else "python3 -m pip install uvloop orjson, or "
        return [
            f"limited by the client: its thread was busy {busy_part:.0%} of the time, allowed: {MAX_BUSY_PART:.0%}. "
            f"Latencies include the wait for it: {quick}--client_processes={2 * self._settings.client_processes} where "
            "cores are idle, or use a machine with faster ones"
        ]

    def _told_late_ms(self) -> Json:
        """Return how much later than a client process saw a first token LoadGen was told. None without processes."""
        late_s = np.array(self._fleet.told_late_s if self._fleet is not None else ())
        if not len(late_s):
            return None
        return {"p50": 1e3 * float(np.median(late_s)), "p99": 1e3 * float(np.quantile(late_s, 0.99))}

    def submit(self, requests: Sequence[Request]) -> None:
        self._arrived.extend(requests)
        if not self._is_closed:
            self._loop.loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        arrived = [self._arrived.popleft() for _ in range(len(self._arrived))]
        if arrived:
            self._opened().take(arrived)

    def _opened(self) -> Conversations | ClientFleet:
        if self._conversations is None:
            raise HarnessError("the endpoint is used before its probe", "this is a bug of the harness")
        return self._conversations

    def record(self) -> Mapping[str, Json]:
        """Return the settings in effect, the findings of the probe, and the counts since `start`."""
        probed, conversations = self._probed, self._opened()
        busy_part, waiting_part = self.busy_part(), self.waiting_part()
        assert probed is not None
        settings = [(one, True) for one in probed.form.sent_fields] + [(one, False) for one in probed.refused]
        sampling: dict[str, Json] = {
            one.name: {"value": one.value, "origin": "benchmark", "accepted": accepted} for one, accepted in settings
        }
        if any(one.name == TEMPERATURE for one in probed.refused):
            sampling[TEMPERATURE] = {"value": None, "origin": "the server's default", "accepted": False}
        sampling[probed.form.limit] = {"value": probed.form.max_tokens, "origin": "benchmark", "accepted": True}
        address = self._client.address
        return {
            "endpoint": {"value": address.shown_url, "origin": "user"},
            "model": {"value": address.plain(probed.form.model), "origin": "probe"},
            "api": {"value": probed.form.path.lstrip("/"), "origin": "probe"},
            "prompt": {"value": probed.form.prompt, "origin": "probe"},
            "streamed": {"value": probed.form.is_streamed, "origin": "probe"},
            "has_key": {"value": address.key.is_given, "origin": "user"},
            "headers": {"value": list(address.key.names), "origin": "user"},
            "has_proxy": {"value": address.proxy is not None, "origin": "environment"},
            **self._settings.record(),
            "token_counts": {
                "value": _counter(probed, self._vocabulary),
                "origin": "probe",
            },
            "sampling": sampling,
            "client_busy_part": {"value": busy_part, "origin": "measured"},
            "client_waiting_part": {"value": waiting_part, "origin": "measured"},
            "told_late_ms": {"value": self._told_late_ms(), "origin": "measured"},
            "notes": [*self._settings.notes, *probed.notes, *self._limit_notes(busy_part, waiting_part)],
            "problems": [] if self._fleet is None else list(self._fleet.problems),
            "counts": conversations.record(),
        }

    def versions(self) -> Mapping[str, str]:
        found = {"tokenizers": str(tokenizers.__version__)}
        found |= {name: importlib.metadata.version(name) for name in ("uvloop", "orjson") if name in sys.modules}
        if self._probed is not None and self._probed.server:
            found["server"] = self._probed.server
        return found

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._conversations is not None:
            for note in self._limit_notes(self.busy_part(), self.waiting_part()):
                print(f"harness: endpoint: {note}", file=sys.stderr)
        with contextlib.suppress(HarnessError):  # the thread is a daemon: it ends with the process
            self._loop.result(self._shut(), _CLOSE_S)
        self._loop.stop()
        if self._fleet is not None:
            self._fleet.wait()

    async def _shut(self) -> None:
        for one in (self._conversations, self._fleet):
            if one is not None:
                await one.close()
        await self._client.close()


def _counter(probed: Probed, vocabulary: Tokenizer | None) -> str:
    """Return what the tokens of answers are counted by."""
    if probed.first.ids:
        return "token ids of the server"
    return "the server's usage.completion_tokens" if vocabulary is None else "the run's tokenizer over the text"


def _address(request: EngineRequest) -> Address:
    endpoint = request.text.endpoint
    if endpoint is None:
        problem = Problem("text.endpoint", "null", "an object with url: the backend endpoint needs a server")
        raise ConfigError("the run", [problem], "give it as --endpoint=http://HOST:PORT/v1")
    return parse_address(endpoint, os.environ)


def open_engine(request: EngineRequest) -> EndpointEngine:
    """Return the client of a probed server. Raises ConfigError and HarnessError for a wrong URL, key, server, model,
    tokenizer or setting."""
    address, settings = _address(request), resolve_client(request.text, request.is_one_at_a_time)
    endpoint = request.text.endpoint
    assert endpoint is not None
    folder = request.facts.folder
    if folder is not None and not (folder / FILE).is_file():
        folder = None
    vocabulary = None if folder is None else open_tokenizer(folder, is_cleaned=False)
    prompt = replace(request.probes[0], max_tokens=None) if request.probes else default_prompt(vocabulary, endpoint.api)
    engine = EndpointEngine(
        Loop(), Client(address, settings.timeout_s, settings.stall_s, settings.most_left_open), settings, vocabulary
    )
    try:
        engine.probe(
            Question(
                endpoint=endpoint,
                sampling=request.sampling,
                prompt=prompt,
                vocabulary=vocabulary,
                longest_prompt=request.longest_prompt,
                needs_first=request.needs_first,
                is_server_believed=request.is_server_believed,
                is_streamed=request.is_streamed,
            ),
            None if folder is None else folder.resolve(),
        )
    except BaseException:
        engine.close()
        raise
    for note in engine.record()["notes"] or ():  # type: ignore[union-attr]
        print(f"harness: endpoint: {note}", file=sys.stderr)
    return engine
