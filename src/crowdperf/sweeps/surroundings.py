"""What may disturb a point while it measures: other points, other jobs, other load, heat."""

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.sweeps.attempts import utc_now

BUSY_LIMIT = 0.5
"""Busy share of the processors before the start above which a point was not alone."""


MIN_LOOK_S = 0.1
"""Ten ticks of each processor (proc(5): /proc/stat counts hundredths of a second)."""


class Busyness:
    """How busy others keep the processors from now on; the load average would count the point before this one."""

    def __init__(self) -> None:
        self._begin_s = time.monotonic()
        self._before = self._ticks()

    @staticmethod
    def _ticks() -> tuple[int, float]:
        """Those of all processors; those that were idle, or spent by this process and its children that have ended."""
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4] + sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")

    def share(self) -> float:
        """Busy share of all processors, 0 to 1. Waits until the look was long enough."""
        time.sleep(max(0.0, self._begin_s + MIN_LOOK_S - time.monotonic()))
        total, free = (now - before for now, before in zip(self._ticks(), self._before, strict=True))
        return round(min(1.0, max(0.0, 1 - free / max(1, total))), 3)


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
    folders = [os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"]
    folder = next((each for each in folders if os.path.isdir(each) and os.access(each, os.W_OK)), os.getcwd())
    path = Path(folder, f"crowdperf-points-{os.getuid()}")
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
            import fcntl  # Windows has none; the wrapper of a point, which needs this, has no other package than ours

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
        found.append(f"the CPUs were {busy:.0%} busy before the start")
    return found
