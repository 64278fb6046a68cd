"""How queries become responses: one shape per scenario, each with as little Python per sample as it takes.

    SingleStream   answered inside the callback, as one ready view of the sample
    MultiStream    answered inside the callback, as one batch of eight
    Offline        the one big query is cut into batches, which `workers` threads take in turn
    Server         inside the callback where the network is quicker than a thread hand-over; else the callback only
                   queues, and a worker answers everything that waits as one batch

All of them keep LoadGen's response objects and the buffer they point into, and rewrite only the ids: making an object
costs three times as much. LoadGen reads a buffer while `complete` runs, so it can be filled again afterwards.
Response bytes are made by the same code in performance and accuracy mode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, TypeAlias

from mlperf_results.names import MULTI_STREAM_SAMPLES_PER_QUERY

from harness.errors import HarnessError
from harness.failures import Failures
from harness.qsl import SampleLibrary
from harness.tensors import Array, Tensors, TensorSpec

Issue: TypeAlias = Callable[[list[int], list[int]], None]
"""LoadGen's call: the response ids and the sample indices of one query."""

INLINE_SERVER_LIMIT_MS = 0.1
"""A network quicker than this is answered inside the Server callback: a thread hand-over costs more than it wins."""


class Response(Protocol):
    """LoadGen's QuerySampleResponse: the id of a query's sample, and the address and size of the bytes."""

    id: int


@dataclass(frozen=True, slots=True)
class Door:
    """The way back into LoadGen: `make_response(id, address, size_bytes)`, and `complete` for a list of them."""

    make_response: Callable[[int, int, int], Response]
    complete: Callable[[list[Response]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every shape needs: the samples, the network with its postprocessing, the response's form, where errors
    go."""

    library: SampleLibrary
    infer: Callable[[Tensors], Tensors]
    postprocess: Callable[[Tensors], Array]
    response: TensorSpec
    failures: Failures
    door: Door

    def require_response_form(self, index: int) -> None:
        """Raise HarnessError when the response of a loaded sample has not the type and shape that the model
        declares."""
        rows = self.postprocess(self.infer(self.library.single[index]))
        wanted = (1, *self.response.shape)
        if rows.shape != wanted or rows.dtype != self.response.dtype:
            raise HarnessError(
                f"a response is {rows.dtype}{list(rows.shape)}; the model declares {self.response.dtype}{list(wanted)}",
                "use the model file that belongs to this model",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueShape:
    """A way to answer queries; `close` is called when LoadGen has ended. `name` is for the report."""

    name: str
    issue: Issue
    close: Callable[[], None]


def _nothing() -> None:
    return None


def _fixed_responses(work: Work, count: int) -> tuple[Array, list[Response]]:
    """Return a buffer of `count` response rows, and a response object for each row."""
    buffer = work.response.zeros(count)
    address: int = buffer.__array_interface__["data"][0]
    size = work.response.size_bytes
    return buffer, [work.door.make_response(0, address + position * size, size) for position in range(count)]


def batch_answer(work: Work, largest: int) -> Issue:
    """Return a function that answers 1 to `largest` samples with one inference and one completion.

    It has a buffer of its own: one thread at a time may use it. Once the run has failed it answers what the buffer
    holds.
    """
    buffer, responses = _fixed_responses(work, largest)
    infer, postprocess, complete, failures = work.infer, work.postprocess, work.door.complete, work.failures
    gather = work.library.gather

    def answer(ids: list[int], indices: list[int]) -> None:
        count = len(ids)
        chosen, part = (responses, buffer) if count == largest else (responses[:count], buffer[:count])
        if not failures.is_set:
            try:
                rows = postprocess(infer(gather(indices)))
                if len(rows) != count:
                    raise HarnessError(f"{count} samples got {len(rows)} responses")
                part[...] = rows
            except Exception as error:  # whatever a backend raises must not reach LoadGen
                failures.record(error)
        for response, identifier in zip(chosen, ids, strict=True):
            response.id = identifier
        complete(chosen)

    return answer


def single_inline(work: Work) -> IssueShape:
    """Return the shape for queries of one sample, answered in the callback."""
    buffer, responses = _fixed_responses(work, 1)
    response = responses[0]
    infer, postprocess, complete, failures = work.infer, work.postprocess, work.door.complete, work.failures
    single = work.library.single

    def issue(ids: list[int], indices: list[int]) -> None:
        response.id = ids[0]
        if not failures.is_set:
            try:
                buffer[...] = postprocess(infer(single[indices[0]]))
            except Exception as error:  # whatever a backend raises must not reach LoadGen
                failures.record(error)
        complete(responses)

    return IssueShape(name="inline", issue=issue, close=_nothing)


def multi_inline(work: Work) -> IssueShape:
    """Return the shape for queries of up to eight samples, answered in the callback as one batch."""
    count = MULTI_STREAM_SAMPLES_PER_QUERY
    buffer, responses = _fixed_responses(work, count)
    gather = work.library.fixed_gather(count)
    infer, postprocess, complete, failures = work.infer, work.postprocess, work.door.complete, work.failures
    answer_fewer = batch_answer(work, count)

    def issue(ids: list[int], indices: list[int]) -> None:
        if len(ids) != count:  # the last query of an accuracy run
            answer_fewer(ids, indices)
            return
        if not failures.is_set:
            try:
                buffer[...] = postprocess(infer(gather(indices)))
            except Exception as error:  # whatever a backend raises must not reach LoadGen
                failures.record(error)
        for response, identifier in zip(responses, ids, strict=False):  # both are eight; checking costs a tenth here
            response.id = identifier
        complete(responses)

    return IssueShape(name="inline batch", issue=issue, close=_nothing)


def chunked(work: Work, batch_size: int, workers: int) -> IssueShape:
    """Return the shape for one big query: `workers` threads, the callback's own among them, take batches in turn."""
    answers = [batch_answer(work, batch_size) for _ in range(workers)]

    def issue(ids: list[int], indices: list[int]) -> None:
        starts = iter(range(0, len(ids), batch_size))  # one step of this iterator is one step of Python: safe to share

        def drain(answer: Issue) -> None:
            for start in starts:
                end = start + batch_size
                answer(ids[start:end], indices[start:end])

        helpers = [threading.Thread(target=drain, args=(answer,), daemon=True) for answer in answers[1:]]
        for helper in helpers:
            helper.start()
        drain(answers[0])
        for helper in helpers:
            helper.join()

    return IssueShape(name=f"batches of {batch_size} on {workers} threads", issue=issue, close=_nothing)


def queued(work: Work, largest: int) -> IssueShape:
    """Return the shape that queues samples for a worker, which answers what waits, at most `largest` at once."""
    waiting: SimpleQueue[tuple[Sequence[int], Sequence[int]] | None] = SimpleQueue()
    answer = batch_answer(work, largest)

    def issue(ids: list[int], indices: list[int]) -> None:
        waiting.put((ids, indices))

    def serve() -> None:
        while (first := waiting.get()) is not None:
            batch_ids, batch_indices = list(first[0]), list(first[1])
            for _ in range(min(waiting.qsize(), largest - 1)):  # Server queries are of one sample
                query = waiting.get()
                if query is None:  # `close` comes after the last answer, so nothing waits behind it
                    waiting.put(None)
                    break
                batch_ids += query[0]
                batch_indices += query[1]
            answer(batch_ids, batch_indices)

    worker = threading.Thread(target=serve, daemon=True, name="server-worker")
    worker.start()

    def close() -> None:
        waiting.put(None)
        worker.join()

    return IssueShape(name=f"queued, at most {largest} at once", issue=issue, close=close)
