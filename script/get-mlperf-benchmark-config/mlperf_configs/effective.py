"""The settings of one benchmark in one scenario on one system, each with its origin, and the run they ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from mlperf_results.backends import BACKENDS
from mlperf_results.names import Scenario

from .fields import FIELDS, BadSetting, Field, Scalar, field_named

USER_ORIGIN = "you"
TRITON_BACKEND = "pytriton"
"""What a config_ver with `triton` asks for; a version of the harness without that backend refuses it by name."""
NS_PER_MS = 1_000_000
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Value:
    """One setting. origin: "registry/resnet50/Server.yaml:12", "scaled 4/8 from A100-SXM4x8", "measured 2026-11-23",
    "you"."""

    value: Scalar
    origin: str


@dataclass(frozen=True, slots=True)
class ConfigVersion:
    """What a config_ver stands for. harness: "standard", "triton" or "openvino"; power is always at its most."""

    harness: str
    is_high_accuracy: bool


CONFIG_VERSIONS: Mapping[str, ConfigVersion] = {
    DEFAULT: ConfigVersion("standard", False),
    "high_accuracy": ConfigVersion("standard", True),
    "triton": ConfigVersion("triton", False),
    "high_accuracy_triton": ConfigVersion("triton", True),
    "openvino": ConfigVersion("openvino", False),
}


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
            if not field.idle(self.benchmark, self.scenario):
                given.setdefault(field.input, _input_text(field, one.value, max(self.accelerators, 1)))
        return given

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON, with `inputs`."""
        other = {"scenario": self.scenario.value, "told": list(self.told), "inputs": self.inputs()}
        return {**asdict(self), **other}


def _input_text(field: Field, value: Scalar, accelerators: int) -> str:
    if field.unit == "ns":
        return f"{float(value) / NS_PER_MS:.9g}"
    if field.input == "instances":
        return str(int(value) * accelerators)
    return str(value)


def told_lines(values: Mapping[str, Value], benchmark: str, scenario: Scenario, backend: str) -> tuple[str, ...]:
    """Return one line for each setting that has no effect here; a setting that is off needs none."""
    lines = []
    if backend not in BACKENDS:
        lines.append(f"backend {backend}: not in this version; it has {', '.join(BACKENDS)}")
    for name, one in values.items():
        why = FIELDS[name].idle(benchmark, scenario)
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
            found[field.name] = Value(field.parse(text), USER_ORIGIN)
        except BadSetting as error:
            problems.append(str(error))
    if problems:
        raise BadSetting("; ".join(problems))
    return found
