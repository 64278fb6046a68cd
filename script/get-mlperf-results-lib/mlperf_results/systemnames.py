"""What the system of a found run is called, and how names of hardware are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mlperf_results.foundruns import FoundRun

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_MAKERS = re.compile(r"\((?:r|tm)\)|@.*$|\b(?:intel|nvidia|tesla|xeon|cpu|processor)\b", re.IGNORECASE)


def plain_name(name: str) -> str:
    """A processor's or accelerator's name without its maker and clock: "gold 6258r", "h100 80gb hbm3"."""
    return " ".join(_MAKERS.sub(" ", name).lower().split())


def system_name(run: FoundRun, metadata: Mapping[str, Any] | None) -> str:
    """Return what a run's system is called: its folder, or what the harness found where that is the id of a call.

    It is safe as the name of a folder; ``metadata`` is the run's metadata.json.
    """
    named = (metadata or {}).get("system_name")
    if run.has_run_id and isinstance(named, str) and _SAFE.fullmatch(named):
        return named
    return run.system
