"""What has become of a point, from its files: true also when the batch system has forgotten its jobs."""

from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.records import Record, spelled
from crowdperf.kit.whole_file import read_object
from crowdperf.sweeps import attempts
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder

_STATE = spelled(State, tuple(state.value for state in State))


@dataclass(frozen=True, slots=True)
class PointStatus:
    """A point's state, and the facts of its newest attempt (of the one that published, if any did).

    attempts: how many were made. label: "not exclusive" or empty. reason: in words, for people. duration_s: of the
    whole attempt.
    """

    state: State
    attempts: int = 0
    verdict: str = ""
    label: str = ""
    reason: str = ""
    node: str = ""
    begin_utc: str = ""
    duration_s: float | None = None


def status(point: PointFolder) -> PointStatus:
    """What the files of a point say: done.json before the newest attempt; PLANNED where there is none of both."""
    made = attempt_folders(point)
    done = read_object(point.done_file)
    if done is not None and not attempts.damage(point.path, done, is_thorough=False):
        return _status(State.DONE, len(made), Record(done), Record(done).text("label"))
    if not made:
        return PointStatus(State.PLANNED)
    content = Record(read_object(made[-1] / "state.json") or {})
    label = Record(read_object(made[-1] / "job.json") or {}).text("label")
    return _status(_attempt_state(made[-1], content), len(made), content, label)


def _status(state: State, count: int, content: Record, label: str) -> PointStatus:
    return PointStatus(
        state=state,
        attempts=count,
        verdict=content.text("verdict"),
        label=label,
        reason=content.text("reason"),
        node=content.text("node"),
        begin_utc=content.text("begin_utc"),
        duration_s=content.number("duration_s"),
    )


def _attempt_state(attempt: Path, content: Record) -> State:
    """What the newest attempt came to; one whose file does not tell is as one that does not end it."""
    state = content.take("state", _STATE) or State.RUNNING
    if state is State.RUNNING:
        return State.RUNNING if attempts.is_running(attempt) else State.LOST
    return State.PLANNED if state is State.DONE else state  # done, but what it published is damaged


def attempt_folders(point: PointFolder) -> list[Path]:
    """The folders of all attempts, oldest first."""
    if not point.attempts.is_dir():
        return []
    return sorted(path for path in point.attempts.iterdir() if path.name.isdigit())


def lost_on_nodes(sweep: SweepFolder) -> dict[str, int]:
    """How many attempts vanished without a word, by node: the node, not the program, is the likely reason."""
    found: dict[str, int] = {}
    for point in sweep.points():
        for attempt in attempt_folders(point):
            content = read_object(attempt / "state.json") or {}
            if content.get("state") == "running" and content.get("node") and not attempts.is_running(attempt):
                found[content["node"]] = found.get(content["node"], 0) + 1
    return found


def mark_cancelled(point: PointFolder) -> Path | None:
    """Notes on an attempt under way that it is ended because the sweep is cancelled; gives its folder."""
    made = attempt_folders(point)
    if not made or not attempts.is_running(made[-1]):
        return None
    (made[-1] / "cancelled").touch()
    return made[-1]
