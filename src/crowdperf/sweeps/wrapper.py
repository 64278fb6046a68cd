"""Makes one attempt of a point: claims it, runs its program, publishes the result. Started here and on nodes alike.

    python3 run_point.py --point=FOLDER                       or, as a job of Slurm:
    python3 run_point.py --points=FOLDER --list=indexes.txt --line=$SLURM_ARRAY_TASK_ID

Exit codes: 0 done (now or before), 1 failed, 2 invalid, 75 interrupted or another attempt is under way, 78 not a point.
A node needs Python 3.10 and the shared file system, nothing else. Imports what is imported quickly: each point waits.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from crowdperf.kit.whole_file import read_object
from crowdperf.sweeps import attempts, surroundings
from crowdperf.sweeps.attempts import HEARTBEAT_S, MARKER, utc_now, write_state
from crowdperf.sweeps.folder import PointFile, PointFolder
from crowdperf.sweeps.secretsfile import WrongSecrets, read_secrets

DONE, FAILED, INVALID, TRY_AGAIN, WRONG = 0, 1, 2, 75, 78
CODES = {"done": DONE, "failed": FAILED, "invalid": INVALID, "interrupted": TRY_AGAIN, "cancelled": TRY_AGAIN}
TIME_LIMIT = "the time limit was near"
SLURM_FACTS = (
    "SLURM_JOB_ID",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_RESTART_COUNT",
    "SLURM_JOB_PARTITION",
    "SLURMD_NODENAME",
)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
LATE_SIGNAL_S = 0.5
"""After a program that failed: so long its wrapper may take to hear the signal that ended both."""
LONGEST_TEMP_FOLDER = 60
"""Characters; sockets below it must stay below the 108 of sockaddr_un (Linux, unix(7))."""


WORDS: dict[str, Callable[[str], Any]] = {
    "point": Path,
    "points": Path,
    "list": Path,
    "line": int,
    "heartbeat_s": float,
    "grace_s": float,
    "requeues": int,
    "lock_fd": int,
    "scratch": str,
    "secrets": Path,
}
"""The words of the command line, --NAME=VALUE: the point (its folder, or the folder of all points and the line, from 0,
of a list of ids), and the options."""


class WrongPoint(Exception):
    """The point cannot be run as it was given; its text says why."""


class Options(NamedTuple):
    """How attempts are made.

    grace_s: from the signal to end to SIGKILL. requeues: how often a job that reaches its time limit is queued again.
    lock_fd: the machine's lock, where the caller holds it. scratch: variable that names a node's own folder for
    temporary files. secrets: NAME=VALUE lines for the program's environment, readable by their owner only.
    """

    heartbeat_s: float = HEARTBEAT_S
    grace_s: float = 28.0
    requeues: int = 0
    lock_fd: int | None = None
    scratch: str = "SLURM_TMPDIR"
    secrets: Path | None = None


class Ending(NamedTuple):
    """How an attempt ended: the state, the reason in words, and LoadGen's verdict where there is one."""

    state: str
    reason: str = ""
    verdict: str = ""


class Signals:
    """Notes the first signal to end, and wakes whoever waits on `pipe`, also when a child ends."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.pipe, self._end = os.pipe()
        os.set_blocking(self.pipe, False)
        os.set_blocking(self._end, False)
        signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # what came while this process began, too

    def _note(self, number: int, _: Any) -> None:
        self.first = self.first or number

    def wait(self, seconds: float) -> None:
        """Returns after a signal, the end of a child, or so many seconds."""
        select.select([self.pipe], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            os.read(self.pipe, 4096)


def _job() -> dict[str, str]:
    """What Slurm says of the job that this process belongs to; empty where there is none."""
    return {name: os.environ[name] for name in SLURM_FACTS if name in os.environ}


def read_point(point: PointFolder) -> PointFile:
    """The point's file. Raises WrongPoint: unreadable, of another point or user, or results that lie elsewhere."""
    for path in (point.path, point.point_file):
        if not path.exists():
            raise WrongPoint(f"{path} is missing")
        if path.stat().st_uid != os.getuid():
            raise WrongPoint(f"{path} belongs to user {path.stat().st_uid}, and this is user {os.getuid()}")
    content = read_object(point.point_file)
    if content is None or content.get("format") != 1 or content.get("id") != point.id or not content.get("argv"):
        raise WrongPoint(f"{point.point_file} does not describe point {point.id} in format 1")
    for path in (point.results, point.attempts):
        if path.is_symlink():
            raise WrongPoint(f"{path} is a link, but a point must write into its own folder")
    return cast(PointFile, content)


