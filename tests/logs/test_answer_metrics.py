"""crowdperf.logs.answer_metrics: the metrics of answers that are made token by token."""

from typing import Any

import pytest

from crowdperf.logs.answer_metrics import client_values_of, values_of

SPREAD = {"mean": 5.0, "p50": 4.0, "p90": 6.0, "p99": 9.0}
CLIENT = {
    "times_from": "send", "duration_s": 2.0, "requests_per_s": 3.0, "input_tokens_per_s": None,
    "output_tokens_per_s": 48.0, "goodput": {"requests_per_s": 2.5, "good": 5}, "ttft_ms": SPREAD, "tpot_ms": SPREAD,
    "itl_ms": {**SPREAD, "p50": 1.0}, "end_to_end_ms": None,
}  # fmt: skip


def measured(text: dict[str, Any]) -> dict[str, float]:
    return {f"{metric.title} {statistic}".strip(): value for metric, statistic, value in values_of(text)}


def test_a_metric_is_loadgens_where_it_measured_it_and_the_clients_otherwise() -> None:
    offline = {"tokens_per_second": 50.0, "ttft_ms": None, "tpot_ms": None, "client": CLIENT}
    server = {**offline, "ttft_ms": {**SPREAD, "p99": 7.0}}
    assert measured(offline)["TTFT p99"] == 9.0 and measured(server)["TTFT p99"] == 7.0
    assert measured(offline)["tokens per second"] == 50.0
    assert measured(offline).keys() == {
        "tokens per second", "requests per second", "goodput",
        *(f"{name} {part}" for name in ("TTFT", "TPOT", "ITL") for part in SPREAD),
    }  # fmt: skip
    named = {name: (value, unit) for name, value, unit in client_values_of(server)}
    assert named["client ITL 50"] == (1.0, "ms") and named["client goodput"] == (2.5, "requests/s")
    assert "client TTFT 99" not in named and "client TPOT 99" in named and "client tokens per second" not in named


@pytest.mark.parametrize("wrong", [None, {}, {"client": 3}, {"client": {"itl_ms": 3, "goodput": "x"}},
                                   {"client": {"itl_ms": {"p50": float("nan"), "p77": 1.0, "mean": -1.0}}},
                                   {"tokens_per_second": True}])  # fmt: skip
def test_what_is_not_a_value_is_left_out(wrong: dict[str, Any] | None) -> None:
    assert list(values_of(wrong or {})) == [] == list(client_values_of(wrong or {}))
