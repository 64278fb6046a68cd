"""A bare onnxruntime loop on a model with one image input: what the harness is measured against (model_speed.py).

Run as a process of its own:

    bare_model.py MODEL SECONDS find BATCH[,BATCH...]          tries every way of calling, prints the best one
    bare_model.py MODEL SECONDS WORKERS,THREADS,SPIN,BATCH     measures one way, prints samples per second

A way of calling is a number of Python threads that share a session of so many intra-operator threads, waiting with or
without keeping their cores busy (onnxruntime's default: busy), and a batch size. Nothing is gathered, logged or
answered; the input is ready.
"""

import itertools
import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

_TRY_S = 1.5


@dataclass(frozen=True)
class Way:
    """Python threads, threads of one operator, whether waiting threads spin (0, 1), samples of a call."""

    workers: int
    threads: int
    spin: int
    batch: int


def _session(model: str, way: Way) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = way.threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", str(way.spin))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _feed(session: onnxruntime.InferenceSession, batch: int) -> dict[str, Any]:
    (image,) = session.get_inputs()
    shape = [batch, *(size for size in image.shape[1:])]
    return {image.name: np.random.default_rng(0).random(shape, dtype=np.float32)}


def rate(model: str, way: Way, seconds: float) -> float:
    """Return samples per second of `way`, measured for `seconds` after one call of each thread."""
    session = _session(model, way)
    feed = _feed(session, way.batch)
    names = [session.get_outputs()[-1].name]
    session.run(names, feed)
    counts = [0] * way.workers
    start = time.perf_counter()

    def work(number: int) -> None:
        while time.perf_counter() - start < seconds:
            session.run(names, feed)
            counts[number] += way.batch

    helpers = [threading.Thread(target=work, args=(number,)) for number in range(1, way.workers)]
    for helper in helpers:
        helper.start()
    work(0)
    for helper in helpers:
        helper.join()
    return sum(counts) / (time.perf_counter() - start)


def ways(batches: list[int], is_stream: bool) -> list[Way]:
    """Return what is tried: one call at a time on 1 or all cores, and one call on each core (not for a stream)."""
    cores = len(os.sched_getaffinity(0))
    layouts = {(1, 1, 0), (1, cores, 0), (1, cores, 1)}
    if not is_stream:
        layouts.add((cores, 1, 0))
    return [Way(*layout, batch) for layout, batch in itertools.product(sorted(layouts), batches)]


def main(model: str, seconds: float, what: str, batches: str = "") -> None:
    """Print one JSON object."""
    if what == "find":
        sizes = [int(text) for text in batches.split(",")]
        tried = {way: rate(model, way, _TRY_S) for way in ways(sizes, is_stream=len(sizes) == 1)}
        best = max(tried, key=tried.__getitem__)
        print(json.dumps([best.workers, best.threads, best.spin, best.batch]))
        return
    print(json.dumps(rate(model, Way(*map(int, what.split(","))), seconds)))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
