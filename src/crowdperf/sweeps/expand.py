"""From a definition to its points: variants x sweep x zip, minus exclude, x repeats; every problem at once. Pure.

Layers of a point, later ones over earlier ones: base, the variant, the axes. A value that is null deletes a key and all
below it. `{x}` is the value of key x of the same point; a string that is only `{x}` takes the value as it is (a list, a
null); `{{` and `}}` are braces. A key that the recipe has no input for is a variable, which some `{x}` must use.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from crowdperf.call.values import input_text
from crowdperf.sweeps.choice import Choice, chosen_variants, fits
from crowdperf.sweeps.definition import Cell, Definition, Layer, Problem, Scalar, SweepError, Value, Variant
from crowdperf.sweeps.ids import point_id

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
OWN_INPUTS = ("results_dir", "run_id", "resume", "rerun", "check")
"""Inputs that the sweep sets itself, so that a point writes into its folder and can be given again."""
FOLDER_NAME = re.compile(r"[^\W_][\w .+'@=,-]{0,79}")
SIZE_FACTOR = 100
"""How many times more combinations than points are gone through, to see which of them `exclude` leaves."""
MAX_DEPTH, MAX_ITEMS, LONGEST_TEXT, LONGEST_POINT = 64, 1000, 64 << 10, 256 << 10
"""What placeholders may make: depth of values in each other, items of a list, characters of a value and of a point."""
MAX_ALIKE = 10
"""How many problems of one kind are listed."""


class InputRules(Protocol):
    """What the recipe of a sweep takes."""

    def is_input(self, name: str) -> bool:
        """Whether the recipe, or the engine for every recipe, has this input (adr.python.name: adr)."""

    def problem(self, name: str, value: str) -> str:
        """Why the value is none of the input's; empty where it is one."""

    def meant(self, name: str) -> str:
        """The input that was probably meant by a name that is none; empty when none is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One call of the recipe. inputs: its resolved inputs. varied: the keys of the variant and the axes with values.

    variant: the name of the variant, `base` without one. axes: the part of `varied` that axes set. repeat: from 1.
    """

    id: str
    variant: str
    inputs: Mapping[str, str]
    varied: Mapping[str, str]
    axes: Mapping[str, str]
    repeat: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A definition's name and points, in the order of the file."""

    name: str
    points: tuple[Point, ...]


def merged(below: Layer, above: Layer) -> dict[str, Cell]:
    """Two layers as one. A mapping merges; a value takes the place of one, or of a whole mapping."""
    found = dict(below)
    for key, cell in above.items():
        for other in [name for name in found if name.startswith(f"{key}.") or key.startswith(f"{name}.")]:
            del found[other]
        found[key] = cell
    return found


class _TooLarge(Exception):
    """Placeholders make more than a point may hold."""


class _Resolver:
    """The values of one combination without placeholders, each made once; notes what was used and what is wrong."""

    def __init__(self, cells: Layer, problems: set[Problem], used: set[str]) -> None:
        self._cells, self._problems, self._used = cells, problems, used
        self._made: dict[str, Value] = {}
        self._size = 0

    def value(self, key: str, above: tuple[str, ...] = ()) -> Value:
        if key in self._made:
            return self._made[key]
        cell = self._cells[key]
        if len(above) >= MAX_DEPTH:
            self._stop(cell, f"{key}: placeholders are nested more than {MAX_DEPTH} deep")
        if isinstance(cell.value, tuple):
            found = self._list(cell, (*above, key))
        else:
            found = self._of(cell.value, cell, (*above, key))
        self._size += len(input_text(found))
        if self._size > LONGEST_POINT:
            self._stop(cell, f"{key}: the values of a point have more than {LONGEST_POINT:,} characters")
        self._made[key] = found
        return found

    def _stop(self, cell: Cell, why: str) -> NoReturn:
        self._problems.add(Problem(cell.line, why))
        raise _TooLarge

    def _list(self, cell: Cell, above: tuple[str, ...]) -> Value:
        items, size = list[Scalar](), 0
        for part in cell.value if isinstance(cell.value, tuple) else ():
            made = self._of(part, cell, above)
            items += made if isinstance(made, tuple) else (made,)
            size += len(input_text(made))
            if len(items) > MAX_ITEMS:
                self._stop(cell, f"{above[-1]}: a list of more than {MAX_ITEMS:,} items")
            if size > LONGEST_TEXT:
                self._stop(cell, f"{above[-1]}: a value of more than {LONGEST_TEXT:,} characters")
        return tuple(items)

    def _of(self, value: Scalar, cell: Cell, above: tuple[str, ...]) -> Value:
        if not isinstance(value, str) or ("{" not in value and "}" not in value):
            return value
        whole = PLACEHOLDER.fullmatch(value)
        if whole is not None and whole[1] is not None:
            return self._named(whole[1].strip(), cell, above)
        parts, size, end = list[str](), 0, 0
        for found in PLACEHOLDER.finditer(value):
            parts += (value[end : found.start()], self._replaced(found, cell, above))
            end, size = found.end(), size + len(parts[-1]) + len(parts[-2])
            if size > LONGEST_TEXT:
                self._stop(cell, f"{above[-1] if above else 'name'}: a value of more than {LONGEST_TEXT:,} characters")
        return "".join((*parts, value[end:]))

    def _replaced(self, found: re.Match[str], cell: Cell, above: tuple[str, ...]) -> str:
        return found[0][0] if found[1] is None else input_text(self._named(found[1].strip(), cell, above))

    def _named(self, name: str, cell: Cell, above: tuple[str, ...]) -> Value:
        if name not in self._cells:
            known = ", ".join(self._cells)
            self._problems.add(
                Problem(cell.line, f"unknown placeholder {{{name}}} (known: {known}). Write {{{{ for a brace")
            )
            return ""
        if name in above:
            self._problems.add(Problem(cell.line, f"{{{name}}} refers to itself: {' -> '.join((*above, name))}"))
            return ""
        self._used.add(name)
        return self.value(name, above)

    def text(self, cell: Cell) -> str:
        """A text outside the values, the sweep's name."""
        return input_text(self._of(cell.value if not isinstance(cell.value, tuple) else "", cell, ()))


