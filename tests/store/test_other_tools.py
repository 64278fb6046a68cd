"""What vllm bench serve, guidellm and aiperf wrote becomes results with true names, never those of a benchmark.

tests/store/data: vllm-bench.json, aiperf.json and aiperf.csv have the form of their tools' sources, with round numbers.
aiperf-0.13.0.json is a recording: aiperf 0.13.0 against tests/support/stub_openai.py (tpot_ms=5), 4 in flight,
2026-11-28, shortened, with another address.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from crowdperf.rules.benchmarks import RECORDS
from crowdperf.store.imports import NothingToImport, import_path
from crowdperf.store.model import NewResult
from crowdperf.store.other_tools import NotOfTool, results_of_file
from crowdperf.store.query import Filter
from crowdperf.store.store import Store

DATA = Path(__file__).with_name("data")
VLLM: dict[str, Any] = json.loads((DATA / "vllm-bench.json").read_text())
AIPERF: dict[str, Any] = json.loads((DATA / "aiperf.json").read_text())


def only(content: object) -> NewResult:
    (found,) = results_of_file(json.dumps(content).encode(), "a.json")
    assert isinstance(found, NewResult), found
    return found


def values(result: NewResult) -> dict[str, float]:
    return {figure.name: figure.value for figure in result.figures} | {result.metric: result.value}


def test_the_same_measurement_has_the_same_names_whatever_tool_made_it() -> None:
    (table,) = results_of_file((DATA / "aiperf.csv").read_bytes(), "a.csv")
    assert isinstance(table, NewResult)
    ours = {"TTFT mean": 41.5, "TTFT 50": 40.25, "TTFT 99": 55.75,
            "TPOT mean": 12.5, "TPOT 50": 12.25, "TPOT 99": 14.0}  # fmt: skip
    for result, rate in ((only(VLLM), 1013.76), (only(AIPERF), 992.0), (table, 992.0)):
        assert ours.items() <= values(result).items()
        assert (result.metric, result.value, result.unit) == ("tokens per second", rate, "tokens/s")
    assert values(table)["aiperf request_throughput mean"] == 1015.5


def test_a_recorded_file_of_aiperf() -> None:
    content = json.loads((DATA / "aiperf-0.13.0.json").read_text())
    result = only(content)
    found, place = values(result), result.configuration
    assert result.stack_version == "aiperf 0.13.0"
    assert (place.benchmark, place.scenario) == ("own model: stub-8b", "concurrency")
    assert place.settings == {
        "API": "completions", "concurrency": "4", "mean input tokens": "16", "mean output tokens": "8",
    }  # fmt: skip
    assert found["TTFT 50"] == content["time_to_first_token"]["p50"]
    assert found["TPOT 99"] == content["inter_token_latency"]["p99"]
    assert result.value == content["output_token_throughput"]["avg"]
    assert "10.1.2.3" not in repr(result)


def guidellm(config: dict[str, Any], **report: Any) -> dict[str, Any]:
    """The form of guidellm's report (schemas of 0.3.0, 0.5.0 and ee7a7745), with round numbers."""

    def summary(mean: float, **percentiles: float) -> dict[str, Any]:
        return {"successful": {"mean": mean, "percentiles": percentiles}}

    metrics = {
        "request_totals": {"successful": 10, "incomplete": 1, "errored": 2, "total": 13},
        "requests_per_second": summary(4.0), "request_latency": summary(2.0, p50=1.9, p99=2.5),
        "prompt_token_count": summary(128.0), "output_token_count": summary(64.0),
        "time_to_first_token_ms": summary(41.5, p50=40.25, p99=55.75),
        "inter_token_latency_ms": summary(12.5, p50=12.25, p99=14.0),
        "time_per_output_token_ms": summary(13.0, p50=12.75, p99=15.0),
        "output_tokens_per_second": summary(256.0), "tokens_per_second": summary(768.0),
    }  # fmt: skip
    return {**report, "benchmarks": [{**config, "metrics": metrics}, {"metrics": {}}]}


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (
            guidellm({"args": {"strategy": {"type_": "concurrent", "streams": 16}}, "worker": {"backend_model": "m"}}),
            "",
        ),
        (
            guidellm(
                {"config": {"strategy": {"type_": "concurrent", "streams": 16}, "backend": {"model": "m"}}},
                metadata={"version": 2, "guidellm_version": "0.8.1"},
            ),
            "0.8.1",
        ),
    ],
)
def test_guidellms_times_between_tokens_and_rates_keep_their_names(content: dict[str, Any], version: str) -> None:
    result, empty = results_of_file(json.dumps(content).encode(), "benchmarks.json")
    assert isinstance(result, NewResult) and not isinstance(empty, NewResult)
    found = values(result)
    assert (found["TTFT 50"], found["TTFT 99"]) == (40.25, 55.75)
    assert found["guidellm inter_token_latency_ms 99"] == 14.0
    assert not any(name.startswith("TPOT") or name == "tokens per second" for name in found)
    assert result.metric == "guidellm output_tokens_per_second mean"
    assert (result.configuration.benchmark, result.configuration.settings["concurrency"]) == ("own model: m", "16")
    assert result.raw["tool_version"] == version
    system = result.configuration.system
    assert (system.accelerator_count, system.nodes, system.sockets, system.cores, system.memory_gib) == (0,) * 5
    assert {"2 requests failed", "1 requests were not finished"} <= set(result.notes)
    assert "no throughput" in empty.reason


