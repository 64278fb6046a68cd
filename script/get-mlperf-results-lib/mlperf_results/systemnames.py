"""What the system of a found run is called: its folder, or what the harness found where that is the id of a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mlperf_results.foundruns import FoundRun

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def system_name(run: FoundRun, metadata: Mapping[str, Any] | None) -> str:
    """Return the system's name, safe as the name of a folder; ``metadata`` is the run's metadata.json."""
    named = (metadata or {}).get("system_name")
    if run.has_run_id and isinstance(named, str) and _SAFE.fullmatch(named):
        return named
    return run.system
