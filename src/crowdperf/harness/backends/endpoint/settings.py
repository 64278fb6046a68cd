"""The settings of the client with their origins, and the number of files that may be open for its connections."""

import resource
from dataclasses import dataclass

from crowdperf.harness.base.cores import available_cores, physical_cores
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.request import TextRequest
from crowdperf.kit.records import Problem
from crowdperf.logs.run_log import Json
from crowdperf.rules.prompt_settings import OTHER_FILES

MAX_IN_FLIGHT = 1024
"""Default number of requests at once: this project's choice. Servers queue those that they cannot work on."""
TIMEOUT_S = 900.0
"""Default time limit of a request: this project's choice, with a full queue at a slow server."""
STALL_S = 120.0
"""The longest silence in the middle of an answer: this project's choice."""
_MIN_LEFT_OPEN = 16
MIN_IN_FLIGHT = 64
"""If the limit of open files allows fewer requests at once than this, the run would measure the limit and not the
server: this project's choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """max_in_flight: requests at once. client_processes: those that send them, 1 for this one
    alone. most_left_open: responses that may stay open after their answers, in addition
    to these. timeout_s: of one request in all. stall_s: of silence in a stream. notes: doubts about them."""

    max_in_flight: int
    client_processes: int
    most_left_open: int
    timeout_s: float
    stall_s: float
    origins: dict[str, str]
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Json]:
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


def in_flight(given: int | None, open_files: int) -> tuple[int, str, tuple[str, ...]]:
    """Return the number of requests that may be in flight, its origin, and notes on it. open_files: the limit of
    this process. Raises HarnessError if the limit allows fewer than were given, or so few that the limit would be
    measured."""
    possible = open_files - OTHER_FILES
    wanted = given or MAX_IN_FLIGHT
    remedy = f"raise the limit: ulimit -n {wanted + OTHER_FILES}"
    if given is not None and wanted > possible:
        lower = f", or use --max_in_flight={possible}" if possible > 0 else ""
        raise HarnessError(
            f"max_in_flight {wanted:,} needs as many open connections, but this process may have {max(0, possible):,}, "
            f"since its limit of open files is {open_files:,}",
            remedy + lower,
        )
    if given is not None:
        return given, "user", ()
    if possible >= MAX_IN_FLIGHT:
        return MAX_IN_FLIGHT, "default", ()
    if possible < MIN_IN_FLIGHT:
        lower = f", or choose a number yourself: --max_in_flight={possible}" if possible > 0 else ""
        raise HarnessError(
            f"the limit of open files ({open_files:,}) leaves {max(0, possible):,} connections to the server, "
            f"allowed: at least {MIN_IN_FLIGHT}",
            remedy + lower,
        )
    note = (
        f"at most {possible:,} requests are in flight instead of {MAX_IN_FLIGHT:,}: the limit of open files is "
        f"{open_files:,}. {remedy}"
    )
    return possible, f"limit of open files ({open_files:,})", (note,)


def processes(given: int | None, max_in_flight: int, cores: int, is_one_at_a_time: bool) -> tuple[int, str]:
    """Return the number of client processes and its origin: one for each 4 cores and each 128 requests in flight, at
    most 8 (this project's choice: a server on this machine needs cores, too). Raises ConfigError for more processes
    than requests."""
    if given is None:
        found = 1 if is_one_at_a_time else max(1, min(cores // 4, max_in_flight // 128, 8))
        return found, "default"
    if given > max_in_flight:
        problem = Problem("text.client_processes", str(given), f"at most max_in_flight, {max_in_flight:,}")
        raise ConfigError("the run", [problem], f"--client_processes={max_in_flight}, or a larger --max_in_flight")
    return given, "user"


def resolve_client(text: TextRequest, is_one_at_a_time: bool) -> ClientSettings:
    """Return the settings. is_one_at_a_time: the next request comes only after the answer. Raises ConfigError for one
    that servers do not support, HarnessError for more connections than files."""
    if text.kv_cache_bytes is not None:
        allowed = "null: the server has its own memory"
        raise ConfigError("the run", [Problem("text.kv_cache_bytes", str(text.kv_cache_bytes), allowed)])
    open_files = _open_files()
    max_in_flight, origin, notes = in_flight(text.max_in_flight, open_files)
    cores = len(physical_cores(available_cores()))
    count, counted = processes(text.client_processes, max_in_flight, cores, is_one_at_a_time)
    timeout_s = text.timeout_s or TIMEOUT_S
    return ClientSettings(
        max_in_flight=max_in_flight,
        client_processes=count,
        most_left_open=min(max_in_flight, max(_MIN_LEFT_OPEN, open_files - OTHER_FILES - max_in_flight)),
        timeout_s=timeout_s,
        stall_s=min(STALL_S, timeout_s),
        origins={
            "max_in_flight": origin,
            "client_processes": counted,
            "timeout_s": "default" if text.timeout_s is None else "user",
            "stall_s": "default" if timeout_s >= STALL_S else "timeout_s",
        },
        notes=notes,
    )
