"""What differs between two records of results, or between a record and its reproduction, also as text. Pure.

Inputs decide a result: recipes, what they made (versions, files, packages, commits) and what the recipe of the result
names. Settings follow from inputs or were measured; the machine is shown but is not an input. Figures are the outcome.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..rules.cachekey import Artifact
from ..rules.errors import RequestError
from ..rules.rerun import flat
from .lockfile import LockedArtifact
from .resultrecord import ResultRecord

DEFAULT_TOLERANCE_PERCENT = 10.0
ONE_SIDED = "only one of them used it"
TITLES = {"made": "made by a recipe", "result": "file of the result"}
"""How a group of differences is called where its own name says too little."""
DIGEST_LENGTH = 64
SHOWN_DIGITS = 12
WIDTH = 60
"""Longer values are cut in a table; ``--out=json`` has them whole."""


def parse_tolerance(given: Any) -> float:
    """How many percent a figure may be off; raises RequestError for an invalid number."""
    if given in (None, ""):
        return DEFAULT_TOLERANCE_PERCENT
    try:
        value = float(str(given).strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise RequestError(f"--tolerance={given} is not a number of percent >= 0", hint="--tolerance=10")
    return value


class Difference(NamedTuple):
    """One fact that is not the same: ``before`` in the first record, ``after`` in the second; None: not there.

    ``group`` is ``recipe``, ``made``, a group of inputs that the recipe named, ``setting``, ``machine`` or ``result``.
    """

    group: str
    name: str
    before: Any = None
    after: Any = None
    note: str = ""

    @property
    def title(self) -> str:
        """The group and the name, for people."""
        return f"{TITLES.get(self.group, self.group)} {self.name}"


class Figure(NamedTuple):
    """One figure of the outcome on both sides; None where a side lacks it."""

    name: str
    kind: Literal["exact", "within"]
    before: Any
    after: Any
    unit: str = ""

    @property
    def percent(self) -> float | None:
        """How much more the second is than the first; None when that cannot be said."""
        if not (_is_number(self.before) and _is_number(self.after)):
            return None
        if self.before == self.after:
            return 0.0
        return (self.after - self.before) / abs(self.before) * 100.0 if self.before else None

    def is_same(self, tolerance_percent: float) -> bool:
        """Whether both sides agree: exactly, or within the tolerance."""
        if self.before == self.after:
            return True
        return self.kind == "within" and self.percent is not None and abs(self.percent) <= tolerance_percent


class Comparison(NamedTuple):
    """Two results side by side."""

    name: str
    inputs: tuple[Difference, ...]
    settings: tuple[Difference, ...]
    machine: tuple[Difference, ...]
    figures: tuple[Figure, ...]

    @property
    def is_identical(self) -> bool:
        """Whether nothing at all differs."""
        same = all(figure.before == figure.after for figure in self.figures)
        return same and not (self.inputs or self.settings or self.machine)

    def is_reproduced(self, tolerance_percent: float) -> bool:
        """Whether the second is the first made again: same inputs, same outcome."""
        return not self.inputs and all(figure.is_same(tolerance_percent) for figure in self.figures)

    def row(self, tolerance_percent: float) -> dict[str, Any]:
        """The comparison as JSON."""
        figures = [
            {**figure._asdict(), "percent": figure.percent, "is_same": figure.is_same(tolerance_percent)}
            for figure in self.figures
        ]
        groups = {name: [one._asdict() for one in getattr(self, name)] for name in ("inputs", "settings", "machine")}
        return {"name": self.name, **groups, "figures": figures}


def compare(before: ResultRecord, after: ResultRecord) -> Comparison:
    """All that differs between two results."""
    return Comparison(
        name=before.name,
        inputs=tuple(_input_differences(before, after)),
        settings=tuple(_settings(before.settings, after.settings)),
        machine=tuple(differing("machine", before.machine, after.machine)),
        figures=tuple(_figures(before, after)),
    )


def differing(group: str, before: Mapping[str, Any], after: Mapping[str, Any], start: str = "") -> Iterator[Difference]:
    """A row for each key whose values differ; ``start`` comes before its name."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Difference(group, f"{start}{name}", before.get(name), after.get(name))


