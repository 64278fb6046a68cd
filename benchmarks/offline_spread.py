"""Whether the harness adds to the spread of Offline: a bare onnxruntime loop and Offline runs of the harness in turn,
each a process of its own, compared by the CPU time of a sample.

    .venv-harness/bin/python benchmarks/offline_spread.py [--pairs 10] [--seconds 2] [--batch 32]

Both sides have an instance with one thread for each core and the same batch, model (random weights, shape of the digits
model) and session options, so a search for a shape has no part in it. The bare loop runs one ready batch again and
again. CPU time is used because other programs take turns on a busy machine: the clock would compare them. "spread":
largest less smallest, in percent of the median; "deviation": standard deviation in percent of the mean.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from harness_process import SOURCE, run_harness, run_python

sys.path.insert(0, str(SOURCE))

SAMPLES_PER_SECOND = 40_000
"""Planned for a run of the harness. A faster machine takes less than --seconds, at least LoadGen's shortest time."""


def bare(model: Path, seconds: float, batch: int) -> float:
    """Microseconds of CPU time a sample takes in a bare loop on all cores."""
    import numpy as np
    import onnxruntime

    from crowdperf.harness.backends.onnxruntime.backend import session_options

    cores = sorted(os.sched_getaffinity(0))
    counts, ready = [0] * len(cores), threading.Barrier(len(cores) + 1)

    def work(number: int) -> None:
        os.sched_setaffinity(0, {cores[number]})
        session = onnxruntime.InferenceSession(str(model), session_options(1), providers=["CPUExecutionProvider"])
        feed = {"image": np.random.default_rng(number).random((batch, 1, 8, 8), dtype=np.float32)}
        for _ in range(200):
            session.run(["logits"], feed)
        ready.wait()
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            for _ in range(16):
                session.run(["logits"], feed)
            counts[number] += 16 * batch

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cores))]
    for thread in threads:
        thread.start()
    ready.wait()
    before_s = time.process_time()
    for thread in threads:
        thread.join()
    return 1e6 * (time.process_time() - before_s) / sum(counts)


def through_harness(folder: Path, model: Path, dataset: Path, seconds: float, batch: int) -> float:
    """Microseconds of CPU time a sample takes in an Offline run of the harness, warm-up left out."""
    cores = len(os.sched_getaffinity(0))
    request = {
        "model": "digits", "backend": "onnxruntime", "scenario": "Offline", "model_path": str(model),
        "dataset_path": str(dataset), "min_duration_ms": round(1000 * seconds), "min_query_count": 1,
        "batch_size": batch, "instances": cores, "threads": cores, "target_qps": SAMPLES_PER_SECOND,
    }  # fmt: skip
    run_harness(folder, request)
    load = json.loads((folder / "load.json").read_text())
    time_s, percent, answered = map(load["columns"].index, ("time_s", "process_cpu_percent", "answered"))
    rows = load["rows"]
    spent_s = sum(now[percent] / 100.0 * (now[time_s] - before[time_s]) for before, now in itertools.pairwise(rows))
    return float(1e6 * spent_s / (rows[-1][answered] - rows[0][answered]))


def row(name: str, values: Sequence[float]) -> str:
    """The line of one side."""
    median = statistics.median(values)
    spread = 100.0 * (max(values) - min(values)) / median
    deviation = 100.0 * statistics.stdev(values) / statistics.mean(values)
    return f"{name:<24}{median:>8.2f}{min(values):>8.2f}{max(values):>8.2f}{spread:>8.0f} %{deviation:>10.0f} %"


def main() -> int:
    """Measures the pairs and prints both sides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bare", type=Path, metavar="MODEL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        print(json.dumps(bare(given.bare, given.seconds, given.batch)))
        return 0
    from harness_standin import write_dataset, write_model

    sides: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as temporary:
        model, dataset = Path(temporary) / "stand-in.onnx", Path(temporary) / "dataset"
        write_model(model)
        write_dataset(dataset)
        options = ["--seconds", str(given.seconds), "--batch", str(given.batch)]
        for number in range(given.pairs):
            sides[0].append(float(json.loads(run_python([__file__, "--bare", str(model), *options]))))
            sides[1].append(through_harness(Path(temporary) / "run", model, dataset, given.seconds, given.batch))
            print(f"pair {number + 1} of {given.pairs}", file=sys.stderr)
    print(f"{'CPU time, us a sample':<24}{'median':>8}{'least':>8}{'most':>8}{'spread':>10}{'deviation':>12}")
    print(row("bare onnxruntime loop", sides[0]))
    print(row("harness, Offline", sides[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
