"""The registry: which benchmarks, scenarios, systems and config versions there are, and the settings of each.

Files are read when they are asked for, and checked then; `Registry.check` reads all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from machine_facts import known_systems
from mlperf_results.backends import misfit
from mlperf_results.benchmarks import RECORDS
from mlperf_results.names import Scenario, unknown_text
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.record import Record
from mlperf_results.rounds import scenarios_of

from .custom import CustomSystem, read_custom
from .effective import CONFIG_VERSIONS, DEFAULT, HIGH, EffectiveConfig, Value, scaled, told_lines, user_values
from .fields import CPU, FIELDS
from .sheets import Entry, Sheet, read_sheet, usual_entry

SHIPPED = Path(__file__).resolve().parents[1] / "registry"
"""The registry of this repository."""
ADD = "cm run script --tags=add,custom,system --id=NAME"
"""Adds a system of one's own."""
RECORDS_BY_NAME: Mapping[str, Record] = {record.name: record for record in RECORDS.values()}
"""The benchmarks of the harness by their names without a level."""
TRITON_BACKEND = "triton"
"""What a config_ver with `triton` asks for."""
_DEVICE_OF_KIND = {CPU: ("cpu", "onnxruntime"), "nvidia": ("cuda", "tensorrt"), "jetson": ("cuda", "tensorrt")}
"""By kind of accelerator the device, and the backend where the entry names none."""


class RegistryError(ValueError):
    """Files of the registry are wrong; the text has one line for each problem, with file, line and key."""


class UnknownConfig(ValueError):
    """There is no such benchmark, scenario, system or config version; the text lists what there is."""


