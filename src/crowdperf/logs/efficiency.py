"""Energy and cost of a performance run, the keys `energy` and `cost` of result.json: informative, never a submission's
power result. Pure.

METRICS is the one definition for tables, pages, exports and comparisons. A run's samples and output tokens are
those that were answered, its time is that from LoadGen's power_begin to its power_end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.html_page import bullets, table
from crowdperf.kit.numbers import quantity
from crowdperf.kit.text_documents import part
from crowdperf.logs.run_log import Json

_PER_MILLION = 1e6
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class EfficiencyMetric:
    """A metric: its name, its unit ("" for the currency of --price_per_hour), and its place in result.json."""

    name: str
    unit: str
    place: tuple[str, str]


METRICS = (
    EfficiencyMetric("energy per sample", "J", ("energy", "j_per_sample")),
    EfficiencyMetric("energy per output token", "J", ("energy", "j_per_output_token")),
    EfficiencyMetric("mean power", "W", ("energy", "mean_w")),
    EfficiencyMetric("idle power", "W", ("energy", "idle_w")),
    EfficiencyMetric("cost per million samples", "", ("cost", "per_million_samples")),
    EfficiencyMetric("cost per million output tokens", "", ("cost", "per_million_output_tokens")),
)


@dataclass(frozen=True, slots=True)
class Work:
    """The answers of a run. output_tokens: None for a model without tokens."""

    samples: int
    output_tokens: int | None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> "Work":
        """Return the work of a performance run, from its result.json."""
        tally = part(result, "text", "tally")
        if isinstance(tally, Mapping):
            return cls(int(tally["completed"]), int(tally["tokens_out"]))
        queries = result.get("query_count") or result.get("generated_query_count") or 0
        return cls(int(queries) * int(result.get("samples_per_query") or 0), None)


def _per(total: float | None, count: int | None) -> float | None:
    return total / count if total is not None and count else None


def energy_per_work(energy_j: float | None, work: Work) -> dict[str, Json]:
    """Return the joules per sample and per output token, None if the energy or the count is unknown."""
    return {
        "j_per_sample": _per(energy_j, work.samples),
        "j_per_output_token": _per(energy_j, work.output_tokens),
    }


def cost_of(price_per_hour: float, seconds: float, work: Work) -> dict[str, Json]:
    """Return the key `cost` of result.json: the price of `seconds`, per million samples or output tokens."""
    price = price_per_hour * seconds / _SECONDS_PER_HOUR * _PER_MILLION
    return {
        "price_per_hour": price_per_hour,
        "per_million_samples": _per(price, work.samples),
        "per_million_output_tokens": _per(price, work.output_tokens),
    }


def efficiency_values(result: Mapping[str, Any]) -> Iterator[tuple[EfficiencyMetric, float]]:
    """Yield the metrics that a result.json has, or its part in results.json."""
    for metric in METRICS:
        value = part(result, *metric.place)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield metric, float(value)


def _text(metric: EfficiencyMetric, value: float) -> str:
    return f"{metric.name} {quantity(value)}{f' {metric.unit}' if metric.unit else ''}"


def efficiency_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the energy and the cost of a run in words, each with its method, empty without both."""
    found = list(efficiency_values(result))
    groups = {key: ", ".join(_text(*one) for one in found if one[0].place[0] == key) for key in ("energy", "cost")}
    energy, cost = part(result, "energy") or {}, part(result, "cost") or {}
    lines = []
    if groups["energy"]:
        idle = f" Idle: {energy['idle_s']:g} s before the run." if energy.get("idle_w") is not None else ""
        lines.append(f"{groups['energy']} (informative. {energy['method']}.{idle})")
    if groups["cost"]:
        lines.append(f"{groups['cost']} (at {cost['price_per_hour']:g} per hour of measuring, while it is loaded)")
    return [*lines, *(energy.get("problems") or () if energy.get("is_requested") else ())]


def efficiency_page(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the section of a page as finished HTML, empty without energy and cost.

    rows: the name of a run, and its result.json or the part in results.json.
    """
    found = [(name, result, dict(efficiency_values(result))) for name, result in rows]
    metrics = [metric for metric in METRICS if any(metric in values for _, _, values in found)]
    lines = [f"{name}: {line}" for name, result, _ in found for line in efficiency_lines(result)]
    if not lines:
        return []
    headings = ("Scenario", *(f"{one.name}{f', {one.unit}' if one.unit else ''}" for one in metrics))
    cells = [(name, *(quantity(values.get(one)) for one in metrics)) for name, _, values in found if values]
    shown = table(headings, cells, numbers=range(1, len(headings)), kind="stacked") if cells else ""
    return ["<h2>Energy and cost</h2>", shown, bullets(lines)]
