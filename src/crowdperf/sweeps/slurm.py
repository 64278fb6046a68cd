"""Runs the points of a sweep as arrays of Slurm. What it knows comes from files of the jobs and from squeue: no sacct.

Jobs are found again by their --comment, which stands for the sweep's folder: a command that was killed before or after
sbatch submits nothing twice.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.whole_file import read_object
from crowdperf.sweeps import sbatch, states
from crowdperf.sweeps.attempts import utc_now, write_state
from crowdperf.sweeps.executor import ExecutorError
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.sbatch import Limits, SlurmOptions
from crowdperf.sweeps.slurmclient import Client

LOSSES = 2
"""So many attempts vanished on a node: later jobs avoid it."""
SLOWEST_POLL_S = 15.0
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")
USUAL = ("None", "Resources", "Priority", "JobArrayTaskLimit", "Dependency", "BeginTime", "Cleaning")
"""Reasons for waiting that need nobody's attention."""
HELD = "launch failed requeued held"
"""Seen with Slurm 22.05.8 where a controller was killed that had not yet written down that the job was started."""
RELEASES = 3
"""So often a job that Slurm holds so is let go by the command that waits for it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One element of an array that Slurm has not finished with. place: the name of its folder in jobs/."""

    number: str
    index: int | None
    place: str
    state: str
    reason: str


