"""What came out of a sweep: sweep.json, sweep.csv, summary.txt, from the files of its points."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from crowdperf.kit.csv_cells import csv_text
from crowdperf.kit.numbers import quantity, repeats_text, spread_percent
from crowdperf.kit.records import number_of
from crowdperf.kit.terminal import aligned
from crowdperf.kit.whole_file import read_object
from crowdperf.logs.answer_metrics import values_of
from crowdperf.logs.efficiency import METRICS, efficiency_values
from crowdperf.rules.names import counted, duration_text
from crowdperf.sweeps.folder import PointFolder, State
from crowdperf.sweeps.planning import Plan, PlannedPoint
from crowdperf.sweeps.states import PointStatus, status

FORMAT = 1
RESULTS_FILE = "results.json"
TOKEN_COLUMNS = {
    "requests_per_s": ("Requests/s", "requests per second"),
    "input_tokens_per_s": ("Input tokens/s", "input tokens per second"),
    "output_tokens_per_s": ("Output tokens/s", "tokens per second"),
    "goodput_requests_per_s": ("Goodput, requests/s", "goodput"),
    **{
        f"{key}_{statistic}_ms": (f"{name[:1].upper()}{name[1:]} {statistic}, ms", f"{name} {statistic}")
        for key, name in (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2e", "end-to-end"))
        for statistic in ("p50", "p90", "p99")
    },
    **{
        "_".join(f"{one.name} {one.unit.lower()}".split()): (", ".join(filter(None, (one.name, one.unit))), one.name)
        for one in METRICS
    },
}
"""Columns of a language model's rates and times, of energy and cost: heading, and title with statistic by
answer_metrics.py and efficiency.py of logs."""
SHOWN_STATES = (State.FAILED, State.INVALID, State.INTERRUPTED, State.LOST, State.CANCELLED)
"""States that a summary gives the reason of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One scenario of a point. metric: name, value, unit, higher_is_better; None without a performance run.

    accuracy: name, value, target, passed of each score. latency: by percentile, as in results.json. tokens: rates and
    times of a language model, energy and cost, by TOKEN_COLUMNS. is_search: the metric is a target that was found, and
    no measurement.
    """

    scenario: str
    metric: Mapping[str, Any] | None
    accuracy: tuple[Mapping[str, Any], ...]
    latency: Mapping[str, Any]
    is_passed: bool
    is_search: bool = False
    tokens: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A point and what has become of it. label: what must stand beside its figures; empty for nothing."""

    point: PlannedPoint
    status: PointStatus
    label: str = ""
    figures: tuple[Figures, ...] = ()

    @property
    def first(self) -> Figures | None:
        """The scenario whose figures stand for the point: the first one."""
        return self.figures[0] if self.figures else None

    @property
    def value(self) -> float | None:
        """The figure of a valid point; None where there is none to compare."""
        first = self.first
        if self.status.state is not State.DONE or first is None or first.metric is None or not first.is_passed:
            return None
        return float(first.metric["value"])


def token_values(performance: Mapping[str, Any]) -> dict[str, float]:
    """The rates and times of a language model, energy and cost, by TOKEN_COLUMNS. Empty for others."""
    answers = values_of(performance.get("text") or {})
    found = {f"{metric.title} {statistic}".strip(): value for metric, statistic, value in answers}
    found |= {metric.name: value for metric, value in efficiency_values(performance)}
    return {name: found[title] for name, (_, title) in TOKEN_COLUMNS.items() if title in found}


def figures_of(results: Mapping[str, Any]) -> Iterator[Figures]:
    """The scenarios of a results.json of run,mlperf,inference. Raises LookupError, TypeError, ValueError or
    AttributeError for another file."""
    for scenario in results["scenarios"]:
        performance, accuracy = scenario["performance"] or {}, scenario["accuracy"] or {}
        metric = performance.get("metric")
        scores = [
            {name: score.get(name) for name in ("name", "value", "target", "passed")}
            for score in accuracy.get("metrics", ())
        ]
        numbers = [metric["value"]] if metric is not None else []
        if None in map(number_of, [*numbers, *(one["value"] for one in scores if one["value"] is not None)]):
            raise ValueError("a value is not a number")
        yield Figures(
            scenario=str(scenario["scenario"]),
            metric=metric,
            accuracy=tuple(scores),
            latency=performance.get("latency") or {},
            is_passed=bool(scenario["passed"]),
            tokens=token_values(performance),
        )


