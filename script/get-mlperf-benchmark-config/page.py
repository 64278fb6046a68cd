"""Settings and the content of the registry as lines to read. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mlperf_configs.effective import EffectiveConfig
from mlperf_configs.fields import FIELDS
from mlperf_configs.registry import Registry


def config_lines(config: EffectiveConfig, source: str, reasons: Sequence[str]) -> list[str]:
    """The settings with their origins, what has no effect, and the run of a `source` that they ask for.

    reasons: why it is this system.
    """
    count = f" with {config.accelerators} accelerators" if config.accelerators > 1 else ""
    title = f"{config.benchmark} {config.scenario.value} on {config.system}{count}, config_ver {config.config_ver}"
    rows = [("device", config.device, ""), ("backend", config.backend, "")]
    for name, one in config.values.items():
        if name != "backend":
            shown = ("no", "yes")[one.value] if isinstance(one.value, bool) else one.value
            rows.append((name, f"{shown} {FIELDS[name].unit}".rstrip(), one.origin))
    names, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
    table = [f"  {name:<{names}}  {text:<{texts}}  {origin}".rstrip() for name, text, origin in rows]
    lines = [title, *(f"- {reason}" for reason in reasons), *table]
    if config.told:
        lines += ["Without effect here:", *(f"  {line}" for line in config.told)]
    given = config.inputs() | ({} if source == "real" else {"source": source})
    inputs = " ".join(f"--{name}={shlex.quote(value)}" for name, value in given.items())
    lines.append(f"Source: {config.source}")
    if config.accelerators:
        lines.append("Its rates and latencies are targets to start from, not results of this machine.")
    return [*lines, f"Run: cm run script --tags=run,mlperf,inference {inputs}"]


def list_lines(registry: Registry, benchmark: str) -> list[str]:
    """What there is: benchmarks with their scenarios; of one benchmark the systems with their config versions."""
    if not benchmark:
        return [f"{name}: {', '.join(one.value for one in registry.scenarios(name))}" for name in registry.benchmarks()]
    lines = []
    for scenario in registry.scenarios(benchmark):
        lines.append(f"{benchmark} {scenario.value}")
        for system in registry.systems(benchmark, scenario):
            lines.append(f"  {system}: {', '.join(registry.config_versions(benchmark, scenario, system))}")
    return lines
