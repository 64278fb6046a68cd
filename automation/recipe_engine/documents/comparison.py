"""What differs between two records of results, or between a record and its reproduction. Pure.

Inputs decide a result: recipes, what they made (versions, files, packages, commits) and what the recipe of the result
names. Settings follow from inputs or were measured; the machine is told but is no input. Figures are the outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..rules.demands import Artifact
from .lockfile import LockedArtifact
from .resultrecord import ResultRecord

DEFAULT_TOLERANCE_PERCENT = 10.0
Group = str
Kind = Literal["exact", "within"]
MISSING = None
"""What one side shows where only the other one has something."""


class Difference(NamedTuple):
    """One fact that is not the same: ``before`` in the first record, ``after`` in the second; None: not there.

    ``group`` is ``recipe``, ``made``, a group of inputs that the recipe named, ``setting``, ``machine`` or ``result``.
    """

    group: Group
    name: str
    before: Any = MISSING
    after: Any = MISSING
    note: str = ""

    @property
    def row(self) -> dict[str, Any]:
        """The difference as JSON."""
        return self._asdict()


class Figure(NamedTuple):
    """One figure of the outcome on both sides; None where a side lacks it."""

    name: str
    kind: Kind
    before: Any
    after: Any
    unit: str = ""

    @property
    def percent(self) -> float | None:
        """How much more the second is than the first; None when that cannot be said."""
        numbers = [value for value in (self.before, self.after) if _is_number(value)]
        if len(numbers) < 2:
            return None
        if self.before == self.after:
            return 0.0
        return (self.after - self.before) / abs(self.before) * 100.0 if self.before else None

    def is_same(self, tolerance_percent: float) -> bool:
        """Whether both sides agree: exactly, or within the tolerance."""
        if self.before == self.after:
            return True
        return self.kind == "within" and self.percent is not None and abs(self.percent) <= tolerance_percent

    @property
    def row(self) -> dict[str, Any]:
        """The figure as JSON."""
        return {**self._asdict(), "percent": self.percent}


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

    def misses(self, tolerance_percent: float) -> tuple[Figure, ...]:
        """The figures that do not agree."""
        return tuple(figure for figure in self.figures if not figure.is_same(tolerance_percent))

    def is_reproduced(self, tolerance_percent: float) -> bool:
        """Whether the second is the first made again: same inputs, same outcome."""
        return not self.inputs and not self.misses(tolerance_percent)

    def row(self, tolerance_percent: float) -> dict[str, Any]:
        """The comparison as JSON."""
        return {
            "name": self.name,
            "inputs": [difference.row for difference in self.inputs],
            "settings": [difference.row for difference in self.settings],
            "machine": [difference.row for difference in self.machine],
            "figures": [{**figure.row, "is_same": figure.is_same(tolerance_percent)} for figure in self.figures],
        }


def compare(before: ResultRecord, after: ResultRecord) -> Comparison:
    """All that differs between two results."""
    return Comparison(
        name=before.name,
        inputs=tuple(_input_differences(before, after)),
        settings=tuple(_settings(before.settings, after.settings)),
        machine=tuple(_mapping("machine", before.machine, after.machine)),
        figures=tuple(_figures(before, after)),
    )


def _input_differences(before: ResultRecord, after: ResultRecord) -> Iterator[Difference]:
    yield from _mapping("request", _flat(before.inputs_again), _flat(after.inputs_again))
    yield from _mapping("attachment", before.attachments, after.attachments)
    for key in sorted(before.lock.recipes.keys() | after.lock.recipes.keys()):
        digests = (before.lock.recipes.get(key), after.lock.recipes.get(key))
        if digests[0] != digests[1]:
            files = (before.recipe_files.get(key, {}), after.recipe_files.get(key, {}))
            yield from recipe_differences(key, digests, files)
    yield from _artifacts(before.lock.artifacts, after.lock.artifacts)
    for group in sorted(before.inputs.keys() | after.inputs.keys()):
        yield from _mapping(group, before.inputs.get(group, {}), after.inputs.get(group, {}))


def recipe_differences(
    recipe: str, digests: tuple[str | None, str | None], files: tuple[Mapping[str, str], Mapping[str, str]]
) -> Iterator[Difference]:
    """A row for each file of a recipe that is not the same; for the recipe itself where only one side has it."""
    alias = recipe.partition(",")[0]
    if None in digests:
        yield Difference("recipe", alias, digests[0], digests[1], "only one of them used it")
        return
    changed = sorted(name for name in files[0].keys() | files[1].keys() if files[0].get(name) != files[1].get(name))
    for name in changed:
        pair = (files[0].get(name), files[1].get(name))
        note = "a new file" if pair[0] is None else "the file is gone" if pair[1] is None else "the file was changed"
        yield Difference("recipe", f"{alias}/{name}", *pair, note=note)
    if not changed:
        yield Difference("recipe", alias, *digests)


def _artifacts(before: Sequence[LockedArtifact], after: Sequence[LockedArtifact]) -> Iterator[Difference]:
    """What recipes made, artifact by artifact; several of one kind are taken in order."""
    first, second = _by_artifact(before), _by_artifact(after)
    for artifact in sorted(first.keys() | second.keys()):
        pair = (first.get(artifact, []), second.get(artifact, []))
        label = (pair[0] or pair[1])[0].label
        if not (pair[0] and pair[1]):
            shown = ["used" if side else None for side in pair]
            yield Difference("made", label, shown[0], shown[1], "only one of them used it")
            continue
        for one, other in zip(pair[0], pair[1]):  # noqa: B905 - more of one kind are the same artifact at another place
            yield from artifact_differences(one, other)


def _by_artifact(artifacts: Sequence[LockedArtifact]) -> dict[Artifact, list[LockedArtifact]]:
    found: dict[Artifact, list[LockedArtifact]] = {}
    for artifact in artifacts:
        found.setdefault(artifact.artifact, []).append(artifact)
    return {key: sorted(same, key=lambda one: (one.version, sorted(one.files))) for key, same in found.items()}


def artifact_differences(before: LockedArtifact, after: LockedArtifact) -> Iterator[Difference]:
    """What differs of one artifact that both have: version, files, facts such as packages."""
    if before.version != after.version:
        yield Difference("made", f"{before.label} version", before.version or None, after.version or None)
    for path in sorted(before.files.keys() | after.files.keys()):
        digests = [side.files[path].sha256 if path in side.files else None for side in (before, after)]
        if digests[0] != digests[1]:
            yield Difference("made", f"{before.label} {path}", digests[0], digests[1])
    for kind in sorted(before.facts.keys() | after.facts.keys()):
        facts = tuple(_named(kind, side.facts.get(kind)) for side in (before, after))
        for name in sorted(facts[0].keys() | facts[1].keys()):
            pair = (facts[0].get(name), facts[1].get(name))
            if pair[0] != pair[1]:
                yield Difference("made", f"{before.label} {name}", *pair)


def _named(kind: str, fact: Any) -> dict[str, Any]:
    if isinstance(fact, Mapping):
        return {f"{kind}.{name}": value for name, value in fact.items()}
    return {} if fact is None else {kind: fact}


def _mapping(group: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Difference(group, name, before.get(name), after.get(name))


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + str(name)] = value
    return found


def _settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Settings whose value differs; a note says where each came from. Another origin alone is no difference."""
    for name in sorted(before.keys() | after.keys()):
        values = [_setting(side.get(name)) for side in (before, after)]
        if values[0][0] != values[1][0]:
            note = f"from {values[0][1] or 'nowhere'} and from {values[1][1] or 'nowhere'}"
            yield Difference("setting", name, values[0][0], values[1][0], note=note)


def _setting(value: Any) -> tuple[Any, str]:
    if isinstance(value, Mapping) and "value" in value:
        return value["value"], str(value.get("origin", ""))
    return value, ""


def _figures(before: ResultRecord, after: ResultRecord) -> Iterator[Figure]:
    for name in sorted(before.exact.keys() | after.exact.keys()):
        yield Figure(name, "exact", before.exact.get(name), after.exact.get(name))
    for name in sorted(before.within.keys() | after.within.keys()):
        one, other = before.within.get(name), after.within.get(name)
        unit = (one or other).unit  # type: ignore[union-attr]
        yield Figure(name, "within", one.value if one else None, other.value if other else None, unit)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
