"""The cost of one inference of ONNX files as crowdperf measures it (--model_path, SingleStream), compared with a bare
loop of onnxruntime, and with onnxruntime_perf_test.

    .venv-harness/bin/python benchmarks/own_onnx_beside_bare_loop.py FILE.onnx=INPUTS.npz ... [--shape=NAME:1,3,8,8]
                             [--seconds=4] [--rounds=5] [--perf_test=PATH]

No binary package of PyPI, Debian or npm has onnxruntime_perf_test. PATH is one that you built. The loop has the same
steps: one session, its inputs made beforehand, `Run` again and again, outputs allocated by onnxruntime, default graph
optimizations, no usage reports. All use one thread and the same inputs (INPUTS.npz: an array for each input, samples
first), and take turns. Printed are medians of the rounds: the median latency by the clock, and CPU time per inference.
For crowdperf this is the CPU time of its whole process during the test, with LoadGen and the watch of the machine. For
onnxruntime_perf_test it is that of the process, without that of one that makes a single inference. The last column has
the CPU times of the fastest rounds.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[1]


def by_crowdperf(model: Path, inputs: Path, given: argparse.Namespace) -> tuple[float, float]:
    """Return the median latency and the CPU time of an inference, in ms."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            str(ROOT / "cm"), "run", "script", "--tags=run,mlperf,inference", f"--model_path={model}",
            f"--inputs={inputs}", "--scenario=SingleStream", "--mode=performance", "--threads=1",
            f"--min_duration_ms={1000 * given.seconds}", f"--results_dir={name}",
        ]  # fmt: skip
        names = np.load(inputs).files
        command += [f"--shape={one}" for one in given.shape if one.partition(":")[0] in names]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = list(Path(name).glob("*/*/SingleStream/performance/run_1/result.json"))
        if done.returncode or not found:
            raise SystemExit(f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        result = json.loads(found[0].read_text(encoding="utf-8"))
    used_s = result["load"]["mean_process_cpu_percent"] / 100 * result["duration_s"]
    return result["latency"]["p50_ns"] / 1e6, 1e3 * used_s / result["query_count"]


def feeds_of(model: Path, inputs: Path) -> list[dict[str, np.ndarray]]:
    """Return the arrays of each sample by the name of the input."""
    graph = onnx.load(model, load_external_data=False).graph
    ranks = {one.name: len(one.type.tensor_type.shape.dim) for one in graph.input}
    arrays = dict(np.load(inputs))
    return [
        {name: rows[at] if rows.ndim > ranks[name] else rows[at : at + 1] for name, rows in arrays.items()}
        for at in range(len(next(iter(arrays.values()))))
    ]


def by_bare_loop(model: Path, inputs: Path, given: argparse.Namespace) -> tuple[float, float]:
    """Return the median latency and the CPU time of an inference, in ms."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # after that

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds, names = feeds_of(model, inputs), [one.name for one in session.get_outputs()]
    for feed in feeds:
        session.run(names, feed)
    times_s, used_s, end_s = [], time.process_time(), time.perf_counter() + given.seconds
    while (start_s := time.perf_counter()) < end_s:
        session.run(names, feeds[len(times_s) % len(feeds)])
        times_s.append(time.perf_counter() - start_s)
    return 1e3 * statistics.median(times_s), 1e3 * (time.process_time() - used_s) / len(times_s)


def by_perf_test(model: Path, inputs: Path, given: argparse.Namespace) -> tuple[float, float]:
    """Return the median latency and the CPU time of an inference, in ms."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / model.name
        copy.symlink_to(model)
        for number, feed in enumerate(feeds_of(model, inputs)):
            folder = Path(name) / f"test_data_set_{number}"
            folder.mkdir()
            for at, (own, array) in enumerate(feed.items()):
                content = onnx.numpy_helper.from_array(array, own).SerializeToString()
                (folder / f"input_{at}.pb").write_bytes(content)
        runs = []
        for words in (("-m", "times", "-r", "1"), ("-m", "duration", "-t", str(given.seconds))):
            before_s = children_s()
            command = [given.perf_test, *words, "-x", "1", "-y", "1", "-s", str(copy)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
            found = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
            runs.append((int(found["Total inference requests"]), children_s() - before_s))
    (one, used_s), (count, all_s) = runs
    return 1e3 * float(found["P50 Latency"].split()[0]), 1e3 * (all_s - used_s) / (count - one)


def children_s() -> float:
    """Return the CPU time of all programs that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Take turns, and print a row for each file and each of the other programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.onnx=INPUTS.npz")
    parser.add_argument("--shape", action="append", default=[], help="as for crowdperf, for files with this input")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--perf_test", help="the program onnxruntime_perf_test")
    given = parser.parse_args()
    ways = {"crowdperf": by_crowdperf, "loop": by_bare_loop}
    if given.perf_test:
        ways["perf_test"] = by_perf_test
    print("| file | other | p50, ms: crowdperf | other | ratio | CPU, ms: crowdperf | other | ratio | fastest rounds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for pair in given.files:
        model, inputs = (Path(one).resolve() for one in pair.split("="))
        rounds = []
        for number in range(given.rounds):
            print(f"{model.name}, round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            names = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
            rounds.append({name: ways[name](model, inputs, given) for name in names})
            print(rounds[-1], file=sys.stderr, flush=True)
        for other in list(ways)[1:]:
            cells = []
            for at in range(2):
                pairs = [(one["crowdperf"][at], one[other][at]) for one in rounds]
                columns = zip(*((ours, theirs, ours / theirs) for ours, theirs in pairs), strict=True)
                cells += [f"{statistics.median(values):.3f}" for values in columns]
            fastest = [min(one[name][1] for one in rounds) for name in ("crowdperf", other)]
            cells.append(f"{fastest[0]:.3f} / {fastest[1]:.3f} = {fastest[0] / fastest[1]:.3f}")
            print(f"| {model.name} | {other} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
