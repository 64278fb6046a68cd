"""crowdperf.logs.text_metrics: what runs say of answers that are made token by token, in words, tables and plots."""

from typing import Any

from crowdperf.logs.rates import better_rate, chosen_rate_text
from crowdperf.logs.run_log import LATE_REASON, SHORT_REASON
from crowdperf.logs.text_metrics import answers_text, limits_text, metric_rows, page_part, phases_text, remarks, story

LENGTHS = {
    "min": 2, "mean": 60.25, "max": 128, "percentiles": {"50": 64, "90": 128, "99": 128}, "bar_width": 50,
    "histogram": [{"from": 0, "count": 400}, {"from": 50, "count": 0}, {"from": 100, "count": 1200}],
}  # fmt: skip
TALLY = {"issued": 1600, "completed": 1600, "lengths": LENGTHS, "finish_reasons": {"length": 1200, "stop": 400}}
SPREAD = {"mean": 5.0, "p50": 4.56789, "p90": 12.3456, "p99": 1234.5}


def text(**changes: object) -> dict[str, Any]:
    values = {"tokens_per_second": 7950.12, "ttft_ms": SPREAD, "tpot_ms": SPREAD, "tally": TALLY,
              "limits": {"ttft_ms": 2000.0, "tpot_ms": 100.0, "percentile": 99}}  # fmt: skip
    return {**values, **changes}


def test_values_are_short_and_a_metric_that_was_not_measured_has_no_row() -> None:
    rate = ("tokens per second", "7,950", "", "", "")
    times = [(f"{name}, ms", "5", "4.57", "12.3", "1,234") for name in ("TTFT", "TPOT")]
    assert list(metric_rows(text())) == [rate, *times]
    assert list(metric_rows(text(ttft_ms=None, tpot_ms=None))) == [rate]
    client = {"requests_per_s": 3.0, "itl_ms": SPREAD, "end_to_end_ms": {"p50": 1.0}}
    assert list(metric_rows(text(client=client))) == [
        rate, ("requests per second", "3", "", "", ""), *times, ("ITL, ms", *times[0][1:]),
        ("end-to-end, ms", "-", "1", "-", "-"),
    ]  # fmt: skip
    assert story(text()) == "TTFT p99 1,234 ms, TPOT p99 1,234 ms"
    assert story(text(ttft_ms=None, tpot_ms=None)) == ""


def test_answers_are_described_by_their_number_lengths_and_ends() -> None:
    assert answers_text(text()) == (
        "1,600 answers of 2 to 128 tokens, 60.2 on average (p50 64, p90 128, p99 128), ended by length 1,200, stop 400"
    )
    nothing = {"issued": 7, "completed": 0, "lengths": {}, "finish_reasons": {}}
    assert answers_text(text(tally=nothing)) == "no answers to 7 requests"
    assert limits_text(text()) == "limits at p99: TTFT 2000 ms, TPOT 100 ms"
    assert limits_text(text(limits=None)) == ""


ENGINE = {
    "endpoint": {"value": "http://gpu-box:8000/v1"}, "model": {"value": "my-llm"}, "api": {"value": "completions"},
    "prompt": {"value": "tokens"}, "token_counts": {"value": "token ids of the server"},
    "counts": {"requests": 30, "retried": 14, "retried_by_status": {"429": 14}, "differing": 0, "answered": 30},
}  # fmt: skip


def test_the_remarks_say_what_was_measured_of_a_server() -> None:
    measured, refused = remarks(text(engine=ENGINE))
    assert measured == (
        "measured: model my-llm at gpu-box:8000, API completions (prompts as tokens), "
        "tokens counted by token ids of the server"
    )
    assert refused == (
        "the server refused 14 of 44 requests (status 429: 14), which were resent: its limit on requests was measured"
    )
    own = {name: value for name, value in ENGINE.items() if name not in ("endpoint", "counts")}
    assert remarks(text(engine=own)) == ["tokens counted by token ids of the server"]
    assert remarks(text()) == [] == remarks(text(end_tokens=[]))
    assert "the model's end token is unknown" in remarks(text(engine=own, end_tokens=[]))[1]
    assert len(remarks(text(engine=own, end_tokens=[2]))) == 1


def test_the_remarks_say_what_the_client_measured() -> None:
    goodput = {"requests_per_s": 2.5, "good": 5, "ttft_limit_ms": 500.0, "tpot_limit_ms": 50.0}
    client = {"times_from": "send", "ttft_ms": SPREAD, "goodput": goodput}
    found = remarks(text(ttft_ms=None, client=client, engine={"counts": {"peak_in_flight": 64}}))
    assert found == [
        "TTFT, TPOT, ITL and end-to-end were measured by the client, from when it sent each request",
        "goodput: 5 of 1,600 requests met both limits (TTFT 500 ms and TPOT 50 ms)",
        "64 requests in flight at the peak",
    ]
    assert remarks(text(client={"times_from": "issue", "ttft_ms": SPREAD, "goodput": None})) == []


