"""The settings: what each is called, where it applies, and what becomes of it. `fields.yaml` is the table of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from crowdperf.call.values import truth_of
from crowdperf.kit.whole_file import read_yaml
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import Scenario, unknown_text

Scalar = int | float | str | bool
CPU = "cpu"
"""The system of a machine without accelerator, and its kind."""
NEURON = "neuron"
"""The kind of a machine with AWS Neuron devices, and the backend that runs there."""
_ALL = tuple(scenario.value for scenario in Scenario)
_TOO_MUCH = 10**15
"""Above every rate, size in bytes and latency in ns that a system can have."""
_TEXT = re.compile(r"[A-Za-z0-9,._+() -]+")
_NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)


class BadSetting(ValueError):
    """A value that a field cannot have, or a field that is not there; the text says what is allowed."""


@dataclass(frozen=True, slots=True)
class Value:
    """One setting. origin: "registry/resnet50/Server.yaml:12", "scaled 4/8 from A100-SXM4x8", "measured 2026-11-23",
    "you"."""

    value: Scalar
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting, as `fields.yaml` describes it. input: the input of run-mlperf-inference that it becomes, "" for one
    without effect."""

    name: str
    kind: Literal["whole number", "number", "yes or no", "text"]
    unit: str = ""
    choices: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = _ALL
    required: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("nvidia", "jetson")
    input: str = ""
    input_scenarios: tuple[str, ...] = _ALL
    backends: tuple[str, ...] = ()
    why: str = ""
    spellings: tuple[str, ...] = ()
    is_rate: bool = False
    is_refused: bool = False

    @property
    def is_target(self) -> bool:
        """Whether it says how fast a system is, and so holds for its accelerators only."""
        return self.is_rate or self.unit == "ns"

    def parse(self, text: str) -> Scalar:
        """Return the value that a text stands for, of a file or of a user. Raises BadSetting with what is allowed."""
        word = text.strip()
        value: Scalar | None = None
        if self.kind == "text":
            is_fit = word in self.choices if self.choices else _TEXT.fullmatch(word) is not None
            value = word if is_fit else None
        elif self.kind == "yes or no":
            value = None if word.isdigit() else truth_of(word)  # 1 and 0 are numbers here
        elif _NUMBER.fullmatch(word):
            number = int(word) if word.isdigit() else float(word)
            is_fit = number > 0 if self.kind == "number" else isinstance(number, int) and number >= bool(self.input)
            value = number if is_fit and number < _TOO_MUCH else None
        if value is None:
            raise BadSetting(f"{self.name}: found {text!r}; allowed: {self.allowed}")
        return value

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return ", ".join(self.choices)
        least = " above 0" if self.kind == "number" else " from 1" if self.input else " from 0"
        words = {"yes or no": "yes, no", "text": "letters, digits and , . _ + - ( ) without line ends"}
        return words.get(self.kind, f"a {self.kind}{least}{f' ({self.unit})' if self.unit else ''}")

    def misfit(self, scenario: Scenario, kind: str) -> str:
        """Return why an entry cannot have it; empty where it can. kind: of accelerator, "" for one not known."""
        if scenario.value not in self.scenarios:
            return f"{self.name}: {scenario.value} has no such field, only {', '.join(self.scenarios)} has"
        if kind and kind not in self.kinds:
            return f"{self.name}: {self.why if self.is_refused else 'only a system with an accelerator has it'}"
        return ""

    def idle(self, benchmark: str, scenario: Scenario, backend: str) -> str:
        """Return why it has no effect on a run of a benchmark; empty where it becomes an input."""
        if self.name == "gpu_batch_size" and record_of(benchmark).has_rows:
            return "counts pairs of user and item, while the harness counts samples"
        is_for_backend = not self.backends or backend in self.backends
        is_input = self.input and is_for_backend and scenario.value in self.input_scenarios
        return "" if is_input else self.why.format(scenario=scenario.value, backend=backend)


def _read_table() -> Mapping[str, Field]:
    rows: Mapping[str, Any] = read_yaml(Path(__file__).resolve().with_name("fields.yaml"))
    found = {}
    for name, row in rows.items():
        columns: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
        found[name] = Field(name=name, **columns)
    return MappingProxyType(found)


FIELDS = _read_table()
"""Every setting by its current name."""
_BY_SPELLING = {spelling: row for row in FIELDS.values() for spelling in (row.name, *row.spellings)}


def field_named(name: str) -> Field:
    """Return the setting of a name in any spelling. Raises BadSetting with the nearest name."""
    if name not in _BY_SPELLING:
        raise BadSetting(unknown_text("field", name, tuple(FIELDS)).partition("; known:")[0])
    return _BY_SPELLING[name]


def read_values(
    given: Mapping[str, tuple[str, str]], fits: Callable[[Field], str]
) -> tuple[dict[str, Value], dict[str, str]]:
    """Return the values of these texts with their origins by field name, and what is wrong by the name that was given.

    fits: says why a field cannot be there, "" where it can.
    """
    found: dict[str, Value] = {}
    problems: dict[str, str] = {}
    for name, (text, origin) in given.items():
        try:
            field = field_named(name)
            problem = f"{field.name}: repeated" if field.name in found else fits(field)
            if problem:
                raise BadSetting(problem)
            found[field.name] = Value(field.parse(text), origin)
        except BadSetting as error:
            problems[name] = str(error)
    return found, problems


def user_values(given: Mapping[str, str], scenario: Scenario, kind: str) -> dict[str, Value]:
    """Return what the user gives, by field name. Raises BadSetting with every problem."""

    def fits(field: Field) -> str:
        return f"{field.name}: {field.why}" if field.is_refused else field.misfit(scenario, kind)

    found, problems = read_values({name: (text, "you") for name, text in given.items()}, fits)
    if problems:
        raise BadSetting("; ".join(problems.values()))
    return found


def required(scenario: Scenario, kind: str) -> tuple[str, ...]:
    """Return what an entry must have; without an accelerator the harness finds everything but `precision`."""
    rows = (row for row in FIELDS.values() if scenario.value in row.required and kind in row.kinds)
    return ("precision",) if kind == CPU else tuple(row.name for row in rows)