def targets_found(folder: PointFolder) -> Iterator[Figures]:
    """What the performance runs of a point with --find=yes have found: a target instead of a measurement."""
    for path in sorted(folder.results.glob("*/*/*/performance/run_1/result.json")):
        for name, setting in ((read_object(path) or {}).get("find") or {}).items():
            is_rate = name == "target_qps"
            metric = {"name": f"found {name}", "value": setting["value"], "unit": "queries/s" if is_rate else "ms",
                      "higher_is_better": is_rate}  # fmt: skip
            yield Figures(
                scenario=path.parents[2].name, metric=metric, accuracy=(), latency={}, is_passed=True, is_search=True
            )


def read_row(point: PlannedPoint, folder: PointFolder, state: State | None = None) -> Row:
    """What the files of a point say; `state` is what its executor says, which also knows the queue."""
    found = status(folder)
    if state is not None and state is not found.state:
        found = replace(found, state=state)
    if found.state not in (State.DONE, State.INVALID):
        return Row(point=point, status=found, label=found.label)
    results = read_object(folder.results / point.id / RESULTS_FILE)
    try:
        figures = tuple(targets_found(folder)) if results is None else tuple(figures_of(results))
    except (LookupError, TypeError, ValueError, AttributeError):
        results, figures = None, ()
    labels = [found.label, str((results or {}).get("label", ""))]
    return Row(point=point, status=found, label="; ".join(filter(None, labels)), figures=figures)


def totals(rows: Sequence[Row]) -> dict[str, int]:
    """How many points are in each state that any is in, and in all."""
    found = {state.value: sum(row.status.state is state for row in rows) for state in State}
    return {"points": len(rows), **{state: count for state, count in found.items() if count}}


def _point_json(row: Row) -> dict[str, Any]:
    first, facts = row.first, row.status
    return {
        "id": row.point.id,
        "variant": row.point.variant,
        "inputs": dict(row.point.inputs),
        "varied": dict(row.point.varied),
        "repeat": row.point.repeat,
        "state": facts.state.value,
        "reason": facts.reason,
        "verdict": facts.verdict,
        "label": row.label,
        "attempts": facts.attempts,
        "node": facts.node,
        "begin_utc": facts.begin_utc,
        "duration_s": facts.duration_s,
        "metric": first.metric if first else None,
        "accuracy": list(first.accuracy) if first else [],
        "latency": dict(first.latency) if first else {},
        "scenarios": [asdict(figures) for figures in row.figures],
        "folder": f"points/{row.point.id}",
        "command": row.point.command,
    }


def sweep_content(plan: Plan, rows: Sequence[Row], made_utc: str = "", lock_sha256: str = "") -> dict[str, Any]:
    """What is in sweep.json. `metric`, `accuracy` and `latency` of a point are those of its first scenario.

    made_utc: when it was written. lock_sha256: of the lock that the points are held to.
    """
    return {
        "format": FORMAT,
        "name": plan.name,
        "digest": plan.digest,
        "made_utc": made_utc,
        "command": plan.command,
        "recipe": plan.recipe,
        "lock_sha256": lock_sha256,
        "totals": totals(rows),
        "points": [_point_json(row) for row in rows],
    }


def score_text(figures: Figures | None) -> str:
    """The scores of a scenario in a line; empty without any."""
    scores = figures.accuracy if figures else ()
    return "; ".join(f"{score['name']} {score['value']:g}" for score in scores if score.get("value") is not None)


def sweep_csv(rows: Sequence[Row]) -> str:
    """The text of sweep.csv: a line for each point, or for each scenario of a point that has several."""
    keys = list(dict.fromkeys(key for row in rows for key in row.point.inputs))
    lines: list[list[object]] = []
    columns = ["id", "variant", "repeat", *(f"in_{key}" for key in keys), "state", "verdict", "label", "scenario",
               "metric", "value", "unit", "repeats", "median", "spread_percent", *TOKEN_COLUMNS, "accuracy", "node",
               "seconds"]  # fmt: skip
    repeats = repeats_of(rows)
    for row in rows:
        point, facts = row.point, row.status
        start = [point.id, point.variant, point.repeat, *(point.inputs.get(key) for key in keys)]
        start += [facts.state.value, facts.verdict, row.label]
        for figures in row.figures or (None,):
            metric = (figures.metric if figures else None) or {}
            own = [figures.scenario if figures else "", *(metric.get(name) for name in ("name", "value", "unit"))]
            values = repeats.get(repeat_key(row, figures), []) if figures else []
            own += [len(values), median(values), spread_percent(values)] if values else [None, None, None]
            times = [figures.tokens.get(name) if figures else None for name in TOKEN_COLUMNS]
            lines.append([*start, *own, *times, score_text(figures), facts.node, facts.duration_s])
    return csv_text(columns, lines)


def repeats_of(rows: Sequence[Row]) -> dict[tuple[object, ...], list[float]]:
    """The values of all valid repeats of a point, by `repeat_key`."""
    found: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        if row.status.state is State.DONE:
            for each in row.figures:
                if each.metric is not None and each.is_passed:
                    found.setdefault(repeat_key(row, each), []).append(float(each.metric["value"]))
    return found


