"""The description of a system as lines to read."""

from __future__ import annotations

from collections.abc import Sequence

from crowdperf.machine.known_systems import Match
from crowdperf.machine.system import System
from crowdperf.machine.system_rows import accelerator_rows, host_rows, software_rows


def lines(system: System, match: Match, missing: Sequence[str]) -> tuple[str, ...]:
    """The whole description, one fact per line."""
    rows = [
        ("system", _named(match)),
        *(("", f"- {reason}") for reason in match.reasons),
        *host_rows(system),
        *accelerator_rows(system),
        *software_rows(system),
        ("not known", ", ".join(missing) or "nothing that a submission requires"),
    ]
    return tuple(f"{name:<14} {text}" for name, text in rows if text)


def _named(match: Match) -> str:
    if match.row is None:
        return "none that is listed (described below all the same)"
    if match.quality == "exact":
        return f"{match.row.system_id} (as {match.row.described_as}; {match.row.source})"
    return f"none that is listed; nearest: {match.row.system_id} (same GPU, other count)"
