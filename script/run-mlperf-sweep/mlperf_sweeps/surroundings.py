"""What may disturb a point while it measures: other points, other jobs, other load, heat."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlperf_sweeps.attempts import utc_now

BUSY_LIMIT = 0.5
"""Busy share of the processors before the start above which a point was not alone."""


def busy_share(seconds: float = 0.1) -> float:
    """Busy share of all processors for a moment; the load average would count the point before this one."""

    def ticks() -> tuple[int, int]:
        numbers = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]

    total, idle = ticks()
    time.sleep(seconds)
    total_now, idle_now = ticks()
    return round(1 - (idle_now - idle) / max(1, total_now - total), 3)


def other_jobs(node: str) -> list[str] | None:
    """The jobs of Slurm that run on a node beside this one; None where nobody can be asked."""
    own = {os.environ.get("SLURM_JOB_ID", "")}
    command = ["squeue", "-h", "-w", node, "-t", "R", "-o", "%A"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return sorted(set(answer.stdout.split()) - own)


def facts(job: Mapping[str, str]) -> dict[str, Any]:
    """What may have disturbed a point, as it is now."""
    heat = 0
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
        with contextlib.suppress(OSError, ValueError):
            heat += int(path.read_text(encoding="ascii"))
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "utc": utc_now(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "other_jobs": other_jobs(job["SLURMD_NODENAME"]) if "SLURMD_NODENAME" in job else [],
        "throttled_times": heat,
        "governor": governor.read_text(encoding="ascii").strip() if governor.is_file() else "",
    }


def machine_lock() -> int:
    """Opens this user's file of this machine, on which points are counted and which a measuring sweep locks.

    Raises OSError, also where somebody else has put something there.
    """
    path = Path(tempfile.gettempdir(), f"crowdperf-points-{os.getuid()}")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(descriptor).st_uid != os.getuid():
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    return descriptor


class Company:
    """Finds out whether other points ran on this machine at the same time: each adds a byte when it begins."""

    def __init__(self, lock_fd: int | None) -> None:
        self.descriptor = machine_lock() if lock_fd is None else lock_fd
        self.is_alone = True
        if lock_fd is None:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.is_alone = False
            with contextlib.suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.write(self.descriptor, b".")
        self.count = os.lseek(self.descriptor, 0, os.SEEK_CUR)

    def was_alone(self) -> bool:
        """Whether no other point was under way at the beginning, and none has begun since."""
        return self.is_alone and os.fstat(self.descriptor).st_size == self.count


def disturbances(before: Mapping[str, Any], after: Mapping[str, Any], busy: float, company: Company) -> list[str]:
    """Why a point cannot be called alone on its machine, in words; empty where nothing was seen."""
    found = [] if company.was_alone() else ["another point ran on this machine"]
    jobs = sorted({*(before["other_jobs"] or ()), *(after["other_jobs"] or ())})
    if jobs:
        found.append(f"other jobs ran on this node: {', '.join(jobs)}")
    if busy > BUSY_LIMIT:
        found.append(f"the processors were {busy:.0%} busy before the start")
    return found
