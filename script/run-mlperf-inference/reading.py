"""Takes the inputs of a call from env one by one and collects what is wrong with them. Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from mlperf_results.backends import simulated
from mlperf_results.names import (
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
from mlperf_results.numbers import WHOLE, gpu_numbers, positive_number, whole_number

ALL = "all"
TRUTHS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
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


class Reader:
    """Takes values from env and collects what is wrong with them."""

    def __init__(self, env: Mapping[str, object]) -> None:
        """Read from ``env``; ``problems`` then holds one text for each wrong value."""
        self._env = env
        self.problems: list[str] = []

    def text(self, key: str) -> str:
        """The text of a key without blanks around it; empty when there is none."""
        value = self._env.get(key)
        return "" if value is None else str(value).strip()

    def one_of(self, key: str, name: str, known: tuple[str, ...], aliases: Mapping[str, str]) -> str:
        """A known name, or what another name stands for; in upper or lower case."""
        text = self.text(key).lower()
        text = aliases.get(text, text)
        if name == "model" and "," in text:
            several = f"for several: {SEVERAL_BENCHMARKS}{text.replace(' ', '')}"
            self.problems.append(f"--model: one benchmark at a time here, got {self.text(key)!r}; {several}")
        elif text not in known:
            self.problems.append(f"--{name}: {unknown_text(name, self.text(key), known)}")
        return text

    def several(
        self, key: str, name: str, everything: tuple[_Member, ...], parse: Callable[[str], _Member]
    ) -> tuple[_Member, ...]:
        """The members of a comma list in the usual order, all for `all`."""
        words = [word.strip() for word in self.text(key).split(",") if word.strip()]
        if not words:
            self.problems.append(f"--{name}: nothing given; known: {ALL}, {', '.join(m.value for m in everything)}")
        found: set[_Member] = set()
        for word in words:
            if word.lower() == ALL:
                found.update(everything)
                continue
            try:
                found.add(parse(word))
            except UnknownName as error:
                self.problems.append(f"--{name}: {error}, {ALL}")
        return tuple(member for member in everything if member in found)

    def modes(self, key: str) -> tuple[Mode, ...]:
        """Which runs to make of each scenario."""
        text = self.text(key)
        try:
            return parse_modes(text)
        except UnknownName as error:
            said = str(error) if text.strip(" ,") else f"nothing given; known: {', '.join(error.allowed)}"
            self.problems.append(f"--mode: {said}")
            return tuple(Mode)

    def with_config_ver(self, model: str, backend: str, models: tuple[str, ...]) -> tuple[str, str]:
        """The model and the backend that NVIDIA's name of a configuration means: an accuracy level, or a server.

        The names are those of README.md and code/*/tensorrt/README.md in mlcommons/inference_results_v0.7,
        closed/NVIDIA (31060d57).
        """
        text = self.text("CM_MLPERF_RUN_CONFIG_VER").lower().replace("-", "_")
        if text not in ("", *CONFIG_VERSIONS):
            self.problems.append(f"--config_ver: {unknown_text('config_ver', text, CONFIG_VERSIONS)}")
        if "high_accuracy" in text and not model.endswith("-99.9"):
            higher = f"{model.removesuffix('-99')}-99.9"
            if higher not in models:
                self.problems.append(f"--config_ver={text}: {model} has one accuracy level")
            model = higher
        return model, "triton" if "triton" in text else backend

    def simulated(self, backend: str, device: str) -> tuple[str, str]:
        """The backend and the device that run: with `--simulate` a stand-in on the processor."""
        try:
            return simulated(self.text("CM_MLPERF_SIMULATE"), backend, device)
        except ValueError as error:
            self.problems.append(f"--simulate: {error}")
            return backend, device

    def execution_mode(self, key: str) -> ExecutionMode:
        """How long runs are; `--fast`, of NVIDIA's harness of v2.0, means 60 s."""
        if self.truth("CM_MLPERF_RUN_FAST", "fast"):
            return ExecutionMode.FAST
        try:
            return parse_execution_mode(self.text(key))
        except UnknownName as error:
            self.problems.append(f"--execution_mode: {error}")
            return ExecutionMode.TEST

    def resume(self, key: str) -> str:
        """One of RESUME_VALUES; `--resume` without a value means all."""
        text = self.text(key).lower()
        text = ALL if text in ("true", "yes") else "" if text in ("false", "no") else text
        if text and text not in RESUME_VALUES:
            self.problems.append(f"--resume: {unknown_text('value', text, RESUME_VALUES)}")
        return text

    def truth(self, key: str, name: str, *, otherwise: bool = False) -> bool:
        """Yes or no; `otherwise` when nothing is given."""
        text = self.text(key).lower()
        if text and text not in TRUTHS:
            self.problems.append(f"--{name}: found {text!r}; allowed: {', '.join(TRUTHS)}")
        return TRUTHS.get(text, otherwise)

    def folder_name(self, key: str, name: str) -> str:
        """The name of one folder; empty when nothing is given."""
        text = self.text(key)
        if text and not FOLDER_NAME.fullmatch(text):
            allowed = "letters, digits, dot, underscore, plus, hyphen, beginning with a letter or digit"
            self.problems.append(f"--{name}: found {text!r}; allowed: {allowed}")
        return text

    def origins(self, key: str, name: str) -> dict[Scenario, str]:
        """Words by scenario, written `Offline: measured; Server: found`."""
        found = {}
        for part in filter(None, (part.strip() for part in self.text(key).split(";"))):
            scenario, _, words = part.partition(":")
            try:
                found[parse_scenario(scenario.strip())] = words.strip()
            except UnknownName as error:
                self.problems.append(f"--{name}: {error}; written 'Offline: words; Server: words'")
        return found

    def gpus(self, key: str, device: str) -> str | None:
        """A comma list of the numbers of GPUs; None when nothing is given."""
        text = self.text(key)
        if not text:
            return None
        numbers = gpu_numbers(text)
        if numbers is None:
            self.problems.append(f"--gpus: found {text!r}; allowed: numbers from 0 with commas between, none twice")
        elif device != "cuda":
            self.problems.append(f"--gpus: found {text!r}; device {device} has none (give --device=cuda)")
        return ",".join(map(str, numbers or ()))

    def whole_number(self, key: str, name: str) -> int | None:
        """A whole number from 1; None when nothing is given."""
        text = self.text(key)
        value = whole_number(text) if text else None
        if text and value is None:
            self.problems.append(f"--{name}: found {text!r}; allowed: {WHOLE}")
        return value

    def positive_number(self, key: str, name: str) -> float | None:
        """A finite number above 0; None when nothing is given."""
        text = self.text(key)
        value = positive_number(text) if text else None
        if text and value is None:
            self.problems.append(f"--{name}: found {text!r}; allowed: a number above 0")
        return value
