"""Where the files of a sweep lie, on a file system that the submitting machine and every node see. Names only.

<results_dir>/<name>/
    sweep.yaml plan.json                     the file as it was given; what it expands to
    sweep.json sweep.csv sweep.html summary.txt      what came out, also while the sweep runs
    points/<id>/point.json                   what the point is: written once, never edited
                attempts/<nnn>/state.json out.txt job.json heartbeat cancelled results/
                results/                     the results_dir of the call, whose run_id is <id>
                done.json                    of a VALID result; a hard link: the first attempt to publish wins
    jobs/<k>/job.sh indexes.txt submitted.json cancelled <array>_<index>.out

state.json says what became of an attempt, out.txt what its program printed, job.json what may have disturbed it.
Results that are INVALID are not published: the next attempt, if there is one, moves them into the folder of theirs.
"""

from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypedDict


class State(str, Enum):
    """What has become of a point, in the words of every table and file."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    RUNNING = "running"
    DONE = "done"
    INVALID = "invalid"
    """It ran; LoadGen says INVALID, or the accuracy misses its target."""
    FAILED = "failed"
    """Its program ended with an error."""
    INTERRUPTED = "interrupted"
    """It was told to stop: a time limit, scancel, Ctrl-C."""
    LOST = "lost"
    """Its heartbeat is stale and no job of it is queued or running."""
    CANCELLED = "cancelled"


class PointFile(TypedDict):
    """point.json. argv[0] is looked up on PATH; no word ever passes through a shell.

    inputs: the resolved inputs of the recipe, of which the id has its digest. cwd: where argv is started. environment:
    variables set beside those of the caller (never a secret). outcome: a JSON file below results/ that the program
    writes, {"verdict": "VALID" or "INVALID", "reasons": [why it is INVALID, ...]}, or null: then exit code 0 is VALID.
    planned_s: expected seconds.
    """

    format: int
    id: str
    recipe: str
    inputs: dict[str, str]
    repeat: int
    argv: list[str]
    cwd: str
    environment: dict[str, str]
    outcome: str | None
    planned_s: float


class PointFolder(NamedTuple):
    """The folder of one point."""

    path: Path

    @property
    def id(self) -> str:
        """The point's id, which is the folder's name."""
        return self.path.name

    @property
    def point_file(self) -> Path:
        """What the point is (`PointFile`)."""
        return self.path / "point.json"

    @property
    def attempts(self) -> Path:
        """One folder for each attempt, 001, 002 ..."""
        return self.path / "attempts"

    @property
    def results(self) -> Path:
        """Where the point's program writes."""
        return self.path / "results"

    @property
    def done_file(self) -> Path:
        """There once an attempt has published a VALID result; not replaced while the files it names are unchanged."""
        return self.path / "done.json"


class SweepFolder(NamedTuple):
    """The folder of one sweep."""

    path: Path

    @property
    def sweep_file(self) -> Path:
        """The definition as it was given."""
        return self.path / "sweep.yaml"

    @property
    def plan_file(self) -> Path:
        """The points that the definition expands to."""
        return self.path / "plan.json"

    @property
    def jobs(self) -> Path:
        """One folder for each submission to Slurm, 001, 002 ..."""
        return self.path / "jobs"

    def point(self, point_id: str) -> PointFolder:
        """The folder of a point, which need not be there yet."""
        return PointFolder(self.path / "points" / point_id)

    def points(self) -> tuple[PointFolder, ...]:
        """The folders of all points that have been written, by id."""
        return tuple(PointFolder(path.parent) for path in sorted((self.path / "points").glob("*/point.json")))