def test_the_remarks_have_the_servers_own_metrics() -> None:
    server = {"server": "vLLM", "samples": 9, "kv_cache": {"mean": 0.25, "max": 0.5}, "running": None,
              "preemptions": 1, "waiting": {"mean": 1.5, "max": 3}, "prefix_hit_rate": 0.75,
              "configuration": {"version": "1"}}  # fmt: skip
    assert remarks(text(server=server)) == [
        "the server's own metrics (vLLM, 9 samples): 25 (at most 50) % of the KV cache; 1.5 (at most 3) waiting;"
        " 1 preemption; prefix cache hits 75.0%",
        "the server's settings: version 1",
    ]
    assert remarks(text(server={"why": "status 404", "configuration": {}})) == [
        "the server's own metrics: not offered (GET /metrics: status 404)"
    ]


def test_the_remarks_doubt_a_time_per_token_that_is_not_the_servers() -> None:
    engine = {"counts": {"in_one_read": 20, "answered": 30}}
    doubtful = text(engine=engine, tally={**TALLY, "mean_first_tokens": 4.0})
    assert remarks(doubtful) == [
        "20 of 30 answers arrived all at once, as through a buffering proxy: TPOT is not meaningful",
        "answers begin with 4.0 tokens at once on average, whose time is not in TPOT",
    ]
    assert remarks({**doubtful, "tpot_ms": None}) == []


def test_the_remarks_count_failures_by_kind_and_what_was_counted_otherwise() -> None:
    counts = {**ENGINE["counts"], "retried_by_status": {}, "differing": 20, "differing_tokens": 30, "unsaid": 1}
    tally = {**TALLY, "issued": 1610, "failed": 10, "failure_kinds": {"status 500": 7, "timeout": 3},
             "tokens_behind_end": 112, "padded_answers": 1}  # fmt: skip
    assert remarks(text(engine={"counts": counts}, tally=tally)) == [
        "10 of 1,610 requests failed (status 500: 7, timeout: 3): latencies are not reported, rates are those of "
        "the answers",
        "in 20 of 30 answers the server counted other numbers of tokens than the run's tokenizer, by 1.5 on "
        "average: the lower number counts",
        "the server did not report the token counts of 1 answer",
        "112 tokens behind the end token of 1 answer did not count",
    ]


def test_a_page_has_table_lengths_and_histogram_of_each_run() -> None:
    page = page_part([("Server <b>", text()), ("Offline", text(ttft_ms=None, tpot_ms=None))])
    assert "Server &lt;b&gt;" in page and "<b>" not in page
    assert page.count("<svg") == 2
    assert "ended by length 1,200, stop 400; limits at p99: TTFT 2000 ms" in page
    assert page_part([]) == ""


def result(scenario: str, **changes: object) -> dict[str, Any]:
    run = {"scenario": {"value": scenario}, "target_qps": {"value": 10.0, "origin": "warm-up estimate"}}
    return {"run": run, "valid": False, "invalid_reasons": [LATE_REASON], "metric": {"value": 900.0}, **changes}


def test_a_rate_to_try_next_counts_queries_not_tokens() -> None:
    for scenario in ("Server", "Interactive"):
        assert better_rate(result(scenario, text=text(samples_per_second=8.0))) == 4.0
    assert better_rate(result("Server")) == 5.0


def test_a_brief_offline_run_is_repeated_with_a_larger_margin() -> None:
    """The start of a server weighs much in the rate of a few seconds: 68.9 was too low, then 149 again."""
    for duration, rate in [(None, 15.0), (600.0, 15.0), (60.0, 15.0), (59.9, 25.0), (3.0, 25.0)]:
        found = result("Offline", invalid_reasons=[SHORT_REASON], metric={"value": 9.0}, duration_s=duration)
        assert better_rate(found) == rate


def test_a_rate_that_the_harness_chose_is_said_with_what_gives_another() -> None:
    assert "--find" in chosen_rate_text(result("Server"))
    assert "to change it, add --interactive_target_qps" in chosen_rate_text(result("Interactive", text=text()))


def test_connections_that_took_long_are_said() -> None:
    slow = {**ENGINE, "counts": {"connected": 1024, "slow_connects": 93}}
    assert "93 of 1,024 connections needed about 1 s or more to open" in " ".join(remarks(text(engine=slow)))
    quick = {**ENGINE, "counts": {"connected": 1024, "slow_connects": 0}}
    assert "connections" not in " ".join(remarks(text(engine=quick)))


def test_phases_are_told_with_their_scatter_where_there_is_one() -> None:
    rows = [
        {"name": "pp512", "mean": 1234.5, "stddev": 12.34, "answers": 3},
        {"name": "tg128", "mean": 45.678, "stddev": None, "answers": 3},
    ]
    assert phases_text({"phases": rows}) == "pp512 1,234 ± 12, tg128 45.68 tokens/s (mean of 3 answers)"
    assert phases_text({"phases": []}) == phases_text({}) == ""
