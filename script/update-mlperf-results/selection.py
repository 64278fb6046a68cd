"""Decides which runs a results folder keeps, and in which place each one goes. Pure.

old runs of the folder  ─┐
                          ├─ those that count, the best N ─ kept ones stay in their place, new ones rotate on
runs of the input       ─┘
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crowdperf.logs.result_rows import duration_shortage
from crowdperf.logs.run_facts import RunFacts
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.rounds import ROUNDS

from . import rules


@dataclass(frozen=True, slots=True, order=True)
class Configuration:
    """One model on one system in one scenario."""

    system: str
    benchmark: str
    scenario: str


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run of the new results: `slot` is run_1's 1, 0 for the accuracy run; `is_new` means it is copied there."""

    facts: RunFacts
    slot: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What one place shall hold.

    dropped: slots whose run is to go, each replaced by a new one. last_slot: the slot that was written last.
    """

    place: Configuration
    round_name: str
    performance: tuple[KeptRun, ...]
    accuracy: KeptRun | None
    wanted_count: int
    last_slot: int
    notes: tuple[str, ...] = field(default=())

    @property
    def missing(self) -> tuple[str, ...]:
        """What the round asks for and is not there."""
        found = []
        if len(self.performance) < self.wanted_count:
            have = f"{len(self.performance)} of {self.wanted_count}"
            found.append(f"performance runs that count: {have}")
        if self.accuracy is None:
            found.append("no accuracy run that is scored")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for: round_name is empty for the one of each log's seeds.

    may_be_synthetic: runs of synthetic input are copied, with their label.
    """

    round_name: str = ""
    category: str = ""
    may_be_synthetic: bool = False


def refusal(facts: RunFacts, round_name: str) -> str:
    """Why a run does not count; empty when it does."""
    if facts.run.mode is Mode.ACCURACY:
        if facts.is_valid is False:
            return "; ".join(facts.reasons) or "LoadGen logged errors"
        return "" if facts.scores else "it has no accuracy.txt (cm run script --tags=process,mlperf,accuracy)"
    if facts.is_valid is not True:
        return f"it is INVALID: {'; '.join(facts.reasons)}" if facts.reasons else "LoadGen did not call it VALID"
    if facts.log is not None and facts.log.mode is not Mode.PERFORMANCE:
        return "its log is of an accuracy run"
    if facts.log is not None and facts.log.scenario is not facts.run.scenario.issued_as:
        return f"its log is of {facts.log.scenario.value}"
    if facts.figure is None:
        return "its log has no value for this scenario"
    return duration_shortage(facts, round_name) or rules.query_shortage(facts, round_name)


def place_of(facts: RunFacts, system: str) -> Configuration:
    """The place of a run on a system of this name."""
    return Configuration(system, facts.run.model, facts.run.scenario.value)


def with_high_accuracy(pools: Mapping[Configuration, Sequence[RunFacts]]) -> dict[Configuration, list[RunFacts]]:
    """The runs of each place; those of the level 99.9 where the level 99 may use them and they exist."""
    found = {}
    for place, runs in pools.items():
        better = replace(place, benchmark=place.benchmark + ".9")
        may_share = rules.serves_higher_level(place.benchmark) and better in pools
        found[place] = list(pools[better]) if may_share else list(runs)
    return found


def _unique(runs: Iterable[RunFacts]) -> list[RunFacts]:
    """Without second copies of one run."""
    return list({facts.detail_sha256: facts for facts in runs}.values())


def _order(facts: RunFacts) -> tuple[str, str, str]:
    return facts.started, facts.run.group, facts.run.relative.as_posix()


def _slots(
    best: Sequence[RunFacts], old: Mapping[int, RunFacts], wanted_count: int, last_slot: int
) -> tuple[tuple[KeptRun, ...], int]:
    """The slot of each of the best runs, and the slot written last: new ones go on behind it, in a circle."""
    digests = {facts.detail_sha256 for facts in best}
    kept = {slot: facts for slot, facts in old.items() if facts.detail_sha256 in digests and slot <= wanted_count}
    have = {facts.detail_sha256 for facts in kept.values()}
    circle = [(last_slot + step) % wanted_count + 1 for step in range(wanted_count)]
    free = [slot for slot in circle if slot not in kept]
    placed = [KeptRun(facts, slot, False) for slot, facts in kept.items()]
    for facts in sorted((facts for facts in best if facts.detail_sha256 not in have), key=_order):
        last_slot = free.pop(0)
        placed.append(KeptRun(facts, last_slot, True))
    return tuple(sorted(placed, key=lambda found: found.slot)), last_slot


def choose(
    place: Configuration, found: Sequence[RunFacts], old: Mapping[int, RunFacts], last_slot: int, request: Request
) -> Choice:
    """What ``place`` shall hold. old: the runs that an earlier update put there, by slot, 0 the accuracy run."""
    rounds = [facts.round_name for facts in (*found, *old.values()) if facts.run.mode is Mode.PERFORMANCE]
    round_name = request.round_name or max(rounds, key=ROUNDS.index, default=ROUNDS[-1])
    notes, counted = [], []
    for facts in _unique([*found, *old.values()]):
        reason = refusal(facts, round_name)
        if reason:
            notes.append(f"left out {facts.run.relative.as_posix()}: {reason}")
        else:
            counted.append(facts)
    performance = [facts for facts in counted if facts.run.mode is Mode.PERFORMANCE]
    wanted_count = rules.kept_count(round_name, Scenario(place.scenario))
    old_runs = {slot: facts for slot, facts in old.items() if slot}
    known = {facts.detail_sha256 for facts in old_runs.values()}
    best = sorted(
        performance,
        key=lambda facts: (rules.merit(facts, round_name), facts.detail_sha256 in known, _order(facts)),
        reverse=True,
    )[:wanted_count]
    placed, last_slot = _slots(best, old_runs, wanted_count, last_slot)
    accuracy_runs = sorted((facts for facts in counted if facts.run.mode is Mode.ACCURACY), key=_order)
    accuracy = None
    if accuracy_runs:
        last = accuracy_runs[-1]
        accuracy = KeptRun(last, 0, 0 not in old or old[0].detail_sha256 != last.detail_sha256)
    return Choice(
        place=place,
        round_name=round_name,
        performance=placed,
        accuracy=accuracy,
        wanted_count=wanted_count,
        last_slot=last_slot,
        notes=tuple(notes),
    )
