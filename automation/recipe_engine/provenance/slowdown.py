"""``cm diff script A B --max_slowdown=5%``: whether B is slower than A by more than is allowed, for pipelines. Pure.

A side has one or several results of a name: repeats of one measurement. With 3 or more on both sides, B is slower if
its values are worse than those of A, made worse by the allowed part, and chance does not explain it: the exact
one-sided test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947), ties by midranks, corrected for the
number of metrics by Holm's method (Scandinavian Journal of Statistics 6, 1979). With fewer, a difference counts only
beyond the spread that the results themselves recorded. Without one the answer is unknown.

A median far beyond the limit (`far_percent`) without proof is unknown, not "no slowdown", unless the same test calls it
plain chance (`PLAIN_CHANCE`). Equal sides on a quiet machine are ok because their medians are near, on a noisy one
mostly because of that test.

The causes of slower results (other programs, heat) speak against one verdict only: if A was slowed down more, B may be
slower than it seems, but never faster. With repeats, those that make one side busier than the other are left out, while
3 of each side remain.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from ..rules.amounts import counted
from .record import Quantity, ResultRecord, is_number, percent_more, reasons_by_side

MIN_REPEATS, MAX_REPEATS = 3, 30
"""Repeats that the test needs, and those whose ranks are counted exactly (this project's choice)."""
CHANCE = 0.01
"""The greatest probability that any of the metrics differs by chance. A few repeats cannot reach it: 3 of each side
reach 0.05, 4 reach 0.014, 5 reach 0.004. There all values of B must be worse than all of A."""
FAR_SPREADS = 3.0
"""With so few repeats a difference counts only beyond so many times the spreads (half the range) of both sides (this
project's choice). Two sweeps of the same server with 3 repeats, on a machine at 95 % load, had four metrics of 28 with
all of B worse than all of A by more than 5 %, at up to 2.4 times. A real slowdown of 30 % was at 2 to 16 times
(2026-11-28)."""
FAR_TIMES, FAR_POINTS, MUCH_POINTS = 2.0, 5.0, 35.0
"""A worse median without proof is ok up to twice the allowed percent (at least 5 percentage points more), and above
only as plain chance. With 35 percentage points more it is never ok (this project's choice)."""
PLAIN_CHANCE = 0.2
"""The lowest probability of plain chance, for all metrics together by Bonferroni's correction (this project's choice).
tests/engine/test_slowdown_rates.py counts the verdicts on equal and unequal sides."""
MAX_LEVEL_DIFFERENCE_PERCENT = 5.0
"""Percentage points between the means of a cause on both sides, up to which they count as alike (this project's
choice, as in interference.py of crowdperf)."""
MAX_PERCENT, UNKNOWN_PERCENT = 100.0, 1e6
"""The highest level of a cause, and the level of one that has an amount without percent."""
MAX_SCORE_LOSS_PERCENT = 1.0
"""How much a score may lose: MLPerf's quality target of most benchmarks is 99 % of the reference."""

_DIGEST = re.compile(r"-[0-9a-f]{8}(?=/)")
State = Literal["ok", "slower", "unknown"]
UNPROVEN = "far worse than {:g} %, but the spread of the repeats is too wide to prove it"
EXIT_CODES: Mapping[State, int] = {"ok": 0, "slower": 1, "unknown": 2}


class Judged(NamedTuple):
    """One metric of one result. worse_percent: how much worse the median of B is, negative if it is better. chance: of
    the test, None without one. slowed_by: the causes that slowed the sides down. doubted: the verdicts that they speak
    against."""

    name: str
    metric: str
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    worse_percent: float | None
    state: State
    reason: str
    chance: float | None = None
    slowed_by: str = ""
    doubted: tuple[State, ...] = ()

    @property
    def title(self) -> str:
        """The metric with its unit."""
        return f"{self.metric}, {self.unit}" if self.unit else self.metric


@lru_cache(maxsize=64)
def _ways(ranks: tuple[int, ...], chosen: int) -> Mapping[int, int]:
    """The sums of so many of the ranks, each with its number of ways."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(chosen))]
    for rank in ranks:
        for taken in range(chosen, 0, -1):
            for total, count in ways[taken - 1].items():
                ways[taken][total + rank] = ways[taken].get(total + rank, 0) + count
    return ways[-1]


def chance_of(before: Sequence[float], after: Sequence[float]) -> float:
    """The probability that ranks as high as those of `after`, or higher, come by chance; values: more is worse."""
    pooled = sorted((*before, *after))
    doubled = {value: 2 * pooled.index(value) + pooled.count(value) + 1 for value in pooled}  # midrank times two
    ways = _ways(tuple(doubled[value] for value in pooled), len(after))
    observed = sum(doubled[value] for value in after)
    return sum(count for total, count in ways.items() if total >= observed) / math.comb(len(pooled), len(after))


def far_percent(allowed_percent: float) -> float:
    """The highest percent of a worse median without proof that is ok in any case."""
    return max(FAR_TIMES * allowed_percent, allowed_percent + FAR_POINTS)


def _worse_percent(before: float, after: float, is_more_better: bool) -> float | None:
    change = percent_more(before, after)
    return -change if change and is_more_better else change


def _reasons(sides: Sequence[Sequence[Quantity]], are_repeats: bool) -> str:
    """Why a metric says nothing, each reason once with its sides."""
    kinds = ("not_judged",) if are_repeats else ("not_judged", "not_judged_alone")
    reasons = reasons_by_side(
        [reason for one in side for kind in kinds for reason in getattr(one, kind)] for side in sides
    )
    return ", ".join(f"{reason} ({letters})" for reason, letters in reasons.items())


def _spread_percent(side: Sequence[Quantity]) -> float | None:
    """How far one side may be off: what its results recorded, or half the range of two."""
    known = [one.spread_percent for one in side if one.spread_percent is not None]
    values = [one.value for one in side]
    middle = median(values)
    if len(values) > 1 and middle:
        known.append((max(values) - min(values)) / 2 / abs(middle) * 100.0)
    return max(known, default=None)


def _state_alone(sides: Sequence[Sequence[Quantity]], worse: float, allowed: float) -> tuple[State, str]:
    """The verdict without enough repeats."""
    spreads = [_spread_percent(side) for side in sides]
    more = f"repeat each side {MIN_REPEATS} times or more"
    if None in spreads:
        return "unknown", f"single runs, and no spread was measured: {more}"
    spread = math.hypot(*(one for one in spreads if one is not None))
    if worse - spread > allowed:
        return "slower", f"beyond {allowed:g} % and the spread of {spread:.3g} %"
    if worse > allowed:
        return "unknown", f"within the spread of single runs ({spread:.3g} %): {more}"
    return "ok", ""


def _level(one: Quantity, words: str) -> float:
    """How much a cause slowed a result down: percent, UNKNOWN_PERCENT for an amount without percent."""
    found = [UNKNOWN_PERCENT if cause.percent is None else cause.percent
             for cause in one.slowed_by if cause.words == words]  # fmt: skip
    return max(found, default=0.0)


def _levels(sides: Sequence[Sequence[Quantity]]) -> dict[str, tuple[float, float]]:
    """How much each cause slowed both sides down: the means of A and of B."""
    causes = {cause.words for side in sides for one in side for cause in one.slowed_by}
    first, second = ({words: fmean(_level(one, words) for one in side) for words in causes} for side in sides)
    return {words: (first[words], second[words]) for words in sorted(causes)}


def _differing(sides: Sequence[Sequence[Quantity]]) -> dict[str, float]:
    """The causes that slowed the sides down differently: how much more B than A, in percentage points."""
    found = {words: after - before for words, (before, after) in _levels(sides).items()}
    return {words: more for words, more in found.items() if abs(more) > MAX_LEVEL_DIFFERENCE_PERCENT}


def _step(sides: Sequence[Sequence[Quantity]], words: str) -> tuple[int, int] | None:
    """The side and the place of the repeat to leave out next, so that both sides are more alike by a cause: the most
    slowed down one of the busier side or the least slowed down one of the other, from the side with more repeats. None
    if nothing helps."""
    levels = [[_level(one, words) for one in side] for side in sides]
    busier = int(fmean(levels[1]) > fmean(levels[0]))
    found = []
    for side, extreme in ((busier, max(levels[busier])), (1 - busier, min(levels[1 - busier]))):
        distance = abs(extreme - fmean(levels[side]))
        if len(levels[side]) > MIN_REPEATS and distance > 0.0:
            found.append((len(levels[side]), distance, side, levels[side].index(extreme)))
    return max(found)[2:] if found else None


def _alike(sides: Sequence[Sequence[Quantity]]) -> Sequence[Sequence[Quantity]]:
    """The repeats without those that make one side more slowed down than the other, all of them where that leaves
    fewer than MIN_REPEATS. Only the recorded causes decide, never the values, so that the choice favors no verdict."""
    kept = [list(side) for side in sides]
    while differing := _differing(kept):
        step = _step(kept, max(differing, key=lambda words: abs(differing[words])))
        if step is None:
            return sides
        del kept[step[0]][step[1]]
    return kept


def _doubts(sides: Sequence[Sequence[Quantity]]) -> tuple[str, tuple[State, ...]]:
    """The causes that slowed the sides down, in words, and the verdicts that they speak against."""
    against: set[State] = {"slower" if more > 0 else "ok" for more in _differing(sides).values()}
    if any(min(pair) > MAX_PERCENT for pair in _levels(sides).values()):
        against |= {"ok", "slower"}
    causes = [[str(cause) for one in side for cause in one.slowed_by] for side in sides]
    several = [f"{found[0]}{' and more' if len(set(found)) > 1 else ''} ({letter})"
               for letter, found in zip("AB", causes, strict=True) if found]  # fmt: skip
    return ", ".join(several), tuple(sorted(against))


def _with_doubts(one: Judged) -> Judged:
    """The verdict, unless a cause that slowed the sides down speaks against it."""
    if one.state == "unknown" or not one.slowed_by:
        return one
    if one.state in one.doubted:
        why = f"{one.slowed_by}: repeat both sides on a quiet or equally busy machine"
        return one._replace(state="unknown", reason=why)
    alike = "" if one.doubted else "both sides were slowed down alike: "
    return one._replace(reason=", ".join(filter(None, (one.reason, f"{alike}{one.slowed_by}"))))


def judge(name: str, metric: str, sides: Sequence[Sequence[Quantity]], allowed_percent: float) -> Judged:
    """The verdict on one metric alone, whose direction is known; sides: the results of A and of B, one or more each."""
    return _corrected([_judge(name, metric, sides, allowed_percent)], allowed_percent)[0]


def _judge(name: str, metric: str, sides: Sequence[Sequence[Quantity]], allowed_percent: float) -> Judged:
    """The verdict on one metric. One of a test is slower if the test can say so at all: `_corrected` decides."""
    are_repeats = min(map(len, sides)) >= MIN_REPEATS
    known, used = sides[0][0], _alike(sides) if are_repeats else sides
    before, after = (tuple(one.value for one in side) for side in used)
    is_more_better = known.higher_is_better is True
    worse = _worse_percent(median(before), median(after), is_more_better)
    chance: float | None = None
    if reasons := _reasons(sides, are_repeats):
        return Judged(name, metric, known.unit, before, after, worse, "unknown", reasons)
    if worse is None:
        return Judged(name, metric, known.unit, before, after, worse, "unknown", "the value of A is 0")
    if are_repeats:
        sign, part = (-1.0, -allowed_percent) if is_more_better else (1.0, allowed_percent)
        chance = chance_of([sign * value * (1 + part / 100) for value in before], [sign * value for value in after])
        is_slower = worse > allowed_percent
        state: State = "slower" if is_slower else "ok"
        reason = f"beyond {allowed_percent:g} %, by chance in {chance:.2g} of cases" if is_slower else ""
    else:
        state, reason = _state_alone(used, worse, allowed_percent)
    why = "left out, so that both sides were slowed down alike"
    left_out = [f"{len(side) - len(kept)} of {len(side)} repeats of {letter} {why}"
                for letter, side, kept in zip("AB", sides, used, strict=True) if len(kept) < len(side)]  # fmt: skip
    words = ", ".join([*filter(None, [reason]), *left_out])
    return Judged(name, metric, known.unit, before, after, worse, state, words, chance, *_doubts(used))


def _corrected(rows: Sequence[Judged], allowed_percent: float) -> list[Judged]:
    """The rows, with `slower` only where neither chance, by Holm's method, nor other load explains it."""
    tested = sorted((one for one in rows if one.chance is not None), key=lambda one: one.chance or 0.0)
    refused, doubtful = set[int](), set[int]()
    for place, one in enumerate(tested):
        limit = CHANCE / (len(tested) - place)
        lowest = _lowest_chance(one)
        if refused or (one.chance or 0.0) > max(limit, lowest):
            refused.add(id(one))
        elif lowest > limit and not _is_far(one, allowed_percent):
            doubtful.add(id(one))
    found = []
    for one in rows:
        if one.state == "slower" and id(one) in refused:
            found.append(_without_proof(one, allowed_percent, len(tested)))
        elif one.state == "slower" and id(one) in doubtful:
            n = min(len(one.before), len(one.after))
            why = f"{n} repeats are too few to rule out chance in {counted(len(tested), 'metric')}"
            found.append(one._replace(state="unknown", reason=why))
        else:
            found.append(one)
    return [_with_doubts(one) for one in found]


def _lowest_chance(one: Judged) -> float:
    """The chance if all values of B are worse than all of A."""
    return 1 / math.comb(len(one.before) + len(one.after), len(one.after))


def _without_proof(one: Judged, allowed_percent: float, metrics: int) -> Judged:
    """The verdict on a worse median beyond the limit that chance may explain."""
    worse, chance = one.worse_percent or 0.0, one.chance or 0.0
    is_plain_chance = chance > max(PLAIN_CHANCE / metrics, _lowest_chance(one))
    is_much = worse > allowed_percent + MUCH_POINTS
    if worse <= far_percent(allowed_percent) or (is_plain_chance and not is_much):
        return one._replace(state="ok", reason="within the spread of the repeats")
    return one._replace(state="unknown", reason=UNPROVEN.format(allowed_percent))


def _is_far(one: Judged, allowed_percent: float) -> bool:
    """Whether a difference is many times the spread of both sides, for repeats too few for the test."""
    middle = abs(median(one.before))
    ranges = sum((max(side) - min(side)) / 2 for side in (one.before, one.after))
    return (one.worse_percent or 0.0) - allowed_percent > FAR_SPREADS * ranges / middle * 100


def _judge_exact(name: str, metric: str, before: Any, after: Any) -> Judged | None:
    """A score must not lose more than MAX_SCORE_LOSS_PERCENT, and a true fact must stay true. None for others."""
    if isinstance(before, bool) and isinstance(after, bool):
        state: State = "slower" if before and not after else "ok"
        return Judged(name, metric, "", (before,), (after,), None, state, "no longer true" if state != "ok" else "")
    if not (is_number(before) and is_number(after)) or not before:
        return None
    loss = _worse_percent(before, after, is_more_better=True)
    is_worse = loss is not None and loss > MAX_SCORE_LOSS_PERCENT
    reason = f"lost more than {MAX_SCORE_LOSS_PERCENT:g} %" if is_worse else ""
    return Judged(name, metric, "", (before,), (after,), loss, "slower" if is_worse else "ok", reason)


def _unknown(name: str, reason: str) -> Judged:
    return Judged(name, "result", "", (), (), None, "unknown", reason)


def _judge_name(name: str, sides: Sequence[Sequence[ResultRecord]], allowed_percent: float) -> Iterator[Judged]:
    if (most := max(map(len, sides))) > MAX_REPEATS:
        yield _unknown(name, f"{most} results of one name, at most {MAX_REPEATS} are compared")
        return
    invalid = [letter for letter, side in zip("AB", sides, strict=True)
               if any(one.outcome.exact.get("valid") is False for one in side)]  # fmt: skip
    if invalid:
        yield _unknown(name, f"INVALID ({' and '.join(invalid)})")
        return
    if other := _other_data(sides):
        yield _unknown(name, f"A and B measured other {other}: give both the same")
        return
    values = [[{**one.outcome.within, **one.outcome.further} for one in side] for side in sides]
    for metric, quantity in values[0][0].items():
        if quantity.higher_is_better is None:
            continue  # informative: energy, cost
        found = [[row[metric] for row in side if metric in row] for side in values]
        if len(found[1]) < len(values[1]) or len(found[0]) < len(values[0]):
            yield _unknown(name, f"not every result has {metric}")
        else:
            yield _judge(name, metric, found, allowed_percent)
    first, second = ({key: [one.outcome.exact.get(key) for one in side] for key in side[0].outcome.exact}
                     for side in sides)  # fmt: skip
    for metric in first.keys() & second.keys() - {"valid"}:
        pairs = [_judge_exact(name, metric, first[metric][0], after) for after in second[metric]]
        known = [one for one in pairs if one is not None]
        yield from [one for one in known if one.state != "ok"][:1] or known[:1]


DATA_ORIGIN = "data"
"""The origin of a setting that is a digest of the measured data. Results with other data are never compared."""
CHOSEN_ORIGINS = ("user", "request", DATA_ORIGIN)
"""Origins of settings that make two results of one name different measurements, and not repeats of one."""


def repeats_by_name(sides: Sequence[Sequence[ResultRecord]]) -> list[dict[str, list[ResultRecord]]]:
    """The results of each side by name. Results of one name whose chosen settings differ, as those of a sweep, are told
    apart by these settings, on both sides."""
    differing: dict[str, set[str]] = {}
    for side in sides:
        known: dict[str, dict[str, str]] = {}
        for one in side:
            first = known.setdefault(one.name, _chosen(one))
            own = _chosen(one)
            names = {name for name in first.keys() | own.keys() if first.get(name) != own.get(name)}
            differing.setdefault(one.name, set()).update(names)
    found: list[dict[str, list[ResultRecord]]] = []
    for side in sides:
        found.append({})
        for one in side:
            own = _chosen(one)
            words = [f"{name}={own.get(name, 'default')}" for name in sorted(differing[one.name])]
            found[-1].setdefault(" ".join([one.name, *words]), []).append(one)
    return found


def _other_data(sides: Sequence[Sequence[ResultRecord]]) -> str:
    """The settings by which the data of A and B are known to differ, empty if there are none."""
    found: list[dict[str, set[str]]] = [{}, {}]
    for known, side in zip(found, sides, strict=True):
        for name, setting in (pair for one in side for pair in one.settings.items()):
            if setting.origin == DATA_ORIGIN:
                known.setdefault(name, set()).add(str(setting.value))
    first, second = found
    return ", ".join(sorted(name for name in first.keys() & second.keys() if first[name] != second[name]))


def _chosen(one: ResultRecord) -> dict[str, str]:
    """The settings of a result that somebody chose, but for places on the machine."""
    chosen = {name: one for name, one in one.settings.items() if one.origin in CHOSEN_ORIGINS}
    return {name: str(setting.value) for name, setting in chosen.items() if not name.endswith("_path")}


def _in_order(name: str) -> list[tuple[int, str]]:
    """What sorts names, with numbers by their value."""
    return [(int(word) if word.isdecimal() else -1, word) for word in re.split(r"(\d+)", name)]


def without_digest(name: str) -> str:
    """The name of a result without the digest of its model: `own-onnx-1a2b3c4d/Offline` is `own-onnx/Offline`."""
    return _DIGEST.sub("", name)


def _partner(name: str, sides: Sequence[Mapping[str, Sequence[ResultRecord]]]) -> str:
    """The name that B has for a result of A: the same, or that of the only other model, which replaces that of A."""
    if name in sides[1]:
        return name
    alone = [[one for one in side if one not in other and without_digest(one) == without_digest(name)]
             for side, other in (sides, sides[::-1])]  # fmt: skip
    return alone[1][0] if [len(one) for one in alone] == [1, 1] else name


def judge_all(sides: Sequence[Mapping[str, Sequence[ResultRecord]]], allowed_percent: float) -> list[Judged]:
    """All metrics of all results by name. A name that only A has is unknown, one that only B has is left out."""
    rows = []
    for key, before in sorted(sides[0].items(), key=lambda one: _in_order(one[0])):
        partner = _partner(key, sides)
        name, after = key if partner == key else without_digest(key), sides[1].get(partner)
        found = list(_judge_name(name, (before, after), allowed_percent)) if after else [_unknown(name, "missing in B")]
        rows += sorted(found, key=lambda one: one.metric) or [_unknown(name, "no metric that can be compared")]
    return _corrected(rows, allowed_percent)


def verdict(rows: Iterable[Judged]) -> State:
    """The worst of all: slower, else unknown, else ok."""
    states = {row.state for row in rows}
    return next((state for state in ("slower", "unknown") if state in states), "ok")


def fewest_repeats(metrics: int) -> int:
    """The lowest number of repeats of each side that can reach CHANCE among so many metrics."""
    counts = range(MIN_REPEATS, MAX_REPEATS)
    return next((n for n in counts if 1 / math.comb(2 * n, n) <= CHANCE / metrics), MAX_REPEATS)
