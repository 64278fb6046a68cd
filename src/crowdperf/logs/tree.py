"""Every path of an MLPerf Inference submission tree, for each layout that rounds had: the one place with those rules.

    all rounds    <division>/<submitter>/systems/<system>.json
                  <division>/<submitter>/results/<system>/<model>/<Scenario>/{performance/run_1, accuracy}
    v6.0, v6.1    beside those two: measurements.json, user.conf, README.md, TEST01/ ...
                  <division>/<submitter>/src/<model>/, documentation/calibration.md
    v0.7 to v5.1  .../measurements/<system>/<model>/<Scenario>/<system>_<implementation>_<Scenario>.json, user.conf,
                  mlperf.conf, README.md; .../compliance/<system>/<model>/<Scenario>/TEST01/ ...; .../code/<model>/

Sources: submission_structure.md and both checkers of mlcommons/inference at b66003e1 (August 2026; where the page and
the checkers disagree, what the checkers accept), the checker of tag v4.0 for older rounds. Nothing here looks at the
disk but `read_manifest`.
"""

import enum
import json
from dataclasses import dataclass
from pathlib import Path

from crowdperf.logs.layout import FileIn, RunPaths
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.rounds import is_since

DIVISIONS = ("closed", "open", "network")
CATEGORIES = ("edge", "datacenter", "datacenter,edge", "edge,datacenter")
"""What `system_type` of a system description may say."""

MODEL_MAPPING_FILE = "model_mapping.json"
"""Open division: {"name of the folder": "canonical name of the checker"}, beside systems/."""


class TreeLayout(enum.Enum):
    """Where a round keeps what describes a run: beside its logs, or in folders of their own."""

    ONE_FOLDER = "one folder for each scenario"
    APART = "measurements and compliance apart"


def layout_of(round_name: str) -> TreeLayout:
    """Return the layout of a round in `rounds.ROUNDS`."""
    return TreeLayout.ONE_FOLDER if is_since(round_name, "v6.0") else TreeLayout.APART


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioPlace:
    """One model on one system in one scenario; `model` and `scenario` are the names of the folders."""

    system: str
    model: str
    scenario: str

    @property
    def inner(self) -> Path:
        """The part of the path that results, measurements and compliance have in common."""
        return Path(self.system, self.model, self.scenario)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionTree:
    """The folder of one submitter in one division of a round; `root` is the folder that holds the divisions."""

    root: Path
    division: str
    submitter: str
    round_name: str

    @property
    def layout(self) -> TreeLayout:
        """The layout of the tree's round."""
        return layout_of(self.round_name)

    @property
    def folder(self) -> Path:
        """The submitter's folder."""
        return self.root / self.division / self.submitter

    systems_folder = FileIn("systems")
    """Holds one description for each system."""

    def system_json(self, system: str) -> Path:
        """Return the description of a system."""
        return self.systems_folder / f"{system}.json"

    results_folder = FileIn("results")
    """Holds the logs."""

    @property
    def model_mapping(self) -> Path:
        """What the open division's own model names stand for."""
        return self.folder / MODEL_MAPPING_FILE

    @property
    def calibration_text(self) -> Path:
        """How weights were quantised; the closed and network divisions need it."""
        return self.folder / "documentation" / "calibration.md"

    @property
    def code_folder(self) -> Path:
        """Holds one folder for each model."""
        return self.folder / ("src" if self.layout is TreeLayout.ONE_FOLDER else "code")

    def scenario_folder(self, place: ScenarioPlace) -> Path:
        """Return the folder with performance/ and accuracy/."""
        return self.results_folder / place.inner

    def run(self, place: ScenarioPlace, mode: Mode, number: int = 1) -> RunPaths:
        """Return the paths of one run; `number` counts performance runs (five in Server up to v0.7)."""
        inner = Path("performance", f"run_{number}") if mode is Mode.PERFORMANCE else Path("accuracy")
        return RunPaths(self.scenario_folder(place) / inner)

    def measurements_folder(self, place: ScenarioPlace) -> Path:
        """Return the folder with user.conf, README.md and the measurements."""
        if self.layout is TreeLayout.ONE_FOLDER:
            return self.scenario_folder(place)
        return self.folder / "measurements" / place.inner

    def measurements_json(self, place: ScenarioPlace, implementation: str) -> Path:
        """Return the file that says what was measured; older rounds have system and implementation in its name."""
        if self.layout is TreeLayout.ONE_FOLDER:
            return self.measurements_folder(place) / "measurements.json"
        return self.measurements_folder(place) / f"{place.system}_{implementation}_{place.scenario}.json"

    def compliance_folder(self, place: ScenarioPlace, test: str) -> Path:
        """Return the folder of a compliance test ("TEST01")."""
        if self.layout is TreeLayout.ONE_FOLDER:
            return self.scenario_folder(place) / test
        return self.folder / "compliance" / place.inner / test


@dataclass(frozen=True, slots=True)
class BesideTree:
    """What generate,inference,submission keeps beside the folder of a tree, and nobody submits."""

    tree: Path

    @property
    def logs_folder(self) -> Path:
        """Accuracy logs as they were before they were truncated, at the paths that they have in the tree."""
        return self.tree.with_name(f"{self.tree.name}_logs")

    @property
    def folder(self) -> Path:
        """The folder of the files below."""
        return self.tree.with_name(f"{self.tree.name}_facts")

    lock = FileIn("lock")
    """Held while a call changes the tree."""
    systems_json = FileIn("systems.json")
    """Where each fact of the systems comes from."""
    manifest = FileIn("manifest.json")
    """The digests of what was made: {"format": 1, "files": {"open/x/systems/y.json": ["<sha256>", ...]}}."""


def read_manifest(beside: BesideTree) -> dict[str, tuple[str, ...]]:
    """Return the digests of the files that were made by their paths below the tree; empty where nothing says it."""
    try:
        content = json.loads(beside.manifest.read_text(encoding="utf-8"))
        return {str(path): tuple(map(str, digests)) for path, digests in content["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def scenario_of_folder(name: str) -> Scenario | None:
    """Return the scenario that a folder's name stands for, whatever its case; None for a name that is none.

    Both official checkers accept lower case.
    """
    return next((scenario for scenario in Scenario if scenario.value.lower() == name.lower()), None)
