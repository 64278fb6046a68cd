"""The rate to try after an INVALID run, and what is said of such a run; on the words of recorded logs."""

from pathlib import Path
from typing import Any

import pytest

from crowdperf.logs.layout import RunPaths
from crowdperf.logs.rates import (
    batch_of,
    better_rate,
    has_chosen_rate,
    is_own_rate,
    reasons_text,
    slowed_by,
    why_not_judged,
    why_not_judged_alone,
)
from crowdperf.logs.run_log import read_run_logs

FIXTURES = Path(__file__).parent / "fixtures"


def result_of(recording: str, rate: float, origin: str = "warm-up estimate") -> dict[str, Any]:
    """The parts of a result.json that this reads, of a recorded run that was given this rate."""
    log = read_run_logs(RunPaths(FIXTURES / recording))
    run = {"scenario": {"value": log.scenario.value}, "target_qps": {"value": rate, "origin": origin}}
    metric = None if log.metric is None else {"value": log.metric.value}
    return {"run": run, "metric": metric, "valid": log.is_valid, "invalid_reasons": list(log.invalid_reasons)}


@pytest.mark.parametrize(
    ("recording", "rate", "better", "text"),
    [
        (
            "invalid-server-too-late", 2_000_000.0, 125_000.0,  # half of the 249,402 that were answered
            "performance constraints not satisfied (too many queries over the latency target);"
            " 2,000,000 queries/s were sent, try --server_target_qps=125000",
        ),
        ("invalid-server-too-late", 5_000.0, 2_500.0, "5,000 queries/s were sent, try --server_target_qps=2500"),
        ("invalid-offline-too-short", 100.0, None, "it was planned for 100 samples/s, try --offline_target_qps="),
        ("invalid-singlestream-queries-ran-out", 100.0, None, "Decrease the expected latency so the loadgen"),
        ("valid-server", 2_000.0, None, ""),
    ],
)  # fmt: skip
def test_another_rate_is_named_where_it_helps(recording, rate, better, text):
    result = result_of(recording, rate)
    if recording == "invalid-offline-too-short":
        better = float(f"{1.5 * max(rate, result['metric']['value']):.3g}")
    assert better_rate(result) == better
    assert text in reasons_text(result)
    assert not any(words in reasons_text(result) for words in ("Reduce target QPS", "Increase expected QPS"))


@pytest.mark.parametrize("recording", ["invalid-server-too-late", "invalid-offline-too-short"])
def test_no_rate_follows_from_a_run_during_which_the_clock_was_set(recording: str) -> None:
    steady = {**result_of(recording, 100.0), "load": {"clock_step_s": 0.04}}
    assert better_rate(steady) is not None and "clock" not in reasons_text(steady)
    changed = {**steady, "duration_s": -3590.0, "load": {"clock_step_s": -3600.0, "swapped_bytes": 0}}
    assert better_rate(changed) is None
    text = reasons_text(changed)
    assert text.endswith("the machine's clock was set by -3600 s during the run, so no rate follows from it: rerun")
    assert not any(words in text for words in ("target_qps", "Reduce target QPS", "Increase expected QPS", "try "))
    assert slowed_by(changed) == [], "nothing was swapped, whatever the seconds are"


@pytest.mark.parametrize(
    ("recording", "origin", "is_own", "is_chosen"),
    [
        ("valid-server", "warm-up estimate", True, True),
        ("valid-server", "changed after an INVALID run", True, True),
        ("valid-server", "user", False, False),
        ("valid-offline", "warm-up estimate", True, False),
    ],
)
def test_who_chose_a_rate_is_told_from_its_origin(recording, origin, is_own, is_chosen):
    result = result_of(recording, 2_000.0, origin)
    assert (is_own_rate(result), has_chosen_rate(result)) == (is_own, is_chosen)


@pytest.mark.parametrize(
    ("recording", "origin", "more", "reasons"),
    [
        ("valid-offline", "user", {"duration_s": 600.0}, ()),
        ("valid-offline", "warm-up estimate", {"duration_s": 60.0}, ()),
        ("valid-offline", "user", {"duration_s": 59.9}, ("less than 60 s were measured",)),
        ("valid-offline", "user", {"duration_s": None}, ("less than 60 s were measured",)),
        ("valid-server", "user", {"duration_s": 600.0}, ()),
        (
            "valid-server", "warm-up estimate", {"duration_s": 600.0},
            ("at a conservative rate chosen by the harness (to find the maximum, add --find=yes)",),
        ),
        ("invalid-offline-too-short", "user", {"duration_s": 600.0}, ("INVALID",)),
        (
            "valid-offline", "user", {"duration_s": 600.0, "load": {"others_percent": 70.0}},
            ("other programs used 70 % of the CPU",),
        ),
    ],
)  # fmt: skip
def test_a_figure_that_says_little_is_not_judged(recording, origin, more, reasons):
    result = {**result_of(recording, 2_000.0, origin), **more}
    slowed = [one["words"].format(one["amount"]) for one in slowed_by(result)]
    assert (*why_not_judged(result), *slowed, *why_not_judged_alone(result)) == reasons


@pytest.mark.parametrize(
    ("scenario", "performance", "batch"),
    [
        ("Offline", {"run": {"batch_size": {"value": 8, "origin": "user"}}}, 8),  # result.json
        ("Server", {"run": {"batch_size": 8}}, 8),  # results.json
        ("Offline", {"run": {"batch_size": {"value": 8}}, "issue_shape": "inline, 2 threads"}, 1),
        ("Offline", {"run": {"batch_size": {"value": "as it comes"}}}, None),
        ("Offline", {}, None),
        ("SingleStream", {"run": {"batch_size": 8}}, None),
    ],
)
def test_how_many_samples_are_computed_together(scenario: str, performance: dict[str, Any], batch: int | None) -> None:
    assert batch_of(scenario, performance) == batch
