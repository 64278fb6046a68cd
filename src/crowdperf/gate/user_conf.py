"""The requests of a user.conf to LoadGen, with the keys under which the detail log repeats them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from crowdperf.gate.views import ModelView
from crowdperf.logs.user_conf import conf_rows
from crowdperf.rules.benchmarks import BENCHMARKS

_KEYS = {
    "min_duration": "requested_min_duration_ms",
    "max_duration": "requested_max_duration_ms",
    "min_query_count": "requested_min_query_count",
    "max_query_count": "requested_max_query_count",
    "performance_sample_count_override": "requested_performance_sample_count_override",
}
_DRAWN = {
    name: f"requested_{name}"
    for name in ("qsl_rng_seed", "sample_index_rng_seed", "schedule_rng_seed", "accuracy_log_rng_seed")
}
"""What decides which samples a run has: see ConfSetting.is_drawn. No user.conf of round v5.1 has such a line."""
_FORBIDDEN = {
    "performance_issue_same": "requested_performance_issue_same",
    "performance_issue_unique": "requested_performance_issue_unique",
}
_PERCENTILE = "effective_target_latency_percentile"
_OF_SCENARIO = {
    "Offline": {"target_qps": ("requested_offline_expected_qps", 1.0)},
    "SingleStream": {
        "target_latency": ("requested_single_stream_expected_latency_ns", 1e6),
        "target_latency_percentile": (_PERCENTILE, 0.01),
    },
    "MultiStream": {
        "target_latency": ("requested_multi_stream_expected_latency_ns", 1e6),
        "target_latency_percentile": (_PERCENTILE, 0.01),
        "samples_per_query": ("effective_samples_per_query", 1.0),
    },
    "Server": {
        "target_qps": ("requested_server_target_qps", 1.0),
        "target_latency": ("effective_target_latency_ns", 1e6),
        "target_latency_percentile": (_PERCENTILE, 0.01),
    },
}


@dataclass(frozen=True, slots=True)
class ConfSetting:
    """One setting. key: of the detail log. value: in its unit. text: as written in the file.

    is_forbidden: of compliance runs only. is_fixed: the round decides it in the closed division. is_drawn: it decides
    which samples a run has.
    """

    key: str
    value: float
    text: str
    line: int

    @property
    def is_forbidden(self) -> bool:
        return self.key in _FORBIDDEN.values()

    @property
    def is_drawn(self) -> bool:
        return self.key in _DRAWN.values()

    @property
    def is_fixed(self) -> bool:
        return self.key.startswith("effective_") or self.is_forbidden


def _names(model: ModelView) -> set[str]:
    """The names under which LoadGen may know a model: "llama2-70b" for "llama2-70b-99.9"."""
    row = BENCHMARKS.get(model.subject.benchmark)
    names = {model.model, model.canonical, model.canonical if row is None else row.record.loadgen_name}
    for name in tuple(names):
        names |= {name.removesuffix("-99.9").removesuffix("-99"), name.replace(".", "_")}
    return names


def asked_for(text: str, model: ModelView, scenario: str) -> Iterator[ConfSetting]:
    """Yield the settings of the file for this model in this scenario, each once."""
    names, found = _names(model), dict[str, ConfSetting]()
    plain = {**_KEYS, **_FORBIDDEN, **_DRAWN}
    keys = {name: (key, 1.0) for name, key in plain.items()} | _OF_SCENARIO.get(scenario, {})
    for row in sorted(conf_rows(text), key=lambda row: row.closeness):
        if row.key not in keys or not row.is_about(names, scenario):
            continue
        try:
            value = int(row.value) if row.value.isdigit() and len(row.value) < 40 else float(row.value)
        except ValueError:
            continue
        key, unit = keys[row.key]
        if math.isfinite(value):
            found[key] = ConfSetting(key, value if unit == 1.0 else value * unit, row.text[:120], row.number)
    yield from found.values()
