"""What results and runs are called on one page, so that no two names are the same; which runs belong together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from crowdperf.logs.result_rows import Row, scenario_folder
from crowdperf.logs.run_facts import RunFacts


def backend_of(row: Row) -> str:
    """The backend of a result's runs; empty where no record of them says it."""
    for facts in row.runs:
        backend = ((facts.result or {}).get("run") or {}).get("backend")
        if isinstance(backend, dict) and backend.get("value"):
            return str(backend["value"])
    return ""


def run_word(facts: RunFacts) -> str:
    """What tells a run from the other ones of its result: the time of its call, its number, or its first folder."""
    run = facts.run
    if run.has_run_id:
        return f"run {run.system.partition('-')[0]}"
    return f"run {run.relative.parts[0] if run.number is None else run.number}"


@dataclass(frozen=True, slots=True)
class Names:
    """The names on a page with these rows: "resnet50, Offline", and more words only where rows would share that."""

    rows: Sequence[Row]

    def row(self, row: Row) -> str:
        """The name of a result."""
        name = f"{row.model}, {row.scenario.value}"
        alike = [other for other in self.rows if (other.model, other.scenario) == (row.model, row.scenario)]
        if len(alike) == 1:
            return name
        backends = {backend_of(other) for other in alike}
        is_told_apart = len(backends) == len(alike) and "" not in backends
        return f"{name}, {backend_of(row) if is_told_apart else row.system}"

    def run(self, row: Row, facts: RunFacts) -> str:
        """The name of a run; the same as of its result where that has one run of the kind."""
        name = self.row(row)
        alike = row.performance if facts in row.performance else row.accuracy
        return name if len(alike) == 1 else f"{name}, {run_word(facts)}"

    def of(self, rows: Sequence[Row]) -> str:
        """The names of several results, each once, by model: "resnet50: Offline, Server"."""
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row.model, []).append(self.row(row).removeprefix(f"{row.model}, "))
        return "; ".join(f"{model}: {', '.join(dict.fromkeys(names))}" for model, names in found.items())


@dataclass(frozen=True, slots=True)
class Pair:
    """Runs of a result that were made together."""

    performance: tuple[RunFacts, ...]
    accuracy: tuple[RunFacts, ...]


def pairs(row: Row) -> list[Pair]:
    """The runs of a result by the folder of their scenario; all in one where no folder has runs of both modes, as in
    NVIDIA's logs."""
    places = list(dict.fromkeys(scenario_folder(facts.run) for facts in row.runs))
    found = [
        Pair(
            performance=tuple(facts for facts in row.performance if scenario_folder(facts.run) == place),
            accuracy=tuple(facts for facts in row.accuracy if scenario_folder(facts.run) == place),
        )
        for place in places
    ]
    is_paired = len(found) == 1 or any(pair.performance and pair.accuracy for pair in found)
    return found if is_paired else [Pair(performance=row.performance, accuracy=row.accuracy)]
