"""When a run at the harness's own rate is INVALID because of that rate, it is made once more at another one. Pure.

A Server run that answered too late gets a lower rate, an Offline run that ended too early a higher one. The first run
stays as evidence in `<model>/<Scenario>/first_attempt`, which is no place of a result; `first_attempt` in the second
run's result.json says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlperf_results.figures import CHANGED_ORIGIN, better_rate, is_own_rate, rate_text

FOLDER = "first_attempt"


def next_rate(result: Mapping[str, Any]) -> float | None:
    """The rate of a second run; None where none is made: the run passed, failed for another reason, was itself the
    second one, or the user gave its rate."""
    return better_rate(result) if is_own_rate(result) and not is_second(result) else None


def is_second(result: Mapping[str, Any]) -> bool:
    """Whether a result.json is of a second run."""
    return bool(result.get("first_attempt"))


def announcement(result: Mapping[str, Any], rate: float) -> str:
    """What is told between the two runs."""
    return (
        f"{result['run']['scenario']['value']} is INVALID ({result['invalid_reasons'][0]}); {rate_text(result)}, as the"
        f" harness chose. It is run once more with {rate:,.10g}."
    )


def with_first(second: Mapping[str, Any], first: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The result.json of the second run: where its rate comes from, and what the first one (in `folder`) came to."""
    run = second["run"]
    attempt = {
        "folder": folder,
        "target_qps": first["run"]["target_qps"]["value"],
        "invalid_reasons": list(first["invalid_reasons"]),
    }
    changed = {**run["target_qps"], "origin": CHANGED_ORIGIN}
    return {**second, "run": {**run, "target_qps": changed}, "first_attempt": attempt}


def note(result: Mapping[str, Any]) -> str:
    """What stands below the table of a call with a second run."""
    attempt = result["first_attempt"]
    scenario = result["run"]["scenario"]["value"]
    return (
        f"{scenario} was INVALID with a target of {attempt['target_qps']:,.10g}, so it was run once more with another"
        f" one; the logs of the first run are in {attempt['folder']}"
    )
