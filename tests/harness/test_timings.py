"""crowdperf.harness.text.timings: rates, times by request, gaps between pieces, and goodput of a run's answers."""

from array import array
from typing import Any

import pytest
from harness_libraries import need

need("numpy")
from crowdperf.harness.text.engine import AnswerTimes  # noqa: E402
from crowdperf.harness.text.timings import Timings, spread_ms  # noqa: E402
from crowdperf.rules.record import TokenLimits  # noqa: E402


def answer(began_s: float, *arrivals_s: float) -> AnswerTimes:
    return AnswerTimes.of_arrivals(began_s, arrivals_s, arrivals_s[-1])


def test_a_percentile_is_the_value_that_loadgen_uses() -> None:
    hundred = array("d", (number / 1000 for number in reversed(range(1, 101))))
    found = spread_ms(hundred)
    assert found is not None and {name: round(float(str(value)), 9) for name, value in found.items()} == {
        "mean": 50.5, "p50": 51.0, "p90": 91.0, "p99": 100.0
    }  # fmt: skip
    assert spread_ms(array("d", [0.004])) == {"mean": 4.0, "p50": 4.0, "p90": 4.0, "p99": 4.0}
    assert spread_ms(array("d")) is None


def filled(slo: TokenLimits | None = None) -> Timings:
    found = Timings(slo)
    found.take(answer(10.0, 10.5, 10.6, 10.9), 7, 3)  # TTFT 500 ms, TPOT 200 ms, gaps 100 and 300 ms
    found.take(answer(11.0, 11.25, 11.5, 12.0), 5, 7)  # TTFT 250 ms, TPOT 125 ms, gaps 250 and 500 ms
    return found


def record(found: Timings, **changes: Any) -> Any:
    return found.record(**{"times_from": "issue", "has_failures": False, **changes})


def test_rates_are_over_the_time_from_the_first_request_to_the_last_answer() -> None:
    found = record(filled())
    assert found["duration_s"] == 2.0 and found["requests_per_s"] == 1.0
    assert (found["input_tokens_per_s"], found["output_tokens_per_s"]) == (6.0, 5.0)
    assert (found["times_from"], found["goodput"]) == ("issue", None)
    assert record(filled(), times_from="send")["times_from"] == "send"


def test_itl_is_by_gap_and_tpot_by_request() -> None:
    found = record(filled())
    means = {name: round(found[f"{name}_ms"]["mean"], 4) for name in ("ttft", "tpot", "itl", "end_to_end")}
    assert means == {"ttft": 375.0, "tpot": 162.5, "itl": 287.5, "end_to_end": 950.0}
    assert round(found["itl_ms"]["p50"], 4) == 300.0 and round(found["itl_ms"]["p99"], 4) == 500.0


@pytest.mark.parametrize(
    ("ttft_ms", "tpot_ms", "good"),
    [(500.0, 200.1, 2), (499.0, 200.1, 1), (500.0, 199.0, 1), (100.0, 500.0, 0), (260.0, 126.0, 1)],
)
def test_goodput_is_the_rate_of_the_requests_that_met_every_limit(ttft_ms: float, tpot_ms: float, good: int) -> None:
    found = record(filled(TokenLimits(ttft_ms=ttft_ms, tpot_ms=tpot_ms)))["goodput"]
    assert found == {
        "requests_per_s": good / 2.0, "good": good, "ttft_limit_ms": ttft_ms, "tpot_limit_ms": tpot_ms
    }  # fmt: skip


def test_what_was_not_measured_is_null() -> None:
    whole = Timings(TokenLimits(ttft_ms=1.0, tpot_ms=1.0))
    whole.take(AnswerTimes(began_s=1.0, ended_s=2.0), None, 9)
    found = record(whole)
    assert (found["input_tokens_per_s"], found["ttft_ms"], found["itl_ms"], found["goodput"]) == (None,) * 4
    assert found["end_to_end_ms"]["p99"] == 1000.0
    assert record(filled(), has_failures=True)["ttft_ms"] is None
    assert record(Timings()) is None


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    found = Timings(TokenLimits(ttft_ms=600.0, tpot_ms=1.0))
    found.take(answer(10.0, 10.5), 7, 1)
    assert record(found)["tpot_ms"] is None and record(found)["goodput"]["good"] == 1
