"""Samples memory and load of this process, the machine and the NVIDIA GPUs of a run while it goes on, for `load.json`.

    {"format": 1, "interval_s": 0.5, "gpus": [{"index": 0, "name": "NVIDIA H100"}],
     "columns": ["time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent", "available_bytes", "answered",
                 "probe_mb_per_s", "gpu0_percent", "gpu0_bytes", "gpu0_w", "gpu0_sm_mhz", "gpu0_memory_mhz", "gpu0_c",
                 "gpu0_reasons", "gpu0_other_processes"],
     "rows": [[0.5, 312475648, 198.2, 99.1, 27801026560, 73408, 431.2,
               97, 4194304000, 612.5, 1980, 2619, 61, 4, 0], ...]}

time_s counts from the start of the block. process_cpu_percent: 100 is one busy core. machine_cpu_percent: 100 is all
cores busy. rss_bytes: memory the process holds; available_bytes: what the machine could still give. answered: samples
since the start. probe_mb_per_s: how fast one core is now, by a fixed piece of work (`probe_mb_per_s`); it changes with
the clock, with heat, and with what other virtual machines do on the same core of the host. gpu0_reasons: bits of NVML,
why the clocks are not at their highest. Values that the system does not tell are null. One sample takes about 0.6 ms of
one core twice a second (and some tenths of a millisecond for each GPU); a run longer than MAX_ROWS samples keeps every
second, fourth, ... of them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median, quantiles, stdev
from types import TracebackType
from typing import TypeAlias

from crowdperf.harness.base.cores import at_cores, available_cores
from crowdperf.harness.watch.localserver import ServerPlace
from crowdperf.harness.watch.machine import GpuFacts, memory_value_bytes, read_text
from crowdperf.harness.watch.nvml import GPU_COLUMNS, IS_POWER_CAPPED, IS_SLOWED_BY_HEAT, GpuLoad, Nvml
from crowdperf.harness.watch.pressure import Counters, machine_ticks, pressure
from crowdperf.harness.watch.pressure import read_counters as read_pressure
from crowdperf.harness.watch.progress import Counts
from crowdperf.logs.run_log import Json

FORMAT = 1
INTERVAL_S = 0.5
MAX_ROWS = 2400
_OWN_COLUMNS = (
    "time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent", "available_bytes", "answered",
    "probe_mb_per_s",
)  # fmt: skip

Row: TypeAlias = "tuple[float | int | None, ...]"

_PROBE = bytes(65536)
"""What the probe hashes. BLAKE2b on 64 KiB takes 0.15 to 0.3 ms, fits in the first caches and leaves Python's lock
free; its speed follows that of other code (correlation 0.93 with a loop of Python over 25 s in which both changed by
half, virtual machine, 2 cores, 2026-11-28; SHA-256 0.38, zlib 0.71)."""

_PROBE_TRIES = 3
"""The fastest counts: an interrupt in one of them says nothing about the core."""

_MIN_SLICES = 4
_MAX_SLICES = 10
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t at 97.5 % for 1 to 9 degrees of freedom."""


def probe_mb_per_s() -> float | None:
    """Return how many megabytes the calling thread hashes in a second of processor time; None where the clock of
    processor time is too coarse to tell (Windows)."""
    times_s = []
    for _ in range(_PROBE_TRIES):
        start_s = time.thread_time()
        hashlib.blake2b(_PROBE).digest()
        times_s.append(time.thread_time() - start_s)
    return round(len(_PROBE) / 1e6 / min(times_s), 1) if min(times_s) > 0 else None


def measured_part(answered: Sequence[float]) -> slice:
    """Return the places of the rows in which a run did nothing but answer: from the first row with an answer to the
    last one before the row that saw the last answer. `answered`: samples since the start, row by row."""
    begin = next((place for place, done in enumerate(answered) if done > 0), 0)
    end = max((place for place in range(1, len(answered)) if answered[place] > answered[place - 1]), default=0)
    return slice(begin, max(begin, end))


