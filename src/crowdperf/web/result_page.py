"""The page of one result: what it is, how it was checked, how to repeat it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.html_page import Html, plain
from crowdperf.kit.numbers import quantity, repeats_text
from crowdperf.kit.plot import Quantile, box_plot, latency_plot
from crowdperf.store.facts import UNSEEN_SERVER
from crowdperf.store.model import Configuration, Figure, Result, System
from crowdperf.store.query import Filter
from crowdperf.store.store import Action, Store
from crowdperf.web.formats import ABSENT, minute, size
from crowdperf.web.labels import signer_labels, usual_range
from crowdperf.web.links import Links, round_url
from crowdperf.web.render import page
from crowdperf.web.wording import (
    RUN_CLASSES,
    checks_of,
    figure_words,
    label_rows,
    name_of,
    system_words,
    verification_words,
)

Pairs = list[tuple[str, object]]
MAX_ROWS_OF_CHART = 500
"""Results of its configuration that a result is drawn among, the newest ones."""
CURVE_HEADINGS = ("Concurrency", "Region", "System tokens/s", "Tokens/s for each user", "TTFT p90, ms", "Accuracy")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file as its row is printed; `href` is "" where its body is not kept."""

    name: str
    size: str
    sha256: str
    href: str


def configuration_pairs(configuration: Configuration) -> Pairs:
    """What was measured, name by name; what is not known is left out."""
    run_class = RUN_CLASSES.get(configuration.run_class, configuration.run_class)
    pairs: Pairs = [
        ("Suite", configuration.suite),
        ("Benchmark", configuration.benchmark),
        ("Scenario", configuration.scenario),
        ("Round", configuration.round),
        ("Division", configuration.division),
        ("Category", configuration.category),
        ("Quality tier", configuration.tier),
        ("Software", configuration.stack),
        ("Device", configuration.device),
        ("Precision", configuration.precision),
        ("Data", configuration.data_kind),
        ("Length of run", run_class),
        ("Model", configuration.model_digest),
    ]
    pairs += [(f"{name} (chosen)", value) for name, value in sorted(configuration.settings.items())]
    return [(name, value) for name, value in pairs if value not in ("", None)]


def system_pairs(system: System) -> Pairs:
    """The hardware, name by name; what is not known is left out."""
    pairs: Pairs = [
        ("Accelerator", system.accelerator),
        ("Accelerators", system.accelerator_count or ""),
        ("Nodes", system.nodes or ""),
        ("CPU", system.cpu if system.cpu != UNSEEN_SERVER else ""),
        ("Sockets", system.sockets or ""),
        ("Cores", system.cores or ""),
        ("Memory", f"{system.memory_gib} GiB" if system.memory_gib else ""),
    ]
    pairs += [(name.replace("_", " "), value) for name, value in sorted(system.facts.items())]
    return [(name, value) for name, value in pairs if value not in ("", None)]


def origin_pairs(one: Result) -> Pairs:
    """Where a result comes from."""
    pairs: Pairs = [
        ("Result", one.id),
        ("Kind", one.result.kind),
        ("Run", one.result.run_id),
        ("Made", minute(one.result.made_utc)),
        ("Added", minute(one.added_utc)),
        ("Source", f"{one.source.kind}: {one.source.name}"),
        ("SHA-256 of the source", one.source.digest),
    ]
    if one.signer is not None:
        pairs += [("Signed by", one.signer.alias or "no alias"), ("Key", one.signer.key_id)]
    return [(name, value) for name, value in pairs if value]


_PERCENTILE = re.compile(r"(?:p|latency )?(\d{1,3}(?:[._]\d+)?)(?: latency)?")


def latency_chart(figures: Sequence[Figure]) -> tuple[Html, str]:
    """Latency over percentiles where the figures have at least three of one unit, and that unit."""
    found: dict[str, list[Quantile]] = {}
    for figure in figures:
        percent = _PERCENTILE.fullmatch(figure.name)
        if percent and (share := float(percent[1].replace("_", "."))) <= 100:
            found.setdefault(figure.unit, []).append(Quantile(share, figure.value))
    for unit, quantiles in found.items():
        if len(quantiles) >= 3:
            return latency_plot("Latency by percentile", plain(unit)[:40], [("latency", quantiles)]), unit
    return Html(""), ""


def warning_of(labels: Sequence[str]) -> str:
    """The one sentence above a figure that must not be misread; empty without such a label."""
    words = [meaning for label, meaning in label_rows(labels) if label != "new contributor"]
    return " ".join(words)


def _files(one: Result, kept: Collection[str], link: Links) -> list[FileRow]:
    return [
        FileRow(
            file.name,
            size(file.size_bytes) if file.size_bytes else ABSENT,
            file.sha256,
            link.file(one.id, file.name) if file.name in kept else "",
        )
        for file in one.result.files
    ]