@dataclass(slots=True)
class _Work:
    """What is collected while combinations are gone through."""

    definition: Definition
    rules: InputRules
    problems: set[Problem]
    used: set[str]
    checked: dict[tuple[str, str], str]
    names: dict[str, int]

    def check_inputs(self, cells: Layer, inputs: Mapping[str, str]) -> None:
        for key, value in inputs.items():
            if (key, value) not in self.checked:
                own = f"{key} is set by the sweep itself" if key in OWN_INPUTS else ""
                self.checked[key, value] = own or self.rules.problem(key, value)
            if why := self.checked[key, value]:
                self.problems.add(Problem(cells[key].line, why))


def _axis_combinations(definition: Definition) -> Iterator[dict[str, Cell]]:
    """The product of the sweep's axes, the last one fastest, with the zip as one more axis."""
    axes = [[(key, cell) for cell in cells] for key, cells in definition.sweep.items()]
    length = min(map(len, definition.zip.values()), default=0)
    together = [{key: cells[place] for key, cells in definition.zip.items()} for place in range(length)]
    for combination in itertools.product(*axes):
        for zipped in together or [{}]:
            yield {**dict(combination), **zipped}


def _clashes(definition: Definition) -> Iterator[Problem]:
    """A problem for each key that two of variant, sweep and zip set."""
    layers: list[tuple[str, Mapping[str, Cell]]] = [
        (word, {key: cells[0] for key, cells in axes.items() if cells})
        for word, axes in (("sweep", definition.sweep), ("zip", definition.zip))
    ]
    pairs = [(layers[0], layers[1])]
    pairs += [((variant.name, variant.cells), layer) for variant in definition.variants for layer in layers]
    for (one, ours), (other, theirs) in pairs:
        for key in ours:
            for clash in theirs:
                if key == clash or key.startswith(f"{clash}.") or clash.startswith(f"{key}."):
                    yield Problem(ours[key].line, f"{key} is set by {one} and by {other} (line {theirs[clash].line})")


def _repeated(definition: Definition) -> Iterator[Problem]:
    """A problem for each value that an axis has twice; n_repeats is what runs a point again."""
    for key, cells in definition.sweep.items():
        seen: dict[str, int] = {}
        for cell in cells:
            value = input_text(cell.value)
            if value in seen:
                yield Problem(cell.line, f"sweep.{key}: {value} is listed twice (line {seen[value]}), see n_repeats")
            seen.setdefault(value, cell.line)


def _unused(work: _Work) -> Iterator[Problem]:
    """A problem for each key that is neither an input nor used by a placeholder."""
    definition = work.definition
    layers: list[Layer] = [definition.base, *(variant.cells for variant in definition.variants)]
    layers += [{key: cells[0] for key, cells in axes.items() if cells} for axes in (definition.sweep, definition.zip)]
    for layer in layers:
        for key, cell in layer.items():
            if key not in work.used and not work.rules.is_input(key):
                meant = work.rules.meant(key)
                hint = f", did you mean {meant}?" if meant else ""
                yield Problem(
                    cell.line, f"{key} is not an input of {definition.recipe}, and no {{{key}}} uses it{hint}"
                )


def _unknown_exclusions(definition: Definition) -> Iterator[Problem]:
    known = {*definition.base, *definition.sweep, *definition.zip}
    known.update(key for variant in definition.variants for key in variant.cells)
    for rule in definition.exclude:
        for key, cells in rule.items():
            if key not in known:
                yield Problem(
                    cells[0].line, f"exclude: {key} is not a key of this file; known: {', '.join(sorted(known))}"
                )


