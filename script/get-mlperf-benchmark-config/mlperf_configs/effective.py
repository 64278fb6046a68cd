"""The settings of one benchmark in one scenario on one system, each with its origin, and the run they ask for. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from mlperf_results.names import Scenario

from .fields import FIELDS, BadSetting, Field, Scalar, field_named

NS_PER_MS = 1_000_000
DEFAULT, HIGH = "default", "high_accuracy"
CONFIG_VERSIONS = (DEFAULT, HIGH, "triton", f"{HIGH}_triton", "openvino")
"""Each names a harness, with HIGH for the level of 99.9 %; power is always at its most."""


@dataclass(frozen=True, slots=True)
class Value:
    """One setting. origin: "registry/resnet50/Server.yaml:12", "scaled 4/8 from A100-SXM4x8", "measured 2026-11-23",
    "you"."""

    value: Scalar
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """The settings that hold, whoever said them.

    benchmark: the official name with its level ("bert-99.9"). system: an id of the registry or of a custom system,
    "cpu" for a machine without accelerator, "A100-SXM4x4" for a known system with another count. accelerators: how many
    it has, 0 for "cpu". source: where the entry is from, with its date. file: the file that has it. values: by field
    name. told: what has no effect here, and where an entry of another system is used, one line each.
    """

    benchmark: str
    scenario: Scenario
    system: str
    accelerators: int
    config_ver: str
    device: str
    backend: str
    source: str
    file: str
    values: Mapping[str, Value]
    told: tuple[str, ...]

    def inputs(self) -> dict[str, str]:
        """Return the inputs of run-mlperf-inference; latencies in ms, `instances` those of all accelerators."""
        given = {
            "model": self.benchmark,
            "scenario": self.scenario.value,
            "device": self.device,
            "backend": self.backend,
        }
        if self.accelerators > 1:
            given["gpus"] = ",".join(map(str, range(self.accelerators)))
        for name, one in self.values.items():
            field = FIELDS[name]
            if not field.idle(self.benchmark, self.scenario, self.backend):
                given.setdefault(field.input, _input_text(field, one.value, max(self.accelerators, 1)))
        return given

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON, with `inputs`."""
        other = {"scenario": self.scenario.value, "told": list(self.told), "inputs": self.inputs()}
        return {**asdict(self), **other}

    def lines(self, source: str, reasons: Sequence[str]) -> list[str]:
        """Return the settings with their origins, what has no effect, and the run of a `source` that they ask for.

        reasons: why it is this system.
        """
        count = f" with {self.accelerators} accelerators" if self.accelerators > 1 else ""
        title = f"{self.benchmark} {self.scenario.value} on {self.system}{count}, config_ver {self.config_ver}"
        rows = [("device", self.device, ""), ("backend", self.backend, "")]
        for name, one in self.values.items():
            if name != "backend":
                shown = ("no", "yes")[one.value] if isinstance(one.value, bool) else one.value
                rows.append((name, f"{shown} {FIELDS[name].unit}".rstrip(), one.origin))
        names, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
        table = [f"  {name:<{names}}  {text:<{texts}}  {origin}".rstrip() for name, text, origin in rows]
        lines = [title, *(f"- {reason}" for reason in reasons), *table]
        if self.told:
            lines += ["Without effect here:", *(f"  {line}" for line in self.told)]
        given = self.inputs() | ({} if source == "real" else {"source": source})
        inputs = " ".join(f"--{name}={shlex.quote(text)}" for name, text in given.items())
        lines.append(f"Source: {self.source}")
        if self.accelerators:
            lines.append("Its rates and latencies are targets to start from, not results of this machine.")
        return [*lines, f"Run: cm run script --tags=run,mlperf,inference {inputs}"]


def _input_text(field: Field, value: Scalar, accelerators: int) -> str:
    if field.unit == "ns":
        return f"{float(value) / NS_PER_MS:.9g}"
    if field.input == "instances":
        return str(int(value) * accelerators)
    return str(value)


def told_lines(
    values: Mapping[str, Value], benchmark: str, scenario: Scenario, backend: str, misfit: str
) -> tuple[str, ...]:
    """Return why the backend cannot run this (`misfit`, or empty), and one line for each setting that has no effect
    here; a setting that is off needs none."""
    lines = [misfit] if misfit else []
    for name, one in values.items():
        why = FIELDS[name].idle(benchmark, scenario, backend)
        if why and one.value is not False:
            lines.append(f"{name if one.value is True else f'{name} {one.value}'}: {why}")
    return tuple(lines)


def scaled(value: Value, field: Field, count: int, known: int, system: str) -> Value:
    """Return a rate of `known` accelerators for `count`, with its origin; other settings as they are."""
    if not field.is_rate or count == known:
        return value
    exact = Fraction(str(value.value)) * count / known
    number = int(exact) if exact.denominator == 1 else float(f"{float(exact):.9g}")
    return Value(number, f"scaled {count}/{known} from {system}")


def user_values(given: Mapping[str, str], scenario: Scenario, kind: str) -> dict[str, Value]:
    """Return what the user gives, by field name. Raises BadSetting with every problem."""
    found: dict[str, Value] = {}
    problems = []
    for name, text in given.items():
        try:
            field = field_named(name)
            problem = f"{field.name}: {field.why}" if field.is_refused else field.misfit(scenario, kind)
            if problem or field.name in found:
                raise BadSetting(problem or f"{field.name}: given twice")
            found[field.name] = Value(field.parse(text), "you")
        except BadSetting as error:
            problems.append(str(error))
    if problems:
        raise BadSetting("; ".join(problems))
    return found
