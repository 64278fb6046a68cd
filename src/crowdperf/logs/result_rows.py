"""Joins the runs below a folder into results: one row for each system, model and scenario, as people compare them.

Beside the runs it reads what describes them where it is there: the system's JSON of a submission tree,
measurements.json, environment.json of a call. Every name of a host, user or home folder stays out of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import part
from crowdperf.kit.whole_file import read_object
from crowdperf.logs.found_runs import FoundRun, Misplaced, find_runs
from crowdperf.logs.layout import STYLE_FOLDER
from crowdperf.logs.published_results import Anchor, Hardware, find_anchors, hardware, speed_ratio
from crowdperf.logs.run_facts import RunFacts, benchmark_behind, read_run
from crowdperf.logs.run_log import LogError
from crowdperf.logs.system_names import system_name
from crowdperf.rules.backends import is_of_client
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS, SYNTHETIC_LABEL, TEST_RUN_LABEL, Mode, Scenario
from crowdperf.rules.rounds import rounds_of, rules_in

V07_MIN_DURATION_MS = 60_000
FULL_RUN_LABEL = "full-length run"
"""What the harness says of a run that nothing is to be said of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result. group: see `group_of`.

    is_synthetic: None where nothing says it. label: what must stand beside the figures, "" for nothing.
    system_facts: the system's description, empty without one. found_hardware: None where it is not known.
    """

    group: str
    system: str
    model: str
    scenario: Scenario
    performance: tuple[RunFacts, ...]
    accuracy: tuple[RunFacts, ...]
    label: str
    is_synthetic: bool | None
    measurements: Mapping[str, Any]
    system_facts: Mapping[str, Any]
    found_hardware: Hardware | None

    @property
    def runs(self) -> tuple[RunFacts, ...]:
        """All runs of the result."""
        return (*self.performance, *self.accuracy)

    @property
    def shown(self) -> RunFacts | None:
        """The performance run that the row's figure is of: the last one, as in NVIDIA's summaries."""
        return self.performance[-1] if self.performance else None

    @property
    def scored(self) -> RunFacts | None:
        """The accuracy run that the row's score is of: the last one."""
        return self.accuracy[-1] if self.accuracy else None


@dataclass(frozen=True, slots=True)
class Results:
    """The rows in the order of their names, and why other logs are not in them."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Published results of the same system, or why there is none to compare with."""

    anchors: tuple[tuple[Anchor, float], ...]
    reason: str


MEASUREMENTS = "measurements.json"


def tree_folder(run: FoundRun) -> Path | None:
    """The folder of the submitter in a submission tree, which holds results/ and systems/; None elsewhere."""
    parents = run.paths.folder.parents
    found = next((parent.parent for parent in parents if parent.name == "results"), None)
    return found if found is not None and (found / "systems").is_dir() else None


def group_of(run: FoundRun) -> str:
    """What keeps rows of one system apart: the submission they belong to, or the style of the runs."""
    last = run.group.split("/")[-1]
    return run.group if tree_folder(run) is not None else last if STYLE_FOLDER.fullmatch(last) else ""


def scenario_folder(run: FoundRun) -> Path:
    """The folder of the run's scenario."""
    if run.number is not None:
        return run.paths.folder.parent.parent
    return run.paths.folder.parent if run.paths.folder.name == "accuracy" else run.paths.folder


def read_measurements(run: FoundRun) -> Mapping[str, Any]:
    """What measurements.json says of a run; empty where there is none (places: tree.py)."""
    places = (scenario_folder(run) / MEASUREMENTS, *tree_files(run)[1:])
    return next(filter(None, map(read_object, places)), {})


def tree_files(run: FoundRun) -> tuple[Path, ...]:
    """The descriptions of a run in its submission tree: of its system, which may be missing, then of its settings as
    older trees have them, empty elsewhere."""
    folder = tree_folder(run)
    if folder is None:
        return ()
    old = folder / "measurements" / run.system / run.model / scenario_folder(run).name
    return folder / "systems" / f"{run.system}.json", *sorted(old.glob(f"{run.system}*.json"))


def read_system(run: FoundRun) -> Mapping[str, Any]:
    """The description of the run's system in its submission tree; empty elsewhere."""
    return next(filter(None, map(read_object, tree_files(run)[:1])), {})