_HEADLINES = {"tokens per second": "Tokens", "TTFT 99": "TTFT p99", "TPOT 99": "TPOT p99"}
"""What stands beside the value of a language model's result."""


def _facts(one: Result, values: Sequence[float]) -> Pairs:
    """The label next to the value. values: of all results of the configuration."""
    found: Pairs = [("Kind", one.result.kind)]
    several = repeats_text(values, one.result.unit) if len(values) > 1 else "single result, so the spread is unknown"
    found.append(("Median of this configuration", several))
    system = one.result.configuration.system
    if one.result.higher_is_better and system.accelerator_count > 1:
        each = quantity(one.result.value / system.accelerator_count)
        found.append(("For each accelerator", f"{each} {one.result.unit}"))
    found += [
        (words, f"{quantity(figure.value)} {figure.unit}")
        for figure in one.result.figures
        if (words := _HEADLINES.get(figure.name)) and figure.unit != one.result.unit
    ]
    found += [(score.name or "Accuracy", quantity(score.value)) for score in one.result.accuracy[:2]]
    if one.result.stack_version:
        found.append(("Software", one.result.stack_version))
    if one.result.made_utc:
        found.append(("Made", minute(one.result.made_utc)[:10]))
    return found


def _ways(one: Result, link: Links, others: int) -> list[tuple[str, str]]:
    found = [(f"All {others} results of this configuration", link.configuration(one.key))] if others > 1 else []
    if one.result.curve:
        found.append(("Curve", link.curve(one.id)))
    return [*found, ("This result as JSON", link.result_json(one.id))]


def result_page(store: Store, link: Links, one: Result) -> str:
    """The HTML of a result that is shown."""
    result = one.result
    values = [row.value for row in store.find(Filter(chosen={"key": (one.key,)}), limit=MAX_ROWS_OF_CHART).rows]
    more = (*signer_labels(store, one.signer), *usual_range(values).labels(result.value))
    labels = (*result.labels, *more)
    kept = [file.name for file in result.files if store.file(one.id, file.name) is not None]
    chart_of_latencies, latency_unit = latency_chart(result.figures)
    verdicts = {True: "yes", False: "no", None: "no target"}
    values_of: Mapping[str, Any] = {
        "title": f"{name_of(result.configuration)}: {quantity(result.value)} {result.unit}",
        "heading": name_of(result.configuration),
        "system_words": system_words(result.configuration.system),
        "warning": warning_of(labels),
        "metric": result.metric,
        "higher_is_better": result.higher_is_better,
        "value": quantity(result.value),
        "unit": result.unit,
        "valid": result.valid,
        "labels": labels,
        "facts": _facts(one, values),
        "ways": _ways(one, link, len(values)),
        "command": result.command,
        "has_record": any(name.endswith("record.json") for name in kept),
        "configuration": configuration_pairs(result.configuration),
        "configuration_href": link.configuration(one.key),
        "system": system_pairs(result.configuration.system),
        "system_href": link.system(one.system_key),
        "chart": box_plot("Results of this configuration", values, result.unit, result.value),
        "chart_words": f"{len(values)} results of this configuration, {result.metric}, {result.unit}",
        "accuracy": [
            (score.name, quantity(score.value), quantity(score.target), verdicts[score.passed], score.basis)
            for score in result.accuracy
        ],
        "curve_headings": CURVE_HEADINGS,
        "curve": curve_rows(one),
        "curve_href": link.curve(one.id) if result.curve else "",
        "latency_chart": chart_of_latencies,
        "latency_unit": latency_unit,
        "figures": [(figure_words(figure.name), quantity(figure.value), figure.unit) for figure in result.figures],
        "verification": result.verification,
        "verification_words": verification_words(result.configuration.suite, result.verification),
        "rules": checks_of(result.configuration.suite, result.verification),
        "notes": result.notes,
        "files": _files(one, kept, link),
        "origin": origin_pairs(one),
        "signer_href": link.signer(one.signer.key_id) if one.signer else "",
        "round_href": round_url(result.kind, result.configuration.round),
        "raw": sorted(result.raw.items()) if result.kind == "published" else [],
        "actions": action_rows(store.actions(result_id=one.id)),
    }
    return page("result", link, **values_of)


def curve_rows(one: Result) -> list[tuple[str, ...]]:
    """The points of a curve as rows for CURVE_HEADINGS, by concurrency."""
    return [
        (
            str(point.concurrency),
            point.region,
            quantity(point.system_tps),
            quantity(point.tps_per_user),
            quantity(point.ttft_p90_ms),
            quantity(point.accuracy),
        )
        for point in sorted(one.result.curve, key=lambda point: point.concurrency)
    ]


def action_rows(actions: Sequence[Action]) -> list[tuple[str, str, str]]:
    """What was done with a result or a key, as rows."""
    return [(minute(action.time_utc), action.what, action.reason) for action in actions]
