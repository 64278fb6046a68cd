"""Turns queries into responses: one shape per scenario, each with as little Python per sample as possible.

    SingleStream   answered inside the callback, as one ready view of the sample
    MultiStream    answered inside the callback, as one view of the eight samples, or cut into a part for each instance
    Offline        the one big query is put in order of length, one pass over the samples at a time, and cut into
                   batches, which the instances process in turn
    Server         inside the callback if the network is quicker than a thread hand-over, else the callback only
                   queues, and the instances answer the waiting samples in batches

Responses of one size keep LoadGen's response objects and the array they point into, and rewrite only the ids: creating
an object costs nine times as much. LoadGen reads the array while `complete` runs, so it can be filled again afterwards.
A network that answers in the same array each time is read there, without a copy. Response bytes are made by the same
code in performance and accuracy mode.
"""

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import FixedResponses, ResponseSink, require_arrays
from crowdperf.harness.base.tensors import Array, Infer, Tensors, TensorSpec, TokenResponses
from crowdperf.harness.base.work_queue import BatchQueue, SharedIterator
from crowdperf.harness.runner.qsl import Indices, Library
from crowdperf.harness.watch.progress import Counts
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY

Issue: TypeAlias = Callable[[list[int], list[int]], None]
"""LoadGen's call: the response ids and the sample indices of one query."""

Answer: TypeAlias = Callable[[list[int], Indices], None]
"""The same for a part of a query, whose indices may be an array."""

Networks: TypeAlias = Mapping[str, Infer]
"""The networks of one instance by name."""

Predict: TypeAlias = Callable[[Networks, Tensors], "Array | Sequence[Array]"]
"""A model's `predict`: a batch of inputs to its responses."""