def _input_differences(before: ResultRecord, after: ResultRecord) -> Iterator[Difference]:
    yield from differing("request", dict(flat(before.request.inputs)), dict(flat(after.request.inputs)))
    yield from differing("attachment", before.attachments, after.attachments)
    yield from recipe_differences(before, after.lock.recipes, lambda name: after.recipe_files.get(name, {}))
    yield from _artifacts(before.lock.artifacts, after.lock.artifacts)
    for group in sorted(before.inputs.keys() | after.inputs.keys()):
        yield from differing(group, before.inputs.get(group, {}), after.inputs.get(group, {}))


def recipe_differences(
    before: ResultRecord,
    now: Mapping[str, str],
    files_now: Callable[[str], Mapping[str, str]],
    missing: str = ONE_SIDED,
) -> Iterator[Difference]:
    """A row for each file of a recipe that is not the same; for the recipe itself where only one side has it.

    ``now`` has the digests of recipes by ``alias,uid``, and ``files_now`` answers with those of the files of one;
    ``missing`` says what it means that one has no digest.
    """
    for recipe in differing("recipe", before.lock.recipes, now):
        alias = recipe.name.partition(",")[0]
        if recipe.before is None or recipe.after is None:
            yield recipe._replace(name=alias, note=missing)
            continue
        recorded = before.recipe_files.get(recipe.name, {})
        files = list(differing("recipe", recorded, files_now(recipe.name), f"{alias}/"))
        for file in files:
            gone = "the file is gone" if file.after is None else "the file was changed"
            yield file._replace(note="a new file" if file.before is None else gone)
        if not files:
            yield recipe._replace(name=alias)


def _artifacts(before: Sequence[LockedArtifact], after: Sequence[LockedArtifact]) -> Iterator[Difference]:
    """What differs of what recipes made: version, files, facts such as packages; several of one kind in order."""
    first, second = _by_artifact(before), _by_artifact(after)
    for artifact in sorted(first.keys() | second.keys()):
        one, other = first.get(artifact, []), second.get(artifact, [])
        if not (one and other):
            yield Difference(
                "made", (one or other)[0].label, "used" if one else None, "used" if other else None, ONE_SIDED
            )
        for mine, theirs in zip(one, other):  # noqa: B905 - more of one kind are the same artifact at another place
            yield from differing("made", _content(mine), _content(theirs), f"{mine.label} ")


def _by_artifact(artifacts: Sequence[LockedArtifact]) -> dict[Artifact, list[LockedArtifact]]:
    found: dict[Artifact, list[LockedArtifact]] = {}
    for locked in sorted(artifacts, key=lambda one: (one.version, sorted(one.files))):
        found.setdefault(locked.artifact, []).append(locked)
    return found


def _content(locked: LockedArtifact) -> dict[str, Any]:
    """What is known of an artifact by names for people: ``version``, ``path/of/file``, ``python_packages.numpy``."""
    rows = locked.content.items()
    return {name if kind == "file" else ".".join(filter(None, (kind, name))): value for (kind, name), value in rows}