def _is_excluded(rule: Mapping[str, tuple[Cell, ...]], texts: Mapping[str, str]) -> bool:
    return all(
        key in texts and texts[key] in map(input_text, (cell.value for cell in cells)) for key, cells in rule.items()
    )


def expand(definition: Definition, rules: InputRules, choice: Choice, max_points: int) -> Expansion:
    """The points of a definition that `choice` leaves. Raises SweepError with every problem."""
    work = _Work(definition, rules, {*definition.problems}, set(), {}, {})
    repeated = list(_repeated(definition))
    work.problems.update(_clashes(definition), _unknown_exclusions(definition), repeated)
    variants = chosen_variants(definition, choice)
    axes = [len(cells) for cells in definition.sweep.values()]
    combinations = len(variants) * math.prod(axes) * max(1, *map(len, definition.zip.values()), 1)
    if combinations > SIZE_FACTOR * max_points or definition.n_repeats > max_points:
        work.problems.add(Problem(1, _too_many(combinations * definition.n_repeats, max_points)))
        raise SweepError(list(work.problems), definition.source)
    points, count = _points_of(work, variants, choice, max_points, bool(repeated))
    work.problems.update(_unused(work))
    if count > max_points:
        work.problems.add(Problem(1, _too_many(count, max_points)))
    work.problems.update(_name_problems(work))
    if not work.problems and not points:
        work.problems.add(Problem(0, choice.nothing_left(definition)))
    if work.problems:
        raise SweepError(list(work.problems), definition.source)
    return Expansion(next(iter(work.names)), tuple(points))


def _points_of(
    work: _Work, variants: Sequence[Variant], choice: Choice, max_points: int, has_repeated: bool
) -> tuple[list[Point], int]:
    """The points, and how many there are; once these are too many, they are counted only. Raises SweepError."""
    points, count, alike = list[Point](), 0, 0
    lines: dict[str, int] = {}
    for variant in variants:
        for combination in _axis_combinations(work.definition):
            try:
                found = _combination(work, variant, combination, choice, 1 if count > max_points else None)
            except _TooLarge:
                raise SweepError(list(work.problems), work.definition.source) from None
            count += work.definition.n_repeats if found is not None else 0
            for point in found or () if count <= max_points else ():
                line = max((cell.line for cell in combination.values()), default=work.definition.name.line)
                if point.id in lines and alike < MAX_ALIKE and not has_repeated:
                    alike += 1
                    same = f"the same inputs as a point of line {lines[point.id]}: {_listed(point.varied)}"
                    work.problems.add(Problem(line, same))
                lines.setdefault(point.id, line)
                points.append(point)
    return points, count


def _too_many(count: int, max_points: int) -> str:
    return f"makes {count:,} points, but at most {max_points:,} are allowed (--max_points)"


def _listed(varied: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in varied.items()) or "no values"


def _name_problems(work: _Work) -> Iterator[Problem]:
    line = work.definition.name.line
    if len(work.names) > 1:
        yield Problem(line, f"name must be the same for all points, found {', '.join(sorted(work.names)[:MAX_ALIKE])}")
    for name in work.names:
        if not FOLDER_NAME.fullmatch(name):
            allowed = "letters, digits, blanks and . _ + ' @ = , - (80 at most), beginning with a letter or digit"
            yield Problem(line, f"name must be the name of a folder, found {name!r}; allowed: {allowed}")


def _combination(
    work: _Work, variant: Variant, combination: Layer, choice: Choice, most_repeats: int | None = None
) -> Sequence[Point] | None:
    """The point of one combination with its repeats, at most `most_repeats`; None where it is left out."""
    definition = work.definition
    own = merged(variant.cells, combination)
    cells = merged(definition.base, own)
    resolver = _Resolver(cells, work.problems, work.used)
    values = {key: resolver.value(key) for key in cells}
    texts = {key: input_text(value) for key, value in values.items() if value is not None}
    tags = (*definition.tags, *variant.tags)
    if any(_is_excluded(rule, texts) for rule in definition.exclude) or not fits(choice, texts, tags):
        return None
    inputs = {key: text for key, text in texts.items() if work.rules.is_input(key)}
    work.check_inputs(cells, inputs)
    work.names.setdefault(resolver.text(definition.name), 1)
    varied = {key: texts[key] for key in own if key in texts}
    return [
        Point(
            id=point_id(definition.recipe, inputs, list(varied.values()), repeat),
            variant=variant.name,
            inputs=inputs,
            varied=varied,
            axes={key: texts[key] for key in combination if key in texts},
            repeat=repeat,
            tags=tags,
        )
        for repeat in range(1, (most_repeats or definition.n_repeats) + 1)
    ]
