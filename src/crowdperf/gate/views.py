"""The views of rules: the tree, a submitter in a division, a system, a model, a scenario, a run, a compliance test.

All files are read here, before the rules, so that a rule is a pure function of its view. A view knows its parent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from crowdperf.gate.documents import JsonFile, TextFile, read_json, read_text
from crowdperf.gate.listing import Listing, as_text, join
from crowdperf.gate.log_view import LogView
from crowdperf.gate.run_fingerprint import RunRegister
from crowdperf.kit.privacy import NOTHING_KNOWN, PrivateNames
from crowdperf.logs.round_tables import ModelTable, RoundTable
from crowdperf.logs.tree import DIVISIONS, ScenarioPlace, SubmissionTree, TreeLayout
from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS
from crowdperf.rules.names import Mode
from crowdperf.rules.official_names import benchmark_of, resolve

SCENARIO_NAMES = ("SingleStream", "MultiStream", "Offline", "Server", "Interactive")
SUMMARY, DETAIL, ACCURACY = "mlperf_log_summary.txt", "mlperf_log_detail.txt", "mlperf_log_accuracy.json"
_CATEGORY = {"edge": "edge", "datacenter": "datacenter", "datacenter,edge": "both", "edge,datacenter": "both"}
_SERVER_RUNS_V07 = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The caller's permissions and knowledge in addition to the tree.

    backup_folder: contains whole accuracy logs at the paths they have in the tree (every one if is_backup_complete).
    known: private data of this machine. made_files: the digests of the files that the tree's step made, by path.
    now_utc: the current time, without a zone, as dates of logs are. None for the clock of this machine.
    """

    submitter: str | None = None
    expected_results: int | None = None
    allow_synthetic: bool = False
    infer_scenarios: bool = False
    is_rehearsal: bool = False
    backup_folder: Path | None = None
    is_backup_complete: bool = False
    known: PrivateNames = NOTHING_KNOWN
    made_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    now_utc: datetime | None = None
    results_folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The owner of the files of a finding, for the command that makes them. benchmark: that of the folder `model`."""

    division: str = ""
    submitter: str = ""
    system: str = ""
    model: str = ""
    benchmark: str = ""
    scenario: str = ""
    test: str = ""

    @property
    def folder(self) -> tuple[str, ...]:
        """The common key of the logs of a result: see run_fingerprint.LogLocation."""
        return (self.division, self.submitter, self.system, self.model, self.scenario)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeView:
    """The whole tree."""

    listing: Listing
    round: RoundTable
    options: Options
    subject: Subject = field(default_factory=Subject)
    register: RunRegister = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "register", RunRegister(self.listing, self.options.submitter))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitterView:
    """One submitter's folder in one division."""

    tree: TreeView
    division: str
    submitter: str
    paths: SubmissionTree
    mapping: JsonFile
    systems: tuple[str, ...]
    subject: Subject

    @property
    def folder(self) -> str:
        """The path of the folder."""
        return as_text(self.paths.folder)

    @property
    def own_names(self) -> Mapping[str, str]:
        """The benchmarks of the submitter's own model names, in the open division only."""
        return {name: value for name, value in self.mapping.fields.items() if isinstance(value, str)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemView:
    """One system with results. `category` is None if its description has none."""

    owner: SubmitterView
    system: str
    description: JsonFile
    subject: Subject

    @property
    def category(self) -> str | None:
        """Edge, datacenter or both."""
        value = self.description.fields.get("system_type")
        return _CATEGORY.get(value) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One model on one system. `table` is None for a name that the round does not have."""

    system: SystemView
    model: str
    canonical: str
    table: ModelTable | None
    scenarios: tuple[str, ...]
    folder: str
    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioView:
    """One scenario of a model, without its logs. scenario: None for a folder that is not a scenario."""

    model: ModelView
    name: str
    scenario: str | None
    folder: str
    measurements_folder: str
    measurements: JsonFile
    user_conf: TextFile
    readme: TextFile
    accuracy_folder: str
    accuracy_text: TextFile
    accuracy_log: TextFile
    accuracy_detail: LogView
    accuracy_summary: TextFile
    subject: Subject

    @property
    def tree(self) -> TreeView:
        """The whole tree."""
        return self.model.system.owner.tree

    @property
    def division(self) -> str:
        """The division's name."""
        return self.model.system.owner.division


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run: a performance run or the accuracy run of the scenario, or that of a compliance test (then `test`)."""

    scenario: ScenarioView
    test: str
    folder: str
    detail: LogView
    summary: TextFile
    subject: Subject
    is_accuracy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestView:
    """One compliance test's folder: its run, the run that it is about, the responses that it logged."""

    scenario: ScenarioView
    test: str
    folder: str
    run: RunView
    submitted: RunView
    responses: TextFile
    responses_score: TextFile
    verify_accuracy: TextFile
    verify_performance: TextFile
    verify_length: TextFile
    scores: Mapping[str, TextFile]
    subject: Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """One result compared with all others of the tree, once every log has been read: its runs are those of the
    register."""

    tree: TreeView
    subject: Subject


def divisions_of(tree: TreeView) -> tuple[str, ...]:
    """Return the divisions that the tree has."""
    return tuple(name for name in tree.listing.folders_in("") if name in DIVISIONS)


def submitters(tree: TreeView) -> Iterator[SubmitterView]:
    """Yield every submitter's folder, or those of the requested one."""
    for division in divisions_of(tree):
        for submitter in tree.listing.folders_in(division):
            if tree.options.submitter in (None, submitter):
                yield _submitter(tree, division, submitter)


def _submitter(tree: TreeView, division: str, submitter: str) -> SubmitterView:
    paths = SubmissionTree(root=Path(), division=division, submitter=submitter, round_name=tree.round.name)
    return SubmitterView(
        tree=tree,
        division=division,
        submitter=submitter,
        paths=paths,
        mapping=read_json(tree.listing, as_text(paths.model_mapping) if division == "open" else "no mapping"),
        systems=tree.listing.folders_in(as_text(paths.results_folder)),
        subject=Subject(division=division, submitter=submitter),
    )


def systems(owner: SubmitterView) -> Iterator[SystemView]:
    """Yield every system that has a folder of results."""
    for system in owner.systems:
        path = as_text(owner.paths.system_json(system))
        subject = Subject(division=owner.division, submitter=owner.submitter, system=system)
        description = read_json(owner.tree.listing, path)
        yield SystemView(owner=owner, system=system, description=description, subject=subject)


def models(system: SystemView) -> Iterator[ModelView]:
    """Yield every model of a system."""
    owner, listing = system.owner, system.owner.tree.listing
    folder = join(as_text(owner.paths.results_folder), system.system)
    table = owner.tree.round
    for model in listing.folders_in(folder):
        canonical = resolve(model, table.models, table.aliases, owner.own_names)
        benchmark = model if model in (*BENCHMARKS, *RECORDS) else benchmark_of(canonical, table.name) or model
        yield ModelView(
            system=system,
            model=model,
            canonical=canonical,
            table=table.models.get(canonical),
            scenarios=listing.folders_in(join(folder, model)),
            folder=join(folder, model),
            subject=replace(system.subject, model=model, benchmark=benchmark),
        )


def canonical_scenario(name: str) -> str | None:
    """Return the scenario of a folder's name: the official spelling, or all in lower case (both checkers)."""
    return next((one for one in SCENARIO_NAMES if name in (one, one.lower())), None)


def scenarios(model: ModelView) -> Iterator[ScenarioView]:
    """Yield every scenario of a model, its files read."""
    paths, listing = model.system.owner.paths, model.system.owner.tree.listing
    for name in model.scenarios:
        place = ScenarioPlace(system=model.system.system, model=model.model, scenario=name)
        accuracy = paths.run(place, Mode.ACCURACY)
        measurements_folder = as_text(paths.measurements_folder(place))
        yield ScenarioView(
            model=model,
            name=name,
            scenario=canonical_scenario(name),
            folder=join(model.folder, name),
            measurements_folder=measurements_folder,
            measurements=read_json(listing, _measurements_path(model, measurements_folder)),
            user_conf=read_text(listing, join(measurements_folder, "user.conf")),
            readme=read_text(listing, join(measurements_folder, "README.md")),
            accuracy_folder=as_text(accuracy.folder),
            accuracy_text=read_text(listing, as_text(accuracy.accuracy_text)),
            accuracy_log=read_text(listing, as_text(accuracy.accuracy_log)),
            accuracy_detail=model.system.owner.tree.register.log(as_text(accuracy.detail_log)),
            accuracy_summary=read_text(listing, as_text(accuracy.summary_log)),
            subject=replace(model.subject, scenario=name),
        )


def _measurements_path(model: ModelView, folder: str) -> str:
    """One name since v6.0. Before, the newest checker uses the first JSON file that begins with the system's name."""
    if model.system.owner.paths.layout is TreeLayout.ONE_FOLDER:
        return join(folder, "measurements.json")
    names = model.system.owner.tree.listing.files_in(folder)
    own = [name for name in names if name.startswith(model.system.system) and name.endswith(".json")]
    return join(folder, own[0] if own else f"{model.system.system}_IMPLEMENTATION_SCENARIO.json")


def performance_runs(scenario: ScenarioView) -> Iterator[RunView]:
    """Yield the performance runs that the round requires: one, or five of a Server result in v0.7."""
    is_five = scenario.tree.round.name == "v0.7" and scenario.scenario == "Server"
    for number in range(1, _SERVER_RUNS_V07 + 1 if is_five else 2):
        yield _run(scenario, "", join(scenario.folder, f"performance/run_{number}"))


def _run(scenario: ScenarioView, test: str, folder: str) -> RunView:
    return RunView(
        scenario=scenario,
        test=test,
        folder=folder,
        detail=scenario.tree.register.log(join(folder, DETAIL)),
        summary=read_text(scenario.tree.listing, join(folder, SUMMARY)),
        subject=replace(scenario.subject, test=test),
    )


def accuracy_run(scenario: ScenarioView) -> RunView:
    """Return the accuracy run, for the rules that apply to every log."""
    return RunView(
        scenario=scenario,
        test="",
        folder=scenario.accuracy_folder,
        detail=scenario.accuracy_detail,
        summary=scenario.accuracy_summary,
        subject=scenario.subject,
        is_accuracy=True,
    )


def tests(scenario: ScenarioView, submitted: RunView) -> Iterator[TestView]:
    """Yield the compliance tests of a submitted run that the model needs, or none in the open division."""
    if scenario.division == "open" or scenario.model.table is None:
        return
    paths, listing = scenario.model.system.owner.paths, scenario.tree.listing
    place = ScenarioPlace(system=scenario.subject.system, model=scenario.subject.model, scenario=scenario.name)
    for test in scenario.model.table.tests:
        folder = as_text(paths.compliance_folder(place, test))
        scores = ("baseline_accuracy.txt", "compliance_accuracy.txt")
        yield TestView(
            scenario=scenario,
            test=test,
            folder=folder,
            run=_run(scenario, test, join(folder, "performance/run_1")),
            submitted=submitted,
            responses=read_text(listing, join(folder, f"accuracy/{ACCURACY}")),
            responses_score=read_text(listing, join(folder, "accuracy/accuracy.txt")),
            verify_accuracy=read_text(listing, join(folder, "verify_accuracy.txt")),
            verify_performance=read_text(listing, join(folder, "verify_performance.txt")),
            verify_length=read_text(listing, join(folder, "verify_output_len.txt")),
            scores={name: read_text(listing, join(folder, f"accuracy/{name}")) for name in scores},
            subject=replace(scenario.subject, test=test),
        )