INLINE_SERVER_LIMIT_MS = 0.1
"""A network quicker than this is answered inside the Server callback: a thread hand-over costs more than it wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The inputs of every shape: the samples, the model's `predict` with the networks of each instance, the response's
    form, the receiver of errors. The shapes call `predict(networks, inputs)` themselves: bound to its networks it would
    add a tenth to a SingleStream query.

    at_core: puts the calling thread on the cores of an instance. counts: the samples each instance has answered.
    """

    library: Library
    predict: Predict
    networks: Sequence[Networks]
    response: TensorSpec | None
    failures: Failures
    sink: ResponseSink
    at_core: Callable[[int], AbstractContextManager[None]]
    counts: Counts

    def require_response_form(self, index: int) -> None:
        """Raise HarnessError when the response of a loaded sample has not the type and shape that the model
        declares."""
        self.counts.asked += 1
        rows = self.predict(self.networks[0], self.library.single[index])
        self.counts.slots[0] += 1
        if self.response is None:
            require_arrays(rows, 1)
            return
        wanted = (1, *self.response.fixed_shape)
        if not isinstance(rows, np.ndarray) or rows.shape != wanted or rows.dtype != self.response.dtype:
            found = f"{rows.dtype}{list(rows.shape)}" if isinstance(rows, np.ndarray) else type(rows).__name__
            raise HarnessError(
                f"a response is {found}, but the model declares {self.response.dtype}{list(wanted)}",
                "use the model file that belongs to this model",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueShape:
    """A way to answer queries. `close` is called when LoadGen has ended. `name` is for the report."""

    name: str
    issue: Issue
    close: Callable[[], None]


def _nothing() -> None:
    return None


def _thread(work: Work, serve: Callable[[int], None], number: int) -> threading.Thread:
    """Return the unstarted thread of instance `number`. Any error of `serve` ends the run."""
    target = work.failures.guarded(serve)
    return threading.Thread(target=target, args=(number,), daemon=True, name=f"instance-{number}")


def _join(threads: Sequence[threading.Thread]) -> None:
    """Wait for the end of the threads that were started: the system may have refused to start the others."""
    for thread in threads:
        if thread.ident is not None:
            thread.join()


def batch_answer(work: Work, number: int, largest: int) -> Answer:
    """Return a function that answers 1 to `largest` samples with one batch on instance `number` and one completion.

    One thread at a time may use it. Once the run has failed it answers without the network.
    """
    if work.response is None:
        return _differing_answer(work, number, largest)
    responses, fewer = (FixedResponses(work.sink, work.response, largest) for _ in range(2))
    predict, networks, complete, failures = work.predict, work.networks[number], work.sink.complete, work.failures
    gather, slots, set_id = work.library.fixed_gather(largest), work.counts.slots, work.sink.set_id
    objects, take, read = responses.objects, responses.take, responses.buffer

    def answer_fewer(ids: list[int], indices: Indices) -> None:
        count = len(ids)
        if not failures.is_set:
            try:
                rows = predict(networks, gather(indices))
                if len(rows) != count:
                    raise HarnessError(f"{count:,} samples got {len(rows)} responses")
                fewer.buffer[:count] = rows
            except BaseException as error:  # whatever it is must not reach LoadGen
                failures.record(error)
        chosen = fewer.objects[:count]
        any(map(set_id, chosen, ids))
        complete(chosen)
        slots[number] += count

    def answer(ids: list[int], indices: Indices) -> None:
        nonlocal read
        if len(ids) != largest:
            answer_fewer(ids, indices)
            return
        if not failures.is_set:
            try:
                rows = predict(networks, gather(indices))
                if rows is not read:
                    read = take(rows)
            except BaseException as error:  # whatever it is must not reach LoadGen
                failures.record(error)
        any(map(set_id, objects, ids))  # a loop in C: each call returns None
        complete(objects)
        slots[number] += largest

    return answer


def _differing_answer(work: Work, number: int, largest: int) -> Answer:
    """Return the function of `batch_answer` for responses that differ in size: an object for each is made."""
    predict, networks, complete, failures = work.predict, work.networks[number], work.sink.complete, work.failures
    make_response, gather, slots = work.sink.make_response, work.library.fixed_gather(largest), work.counts.slots

    def answer(ids: list[int], indices: Indices) -> None:
        rows: Array | Sequence[Array] = ()
        if not failures.is_set:
            try:
                rows = predict(networks, gather(indices))
                require_arrays(rows, len(ids))
            except BaseException as error:  # whatever it is must not reach LoadGen
                failures.record(error)
        if failures.is_set:
            complete([make_response(identifier, 0, 0) for identifier in ids])
            return
        addresses = [row.__array_interface__["data"][0] for row in rows]
        sizes = [row.nbytes for row in rows]
        counts = [rows.token_counts] if isinstance(rows, TokenResponses) else []
        complete(list(map(make_response, ids, addresses, sizes, *counts)))  # `rows` lives until LoadGen has read it
        slots[number] += len(ids)

    return answer


def _answered_at_once(work: Work, largest: int) -> Issue:
    """Return the function that answers queries of up to `largest` samples as one batch on instance 0."""
    answer, counts = batch_answer(work, 0, largest), work.counts

    def issue(ids: list[int], indices: list[int]) -> None:
        counts.asked += len(ids)
        answer(ids, indices)

    return work.failures.guarded(issue)


def single_inline(work: Work) -> IssueShape:
    """Return the shape for queries of one sample, answered in the callback by instance 0."""
    if work.response is None or work.library.is_ragged:
        return IssueShape(name="inline", issue=_answered_at_once(work, 1), close=_nothing)
    responses = FixedResponses(work.sink, work.response, 1)
    objects, read = responses.objects, responses.buffer
    response, set_id = objects[0], work.sink.set_id
    predict, networks, complete, failures = work.predict, work.networks[0], work.sink.complete, work.failures
    single, counts = work.library.single, work.counts

    def issue(ids: list[int], indices: list[int]) -> None:
        nonlocal read
        counts.answering = 1
        try:  # twice, and not `guarded`: a call costs a tenth here
            set_id(response, ids[0])
            if not failures.is_set:
                try:
                    rows = predict(networks, single[indices[0]])
                    if rows is not read:
                        read = responses.take(rows)
                except BaseException as error:  # whatever it is must not reach LoadGen
                    failures.record(error)
            complete(objects)
            counts.answered += 1
            counts.answering = 0
        except BaseException as error:  # LoadGen gets no answer; the watchdog ends the run
            failures.record(error)

    return IssueShape(name="inline", issue=issue, close=_nothing)


def multi_inline(work: Work) -> IssueShape:
    """Return the shape for queries of up to eight samples, answered in the callback as one batch on instance 0."""
    answer = _answered_at_once(work, MULTI_STREAM_SAMPLES_PER_QUERY)
    if work.response is None or work.library.is_ragged:
        return IssueShape(name="inline batch", issue=answer, close=_nothing)
    responses = FixedResponses(work.sink, work.response, MULTI_STREAM_SAMPLES_PER_QUERY)
    objects, read, set_id = responses.objects, responses.buffer, work.sink.set_id
    predict, networks, complete, failures = work.predict, work.networks[0], work.sink.complete, work.failures
    neighbours, counts = work.library.neighbours, work.counts

    def issue(ids: list[int], indices: list[int]) -> None:
        nonlocal read
        try:  # as in `single_inline`
            samples, inputs = neighbours[indices[0]]
            if samples != indices:
                answer(ids, indices)
                return
            counts.answering = MULTI_STREAM_SAMPLES_PER_QUERY
            any(map(set_id, objects, ids))
            if not failures.is_set:
                try:
                    rows = predict(networks, inputs)
                    if rows is not read:
                        read = responses.take(rows)
                except BaseException as error:  # whatever it is must not reach LoadGen
                    failures.record(error)
            complete(objects)
            counts.answered += MULTI_STREAM_SAMPLES_PER_QUERY
            counts.answering = 0
        except BaseException as error:  # LoadGen gets no answer; the watchdog ends the run
            failures.record(error)

    return IssueShape(name="inline batch", issue=issue, close=_nothing)


def chunked(work: Work, batch_size: int) -> IssueShape:
    """Return the shape for one big query: the instances process batches in turn, and the callback's thread is instance
    0.

    Samples of differing lengths are put in order first (`Library.by_length`): a batch then has samples of similar
    lengths, and the batches that are left for the end are the short ones.
    """
    answers = [batch_answer(work, number, batch_size) for number in range(len(work.networks))]
    helpers: list[threading.Thread] = []
    done, is_closed = threading.Semaphore(0), threading.Event()

    def issue(ids: list[int], indices: list[int]) -> None:
        work.counts.asked += len(ids)
        work.counts.expected = max(work.counts.expected, len(ids))  # an accuracy run asks for one part after another
        rows = np.frombuffer(array("q", indices), dtype=np.int64)  # twice as quick as np.array
        order = work.library.by_length(rows)
        if order is not None:
            ids, rows = np.asarray(ids)[order].tolist(), rows[order]
        starts = SharedIterator(range(0, len(ids), batch_size))

        def drain(number: int) -> None:
            answer = answers[number]
            with work.at_core(number):
                for start in starts:
                    end = start + batch_size
                    answer(ids[start:end], rows[start:end])

        def help_out(number: int) -> None:
            try:
                drain(number)
            finally:
                done.release()
            is_closed.wait()  # LoadGen crashes now and then where a thread that answered ends before it does

        started = [_thread(work, help_out, number) for number in range(1, len(answers))]
        helpers.extend(started)
        for helper in started:
            helper.start()
        drain(0)
        for _ in started:
            done.acquire()

    def close() -> None:
        is_closed.set()
        _join(helpers)

    name = f"batches of {batch_size} on {len(answers)} instances"
    return IssueShape(name=name, issue=work.failures.guarded(issue), close=close)


def queued(work: Work, largest: int, wait_s: float = 0.0) -> IssueShape:
    """Return the shape that queues samples for the instances, which answer what waits, at most `largest` at once.

    wait_s: how long an instance waits for a batch to fill after its first sample came.
    """
    waiting = BatchQueue(largest, wait_s)

    def issue(ids: list[int], indices: list[int]) -> None:
        work.counts.asked += len(ids)
        waiting.put(ids, indices)

    def serve(number: int) -> None:
        answer = batch_answer(work, number, largest)
        with work.at_core(number):
            while (batch := waiting.take()) is not None:
                answer(*batch)

    workers = [_thread(work, serve, number) for number in range(len(work.networks))]
    for worker in workers:
        worker.start()

    def close() -> None:
        waiting.close()
        _join(workers)

    name = f"queued, at most {largest} at once on {len(workers)} instances"
    return IssueShape(name=name, issue=work.failures.guarded(issue), close=close)


def split(work: Work) -> IssueShape:
    """Return the shape that cuts a query of several samples into a part for each instance, and returns when all
    parts are answered."""
    parts = min(len(work.networks), MULTI_STREAM_SAMPLES_PER_QUERY)
    answers = [batch_answer(work, number, MULTI_STREAM_SAMPLES_PER_QUERY) for number in range(parts)]
    boxes: list[tuple[list[int], list[int]] | None] = [None] * parts
    starts = [threading.Semaphore(0) for _ in range(parts)]
    done = threading.Semaphore(0)

    def serve(number: int) -> None:
        with work.at_core(number):
            while True:
                starts[number].acquire()
                part = boxes[number]
                if part is None:
                    return
                try:
                    if part[0]:
                        answers[number](*part)
                finally:
                    done.release()

    workers = [_thread(work, serve, number) for number in range(1, parts)]
    for worker in workers:
        worker.start()

    def issue(ids: list[int], indices: list[int]) -> None:
        work.counts.asked += len(ids)
        for number in range(1, parts):
            boxes[number] = (ids[number::parts], indices[number::parts])
            starts[number].release()
        answers[0](ids[::parts], indices[::parts])
        for _ in range(1, parts):
            done.acquire()

    def close() -> None:
        for number in range(1, parts):
            boxes[number] = None
            starts[number].release()
        _join(workers)

    return IssueShape(name=f"split over {parts} instances", issue=work.failures.guarded(issue), close=close)
