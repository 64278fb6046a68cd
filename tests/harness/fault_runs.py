"""Runs LoadGen once for each of `cases()`, with one call that raises, and prints how each run ended as JSON.

Imported once and forked for each case: a process can run one LoadGen test only. A run that has not ended after LIMIT_S
is killed by SIGALRM. Started by test_failures_in_runs.py.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.base.tensors import TensorSpec
from crowdperf.harness.runner.loadgen import SINK, Calls, Test, run_test
from crowdperf.harness.runner.loadgen_run import raise_recorded, samples_of
from crowdperf.harness.runner.qsl import DenseLibrary, RaggedLibrary
from crowdperf.harness.runner.sut import IssueShape, Work, chunked, multi_inline, queued, single_inline, split
from crowdperf.harness.watch.progress import Counts
from crowdperf.harness.watch.silence import silence_ends
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Mode, Scenario

LIMIT_S = 20
GRACE_S = 0.3
AT_ONCE = 8
"""Most of a case is waiting for the watchdog."""
COUNT = 40
WORDS = "planned fault"
SILENCE_S = 1.0
HANGS = {"hang at the first": 0.0, "hang in the middle": 0.5, "hang at the last": 1.0}
"""A network that does not come back once, after so much of the samples of a run."""
HELD = "hang with the interpreter's lock"
SLOW = "slow"
QUERIES = 100
SPEC = TensorSpec(name="y", dtype="float32", shape=(2,))

SHAPES = {
    "inline": ("SingleStream", lambda work: single_inline(work), 1),
    "inline Server": ("Server", lambda work: single_inline(work), 1),
    "multi_inline": ("MultiStream", lambda work: multi_inline(work), 1),
    "split": ("MultiStream", lambda work: split(work), 2),
    "chunked": ("Offline", lambda work: chunked(work, 8), 1),
    "chunked on two": ("Offline", lambda work: chunked(work, 8), 2),
    "queued": ("Server", lambda work: queued(work, 4), 2),
}
EVERYWHERE = ("predict", "exit", "gather", "complete", "load", "unload")
OF_THREADS = ("core taken away", "core not given back")
OF_RAGGED = ("length order", "collate", "response")
RAGGED = ("inline", "multi_inline", "split", "chunked on two", "queued")


def cases() -> list[tuple[str, str, bool]]:
    """Shape, fault, and whether samples and responses differ in size."""
    found = [(shape, fault, False) for shape in SHAPES for fault in EVERYWHERE]
    found += [(shape, fault, False) for shape in ("split", "chunked on two", "queued") for fault in OF_THREADS]
    found += [(shape, fault, False) for shape in SHAPES for fault in (*HANGS, SLOW)]
    found += [("inline", HELD, False)]
    found += [(shape, fault, True) for shape in RAGGED for fault in OF_RAGGED]
    return [case for case in found if not is_without_call(*case)]


def is_without_call(shape: str, fault: str, is_ragged: bool) -> bool:
    """Whether the shape never makes that call: only Offline is put in order, and what is answered in the callback is a
    view of the samples."""
    return (fault == "length order" and "chunked" not in shape) or (
        fault == "gather" and "inline" in shape and not is_ragged
    )


def case_name(case: tuple[str, str, bool]) -> str:
    """What a case is called in the answer of `main`."""
    return f"{case[0]}, {case[1]}, {'ragged' if case[2] else 'dense'}"


class Fault:
    """Raises once, at the second call of the named part (at the first one of what is called once)."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls = 0
        self._lock = threading.Lock()

    def at(self, name: str) -> None:
        if name != self._name:
            return
        with self._lock:
            self._calls += 1
            is_due = self._calls == (2 if name in ("predict", "exit", "gather", "complete", "collate") else 1)
        if is_due:
            raise SystemExit(WORDS) if name == "exit" else OSError(WORDS)


class Numbers:
    count = COUNT

    def __init__(self, fault: Fault, is_ragged: bool) -> None:
        self._fault, self._is_ragged = fault, is_ragged

    def load(self, indices):
        self._fault.at("load")
        if self._is_ragged:
            return [{"x": np.full(index % 3 + 1, index, np.float32)} for index in indices]
        return {"x": np.asarray(indices, dtype=np.float32)}


class Pieces:
    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def length(self, sample):
        return len(sample["x"])

    def collate(self, samples):
        self._fault.at("collate")
        return {"x": np.asarray([sample["x"][0] for sample in samples], np.float32)}


