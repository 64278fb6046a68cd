"""When a run at the harness's own rate is INVALID because of that rate, it is made once more at another one. Pure.

A Server run that answered too late gets a lower rate, once. An Offline run that ended too early gets a higher one, up
to MAX_OFFLINE_RUNS in all: a server that was still opening its connections when it was estimated, or is slow to accept
them, may answer many times faster. The first run stays as evidence in `<model>/<Scenario>/first_attempt`, which is no
place of a result; `first_attempt` in the last run's result.json says so, with the rates of the runs between.
"""

from collections.abc import Mapping
from typing import Any

from crowdperf.logs.rates import CHANGED_ORIGIN, better_rate, is_own_rate, rate_text
from crowdperf.rules.names import Scenario

FOLDER = "first_attempt"
MAX_OFFLINE_RUNS = 4
"""The first and three more: this project's choice. Each is planned for at least 1.5 times as much as the one before."""


def next_rate(result: Mapping[str, Any]) -> float | None:
    """The rate of a further run; None where none is made: the run passed, failed for another reason, was itself the
    last that may be made, or the user gave its rate."""
    if not is_own_rate(result):
        return None
    most = MAX_OFFLINE_RUNS if result["run"]["scenario"]["value"] == Scenario.OFFLINE.value else 2
    return better_rate(result) if _number(result) < most else None


def _number(result: Mapping[str, Any]) -> int:
    """Which run of its kind it is, from 1."""
    return 2 + len(result["first_attempt"].get("between") or ()) if is_second(result) else 1


def is_second(result: Mapping[str, Any]) -> bool:
    """Whether a result.json is of a second run."""
    return bool(result.get("first_attempt"))


def announcement(result: Mapping[str, Any], rate: float) -> str:
    """What is told between the two runs."""
    return (
        f"{result['run']['scenario']['value']} is INVALID ({result['invalid_reasons'][0]}): {rate_text(result)}, "
        f"a rate chosen by the harness. Running it once more with {rate:,.10g}."
    )


def with_first(second: Mapping[str, Any], first: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The result.json of a further run: where its rate comes from, and what the first one (in `folder`) came to.

    first: the run before it; where that was a further one itself, it is one of those `between`, with its rate.
    """
    run = second["run"]
    attempt = {"target_qps": first["run"]["target_qps"]["value"], "invalid_reasons": list(first["invalid_reasons"])}
    if is_second(first):
        earliest = first["first_attempt"]
        attempt = {**earliest, "between": [*(earliest.get("between") or ()), attempt]}
    else:
        attempt = {"folder": folder, **attempt}
    changed = {**run["target_qps"], "origin": CHANGED_ORIGIN}
    return {**second, "run": {**run, "target_qps": changed}, "first_attempt": attempt}


def note(result: Mapping[str, Any]) -> str:
    """What stands below the table of a call with a second run."""
    attempt = result["first_attempt"]
    scenario = result["run"]["scenario"]["value"]
    rates = [one["target_qps"] for one in (attempt, *(attempt.get("between") or ()))]
    times = "once more with another target" if len(rates) == 1 else f"{len(rates)} more times with other targets"
    return (
        f"{scenario} was INVALID with a target of {', '.join(f'{rate:,.10g}' for rate in rates)}, so it was run "
        f"{times}. The logs of the first run are in {attempt['folder']}"
    )
