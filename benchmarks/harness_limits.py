"""How much of LoadGen's and onnxruntime's speed the harness keeps. One command prints the ratios, medians of
interleaved rounds:

    python benchmarks/harness_limits.py [--rounds 7] [--seconds 1.0] [--model digits.onnx --dataset FOLDER] [--json]

(d) The null backend through the harness beside a bare LoadGen loop (harness_bare_loadgen.py), in each scenario.
    Wanted: at least 85 %.
    SingleStream and MultiStream compare queries per second, Offline samples per second. Server compares completed
    queries per second at an offered rate that neither can hold: then LoadGen issues without a pause, and the figure
    is what one query costs. (The highest rate that stays VALID depends on how often other programs interrupt the
    machine for 10 ms, and swings by a factor of two here.)
(e) The digits model on onnxruntime through the harness, Offline, beside a bare batched loop with the same session
options and its best
    batch size, with one thread and with as many as there are cores; the better of the two counts. Wanted: at least
    90 %. The harness runs one single-threaded batch per core at a time, so it can be faster than a bare loop.

Every figure is of a process of its own; the two sides of a ratio run one after the other in each round, so that
other load on the machine hits both. Without --model and --dataset a stand-in of the same shape is made, and the
output says so. Exit code 1 when a ratio is below the wanted one.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness_process import HERE, SOURCE, run_harness, run_python

sys.path.insert(0, str(SOURCE))

from harness_standin import write_dataset, write_model

from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LoadGenLog, read_run_logs
from crowdperf.rules.names import Scenario

OVERLOAD_QPS = 1_000_000
OFFLINE_QPS = 2_000_000
EXPECTED_LATENCY_MS = {Scenario.SINGLE_STREAM: 0.003, Scenario.MULTI_STREAM: 0.009}
WANTED = {"null": 0.85, "onnxruntime": 0.90}
SCENARIOS = tuple(scenario for scenario in Scenario if scenario is scenario.issued_as)
"""Those that LoadGen knows: Interactive is Server with other limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all measurements share."""

    folder: Path
    model: Path
    dataset: Path
    seconds: float

    @property
    def min_duration_ms(self) -> int:
        """The shortest duration of a run."""
        return int(self.seconds * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The rates per second of both sides, round by round."""

    name: str
    unit: str
    wanted: float
    bare: list[float]
    harness: list[float]

    @property
    def ratio(self) -> float:
        """The median of the rounds' own ratios."""
        return statistics.median(ours / theirs for ours, theirs in zip(self.harness, self.bare, strict=True))


def rate_of(log: LoadGenLog) -> float:
    """Return queries per second (samples per second in Offline) of a finished run."""
    if log.scenario.is_stream:
        assert log.query_count is not None
        return log.query_count / log.duration_s
    assert log.metric is not None
    return log.metric.value


def target_of(scenario: Scenario) -> float:
    """Return the expected latency or the offered rate that both sides of (d) get."""
    if scenario.is_stream:
        return EXPECTED_LATENCY_MS[scenario]
    return OVERLOAD_QPS if scenario is Scenario.SERVER else OFFLINE_QPS


def bare_loadgen(bench: Bench, scenario: Scenario) -> float:
    """Return the rate of the bare LoadGen loop."""
    folder = bench.folder / "bare"
    folder.mkdir(exist_ok=True)
    script = str(HERE / "harness_bare_loadgen.py")
    run_python([script, scenario.value, str(folder), str(bench.min_duration_ms), str(target_of(scenario))])
    return rate_of(read_run_logs(RunPaths(folder)))


def through_harness(bench: Bench, backend: str, scenario: Scenario, targets: dict[str, float]) -> float:
    """Return the rate of one harness run."""
    folder = bench.folder / "harness"
    folder.mkdir(exist_ok=True)
    request = {
        "model": "digits",
        "backend": backend,
        "scenario": scenario.value,
        "model_path": str(bench.model),
        "dataset_path": str(bench.dataset),
        "min_duration_ms": bench.min_duration_ms,
        "min_query_count": 1,
        "target_qps": targets.get("target_qps"),
        "target_latency_ms": targets.get("target_latency_ms"),
    }
    run_harness(folder, request)
    return rate_of(read_run_logs(RunPaths(folder)))


