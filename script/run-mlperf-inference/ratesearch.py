"""`--find` for a server with the user's prompts: the highest rate at which Server is VALID within `--slo`.

Each try is a run of this recipe in its own folder, `try-01` and so on, at a rate that the rule of the harness's own
search chooses (crowdperf.harness.find.search). The first one is at the harness's conservative rate. A try is a whole
result, so that the last VALID one at the highest rate is the measurement.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import PASSED_ON_INPUTS, SCRIPT_AUTOMATION
from crowdperf.harness.find.search import HighestRate, Kind, Length, NotFound, Plan, Tried, Try, next_step
from crowdperf.kit.terminal import aligned
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.answer_metrics import values_of
from crowdperf.logs.layout import ResultsPaths
from crowdperf.rules.names import ExecutionMode, Mode, Scenario

from .basis import without_secrets
from .outcome import repeat_command
from .record import QUERY

FILE = "find.json"
OWN = (
    "find", "rate", "resume", "results_dir", "run_id", "scenario", "mode", "check", "min_duration_ms",
    "server_target_qps",
)  # fmt: skip
"""Inputs that the search sets for its tries."""
TOLERANCE = 0.05
"""The lowest rate that failed is at most so much above the one that is found (this project's choice): the rate of
requests at random moments in a short run is itself off by more."""
MAX_TRIES = 20
HIGHEST_RATE = 1e6
_FIRST = "the conservative rate of the harness"
_QUERIES = 100
"""Of a try. LoadGen's early stopping at the 90th percentile needs 44 without a late one (6.0.17)."""
_BOUNDS = {
    ExecutionMode.TEST: (600.0, 10.0),
    ExecutionMode.FAST: (1800.0, 30.0),
    ExecutionMode.VALID: (7200.0, 120.0),
}
"""The time for the whole search, and the shortest try, in s (this project's choice). A confirmation lasts three times
as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try as find.json has it. metrics: p90 of TTFT and TPOT, in ms. reasons: why it is INVALID."""

    run_id: str
    kind: str
    rate: float
    because: str
    is_valid: bool
    reasons: tuple[str, ...]
    metrics: Mapping[str, float]
    took_s: float

    @property
    def tried(self) -> Tried:
        """The try as the rule of the search reads it."""
        return Tried(self.rate, Kind(self.kind), self.is_valid)


@dataclass(slots=True)
class Search:
    """A search at work. base: the inputs of every try. access: CM's. say: prints a line."""

    folder: Path
    model: str
    base: Mapping[str, Any]
    access: Callable[[dict[str, Any]], dict[str, Any]]
    say: Callable[[str], None]

    def attempt(self, number: int, step: Try | None, length: Length) -> Attempt:
        """Makes a try; without `step` at the rate that the harness chooses. Raises TryFailed."""
        run_id, start_s = f"try-{number:02d}", time.monotonic()
        self.say(f"\nTry {number}: {_FIRST if step is None else f'{step.rate:g} requests/s ({step.why})'}")
        rate = {"scenario": Scenario.SERVER.value} if step is None else {"rate": f"{step.rate:g}"}
        seconds = {"min_duration_ms": str(round(length.seconds * 1000)), "min_query_count": str(length.queries)}
        call = {**self.base, **rate, **seconds, "action": "run", "automation": SCRIPT_AUTOMATION, "tags": QUERY,
                "quiet": True, "check": "no", "results_dir": str(self.folder), "run_id": run_id}  # fmt: skip
        answer = self.access(call)
        if answer["return"]:
            raise TryFailed({**answer, "error": f"{run_id}: {answer.get('error')}"})
        path = ResultsPaths(self.folder, run_id).run(self.model, Scenario.SERVER, Mode.PERFORMANCE).result_json
        result = read_object(path)
        if result is None:
            raise TryFailed({"return": 1, "error": f"{run_id} left no result: {path} cannot be read"})
        took_s = time.monotonic() - start_s
        return _attempt(run_id, step, result, took_s)


class TryFailed(Exception):
    """A try that did not finish. answer: CM's."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"])
        self.answer = answer


def _attempt(run_id: str, step: Try | None, result: Mapping[str, Any], took_s: float) -> Attempt:
    metrics = {f"{metric.title} {statistic}": value for metric, statistic, value in values_of(result.get("text") or {})
               if metric.title in ("TTFT", "TPOT") and statistic == "p90"}  # fmt: skip
    return Attempt(
        run_id=run_id,
        kind=(Kind.PROBE if step is None else step.kind).value,
        rate=float(result["run"]["target_qps"]["value"]),
        because=_FIRST if step is None else step.why,
        is_valid=result["valid"] is True,
        reasons=tuple(map(str, result.get("invalid_reasons") or ())),
        metrics=metrics,
        took_s=round(took_s, 1),
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds that the user gave. min_duration_ms, min_query_count: of a try. start_rate: of the first one."""

    mode: ExecutionMode
    min_duration_ms: int | None
    min_query_count: int | None
    start_rate: float | None


def plan_of(limits: Limits, first: Attempt | None = None) -> Plan:
    """The bounds of a search. first: the first try, whose rate is the estimate, and whose time beyond its length is
    the overhead of each try."""
    budget_s, seconds = _BOUNDS[limits.mode]
    if limits.min_duration_ms is not None:
        seconds = limits.min_duration_ms / 1000
    queries = limits.min_query_count or _QUERIES
    rate, took_s = (1.0, 0.0) if first is None else (first.rate, first.took_s)
    probe = Length(seconds, queries)
    return Plan(
        estimate=rate,
        highest=HIGHEST_RATE,
        tolerance=TOLERANCE,
        budget_s=budget_s,
        most_runs=MAX_TRIES,
        probe=probe,
        confirmation=Length(3 * seconds, 3 * queries),
        overhead_s=max(0.0, took_s - probe.at(rate)),
    )


def search(work: Search, limits: Limits) -> tuple[list[Attempt], HighestRate | NotFound]:
    """Makes the tries. Returns them with the end of the search. Raises TryFailed."""
    start_s = time.monotonic()
    begin = None if limits.start_rate is None else Try(limits.start_rate, Kind.PROBE, "the given rate")
    attempts = [work.attempt(1, begin, plan_of(limits).probe)]
    plan = plan_of(limits, attempts[0])
    while True:
        step = next_step(plan, [one.tried for one in attempts], time.monotonic() - start_s)
        if not isinstance(step, Try):
            return attempts, step
        length = plan.probe if step.kind is Kind.PROBE else plan.confirmation
        attempts.append(work.attempt(len(attempts) + 1, step, length))


def table_lines(attempts: list[Attempt]) -> Iterator[str]:
    """A row for each try, with the reasons of INVALID ones below."""
    titles = list(dict.fromkeys(title for one in attempts for title in one.metrics))
    rows = [("Try", "Requests/s", *(f"{title}, ms" for title in titles), "Verdict")]
    for one in attempts:
        metrics = (f"{one.metrics[title]:,.4g}" if title in one.metrics else "" for title in titles)
        rows.append((one.run_id, f"{one.rate:,.5g}", *metrics, "VALID" if one.is_valid else "INVALID"))
    yield from aligned(rows, frozenset(rows[0][1:-1]))
    yield from (f"{one.run_id}: {one.reasons[0]}" for one in attempts if one.reasons)


def _base(i: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that all tries have."""
    mapping = i["meta"]["input_mapping"]
    own = {mapping[name] for name in OWN}  # and their aliases
    names = [name for name in (*mapping, *PASSED_ON_INPUTS) if mapping.get(name) not in own]
    return {name: i["input"][name] for name in names if i["input"].get(name)}


def first_call(i: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the first try, for a plan. Those of the others have the same steps."""
    return {**_base(i), "scenario": Scenario.SERVER.value, "tags": QUERY, "quiet": True}


def make(i: dict[str, Any], model: str, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Searches, writes find.json and prints the tries. Returns CM's answer: an error if no rate is VALID."""
    values, base = i["values"], _base(i)
    mode = ExecutionMode.FAST if values["fast"] else ExecutionMode(values["execution_mode"])
    work = Search(folder, model, base, i["automation"].cmind.access, say)
    limits = Limits(mode, values["min_duration_ms"], values["min_query_count"], values["server_target_qps"])
    try:
        attempts, end = search(work, limits)
    except TryFailed as failed:
        return failed.answer
    found = end if isinstance(end, HighestRate) else None
    best = None if found is None else [one for one in attempts if one.is_valid and one.rate == found.rate][-1]
    content = {
        "rate": None if found is None else found.rate,
        "is_confirmed": found is not None and found.is_confirmed,
        "ended_because": end.why,
        "run_id": None if best is None else best.run_id,
        "slo": values["slo"],
        "tries": [{name: getattr(one, name) for name in one.__slots__} for one in attempts],
    }
    write_json(folder / FILE, {"format": 1, **content})
    i["state"]["mlperf_found"] = {Scenario.SERVER.value: content}
    say("\n".join(["", *table_lines(attempts), ""]))
    if found is None or best is None:
        return {"return": 1, "error": f"no rate was found within --slo={values['slo']}: {content['ended_because']}\n"
                "hint: give wider limits, or a lower --server_target_qps to start from"}  # fmt: skip
    sure = "confirmed by" if found.is_confirmed else f"not confirmed, as {found.why}: from"
    again = repeat_command(without_secrets({**base, "rate": f"{found.rate:g}"}))
    say(f"Highest rate within --slo={values['slo']}: {found.rate:g} requests/s, {sure} {folder / best.run_id}\n"
        f"Next: {again}")  # fmt: skip
    return {"return": 0}