def rate_spread_percent(measured: Sequence[tuple[float, float]]) -> float | None:
    """Return within how many percent the rate of a run is known, with a certainty of 95 %: the confidence interval of
    the mean of up to ten slices, half its width. `measured`: (seconds, samples answered since the start) in order. None
    for fewer than four slices, which say nothing.

    It covers what changed while the run went on, not what another start of the program changes. Method: batch means
    (A. M. Law, Simulation Modeling and Analysis, 5th edition 2015, section 9.5.3).
    """
    length = -(-(len(measured) - 1) // _MAX_SLICES)
    cuts = measured[::length] if length else []
    rates = [(done - before) / (now - then) for (then, before), (now, done) in itertools.pairwise(cuts) if now > then]
    if len(rates) < _MIN_SLICES or mean(rates) <= 0:
        return None
    half_width = _T95[len(rates) - 2] * stdev(rates) / math.sqrt(len(rates))
    return round(100.0 * half_width / mean(rates), 1)


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one moment; seconds are CPU time since start, None where the system does not tell."""

    moment_s: float
    process_cpu_s: float
    busy_ticks: int | None
    all_ticks: int | None
    rss_bytes: int | None
    available_bytes: int | None
    answered: int | None = None
    probe_mb_per_s: float | None = None


def wall_clock_s() -> float:
    """Return by how many seconds the local time of day is ahead of the monotonic clock. It changes where the clock is
    set (NTP, a person) and where daylight saving begins or ends. LoadGen's two stamps are local times of day."""
    readings = []
    for _ in range(_PROBE_TRIES):  # the quickest counts: another program may run between the two readings
        before_s, now_s = time.monotonic(), time.time()
        readings.append((time.monotonic() - before_s, now_s - before_s + (time.localtime(now_s).tm_gmtoff or 0)))
    return min(readings)[1]


def resident_bytes(statm: str, page_bytes: int) -> int | None:
    """Return the resident size from the text of /proc/self/statm."""
    words = statm.split()
    return int(words[1]) * page_bytes if len(words) > 1 else None


def read_counters(proc: Path = Path("/proc")) -> Reading:
    times = os.times()
    busy, total = machine_ticks(read_text(proc / "stat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    return Reading(
        moment_s=time.monotonic(),
        process_cpu_s=times.user + times.system,
        busy_ticks=busy,
        all_ticks=total,
        rss_bytes=resident_bytes(read_text(proc / "self" / "statm"), page_bytes),
        available_bytes=memory_value_bytes(read_text(proc / "meminfo"), "MemAvailable"),
    )


def make_row(started_s: float, before: Reading, now: Reading, gpus: Sequence[GpuLoad]) -> Row:
    """Return the values of one sample, from the counters of two moments."""
    passed_s = max(now.moment_s - before.moment_s, 1e-9)
    machine = None
    if None not in (before.busy_ticks, now.busy_ticks, before.all_ticks, now.all_ticks):
        ticks = (now.all_ticks or 0) - (before.all_ticks or 0)
        machine = round(100.0 * ((now.busy_ticks or 0) - (before.busy_ticks or 0)) / ticks, 1) if ticks > 0 else None
    own: list[float | int | None] = [
        round(now.moment_s - started_s, 3),
        now.rss_bytes,
        round(100.0 * (now.process_cpu_s - before.process_cpu_s) / passed_s, 1),
        machine,
        now.available_bytes,
        now.answered,
        now.probe_mb_per_s,
    ]
    for gpu in gpus:
        own += gpu.row
    return tuple(own)


class Samples:
    """Rows at equal distances; thins itself out, so that a run of days fits in memory and in a plot."""

    def __init__(self, most_rows: int = MAX_ROWS) -> None:
        self._most = most_rows
        self._count = 0
        self.step = 1
        self.rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Keep the row, or leave it out where only every `step`th is kept."""
        self._count += 1
        if self._count % self.step:
            return
        self.rows.append(row)
        if len(self.rows) >= self._most:
            self.rows = self.rows[1::2]
            self.step *= 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecord:
    """What was seen; `interval_s` is the distance of the kept rows. pressure: what held the run back (`pressure`).

    energies_j: what each GPU used in the block by the driver's own counter, None where it has none. seconds: of the
    block. clock_step_s: by how much the machine's clock was set meanwhile.
    """

    interval_s: float
    gpus: tuple[GpuFacts, ...]
    rows: tuple[Row, ...]
    pressure: Mapping[str, Json] = field(default_factory=dict)
    energies_j: tuple[float | None, ...] = ()
    seconds: float = 0.0
    clock_step_s: float = 0.0

    @property
    def columns(self) -> tuple[str, ...]:
        return _OWN_COLUMNS + tuple(f"gpu{gpu.index}_{name}" for gpu in self.gpus for name in GPU_COLUMNS)

    def content(self) -> dict[str, Json]:
        return {
            "format": FORMAT,
            "interval_s": self.interval_s,
            "gpus": [{"index": gpu.index, "name": gpu.name} for gpu in self.gpus],
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }

    def summary(self) -> dict[str, Json]:
        """Return the part for result.json: means of loads, peaks of memory; None where nothing was seen."""
        return {
            "sample_count": len(self.rows),
            "peak_rss_bytes": self._peak("rss_bytes"),
            "mean_process_cpu_percent": self._mean("process_cpu_percent"),
            "mean_machine_cpu_percent": self._mean("machine_cpu_percent"),
            "clock_step_s": self.clock_step_s,
            **self._speed(),
            **self.pressure,
            "gpus": [self._gpu(place) for place in range(len(self.gpus))],
        }

    def _speed(self) -> dict[str, Json]:
        """How fast the core was while samples were answered (median), how slow at its slowest (10th percentile as part
        of the 90th), and within how many percent the rate of the run is known."""
        places = [self.columns.index(name) for name in ("time_s", "answered", "probe_mb_per_s")]
        rows = [tuple(float(row[place] or 0) for place in places) for row in self.rows]
        measured = rows[measured_part([answered for _, answered, _ in rows])]
        probes = [probe for *_, probe in measured if probe > 0]
        slow, *_, fast = quantiles(probes, n=10, method="inclusive") if len(probes) >= _MIN_SLICES else (0.0, 0.0)
        return {
            "probe_mb_per_s": round(median(probes), 1) if probes else None,
            "probe_slowest_percent": round(100.0 * slow / fast, 1) if fast else None,
            "rate_spread_percent": rate_spread_percent([(moment_s, answered) for moment_s, answered, _ in measured]),
        }

    def _gpu(self, place: int) -> dict[str, Json]:
        """The summary of one GPU; the mean power is that of the energy counter, where there is one."""
        gpu, energy_j = self.gpus[place], self.energies_j[place] if self.energies_j else None
        stem = f"gpu{gpu.index}"
        sampled_w = self._mean(f"{stem}_w")
        return {
            "index": gpu.index,
            "name": gpu.name,
            "mean_percent": self._mean(f"{stem}_percent"),
            "peak_bytes": self._peak(f"{stem}_bytes"),
            "mean_w": sampled_w if energy_j is None or self.seconds <= 0 else round(energy_j / self.seconds, 1),
            "energy_j": None if energy_j is None else round(energy_j, 1),
            "mean_sm_mhz": self._mean(f"{stem}_sm_mhz"),
            "mean_memory_mhz": self._mean(f"{stem}_memory_mhz"),
            "peak_c": self._peak(f"{stem}_c"),
            "power_capped_percent": self._with_bits(f"{stem}_reasons", IS_POWER_CAPPED),
            "heat_throttled_percent": self._with_bits(f"{stem}_reasons", IS_SLOWED_BY_HEAT),
            "other_processes": self._peak(f"{stem}_other_processes"),
        }

    def _with_bits(self, column: str, bits: int) -> float | None:
        """Percent of the rows that have one of the bits."""
        values = self._values(column)
        return round(100.0 * sum(bool(int(value) & bits) for value in values) / len(values), 1) if values else None

    def _values(self, column: str) -> list[float]:
        place = self.columns.index(column)
        return [float(value) for row in self.rows if (value := row[place]) is not None]

    def _mean(self, column: str) -> float | None:
        values = self._values(column)
        return round(sum(values) / len(values), 1) if values else None

    def _peak(self, column: str) -> int | None:
        values = self._values(column)
        return int(max(values)) if values else None


class Monitor:
    """Samples from the start to the end of a `with` block; `record()` then tells what was seen.

    `gpus`: the CUDA devices of the run as this process numbers them, about which NVIDIA's driver is asked. `counts`:
    the samples that the run answers. `server`: where the measured server listens, if it is on this machine: its work is
    not other programs' work.
    """

    def __init__(
        self,
        *,
        gpus: Sequence[int] = (),
        counts: Counts | None = None,
        server: ServerPlace | None = None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._counts = counts
        self._nvml = Nvml(gpus) if gpus else None
        self._interval_s = interval_s
        self._samples = Samples()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="monitor")
        self._server = server
        self._before, self._started_s = Counters(), 0.0
        self._pressure: Mapping[str, Json] = {}
        self._energies_j: Sequence[float | None] = ()
        self._seconds = 0.0
        self.wall_clock_s = self._clock_step_s = 0.0  # of the start, as `wall_clock_s` returns it

    @property
    def gpus(self) -> tuple[GpuFacts, ...]:
        return () if self._nvml is None else self._nvml.gpus

    def __enter__(self) -> Monitor:
        self._before, self._started_s = read_pressure(server=self._server), time.monotonic()
        self.wall_clock_s = wall_clock_s()
        self._energies_j = () if self._nvml is None else self._nvml.energies_j()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        now = read_pressure(server=self._server)
        self._seconds = time.monotonic() - self._started_s
        self._clock_step_s = round(wall_clock_s() - self.wall_clock_s, 3)
        self._pressure = pressure(self._before, now, self._seconds)
        if self._nvml is not None:
            pairs = zip(self._energies_j, self._nvml.energies_j(), strict=True)
            self._energies_j = [None if None in pair else (pair[1] or 0.0) - (pair[0] or 0.0) for pair in pairs]
            self._nvml.close()

    def _reading(self) -> Reading:
        answered = None if self._counts is None else self._counts.done
        return replace(read_counters(), answered=answered, probe_mb_per_s=probe_mb_per_s())

    def _watch(self) -> None:
        with at_cores(available_cores()[-1:]):  # the speed of one core, not of whichever is free
            self._watch_here()

    def _watch_here(self) -> None:
        before = self._reading()
        started_s = before.moment_s
        is_last = False
        while not is_last:
            is_last = self._done.wait(self._interval_s)  # a short run gets one row too
            now = self._reading()
            if is_last and self._samples.rows and now.moment_s - before.moment_s < self._interval_s / 4:
                return  # too short a time for a rate: the kernel counts in ticks of 10 ms
            loads = () if self._nvml is None else self._nvml.loads()
            self._samples.add(make_row(started_s, before, now, loads))
            before = now

    def record(self) -> LoadRecord:
        step = self._samples.step
        return LoadRecord(
            interval_s=self._interval_s * step,
            gpus=self.gpus,
            rows=tuple(self._samples.rows),
            pressure=self._pressure,
            energies_j=tuple(self._energies_j),
            seconds=self._seconds,
            clock_step_s=self._clock_step_s,
        )
