"""The registry: which benchmarks, scenarios, systems and config versions there are, and the settings of each."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crowdperf.fronts.nvidia.effective import EffectiveConfig
from crowdperf.fronts.nvidia.fields import CPU, NEURON, Value, user_values
from crowdperf.fronts.nvidia.sheets import (
    CONFIG_VERSIONS,
    DEFAULT,
    HIGH,
    CustomSystem,
    Entry,
    Key,
    Sheet,
    read_custom,
    read_sheet,
    usual_entry,
)
from crowdperf.machine import known_systems
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, record_of
from crowdperf.rules.names import Scenario, unknown_text
from crowdperf.rules.official_names import parse_benchmark
from crowdperf.rules.rounds import scenarios_of

SHIPPED = Path(__file__).resolve().with_name("registry")
"""The registry of this repository."""
ADD = "cm run script --tags=add,custom,system --id=NAME"
"""Adds a system of one's own."""
TRITON_BACKEND = "triton"
"""What a config_ver with `triton` asks for."""
_DEVICE_OF_KIND = {CPU: ("cpu", "onnxruntime"), "nvidia": ("cuda", "tensorrt"), "jetson": ("cuda", "tensorrt"),
                   NEURON: (BACKENDS[NEURON].devices[0], NEURON)}  # fmt: skip
"""By kind of accelerator the device, and the backend where the entry names none."""
Measured = Callable[[EffectiveConfig], Mapping[str, Value]]
"""What was measured with these settings, by field name."""


class RegistryError(ValueError):
    """Files of the registry are wrong; the text has one line for each problem, with file, line and key."""


class UnknownConfig(ValueError):
    """There is no such benchmark, scenario, system or config version; the text lists what there is."""