def test_a_metric_with_another_definition_has_the_tools_own_name() -> None:
    assert values(only(VLLM))["vllm bench serve itl 99"] == 25.0  # between events
    assert values(only(AIPERF))["aiperf inter_chunk_latency 99"] == 25.0
    assert not any(name.startswith("ITL") for name in {**values(only(VLLM)), **values(only(AIPERF))})


@pytest.mark.parametrize(
    ("changed", "is_ours", "why"),
    [
        ({}, True, ""),
        ({"max_concurrency": None, "request_rate": 4.0}, True, ""),
        ({"backend": "openai-chat"}, False, "its first event may have no text"),
        ({"request_rate": 4.0}, False, "requests waited in the client"),
    ],
)
def test_vllms_times_are_ours_only_where_they_begin_and_end_alike(
    changed: dict[str, Any], is_ours: bool, why: str
) -> None:
    result = only({**VLLM, **changed})
    ours = {name for name in values(result) if name.startswith(("TTFT", "TPOT"))}
    assert bool(ours) == is_ours == ("vllm bench serve ttft 50" not in values(result))
    assert why in " ".join(result.notes)


def test_answers_that_nobody_counted_have_no_tokens_per_second() -> None:
    result = only({**VLLM, "tokenizer_id": None, "total_output_tokens": 198, "output_throughput": 15.84})
    assert (result.metric, result.value) == ("vllm bench serve request_throughput", 15.84)
    assert only({**VLLM, "tokenizer_id": None}).metric == "tokens per second"  # counted by the server


@pytest.mark.parametrize("model", sorted(one.name for one in RECORDS.values())[:3])
def test_it_is_labeled_and_never_a_benchmarks(model: str) -> None:
    result = only({**VLLM, "model_id": model})
    place = result.configuration
    assert place.benchmark == f"own model: {model}" != model
    assert {"unofficial", "other tool", "own model", "own data", "server not seen"} == set(result.labels)
    assert (result.kind, result.valid, result.verification, result.files) == ("own", None, "summary", ())
    assert (place.suite, place.stack, place.division) == ("other tool", "endpoint, by vllm bench serve", "")
    assert "measured by vllm bench serve, not by LoadGen" in result.notes and "2 requests failed" in result.notes


def test_load_and_lengths_tell_configurations_apart_and_no_place_is_kept() -> None:
    result = only(VLLM)
    assert result.configuration.benchmark == "own model: tiny-7b"
    assert result.configuration.settings == {
        "API": "openai", "concurrency": "16", "mean input tokens": "128", "mean output tokens": "64",
    }  # fmt: skip
    assert only(AIPERF).configuration.settings == {**result.configuration.settings, "API": "completions"}
    assert (result.made_utc, only(AIPERF).made_utc) == ("2026-11-20", "2026-11-20")
    assert "10.1.2.3" not in repr(only(AIPERF)) and "/models" not in repr(result)


def test_a_file_of_several_lines_has_several_results() -> None:
    lines = "\n".join(json.dumps({**VLLM, "max_concurrency": number}) for number in (1, 4))
    found = results_of_file(lines.encode(), "a.json")
    assert [one.configuration.settings["concurrency"] for one in found if isinstance(one, NewResult)] == ["1", "4"]
    assert len({one.run_id for one in found if isinstance(one, NewResult)}) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "a.json: no JSON"),
        ("[1]", "not an object"),
        ("{}", "expected a bundle of mlperf-viz, or what vllm bench serve --save-result, guidellm"),
        ('{"benchmarks": []}', "a.json has no results"),
        ("\xff", "not UTF-8 text"),
    ],
)
def test_another_file_is_refused_with_what_is_looked_for(text: str, words: str) -> None:
    with pytest.raises(NotOfTool, match=words):
        results_of_file(text.encode("latin-1"), "a.json")


@pytest.mark.parametrize("wrong", ["x", None, [], {}, float("nan"), -1, True, pytest.param(10**400, id="400 digits")])
def test_wrong_values_are_left_out_and_never_shown_as_a_number(wrong: object) -> None:
    damaged = {key: wrong if isinstance(value, float) else value for key, value in VLLM.items()}
    (found,) = results_of_file(json.dumps(damaged).encode(), "a.json")
    assert not isinstance(found, NewResult) and "no throughput" in found.reason
    damaged = {key: wrong if isinstance(value, dict) else value for key, value in AIPERF.items()}
    with pytest.raises(NotOfTool):
        results_of_file(json.dumps(damaged).encode(), "a.json")
    for parts in ({"phases": wrong}, {"models": {"items": wrong}}, {"endpoint": {"model_names": wrong}}):
        assert only({**AIPERF, "input_config": parts}).configuration.benchmark == "own model: not recorded"


def test_an_import_keeps_them_once(tmp_path: Path) -> None:
    for name in ("vllm-bench.json", "aiperf.json", "aiperf.csv"):
        report = import_path(tmp_path / "a.db", DATA / name)
        assert (len(report.added), report.kind) == (1, "other-tool")
        assert import_path(tmp_path / "a.db", DATA / name).known == 1
    with Store.open(tmp_path / "a.db") as store:
        rows = store.find(Filter(chosen={"suite": ("other tool",)})).rows
    assert sorted(row.benchmark for row in rows) == [
        "own model: acme/tiny-7b", "own model: not recorded", "own model: tiny-7b",
    ]  # fmt: skip
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(NothingToImport, match="has no results: expected"):
        import_path(tmp_path / "a.db", tmp_path / "x.json")
