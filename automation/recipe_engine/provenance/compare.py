"""What differs between two results, by their records alone, and the verdict of a reproduction.

Inputs decide a result: recipes, what they made (versions, files, packages, commits) and what the recipe of the result
names. Settings follow from inputs or were measured; the machine is shown but is not an input. Figures are the outcome.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from ..actions.adapter import show
from ..disk.files import sha256_of
from ..documents.console_text import plain
from ..rules.cachekey import Artifact
from ..rules.errors import RequestError, printable
from ..rules.rerun import flat
from .lockfile import LockedArtifact, exact_text
from .record import Quantity, ResultRecord, Setting, is_number, percent_more

K = TypeVar("K", str, Artifact)
V = TypeVar("V")
DEFAULT_TOLERANCE_PERCENT = 10.0
ONE_SIDED = "only one of them used it"
TITLES = {"made": "built by a recipe", "result": "file of the result"}
"""The titles of groups of differences whose own name says too little."""
SHOWN_FILES = 5
"""Of a recipe or repository of which more files differ, the text has counts; ``--out=json`` has every file."""
FILE_NOTES = {"the file is missing": "missing", "a new file": "new"}
DIGEST_LENGTH = 64
SHOWN_DIGITS = 12
WIDTH = 60
"""Longer values are cut in a table; ``--out=json`` has them whole."""


def parse_tolerance(given: Any, name: str = "tolerance") -> float:
    """How many percent a figure may be off; raises RequestError for an invalid number."""
    if given in (None, ""):
        return DEFAULT_TOLERANCE_PERCENT
    try:
        value = float(str(given).strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise RequestError(f"--{name}: found {str(given)!r}; allowed: a number of percent from 0", hint=f"--{name}=10")
    return value


class Difference(NamedTuple):
    """One fact that is not the same: ``before`` in the first record, ``after`` in the second; None: not there.

    ``group`` is ``recipe``, ``library``, ``made``, a group of inputs that the recipe named, ``setting``, ``machine`` or
    ``result``.
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
    """One figure of the outcome on both sides, None if a side has none.

    ``spread_percent``: how far the two may differ by chance, measured, None if a side has none. ``not_judged``:
    why a difference says nothing, of the first and of the second.
    """

    name: str
    kind: Literal["exact", "within", "further"]
    before: Any
    after: Any
    unit: str = ""
    higher_is_better: bool | None = None
    spread_percent: float | None = None
    not_judged: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def percent(self) -> float | None:
        """How much more the second is than the first; None when that cannot be said."""
        is_known = is_number(self.before) and is_number(self.after)
        return percent_more(self.before, self.after) if is_known else None

    def is_same(self, tolerance_percent: float) -> bool:
        """Whether both sides agree: exactly, or within the tolerance."""
        is_near = self.kind == "within" and self.percent is not None and abs(self.percent) <= tolerance_percent
        return is_near or self.kind == "further" or bool(self.before == self.after)

    def verdict(self, tolerance_percent: float) -> str:
        """What the second is beside the first: better or worse only beyond the tolerance and what chance explains."""
        if self.before == self.after:
            return "the same"
        if self.percent is None or self.kind == "exact":
            return "different"
        if any(self.not_judged):
            return "not judged"
        limit_percent = max(tolerance_percent, self.spread_percent or 0.0)
        if abs(self.percent) <= limit_percent:
            return f"within {limit_percent:.3g} %"
        if self.higher_is_better is None:
            return "different"
        return "better" if (self.percent > 0) == self.higher_is_better else "worse"


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
            {
                **figure._asdict(),
                "percent": figure.percent,
                "is_same": figure.is_same(tolerance_percent),
                "verdict": figure.verdict(tolerance_percent),
            }
            for figure in self.figures
        ]
        groups = {name: plain(getattr(self, name)) for name in ("inputs", "settings", "machine")}
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