def make_work(fault: Fault, is_ragged: bool, instances: int) -> Work:
    source = Numbers(fault, is_ragged)
    library = RaggedLibrary(source, Pieces(fault)) if is_ragged else DenseLibrary(source)
    library.load(range(COUNT))  # as the warm-up does, before the fault counts
    for name, calls in {"gather": "gather", "unload": "unload", "by_length": "length order"}.items():
        setattr(library, name, faulty(getattr(library, name), fault, calls))
    fixed = library.fixed_gather
    library.fixed_gather = lambda count: faulty(fixed(count), fault, "gather")

    def predict(networks, inputs):
        fault.at("predict")
        fault.at("exit")
        rows = np.repeat(inputs["x"].reshape(-1, 1), 2, axis=1)
        return [row.copy() for row in rows] if is_ragged else rows

    @contextlib.contextmanager
    def at_core(number: int) -> Iterator[None]:
        if number == instances - 1:
            fault.at("core taken away")
        yield
        if number == instances - 1:
            fault.at("core not given back")

    return Work(
        library=library,
        predict=predict,
        networks=[{}] * instances,
        response=None if is_ragged else SPEC,
        failures=Failures(grace_s=GRACE_S),
        sink=ResponseSink(SINK.make_response, faulty(SINK.complete, fault, "complete")),
        at_core=at_core,
        counts=Counts(instances),
    )


class Network:
    """Stands in front of a network and sleeps as the fault says: once far too long, or a little each time."""

    def __init__(self, predict, fault: str, scenario: Scenario, counts: Counts) -> None:
        self._predict, self._fault, self._scenario, self._counts = predict, fault, scenario, counts
        self._lock, self._seen, self._is_hung = threading.Lock(), 0, False

    def _is_due(self, samples: int) -> bool:
        a_query = MULTI_STREAM_SAMPLES_PER_QUERY if self._scenario is Scenario.MULTI_STREAM else 1
        whole = self._counts.expected or QUERIES * a_query
        with self._lock:
            self._seen += samples
            is_due = not self._is_hung and self._seen >= HANGS.get(self._fault, 0.0) * whole
            self._is_hung |= is_due
        return is_due

    def predict(self, networks, inputs):
        if self._fault == SLOW:
            time.sleep(SILENCE_S / 4)
        elif self._is_due(len(inputs["x"])):
            (ctypes.PyDLL(None).sleep if self._fault == HELD else time.sleep)(LIMIT_S)
        return self._predict(networks, inputs)


def faulty(call, fault: Fault, name: str):
    def call_with_fault(*arguments):
        fault.at(name)
        return call(*arguments)

    return call_with_fault


def run_case(shape_name: str, fault_name: str, is_ragged: bool, folder: Path) -> None:
    scenario_name, make_shape, instances = SHAPES[shape_name]
    fault = Fault("no fault yet")
    work = make_work(fault, is_ragged, instances)
    if fault_name == "response":
        sink = ResponseSink(faulty(SINK.make_response, fault, "response"), work.sink.complete)
        work = replace(work, sink=sink)
    fault._name = fault_name
    scenario = Scenario(scenario_name)
    values = {"min_duration": 60_000, "min_query_count": QUERIES, "performance_sample_count_override": COUNT}
    if fault_name in ("unload", "core not given back"):  # at the end of a run
        values["min_duration"] = 50
    target = {"target_latency": 1} if scenario.is_stream else {"target_qps": 1000}
    if fault_name in (*HANGS, HELD, SLOW):
        work = replace(work, predict=Network(work.predict, fault_name, scenario, work.counts).predict)
        values |= {"min_duration": 1, "min_query_count": 12 if fault_name == SLOW else QUERIES}
        target = target if scenario.is_stream else {"target_qps": 100}
    shape: IssueShape = make_shape(work)
    test = Test(
        model="digits", scenario=scenario, mode=Mode.PERFORMANCE, conf_values={**values, **target},
        performance_sample_count=COUNT,
    )  # fmt: skip
    with silence_ends(work.counts, SILENCE_S, work.failures.record):
        run_test(test, Calls(shape.issue, work.counts.flush), samples_of(work), RunPaths(folder))
    raise_recorded(work)
    shape.close()
    raise_recorded(work)
    sys.stderr.write("ended as if all were well")


def in_child(case: tuple[str, str, bool], folder: Path) -> None:
    stderr = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT)
    os.dup2(stderr, 2)
    signal.alarm(LIMIT_S)
    code = 0
    try:
        run_case(*case, folder)
    except HarnessError as error:
        sys.stderr.write(f"harness: error: {error}\n")
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 9
    sys.stderr.flush()
    os._exit(code)


def start(case: tuple[str, str, bool], folder: Path) -> int:
    """Return the process of a case that has been started."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        in_child(case, folder)
    return child


def main() -> None:
    """Run every case and print {"<shape>, <fault>, <ragged>": [exit code, stderr]}."""
    ended, waiting = {}, list(enumerate(cases()))
    running: dict[int, tuple[tuple[str, str, bool], Path]] = {}
    with tempfile.TemporaryDirectory() as place:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, case = waiting.pop()
                running[start(case, Path(place, str(number)))] = (case, Path(place, str(number)))
            child, status = os.wait()
            case, folder = running.pop(child)
            text = (folder / "stderr").read_text(errors="replace")
            ended[case_name(case)] = [os.waitstatus_to_exitcode(status), text]
    print(json.dumps(ended))


if __name__ == "__main__":
    main()
