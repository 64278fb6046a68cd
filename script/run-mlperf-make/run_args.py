"""Reads RUN_ARGS, the flags of NVIDIA's harness, strictly. Pure.

A flag is used, known and without meaning here (said once), or refused before anything runs; tables.yaml has them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mlperf_results.names import ExecutionMode, Scenario, UnknownName, parse_scenario, unknown_text
from mlperf_results.officialnames import parse_benchmark

from .tables import table

FAST_REMARK = (
    "--fast: runs of 60 s. NVIDIA's harness had it up to v2.0, and later rounds ignore it; from v1.0 on a result needs "
    "600 s"
)
QUOTE_REMARK = "RUN_ARGS: quotes around all flags were taken off"


class ArgsError(Exception):
    """Words of RUN_ARGS or BENCHMARKS that mean nothing; one line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n  ".join(problems))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A benchmark by its name without level, and as it was given where that has a level."""

    base: str
    given: str = ""

    @property
    def name(self) -> str:
        """The name for the registry."""
        return self.given or self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArgs:
    """RUN_ARGS, checked; an empty tuple stands for all. user: fields of the configuration that the user sets."""

    benchmarks: tuple[Wanted, ...]
    scenarios: tuple[Scenario, ...]
    config_versions: tuple[str, ...]
    mode: str
    has_mode: bool
    is_finding: bool
    length: ExecutionMode | None
    is_calibrated_again: bool
    min_query_count: str
    min_duration_ms: str
    log_dir: str
    user: Mapping[str, str]
    remarks: tuple[str, ...]


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


def benchmarks_in(text: str) -> tuple[Wanted, ...]:
    """The benchmarks that a list names; none for "all". Raises ArgsError."""
    found, problems = [], []
    for word in names_in(text):
        if word.lower() == "all":
            return ()
        try:
            base, level = parse_benchmark(word)
            found.append(Wanted(base, "" if level is None else word))
        except UnknownName as error:
            problems.append(str(error))
    if problems:
        raise ArgsError(problems)
    return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class _Reader:
    """What was read so far; problems are collected, so that all of them show at once."""

    fields: Collection[str]
    values: dict[str, str] = field(default_factory=dict)
    user: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def take(self, words: Sequence[str]) -> None:
        """Reads `--name=value`, `--name value` and `--name`."""
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
            self._flag(name, value)

    def _flag(self, name: str, value: str | None) -> None:
        without, refused = table("flags_without_effect"), table("refused_flags")
        if name in refused:
            self.problems.append(f"--{name}: {refused[name]}")
        elif name in without:
            self.remarks.append(f"--{name} has no effect: {without[name]}")
        elif name in table("switches"):
            if value is not None and value.lower() not in ("1", "true", "yes"):
                self.problems.append(f"--{name} takes no value, found {value!r}")
            self.values[name] = "yes"
        elif name in table("flags") or name in self.fields:
            if not value:
                self.problems.append(f"--{name} needs a value: --{name}=...")
            (self.values if name in table("flags") else self.user)[name] = value or ""
        else:
            usual = (*table("flags"), *table("switches"))
            known = unknown_text("flag", name, (*usual, *without, *refused, *self.fields)).partition("; known:")[0]
            self.problems.append(f"RUN_ARGS: {known.replace('mean ', 'mean --')}; known: --{', --'.join(usual)}")

    def number(self, name: str) -> str:
        """A whole number from 1 on, or nothing."""
        text = self.values.get(name, "")
        if text and not re.fullmatch(r"[1-9]\d{0,17}", text):
            self.problems.append(f"--{name} must be a whole number >= 1, found {text!r}")
        return text

    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios, none for "all"."""
        found = []
        for word in names_in(self.values.get("scenarios", "")):
            if word.lower() == "all":
                return ()
            try:
                found.append(parse_scenario(word))
            except UnknownName as error:
                self.problems.append(f"--scenarios: {error}")
        return tuple(dict.fromkeys(found))


def read(text: str, fields: Collection[str]) -> RunArgs:
    """RUN_ARGS, checked. `fields`: names of the fields of a configuration. Raises ArgsError with every problem."""
    words, quoted = words_of(text)
    reader = _Reader(fields)
    reader.take(words)
    values = reader.values
    benchmarks: tuple[Wanted, ...] = ()
    try:
        benchmarks = benchmarks_in(values.get("benchmarks", ""))
    except ArgsError as error:
        reader.problems.append(f"--benchmarks: {error}")
    versions = tuple(dict.fromkeys(names_in(values.get("config_ver", ""))))
    if any("maxq" in name.lower() for name in versions):
        reader.problems.append(f"--config_ver={','.join(versions)}: power is not measured here")
    modes = {name.lower(): row for name, row in table("test_modes").items()}
    mode = values.get("test_mode", "")
    if mode and mode.lower() not in modes:
        reader.problems.append(f"--test_mode: found {mode!r}; allowed: {', '.join(table('test_modes'))}")
    run_mode, is_finding = modes.get(mode.lower(), ("all", False))
    lengths = [
        length for name, length in (("test_run", ExecutionMode.TEST), ("fast", ExecutionMode.FAST)) if name in values
    ]
    args = RunArgs(
        benchmarks=benchmarks,
        scenarios=reader.scenarios(),
        config_versions=versions,
        mode=run_mode,
        has_mode=bool(mode),
        is_finding=is_finding,
        length=lengths[0] if lengths else None,
        is_calibrated_again="force_calibration" in values,
        min_query_count=reader.number("min_query_count"),
        min_duration_ms=reader.number("min_duration"),
        log_dir=values.get("log_dir", ""),
        user=reader.user,
        remarks=(*quoted, *reader.remarks, *((FAST_REMARK,) if "fast" in values else ())),
    )
    if reader.problems:
        raise ArgsError(reader.problems)
    return args
