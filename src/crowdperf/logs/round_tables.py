"""The figures of each round for each model, as data: rounddata/<round>.json, and this project's own tables before v5.0.

The files are made by tests/gate/record_rounds.py: up to v6.0 from both official checkers, from v6.1 on from the
newer one, with what LoadGen's mlperf.conf and the rules ask beyond it. Rounds before v5.0 have the benchmarks of this
project, v4.0 and v4.1 also the language models that it runs in later rounds only (earlier.json).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crowdperf.logs.run_log import Seeds
from crowdperf.logs.seeds import SEEDS
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.compliance import tests_needed
from crowdperf.rules.names import FIGURE_KEYS, FULL_RULES_MIN_DURATION_MS, Scenario
from crowdperf.rules.official_names import aliases_in, checker_name
from crowdperf.rules.rounds import is_since, rounds_of, rules_in

_FOLDER = Path(__file__).parent / "rounddata"
_NO_MIN_DURATION = ("e2e-rag-qna", "e2e-rag-db")
"""One pass over the data set instead of a time (the newer checker's exemption)."""

_METRIC_KEYS = {scenario.value: key for scenario, key in FIGURE_KEYS.items()}

ANY_SCENARIO = "*"


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric's smallest or greatest accepted value."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class RulesTarget:
    """A score's least or greatest value by the rules or a reference, where the checker asks another thing."""

    metric: str
    is_least: bool
    value: float
    source: str

    def allows(self, score: float) -> bool:
        """Return whether a score is good enough."""
        return score >= self.value if self.is_least else score <= self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfLimits:
    """What LoadGen's own mlperf.conf asks of a model where the checker asks less, or nothing."""

    latency_ns: Mapping[str, float] = field(default_factory=dict)
    performance_samples: int = 0
    equal_issue: bool = False
    token_latencies: bool = False


@dataclass(frozen=True, slots=True)
class ScenarioSets:
    """The scenarios of a model on systems of a category, in the closed division."""

    required: frozenset[str]
    optional: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTable:
    """One model in one round. scenarios: by category (edge, datacenter, both). Times as LoadGen's logs have them.

    latency_percentile (0..1), samples_per_query: by scenario of LoadGen, empty where the round's are not known.
    sampling_target: how many responses TEST01 logs, 0 where that is not known. test_limits: what the tests compare
    with, by test and name (`least_score`, `least_tokens`, `most_tokens`, `samples`, `tolerance`). expected_files:
    pictures that reviewers look for and the checker does not. may_be_endpoints: whether a result may have the layout of
    MLPerf Endpoints. notes: where texts of the round disagree and nothing follows for a tree.
    """

    name: str
    scenarios: Mapping[str, ScenarioSets]
    targets: Mapping[str, tuple[Limit, ...]]
    performance_samples: int
    accuracy_samples: Mapping[str, int]
    min_duration_ms: int
    upper_limits: tuple[Limit, ...] = ()
    delta_percent: Mapping[str, float] = field(default_factory=dict)
    offline_min_samples: int = 0
    min_queries: Mapping[str, int] = field(default_factory=dict)
    latency_ns: Mapping[str, float] = field(default_factory=dict)
    token_latency_ns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    needs_token_latencies: bool = False
    needs_equal_issue: bool = False
    tests: tuple[str, ...] = ()
    metric_keys: Mapping[str, str] = field(default_factory=dict)
    extra_accuracy_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    latency_percentile: Mapping[str, float] = field(default_factory=dict)
    samples_per_query: Mapping[str, int] = field(default_factory=dict)
    sampling_target: int = 0
    conf: ConfLimits = ConfLimits()
    rules_targets: tuple[RulesTarget, ...] = ()
    test_limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    expected_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_be_endpoints: bool = False
    notes: tuple[str, ...] = ()

    def targets_in(self, scenario: str) -> tuple[Limit, ...]:
        """Return the targets of a scenario."""
        return self.targets.get(scenario) or self.targets.get(ANY_SCENARIO) or next(iter(self.targets.values()))

    def accuracy_samples_in(self, scenario: str) -> int:
        """Return how many samples an accuracy run covers."""
        found = self.accuracy_samples.get(scenario, self.accuracy_samples.get(ANY_SCENARIO))
        return found if found is not None else max(self.accuracy_samples.values())

    def metric_key(self, scenario: str) -> str | None:
        """Return the log's key of the figure that counts, for the scenario of the log."""
        return self.metric_keys.get(scenario) or _METRIC_KEYS.get(scenario)

    def scenarios_in(self, category: str) -> tuple[str, ...]:
        """Return every scenario that a system of a category may have, in the usual order."""
        sets = self.scenarios.get(category)
        own = sets.required | sets.optional if sets else frozenset()
        return tuple(name for name in _METRIC_KEYS if name in own)

    def delta_of(self, metric: str) -> float:
        """Return by how many percent a compliance run's score may differ."""
        return self.delta_percent.get(metric, 0.1 if "99.9" in self.name else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTable:
    """All models of a round."""

    name: str
    models: Mapping[str, ModelTable]
    aliases: Mapping[str, str]
    seeds: Seeds
    is_old: bool

    def since(self, round_name: str) -> bool:
        """Return whether the round is `round_name` or newer."""
        return is_since(self.name, round_name)


def _limits(rows: list[list[object]]) -> tuple[Limit, ...]:
    return tuple(Limit(str(metric), float(str(value))) for metric, value in rows)


def _files(row: dict, key: str) -> dict[str, tuple[str, ...]]:  # type: ignore[type-arg]
    return {folder: tuple(names) for folder, names in row.get(key, {}).items()}


_AS_THEY_ARE = (
    "performance_samples", "accuracy_samples", "delta_percent", "offline_min_samples", "min_queries", "latency_ns",
    "token_latency_ns", "needs_token_latencies", "needs_equal_issue", "metric_keys", "sampling_target", "test_limits",
    "may_be_endpoints",
)  # fmt: skip
"""Fields of ModelTable that a round's file has by the same names and in the same form."""


def _from_json(name: str, row: dict, settings: dict) -> ModelTable:  # type: ignore[type-arg]
    sets = {
        category: ScenarioSets(frozenset(one["required"]), frozenset(one["optional"]))
        for category, one in row.get("scenarios", {}).items()
    }
    rules = row.get("rules", [])
    return ModelTable(
        **{key: row[key] for key in _AS_THEY_ARE if key in row},
        name=name,
        scenarios=sets,
        targets={scenario: _limits(rows) for scenario, rows in row["targets"].items()},
        upper_limits=_limits(row.get("upper_limits", [])),
        tests=tuple(row.get("tests", ())),
        extra_accuracy_files=_files(row, "extra_accuracy_files"),
        min_duration_ms=0 if name in _NO_MIN_DURATION else FULL_RULES_MIN_DURATION_MS,
        latency_percentile=settings["latency_percentile"] | row.get("latency_percentile", {}),
        samples_per_query=settings["samples_per_query"],
        conf=ConfLimits(**row.get("conf", {})),
        rules_targets=tuple(RulesTarget(name, how == "least", value, source) for name, how, value, source in rules),
        expected_files=_files(row, "expected_files"),
        notes=tuple(row.get("notes", ())),
    )


def _from_rules(benchmark: str, round_name: str) -> ModelTable:
    rules = rules_in(benchmark, round_name)
    categories = {"edge": rules.edge, "datacenter": rules.datacenter, "both": rules.both}
    sets = {
        category: ScenarioSets(frozenset(one.value for one in scenarios), frozenset())
        for category, scenarios in categories.items()
        if scenarios
    }
    upper = tuple(Limit(one.metric, one.upper_limit) for one in rules.targets if one.upper_limit is not None)
    latency = rules.server_target_latency_ms
    return ModelTable(
        name=checker_name(benchmark),
        scenarios=sets,
        targets={ANY_SCENARIO: tuple(Limit(one.metric, one.target) for one in rules.targets)},
        upper_limits=upper,
        performance_samples=rules.performance_sample_count or rules.dataset_count,
        accuracy_samples={ANY_SCENARIO: rules.dataset_count},
        offline_min_samples=rules.offline_min_sample_count,
        min_queries={"Offline": 1},
        latency_ns={} if latency is None else {Scenario.SERVER.value: latency * 1e6},
        tests=tests_needed(benchmark, round_name, "closed"),
        min_duration_ms=rules.min_duration_ms,
    )


def files_beside_score(benchmark: str, round_name: str) -> dict[str, tuple[str, ...]]:
    """Return what a round wants in folders beside an accuracy log: names without their endings, by folder."""
    table = load_round(round_name).models.get(checker_name(benchmark))
    return {} if table is None else {**table.extra_accuracy_files, **table.expected_files}


def _earlier_models(round_name: str) -> dict[str, ModelTable]:
    """Those that a round before v5.0 has and this project's rules of it have not."""
    content = json.loads((_FOLDER / "earlier.json").read_text(encoding="utf-8"))
    rows = content["rounds"].get(round_name, {})
    return {name: _from_json(name, row, content["settings"]) for name, row in rows.items()}


def load_round(round_name: str) -> RoundTable:
    """Return the tables of a round in `crowdperf.rules.rounds.ROUNDS`."""
    path = _FOLDER / f"{round_name}.json"
    is_old = not path.is_file()
    if is_old:
        own = [name for name in BENCHMARKS if round_name in rounds_of(name)]
        tables = {checker_name(name): _from_rules(name, round_name) for name in own} | _earlier_models(round_name)
        aliases = aliases_in(round_name)
    else:
        content = json.loads(path.read_text(encoding="utf-8"))
        tables = {name: _from_json(name, row, content["settings"]) for name, row in content["models"].items()}
        aliases = content["aliases"]
    return RoundTable(name=round_name, models=tables, aliases=aliases, seeds=SEEDS[round_name], is_old=is_old)
