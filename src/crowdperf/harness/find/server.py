"""The search for Server's highest valid rate: runs LoadGen at the rates that the rule asks for."""

import time
from dataclasses import asdict, replace
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.find import record
from crowdperf.harness.find.journal import Journal, probe_line, say
from crowdperf.harness.find.plans import BOUNDS, MIN_QUERIES, Overrides, make_plan
from crowdperf.harness.find.probe_run import ProbeRunner, Verdict
from crowdperf.harness.find.search import HighestRate, Kind, NotFound, Plan, Try, first_step_fits, next_step
from crowdperf.harness.runner.loadgen_run import available_memory_bytes
from crowdperf.harness.runner.query_memory import expected_memory_bytes
from crowdperf.harness.runner.settings import Origin, Setting, Settings, server_rate
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, LoadGenLog, LogError, read_run_logs

_MEMORY_RATE = 1e6


def _highest_rate(settings: Settings, seconds: float) -> float:
    """Return the rate that LoadGen has memory for in runs of `seconds`."""
    available = available_memory_bytes()
    if available is None:
        return _MEMORY_RATE
    at_rate = replace(
        settings,
        target_qps=Setting(_MEMORY_RATE, Origin.DEFAULT),
        min_duration_ms=Setting(max(1, int(seconds * 1000)), Origin.DEFAULT),
    )
    return max(1.0, _MEMORY_RATE * available / expected_memory_bytes(at_rate))


def _make_plan(journal: Journal) -> Plan:
    prepared = journal.prepared
    config, settings = prepared.config, prepared.settings
    is_given = settings.target_qps is not None and settings.target_qps.origin is Origin.USER
    limit = settings.target_latency_ms
    overrides = Overrides(
        limit_ms=0.0 if limit is None else limit.value,
        target_qps=settings.target_qps.value if settings.target_qps is not None and is_given else None,
        min_duration_ms=_given(settings.min_duration_ms),
        min_query_count=_given(settings.min_query_count),
    )
    highest = _highest_rate(settings, BOUNDS[config.execution_mode].budget_s / 4.0)
    plan = make_plan(config.execution_mode, overrides, server_rate(prepared.found.warm_up), highest)
    journal.limits = {
        "estimate": {"value": plan.estimate, "origin": (Origin.USER if is_given else Origin.ESTIMATE).value},
        "highest": plan.highest,
        "tolerance": plan.tolerance,
        "budget_s": plan.budget_s,
        "most_runs": plan.most_runs,
        "probe": asdict(plan.probe),
        "confirmation": asdict(plan.confirmation),
        "target_latency_ms": None if limit is None else {"value": limit.value, "origin": limit.origin.value},
    }
    return plan


def _given(setting: Setting[int]) -> int | None:
    return setting.value if setting.origin is Origin.USER else None


def _require_budget(journal: Journal, plan: Plan) -> None:
    """Raise HarnessError before the first run when the budget is too short for a probe and its confirmation."""
    if journal.probes or first_step_fits(plan, journal.spent_s):
        return
    needed_s = (
        plan.takes_s(Kind.PROBE, plan.estimate) + plan.takes_s(Kind.CONFIRMATION, plan.estimate) + journal.spent_s
    )
    message = (
        f"a search of Server's rate needs about {needed_s:.0f} s: the estimate is {plan.estimate:.4g} queries/s, a run "
        f"has at least {plan.probe.queries:,} queries (LoadGen calls none with fewer than {MIN_QUERIES} VALID), and "
        f"there are at least one probe and one confirmation. The budget of this execution mode is {plan.budget_s:g} s"
    )
    hint = "use a longer --execution_mode (test: 60 s, fast: 300 s, valid: 1200 s), or measure at a --server_target_qps"
    journal.prepared.opened.close()
    raise HarnessError(message, hint)


