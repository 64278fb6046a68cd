"""What a request through Triton costs: the harness with the backend triton beside the same harness with onnxruntime,
which runs the same ONNX file without a server.

    SingleStream   the 90th percentile of the latency, digits and resnet50: at most 1.5 ms more
    Offline        the rate, with the batches made by the harness: resnet50 at least 0.9, digits at least 0.5 of it

Medians of interleaved rounds, each figure from a process (and a server) of its own. The harness gets no settings: each
side finds instances, threads and batch size itself, and the settings of the last round are printed. Of what the server
adds, its own statistics tell the parts: waiting in its queue, computing, and the way there and back. The Python that
runs it needs LoadGen, onnxruntime and tritonclient: that of the virtual environment mlperf-inference has them after

    cm run script --tags=app,mlperf,inference,_digits,_triton
    cm run script --tags=app,mlperf,inference,_digits,_onnxruntime

Exit code 1 when a figure is worse than wanted.
"""

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness_process import rate_of
from model_speed import Bench, Comparison, in_turn, print_table

MAX_MS = 1.5
"""What a server may add to the 90th percentile of a lone request."""
MIN_OFFLINE_RATIO = {"resnet50": 0.9, "digits": 0.5}
PARTS = ("average_batch", "request_us", "queue_us", "compute_us", "hop_us")


class Latency(Comparison):
    """The 90th percentiles of both sides round by round, in ms; `wanted` is the most that the median may differ by."""

    @property
    def added_ms(self) -> float:
        """The median of the rounds' own differences."""
        return statistics.median(ours - base for ours, base in zip(self.ours, self.base, strict=True))


@dataclass
class Sides:
    """Runs of one benchmark on both backends; keeps the last result of each for the table of parts."""

    bench: Bench
    server: Path
    last: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self, backend: str, scenario: str, batch_size: int | None) -> dict[str, Any]:
        """Return the result of one run."""
        given: dict[str, Any] = {"backend": backend}
        if backend == "triton":
            names = ("batching", "transport", "instance_count", "max_queue_delay_us", "preferred_batch_size")
            open_values = dict.fromkeys((*names, "max_batch_size"))
            transport = self.bench.arguments.transport
            given["serving"] = {**open_values, "server": str(self.server.resolve()), "transport": transport}
        if scenario == "Offline":
            given["batch_size"] = batch_size
        result = self.bench.harness(scenario, **given)
        self.last[f"{self.bench.arguments.model} {scenario} {backend}"] = result
        return result

    def rate(self, backend: str, batch_size: int | None) -> float:
        """Return the samples per second of an Offline run."""
        return rate_of(self.run(backend, "Offline", batch_size))

    def p90_ms(self, backend: str) -> float:
        """Return the 90th percentile of a SingleStream run's latency."""
        return float(self.run(backend, "SingleStream", None)["latency"]["p90_ns"]) / 1e6


def bench_of(arguments: argparse.Namespace, model: str, folder: Path) -> Bench:
    """Return the bench of one benchmark."""
    given = vars(arguments)
    return Bench(
        argparse.Namespace(
            model=model,
            model_info=given[f"{model}_model_info"],
            dataset=given[f"{model}_dataset"],
            preprocessed=given.get(f"{model}_preprocessed"),
            seconds=arguments.seconds,
            transport=arguments.transport,
        ),
        folder / model,
    )


def print_latencies(rows: list[Latency]) -> int:
    """Print what was measured; return 1 when a server adds more than wanted."""
    print(f"{'what':<52}{'base':>9}{'harness':>9}{'added':>7}{'at most':>8}  rounds' differences (p90 in ms)")
    for row in rows:
        rounds = " ".join(f"{ours - base:.2f}" for base, ours in zip(row.base, row.ours, strict=True))
        base, ours = statistics.median(row.base), statistics.median(row.ours)
        print(f"{row.name:<52}{base:>9.3f}{ours:>9.3f}{row.added_ms:>7.2f}{row.wanted:>8.2f}  {rounds}")
    return int(any(row.added_ms > row.wanted for row in rows))


def print_parts(sides: list[Sides]) -> None:
    """Print the settings of the last runs, and of those with a server its own figures."""
    print("\nlast round" + " " * 28 + "".join(f"{name:>14}" for name in ("instances", "batch_size", *PARTS)))
    for one in sides:
        for name, result in one.last.items():
            run, served = result["run"], result.get("served", {})
            values = [run[key]["value"] for key in ("instances", "batch_size")]
            values += [served.get(part, "") for part in PARTS]
            print(f"{name:<38}" + "".join(f"{value!s:>14}" for value in values))


def parse() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="server.json of get-triton-server")
    for model in MIN_OFFLINE_RATIO:
        parser.add_argument(f"--{model}_model_info", type=Path, help=f"model.json of {model} (skipped without it)")
        parser.add_argument(f"--{model}_dataset", type=Path)
        parser.add_argument(f"--{model}_preprocessed", type=Path)
    parser.add_argument("--batch_size", type=int, help="of both sides in Offline, instead of the best one found")
    parser.add_argument("--transport", choices=("grpc", "http", "shm"), help="how samples get to the server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="shortest duration of each run")
    arguments = parser.parse_args()
    if not any(getattr(arguments, f"{model}_model_info") for model in MIN_OFFLINE_RATIO):
        parser.error(f"name a model: {', '.join(f'--{model}_model_info' for model in MIN_OFFLINE_RATIO)}")
    return arguments


def main() -> int:
    """Measure, print, and return 1 when a figure is worse than wanted."""
    arguments = parse()
    latencies, rates, sides = [], [], []
    with tempfile.TemporaryDirectory() as temporary:
        for model, least in MIN_OFFLINE_RATIO.items():
            if getattr(arguments, f"{model}_model_info") is None:
                continue
            one = Sides(bench_of(arguments, model, Path(temporary)), arguments.server)
            sides.append(one)
            latency = Latency(f"{model} SingleStream", MAX_MS)
            latencies.append((latency, partial(one.p90_ms, "onnxruntime"), partial(one.p90_ms, "triton")))
            calls = [partial(one.rate, backend, arguments.batch_size) for backend in ("onnxruntime", "triton")]
            rates.append((Comparison(f"{model} Offline", least), *calls))
        measured = in_turn(arguments.rounds, [*latencies, *rates])
    is_slow = print_latencies(measured[: len(latencies)])
    is_slow |= print_table(measured[len(latencies) :])
    print_parts(sides)
    return is_slow


if __name__ == "__main__":
    sys.exit(main())
