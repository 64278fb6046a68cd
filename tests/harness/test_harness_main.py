"""crowdperf.harness.__main__: the one line that a finished run says on the console."""

import pytest
from harness_support import need

from crowdperf.harness.__main__ import tell_result

need("numpy")

LABEL = "test run, not a valid MLPerf result"
LATENCY = {"p99_ns": 1}
METRIC = {"name": "throughput", "value": 123456.789, "unit": "samples/s", "higher_is_better": True}


@pytest.mark.parametrize(
    ("metric", "latency", "reasons", "line"),
    [
        (METRIC, LATENCY, [], f"throughput 123457 samples/s, VALID, {LABEL}"),
        (METRIC, LATENCY, ["a", "b"], f"throughput 123457 samples/s, INVALID (a; b), {LABEL}"),
        (None, None, [], "500 samples answered, VALID"),
        (None, LATENCY, ["too short"], f"INVALID (too short), {LABEL}"),  # a stream without an estimate
    ],
)
def test_the_line_gives_the_figure_with_its_unit_or_the_samples_answered(
    metric: object, latency: object, reasons: list, line: str
) -> None:
    result = {
        "metric": metric,
        "latency": latency,
        "sample_counts": {"accuracy": 500},
        "valid": not reasons,
        "invalid_reasons": reasons,
        "label": LABEL,
        "run": {"scenario": {"value": "Offline", "origin": "user"}, "target_qps": None},
    }
    assert tell_result(result) == line


@pytest.mark.parametrize(("origin", "is_said"), [("warm-up estimate", True), ("user", False)])
def test_the_line_says_when_the_harness_chose_servers_rate(origin: str, is_said: bool) -> None:
    run = {"scenario": {"value": "Server", "origin": "user"}, "target_qps": {"value": 5.0, "origin": origin}}
    result = {
        "metric": METRIC, "latency": LATENCY, "sample_counts": {"accuracy": 500}, "valid": True, "invalid_reasons": [],
        "label": LABEL, "run": run,
    }  # fmt: skip
    assert ("chosen by the harness (to find the maximum" in tell_result(result)) is is_said