def attempt(point: PointFolder, options: Options) -> int:
    """Makes one attempt, unless the point is done or under way; returns the wrapper's exit code.

    Raises WrongPoint, WrongSecrets, OSError.
    """
    what = read_point(point)
    done = read_object(point.done_file)
    if done is not None and not attempts.damage(point.path, done):
        return DONE
    secrets = read_secrets(options.secrets)
    signals = Signals()
    job = _job()
    folder = attempts.claim(point.path, job, (attempts.STALE_AFTER + 1) * options.heartbeat_s)
    if folder is None:
        print(f"{point.id}: another attempt is under way", file=sys.stderr)
        return TRY_AGAIN
    state = {
        "format": 1,
        "state": "running",
        "node": job.get("SLURMD_NODENAME") or os.uname().nodename,
        "job": job,
        "process": attempts.identity(os.getpid()),
        "heartbeat_s": options.heartbeat_s,
        "begin_utc": utc_now(),
    }
    busyness = surroundings.Busyness()
    (folder / "heartbeat").touch()
    write_state(folder / "state.json", state)
    begin = time.monotonic()
    try:
        killed = attempts.end_leftovers(point.path) if int(folder.name) > 1 else 0
        notes = [attempts.make_room(point.path, folder), f"{killed} processes were left over" if killed else ""]
        if point.done_file.exists():  # published while this attempt waited for the one before
            ending = Ending("done", "the attempt before had published its result")
        else:
            point.results.mkdir(exist_ok=True)
            state["notes"] = [note for note in notes if note]
            ending = _measure(point, what, folder, (options, signals, secrets, busyness))
    except (OSError, WrongPoint, ValueError) as error:  # ValueError: a word or variable that no process can get
        ending = Ending("failed", str(error))
    facts = {"end_utc": utc_now(), "duration_s": round(time.monotonic() - begin, 3)}
    ending = _publish(point, folder, ending, {**state, **facts})
    write_state(folder / "state.json", {**state, **facts, **ending._asdict()})
    if ending.reason == TIME_LIMIT and _times_at_the_limit(point, job) <= options.requeues:
        subprocess.run(["scontrol", "requeue", job["SLURM_JOB_ID"]], check=False, timeout=60)
    return CODES[ending.state]


def _times_at_the_limit(point: PointFolder, job: dict[str, str]) -> int:
    states = [read_object(path) or {} for path in point.attempts.glob("*/state.json")]
    own = [one for one in states if (one.get("job") or {}).get("SLURM_JOB_ID") == job.get("SLURM_JOB_ID")]
    return sum(one.get("reason") == TIME_LIMIT for one in own)


