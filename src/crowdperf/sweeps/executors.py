"""Makes the executor that a sweep asks for, from settings that are texts: those of its file, and inputs over them."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from crowdperf.call.values import input_text, truth_of
from crowdperf.kit.user_paths import expanded
from crowdperf.rules.names import printable
from crowdperf.sweeps import local, sbatch
from crowdperf.sweeps.definition import Definition, Problem
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.local import LocalExecutor, LocalOptions
from crowdperf.sweeps.sbatch import SlurmOptions
from crowdperf.sweeps.slurm import SlurmExecutor

LOCAL, SLURM = "local", "slurm"
KIND = "kind"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of executor: its options (a dataclass), what makes it from them, and what is wrong with their values."""

    options: type[Any]
    make: Callable[[Any, Say], Executor]
    wrong: Callable[[Any], Sequence[str]]


KINDS: Mapping[str, Kind] = {
    LOCAL: Kind(LocalOptions, LocalExecutor, local.wrong_options),
    SLURM: Kind(SlurmOptions, SlurmExecutor, sbatch.wrong_options),
}


def setting_names() -> frozenset[str]:
    """The settings that some kind has."""
    return frozenset({KIND, *(each.name for kind in KINDS.values() for each in fields(kind.options))})


def settings_of(definition: Definition, given: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The settings of the file with those of the call over them, and what is wrong with the names."""
    problems, known = [], setting_names()
    for name, cell in definition.executor.items():
        if name not in known:
            problems.append(Problem(cell.line, f"executor: unknown setting {name}; known: {', '.join(sorted(known))}"))
    of_file = {
        name: " ".join(map(input_text, cell.value)) if isinstance(cell.value, tuple) else input_text(cell.value)
        for name, cell in definition.executor.items()
    }
    settings = {KIND: LOCAL, **of_file, **{name: text for name, text in given.items() if text}}
    if settings[KIND] not in KINDS:
        line = definition.executor[KIND].line if KIND in definition.executor and KIND not in given else 0
        problems.append(Problem(line, f"executor must be one of {', '.join(KINDS)}, found {settings[KIND]!r}"))
    return settings, problems


def _value(kind: Any, text: str) -> object:
    """The value of a field by its type. Raises ValueError with the values allowed."""
    if kind is bool:
        if (truth := truth_of(text)) is None:
            raise ValueError("yes or no")
        return truth
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise ValueError("a number") from None
    if get_origin(kind) is tuple:
        return tuple(shlex.split(text))
    return expanded(text).absolute() if Path in get_args(kind) else text


def make_executor(settings: Mapping[str, str], say: Say) -> tuple[Executor | None, list[Problem]]:
    """The executor, or None and what is wrong. A setting of another kind is left out: a file may serve both."""
    kind, values, problems = KINDS[settings[KIND]], {}, []
    for name, type_ in get_type_hints(kind.options).items():
        text = settings.get(name, "")
        if text:
            try:
                values[name] = _value(type_, text)
            except ValueError as error:
                problems.append(Problem(0, f"--{name} must be {error}, found {printable(text)!r}"))
    if not problems:
        options = kind.options(**values)
        problems = [Problem(0, words) for words in kind.wrong(options)]
    return (None, problems) if problems else (kind.make(options, say), [])
