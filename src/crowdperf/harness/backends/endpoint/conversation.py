"""Sends the requests of a run, up to a maximum at once, and reports the outcome of each to the listener, in the
loop."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence

from crowdperf.harness.backends.endpoint.answers import AnswerError, LateAnswer
from crowdperf.harness.backends.endpoint.client import Client
from crowdperf.harness.backends.endpoint.exchange import Counts, Exchange
from crowdperf.harness.backends.endpoint.faults import Refused, kind_of, words
from crowdperf.harness.backends.endpoint.probe import Probed
from crowdperf.harness.backends.endpoint.request_body import BodyMaker
from crowdperf.harness.backends.endpoint.retries import is_to_retry, pause_s
from crowdperf.harness.backends.endpoint.settings import ClientSettings
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import SERVER_HINT, Answer, Listener, Request, Tokens
from crowdperf.harness.text.tokenizer import Tokenizer
from crowdperf.logs.run_log import Json
from crowdperf.rules.names import counted

HOPELESS = 100
"""After so many requests in a row without an answer the server is given up: this project's choice."""
LATE_S = 0.01
"""A request that is sent later than this after its time is counted: this project's choice."""


def due_now(requests: Sequence[Request], arrive: Callable[[Request], None]) -> Sequence[Request]:
    """Return the requests that are due. `arrive` gets each of the others, which are of a trace, at its time."""
    now_s, loop = time.monotonic(), asyncio.get_running_loop()
    later = [one for one in requests if one.issued_s is not None and one.issued_s > now_s]
    if not later:
        return requests
    for one in later:
        loop.call_later((one.issued_s or now_s) - now_s, arrive, one)
    return [one for one in requests if one.issued_s is None or one.issued_s <= now_s]


class Conversations:
    """The requests of a run."""

    def __init__(self, client: Client, probed: Probed, settings: ClientSettings, vocabulary: Tokenizer | None) -> None:
        self._waiting: deque[Request] = deque()
        self.counts = Counts()
        self._client = client
        self._probed = probed
        self._settings = settings
        self._reading = probed.reading(vocabulary)
        self._bodies = BodyMaker(probed.form)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None
        self._in_flight = 0
        self._failed_in_a_row = 0
        self._is_given_up = False
        self.began_s = self.ended_s = 0.0
        """The first request and the last answer, in s of time.monotonic()."""

    def start(self, listener: Listener) -> None:
        """Report to `listener` from now on, with all counts at zero."""
        self._listener = listener
        self.counts = Counts()
        self._client.resent = self._client.ignored_events = 0
        self._client.pool.window.reset()
        self._failed_in_a_row, self._is_given_up = 0, False
        self.began_s = self.ended_s = 0.0

    def record(self) -> dict[str, Json]:
        client = self._client
        return {
            **self.counts.record(),
            "resent": client.resent,
            "ignored_events": client.ignored_events,
            "connected": client.pool.window.opened,
            "slow_connects": client.pool.window.slow,
        }

    def take(self, requests: Sequence[Request]) -> None:
        """Accept requests, and send them, queue them, or wait until they are due."""
        requests = due_now(requests, self._arrive)
        if not requests:
            return
        free = max(0, self._settings.max_in_flight - self._in_flight - len(self._waiting))
        self.counts.waited += max(0, len(requests) - free)
        self.began_s = self.began_s or time.monotonic()
        self._waiting.extend(requests)
        self._send()

    def _arrive(self, request: Request) -> None:
        """Send a request of a trace, which is due."""
        if self._listener is not None:
            self.take([request])

    def _send(self) -> None:
        """Send what waits, up to max_in_flight at once."""
        while self._waiting and self._in_flight < self._settings.max_in_flight:
            self._in_flight += 1
            self.counts.requests += 1
            task = asyncio.get_running_loop().create_task(self._converse(self._waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        self.counts.peak_in_flight = max(self.counts.peak_in_flight, self._in_flight)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = HarnessError("a request was cut off in the client") if task.cancelled() else task.exception()
        if error is not None and self._listener is not None:
            self._listener.broken(error)

    async def close(self) -> None:
        """End everything without telling anybody."""
        self._listener = None
        self._waiting.clear()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _converse(self, request: Request) -> None:
        """Get one answer and report it, or why there is none."""
        if self._is_given_up:
            self._fail(request, "not sent: the run gave up on the server", "not sent")
            return
        began_s = request.issued_s or time.monotonic()
        most = request.prompt.max_tokens or self._probed.form.max_tokens
        exchange = Exchange(self._reading, self.counts, most, began_s)
        exchange.on_first = lambda tokens: self._begin(request, tokens)
        exchange.on_answer = lambda answer: self._succeed(request, answer)
        try:
            await self._try(request, exchange)
            await exchange.settle()
        except Exception as error:
            if not exchange.is_reported:
                self._fail(request, exchange.explained(words(error, self._client.address)), kind_of(error))

    async def _try(self, request: Request, exchange: Exchange) -> None:
        """Send until there is an answer that is not "later", within the limit of the request."""
        now_s = time.monotonic()
        issued_s = request.issued_s or now_s
        deadline_s = issued_s + self._settings.timeout_s
        self.counts.sent_late += now_s - issued_s > LATE_S
        if now_s > deadline_s:
            raise LateAnswer(
                f"waited longer than the limit of a request ({self._settings.timeout_s:g} s) for one of the "
                f"{self._settings.max_in_flight:,} places (max_in_flight): a lower rate of requests"
            )
        path, body, tries = self._probed.form.path, self._bodies.make(request.prompt), 0
        while True:
            try:
                await self._client.ask(exchange.call(path, body, deadline_s - time.monotonic()))
                return
            except Refused as error:
                wait_s = pause_s(error.retry_after, tries, time.time(), random.random())
                if not is_to_retry(error):
                    raise
                if wait_s >= deadline_s - time.monotonic():
                    sent = (
                        f"sent {counted(tries + 1, 'time')} within the request timeout ({self._settings.timeout_s:g} s)"
                    )
                    raise AnswerError(f"{words(error, self._client.address)}, {sent}", kind_of(error)) from None
                status = str(error.status)
            tries += 1
            self.counts.retried += 1
            self.counts.retried_by_status[status] = self.counts.retried_by_status.get(status, 0) + 1
            await asyncio.sleep(wait_s)

    def _land(self) -> None:
        """Note that a request is finished, so that the next one can be sent."""
        self._in_flight -= 1
        self.ended_s = time.monotonic()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._send)

    def _fail(self, request: Request, why: str, kind: str) -> None:
        self._land()
        self.counts.failed += 1
        self._failed_in_a_row += 1
        listener = self._listener
        if listener is None:
            return
        if self._failed_in_a_row >= HOPELESS and not self._is_given_up:
            self._is_given_up = True
            listener.broken(
                HarnessError(
                    f"the endpoint answered none of the last {HOPELESS} requests. The last one, request "
                    f"{request.number}: {why}",
                    SERVER_HINT,
                )
            )
        listener.failed(request.number, why, kind)

    def _begin(self, request: Request, tokens: Tokens) -> None:
        if self._listener is not None:
            self._listener.first(request.number, tokens)

    def _succeed(self, request: Request, answer: Answer) -> None:
        self._land()
        self.counts.answered += 1
        self.counts.skipped += answer.skipped
        self._failed_in_a_row = 0
        if self._listener is not None:
            self._listener.done(request.number, answer)