def repeat_key(row: Row, each: Figures) -> tuple[object, ...]:
    """What all repeats of a point have in common."""
    return row.point.variant, tuple(sorted(row.point.inputs.items())), each.scenario, (each.metric or {}).get("name")


def has_repeats(rows: Sequence[Row]) -> bool:
    """Whether any point of the plan is made more than once."""
    return any(row.point.repeat > 1 for row in rows)


def best_of(rows: Sequence[Row]) -> Row | None:
    """The valid point with the best figure, of several repeats the best median, None if they differ in scenario,
    metric or model, or have several.

    A point with a label (test run, own model ...) is no valid result: such ones count where there are no others.
    """
    valid = [row for row in rows if row.value is not None]
    valid = [row for row in valid if not row.label] or valid
    if any(len(row.figures) > 1 for row in valid):
        return None
    kinds = {(row.first.scenario, row.first.metric["name"], row.first.metric["unit"])
             for row in valid if row.first and row.first.metric}  # fmt: skip
    if len(kinds) != 1 or len({row.point.inputs.get("model") for row in valid}) != 1:
        return None
    first = valid[0].first
    sign = 1 if first and first.metric and first.metric.get("higher_is_better") else -1
    repeats = repeats_of(valid)
    return max(valid, key=lambda row: sign * median(repeats[repeat_key(row, row.figures[0])]))


def varied_text(point: PlannedPoint) -> str:
    """What tells a point from the others, for tables."""
    words = [f"{key}={value}" for key, value in point.varied.items()]
    return ", ".join(words + ([f"repeat {point.repeat}"] if point.repeat > 1 else [])) or "base"


def token_columns(rows: Sequence[Row]) -> list[str]:
    """The names of TOKEN_COLUMNS of which any row has a value."""
    return [name for name in TOKEN_COLUMNS if any(name in each.tokens for row in rows for each in row.figures)]


def _figure_text(row: Row) -> str:
    found = [f"{each.metric['value']:.6g} {each.metric['unit']}" for each in row.figures if each.metric]
    return "; ".join(found) or score_text(row.first)


def _median_lines(rows: Sequence[Row]) -> Iterator[str]:
    """The median and the spread of each point that was made more than once, or that none was."""
    if not has_repeats(rows):
        if any(row.value is not None for row in rows):
            yield "each point was made once: set n_repeats to know the spread"
        return
    repeats, seen = repeats_of(rows), set[tuple[object, ...]]()
    for row in rows:
        for each in row.figures:
            key = repeat_key(row, each)
            if key in repeats and key not in seen and each.metric is not None:
                seen.add(key)
                name = varied_text(replace(row.point, repeat=1))
                yield f"median of {name}, {each.scenario}: {repeats_text(repeats[key], str(each.metric['unit']))}"


def summary_text(plan: Plan, rows: Sequence[Row]) -> str:
    """The table for a terminal and summary.txt."""
    columns = token_columns(rows)
    named = [TOKEN_COLUMNS[name][0] for name in columns]
    labels = {row.label for row in rows}
    shared = next(iter(labels)) if columns and len(labels) == 1 else ""  # such a table is wide enough
    head = ("Point", "State", "Figure", *named, *([] if shared else ["Label"]), "Time")
    cells = [
        (
            varied_text(row.point),
            row.status.state.value,
            _figure_text(row) or "-",
            *(
                "; ".join(quantity(one.tokens[name], 3) for one in row.figures if name in one.tokens)
                for name in columns
            ),
            *([] if shared else [row.label or "-"]),
            "-" if row.status.duration_s is None else duration_text(row.status.duration_s),
        )
        for row in rows
    ]
    count = totals(rows)
    said = ", ".join(f"{number} {state}" for state, number in count.items() if state != "points")
    whole = counted(count["points"], "point")
    lines = [f"{plan.name}: {whole} of {plan.recipe}: {said}", "", *aligned([head, *cells], frozenset(named)), ""]
    if shared:
        lines.append(f"label of all points: {shared}")
    if (best := best_of(rows)) is not None:
        label = "" if shared else f" ({best.label})"
        which = f"best point{label}" if best.label else "best valid point"
        lines.append(f"{which}: {varied_text(best.point)}: {_figure_text(best)}")
    lines += _median_lines(rows)
    for row in rows:
        if row.status.state in SHOWN_STATES:
            why = f"{row.point.id} {row.status.state.value}: {row.status.reason or 'no reason was noted'}"
            lines.append(f"{why}, see points/{row.point.id}/attempts/{row.status.attempts:03d}/out.txt")
    return "\n".join(lines).rstrip() + "\n"
