"""curve.html: a curve as one static page, and curve.csv and summary.txt with the same figures. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.csv_cells import csv_text
from crowdperf.kit.html_page import bullets, chart, document, table, text
from crowdperf.kit.plot import StepPoint, curve_plot
from crowdperf.kit.records import number_of
from crowdperf.kit.terminal import aligned

UNOFFICIAL = "Unofficial: not reviewed by MLCommons, and no MLPerf result."


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """A point of the page. name: r12 or offline. state, reason, label: of sweeps. outcome: its outcome.json."""

    name: str
    concurrency: int
    region: str
    state: str
    reason: str
    label: str
    outcome: Mapping[str, Any]

    def figure(self, key: str) -> float | None:
        """Return a figure of the outcome; None where there is none."""
        value = number_of(self.outcome.get(key))
        return None if value is None else float(value)

    @property
    def is_valid(self) -> bool:
        """True for a point that counts."""
        return self.state == "done"


_CAPTION = (
    "Output of the system if each user gets at least so many tokens a second. Marks are measured points. Values between"
    " them are not estimated. Dashed lines: TPOT limits of MLPerf Inference for this model, for orientation."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePage:
    """What the page says. label: why it is not a result of the model. facts: name and value. findings: of the checks.
    limits: words and tokens/s for each user of lines that are drawn (`user_limits`)."""

    name: str
    label: str
    facts: Sequence[tuple[str, str]]
    rows: Sequence[PointRow]
    findings: Sequence[str]
    limits: Sequence[tuple[str, float]] = ()


_COLUMNS = (
    ("system_tps", "system tokens/s", "{:,.1f}"),
    ("tps_per_user", "tokens/s for each user", "{:,.2f}"),
    ("ttft_p90_ms", "first token p90, ms", "{:,.2f}"),
    ("samples_per_s", "samples/s", "{:,.3f}"),
    ("steady_s", "steady, s", "{:,.1f}"),
    ("samples", "samples", "{:,.0f}"),
    ("failed", "failed", "{:,.0f}"),
    ("accuracy", "accuracy", "{:.4f}"),
)
_CSV = ("name", "concurrency", "region", "state", "label", *(key for key, _, _ in _COLUMNS), "started_utc", "reasons")


def step_points(rows: Sequence[PointRow]) -> tuple[StepPoint, ...]:
    """Return the valid points at a fixed concurrency; a dedicated Offline run has no latency that applies."""
    found = []
    for row in rows:
        system, user = row.figure("system_tps"), row.figure("tps_per_user")
        if row.is_valid and row.concurrency and system is not None and user is not None:
            found.append(StepPoint(row.name, user, system))
    return tuple(found)


def _cells(row: PointRow) -> list[str]:
    shown = []
    for key, _, form in _COLUMNS:
        value = row.figure(key)
        shown.append("" if value is None else form.format(value))
    return shown


def _reasons(row: PointRow) -> str:
    reasons = row.outcome.get("reasons")
    return "; ".join(map(str, reasons if isinstance(reasons, list) else ())) or row.reason


def _words(page: CurvePage) -> str:
    """What must stand beside the figures."""
    return ". ".join(filter(None, (UNOFFICIAL.rstrip("."), page.label)))


def html_page(page: CurvePage) -> str:
    """Return the page: no script, nothing from elsewhere."""
    headings = ["point", "region", "state", *(words for _, words, _ in _COLUMNS)]
    rows = [[row.name, row.region, row.state, *_cells(row)] for row in page.rows]
    reasons = [f"{row.name}: {_reasons(row)}" for row in page.rows if not row.is_valid and _reasons(row)]
    points = step_points(page.rows)
    drawn = curve_plot("Curve in tokens per second", [(page.name, points)] if points else [], page.limits)
    return document(
        page.name,
        [
            f"<h1>{text(page.name)}</h1>",
            f'<p class="label">{text(_words(page))}</p>',
            chart(drawn, _CAPTION),
            "<h2>Points</h2>",
            table(headings, rows, range(3, len(headings)), caption="Points by concurrency", kind="stacked"),
            bullets(reasons),
            "<h2>Curve</h2>",
            table(("fact", "value"), page.facts, caption="How the curve was made", kind="facts"),
            "<h2>Findings of the checks</h2>" if page.findings else "",
            bullets(page.findings),
        ],
    )


def _csv_row(row: PointRow) -> Iterator[object]:
    own = {"name": row.name, "concurrency": row.concurrency, "region": row.region, "state": row.state,
           "label": row.label, "reasons": _reasons(row)}  # fmt: skip
    return (own.get(key, row.outcome.get(key)) for key in _CSV)


def curve_csv(rows: Sequence[PointRow]) -> str:
    """Return curve.csv: a row for each point."""
    return csv_text(_CSV, map(_csv_row, rows))


def summary_text(page: CurvePage) -> str:
    """Return the table for a terminal."""
    headings = ["point", "region", "state", "system tok/s", "tok/s/user", "ttft p90 ms", "steady s", "accuracy"]
    keys = {"system_tps": "{:,.1f}", "tps_per_user": "{:,.2f}", "ttft_p90_ms": "{:,.2f}", "steady_s": "{:,.1f}",
            "accuracy": "{:.4f}"}  # fmt: skip
    cells = [headings]
    for row in page.rows:
        values = [(form, row.figure(key)) for key, form in keys.items()]
        cells.append([row.name, row.region, row.state, *("-" if one is None else form.format(one)
                                                         for form, one in values)])  # fmt: skip
    lines = [page.name, _words(page), *aligned(cells)]
    lines += [f"{row.name}: {_reasons(row)}" for row in page.rows if not row.is_valid and _reasons(row)]
    return "\n".join([*lines, *page.findings]) + "\n"