@dataclass(frozen=True, slots=True)
class Registry:
    """What `read_registry` gives. Sheets and custom systems are kept once they are read.

    paths: None where there is no file, and only what is usual holds.
    """

    paths: Mapping[tuple[str, Scenario], Path | None]
    custom_paths: Sequence[Path]
    known: Mapping[str, known_systems.Row]
    _sheets: dict[tuple[str, Scenario], Sheet] = field(default_factory=dict)
    _custom: dict[str, CustomSystem] = field(default_factory=dict)

    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks by their names without a level, sorted."""
        return tuple(sorted({name for name, _ in self.paths}))

    def scenarios(self, benchmark: str) -> tuple[Scenario, ...]:
        """Return the scenarios of a benchmark that have entries. Raises UnknownConfig."""
        name, _ = parse_benchmark(benchmark)
        if name not in self.benchmarks():
            raise UnknownConfig(unknown_text("benchmark", benchmark, self.benchmarks()))
        return tuple(scenario for scenario in Scenario if (name, scenario) in self.paths)

    def systems(self, benchmark: str, scenario: Scenario) -> tuple[str, ...]:
        """Return the systems with an entry, "cpu" first, the user's own last. Raises UnknownConfig, RegistryError."""
        sheet = self.sheet(benchmark, scenario)
        own = (name for name, one in self.custom_systems().items() if (sheet.benchmark, scenario) in one.configs)
        return (*sheet.entries, *sorted(own))

    def config_versions(self, benchmark: str, scenario: Scenario, system: str) -> tuple[str, ...]:
        """Return the config versions of an entry, "default" first. Raises UnknownConfig and RegistryError."""
        return tuple(self._entry(self.sheet(benchmark, scenario), system)[0].layers)

    def sheet(self, benchmark: str, scenario: Scenario) -> Sheet:
        """Return the entries of the registry. Raises UnknownConfig and RegistryError."""
        there, key = self.scenarios(benchmark), (parse_benchmark(benchmark)[0], scenario)
        if scenario not in there:
            raise UnknownConfig(f"{key[0]} has no {scenario.value}; it has {', '.join(one.value for one in there)}")
        if key not in self._sheets:
            path = self.paths[key]
            if path is None:
                self._sheets[key] = Sheet(*key, "", {CPU: usual_entry(RECORDS_BY_NAME[key[0]])})
            else:
                sheet, problems = self._read(path)
                _refuse(problems)
                self._sheets[key] = sheet
        return self._sheets[key]

    def _read(self, path: Path) -> tuple[Sheet, Sequence[str]]:
        shown = f"registry/{path.parent.name}/{path.name}" if path.is_relative_to(SHIPPED) else str(path)
        return read_sheet(path, shown, self.known)

    def custom_systems(self) -> Mapping[str, CustomSystem]:
        """Return the user's systems by id. Raises RegistryError."""
        if not self._custom:
            found = [read_custom(path, self.known) for path in self.custom_paths]
            _refuse([line for _, problems in found for line in problems])
            self._custom.update({system.system: system for system, _ in found})
        return self._custom

    def check(self) -> None:
        """Read everything. Raises RegistryError with all problems of all files."""
        sheets = [self._read(path)[1] for path in self.paths.values() if path]
        custom = [read_custom(path, self.known)[1] for path in self.custom_paths]
        _refuse([line for problems in (*sheets, *custom) for line in problems])

    def effective(
        self,
        benchmark: str,
        scenario: Scenario,
        system: str,
        config_ver: str = DEFAULT,
        *,
        accelerators: int | None = None,
        measured: Mapping[str, Value] | None = None,
        user: Mapping[str, str] | None = None,
    ) -> EffectiveConfig:
        """Return the settings that hold; later wins: entry, config_ver, the user's system, measured here, the user.

        benchmark: with or without its level (a name of 99.9 % means high accuracy). accelerators: how many there are,
        where they are not as many as the system has: rates are then scaled. measured: by field name
        (`lookup.measured_values`). user: texts by field name. Raises UnknownConfig, RegistryError and
        fields.BadSetting.
        """
        sheet = self.sheet(benchmark, scenario)
        config_ver = _with_level(config_ver, parse_benchmark(benchmark)[1])
        entry, usual = self._entry(sheet, system)
        count = usual if accelerators is None else accelerators
        if config_ver not in entry.layers:
            what = f"config_ver of {sheet.name} on {system}"
            raise UnknownConfig(unknown_text(what, config_ver, tuple(entry.layers)))
        values = {
            name: scaled(one, FIELDS[name], count, entry.count, entry.system)
            for name, one in {**entry.layers[DEFAULT], **entry.layers[config_ver]}.items()
            if entry.has_targets or not FIELDS[name].is_target
        }
        values |= {**entry.own, **(measured or {}), **user_values(user or {}, scenario, entry.kind)}
        device, backend = _DEVICE_OF_KIND[entry.kind]
        backend = str(values["backend"].value) if "backend" in values else backend
        backend = TRITON_BACKEND if "triton" in config_ver else backend
        official = RECORDS_BY_NAME[sheet.benchmark].names[-1 if config_ver.startswith(HIGH) else 0]
        return EffectiveConfig(
            benchmark=official,
            scenario=scenario,
            system=system if count == usual else f"{re.sub(rf'x{usual}$', '', system)}x{count}",
            accelerators=count,
            config_ver=config_ver,
            device=device,
            backend=backend,
            source=entry.source,
            file=sheet.file,
            values=values,
            told=(*entry.notes, *told_lines(values, official, scenario, backend, misfit(backend, official, device))),
        )

    def _entry(self, sheet: Sheet, system: str) -> tuple[Entry, int]:
        """What a system starts from, and how many accelerators it has. Raises UnknownConfig and RegistryError."""
        if entry := sheet.entries.get(system):
            return entry, entry.count
        row = self.known.get(system)
        if row is None:
            custom = self.custom_systems().get(system)
            if custom is None:
                raise UnknownConfig(self._no_system(sheet, system))
            return self._own_entry(sheet, custom), custom.machine.count
        rows = [self.known[name] for name in sheet.entries if name != CPU]
        near = nearest([one for one in rows if one.accelerator == row.accelerator], row.count)
        if near is None or row.mig_profile:
            raise UnknownConfig(self._no_system(sheet, system))
        note = f"no entry for {system}: that of {near.system_id} is used, which has the same accelerators"
        return replace(sheet.entries[near.system_id], notes=(note,)), row.count

    def _own_entry(self, sheet: Sheet, custom: CustomSystem) -> Entry:
        """What a custom system starts from: no targets of other accelerators."""
        parent, own = custom.configs.get((sheet.benchmark, sheet.scenario), ("", {}))
        if parent not in sheet.entries:
            has = ", ".join(sorted(f"{name} {one.value}" for name, one in custom.configs))
            raise UnknownConfig(f"{custom.system} has no entry for {sheet.name}; it has {has} ({custom.path})")
        entry, row = replace(sheet.entries[parent], own=own), self.known.get(parent)
        if entry.kind != custom.machine.kind:
            raise UnknownConfig(f"{custom.path}: {parent} has another kind of accelerator than {custom.system}")
        if not row or row.accelerator == custom.machine.accelerator:
            return entry
        measure = f"to measure: cm run script --tags=add,custom,system,_auto --id={custom.system}"
        note = f"the targets of {entry.system} are left out: it has other accelerators; {measure}"
        return replace(entry, has_targets=False, notes=(note,))

    def _no_system(self, sheet: Sheet, system: str) -> str:
        there = self.systems(sheet.benchmark, sheet.scenario)
        near = [name for name, one in self.paths if one is sheet.scenario and name.startswith(f"{sheet.benchmark}-")]
        others = [name for name in near if system in self.sheet(name, sheet.scenario).entries]
        if others:
            return f"{sheet.name} has no entry for {system}, but {', '.join(others)} has"
        if system in self.known:
            return f"nothing is known of {sheet.name} on {system}; known: {', '.join(there)}; your own figures: {ADD}"
        return unknown_text(f"system of {sheet.name}", system, there)