def _count(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        return 0


def described_hardware(system: Mapping[str, Any]) -> Hardware | None:
    """The hardware of a system's JSON; None where it says too little."""
    accelerators = _count(system.get("accelerators_per_node"))
    name, count = system.get("accelerator_model_name"), accelerators
    if accelerators == 0:
        name, count = system.get("host_processor_model_name"), _count(system.get("host_processors_per_node"))
    return hardware(str(name), count * max(_count(system.get("number_of_nodes")), 1)) if name and count else None


def _setting(result: Mapping[str, Any], key: str) -> Any:
    return part(result, "run", key, "value")


def measured_hardware(facts: RunFacts) -> Hardware | None:
    """The hardware that a run's own records name, None for a server that only its URL names; the number of processors
    is in the environment.json of its call."""
    result = facts.result or {}
    if is_of_client(result):
        return None
    machine = result.get("machine") or {}
    if _setting(result, "device") == "cuda":
        names = {str(gpu.get("name")) for gpu in machine.get("gpus") or () if isinstance(gpu, dict)}
        used = _setting(result, "gpus") or ()
        return hardware(names.pop(), len(used)) if len(names) == 1 and used else None
    for parent in facts.run.paths.folder.parents[:5]:
        host = (read_object(parent / "environment.json") or {}).get("host")
        if isinstance(host, dict) and machine.get("processor"):
            sockets = _count(host.get("CM_HOST_CPU_SOCKETS"))
            return hardware(str(machine["processor"]), sockets) if sockets else None
    return None


def duration_shortage(facts: RunFacts, round_name: str) -> str:
    """Why a performance run was asked to be too short for a round; empty when it was not, or it does not say."""
    benchmark = benchmark_behind(facts.run.model, round_name)
    least_ms = V07_MIN_DURATION_MS if round_name == "v0.7" else FULL_RULES_MIN_DURATION_MS
    if benchmark is not None and round_name in rounds_of(benchmark):
        least_ms = rules_in(benchmark, round_name).min_duration_ms
    asked_ms = facts.summary.number("min_duration (ms)")
    if asked_ms is None or asked_ms >= least_ms:
        return ""
    return f"requested duration {asked_ms / 1000:g} s, {round_name} requires {least_ms / 1000:g} s"


def label_of(
    runs: Sequence[RunFacts], measurements: Mapping[str, Any], kept: Sequence[str] = ()
) -> tuple[str, bool | None]:
    """What must stand beside the figures of these runs, and whether an input was made by a program (None: not said).

    kept: labels of the runs that stand elsewhere.
    """
    own = measurements.get("crowdperf")
    records: list[Mapping[str, Any]] = [facts.result for facts in runs if facts.result is not None]
    records += [own] if isinstance(own, dict) else []
    said = [record["is_synthetic"] for record in records if isinstance(record.get("is_synthetic"), dict)]
    is_synthetic = any(value is True for row in said for value in row.values()) if said else None
    parts = [one for label in (*(str(r.get("label") or "") for r in records), *kept) for one in label.split("; ")]
    is_synthetic = True if SYNTHETIC_LABEL in parts else is_synthetic
    for facts in runs:
        if facts.run.mode is Mode.PERFORMANCE and duration_shortage(facts, facts.round_name):
            parts.append(TEST_RUN_LABEL)
    if is_synthetic:
        parts.insert(0, SYNTHETIC_LABEL)
    return "; ".join(one for one in dict.fromkeys(parts) if one and one != FULL_RUN_LABEL), is_synthetic


def kept_label(kept: Mapping[str, Any], facts: RunFacts) -> str:
    """The label that update-mlperf-results kept of a run it copied; ``kept`` is its metadata file, or empty."""
    run = facts.run
    found = part(kept, run.system, run.model, run.scenario.value, run.mode.value, "labels")
    text = found.get(f"run_{run.number}") if isinstance(found, dict) else found
    return text if isinstance(text, str) else ""


def _row(key: tuple[str, str, str, Scenario], runs: Sequence[RunFacts], kept: Mapping[str, Any]) -> Row:
    group, system, model, scenario = key
    performance = tuple(sorted((f for f in runs if f.run.mode is Mode.PERFORMANCE), key=_order))
    accuracy = tuple(sorted((f for f in runs if f.run.mode is Mode.ACCURACY), key=_order))
    shown = (performance or accuracy)[-1]
    measurements, facts = read_measurements(shown.run), read_system(shown.run)
    labels = [text for facts in runs if (text := kept_label(kept, facts))]
    label, is_synthetic = label_of(runs, measurements, labels)
    return Row(
        group=group,
        system=system,
        model=model,
        scenario=scenario,
        performance=performance,
        accuracy=accuracy,
        label=label,
        is_synthetic=is_synthetic,
        measurements=measurements,
        system_facts=facts,
        found_hardware=described_hardware(facts) if facts else measured_hardware(shown),
    )


def _order(facts: RunFacts) -> tuple[int, str]:
    return facts.run.number or 0, facts.run.relative.as_posix()


def read_results(root: Path) -> Results:
    """Return the results below ``root``. Raises OSError."""
    runs, misplaced = find_runs(root)
    left_out = [f"{found.relative.as_posix()}: {found.reason}" for found in misplaced if isinstance(found, Misplaced)]
    grouped: dict[tuple[str, str, str, Scenario], list[RunFacts]] = {}
    for run in runs:
        try:
            facts = read_run(run)
        except LogError as error:
            left_out.append(f"{run.relative.as_posix()}: {error}")
            continue
        name = system_name(run, read_object(run.paths.metadata_json))
        grouped.setdefault((group_of(run), name, run.model, run.scenario), []).append(facts)
    order = list(Scenario)
    keys = sorted(grouped, key=lambda key: (*key[:3], order.index(key[3])))
    kept = read_object(root.with_name(f"{root.name}_metadata.json")) or {}
    return Results(tuple(_row(key, grouped[key], kept) for key in keys), tuple(left_out))


def compare(row: Row) -> Comparison:
    """Set a row's figure beside published ones of the same system."""
    if row.shown is None or row.shown.figure is None:
        return Comparison((), "no value")
    if row.label:
        return Comparison((), f"not compared: {row.label}")
    if not row.shown.is_valid:
        return Comparison((), "not compared: INVALID")
    benchmark = benchmark_behind(row.model, row.shown.round_name) or row.model
    figure = row.shown.figure
    found = find_anchors(benchmark, row.scenario, figure.unit, (row.system,), row.found_hardware)
    ratios = [(anchor, speed_ratio(anchor, figure.value)) for anchor in found]
    usable = tuple((anchor, ratio) for anchor, ratio in ratios if ratio is not None)
    return Comparison(usable, "" if usable else "no published result of this system is known here")