class SlurmExecutor:
    """Executor of a Slurm that shares the sweep's folder. `say` gets what people should read while they wait."""

    def __init__(self, options: SlurmOptions | None = None, say: Callable[[str], None] = lambda text: None) -> None:
        self.options = options or SlurmOptions()
        self.say = say
        self.client = Client((*sbatch.KEPT, *self.options.environment))
        self._seen_reasons: set[str] = set()
        self._released: Counter[str] = Counter()

    def problems(self) -> tuple[str, ...]:
        """No sbatch, no controller, or what sbatch says to such a job; for options without a wrong value."""
        if missing := self.client.missing():
            return (missing,)
        verdict = self.client.run(
            "sbatch", "--test-only", *sbatch.request_words(self.options, ()), stdin="#!/bin/bash\n"
        )
        what = "Slurm does not answer" if verdict.is_silence else "Slurm refuses such a job"
        told = verdict.told.replace("\n", "\n  ")
        return (f"{what}:\n  {told}" if "\n" in told else f"{what}: {told}",) if verdict.code else ()

    def preview(self, sweep: SweepFolder, planned_s: Sequence[float]) -> str:
        """The job.sh that would be submitted first for so many points. Writes nothing, and asks nobody."""
        return self._script(sweep, sweep.jobs / "001", planned_s, Limits())[1]

    def start(self, sweep: SweepFolder, points: Sequence[PointFolder]) -> None:
        """Submits the points that no job of this sweep holds, in arrays as large as Slurm takes.

        Raises ExecutorError.
        """
        if problem := sbatch.wrong_path(sweep.path.resolve()):
            raise ExecutorError(problem)
        sweep.jobs.mkdir(parents=True, exist_ok=True)
        limits = sbatch.limits_in(self.client.ask("scontrol", "show", "config"))
        with _submitter_lock(sweep) as descriptor:
            live = self._live(sweep)
            wanted = [point for point in points if point.id not in live]
            if len(wanted) + len(live) > limits.most_jobs:
                raise ExecutorError(
                    f"{len(wanted)} jobs are more than this Slurm accepts (MaxJobCount {limits.most_jobs}). "
                    "Try --where=..., or a part of the file: --file=FILE:override_..."
                )
            before = ""
            for begin in range(0, len(wanted), limits.largest_array):
                chunk = wanted[begin : begin + limits.largest_array]
                # One throttle serves one array: the next array waits where only so many may run.
                waits = [f"--dependency=afterany:{before}"] if before and self.options.max_parallel else []
                before = self._submit(sweep, chunk, limits, (descriptor, waits))

    def _submit(
        self, sweep: SweepFolder, points: Sequence[PointFolder], limits: Limits, given: tuple[int, list[str]]
    ) -> str:
        descriptor, more = given
        folder = _new_folder(sweep)
        (folder / "indexes.txt").write_text("".join(f"{point.id}\n" for point in points), encoding="ascii")
        planned_s = [float((read_object(point.point_file) or {}).get("planned_s") or 0.0) for point in points]
        options = replace(self.options, exclude=self._excluded(sweep))
        words, text = self._script(sweep, folder, planned_s, limits, options)
        (folder / "job.sh").write_text(text, encoding="utf-8")

        def known() -> str:
            jobs = [job for job in self._jobs(sweep) if job.place == folder.name]
            return jobs[0].number if jobs else ""

        return self._hand_over(sweep, folder, [*words, *more], (descriptor, known))

    def _hand_over(
        self, sweep: SweepFolder, folder: Path, words: Sequence[str], given: tuple[int, Callable[[], str]]
    ) -> str:
        """Submits the job.sh of a folder and notes its number, which it gives."""
        descriptor, known = given
        number = self.client.submit([*words, str(folder.resolve() / "job.sh")], known, descriptor)
        comment = f"{sbatch.tag(sweep)}:{folder.name}"
        write_state(folder / "submitted.json", {"format": 1, "job": number, "comment": comment, "utc": utc_now()})
        return number

    def _script(
        self,
        sweep: SweepFolder,
        folder: Path,
        planned_s: Sequence[float],
        limits: Limits,
        options: SlurmOptions | None = None,
    ) -> tuple[list[str], str]:
        options = options or self.options
        words = sbatch.array_words(sweep, folder, len(planned_s), options.max_parallel)
        words += sbatch.request_words(options, planned_s)
        return words, sbatch.script(sweep, folder, options, limits, words)

    def _excluded(self, sweep: SweepFolder) -> str:
        """The nodes to avoid: those given, and those that lost attempts while most others did not."""
        lost = [node for node, count in states.lost_on_nodes(sweep).items() if count >= LOSSES]
        known = set(self.client.ask("sinfo", "-h", "-N", "-o", "%N").split()) if lost else set()
        bad = sorted(set(lost) & known)
        if not bad or 2 * len(bad) > len(known):
            return self.options.exclude
        self.say(f"{', '.join(bad)} lost {LOSSES} attempts or more: the next jobs avoid it")
        return ",".join([self.options.exclude, *bad] if self.options.exclude else bad)

    def afterwards(self, sweep: SweepFolder, argv: Sequence[str]) -> str:
        """Submits a job that runs `argv` once all jobs of this sweep have ended; gives its number."""
        sweep.jobs.mkdir(parents=True, exist_ok=True)
        with _submitter_lock(sweep) as descriptor:
            numbers = sorted({job.number for job in self._jobs(sweep)}, key=int)
            folder = _new_folder(sweep)
            options = replace(self.options, exclusive=False, nodes=1, gres="", time="auto", max_parallel=0)
            words = [word for word in sbatch.array_words(sweep, folder, 1, 0) if not word.startswith("--array")]
            words = [word.replace("%A_%a", "%j") for word in words] + sbatch.request_words(options, ())
            words += [f"--dependency=afterany:{':'.join(numbers)}"] if numbers else []
            text = "#!/bin/bash\n" + sbatch.command_line(argv) + "\n"
            (folder / "job.sh").write_text(text, encoding="utf-8")
            return self._hand_over(sweep, folder, words, (descriptor, lambda: ""))

    def _jobs(self, sweep: SweepFolder) -> list[Job]:
        """The jobs of this sweep that Slurm has not finished with. Raises ExecutorError where it does not answer."""
        words = ["-h", "-r", "-u", str(os.getuid()), "-n", sbatch.job_name(sweep), "-o", "%F|%K|%T|%r|%k"]
        found = []
        for line in self.client.ask("squeue", *words).splitlines():
            number, index, state, reason, comment = (line.split("|", 4) + [""] * 5)[:5]
            mark, _, place = comment.strip().partition(":")
            if mark == sbatch.tag(sweep):
                found.append(Job(number, int(index) if index.isdigit() else None, place, state, reason))
        return found

    def _live(self, sweep: SweepFolder) -> dict[str, Job]:
        """The job that holds a point, by the point's id."""
        found = {}
        lists: dict[str, list[str]] = {}
        for job in self._jobs(sweep):
            if job.index is not None:
                ids = lists.setdefault(job.place, _ids(sweep.jobs / job.place))
                if job.index < len(ids):
                    found[ids[job.index]] = job
        return found

    def states(self, sweep: SweepFolder) -> dict[str, State]:
        """The state of each written point: from done.json, the queue, the newest attempt, the submissions.

        Raises ExecutorError where the queue cannot be asked and a point is not done.
        """
        points = sweep.points()
        if all(states.status(point).state is State.DONE for point in points):
            return {point.id: State.DONE for point in points}
        live = self._live(sweep)  # before the files: who ends in between is found in them
        self._say_why(live)
        submitted = _submitted(sweep)
        found = {}
        for point in points:
            state = states.status(point).state
            if state is not State.DONE and point.id in live:
                state = _state_of(live[point.id], state)
            elif state == State.PLANNED and point.id in submitted:
                state = submitted[point.id]
            found[point.id] = state
        return found

    def _say_why(self, live: dict[str, Job]) -> None:
        """Says once why jobs wait, where they need somebody: held, a drained node, an impossible dependency."""
        for job in live.values():
            if job.state == "PENDING" and job.reason not in (*USUAL, *self._seen_reasons):
                self._seen_reasons.add(job.reason)
                self.say(f"job {job.number} waits: {job.reason}; try: scontrol show job {job.number}")

    def _release(self, sweep: SweepFolder) -> None:
        """Lets jobs go that Slurm holds because it could not start them; their wrappers see to it that one runs."""
        for job in self._jobs(sweep):
            name = job.number if job.index is None else f"{job.number}_{job.index}"
            if job.reason == HELD and self._released[name] < RELEASES:
                self._released[name] += 1
                self.client.ask("scontrol", "release", name)

    def wait(self, sweep: SweepFolder, changed: Callable[[], object]) -> None:
        """Waits until no point is queued or running. Raises ExecutorError where Slurm stays silent; the jobs go on."""
        before: dict[str, State] = {}
        pause = self.options.poll_s
        while True:
            now = self.states(sweep)
            if before and now != before:
                changed()
                pause = self.options.poll_s
            if not {State.SUBMITTED, State.RUNNING} & set(now.values()):
                return
            before = now
            if HELD in self._seen_reasons:
                self._release(sweep)
            time.sleep(pause)
            pause = min(SLOWEST_POLL_S, pause * 1.2)

    def hold_back(self, sweep: SweepFolder) -> tuple[str, ...]:
        """scancel of the elements that wait; a job that collects afterwards stays."""
        waiting = {point: job for point, job in self._live(sweep).items() if job.state == "PENDING"}
        numbers = _noted(sweep, waiting.values())
        self._scancel(sweep, numbers, "--state=PENDING")
        begun = self._live(sweep) if numbers else {}  # between the two looks
        return tuple(sorted(point for point, job in waiting.items() if job.number in numbers and point not in begun))

    def cancel(self, sweep: SweepFolder) -> tuple[str, ...]:
        """scancel of the jobs whose comment names this folder, and whose number is the one that sbatch gave."""
        live = self._live(sweep)
        numbers = _noted(sweep, self._jobs(sweep))
        ended = tuple(sorted(point for point, job in live.items() if job.number in numbers))
        for point in ended:
            states.mark_cancelled(sweep.point(point))
        self._scancel(sweep, numbers)
        return ended

    def _scancel(self, sweep: SweepFolder, numbers: Mapping[str, str], *words: str) -> None:
        for number, place in numbers.items():
            (sweep.jobs / place / "cancelled").touch()
            self.client.ask("scancel", *words, number)


