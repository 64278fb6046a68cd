"""What a plan asks of the machine, the registry and the workspace. Looks only; changes nothing."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from crowdperf.fronts.nvidia import lookup
from crowdperf.fronts.nvidia.effective import EffectiveConfig
from crowdperf.fronts.nvidia.fields import CPU, NEURON
from crowdperf.fronts.nvidia.registry import Measured, Registry, read_registry
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import Scenario
from crowdperf.rules.official_names import benchmark_of, official_name, parse_benchmark
from crowdperf.rules.rounds import ROUNDS

from . import views
from .request import Request


class Around:
    """A call and what is around it. stamp: its time, as NVIDIA names folders of logs.

    cmind: CM, whose `access` reads what was measured here; None in `cm plan`. machine: the name of a recorded one.
    Everything that reads the registry or the machine raises RegistryError and choose.MachineError.
    """

    def __init__(self, request: Request, stamp: str, cmind: Any = None) -> None:
        self.request, self.folder, self.stamp, self.cmind = request, request.folder, stamp, cmind
        self.machine, self.source = request.values["MACHINE"], request.values["SOURCE"]
        self.is_neuron = request.work == "run_inferentia_harness"
        self.is_cpu = request.is_on("USE_CPU") or self.is_neuron or request.work == "run_cpu_harness"

    @cached_property
    def registry(self) -> Registry:
        """The configurations."""
        return read_registry(lookup.own_folder(self.cmind))

    @cached_property
    def here(self) -> lookup.Here:
        """The machine, and the system that it is."""
        return lookup.look(self.machine, self.folder, self.registry.custom)

    @property
    def system(self) -> str:
        """The system in the registry, or "cpu"."""
        if self.is_neuron and self.here.facts.kind == NEURON:
            return self.here.system
        return CPU if self.is_cpu else self.here.system

    def config(
        self, benchmark: str, scenario: Scenario, version: str, user: Mapping[str, str], *, is_test: bool = False
    ) -> EffectiveConfig:
        """The settings of a run; those of test runs hold no target that was measured here, since the harness measures
        one before the run, and repeats a run whose target was too low. Raises what Registry.effective raises."""
        count = None if self.is_cpu else self.here.accelerators
        key = (benchmark, scenario, self.system, version)
        return self.registry.effective(
            *key, accelerators=count, measured=None if is_test else self._measured, user=user
        )

    @cached_property
    def _measured(self) -> Measured | None:
        return lookup.measured_by(self.cmind.access, self.source) if self.cmind and not self.machine else None

    @cached_property
    def notes(self) -> Mapping[str, Mapping[str, str]]:
        """The notes of what the workspace shows."""
        return views.notes(self.folder)

    def benchmark(self, name: str) -> str:
        """The benchmark that a name means: 3d-unet of v0.7 to v1.1 is 3d-unet-brats today.

        By the round of the call; without one, by the entries of the registry for the system.
        """
        official, asked = official_name(name), self.request.values["ROUND"]
        if asked:
            found = benchmark_of(official, asked)
        else:
            others = earlier_benchmarks(official)
            found = next((one for one in others if self._has_entry(one) and not self._has_entry(official)), None)
        return name if found in (None, official) else found if parse_benchmark(name)[1] else parse_benchmark(found)[0]

    def _has_entry(self, benchmark: str) -> bool:
        base = parse_benchmark(benchmark)[0]
        return any(name == base and self.system in sheet for (name, _), sheet in self.registry.sheets.items())

    @property
    def linked_scratch(self) -> str:
        """The scratch space that the workspace's links lead into; empty without links."""
        link = self.folder / views.BUILD_LINKS[0]
        return str(link.readlink().parent) if link.is_symlink() else ""

    def made_by(self, place: str) -> str:
        """The line of the call behind a link of the workspace."""
        return views.made_by(self.folder, self.notes, place)

    def kept_runs(self, *files: str) -> list[dict[str, str]]:
        """The newest run with these files of each system, benchmark and scenario: RUN is its folder, NAME
        <system>/<benchmark>/<Scenario>."""
        found: dict[str, dict[str, str]] = {}
        for place, note in self.notes.items():
            *_, system, benchmark, scenario = Path(place).parts
            source = self.folder / note["target"]
            if note.get("kind") == "run" and all((source / file).is_file() for file in files):
                name = f"{system}/{benchmark}/{scenario}"
                found[name] = {"benchmark": benchmark, "scenario": scenario, "RUN": note["target"], "NAME": name}
        return [found[name] for name in sorted(found)]


def earlier_benchmarks(official: str) -> Mapping[str, str]:
    """The other benchmarks that had an official name in earlier rounds, each with the last round of it."""
    found = {one: name for name in ROUNDS if (one := benchmark_of(official, name)) not in (None, official)}
    return {str(one): name for one, name in found.items()}


def recipe_tags(part: str) -> Mapping[str, str]:
    """By benchmark the tags of the recipe for a part: model, dataset or preprocessed; "" where it has none."""
    known = (
        one for one in RECORDS.values() if not one.is_default and one.generation is None and not one.recipes.is_own
    )
    return {one.name: getattr(one.recipes, part) for one in known}
