"""Reads RUN_ARGS, the flags of NVIDIA's harness, strictly. Pure.

A flag is used, known and without meaning here (said once), or refused before anything runs; tables.yaml has them.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.call.values import is_yes
from crowdperf.fronts.nvidia.fields import FIELDS
from crowdperf.rules.names import ExecutionMode, Scenario, UnknownName, parse_scenario, unknown_text
from crowdperf.rules.official_names import parse_benchmark

from .request import MakeError, misfit, table

HINT = "make help, docs/howto/from-nvidia.md shows the flags"
QUOTE_REMARK = "RUN_ARGS: quotes around all flags were removed"
SETTINGS = tuple(name for row in FIELDS.values() for name in (row.name, *row.spellings))
"""The fields of a configuration, and their earlier spellings: flags, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArgs:
    """RUN_ARGS, checked; an empty tuple stands for all. benchmarks: names for the registry, with a level where one was
    given. flags: their values, "yes" for a switch that is on. user: fields of the configuration that the user sets."""

    benchmarks: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    config_versions: tuple[str, ...]
    flags: Mapping[str, str]
    user: Mapping[str, str]
    remarks: tuple[str, ...]

    @property
    def modes(self) -> str:
        """The modes of the runs with a comma between them, both without --test_mode; "find" for a search."""
        modes: Mapping[str, str] = table("test_modes")
        return modes[self.flags.get("test_mode", "").lower()]

    @property
    def length(self) -> ExecutionMode | None:
        """How long the runs are, where a flag says it."""
        if "test_run" in self.flags:
            return ExecutionMode.TEST
        return ExecutionMode.FAST if "fast" in self.flags else None


def words_of(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The words of RUN_ARGS, split as a shell would, and what is said about them. Raises MakeError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        bare = text.strip().strip('"')
        if text.count('"') % 2 and bare.count('"') % 2 == 0:
            return words_of(bare)[0], (QUOTE_REMARK,)
        raise MakeError(f"RUN_ARGS: {text!r} cannot be split into words: {error}", HINT) from error
    if len(words) == 1 and text.strip().startswith(('"', "'")):
        return shlex.split(words[0]), (QUOTE_REMARK,)
    return words, ()


def names_in(text: str) -> list[str]:
    """A list with commas or blanks, each word once."""
    return list(dict.fromkeys(word for word in re.split(r"[\s,]+", text) if word))


def members(text: str, parse: Callable[[str], Any]) -> tuple[Any, ...]:
    """What the words of a list stand for, each once; none for "all". Raises MakeError with every unknown word."""
    found, problems = [], []
    for word in names_in(text):
        if word.lower() == "all":
            return ()
        try:
            found.append(parse(word))
        except UnknownName as error:
            problems.append(str(error))
    if problems:
        raise MakeError("\n  ".join([*(text.partition("; known:")[0] for text in problems[:-1]), problems[-1]]), HINT)
    return tuple(dict.fromkeys(found))


def benchmark_in(word: str) -> str:
    """A benchmark's name for the registry. Raises UnknownName."""
    base, level = parse_benchmark(word)
    return base if level is None else word


def _flags_in(words: Sequence[str], problems: list[str]) -> Iterator[tuple[str, str | None]]:
    """Names and values of `--name=value`, `--name value` and `--name`."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"--([A-Za-z][\w-]*)(?:=(.*))?", word, re.DOTALL)
        if match is None:
            problems.append(f"{word!r} is not a flag, write --name=value")
            continue
        name, value = match[1].replace("-", "_"), match[2]
        has_value = name in SETTINGS or table("flags").get(name, [""])[0] == "value"
        if value is None and has_value and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        yield name, value


def read(text: str) -> RunArgs:
    """RUN_ARGS, checked. Raises MakeError with every problem."""
    words, quoted = words_of(text)
    known, remarks = table("flags"), list(quoted)
    flags: dict[str, str] = {}
    user: dict[str, str] = {}
    problems: list[str] = []
    for name, value in _flags_in(words, problems):
        kind, *row = known.get(name) or ["setting" if name in SETTINGS else "unknown"]
        if kind == "unknown":
            said = unknown_text("flag", name, (*known, *SETTINGS)).partition("; known:")[0].replace("mean ", "mean --")
            usual = ", --".join(one for one, (kind, *_) in known.items() if kind in ("value", "switch"))
            problems.append(f"RUN_ARGS: {said}; known: --{usual}")
        elif kind == "refused":
            problems.append(f"--{name}: {row[0]}")
        elif kind == "idle":
            remarks.append(f"--{name} has no effect: {row[0]}")
        elif kind == "switch":
            if value is not None and not is_yes(value):
                problems.append(f"--{name} accepts no value, found {value!r}")
            flags[name] = "yes"
            remarks += [f"--{name}: {said}" for said in row]
        else:
            problems += misfit(f"--{name}", value, row) if value else [f"--{name} needs a value: --{name}=..."]
            (user if kind == "setting" else flags)[name] = value or ""
    lists: dict[str, tuple[Any, ...]] = {}
    for name, parse in (("benchmarks", benchmark_in), ("scenarios", parse_scenario)):
        try:
            lists[name] = members(flags.get(name, ""), parse)
        except MakeError as error:
            problems.append(f"--{name}: {error}")
    if problems:
        raise MakeError("\n  ".join(problems), HINT)
    versions = tuple(names_in(flags.get("config_ver", "")))
    return RunArgs(**lists, config_versions=versions, flags=flags, user=user, remarks=tuple(remarks))
