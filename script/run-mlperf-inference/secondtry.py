"""When a Server run at the harness's own rate is INVALID: it is made once more, at a lower rate. Pure.

The first run stays as evidence in `<model>/Server/first_attempt`, which is no place of a result; `first_attempt` in the
second run's result.json says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlperf_results.figures import LOWERED_ORIGIN, has_chosen_rate, lower_rate

FOLDER = "first_attempt"


def next_rate(result: Mapping[str, Any]) -> float | None:
    """The rate of a second run in queries/s; None where none is made: the run passed, was not late, was itself the
    second one, or the user gave its rate."""
    return lower_rate(result) if has_chosen_rate(result) and not is_second(result) else None


def is_second(result: Mapping[str, Any]) -> bool:
    """Whether a result.json is of a second run."""
    return bool(result.get("first_attempt"))


def announcement(result: Mapping[str, Any], rate: float) -> str:
    """What is told between the two runs."""
    sent = result["run"]["target_qps"]["value"]
    return (
        f"Server is INVALID at the {sent:,g} queries/s that the harness chose: too many answers were late. "
        f"It is run once more, at {rate:,g} queries/s."
    )


def with_first(second: Mapping[str, Any], first: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The result.json of the second run: where its rate comes from, and what the first one (in `folder`) came to."""
    run = second["run"]
    lowered = {**run["target_qps"], "origin": LOWERED_ORIGIN}
    attempt = {
        "folder": folder,
        "target_qps": first["run"]["target_qps"]["value"],
        "invalid_reasons": list(first["invalid_reasons"]),
    }
    return {**second, "run": {**run, "target_qps": lowered}, "first_attempt": attempt}


def note(result: Mapping[str, Any]) -> str:
    """What stands below the table of a call with a second run."""
    attempt = result["first_attempt"]
    return (
        f"Server was INVALID at {attempt['target_qps']:,g} queries/s, so it was run once more at a lower rate; the logs"
        f" of the first run are in {attempt['folder']}"
    )
