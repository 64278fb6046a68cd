"""A sweep's file, read and checked whole: YAML or JSON to a `Definition`, with the line of every value.

    format: 1
    name: resnet-batch-{device}
    recipe: run,mlperf,inference          # the default; any recipe with inputs
    base: {model: resnet50, scenario: Offline}
    sweep: {batch_size: [1, 4, 16]}       # product
    zip: {instances: [1, 2], threads: [2, 1]}      # in lock-step: one more axis of the product
    exclude: [{batch_size: 16}]           # all keys equal: left out; a list is any of
    n_repeats: 3
    override_quiet: {adr.python.name: mlperf-cpu}  # a variant: merged over base
    zip_override_size: {model: [resnet50, bert-99], performance_sample_count: [1024, 256]}
    executor: {kind: slurm, partition: bench}
    point_seconds: 120                    # what one point is expected to take
    tags: [nightly]

Mappings are flattened to dotted keys, so a merge of two layers is one of flat mappings. Nothing is evaluated: no
expressions, no variables of the environment. The words `base`, `override_*`, `zip_override_*` and `sweep` are those of
NVIDIA/srt-slurm (commit c88ef731), `zip`, `exclude` and `n_repeats` those of Ramble (commit e2d88e88).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from crowdperf.kit.text_documents import json_for_yaml

FORMAT = 1
DEFAULT_RECIPE = "run,mlperf,inference"
LARGEST_BYTES = 1 << 20
MAX_NODES = 200_000
"""Values of a file, aliases counted as often as they are used: what a file of the largest size can hold."""
KEYS = ("format", "name", "recipe", "base", "sweep", "zip", "exclude", "n_repeats", "executor", "point_seconds", "tags")
VARIANT, ZIP_VARIANT = "override_", "zip_override_"
TAGS = "tags"
"""The key of a variant that is no input: words to choose it by."""

Scalar = str | int | float | bool | None
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, and at which line; 0 where it is wrong with the call."""

    line: int
    text: str