def read_registry(folders: Sequence[Path] = (SHIPPED,)) -> Registry:
    """Return the registry of these folders: `<benchmark>/<Scenario>.yaml`, and custom systems `<id>.yaml`.

    Networks that they have no file of have what is usual. Raises RegistryError for files that are no benchmark's or no
    scenario's.
    """
    names = {scenario.value: scenario for scenario in Scenario}
    paths: dict[tuple[str, Scenario], Path | None] = {}
    problems = []
    for path in (path for folder in folders for path in sorted(folder.glob("*/*.yaml"))):
        if path.stem not in names:
            problems.append(f"{path}: allowed: {', '.join(f'{name}.yaml' for name in names)}")
        elif path.parent.name not in RECORDS_BY_NAME:
            problems.append(f"{path}: {unknown_text('benchmark', path.parent.name, tuple(RECORDS_BY_NAME))}")
        else:
            paths.setdefault((path.parent.name, names[path.stem]), path)
    _refuse(problems)
    networks = (record for record in RECORDS.values() if record.generation is None)
    for key in ((record.name, scenario) for record in networks for scenario in scenarios_of(record.names[0])):
        paths.setdefault(key, None)
    custom = sorted(path for folder in folders for path in folder.glob("*.yaml"))
    return Registry(paths, custom, {row.system_id: row for row in known_systems.read()})


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise RegistryError("the registry of configurations is wrong:\n  " + "\n  ".join(problems))


def _with_level(config_ver: str, level: float | None) -> str:
    """The config version that a name with a level means. Raises UnknownConfig where the two differ."""
    if config_ver not in CONFIG_VERSIONS:
        raise UnknownConfig(unknown_text("config_ver", config_ver, CONFIG_VERSIONS))
    is_high = config_ver.startswith(HIGH)
    if level == 0.99 and is_high:
        raise UnknownConfig(f"config_ver {config_ver} is for the level of 99.9 %; leave the level out of the name")
    higher = HIGH if config_ver == DEFAULT else f"{HIGH}_{config_ver}"
    if level == 0.999 and not is_high and higher not in CONFIG_VERSIONS:
        raise UnknownConfig(f"config_ver {config_ver} has no level of 99.9 %; known: {', '.join(CONFIG_VERSIONS)}")
    return higher if level == 0.999 and not is_high else config_ver


def nearest(rows: Sequence[known_systems.Row], count: int) -> known_systems.Row | None:
    """Return the system with the nearest number of accelerators by ratio, no slice of a GPU; None without any."""
    whole = [row for row in rows if not row.mig_profile]
    return min(whole, key=lambda row: max(row.count / count, count / row.count), default=None)
