"""What a query costs LoadGen's own thread, in processor time, so that a busy machine matters less:

    python benchmarks/harness_query_cost.py --scenario Server --model digits.onnx --dataset FOLDER [--rounds 10]

One process runs LoadGen again and again with the same settings, in turn with each of these callbacks:

    bare      answers with the same bytes (harness_bare_loadgen.py)
    least     the same, after a look at the sample and a call of a function that returns a constant: the least that any
              harness in Python does. One query has one sample here; it is left out in MultiStream
    harness   the harness with the null backend, as harness_limits.py runs it

The time counts from the first query to LoadGen's flush. Prints microseconds of a query, medians and minima of the
rounds, and the part of the bare loop's rate. Exit code 0.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from harness_process import LEFT_OPEN, SOURCE

sys.path.insert(0, str(SOURCE))

from harness_bare_loadgen import RESPONSE_FLOATS, reused
from harness_limits import EXPECTED_LATENCY_MS, OVERLOAD_QPS

from crowdperf.harness.runner.loadgen import SINK, Calls, Pace, Series
from crowdperf.harness.runner.loadgen_run import samples_of
from crowdperf.harness.runner.run import Prepared, prepare, read_config
from crowdperf.harness.runner.sut import Issue
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import read_run_logs
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

SCENARIOS = (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.SERVER)


def least(prepared: Prepared, address: int, size: int) -> Issue:
    """Return the callback that looks at the sample, calls a function, and answers with the same bytes."""
    responses = [SINK.make_response(0, address, size)]
    response, complete, single = responses[0], SINK.complete, prepared.found.work.library.single
    set_id = SINK.set_id
    constant = {"logits": 0}

    def infer(inputs: object) -> object:
        return constant

    def issue(ids: list[int], indices: list[int]) -> None:
        set_id(response, ids[0])
        infer(single[indices[0]])
        complete(responses)

    return issue


def query_cost_us(series: Series, pace: Pace, prepared: Prepared, issue: Issue) -> float:
    """Return the processor time of LoadGen's thread for a query of one run."""
    folder, began_s, ended_s = RunPaths(prepared.config.output_dir), 0.0, 0.0

    def begin(ids: list[int], indices: list[int]) -> None:
        nonlocal call, began_s
        call, began_s = issue, time.thread_time()
        issue(ids, indices)

    def flush() -> None:
        nonlocal ended_s
        ended_s = time.thread_time()

    call: Issue = begin
    calls = Calls(lambda ids, indices: call(ids, indices), flush)
    series.run(pace, calls, samples_of(prepared.found.work), folder)
    query_count = read_run_logs(folder).query_count
    assert query_count is not None
    return (ended_s - began_s) / query_count * 1e6


def measure(scenario: Scenario, arguments: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Return the costs of a query by callback, round by round."""
    key = "target_latency_ms" if scenario.is_stream else "target_qps"
    duration_ms = int(arguments.seconds * 1000)
    request = {
        **dict.fromkeys(LEFT_OPEN), "format": 3, "model": "digits", "backend": "null", "device": "cpu",
        "scenario": scenario.value, "mode": "performance", "execution_mode": "test", "find": False, "precision": "fp32",
        "output_dir": str(folder), "model_path": str(arguments.model.resolve()),
        "dataset_path": str(arguments.dataset.resolve()), "min_duration_ms": duration_ms, "min_query_count": 1,
        key: EXPECTED_LATENCY_MS.get(scenario, OVERLOAD_QPS),
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(request))
    prepared = prepare(read_config(folder / "run.json"))
    shape = prepared.issue_shape(prepared.found.work)
    buffer = array("f", [0.0] * RESPONSE_FLOATS)
    address, size = buffer.buffer_info()[0], buffer.itemsize * RESPONSE_FLOATS
    is_multi = scenario is Scenario.MULTI_STREAM
    callbacks: dict[str, Issue] = {"bare": reused(MULTI_STREAM_SAMPLES_PER_QUERY if is_multi else 1, address, size)}
    if not is_multi:
        callbacks["least"] = least(prepared, address, size)
    callbacks["harness"] = shape.issue
    pace = Pace(min_duration_ms=duration_ms, min_query_count=1, target_qps=None if scenario.is_stream else OVERLOAD_QPS)
    series = Series(prepared.test(), RunPaths(folder))
    costs: dict[str, list[float]] = {name: [] for name in callbacks}
    for _ in range(arguments.rounds):
        for name, issue in callbacks.items():
            costs[name].append(query_cost_us(series, pace, prepared, issue))
    if prepared.found.work.failures.first is not None:
        raise prepared.found.work.failures.first
    shape.close()
    return costs


def print_costs(scenario: Scenario, costs: dict[str, list[float]]) -> None:
    """Print a line for each callback."""
    ways: tuple[Callable[[list[float]], float], ...] = (statistics.median, min)
    for name, found in costs.items():
        times = "".join(f"{way(found):>9.2f}{way(costs['bare']) / way(found):>7.0%}" for way in ways)
        print(f"{scenario.value:<14}{name:<9}{times}", flush=True)


def main() -> None:
    """Measure one scenario: a process reads LoadGen's settings once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="digits.onnx of the recipe get-ml-model-digits")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the recipe get-dataset-digits")
    parser.add_argument("--scenario", choices=[one.value for one in SCENARIOS], default=SCENARIOS[0].value)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2, help="shortest duration of each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scenario = Scenario(arguments.scenario)
        print_costs(scenario, measure(scenario, arguments, Path(temporary)))


if __name__ == "__main__":
    main()
