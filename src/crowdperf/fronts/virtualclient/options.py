"""Reads VirtualClient's command line, and what stands in on a machine without the profile's GPU. Pure.

Source of names, forms and limits: OptionFactory.cs and ProfileTiming.cs (microsoft/VirtualClient, 53e432ad, read
November 2026).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdperf.fronts.metrics.commandline import CommandLineError, parse_list, parse_pairs, parse_timespan
from crowdperf.fronts.virtualclient.document import ProfileError
from crowdperf.rules.names import SYNTHETIC_LABEL, TEST_RUN_LABEL, unknown_text

MEANT: Mapping[str, str] = {"device": "cuda", "source": "real", "execution_mode": "valid", "config_ver": "default"}
"""Inputs with the value that the profile means. VirtualClient passes `--fast`, which the v4.1 code it runs ignores, so
that its runs last ten minutes. Small made inputs are for tests: with them runs are short unless asked for otherwise."""

LOGGERS = ("csv", "metadata", "summary", "file", "console")
CLEANED = ("logs", "state")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """What the configuration registry has for a benchmark on this machine.

    targets: inputs of run-mlperf-inference by name. said: the system, or why there is none.
    """

    targets: Mapping[str, str]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long: this many rounds, or rounds until the time is over (None: no limit). `after`: what is let finish,
    "" nothing, else "action" or "round"."""

    rounds: int | None = 1
    duration_s: float | None = None
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One call. Pairs by name; `included` and `excluded` are scenarios in lower case; `choices` by name of MEANT.

    registry: from a benchmark to the settings of this machine; None where the call has none (`--device=cpu`).
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    timing: Timing = Timing()
    cleaned: tuple[str, ...] = ()
    is_fail_fast: bool = False
    is_setup_only: bool = False
    is_cloning: bool = False
    may_use_os_disk: bool = False
    choices: Mapping[str, str] = field(default_factory=lambda: MEANT)
    backend: str = ""
    system: str = ""
    experiment_id: str = ""
    client_id: str = ""
    registry: Callable[[str], RegistrySettings] | None = None

    @property
    def label(self) -> str:
        """What stands beside every metric because the runs are no MLPerf results; empty where they may be."""
        synthetic = "" if self.choices["source"] == "real" else SYNTHETIC_LABEL
        short = "" if self.choices["execution_mode"] == "valid" else TEST_RUN_LABEL
        return "; ".join(filter(None, (synthetic, short)))

    @property
    def stand_ins(self) -> str:
        """The inputs that make the call differ from what the profile means."""
        names = ("device", "source", "execution_mode")
        return " ".join(f"--{name}={self.choices[name]}" for name in names if self.choices[name] != MEANT[name])


def parse_timing(iterations: int | None, timeout: str) -> Timing:
    """Return the timing of the two options, of which one may be given. Raises CommandLineError."""
    if iterations and timeout:
        raise CommandLineError("--iterations and --timeout exclude each other: give one")
    if iterations:
        return Timing(rounds=iterations)
    if not timeout:
        return Timing()
    first, _, rest = timeout.replace(";", ",").partition(",")  # OptionFactoryTests.cs has both
    after = {"": "", "deterministic": "action", "deterministic*": "round"}.get(rest.strip().lower())
    if first.strip().lower() in ("-1", "never") and not rest:
        return Timing(rounds=None)
    span = parse_timespan(first)
    minutes = float(first) if re.fullmatch(r"\d{1,9}", first.strip()) else None
    seconds = span.total_seconds() if span else 0.0 if minutes is None else minutes * 60
    if after is None or seconds <= 0:
        forms = "1440 (minutes), 01.00:30:00, never, each of the first two with ,deterministic or ,deterministic*"
        raise CommandLineError(f"--timeout={timeout} is not understood; known: {forms}")
    return Timing(rounds=None, duration_s=seconds, after=after)


def _scenarios(text: str) -> tuple[frozenset[str], frozenset[str]]:
    names = [name.lower() for name in parse_list(text)]
    included = frozenset(name for name in names if not name.startswith("-"))
    return included, frozenset(name[1:] for name in names if name.startswith("-")) - included


def parse_options(values: Mapping[str, Any]) -> Options:
    """Return the options of a call from its inputs, each of its type. Raises ProfileError with all problems."""
    problems: list[str] = []
    given = {name: value or "" for name, value in values.items()}
    pairs: dict[str, dict[str, str]] = {"parameters": {}, "metadata": {}}
    timing = Timing()
    try:
        timing = parse_timing(values["iterations"], given["timeout"])
    except CommandLineError as error:
        problems.append(str(error))
    for name in pairs:
        try:
            pairs[name] = parse_pairs(given[name], f"--{name}")
        except CommandLineError as error:
            problems.append(str(error))
    usual = {**MEANT, "execution_mode": "test"} if values["source"] == "tiny" else MEANT
    for name in ("experiment_id", "client_id", "system"):
        if given[name] and not _ID.fullmatch(given[name]):
            problems.append(
                f"--{name.replace('_', '-')} must be letters, digits, '.', '_' and '-', got {given[name]!r}"
            )
    for part in parse_list(given["logger"]):
        if part.split("=")[0].lower() not in LOGGERS:
            problems.append(
                f"--logger: {unknown_text('logger', part.split('=')[0], LOGGERS)}. No data is sent over the network"
            )
    asked = values["clean"] or ()
    cleaned = CLEANED if {"all", "yes"} & set(asked) else tuple(asked)
    included, excluded = _scenarios(given["scenarios"])
    if problems:
        raise ProfileError(problems)
    return Options(
        parameters=pairs["parameters"],
        metadata=pairs["metadata"],
        included=included,
        excluded=excluded,
        timing=timing,
        cleaned=cleaned,
        is_fail_fast=values["fail_fast"] is True,
        is_setup_only=values["dependencies"] is True,
        is_cloning=values["clone"] is True,
        may_use_os_disk=values["include_os_disk"] is True,
        choices={name: values[name] or value for name, value in usual.items()},
        backend=given["backend"],
        system=given["system"],
        experiment_id=given["experiment_id"],
        client_id=given["client_id"],
    )