def _both(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """Each key of two mappings with both values; None where a side lacks it."""
    for key in sorted(before.keys() | after.keys()):
        yield key, before.get(key), after.get(key)


def differing(group: str, before: Mapping[str, Any], after: Mapping[str, Any], start: str = "") -> Iterator[Difference]:
    """A row for each key whose values differ; ``start`` comes before its name."""
    return (Difference(group, f"{start}{key}", one, other) for key, one, other in _both(before, after) if one != other)


def _input_differences(before: ResultRecord, after: ResultRecord) -> Iterator[Difference]:
    yield from differing("request", dict(flat(before.request.inputs)), dict(flat(after.request.inputs)))
    yield from differing("attachment", before.attachments, after.attachments)
    yield from recipe_differences(before, after.lock.recipes, lambda name: after.recipe_files.get(name, {}))
    if before.lock.library and after.lock.library:
        yield from differing("library", before.lock.library, after.lock.library)
    yield from _artifacts(before.lock.artifacts, after.lock.artifacts)
    for group, one, other in _both(before.inputs, after.inputs):
        yield from differing(group, one or {}, other or {})


def recipe_differences(
    before: ResultRecord,
    now: Mapping[str, str],
    files_now: Callable[[str], Mapping[str, str]],
    missing: str = ONE_SIDED,
) -> Iterator[Difference]:
    """A row for each file of a recipe that is not the same; for the recipe itself where only one side has it.

    ``now`` has the digests of recipes by ``alias,uid``, ``files_now`` gives those of the files of one recipe, and
    ``missing`` is the note for a recipe without a digest.
    """
    for recipe in differing("recipe", before.lock.recipes, now):
        alias = recipe.name.partition(",")[0]
        if recipe.before is None or recipe.after is None:
            yield recipe._replace(name=alias, note=missing)
            continue
        recorded = before.recipe_files.get(recipe.name, {})
        files = list(differing("recipe", recorded, files_now(recipe.name), f"{alias}/"))
        for file in files:
            gone = "the file is missing" if file.after is None else "the file was changed"
            yield file._replace(note="a new file" if file.before is None else gone)
        if not files:
            yield recipe._replace(name=alias)


def _artifacts(before: Iterable[LockedArtifact], after: Iterable[LockedArtifact]) -> Iterator[Difference]:
    """What differs of what recipes made: version, files, facts such as packages; several of one kind in order."""
    for _, one, other in _both(_by_artifact(before), _by_artifact(after)):
        if one and other:
            for mine, theirs in zip(one, other):  # noqa: B905 - more of one kind are the same artifact at another place
                yield from differing("made", _content(mine), _content(theirs), f"{mine.label} ")
        else:
            label = (one or other or [])[0].label
            yield Difference("made", label, "used" if one else None, "used" if other else None, ONE_SIDED)


def _by_artifact(artifacts: Iterable[LockedArtifact]) -> dict[Artifact, list[LockedArtifact]]:
    found: dict[Artifact, list[LockedArtifact]] = {}
    for locked in sorted(artifacts, key=lambda one: (one.version, sorted(one.files))):
        found.setdefault(locked.artifact, []).append(locked)
    return found


def _content(locked: LockedArtifact) -> dict[str, Any]:
    """What is known of an artifact, for people: by ``version``, ``path/of/file``, ``python_packages.numpy``."""
    rows = locked.content.items()
    return {name if kind == "file" else ".".join(filter(None, (kind, name))): value for (kind, name), value in rows}


def _settings(before: Mapping[str, Setting], after: Mapping[str, Setting]) -> Iterator[Difference]:
    """Settings whose value differs; a note says where each came from. Another origin alone is not a difference."""
    for name, one, other in _both(before, after):
        (value, origin), (other_value, other_origin) = one or Setting(None), other or Setting(None)
        if value != other_value:
            note = f"from {origin or 'no source'} and from {other_origin or 'no source'}"
            yield Difference("setting", name, value, other_value, note)


def _figures(before: ResultRecord, after: ResultRecord) -> Iterator[Figure]:
    for name, value, now in _both(before.outcome.exact, after.outcome.exact):
        yield Figure(name, "exact", value, now)
    yield from _quantities("within", before.outcome.within, after.outcome.within)
    yield from _quantities("further", before.outcome.further, after.outcome.further)


def _quantities(
    kind: Literal["within", "further"], before: Mapping[str, Quantity], after: Mapping[str, Quantity]
) -> Iterator[Figure]:
    for name, one, other in _both(before, after):
        first, second = one or Quantity(0.0), other or Quantity(0.0)
        known, spreads = one or second, (first.spread_percent, second.spread_percent)
        yield Figure(
            name,
            kind,
            one.value if one else None,
            other.value if other else None,
            known.unit,
            known.higher_is_better,
            None if None in spreads else sum((spread or 0.0) ** 2 for spread in spreads) ** 0.5,
            (first.reasons, second.reasons),
        )


def edited_files(record: ResultRecord) -> Iterator[Difference]:
    """The files of a result that were changed since it was recorded.

    Where a group of the record's inputs is called like the file, it holds the file's lines ``key = value``: those that
    were edited are named.
    """
    for name, recorded in sorted(record.files.items()):
        path = record.folder / name
        now = digest_of(path)
        if now == recorded:
            continue
        lines = record.inputs.get(name)
        edited = list(_edited_lines(name, lines, path)) if lines and now else []
        note = "the file is missing" if now is None else "edited after the result was produced"
        yield from edited or [Difference("result", name, recorded, now, note)]


def digest_of(path: Path) -> str | None:
    """The SHA-256 of a file; None when it is gone."""
    return sha256_of(path) if path.is_file() else None


def _edited_lines(name: str, recorded: Mapping[str, Any], path: Path) -> Iterator[Difference]:
    text = path.read_text(encoding="utf-8", errors="replace")
    rows = [line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#")]
    now = {key.strip(): value.strip() for key, _, value in rows}
    for line in differing("result", recorded, now, f"{name} "):
        yield line._replace(note="this line was edited")


# --- text ---


def difference_line(difference: Difference) -> str:
    """One difference in a line: ``recipe get-x/run.sh: the file was changed; recorded 12ab..., now 34cd...``."""
    values = f"recorded {value_text(difference.before)}, now {value_text(difference.after)}"
    has_values = difference.before is not None or difference.after is not None
    return f"{difference.title}: {'; '.join(filter(None, (difference.note, values if has_values else '')))}"


def difference_lines(differences: Iterable[Difference]) -> Iterator[str]:
    """A line for each difference, of a recipe or a repository of which many files differ one with their counts.

    ``recipe get-x: 12 files differ (10 missing, 2 changed), such as lib/a.py``
    """
    owners: dict[tuple[str, str], list[Difference]] = {}
    for one in differences:
        mark = {"recipe": "/", "library": ":"}.get(one.group)
        owners.setdefault((one.group, one.name.partition(mark)[0] if mark else one.name), []).append(one)
    for (group, owner), rows in owners.items():
        if len(rows) <= SHOWN_FILES:
            yield from map(difference_line, rows)
            continue
        counts = Counter(FILE_NOTES.get(row.note, "changed") for row in rows)
        shown = ", ".join(f"{count} {note}" for note, count in counts.most_common())
        yield f"{TITLES.get(group, group)} {owner}: {len(rows)} files differ ({shown}), such as {rows[0].name}"


def value_text(value: Any) -> str:
    """A value in a few words; of a digest the first digits."""
    if isinstance(value, str) and len(value) == DIGEST_LENGTH and not set(value) - set("0123456789abcdef"):
        return value[:SHOWN_DIGITS] + "..."
    text = f"{value:.6g}" if isinstance(value, float) else exact_text(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def figure_line(figure: Figure, tolerance_percent: float) -> str:
    """One figure in a line with its verdict."""
    mark = "=" if figure.is_same(tolerance_percent) else "!"
    unit = f" {figure.unit}" if figure.unit else ""
    percent = f" ({figure.percent:+.2f} %)" if figure.percent else ""
    rule = "must be equal" if figure.kind == "exact" else f"within {tolerance_percent:g} %"
    values = f"recorded {exact_text(figure.before)}{unit}, now {exact_text(figure.after)}{unit}"
    return f"{mark} {figure.name}: {values}{percent}, {rule}"


def reproduction_lines(comparison: Comparison, tolerance_percent: float) -> Iterator[str]:
    """The comparison of a result and its reproduction."""
    yield f"{comparison.name}: {'reproduced' if comparison.is_reproduced(tolerance_percent) else 'NOT reproduced'}"
    for figure in comparison.figures:
        yield f"  {figure_line(figure, tolerance_percent)}"
    for mark, differences in (("!", comparison.inputs), ("-", (*comparison.settings, *comparison.machine))):
        yield from (f"  {mark} {line}" for line in difference_lines(differences))


def show_lines(i: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Prints lines for the console; control characters of a foreign text are shown as escapes and not obeyed."""
    show(i, *map(printable, lines))


def failed(
    i: Mapping[str, Any], error: str, answer: Mapping[str, Any], code: int = RequestError.code, hint: str = ""
) -> dict[str, Any]:
    """The whole answer with an error, for programs. On a console the rest was printed: raises RequestError."""
    if i.get("out") == "con":
        shown = RequestError(printable(error), hint=hint or "--out=json gives every difference in full")
        shown.code = code
        raise shown
    return {"return": code, "error": error, **answer}
