"""What holds a run back: other programs, steal time, swapping, heat, a processor quota. Linux tells in counters.

They are read once before a run and once after it, so watching costs the run nothing. What a system does not tell is
None. The verdict on them is `crowdperf.logs.interference`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.watch.localserver import ServerPlace, server_processes
from crowdperf.harness.watch.machine import read_text
from crowdperf.harness.watch.processes import family, process_rows, used_ticks
from crowdperf.logs.run_log import Json

_STEAL_PLACE, _LAST_PLACE = 7, 8
"""In the first line of /proc/stat after its name (proc_stat(5)); the two further words are part of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """At one moment, since the system started. ticks of all processors; process_s: processor time of this process
    and of what it has started, a server for example; server_s: that of a server of this machine that somebody else
    started and this run measures, 0 for none, None where its processes cannot be read;
    milliseconds of the hottest processor; periods of the processor quota of this process's cgroup, and those in which
    it was used up."""

    process_s: float = 0.0
    server_s: float | None = 0.0
    busy_ticks: int | None = None
    stolen_ticks: int | None = None
    all_ticks: int | None = None
    swapped_pages: int | None = None
    hot_ms: int | None = None
    quota_periods: int | None = None
    throttled_periods: int | None = None


def machine_ticks(stat: str) -> tuple[int | None, int | None]:
    """Return busy and all clock ticks of all cores from the text of /proc/stat (idle and iowait are not busy)."""
    words = stat.partition("\n")[0].split()
    if not words or words[0] != "cpu" or len(words) < 6:
        return None, None
    ticks = [int(word) for word in words[1:9]]  # what follows (guest) is part of user and nice already
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def numbers_in(text: str) -> dict[str, int]:
    """Return the lines `name number` of a file like /proc/vmstat or a cgroup's cpu.stat."""
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def quota_folders(cgroups: str, root: Path) -> list[Path]:
    """Return where the quotas of this process may stand, from the text of /proc/self/cgroup (cgroups(7)): its group of
    version 2, or of the controller `cpu` of version 1, and all groups above it. `root`: /sys/fs/cgroup."""
    found = []
    for line in cgroups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, place = rest.partition(":")
        if number == "0" and not controllers:
            top = root
        elif "cpu" in controllers.split(","):
            top = root / "cpu"
        else:
            continue
        inner = Path(place.strip().lstrip("/"))
        found += [top / folder for folder in (inner, *inner.parents)]
    return found


def _quota(proc: Path, root: Path) -> tuple[int | None, int | None]:
    """Return the periods and the throttled ones of the group that was throttled most often."""
    stats = [
        numbers_in(read_text(folder / "cpu.stat")) for folder in quota_folders(read_text(proc / "self/cgroup"), root)
    ]
    pairs = [(row["nr_throttled"], row["nr_periods"]) for row in stats if "nr_throttled" in row and "nr_periods" in row]
    if not pairs:
        return None, None
    throttled, periods = max(pairs)
    return periods, throttled


def _largest(paths: Sequence[Path]) -> int | None:
    numbers = [int(text) for path in paths if (text := read_text(path).strip()).isdigit()]
    return max(numbers, default=None)


def _ticks_per_s() -> int:
    return os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _seconds_used(proc: Path, server: ServerPlace | None) -> tuple[float, float | None]:
    """Return the processor time of this process with what it has started, and that of a server of this machine (None
    where its processes cannot be read)."""
    rows = process_rows(proc)
    own = family(rows, {os.getpid()})
    own_s = used_ticks(rows, own) / _ticks_per_s()
    if server is None:
        return own_s, 0.0
    found = server_processes(proc, server, rows, own)
    return own_s, None if found is None else used_ticks(rows, found) / _ticks_per_s()


def read_counters(root: Path = Path("/"), server: ServerPlace | None = None) -> Counters:
    """Return the counters now. server: where the measured server listens, if it is on this machine. Heat:
    `*_throttle_total_time_ms` of Intel processors (Linux 5.6 and later)."""
    proc = root / "proc"
    stat, times = read_text(proc / "stat"), os.times()
    own_s, server_s = _seconds_used(proc, server)
    busy, total = machine_ticks(stat)
    ticks = stat.partition("\n")[0].split()[1 : _LAST_PLACE + 1]
    pages = numbers_in(read_text(proc / "vmstat"))
    swapped = [pages[name] for name in ("pswpin", "pswpout") if name in pages]
    periods, throttled = _quota(proc, root / "sys/fs/cgroup")
    hot = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_total_time_ms")
    return Counters(
        process_s=max(own_s, times.user + times.system),
        server_s=server_s,
        busy_ticks=busy,
        stolen_ticks=int(ticks[_STEAL_PLACE]) if total is not None and len(ticks) > _STEAL_PLACE else None,
        all_ticks=total,
        swapped_pages=sum(swapped) if swapped else None,
        hot_ms=_largest(sorted(hot)),
        quota_periods=periods,
        throttled_periods=throttled,
    )


def _difference(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _percent(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None:
        return None
    return round(100.0 * part / whole, 1) if whole > 0 else 0.0


def _server(before: Counters, now: Counters, total: int | None) -> dict[str, Json]:
    """Return what is said of a server of this machine; nothing where none was measured, or it used no time."""
    if before.server_s is None or now.server_s is None:
        return {"server_percent": None}
    used_s = max(0.0, now.server_s - before.server_s)
    return {"server_percent": _percent(used_s * _ticks_per_s(), total)} if used_s and total else {}


def pressure(before: Counters, now: Counters, seconds: float) -> dict[str, Json]:
    """Return the part for result.json's `load`: percents of the time between two moments `seconds` apart, and the bytes
    that were written to swap or read from it. server_percent: of a measured server on this machine; null where its
    processes cannot be read, so that others_percent holds them."""
    page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    pages = _difference(before.swapped_pages, now.swapped_pages)
    stolen, total = _difference(before.stolen_ticks, now.stolen_ticks), _difference(before.all_ticks, now.all_ticks)
    throttled = _difference(before.throttled_periods, now.throttled_periods)
    busy = _difference(before.busy_ticks, now.busy_ticks)
    ours_s = now.process_s - before.process_s + max(0.0, (now.server_s or 0.0) - (before.server_s or 0.0))
    return {
        "others_percent": None if busy is None else _percent(max(0.0, busy - ours_s * _ticks_per_s()), total),
        **_server(before, now, total),
        "stolen_percent": _percent(stolen, total),
        "swapped_bytes": None if pages is None else pages * page_bytes,
        "heat_throttled_percent": _percent(_difference(before.hot_ms, now.hot_ms), seconds * 1000.0),
        "quota_throttled_percent": _percent(throttled, _difference(before.quota_periods, now.quota_periods)),
    }