class SweepError(Exception):
    """A sweep that cannot be made; `problems` has all that is wrong."""

    def __init__(self, problems: Sequence[Problem], name: str = "") -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: (problem.line, problem.text)))
        self.name = name
        super().__init__("\n".join(self._text(problem) for problem in self.problems))

    def _text(self, problem: Problem) -> str:
        return f"{self.name}:{problem.line}: {problem.text}" if problem.line else problem.text


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of the file and its line. A tuple is a list of scalars, which an input gets joined by commas."""

    value: Value
    line: int


Layer = Mapping[str, Cell]
"""Values by their dotted keys, in the order of the file."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One override_NAME, or one element of zip_override_NAME, as `NAME[0]`."""

    name: str
    cells: Layer
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A whole file. sweep, zip: the values of each axis. exclude: the values of each key, any of which fits.

    problems: what is wrong with it; `expand` adds what it finds and raises them all.
    """

    source: str
    name: Cell
    recipe: str
    base: Layer
    variants: tuple[Variant, ...] = ()
    sweep: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    zip: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    exclude: tuple[Mapping[str, tuple[Cell, ...]], ...] = ()
    n_repeats: int = 1
    executor: Layer = field(default_factory=dict)
    point_seconds: float | None = None
    tags: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_definition(text: str, source: str) -> Definition:
    """The definition in the text of a file called ``source``. Raises SweepError where nothing can be read."""
    try:
        root = yaml.compose(json_for_yaml(text), Loader=yaml.SafeLoader)
        is_huge = root is not None and _is_huge(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "cannot be read as YAML"
        raise SweepError([Problem(mark.line + 1 if mark else 1, str(why))], source) from None
    except RecursionError:
        raise SweepError([Problem(1, "is nested too deeply")], source) from None
    if is_huge:
        raise SweepError(
            [Problem(1, f"has more than {MAX_NODES:,} values (an alias counts as the values it refers to)")], source
        )
    reader = _Reader()
    made = reader.definition(root, source)
    if made is None:
        raise SweepError(reader.problems, source)
    return replace(made, problems=tuple(reader.problems))


def _is_huge(root: yaml.Node) -> bool:
    """Whether there are more values than a file may have, or a node holds itself."""
    waiting, count = [root], 0
    while waiting and count <= MAX_NODES:
        node = waiting.pop()
        count += 1
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            waiting += child if isinstance(child, tuple) else (child,)
    return bool(waiting)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Reader:
    """Reads nodes; collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._scalars = yaml.constructor.SafeConstructor()

    def wrong(self, node: yaml.Node, text: str) -> None:
        """Notes a problem."""
        self.problems.append(Problem(_line(node), text))

    def items(self, node: yaml.Node | None, what: str) -> Iterator[tuple[str, yaml.Node]]:
        """The keys and nodes of a mapping; a problem for what is none, and for each key that is there twice."""
        if node is None or self.is_null(node):
            return
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{what} must be a mapping of names to values")
            return
        seen: dict[str, int] = {}
        for key_node, value in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            if not key:
                self.wrong(key_node, f"{what}: a key must be a name")
            elif key in seen:
                self.wrong(key_node, f"{what}: {key} is there twice, first in line {seen[key]}")
            else:
                seen[key] = _line(key_node)
                yield key, value

    @staticmethod
    def is_null(node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"

    def scalar(self, node: yaml.Node, what: str) -> Scalar:
        """A text, number, yes/no or null; a date stays the text that it was."""
        if not isinstance(node, yaml.ScalarNode):
            self.wrong(node, f"{what} must be a single value, found a {_kind(node)}")
            return None
        try:
            value = self._scalars.construct_object(node)
        except (ValueError, yaml.YAMLError):
            return str(node.value)
        return value if isinstance(value, str | int | float | bool) or value is None else str(node.value)

    def placeholder(self, node: yaml.Node) -> str:
        """`{x}` of an unquoted { x }, which YAML reads as a mapping of x to null; empty for anything else."""
        if isinstance(node, yaml.MappingNode) and node.flow_style and len(node.value) == 1:
            key, value = node.value[0]
            if isinstance(key, yaml.ScalarNode) and self.is_null(value) and not value.value:
                return "{" + str(key.value) + "}"
        return ""

    def cell(self, node: yaml.Node, what: str) -> Cell:
        """A value of an input: a scalar, or a list of them."""
        if isinstance(node, yaml.SequenceNode):
            return Cell(tuple(self.scalar(part, what) for part in node.value), _line(node))
        return Cell(self.placeholder(node) or self.scalar(node, what), _line(node))

    def flat(self, node: yaml.Node | None, what: str) -> Iterator[tuple[str, yaml.Node]]:
        """The values in a mapping, however deep, by dotted keys."""
        for key, value in self.items(node, what):
            if isinstance(value, yaml.MappingNode) and not self.placeholder(value):
                yield from ((f"{key}.{below}", inner) for below, inner in self.flat(value, f"{what}.{key}"))
            else:
                yield key, value

    def layer(self, node: yaml.Node | None, what: str) -> dict[str, Cell]:
        """A mapping of inputs."""
        return {key: self.cell(value, f"{what}.{key}") for key, value in self.flat(node, what)}

    def axis(self, node: yaml.Node, what: str) -> tuple[Cell, ...]:
        """The values of an axis."""
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.wrong(node, f"{what} must be a list of values, such as [1, 2]")
            return ()
        return tuple(self.cell(part, what) for part in node.value)

    def axes(self, node: yaml.Node | None, what: str) -> dict[str, tuple[Cell, ...]]:
        """The axes of `sweep` or `zip`."""
        return {key: self.axis(value, f"{what}.{key}") for key, value in self.flat(node, what)}

    def lock_step(self, node: yaml.Node, axes: Mapping[str, tuple[Cell, ...]], what: str) -> int:
        """The one length of axes that go together."""
        lengths = {key: len(cells) for key, cells in axes.items() if cells}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            self.wrong(node, f"{what}: all lists must have the same length: {listed}")
        return max(lengths.values(), default=0)

    def words(self, node: yaml.Node | None, what: str) -> tuple[str, ...]:
        """One word, or a list of them."""
        if node is None:
            return ()
        value = self.cell(node, what).value
        return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)

    def variants(self, key: str, node: yaml.Node) -> Iterator[Variant]:
        """The variants of one override_* or zip_override_*."""
        own = next((value for name, value in self.items(node, key) if name == TAGS), None)
        tags = self.words(own, f"{key}.{TAGS}")
        axes = self.spread(node, key)
        axes.pop(TAGS, None)
        if not key.startswith(ZIP_VARIANT):
            cells = self.layer(node, key)
            cells.pop(TAGS, None)
            yield Variant(key, cells, tags)
            return
        several = {name: cells for name, cells in axes.items() if len(cells) != 1}
        length = self.lock_step(node, several, key) or 1
        for place in range(min((length, *map(len, several.values())))):
            chosen = {name: cells[place if name in several else 0] for name, cells in axes.items()}
            yield Variant(f"{key}[{place}]", chosen, tags)

    def spread(self, node: yaml.Node, what: str) -> dict[str, tuple[Cell, ...]]:
        """The axes of a zip_override: a list is one, anything else stands for a list of one."""
        return {
            key: self.axis(value, f"{what}.{key}")
            if isinstance(value, yaml.SequenceNode)
            else (self.cell(value, f"{what}.{key}"),)
            for key, value in self.flat(node, what)
        }

    def number(self, node: yaml.Node | None, what: str, otherwise: int) -> int:
        """A whole number from 1."""
        value = otherwise if node is None else self.scalar(node, what)
        if node is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            self.wrong(node, f"{what} must be a whole number >= 1, found {value!r}")
            return otherwise
        return int(value) if isinstance(value, int) else otherwise

    def seconds(self, node: yaml.Node | None) -> float | None:
        """A number of seconds above 0."""
        value = None if node is None else self.scalar(node, "point_seconds")
        if node is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9):
            return None if value is None else float(value)
        self.wrong(node, f"point_seconds must be a number of seconds > 0, found {value!r}")
        return None

    def excluded(self, node: yaml.Node | None) -> Iterator[dict[str, tuple[Cell, ...]]]:
        """Each mapping of `exclude`; a list is any of its values."""
        if node is None or self.is_null(node):
            return
        if not isinstance(node, yaml.SequenceNode):
            self.wrong(node, "exclude must be a list of mappings, such as [{batch_size: 16}]")
            return
        for part in node.value:
            spread = self.spread(part, "exclude")
            if not spread:
                self.wrong(part, "exclude: an empty mapping would leave out everything")
            yield spread

    def definition(self, root: yaml.Node | None, source: str) -> Definition | None:
        """The whole file; None where not even its keys can be read."""
        if not isinstance(root, yaml.MappingNode):
            self.problems.append(Problem(1, "a sweep is a mapping with format, name and sweep"))
            return None
        parts = dict(self.items(root, "the file"))
        for key, node in parts.items():
            if key not in KEYS and not key.startswith((VARIANT, ZIP_VARIANT)):
                self.wrong(node, f"unknown key {key}; known: {', '.join(KEYS)}, {VARIANT}NAME, {ZIP_VARIANT}NAME")
        for key in ("format", "name"):
            if key not in parts:
                self.problems.append(Problem(1, f"{key} is missing"))
        if "format" in parts and self.scalar(parts["format"], "format") != FORMAT:
            self.wrong(parts["format"], f"format must be {FORMAT}, found {getattr(parts['format'], 'value', '')!r}")
        zipped = self.axes(parts.get("zip"), "zip")
        if "zip" in parts:
            self.lock_step(parts["zip"], zipped, "zip")
        name = self.cell(parts["name"], "name") if "name" in parts else Cell("", 1)
        recipe = ",".join(self.words(parts.get("recipe"), "recipe")) or DEFAULT_RECIPE
        variants = (self.variants(key, node) for key, node in parts.items() if key.startswith((VARIANT, ZIP_VARIANT)))
        return Definition(
            source=source,
            name=Cell(str(name.value), name.line),
            recipe=recipe,
            base=self.layer(parts.get("base"), "base"),
            variants=tuple(variant for several in variants for variant in several),
            sweep=self.axes(parts.get("sweep"), "sweep"),
            zip=zipped,
            exclude=tuple(self.excluded(parts.get("exclude"))),
            n_repeats=self.number(parts.get("n_repeats"), "n_repeats", 1),
            executor=self.layer(parts.get("executor"), "executor"),
            point_seconds=self.seconds(parts.get("point_seconds")),
            tags=self.words(parts.get("tags"), "tags"),
        )


def _kind(node: yaml.Node) -> str:
    return "list" if isinstance(node, yaml.SequenceNode) else "mapping"