def states_without_queue(sweep: SweepFolder) -> dict[str, State]:
    """The states as the files alone know them: what was submitted and not begun may still wait for its turn."""
    waiting = {point for point, state in _submitted(sweep).items() if state is State.LOST}
    found = {point.id: states.status(point).state for point in sweep.points()}
    return {
        point: State.SUBMITTED if state is State.PLANNED and point in waiting else state
        for point, state in found.items()
    }


def _state_of(job: Job, by_files: State) -> State:
    """The state of a point that a job holds. A job that is being cleaned up has no more to say than the files."""
    if job.state == "COMPLETING" and by_files not in (State.PLANNED, State.RUNNING, State.LOST):
        return by_files
    return State.RUNNING if job.state in RUNNING else State.SUBMITTED


def _noted(sweep: SweepFolder, jobs: Iterable[Job]) -> dict[str, str]:
    """The jobs whose number is the one that sbatch gave, with their places."""
    found = {}
    for job in jobs:
        known = read_object(sweep.jobs / job.place / "submitted.json")
        if known is None or known.get("job") == job.number:
            found[job.number] = job.place
    return found


def _submitter_lock(sweep: SweepFolder) -> contextlib.AbstractContextManager[int]:
    """One submitter of a sweep at a time; sbatch holds the lock, too, should this process be killed."""
    return file_lock(sweep.jobs / ".lock", is_needed=False)


def _new_folder(sweep: SweepFolder) -> Path:
    numbers = [int(path.name) for path in sweep.jobs.iterdir() if path.name.isdigit()]
    folder = sweep.jobs / f"{max(numbers, default=0) + 1:03d}"
    folder.mkdir()
    return folder


def _ids(folder: Path) -> list[str]:
    try:
        return (folder / "indexes.txt").read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def _submitted(sweep: SweepFolder) -> dict[str, State]:
    """The points of all submissions: CANCELLED or, as their job has vanished without an attempt, LOST."""
    found: dict[str, State] = {}
    for folder in sorted(path for path in sweep.jobs.glob("[0-9]*") if (path / "submitted.json").exists()):
        state = State.CANCELLED if (folder / "cancelled").exists() else State.LOST
        found.update(dict.fromkeys(_ids(folder), state))
    return found
