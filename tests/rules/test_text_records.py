"""The records of MLPerf's language models say what the rounds' data say, recorded from the official checker."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from crowdperf.rules import compliance
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.official_names import canonical_name, official_name
from crowdperf.rules.record import Record
from crowdperf.rules.rounds import rounds_of, rules_in

DATA = Path(__file__).resolve().parents[2] / "src" / "crowdperf" / "logs" / "rounddata"
NAMES = [name for name, row in BENCHMARKS.items() if row.record.generation is not None]
CASES = [(name, one) for name in NAMES for one in rounds_of(name)]


def data_of(name: str, round_name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{round_name}.json").read_text())["models"][name]
    return found


def test_the_five_are_here() -> None:
    assert sorted(NAMES) == ["deepseek-r1", "gpt-oss-120b", "llama2-70b-99.9", "llama3.1-8b", "llama3.1-8b-edge"]


@pytest.mark.parametrize(("name", "round_name"), CASES)
def test_gates_and_counts_are_the_rounds(name: str, round_name: str) -> None:
    data, rules, record = data_of(name, round_name), rules_in(name, round_name), BENCHMARKS[name].record
    assert {one.metric: pytest.approx(one.target) for one in rules.targets} == dict(data["targets"]["*"])
    upper = {one.metric: one.upper_limit for one in rules.targets if one.upper_limit is not None}
    official = {metric: value for metric, value in data.get("upper_limits", []) if metric in dict(data["targets"]["*"])}
    assert upper == {metric: pytest.approx(value) for metric, value in official.items()}
    assert rules.performance_sample_count == data["performance_samples"] == record.dataset_count
    assert rules.offline_min_sample_count == data["offline_min_samples"]
    assert (record.accuracy_sample_count or record.dataset_count) == data["accuracy_samples"]["*"]
    assert compliance.tests_needed(name, round_name, "closed") == tuple(data.get("tests") or ())


@pytest.mark.parametrize(("name", "round_name"), CASES)
def test_scenarios_are_the_rounds(name: str, round_name: str) -> None:
    data, rules = data_of(name, round_name)["scenarios"], rules_in(name, round_name)
    for category, ours in (("edge", rules.edge), ("datacenter", rules.datacenter), ("both", rules.both)):
        rows = data.get(category, {"required": [], "optional": []})
        assert {one.value for one in ours} == {*rows["required"], *rows["optional"]}, category


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_the_newest_rounds(name: str) -> None:
    asked = BENCHMARKS[name].record.generation
    assert asked is not None
    data = data_of(name, "v6.1").get("token_latency_ns", {})
    for scenario, ours in (("Server", asked.server), ("Interactive", asked.interactive)):
        limits = None if ours is None else {"ttft": ours.ttft_ms * 1e6, "tpot": ours.tpot_ms * 1e6}
        assert limits == data.get(scenario), scenario
    assert asked.has_token_latencies == data_of(name, "v6.1")["needs_token_latencies"]


@pytest.mark.parametrize("name", NAMES)
def test_loadgens_name_is_in_its_table_and_the_checkers_name_is_ours(name: str) -> None:
    record: Record = BENCHMARKS[name].record
    assert re.fullmatch(r"[a-z0-9_-]+", record.loadgen_name), "a dot would be read as the end of the name"
    assert canonical_name(name) == name
    assert official_name(record.loadgen_name) == name
    assert canonical_name(record.loadgen_name if record.checker_aliases else name) == name


def test_answers_of_accuracy_runs_may_be_longer() -> None:
    asked = BENCHMARKS["gpt-oss-120b"].record.generation
    assert asked is not None and asked.accuracy_sampling is not None
    assert (asked.sampling.max_tokens, asked.accuracy_sampling.max_tokens) == (10_240, 32_768)
    assert asked.sampling.temperature == asked.accuracy_sampling.temperature == 1.0
    others = [BENCHMARKS[name].record.generation for name in NAMES if name != "gpt-oss-120b"]
    assert all(one is not None and one.accuracy_sampling is None and one.sampling.temperature == 0.0 for one in others)
