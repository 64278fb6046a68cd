"""Reads the inputs of run-mlperf-inference: what its own words mean, beside those of every recipe (`Inputs`). Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from crowdperf.call.inputs import Inputs
from crowdperf.rules.names import (
    ExecutionMode,
    Mode,
    Scenario,
    UnknownName,
    parse_execution_mode,
    parse_modes,
    parse_scenario,
    unknown_text,
    with_problems,
)

ALL = "all"
FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
CONFIG_VERSIONS = ("default", "high_accuracy", "triton", "high_accuracy_triton")
SEVERAL_BENCHMARKS = "cm run script --tags=run,mlperf,make --target=run --run_args=--benchmarks="
RESUME_VALUES = ("failed", "unfinished", ALL)


class ConfigError(Exception):
    """The inputs ask for something that cannot be run; `problems` holds one text for each wrong input."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(with_problems("cannot run what was asked for", problems))
        self.problems = tuple(problems)


_Member = TypeVar("_Member", bound=enum.Enum)


class Reader(Inputs):
    """The inputs of a call."""

    def model(self, known: tuple[str, ...], aliases: Mapping[str, str]) -> str:
        """The benchmark, which must be one alone."""
        text = self.text("model")
        if "," in text:
            several = f"for several: {SEVERAL_BENCHMARKS}{text.lower().replace(' ', '')}"
            self.wrong("model", f"one benchmark at a time here, got {text!r}; {several}")
            return text
        return self.one_of("model", known, aliases)

    def several(
        self, name: str, everything: tuple[_Member, ...], parse: Callable[[str], _Member]
    ) -> tuple[_Member, ...]:
        """The members of a comma list in the usual order, all for `all`."""
        words = self.words(name)
        if not words:
            self.wrong(name, f"nothing given; known: {ALL}, {', '.join(m.value for m in everything)}")
        found: set[_Member] = set()
        for word in words:
            if word.lower() == ALL:
                found.update(everything)
                continue
            try:
                found.add(parse(word))
            except UnknownName as error:
                self.wrong(name, f"{error}, {ALL}")
        return tuple(member for member in everything if member in found)

    def modes(self) -> tuple[Mode, ...]:
        """Which runs to make of each scenario."""
        try:
            return parse_modes(self.text("mode"))
        except UnknownName as error:
            said = str(error) if self.words("mode") else f"nothing given; known: {', '.join(error.allowed)}"
            self.wrong("mode", said)
            return tuple(Mode)

    def with_config_ver(self, model: str, backend: str, models: tuple[str, ...]) -> tuple[str, str]:
        """The model and the backend that NVIDIA's name of a configuration means: an accuracy level, or a server.

        The names are those of README.md and code/*/tensorrt/README.md in mlcommons/inference_results_v0.7,
        closed/NVIDIA (31060d57).
        """
        text = self.text("config_ver").lower().replace("-", "_")
        if text not in ("", *CONFIG_VERSIONS):
            self.wrong("config_ver", unknown_text("config_ver", text, CONFIG_VERSIONS))
        if "high_accuracy" in text and not model.endswith("-99.9"):
            higher = f"{model.removesuffix('-99')}-99.9"
            if higher not in models:
                self.problems.append(f"--config_ver={text}: {model} has one accuracy level")
            model = higher
        return model, "triton" if "triton" in text else backend

    def execution_mode(self) -> ExecutionMode:
        """How long runs are; `--fast`, of NVIDIA's harness of v2.0, means 60 s."""
        if self.truth("fast"):
            return ExecutionMode.FAST
        return self.parsed("execution_mode", parse_execution_mode, ExecutionMode.TEST)

    def resume(self) -> str:
        """One of RESUME_VALUES; `--resume` without a value means all."""
        text = self.text("resume").lower()
        text = ALL if text in ("true", "yes") else "" if text in ("false", "no") else text
        if text and text not in RESUME_VALUES:
            self.wrong("resume", unknown_text("value", text, RESUME_VALUES))
        return text

    def folder_name(self, name: str) -> str:
        """The name of one folder; empty when nothing is given."""
        allowed = "letters, digits, dot, underscore, plus, hyphen, beginning with a letter or digit"
        return self.read(name, lambda text: text if FOLDER_NAME.fullmatch(text) else None, allowed) or ""

    def origins(self, name: str) -> dict[Scenario, str]:
        """Words by scenario, written `Offline: measured; Server: found`."""
        found = {}
        for part in filter(None, (part.strip() for part in self.text(name).split(";"))):
            scenario, _, words = part.partition(":")
            try:
                found[parse_scenario(scenario.strip())] = words.strip()
            except UnknownName as error:
                self.wrong(name, f"{error}; written 'Offline: words; Server: words'")
        return found
