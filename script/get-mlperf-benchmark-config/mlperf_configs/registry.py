"""The registry: which benchmarks, scenarios, systems and config versions there are, and the settings of each.

Files are read when they are asked for, and checked then; `Registry.check` reads all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from machine_facts import known_systems
from mlperf_results.benchmarks import RECORDS
from mlperf_results.names import Scenario, unknown_text
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.record import Record

from .custom import CustomConfig, CustomSystem, read_custom
from .effective import (
    CONFIG_VERSIONS,
    CPU,
    TRITON_BACKEND,
    EffectiveConfig,
    Value,
    scaled,
    told_lines,
    user_values,
)
from .fields import FIELDS
from .sheets import Entry, Place, Sheet, read_sheet

SHIPPED = Path(__file__).resolve().parents[1] / "registry"
"""The registry of this repository."""
DEFAULT = "default"
ADD = "cm run script --tags=add,custom,system --id=NAME"
"""Adds a system of one's own."""
_DEVICE_OF_KIND = {CPU: ("cpu", "onnxruntime"), "nvidia": ("cuda", "tensorrt"), "jetson": ("cuda", "tensorrt")}
"""By kind of accelerator the device, and the backend where the entry names none."""


class RegistryError(ValueError):
    """Files of the registry are wrong; `problems` has one line for each, with file, line and key."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("the registry of configurations is wrong:\n  " + "\n  ".join(problems))
        self.problems = tuple(problems)


class UnknownConfig(ValueError):
    """There is no such benchmark, scenario, system or config version; the text lists what there is."""


@dataclass(slots=True)
class Registry:
    """What `read_registry` gives. Sheets and custom systems are kept once they are read."""

    folders: Sequence[Path]
    known: Mapping[str, known_systems.Row]
    _sheets: dict[tuple[str, Scenario], Sheet] = field(default_factory=dict)
    _custom: dict[str, CustomSystem] = field(default_factory=dict)

    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks by their names without a level, sorted."""
        found = {path.parent.name for folder in self.folders for path in folder.glob("*/*.yaml")}
        return tuple(sorted(found))

    def scenarios(self, benchmark: str) -> tuple[Scenario, ...]:
        """Return the scenarios of a benchmark that have entries. Raises UnknownConfig."""
        stem, _ = self._stem(benchmark)
        return tuple(scenario for scenario in Scenario if self._path(stem, scenario) is not None)

    def systems(self, benchmark: str, scenario: Scenario) -> tuple[str, ...]:
        """Return the systems with an entry, "cpu" first, the user's own last. Raises UnknownConfig, RegistryError."""
        sheet = self._sheet(benchmark, scenario)
        key = (sheet.benchmark, scenario)
        own = (name for name, one in self.custom_systems().items() if key in one.configs)
        return (*sheet.entries, *sorted(own))

    def entries(self, benchmark: str, scenario: Scenario) -> Mapping[str, Entry]:
        """Return the entries of the registry by system. Raises UnknownConfig and RegistryError."""
        return self._sheet(benchmark, scenario).entries

    def config_versions(self, benchmark: str, scenario: Scenario, system: str) -> tuple[str, ...]:
        """Return the config versions of an entry, "default" first. Raises UnknownConfig and RegistryError."""
        return (DEFAULT, *self._entry(self._sheet(benchmark, scenario), system)[0].versions)

    def custom_systems(self) -> Mapping[str, CustomSystem]:
        """Return the user's systems by id. Raises RegistryError."""
        problems: list[str] = []
        for path in sorted(path for folder in self.folders for path in folder.glob("*.yaml")):
            if path.stem not in self._custom:
                self._custom[path.stem], found = read_custom(path, self.known)
                problems += found
        if problems:
            self._custom.clear()
            raise RegistryError(problems)
        return self._custom

    def check(self) -> None:
        """Read everything. Raises RegistryError with all problems of all files."""
        problems: list[str] = []
        for benchmark in self.benchmarks():
            for scenario in self.scenarios(benchmark):
                try:
                    self._sheet(benchmark, scenario)
                except RegistryError as error:
                    problems += error.problems
        try:
            self.custom_systems()
        except RegistryError as error:
            problems += error.problems
        if problems:
            raise RegistryError(problems)

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
        (`measured.measured_values`). user: texts by field name. Raises UnknownConfig, RegistryError and
        fields.BadSetting.
        """
        sheet = self._sheet(benchmark, scenario)
        config_ver = _with_level(config_ver, self._stem(benchmark)[1])
        entry, custom = self._entry(sheet, system)
        if config_ver != DEFAULT and config_ver not in entry.versions:
            what = f"config_ver of {sheet.benchmark} {scenario.value} on {system}"
            raise UnknownConfig(unknown_text(what, config_ver, (DEFAULT, *entry.versions)))
        has, count = self._count(entry.system), self._count(system) if accelerators is None else accelerators
        notes = self._notes(entry, system)
        values = {
            name: scaled(one, FIELDS[name], count, has, entry.system)
            for name, one in {**entry.values, **entry.versions.get(config_ver, {})}.items()
            if not (notes and FIELDS[name].is_target and system in self._custom)
        }
        values |= {**(custom.values if custom else {}), **(measured or {})}
        values |= user_values(user or {}, scenario, entry.kind)
        version = CONFIG_VERSIONS[config_ver]
        device, backend = _DEVICE_OF_KIND[entry.kind]
        backend = str(values["backend"].value) if "backend" in values else backend
        backend = TRITON_BACKEND if version.harness == "triton" else backend
        names = RECORDS_BY_NAME[sheet.benchmark].names
        official = names[-1 if version.is_high_accuracy else 0]
        return EffectiveConfig(
            benchmark=official,
            scenario=scenario,
            system=_system_name(system, count, self._count(system)),
            accelerators=count,
            config_ver=config_ver,
            device=device,
            backend=backend,
            values=values,
            told=(*notes, *told_lines(values, official, scenario, backend)),
            source=entry.source,
            file=str(self._path(sheet.benchmark, scenario)),
        )

    def _notes(self, entry: Entry, system: str) -> tuple[str, ...]:
        """What is said where a system has an entry of another one."""
        row = self.known.get(entry.system)
        if system in self._custom:
            own = self._custom[system].machine.accelerator
            if row is None or own == row.accelerator:
                return ()
            measure = f"cm run script --tags=add,custom,system,_auto --id={system}"
            return (f"the targets of {entry.system} are left out: it has other accelerators; to measure: {measure}",)
        same = f"no entry for {system}: that of {entry.system} is used, which has the same accelerators"
        return () if system == entry.system else (same,)

    def _count(self, system: str) -> int:
        """How many accelerators a system of the registry or of the user has."""
        if system in self._custom:
            return self._custom[system].machine.count
        return self.known[system].count if system in self.known else 0

    def _stem(self, benchmark: str) -> tuple[str, float | None]:
        """The name without a level, and the level that a name has."""
        name, level = parse_benchmark(benchmark)
        if name not in self.benchmarks():
            raise UnknownConfig(unknown_text("benchmark", benchmark, self.benchmarks()))
        return name, level

    def _path(self, stem: str, scenario: Scenario) -> Path | None:
        places = (folder / stem / f"{scenario.value}.yaml" for folder in self.folders)
        return next((place for place in places if place.is_file()), None)

    def _sheet(self, benchmark: str, scenario: Scenario) -> Sheet:
        stem, _ = self._stem(benchmark)
        if (stem, scenario) in self._sheets:
            return self._sheets[stem, scenario]
        path = self._path(stem, scenario)
        if path is None:
            has = ", ".join(one.value for one in self.scenarios(stem))
            raise UnknownConfig(f"{stem} has no {scenario.value}; it has {has}")
        place = Place(
            benchmark=stem,
            scenario=scenario,
            shown=f"registry/{stem}/{path.name}" if path.is_relative_to(SHIPPED) else str(path),
            has_high_accuracy=0.999 in RECORDS_BY_NAME[stem].levels if stem in RECORDS_BY_NAME else False,
            known=self.known,
        )
        sheet, problems = read_sheet(path.read_text(encoding="utf-8"), place)
        if stem not in RECORDS_BY_NAME:
            problems = (f"{place.shown}: {unknown_text('benchmark', stem, tuple(RECORDS_BY_NAME))}", *problems)
        if problems:
            raise RegistryError(problems)
        self._sheets[stem, scenario] = sheet
        return sheet

    def _entry(self, sheet: Sheet, system: str) -> tuple[Entry, CustomConfig | None]:
        """The entry that a system starts from, and what a custom system has of its own."""
        if system in sheet.entries:
            return sheet.entries[system], None
        row = self.known.get(system)
        custom = None if row else self.custom_systems().get(system)
        if custom is not None:
            config = custom.configs.get((sheet.benchmark, sheet.scenario))
            if config is None or config.parent not in sheet.entries:
                has = ", ".join(sorted(f"{name} {one.value}" for name, one in custom.configs))
                what = f"{sheet.benchmark} {sheet.scenario.value}"
                raise UnknownConfig(f"{system} has no entry for {what}; it has {has} ({custom.path})")
            if sheet.entries[config.parent].kind != custom.machine.kind:
                raise UnknownConfig(f"{custom.path}: {config.parent} has another kind of accelerator than {system}")
            return sheet.entries[config.parent], config
        rows = [self.known[name] for name in sheet.entries if name in self.known]
        near = row and nearest([one for one in rows if one.accelerator == row.accelerator], row.count)
        if row is None or near is None or row.mig_profile:
            raise UnknownConfig(self._no_system(sheet, system))
        return sheet.entries[near.system_id], None

    def _no_system(self, sheet: Sheet, system: str) -> str:
        there, what = self.systems(sheet.benchmark, sheet.scenario), f"{sheet.benchmark} {sheet.scenario.value}"
        others = [
            name for name in self.benchmarks() if name.startswith(f"{sheet.benchmark}-")
            and self._path(name, sheet.scenario) and system in self._sheet(name, sheet.scenario).entries
        ]  # fmt: skip
        if others:
            return f"{what} has no entry for {system}, but {', '.join(others)} has"
        if system in self.known:
            return f"nothing is known of {what} on {system}; known: {', '.join(there)}; your own figures: {ADD}"
        return unknown_text(f"system of {what}", system, there)


RECORDS_BY_NAME: Mapping[str, Record] = {record.name: record for record in RECORDS.values()}
"""The benchmarks of the harness by their names without a level."""


def read_registry(folders: Sequence[Path] = (SHIPPED,)) -> Registry:
    """Return the registry of these folders: `<benchmark>/<Scenario>.yaml`, and custom systems `<id>.yaml`.

    Folders that are not there have nothing. Raises RegistryError for files that are no scenario's.
    """
    names = {scenario.value for scenario in Scenario}
    stray = [path for folder in folders for path in sorted(folder.glob("*/*.yaml")) if path.stem not in names]
    if stray:
        raise RegistryError([f"{path}: allowed: {', '.join(f'{name}.yaml' for name in names)}" for path in stray])
    return Registry(tuple(folders), {row.system_id: row for row in known_systems.read()})


def _with_level(config_ver: str, level: float | None) -> str:
    """The config version that a name with a level means. Raises UnknownConfig where the two differ."""
    if config_ver not in CONFIG_VERSIONS:
        raise UnknownConfig(unknown_text("config_ver", config_ver, tuple(CONFIG_VERSIONS)))
    is_high = CONFIG_VERSIONS[config_ver].is_high_accuracy
    if level == 0.99 and is_high:
        raise UnknownConfig(f"config_ver {config_ver} is for the level of 99.9 %; leave the level out of the name")
    if level != 0.999 or is_high:
        return config_ver
    higher = {DEFAULT: "high_accuracy", "triton": "high_accuracy_triton"}
    if config_ver not in higher:
        raise UnknownConfig(f"config_ver {config_ver} has no level of 99.9 %; known: {', '.join(CONFIG_VERSIONS)}")
    return higher[config_ver]


def nearest(rows: Sequence[known_systems.Row], count: int) -> known_systems.Row | None:
    """Return the system with the nearest number of accelerators by ratio, no slice of a GPU; None without any."""
    whole = [row for row in rows if not row.mig_profile]
    return min(whole, key=lambda row: max(row.count / count, count / row.count), default=None)


def _system_name(system: str, count: int, known_count: int) -> str:
    """The name of a known system with another count: A100-SXM4x8 with 4 is A100-SXM4x4."""
    if count == known_count:
        return system
    plain = re.sub(rf"x{known_count}$", "", system)
    return f"{plain}x{count}"
