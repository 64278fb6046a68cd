"""Makes what is missing of a sweep: writes its points, starts them, starts again what was lost, collects as it goes."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.records import Record
from crowdperf.kit.whole_file import read_object, write_once
from crowdperf.rules.names import counted
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.folder import PointFile, PointFolder, State, SweepFolder
from crowdperf.sweeps.planning import Plan

UNDER_WAY = (State.SUBMITTED, State.RUNNING)
AGAIN = (State.INTERRUPTED, State.LOST)
"""What is tried again: the point's program is not the reason."""
COLLECT_EVERY_S = 10.0


class FolderInUse(Exception):
    """Another call works in the sweep's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What a call does beside starting points that have none of a result.

    rerun: which others it makes again (failed, invalid, lost; all). retries: how often one that was interrupted or lost
    is begun again. stops: no further point after one that failed. waits: until all are over. at_once: how many are
    handed over together; None: all.
    """

    rerun: tuple[str, ...] = ()
    retries: int = 1
    stops: bool = False
    waits: bool = True
    at_once: int | None = None


def locked(folder: Path) -> contextlib.AbstractContextManager[int]:
    """Keeps other calls out of a sweep's folder, which is made. Raises FolderInUse and OSError."""
    return file_lock(folder / ".lock", FolderInUse(f"another run is using {folder}"))


def read_plan(sweep: SweepFolder) -> Plan:
    """What plan.json says; nothing where there is no such file, or a damaged one."""
    record = Record(read_object(sweep.plan_file) or {})
    found = record.filled(Plan, is_open=True)
    return Plan() if found is None or record.problems else found


def write_point(folder: PointFolder, content: PointFile) -> None:
    """Writes point.json unless it is there: what a point is never changes. Raises OSError."""
    if folder.point_file.exists():
        return
    folder.path.mkdir(parents=True, exist_ok=True)
    write_once(folder.point_file, (json.dumps(content, indent=1) + "\n").encode())


def to_start(states: Mapping[str, State], ids: Sequence[str], rerun: Sequence[str]) -> list[str]:
    """The points that a call begins: without a result, or named by `rerun`. Those under way are left alone."""
    again = {State.PLANNED, State.CANCELLED, *AGAIN}
    again |= {State(word) for word in rerun if word != "all"}
    if "all" in rerun:
        again |= {State.FAILED, State.INVALID}
    return [each for each in ids if states.get(each, State.PLANNED) in again]


def exit_code(states: Mapping[str, State], ids: Sequence[str]) -> int:
    """0: all are done; 2: one is over and has no valid result; 3: one is under way."""
    found = {states.get(each, State.PLANNED) for each in ids}
    if found & set(UNDER_WAY):
        return 3
    return 0 if found <= {State.DONE} else 2


@dataclass(slots=True)
class Sweep:
    """A sweep at work.

    collect: writes sweep.json and its kin from the states. say: gets lines for people. started: called once points have
    been handed over.
    """

    folder: SweepFolder
    executor: Executor
    conduct: Conduct
    collect: Callable[[Mapping[str, State]], None]
    say: Callable[[str], None]
    started: Callable[[], None] = lambda: None
    _collected_s: float = float("-inf")
    _told: dict[str, State] = field(default_factory=dict)

    def run(self, ids: Sequence[str]) -> dict[str, State]:
        """Starts what is missing of the points `ids` and gives their states. Raises what the executor raises."""
        states = self.executor.states(self.folder)
        left = to_start(states, ids, self.conduct.rerun)
        kept = sum(states.get(each) is State.DONE for each in ids)
        self._told = dict(states)
        others = len(ids) - kept - len(left)
        self.say(f"{counted(len(ids), 'point')}: {kept} kept, {len(left)} to run, {others} left as they are")
        try:
            for tries_left in range(self.conduct.retries, -1, -1):
                if left:
                    self._start(left)
                if self.conduct.waits:
                    self.executor.wait(self.folder, self._changed)
                states = self.executor.states(self.folder)
                left = [each for each in ids if states.get(each) in AGAIN]
                if not left or not tries_left or not self.conduct.waits or self._has_to_stop(states, ids):
                    break
                self.say(f"again, because they were interrupted or lost: {', '.join(left)}")
        finally:
            states = self.executor.states(self.folder)
            self.collect(states)
        return states

    def _start(self, left: Sequence[str]) -> None:
        """Hands the points over: all at once, or so many at a time where the executor runs them itself."""
        at_once = self.conduct.at_once or len(left)
        states = self._told
        for begin in range(0, len(left), at_once):
            part = left[begin : begin + at_once]
            if begin and (why := self._reason_to_stop(states, left[:begin], left)):
                self.say(f"stopped: {counted(len(left) - begin, 'point')} not started ({why})")
                return
            if self.conduct.at_once:
                self.say(f"point {begin + 1} of {len(left)}: {', '.join(part)}")
            self.executor.start(self.folder, [self.folder.point(each) for each in part])
            states = self._changed()
            if begin + at_once >= len(left):
                self.started()

    def _reason_to_stop(self, states: Mapping[str, State], begun: Sequence[str], ids: Sequence[str]) -> str:
        """Why no further point is to be begun here; empty where nothing speaks against it."""
        if any(states.get(each) is State.CANCELLED for each in begun):
            return "the sweep was cancelled"
        return "--on_failure=stop" if self._has_to_stop(states, ids) else ""

    def _has_to_stop(self, states: Mapping[str, State], ids: Sequence[str]) -> bool:
        return self.conduct.stops and any(states.get(each) in (State.FAILED, State.INVALID) for each in ids)

    def _changed(self) -> dict[str, State]:
        """Collects what there is, not more often than worth it, and holds the rest back where a failure stops all."""
        states = self.executor.states(self.folder)
        over = [each for each, state in states.items() if state not in UNDER_WAY and state is not State.PLANNED]
        for each in over:
            if self._told.get(each) is not states[each]:
                self.say(f"  {each}: {states[each].value} ({len(over)} of {len(states)} are over)")
        self._told = states
        stops = self.conduct.at_once is None and self._has_to_stop(states, list(states))
        if stops and (held := self.executor.hold_back(self.folder)):
            self.say(f"stopped: {counted(len(held), 'point')} not started (--on_failure=stop)")
        if time.monotonic() - self._collected_s >= COLLECT_EVERY_S:
            self.collect(states)
            self._collected_s = time.monotonic()
        return states
