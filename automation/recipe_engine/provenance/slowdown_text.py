"""The verdicts of ``cm diff script A B --max_slowdown=5%`` as text: sentence, table, Markdown, JUnit. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from xml.sax.saxutils import escape, quoteattr

from ..documents.console_text import table
from ..rules.amounts import counted
from ..rules.errors import printable
from .slowdown import MAX_REPEATS, UNPROVEN, Judged, State, fewest_repeats

WORDS: Mapping[State, str] = {"ok": "ok", "slower": "WORSE", "unknown": "inconclusive"}


def headline(rows: Sequence[Judged], allowed_percent: float) -> str:
    """One sentence for the end of a log and the title of a comment."""
    worse = [row for row in rows if row.state == "slower"]
    unknown = sum(row.state == "unknown" for row in rows)
    if worse:
        return f"B is worse than A by more than {allowed_percent:g} %: {_by_result(worse)}"
    if unknown:
        reasons = dict.fromkeys(row.reason for row in rows if row.state == "unknown")
        apart = [one for one in reasons if not any(one in other for other in reasons if other != one)]
        why = f"{counted(unknown, 'metric')} of {len(rows)} cannot be judged: {', '.join(apart)}"
        return f"{why}. To get a verdict, make both sides with {_next_step(rows, allowed_percent)}"
    count = counted(len(rows), "metric")
    within = sum(row.chance is not None and (row.worse_percent or 0.0) > allowed_percent for row in rows)
    if within:
        found = f"{count}, {within} of them with a worse median, within the spread"
        return f"B is not shown to be slower than A by more than {allowed_percent:g} % ({found})"
    return f"B is not slower than A by more than {allowed_percent:g} % ({count})"


def _next_step(rows: Sequence[Judged], allowed_percent: float) -> str:
    """The next measurement of both sides: with twice the repeats if their spread was too wide."""
    wide = [row for row in rows if row.reason == UNPROVEN.format(allowed_percent)]
    most = max((max(len(row.before), len(row.after)) for row in wide), default=0)
    if most == MAX_REPEATS:
        return "longer runs (--min_duration_ms), or on a quieter machine"
    repeats = min(MAX_REPEATS, max(fewest_repeats(len(rows)), 2 * most))
    return f"--repeats={repeats} {'on a quieter machine' if wide else 'under the same load'}"


def _middle(values: Sequence[float]) -> str:
    """The median, with the range of several."""
    if not values:
        return "-"
    if isinstance(values[0], bool):
        return "yes" if all(values) else "no"
    spread = (max(values) - min(values)) / 2 / abs(median(values)) * 100 if len(values) > 1 and median(values) else 0.0
    text = f"{median(values):,.6g}"
    return f"{text} ±{spread:,.{0 if spread >= 10 else 1}f} % (n={len(values)})" if len(values) > 1 else text


def _cells(row: Judged) -> tuple[str, str, str, str, str, str]:
    change = "" if row.worse_percent is None else f"{-row.worse_percent if row.worse_percent else 0.0:+.1f} %"
    return row.name, row.title, _middle(row.before), _middle(row.after), change, WORDS[row.state]


_TITLES = ("result", "metric", "A", "B", "better by", "verdict")


def table_lines(rows: Sequence[Judged], width: int) -> Iterator[str]:
    """A row for each metric, medians with half the range of repeats in percent, and the reasons below."""
    common = common_start([row.name for row in rows])
    cells = [(name[len(common) :], *others) for name, *others in map(_cells, rows)]
    yield from [f"{common.strip()}:"] if common else []
    yield from table([_TITLES, *cells], width, rights=(2, 3, 4), flexible=0)
    yield from reason_lines(rows)


def common_start(names: Sequence[str]) -> str:
    """The common start of several names, up to a slash, a space or an equals sign, empty for one name."""
    first, last = min(names, default=""), max(names, default="")
    pairs = enumerate(zip(first, last))  # noqa: B905
    same = first[: next((at for at, (one, other) in pairs if one != other), len(first))] if first != last else ""
    return same[: max(map(same.rfind, "/ =")) + 1]


def reason_lines(rows: Iterable[Judged]) -> Iterator[str]:
    """A line for each reason of a verdict, with the metrics that have it."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for row in rows:
        if row.reason:
            found.setdefault((WORDS[row.state], row.reason), []).append(row)
    yield from (f"{word}: {reason}: {_by_result(same)}" for (word, reason), same in found.items())


def _by_result(rows: Iterable[Judged]) -> str:
    """The metrics of each result, with its name once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row.metric)
    return "; ".join(f"{name} {', '.join(dict.fromkeys(metrics))}" for name, metrics in found.items())


def markdown(rows: Sequence[Judged], allowed_percent: float) -> str:
    """A comment for a pull request."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"

    head = [f"**{printable(headline(rows, allowed_percent))}**", "", line(_TITLES), "|---|---|--:|--:|--:|---|"]
    return "\n".join([*head, *(line(_cells(row)) for row in rows), "", *map(printable, reason_lines(rows))]) + "\n"


def junit(rows: Sequence[Judged]) -> str:
    """JUnit's XML: a test case for each metric, a failure if it is worse, an error if that is unknown."""
    failures, errors = (sum(row.state == state for row in rows) for state in ("slower", "unknown"))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="crowdperf diff" tests="{len(rows)}" failures="{failures}" errors="{errors}">',
    ]
    for row in rows:
        case = f"<testcase classname={quoteattr(printable(row.name))} name={quoteattr(printable(row.title))}"
        cells = _cells(row)
        text = escape(printable(f"A {cells[2]}, B {cells[3]}, better by {cells[4]}"))
        kind = {"slower": "failure", "unknown": "error"}.get(row.state, "system-out")
        reason = "" if row.state == "ok" else f" message={quoteattr(printable(row.reason))}"
        lines.append(f"{case}><{kind}{reason}>{text}</{kind}></testcase>")
    return "\n".join([*lines, "</testsuite>"]) + "\n"