def _measure(
    point: PointFolder,
    what: PointFile,
    folder: Path,
    given: tuple[Options, Signals, dict[str, str], surroundings.Busyness],
) -> Ending:
    """Runs the program and notes beside it what may have disturbed it."""
    options, signals, secrets, busyness = given
    job = _job()
    company = surroundings.Company(options.lock_fd)
    before = surroundings.facts(job)
    busy = busyness.share()
    scratch = _scratch(options.scratch)
    environment = {**os.environ, **what["environment"], **secrets, MARKER: str(point.path.resolve())}
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)
    try:
        with open(folder / "out.txt", "ab") as out:
            child = subprocess.Popen(
                what["argv"],
                cwd=what["cwd"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        stopped = _watch(child, folder, options, signals)
        attempts.end_leftovers(point.path)
    finally:
        if scratch is not None:
            import shutil  # seldom needed, and slow to import

            shutil.rmtree(scratch, ignore_errors=True)
    after = surroundings.facts(job)
    reasons = surroundings.disturbances(before, after, busy, company)
    label = "not exclusive" if reasons else ""
    known = {"label": label, "reasons": reasons, "busy": busy, "before": before, "after": after}
    write_state(folder / "job.json", known, is_durable=False)
    ending = stopped or judge(what, point.results, child.returncode)
    error = attempts.last_error(folder / "out.txt") if ending.state == "failed" else ""
    return ending._replace(reason=f"{ending.reason}: {error}") if error else ending


def _scratch(variable: str) -> Path | None:
    """A folder for temporary files below the one that the variable names, where there is one with a short path."""
    parent = os.environ.get(variable, "")
    if not parent or len(parent) > LONGEST_TEMP_FOLDER or not os.access(parent, os.W_OK):
        return None
    folder = Path(parent, f"p{attempts.random_word()}")
    folder.mkdir(mode=0o700)
    return folder


def _watch(child: subprocess.Popen[bytes], folder: Path, options: Options, signals: Signals) -> Ending | None:
    """Waits for the program, with a heartbeat; ends it at a signal. Gives why it was ended, None if it ended itself."""
    ending: Ending | None = None
    killing_at = float("inf")
    while child.poll() is None:
        now = time.monotonic()
        if ending is None and (ending := _why_end(folder, signals)) is not None:
            killing_at = now + options.grace_s
            with contextlib.suppress(ProcessLookupError):
                # Not SIGUSR1 itself: most programs do not know it, and would die without putting their files in order.
                os.killpg(child.pid, signal.SIGTERM)
        if now >= killing_at:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        os.utime(folder / "heartbeat")
        signals.wait(min(options.heartbeat_s, max(0.05, killing_at - now)))
    if ending is None and child.returncode:  # it may have heard a signal to all processes of a job first
        until = time.monotonic() + LATE_SIGNAL_S
        while signals.first is None and (left := until - time.monotonic()) > 0:
            signals.wait(left)
        ending = _why_end(folder, signals)
    return ending


def _why_end(folder: Path, signals: Signals) -> Ending | None:
    if (folder.parent / f"{int(folder.name) + 1:03d}").exists():
        return Ending("interrupted", "another attempt has begun")
    if signals.first is None:
        return None
    if (folder / "cancelled").exists():
        return Ending("cancelled", "the sweep was cancelled")
    is_limit = signals.first == signal.SIGUSR1
    return Ending("interrupted", TIME_LIMIT if is_limit else signal.Signals(signals.first).name)


def judge(what: PointFile, results: Path, code: int) -> Ending:
    """What the program's exit code and its outcome say; of an INVALID result the reasons that the outcome has."""
    how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    if what["outcome"] is None:
        return Ending("done", how, "VALID") if code == 0 else Ending("failed", how)
    path = results / what["outcome"]
    if not path.resolve().is_relative_to(results.resolve()):
        return Ending("failed", f"{what['outcome']} is outside the point's folder")
    outcome = read_object(path) or {}
    verdict = outcome.get("verdict")
    if verdict == "INVALID":
        reasons = outcome.get("reasons")
        said = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
        return Ending("invalid", said or f"{what['outcome']} gives no reason ({how})", "INVALID")
    if code == 0 and verdict == "VALID":
        return Ending("done", how, "VALID")
    return Ending("failed", how if code else f"{what['outcome']} has no verdict, VALID or INVALID: {verdict!r}")


def _publish(point: PointFolder, folder: Path, ending: Ending, state: dict[str, Any]) -> Ending:
    """Publishes a result that is done by a hard link, which the first attempt wins."""
    if ending.verdict != "VALID":
        return ending
    names = ("node", "begin_utc", "end_utc", "duration_s")
    label = (read_object(folder / "job.json") or {}).get("label", "")
    known = {"format": 1, "id": point.id, "verdict": ending.verdict, "label": label, "attempt": folder.name}
    files = attempts.digests(point.results, lambda: os.utime(folder / "heartbeat"))
    write_state(folder / "done.json", {**known, **{name: state[name] for name in names}, "files": files})
    try:
        os.link(folder / "done.json", point.done_file)
    except FileExistsError:
        return Ending("done", "another attempt was first")
    return ending


def _read(words: Sequence[str]) -> tuple[PointFolder, Options]:
    """The point and the options that a command line names. Raises WrongPoint."""
    given: dict[str, Any] = {}
    for word in words:
        name, mark, text = word.removeprefix("--").partition("=")
        if not mark or name not in WORDS:
            raise WrongPoint(f"{word} is none of --{'=, --'.join(WORDS)}=")
        try:
            given[name] = WORDS[name](text)
        except ValueError:
            raise WrongPoint(f"--{name} must be a number, got {text!r}") from None
    point, points, list_file = (given.pop(name, None) for name in ("point", "points", "list"))
    line = given.pop("line", 0)
    if list_file is not None and points is not None:
        lines = list_file.read_text(encoding="ascii").splitlines()
        if not 0 <= line < len(lines):
            raise WrongPoint(f"{list_file} has {len(lines)} lines, numbered from 0, requested {line}")
        point = points / lines[line]
    if point is None:
        raise WrongPoint("--point, or --points with --list and --line, is missing")
    return PointFolder(point.absolute()), Options(**given)


def main(words: Sequence[str] | None = None) -> int:
    """Reads the command line, makes the attempt; returns the exit code."""
    try:
        return attempt(*_read(sys.argv[1:] if words is None else words))
    except (OSError, WrongPoint, WrongSecrets) as error:
        print(f"not a point that can be run: {error}", file=sys.stderr)
        return WRONG