def _settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Settings whose value differs; a note says where each came from. Another origin alone is not a difference."""
    sides = [{name: _setting(value) for name, value in side.items()} for side in (before, after)]
    for name in sorted(sides[0].keys() | sides[1].keys()):
        (one, its_origin), (other, other_origin) = (side.get(name, (None, "")) for side in sides)
        if one != other:
            note = f"from {its_origin or 'nowhere'} and from {other_origin or 'nowhere'}"
            yield Difference("setting", name, one, other, note)


def _setting(value: Any) -> tuple[Any, str]:
    has_origin = isinstance(value, Mapping) and "value" in value
    return (value["value"], str(value.get("origin", ""))) if has_origin else (value, "")


def _figures(before: ResultRecord, after: ResultRecord) -> Iterator[Figure]:
    exact, within = (before.outcome.exact, after.outcome.exact), (before.outcome.within, after.outcome.within)
    for name in sorted(exact[0].keys() | exact[1].keys()):
        yield Figure(name, "exact", exact[0].get(name), exact[1].get(name))
    for name in sorted(within[0].keys() | within[1].keys()):
        one, other = (side.get(name) for side in within)
        unit = next(quantity.unit for quantity in (one, other) if quantity)
        yield Figure(name, "within", one.value if one else None, other.value if other else None, unit)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- text ---


def difference_line(difference: Difference, titles: tuple[str, str]) -> str:
    """One difference in a line: ``recipe get-x/run.sh: the file was changed (recorded 12ab..., now 34cd...)``."""
    values = f"{titles[0]} {value_text(difference.before)}, {titles[1]} {value_text(difference.after)}"
    has_values = difference.before is not None or difference.after is not None
    return f"{difference.title}: {'; '.join(filter(None, (difference.note, values if has_values else '')))}"


def visible(line: str) -> str:
    """A line for a terminal: control characters of a foreign text are shown as escapes and not obeyed."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def value_text(value: Any) -> str:
    """A value in a few words; of a digest the first digits."""
    if isinstance(value, str) and len(value) == DIGEST_LENGTH and not set(value) - set("0123456789abcdef"):
        return value[:SHOWN_DIGITS] + "..."
    text = f"{value:.6g}" if isinstance(value, float) else exact_text(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def exact_text(value: Any) -> str:
    """A value whole, a figure with all its digits."""
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def figure_line(figure: Figure, tolerance_percent: float, titles: tuple[str, str]) -> str:
    """One figure in a line with its verdict."""
    mark = "=" if figure.is_same(tolerance_percent) else "!"
    unit = f" {figure.unit}" if figure.unit else ""
    percent = f" ({figure.percent:+.2f} %)" if figure.percent else ""
    rule = "must be equal" if figure.kind == "exact" else f"within {tolerance_percent:g} %"
    values = f"{titles[0]} {exact_text(figure.before)}{unit}, {titles[1]} {exact_text(figure.after)}{unit}"
    return f"{mark} {figure.name}: {values}{percent}, {rule}"


def reproduction_lines(comparison: Comparison, tolerance_percent: float) -> Iterator[str]:
    """The comparison of a result and its reproduction."""
    titles = ("recorded", "now")
    yield f"{comparison.name}: {'reproduced' if comparison.is_reproduced(tolerance_percent) else 'NOT reproduced'}"
    for figure in comparison.figures:
        yield f"  {figure_line(figure, tolerance_percent, titles)}"
    for difference in comparison.inputs:
        yield f"  ! {difference_line(difference, titles)}"
    for difference in (*comparison.settings, *comparison.machine):
        yield f"  - {difference_line(difference, titles)}"


def diff_lines(comparison: Comparison, tolerance_percent: float) -> Iterator[str]:
    """Two results side by side: what decides them, what was set, the machine, the figures."""
    yield f"{comparison.name}:"
    if comparison.is_identical:
        yield "  identical: inputs, settings, machine and figures"
        return
    for title in ("inputs", "settings", "machine"):
        differences: Sequence[Difference] = getattr(comparison, title)
        yield f"  {title}:{'' if differences else ' the same'}"
        yield from table([(one.title, value_text(one.before), value_text(one.after), one.note) for one in differences])
    yield "  figures:"
    yield from table([_figure_cells(figure, tolerance_percent) for figure in comparison.figures])


def _figure_cells(figure: Figure, tolerance_percent: float) -> tuple[str, ...]:
    percent = "" if figure.percent is None else f"{figure.percent:+.2f} %"
    mark = "" if figure.is_same(tolerance_percent) else "differs"
    return (f"{figure.name} {figure.unit}".strip(), exact_text(figure.before), exact_text(figure.after), percent, mark)


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield ("    " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()