def bare_onnxruntime(bench: Bench, threads: int) -> float:
    """Return the rate of the bare onnxruntime loop."""
    script = str(HERE / "harness_bare_onnxruntime.py")
    return float(
        json.loads(run_python([script, str(bench.model), str(threads), str(bench.seconds)]))["samples_per_second"]
    )


def compare(bench: Bench, rounds: int) -> list[Comparison]:
    """Measure everything `rounds` times, the two sides of each ratio one after the other."""
    comparisons = [
        Comparison(
            name=f"null {scenario.value}",
            unit="samples/s" if scenario is Scenario.OFFLINE else "queries/s",
            wanted=WANTED["null"],
            bare=[],
            harness=[],
        )
        for scenario in SCENARIOS
    ]
    model = Comparison(name="onnxruntime Offline", unit="samples/s", wanted=WANTED["onnxruntime"], bare=[], harness=[])
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for scenario, comparison in zip(SCENARIOS, comparisons, strict=True):
            key = "target_latency_ms" if scenario.is_stream else "target_qps"
            comparison.bare.append(bare_loadgen(bench, scenario))
            comparison.harness.append(through_harness(bench, "null", scenario, {key: target_of(scenario)}))
        cores = len(os.sched_getaffinity(0))
        model.bare.append(max(bare_onnxruntime(bench, threads) for threads in sorted({1, cores})))
        model.harness.append(through_harness(bench, "onnxruntime", Scenario.OFFLINE, {}))
    return [*comparisons, model]


def print_table(comparisons: list[Comparison]) -> None:
    """Print one line per ratio."""
    print(f"{'what':<22}{'bare':>12}{'harness':>12}  {'unit':<11}{'ratio':>7}{'wanted':>8}  rounds' ratios")
    for comparison in comparisons:
        bare, ours = statistics.median(comparison.bare), statistics.median(comparison.harness)
        rounds = " ".join(f"{b / a:.2f}" for a, b in zip(comparison.bare, comparison.harness, strict=True))
        print(
            f"{comparison.name:<22}{bare:>12,.0f}{ours:>12,.0f}  {comparison.unit:<11}"
            f"{comparison.ratio:>6.0%}{comparison.wanted:>8.0%}  {rounds}"
        )


def main() -> int:
    """Measure, print, and return 1 when a ratio is below the wanted one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="shortest duration of each run")
    parser.add_argument("--model", type=Path, help="digits.onnx of the recipe get-ml-model-digits")
    parser.add_argument("--dataset", type=Path, help="folder of the recipe get-dataset-digits")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model, dataset = arguments.model, arguments.dataset
        notes = []
        if model is None:
            model = folder / "stand-in.onnx"
            write_model(model)
            notes.append("model: a stand-in with random weights, not the digits model (give --model)")
        if dataset is None:
            dataset = folder / "dataset"
            write_dataset(dataset)
            notes.append("data set: random images, not the digits (give --dataset)")
        bench = Bench(folder=folder, model=model.resolve(), dataset=dataset.resolve(), seconds=arguments.seconds)
        comparisons = compare(bench, arguments.rounds)
    if arguments.json:
        rows = [
            {"name": c.name, "unit": c.unit, "wanted": c.wanted, "ratio": c.ratio, "bare": c.bare, "harness": c.harness}
            for c in comparisons
        ]
        print(json.dumps({"rounds": arguments.rounds, "notes": notes, "comparisons": rows}, indent=2))
    else:
        for note in notes:
            print(note)
        print_table(comparisons)
    return int(any(comparison.ratio < comparison.wanted for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
