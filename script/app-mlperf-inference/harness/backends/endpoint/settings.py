"""The settings of the client, with their origins; and how many files may be open for its connections."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from mlperf_results.logs import Json

from harness.errors import ConfigError, HarnessError, Problem
from harness.text.request import TextRequest

MAX_IN_FLIGHT = 1024
"""Requests at once where no number is given: this project's choice. Servers queue what they cannot work on."""
TIMEOUT_S = 900.0
"""How long a request may take where nothing is given: this project's choice, with a full queue at a slow server."""
STALL_S = 120.0
"""The longest silence in the middle of an answer: this project's choice."""
_OTHER_FILES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """max_in_flight: requests at once. timeout_s: of one request in all. stall_s: of silence in a stream."""

    max_in_flight: int
    timeout_s: float
    stall_s: float
    origins: dict[str, str]

    def record(self) -> dict[str, Json]:
        """Return the settings as result.json has them."""
        return {name: {"value": getattr(self, name), "origin": origin} for name, origin in self.origins.items()}


def _open_files() -> int:
    """Return how many files this process may open, after raising its limit as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass  # some systems refuse what they name as allowed; the old limit holds
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def resolve_client(text: TextRequest) -> ClientSettings:
    """Return the settings; raises ConfigError for one that no server takes, HarnessError for more connections than
    files."""
    if text.kv_cache_bytes is not None:
        allowed = "null: the server has its own memory"
        raise ConfigError("the run", [Problem("text.kv_cache_bytes", str(text.kv_cache_bytes), allowed)])
    possible = _open_files() - _OTHER_FILES
    wanted = text.max_in_flight or MAX_IN_FLIGHT
    if wanted > possible and text.max_in_flight is not None:
        raise HarnessError(
            f"max_in_flight {wanted:,} needs as many open connections; this process may have {possible:,}",
            f"raise the limit: ulimit -n {wanted + _OTHER_FILES}; or use --max_in_flight={possible}",
        )
    timeout_s = text.timeout_s or TIMEOUT_S
    return ClientSettings(
        max_in_flight=max(1, min(wanted, possible)),
        timeout_s=timeout_s,
        stall_s=min(STALL_S, timeout_s),
        origins={
            "max_in_flight": "default" if text.max_in_flight is None else "user",
            "timeout_s": "default" if text.timeout_s is None else "user",
            "stall_s": "default",
        },
    )
