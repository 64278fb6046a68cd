"""Reads RUN_ARGS, the flags of NVIDIA's harness, strictly. Pure.

A flag is used, known and without meaning here (said once), or refused before anything runs; tables.yaml has them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from mlperf_results.names import ExecutionMode, Scenario, UnknownName, parse_scenario, unknown_text
from mlperf_results.officialnames import parse_benchmark

from .request import MakeError
from .tables import table

QUOTE_REMARK = "RUN_ARGS: quotes around all flags were taken off"
_Member = TypeVar("_Member")


class ArgsError(MakeError):
    """Words of RUN_ARGS or BENCHMARKS that mean nothing; one line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n  ".join(problems), "make help; docs/howto/from-nvidia.md shows the flags")


class Wanted(NamedTuple):
    """A benchmark: its name without level, and its name for the registry, which has the level that was given."""

    base: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArgs:
    """RUN_ARGS, checked; an empty tuple stands for all. flags: their values, "yes" for a switch that is on.
    user: fields of the configuration that the user sets."""

    benchmarks: tuple[Wanted, ...]
    scenarios: tuple[Scenario, ...]
    config_versions: tuple[str, ...]
    flags: Mapping[str, str]
    user: Mapping[str, str]
    remarks: tuple[str, ...]

    @property
    def mode(self) -> str:
        """The mode of the runs, both without --test_mode; "find" for a search."""
        modes: Mapping[str, str] = table("test_modes")
        return modes[self.flags.get("test_mode") or "SubmissionRun"]

    @property
    def length(self) -> ExecutionMode | None:
        """How long the runs are, where a flag says it."""
        if "test_run" in self.flags:
            return ExecutionMode.TEST
        return ExecutionMode.FAST if "fast" in self.flags else None


def words_of(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The words of RUN_ARGS, split as a shell would, and what is said about them. Raises ArgsError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        bare = text.strip().strip('"')
        if text.count('"') % 2 and bare.count('"') % 2 == 0:
            return words_of(bare)[0], (QUOTE_REMARK,)
        raise ArgsError([f"RUN_ARGS: {text!r} cannot be split into words: {error}"]) from error
    if len(words) == 1 and text.strip().startswith(('"', "'")):
        return shlex.split(words[0]), (QUOTE_REMARK,)
    return words, ()


def names_in(text: str) -> list[str]:
    """A list with commas or blanks."""
    return [word for word in re.split(r"[\s,]+", text) if word]


def members(text: str, parse: Callable[[str], _Member]) -> tuple[_Member, ...]:
    """What the words of a list stand for, each once; none for "all". Raises ArgsError."""
    found, problems = [], []
    for word in names_in(text):
        if word.lower() == "all":
            return ()
        try:
            found.append(parse(word))
        except UnknownName as error:
            problems.append(str(error))
    if problems:
        raise ArgsError([*(text.partition("; known:")[0] for text in problems[:-1]), problems[-1]])
    return tuple(dict.fromkeys(found))


def benchmarks_in(text: str) -> tuple[Wanted, ...]:
    """The benchmarks that a list names; none for "all". Raises ArgsError."""

    def wanted(word: str) -> Wanted:
        base, level = parse_benchmark(word)
        return Wanted(base, base if level is None else word)

    return members(text, wanted)


@dataclass(slots=True)
class _Reader:
    """What was read so far; problems are collected, so that all of them show at once."""

    fields: Collection[str]
    flags: dict[str, str] = field(default_factory=dict)
    user: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def pairs(self, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """Names and values of `--name=value`, `--name value` and `--name`."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            match = re.fullmatch(r"--([A-Za-z][\w-]*)(?:=(.*))?", word, re.DOTALL)
            if match is None:
                self.problems.append(f"{word!r} is not a flag; write --name=value")
                continue
            name, value = match[1].replace("-", "_"), match[2]
            if value is None and (name in table("flags") or name in self.fields) and rest and rest[0][:2] != "--":
                value = rest.pop(0)
            yield name, value

    def take(self, name: str, value: str | None) -> None:
        """Notes a flag, or what is wrong with it."""
        flags, switches = table("flags"), table("switches")
        without, refused = table("flags_without_effect"), table("refused_flags")
        if name in refused:
            self.problems.append(f"--{name}: {refused[name]}")
        elif name in without:
            self.remarks.append(f"--{name} has no effect: {without[name]}")
        elif name in switches:
            if value is not None and value.lower() not in ("1", "true", "yes"):
                self.problems.append(f"--{name} takes no value, found {value!r}")
            self.flags[name] = "yes"
        elif name in flags or name in self.fields:
            if not value:
                self.problems.append(f"--{name} needs a value: --{name}=...")
            (self.flags if name in flags else self.user)[name] = value or ""
        else:
            known = (*flags, *switches, *without, *refused, *self.fields)
            said = unknown_text("flag", name, known).partition("; known:")[0].replace("mean ", "mean --")
            self.problems.append(f"RUN_ARGS: {said}; known: --{', --'.join((*flags, *switches))}")

    def members(self, name: str, parse: Callable[[str], tuple[_Member, ...]]) -> tuple[_Member, ...]:
        """What a flag with a list stands for."""
        try:
            return parse(self.flags.get(name, ""))
        except ArgsError as error:
            self.problems.append(f"--{name}: {error}")
            return ()

    def check(self) -> None:
        """Notes what is wrong with the values of single flags; the mode gets its usual spelling."""
        for name in ("min_query_count", "min_duration"):
            text = self.flags.get(name) or "1"
            if not re.fullmatch(r"[1-9]\d{0,17}", text):
                self.problems.append(f"--{name} must be a whole number >= 1, found {text!r}")
        if "maxq" in self.flags.get("config_ver", "").lower():
            self.problems.append(f"--config_ver={self.flags['config_ver']}: power is not measured here")
        if mode := self.flags.get("test_mode"):
            usual = {name.lower(): name for name in table("test_modes")}
            if mode.lower() not in usual:
                self.problems.append(f"--test_mode: found {mode!r}; allowed: {', '.join(usual.values())}")
            self.flags["test_mode"] = usual.get(mode.lower(), "")


def read(text: str, fields: Collection[str]) -> RunArgs:
    """RUN_ARGS, checked. `fields`: names of the fields of a configuration. Raises ArgsError with every problem."""
    words, quoted = words_of(text)
    reader = _Reader(fields)
    for name, value in reader.pairs(words):
        reader.take(name, value)
    reader.check()
    said = (f"--{name}: {remark}" for name, remark in table("switches").items() if remark and name in reader.flags)
    args = RunArgs(
        benchmarks=reader.members("benchmarks", benchmarks_in),
        scenarios=reader.members("scenarios", lambda names: members(names, parse_scenario)),
        config_versions=tuple(dict.fromkeys(names_in(reader.flags.get("config_ver", "")))),
        flags=reader.flags,
        user=reader.user,
        remarks=(*quoted, *reader.remarks, *said),
    )
    if reader.problems:
        raise ArgsError(reader.problems)
    return args
