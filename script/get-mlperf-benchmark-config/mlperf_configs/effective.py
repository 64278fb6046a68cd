"""The settings of one benchmark in one scenario on one system, each with its origin, and the run they ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mlperf_results.backends import BACKENDS
from mlperf_results.benchmarks import record_of
from mlperf_results.names import Scenario

from .fields import FIELDS, BadSetting, Fate, Field, Scalar, field_named

CPU = "cpu"
"""The system of a machine without accelerator, and its kind."""
USER_ORIGIN = "you"
TRITON_BACKEND = "pytriton"
"""What a config_ver with `triton` asks for; a version of the harness without that backend refuses it by name."""
NS_PER_MS = 1_000_000


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
    power: str = "MaxP"


CONFIG_VERSIONS: Mapping[str, ConfigVersion] = {
    "default": ConfigVersion("standard", False),
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
    it has, 0 for "cpu". values: by field name. told: what has no effect here, and where an entry of another system is
    used, one line each. source: where the entry is from, with its date. file: the file that has it.
    """

    benchmark: str
    scenario: Scenario
    system: str
    accelerators: int
    config_ver: str
    device: str
    backend: str
    values: Mapping[str, Value]
    told: tuple[str, ...]
    source: str
    file: str

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
        for name, value in self.values.items():
            field = FIELDS[name]
            if is_input(field, self.benchmark, self.scenario) and field.input not in given:
                given[field.input] = _input_text(field, value.value, max(self.accelerators, 1))
        return given

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON, with `inputs`."""
        return {
            "benchmark": self.benchmark,
            "scenario": self.scenario.value,
            "system": self.system,
            "accelerators": self.accelerators,
            "config_ver": self.config_ver,
            "device": self.device,
            "backend": self.backend,
            "source": self.source,
            "file": self.file,
            "values": {name: {"value": one.value, "origin": one.origin} for name, one in self.values.items()},
            "told": list(self.told),
            "inputs": self.inputs(),
        }


def is_input(field: Field, benchmark: str, scenario: Scenario) -> bool:
    """Return whether a setting becomes an input of a run."""
    counts_rows = field.name == "gpu_batch_size" and record_of(benchmark).has_rows
    return field.fate is Fate.MAPPED and scenario in field.input_scenarios and not counts_rows


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
        field = FIELDS[name]
        if one.value is False or is_input(field, benchmark, scenario):
            continue
        why = field.why
        if field.fate is Fate.MAPPED:
            why = (
                f"a batch is one query in {scenario.value}"
                if scenario.is_stream
                else "counts pairs of user and item; the harness counts samples"
                if name == "gpu_batch_size"
                else f"has no effect in {scenario.value}"
            )
        lines.append(f"{name}{'' if one.value is True else f' {one.value}'}: {why}")
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
            problem = f"{field.name}: {field.why}" if field.fate is Fate.REFUSED else misfit(field, scenario, kind)
            if problem or field.name in found:
                raise BadSetting(problem or f"{field.name}: given twice")
            found[field.name] = Value(field.parse(text), USER_ORIGIN)
        except BadSetting as error:
            problems.append(str(error))
    if problems:
        raise BadSetting("; ".join(problems))
    return found


def misfit(field: Field, scenario: Scenario, kind: str) -> str:
    """Return why an entry cannot have a setting; empty where it can. kind: of accelerator, "" for one not known."""
    if scenario not in field.scenarios:
        takers = ", ".join(one.value for one in field.scenarios)
        return f"{field.name}: {scenario.value} has no such field; {takers} has"
    if kind and kind not in field.kinds:
        why = field.why if field.fate is Fate.REFUSED else "only a system with an accelerator has it"
        return f"{field.name}: {why}"
    return ""