def search_server(journal: Journal) -> tuple[dict[str, Json], Settings, LoadGenLog]:
    """Return find.json's content, the settings with the rate that was found, and the log of the run that shows it;
    raises HarnessError where no rate holds, or the budget is too short to look."""
    prepared = journal.prepared
    plan = _make_plan(journal)
    _require_budget(journal, plan)
    limit = prepared.settings.target_latency_ms
    limit_ms = None if limit is None else limit.value
    say(
        f"the highest valid rate within {limit_ms:g} ms, to {plan.tolerance:.0%}, in at most {plan.budget_s:g} s "
        f"(the first rate is {plan.estimate:g} queries/s)"
    )
    runner = ProbeRunner(prepared, RunPaths(journal.folder))
    journal.keep()
    while True:
        step = next_step(plan, [probe.tried() for probe in journal.probes], journal.spent_s)
        if not isinstance(step, Try):
            break
        start_s = time.monotonic()
        deadline_s = start_s + plan.budget_s - journal.spent_s
        length = plan.probe if step.kind is Kind.PROBE else plan.confirmation
        title = f"find: {step.kind.value} {len(journal.probes) + 1}, {step.rate:g} queries/s"
        outcome = runner.probe(step.rate, length, journal.next_folder(), deadline_s, title)
        journal.note(step, outcome, time.monotonic() - start_s, limit_ms)
    if isinstance(step, NotFound):
        raise _nothing_found(journal, step, limit_ms)
    return _server_content(journal, step)


def _server_content(journal: Journal, found: HighestRate) -> tuple[dict[str, Json], Settings, LoadGenLog]:
    of_rate = [probe for probe in journal.probes if probe.rate == found.rate]
    valid = [probe for probe in of_rate if probe.verdict == Verdict.VALID.value]
    last = valid[-1]
    confidence: dict[str, Json] = {
        "is_confirmed": found.is_confirmed,
        "valid_runs": len(valid),
        "of_runs": len(of_rate),
        "queries": sum(probe.queries for probe in valid),
        "gap_to_lowest_failed": None if found.gap is None else round(found.gap, 4),
        "ended_because": found.why,
    }
    words = (
        f"{'confirmed by' if found.is_confirmed else 'not confirmed; from'} {last.folder} ({last.queries:,} queries)"
    )
    content = journal.content(
        {"target_qps": {"value": found.rate, "origin": words}}, confidence, None, is_finished=True
    )
    settings = replace(journal.prepared.settings, target_qps=Setting(found.rate, Origin.SEARCH))
    log = journal.logs.get(last.number) or read_kept_log(journal.folder / last.folder)
    return content, settings, log


def read_kept_log(folder: Path) -> LoadGenLog:
    """Return the log of a run of the search that was cut off; raises HarnessError where it is gone."""
    try:
        return read_run_logs(RunPaths(folder))
    except LogError as error:
        raise HarnessError(f"the logs of the search that was cut off are gone: {error}", "remove find.json") from error


def _nothing_found(journal: Journal, end: NotFound, limit_ms: float | None) -> HarnessError:
    """Write find.json and return the error that tells what was tried."""
    told = [probe for probe in journal.probes if probe.rate is not None]
    tried = "".join(f"\n  {probe_line(probe, limit_ms)}" for probe in told)
    lowest = min(told, key=lambda probe: probe.rate or 0.0, default=None)
    figure = ""
    if lowest is not None:
        p99 = "not measured" if lowest.p99_ms is None else f"{lowest.p99_ms:.4g} ms"
        alone_ms = journal.prepared.found.warm_up.query_latency_ms or 0.0
        figure = (
            f". At the lowest rate, {lowest.rate:g} queries/s, p99 was {p99}. A single query lasts {alone_ms:.4g} ms"
        )
    message = f"no rate was found that meets the limit of {limit_ms:g} ms: {end.why}{figure}; tried:{tried or ' none'}"
    hints = ["a longer --execution_mode searches longer", "--server_target_qps sets the start of the search"]
    if lowest is not None and lowest.is_hopeless:
        hints = [
            "this system is too slow for the limit",
            "give another --target_latency_ms to see its rate with that limit",
        ]
    record.write(journal.folder, journal.content({}, None, message, is_finished=True))
    journal.prepared.opened.close()
    return HarnessError(message, "; ".join(hints))