@dataclass(frozen=True, slots=True)
class Registry:
    """What `read_registry` gives. sheets: "cpu" comes first, the user's own systems last. custom: these by id."""

    sheets: Mapping[Key, Sheet]
    custom: Mapping[str, CustomSystem]
    known: Mapping[str, known_systems.Row]

    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks by their names without a level, sorted."""
        return tuple(sorted({name for name, _ in self.sheets}))

    def scenarios(self, benchmark: str) -> tuple[Scenario, ...]:
        """Return the scenarios of a benchmark that have entries. Raises UnknownConfig."""
        name, _ = parse_benchmark(benchmark)
        if name not in self.benchmarks():
            raise UnknownConfig(unknown_text("benchmark", benchmark, self.benchmarks()))
        return tuple(scenario for scenario in Scenario if (name, scenario) in self.sheets)

    def sheet(self, benchmark: str, scenario: Scenario) -> Sheet:
        """Return the entries by system. Raises UnknownConfig."""
        there, name = self.scenarios(benchmark), parse_benchmark(benchmark)[0]
        if scenario not in there:
            raise UnknownConfig(f"{name} has no {scenario.value}, only {', '.join(one.value for one in there)}")
        return self.sheets[name, scenario]

    def config_versions(self, benchmark: str, scenario: Scenario, system: str) -> tuple[str, ...]:
        """Return the config versions of a system, "default" first. Raises UnknownConfig."""
        return tuple(self._entry(benchmark, scenario, system, None).layers)

    def effective(
        self,
        benchmark: str,
        scenario: Scenario,
        system: str,
        config_ver: str = DEFAULT,
        *,
        accelerators: int | None = None,
        measured: Measured | None = None,
        user: Mapping[str, str] | None = None,
    ) -> EffectiveConfig:
        """Return the settings that hold; later wins: entry, config_ver, the user's system, measured here, the user.

        benchmark: with or without its level (a name of 99.9 % means high accuracy). accelerators: how many there are,
        where they are not as many as the system has: rates are then scaled. user: texts by field name. Raises
        UnknownConfig, fields.BadSetting, and what `measured` raises.
        """
        entry = self._entry(benchmark, scenario, system, accelerators)
        name, level = parse_benchmark(benchmark)
        config_ver = _with_level(config_ver, level)
        if config_ver not in entry.layers:
            what = f"config_ver of {name} {scenario.value} on {system}"
            raise UnknownConfig(unknown_text(what, config_ver, tuple(entry.layers)))
        known = {**entry.layers[DEFAULT], **entry.layers[config_ver]}
        given = user_values(user or {}, scenario, entry.kind)
        device, backend = _DEVICE_OF_KIND[entry.kind]
        if asked := given.get("backend") or known.get("backend"):
            backend = str(asked.value)
        config = EffectiveConfig(
            benchmark=record_of(name).names[-1 if config_ver.startswith(HIGH) else 0],
            scenario=scenario,
            system=entry.system,
            accelerators=entry.count,
            config_ver=config_ver,
            device=device,
            backend=TRITON_BACKEND if "triton" in config_ver and entry.kind != NEURON else backend,
            source=entry.source,
            file=entry.file,
            values={**known, **given},
            notes=entry.notes,
        )
        return replace(config, values={**known, **measured(config), **given}) if measured else config

    def _entry(self, benchmark: str, scenario: Scenario, system: str, count: int | None) -> Entry:
        """The entry of a system with so many accelerators (None: its own), or that of one that has the same ones.

        Raises UnknownConfig.
        """
        sheet, row = self.sheet(benchmark, scenario), self.known.get(system)
        parent, notes = sheet.get(system), list[str]()
        if parent is None and row is not None and not row.mig_profile:
            rows = [self.known[name] for name in sheet if name in self.known]
            near = nearest([one for one in rows if one.accelerator == row.accelerator], row.count)
            if near is not None:
                parent = sheet[near.system_id]
                notes += [f"no entry for {system}: using that of {near.system_id}, which has the same accelerators"]
        if parent is None:
            raise UnknownConfig(self._no_system(parse_benchmark(benchmark)[0], scenario, system))
        usual = row.count if row else parent.count
        name = system if count in (None, usual) else f"{re.sub(rf'x{usual}$', '', system)}x{count}"
        return replace(parent.of(name, usual if count is None else count), notes=(*parent.notes, *notes))

    def _no_system(self, benchmark: str, scenario: Scenario, system: str) -> str:
        what, there = f"{benchmark} {scenario.value}", tuple(self.sheets[benchmark, scenario])
        if custom := self.custom.get(system):
            has = ", ".join(sorted(f"{name} {one.value}" for name, one in custom.entries))
            return f"{system} has no entry for {what}, only for {has} ({custom.path})"
        others = [
            name for (name, one), sheet in self.sheets.items()
            if one is scenario and name.startswith(f"{benchmark}-") and system in sheet
        ]  # fmt: skip
        if others:
            return f"{what} has no entry for {system}, but {', '.join(others)} has"
        if system in self.known:
            return f"unknown: {what} on {system} (known: {', '.join(there)}). Add your own values: {ADD}"
        return unknown_text(f"system of {what}", system, there)


def read_registry(own: Path | None = None, *, shipped: Path = SHIPPED) -> Registry:
    """Return the registry: `<benchmark>/<Scenario>.yaml` in `shipped`, and the custom systems `<id>.yaml` in `own`.

    Networks without a file have what is usual. Raises RegistryError with all problems of all files.
    """
    known = {row.system_id: row for row in known_systems.read()}
    names = {scenario.value: scenario for scenario in Scenario}
    benchmarks = tuple(record.name for record in RECORDS.values())
    sheets: dict[Key, Sheet] = {}
    problems = []
    for path in sorted(shipped.glob("*/*.yaml")):
        if path.stem not in names:
            problems.append(f"{path}: allowed: {', '.join(f'{name}.yaml' for name in names)}")
        elif path.parent.name not in benchmarks:
            problems.append(f"{path}: {unknown_text('benchmark', path.parent.name, benchmarks)}")
        else:
            shown = f"registry/{path.parent.name}/{path.name}" if path.is_relative_to(SHIPPED) else str(path)
            sheet, wrong = read_sheet(path, shown, known)
            sheets[path.parent.name, names[path.stem]] = sheet
            problems += wrong
    for record in (one for one in RECORDS.values() if one.generation is None and not one.recipes.is_own):
        for scenario in scenarios_of(record.names[0]):
            sheets.setdefault((record.name, scenario), {CPU: usual_entry(record)})
    custom: dict[str, CustomSystem] = {}
    for path in sorted(own.glob("*.yaml")) if own else ():
        custom[path.stem], wrong = read_custom(path, sheets, known)
        problems += wrong
    if problems:
        raise RegistryError("the registry of configurations is wrong:\n  " + "\n  ".join(dict.fromkeys(problems)))
    with_own = {
        key: {**sheet, **{name: one.entries[key] for name, one in custom.items() if key in one.entries}}
        for key, sheet in sheets.items()
    }
    return Registry(with_own, custom, known)


def _with_level(config_ver: str, level: float | None) -> str:
    """The config version that a name with a level means. Raises UnknownConfig where the two differ."""
    if config_ver not in CONFIG_VERSIONS:
        raise UnknownConfig(unknown_text("config_ver", config_ver, CONFIG_VERSIONS))
    is_high = config_ver.startswith(HIGH)
    if level == 0.99 and is_high:
        raise UnknownConfig(f"config_ver {config_ver} is for the level of 99.9 %. Leave the level out of the name")
    higher = HIGH if config_ver == DEFAULT else f"{HIGH}_{config_ver}"
    if level == 0.999 and not is_high and higher not in CONFIG_VERSIONS:
        raise UnknownConfig(f"config_ver {config_ver} has no level of 99.9 %; known: {', '.join(CONFIG_VERSIONS)}")
    return higher if level == 0.999 and not is_high else config_ver


def nearest(rows: Sequence[known_systems.Row], count: int) -> known_systems.Row | None:
    """Return the system with the nearest number of accelerators by ratio, no slice of a GPU; None without any."""
    whole = [row for row in rows if not row.mig_profile]
    return min(whole, key=lambda row: max(row.count / count, count / row.count), default=None)
