"""The settings of one benchmark in one scenario on one system, each with its origin, and the run they ask for. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crowdperf.fronts.nvidia.fields import FIELDS, Scalar, Value
from crowdperf.rules.backends import misfit
from crowdperf.rules.names import Scenario

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """The settings that hold, whoever said them.

    benchmark: the official name with its level ("bert-99.9"). system: an id of the registry or of a custom system,
    "cpu" for a machine without accelerator, "A100-SXM4x4" for a known system with another count. accelerators: how many
    it has, 0 for "cpu". source: where the entry is from, with its date. file: the file that has it. values: by field
    name. notes: where an entry of another system is used.
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
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """Return the notes, why the backend cannot run this, and what has no effect here, one line each; a setting
        that is off needs none."""
        why = misfit(self.backend, self.benchmark, self.device)
        lines = [*self.notes, *([why] if why else [])]
        for name, one in self.values.items():
            why = FIELDS[name].idle(self.benchmark, self.scenario, self.backend)
            if why and one.value is not False:
                lines.append(f"{name if one.value is True else f'{name} {one.value}'}: {why}")
        return tuple(lines)

    def inputs(self) -> dict[str, str]:
        """Return the inputs of run-mlperf-inference; latencies in ms, `instances` those of all accelerators."""
        given = {
            "model": self.benchmark,
            "scenario": self.scenario.value,
            "device": self.device,
            "backend": self.backend,
        }
        if self.accelerators > 1 and self.device == "cuda":
            given["gpus"] = ",".join(map(str, range(self.accelerators)))
        for name, one in self.values.items():
            if not FIELDS[name].idle(self.benchmark, self.scenario, self.backend):
                given.setdefault(FIELDS[name].input, self._input_text(name, one.value))
        return given

    def _input_text(self, name: str, value: Scalar) -> str:
        if FIELDS[name].unit == "ns":
            return f"{float(value) / NS_PER_MS:.9g}"
        if FIELDS[name].input == "instances":
            return str(int(value) * max(self.accelerators, 1))
        return str(value)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON, with `inputs`."""
        other = {"scenario": self.scenario.value, "told": list(self.told), "inputs": self.inputs()}
        return {**asdict(self), **other}

    def table(self) -> list[str]:
        """Return what it is of, and the settings with their origins."""
        count = f" with {self.accelerators} accelerators" if self.accelerators > 1 else ""
        rows = [("device", self.device, ""), ("backend", self.backend, "")]
        for name, one in self.values.items():
            if name != "backend":
                shown = ("no", "yes")[one.value] if isinstance(one.value, bool) else one.value
                rows.append((name, f"{shown} {FIELDS[name].unit}".rstrip(), one.origin))
        names, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
        return [
            f"{self.benchmark} {self.scenario.value} on {self.system}{count}, config_ver {self.config_ver}",
            *(f"  {name:<{names}}  {text:<{texts}}  {origin}".rstrip() for name, text, origin in rows),
        ]

    def lines(self, source: str, reasons: Sequence[str]) -> list[str]:
        """Return the settings with their origins, what has no effect, and the run of a `source` that they ask for.

        reasons: why it is this system.
        """
        title, *table = self.table()
        lines = [title, *(f"- {reason}" for reason in reasons), *table]
        if self.told:
            lines += ["Without effect here:", *(f"  {line}" for line in self.told)]
        given = self.inputs() | ({} if source == "real" else {"source": source})
        inputs = " ".join(f"--{name}={shlex.quote(text)}" for name, text in given.items())
        lines.append(f"Source: {self.source}")
        if self.accelerators:
            lines.append("Its rates and latencies are targets to start from, not results of this machine.")
        return [*lines, f"Run: cm run script --tags=run,mlperf,inference {inputs}"]
