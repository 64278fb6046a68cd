"""The cost of one inference of ONNX files as crowdperf measures it (--model_path, SingleStream), compared with a bare
loop of onnxruntime that does what onnxruntime_perf_test does.

    .venv-harness/bin/python benchmarks/own_onnx_beside_bare_loop.py FILE.onnx=INPUTS.npz ... [--shape=NAME:1,3,8,8]
                             [--seconds=4] [--rounds=5]

No package of PyPI, Debian or npm has onnxruntime_perf_test. The loop here has the same steps: one session, its inputs
made beforehand, `Run` again and again, outputs allocated by onnxruntime, default graph optimizations, no usage reports.
Both use one thread and the same inputs (INPUTS.npz: an array for each input, samples first), and take turns. Printed
are medians of the rounds: the median latency by the clock, and CPU time per inference. For crowdperf this is the CPU
time of its whole process during the test, with LoadGen and the watch of the machine. The last column has the CPU times
of the fastest rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def by_crowdperf(model: Path, inputs: Path, given: argparse.Namespace) -> tuple[float, float]:
    """Return the median latency and the CPU time of an inference, in ms."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            str(ROOT / "cm"), "run", "script", "--tags=run,mlperf,inference", f"--model_path={model}",
            f"--inputs={inputs}", "--scenario=SingleStream", "--mode=performance", "--threads=1",
            f"--min_duration_ms={1000 * given.seconds}", f"--results_dir={name}",
        ]  # fmt: skip
        done = subprocess.run([*command, *given.shape], capture_output=True, text=True, check=False)
        found = list(Path(name).glob("*/*/SingleStream/performance/run_1/result.json"))
        if done.returncode or not found:
            raise SystemExit(f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        result = json.loads(found[0].read_text(encoding="utf-8"))
    used_s = result["load"]["mean_process_cpu_percent"] / 100 * result["duration_s"]
    return result["latency"]["p50_ns"] / 1e6, 1e3 * used_s / result["query_count"]


def by_bare_loop(model: Path, inputs: Path, seconds: int) -> tuple[float, float]:
    """Return the median latency and the CPU time of an inference, in ms."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # after that

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    arrays, ranks = dict(np.load(inputs)), {one.name: len(one.shape) for one in session.get_inputs()}
    feeds = [
        {name: rows[at] if rows.ndim > ranks[name] else rows[at : at + 1] for name, rows in arrays.items()}
        for at in range(len(next(iter(arrays.values()))))
    ]
    names = [one.name for one in session.get_outputs()]
    for feed in feeds:
        session.run(names, feed)
    times_s, used_s, end_s = [], time.process_time(), time.perf_counter() + seconds
    while (start_s := time.perf_counter()) < end_s:
        session.run(names, feeds[len(times_s) % len(feeds)])
        times_s.append(time.perf_counter() - start_s)
    return 1e3 * statistics.median(times_s), 1e3 * (time.process_time() - used_s) / len(times_s)


def main() -> None:
    """Take turns, and print a row for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.onnx=INPUTS.npz")
    parser.add_argument("--shape", action="append", default=[], help="as for crowdperf")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    given.shape = [f"--shape={one}" for one in given.shape]
    print("| file | p50, ms: crowdperf | loop | ratio | CPU, ms: crowdperf | loop | ratio | fastest rounds |")
    print("|---|---|---|---|---|---|---|---|")
    for pair in given.files:
        model, inputs = (Path(one).resolve() for one in pair.split("="))
        rounds = []
        for number in range(given.rounds):
            print(f"{model.name}, round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            first = by_bare_loop(model, inputs, given.seconds) if number % 2 else None
            ours = by_crowdperf(model, inputs, given)
            rounds.append((ours, first or by_bare_loop(model, inputs, given.seconds)))
            print(rounds[-1], file=sys.stderr, flush=True)
        cells = []
        for at in range(2):
            columns = zip(*((ours[at], loop[at], ours[at] / loop[at]) for ours, loop in rounds), strict=True)
            cells += [f"{statistics.median(values):.3f}" for values in columns]
        fastest = [min(one[side][1] for one in rounds) for side in range(2)]
        cells.append(f"{fastest[0]:.3f} / {fastest[1]:.3f} = {fastest[0] / fastest[1]:.3f}")
        print(f"| {model.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
