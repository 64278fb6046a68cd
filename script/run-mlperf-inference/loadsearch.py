"""`--find` for a server with the user's prompts: the highest load at which its answers are within `--slo`.

--find=rate           Server: the highest rate at which LoadGen's verdict is VALID (also --find=yes)
--find=concurrency    Offline with --concurrency: the most requests in flight at which p90 of TTFT and TPOT, by the
                      client's clock, are within the limits

Each try is a run of this recipe in its own folder, `try-01` and so on, at a load that the rule of the harness's own
search chooses (crowdperf.harness.find.search). The first rate is the harness's conservative one, the first concurrency
is 1. A try is a whole result, so that the last one that passed at the highest load is the measurement.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.connections import most_connections
from crowdperf.call.recipe_calls import Access, RecipeFailed, given_inputs, run_recipe
from crowdperf.data.given_prompts import parse_slo
from crowdperf.harness.find.search import HighestRate, Kind, Length, NotFound, Plan, Tried, Try, next_step
from crowdperf.kit.terminal import aligned
from crowdperf.kit.text_documents import part
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.answer_metrics import values_of
from crowdperf.logs.layout import ResultsPaths
from crowdperf.rules.names import ExecutionMode, Mode, Scenario

from .loads import SCENARIOS, searched
from .outcome import repeat_command
from .reading import QUERY

FILE = "find.json"
OWN = (
    "find", "rate", "concurrency", "resume", "results_dir", "run_id", "scenario", "mode", "check", "min_duration_ms",
    "server_target_qps",
)  # fmt: skip
"""Inputs that the search sets for its tries. Also `max_in_flight` in a search for the highest concurrency."""
UNITS = {"rate": "requests/s", "concurrency": "requests in flight"}
_HEADINGS = {"rate": "Requests/s", "concurrency": "In flight"}
_LIMITS = {"TTFT p90": "ttft_ms", "TPOT p90": "tpot_ms"}
"""Metrics of a try with the limit of each, as `parse_slo` has it."""
TOLERANCE = 0.05
"""The lowest load that failed is at most so much above the one that is found (this project's choice): the rate of
requests at random moments in a short run is itself off by more. Of two successive whole numbers no more is asked."""
MAX_TRIES = 20
HIGHEST_RATE = 1e6
_HIGHEST_CONCURRENCY = 16384
_FIRST = "the conservative rate of the harness"
_QUERIES = 100
"""Of a try. LoadGen's early stopping at the 90th percentile needs 44 without a late one (6.0.17)."""
_ROUNDS = 4
"""Requests of a try for each one in flight: at most a quarter of them begin together (this project's choice)."""
_BOUNDS = {
    ExecutionMode.TEST: (600.0, 10.0),
    ExecutionMode.FAST: (1800.0, 30.0),
    ExecutionMode.VALID: (7200.0, 120.0),
}
"""The time for the whole search, and the shortest try, in s (this project's choice). A confirmation lasts three times
as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try. value: requests/s, or requests in flight. metrics: p90 of TTFT and TPOT, in ms. is_valid: whether the
    load passed. reasons: why it did not."""

    run_id: str
    kind: str
    value: float
    because: str
    is_valid: bool
    reasons: tuple[str, ...]
    metrics: Mapping[str, float]
    took_s: float

    @property
    def tried(self) -> Tried:
        """The try as the rule of the search reads it."""
        return Tried(self.value, Kind(self.kind), self.is_valid)

    def record(self, load: str) -> dict[str, Any]:
        """The try as find.json has it."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {load if name == "value" else name: value for name, value in row.items()}


@dataclass(slots=True)
class Search:
    """A search at work. load: rate or concurrency. limits: of --slo. base: the inputs of every try. access: CM's. say:
    prints a line."""

    folder: Path
    model: str
    load: str
    limits: Mapping[str, float]
    base: Mapping[str, Any]
    access: Access
    say: Callable[[str], None]

    def attempt(self, number: int, step: Try | None, length: Length) -> Attempt:
        """Makes a try; without `step` at the rate that the harness chooses. Raises RecipeFailed."""
        run_id, start_s = f"try-{number:02d}", time.monotonic()
        self.say(f"\nTry {number}: {_FIRST if step is None else f'{step.rate:g} {UNITS[self.load]} ({step.why})'}")
        scenario = SCENARIOS[self.load]
        load = {"scenario": scenario.value} if step is None else {self.load: f"{step.rate:g}"}
        queries = length.queries
        if self.load == "concurrency" and step is not None:
            queries = max(queries, _ROUNDS * int(step.rate))
        seconds = {"min_duration_ms": str(round(length.seconds * 1000)), "min_query_count": str(queries)}
        call = {**self.base, **load, **seconds, "tags": QUERY, "check": "no", "results_dir": str(self.folder)}
        try:
            run_recipe(self.access, {**call, "run_id": run_id})
        except RecipeFailed as failed:
            raise RecipeFailed({**failed.answer, "error": f"{run_id}: {failed}"}) from None
        path = ResultsPaths(self.folder, run_id).run(self.model, scenario, Mode.PERFORMANCE).result_json
        result = read_object(path)
        if result is None:
            raise RecipeFailed({"return": 1, "error": f"{run_id} left no result: {path} cannot be read"})
        return self._attempt(run_id, step, result, round(time.monotonic() - start_s, 1))

    def _attempt(self, run_id: str, step: Try | None, result: Mapping[str, Any], took_s: float) -> Attempt:
        """What a result says of its load. Raises RecipeFailed if it does not say whether the limits were met."""
        text = result.get("text") or {}
        measured = {f"{metric.title} {statistic}": value for metric, statistic, value in values_of(text)}
        metrics = {name: measured[name] for name in _LIMITS if name in measured}
        is_valid, reasons = result["valid"] is True, tuple(map(str, result.get("invalid_reasons") or ()))
        if self.load == "concurrency" and is_valid and step is not None:
            reasons = self._beyond(run_id, int(step.rate), metrics, part(text, "engine", "counts", "peak_in_flight"))
            is_valid = not reasons
        return Attempt(
            run_id=run_id,
            kind=(Kind.PROBE if step is None else step.kind).value,
            value=step.rate if step is not None else float(result["run"]["target_qps"]["value"]),
            because=_FIRST if step is None else step.why,
            is_valid=is_valid,
            reasons=reasons,
            metrics=metrics,
            took_s=took_s,
        )

    def _beyond(self, run_id: str, wanted: int, metrics: Mapping[str, float], peak: Any) -> tuple[str, ...]:
        """What is beyond a limit. Raises RecipeFailed if a metric was not measured, or the load not reached."""
        if missing := [name for name in _LIMITS if name not in metrics]:
            error = (
                f"{run_id} measured no {' and no '.join(missing)}: the server has to stream its answers, of two tokens "
                "or more"
            )
            raise RecipeFailed({"return": 1, "error": error})
        if isinstance(peak, int) and peak < wanted:
            error = f"{run_id} had at most {peak:,} of {wanted:,} requests in flight: omit --min_query_count"
            raise RecipeFailed({"return": 1, "error": error})
        return tuple(
            f"{name} {metrics[name]:,.4g} ms is beyond the limit of {self.limits[key]:g} ms"
            for name, key in _LIMITS.items()
            if metrics[name] > self.limits[key]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds that the user gave. min_duration_ms, min_query_count: of a try. start: the load of the first one."""

    mode: ExecutionMode
    min_duration_ms: int | None
    min_query_count: int | None
    start: float | None
    is_whole: bool = False


def _highest(limits: Limits) -> float:
    """The highest load that is tried: the client has a connection for each request in flight."""
    if not limits.is_whole:
        return HIGHEST_RATE
    most = most_connections()
    return float(_HIGHEST_CONCURRENCY if most is None else max(1, min(_HIGHEST_CONCURRENCY, most)))


def plan_of(limits: Limits, first: Attempt | None = None) -> Plan:
    """The bounds of a search. first: the first try, whose load is the estimate, and whose time beyond its length is
    the overhead of each try."""
    budget_s, seconds = _BOUNDS[limits.mode]
    if limits.min_duration_ms is not None:
        seconds = limits.min_duration_ms / 1000
    queries = limits.min_query_count or _QUERIES
    value, took_s = (1.0, 0.0) if first is None else (first.value, first.took_s)
    probe = Length(seconds, queries)
    return Plan(
        estimate=value,
        highest=_highest(limits),
        tolerance=TOLERANCE,
        budget_s=budget_s,
        most_runs=MAX_TRIES,
        probe=probe,
        confirmation=Length(3 * seconds, 3 * queries),
        overhead_s=max(0.0, took_s - probe.at(value)),
        is_whole=limits.is_whole,
    )


def search(work: Search, limits: Limits) -> tuple[list[Attempt], HighestRate | NotFound]:
    """Makes the tries. Returns them with the end of the search. Raises RecipeFailed."""
    start_s = time.monotonic()
    begin = None if limits.start is None else Try(limits.start, Kind.PROBE, "the first one")
    attempts = [work.attempt(1, begin, plan_of(limits).probe)]
    plan = plan_of(limits, attempts[0])
    while True:
        step = next_step(plan, [one.tried for one in attempts], time.monotonic() - start_s)
        if not isinstance(step, Try):
            return attempts, step
        length = plan.probe if step.kind is Kind.PROBE else plan.confirmation
        attempts.append(work.attempt(len(attempts) + 1, step, length))


def table_lines(attempts: list[Attempt], load: str) -> Iterator[str]:
    """A row for each try, with the reasons of those that failed below."""
    titles = list(dict.fromkeys(title for one in attempts for title in one.metrics))
    passed, failed = ("VALID", "INVALID") if load == "rate" else ("within", "beyond")
    rows = [("Try", _HEADINGS[load], *(f"{title}, ms" for title in titles), "Verdict")]
    for one in attempts:
        metrics = (f"{one.metrics[title]:,.4g}" if title in one.metrics else "" for title in titles)
        rows.append((one.run_id, f"{one.value:,.5g}", *metrics, passed if one.is_valid else failed))
    yield from aligned(rows, frozenset(rows[0][1:-1]))
    yield from (f"{one.run_id}: {one.reasons[0]}" for one in attempts if one.reasons)


def _base(i: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that all tries have."""
    names_of_load = ("max_in_flight",) if searched(i["values"]) == "concurrency" else ()
    return given_inputs(i, (*OWN, *names_of_load))


def first_call(i: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the first try, for a plan. Those of the others have the same steps."""
    is_rate = searched(i["values"]) == "rate"
    load = {"scenario": Scenario.SERVER.value} if is_rate else {"concurrency": str(i["values"]["max_in_flight"] or 1)}
    return {**_base(i), **load, "tags": QUERY, "quiet": True}


def _limits(values: Mapping[str, Any], load: str) -> Limits:
    is_whole = load == "concurrency"
    return Limits(
        mode=ExecutionMode.FAST if values["fast"] else ExecutionMode(values["execution_mode"]),
        min_duration_ms=values["min_duration_ms"],
        min_query_count=values["min_query_count"],
        start=float(values["max_in_flight"] or 1) if is_whole else values["server_target_qps"],
        is_whole=is_whole,
    )


def make(i: dict[str, Any], model: str, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Searches, writes find.json and prints the tries. Returns CM's answer: an error if no load is within the
    limits."""
    values, base = i["values"], _base(i)
    load, slo = searched(values) or "rate", values["slo"]
    work = Search(folder, model, load, parse_slo(slo) or {}, base, i["automation"].cmind.access, say)
    try:
        attempts, end = search(work, _limits(values, load))
    except RecipeFailed as failed:
        return failed.answer
    found = end if isinstance(end, HighestRate) else None
    best = None if found is None else [one for one in attempts if one.is_valid and one.value == found.rate][-1]
    highest = None if found is None else int(found.rate) if load == "concurrency" else found.rate
    content = {
        load: highest,
        "is_confirmed": found is not None and found.is_confirmed,
        "ended_because": end.why,
        "run_id": None if best is None else best.run_id,
        "slo": slo,
        "tries": [one.record(load) for one in attempts],
    }
    write_json(folder / FILE, {"format": 1, **content})
    i["state"]["mlperf_found"] = {SCENARIOS[load].value: content}
    say("\n".join(["", *table_lines(attempts, load), ""]))
    if found is None or best is None:
        start = {"rate": "or a lower --server_target_qps to start from", "concurrency": "or shorter prompts"}[load]
        return {"return": 1, "error": f"no {load} was found within --slo={slo}: {content['ended_because']}\n"
                f"hint: give wider limits, {start}"}  # fmt: skip
    sure = "confirmed by" if found.is_confirmed else f"not confirmed, as {found.why}: from"
    again = repeat_command({**base, load: f"{found.rate:g}"})
    say(f"Highest {load} within --slo={slo}: {found.rate:g} {UNITS[load]}, {sure} {folder / best.run_id}\n"
        f"Next: {again}")  # fmt: skip
    return {"return": 0}
