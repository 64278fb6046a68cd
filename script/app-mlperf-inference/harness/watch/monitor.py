"""Samples memory and load of this process, the machine and its NVIDIA GPUs while a run goes on, for `load.json`.

    {"format": 1, "interval_s": 0.5, "gpus": [{"index": 0, "name": "NVIDIA H100"}],
     "columns": ["time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent", "available_bytes",
                 "gpu0_percent", "gpu0_bytes", "gpu0_w"],
     "rows": [[0.5, 312475648, 198.2, 99.1, 27801026560, 97, 4194304000, 612.5], ...]}

time_s counts from the start of the block. process_cpu_percent: 100 is one busy core. machine_cpu_percent: 100 is all
cores busy. rss_bytes: memory the process holds; available_bytes: what the machine could still give. Values that the
system does not tell are null. One sample takes about 0.1 ms of one core twice a second (and some tenths of a
millisecond for each GPU); a run longer than MOST_ROWS samples keeps every second, fourth, ... of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from mlperf_results.logs import Json

from harness.watch.localserver import ServerPlace
from harness.watch.machine import GpuFacts, memory_value_bytes, read_text
from harness.watch.nvml import GpuLoad, Nvml
from harness.watch.pressure import Counters, machine_ticks, pressure
from harness.watch.pressure import read_counters as read_pressure

FORMAT = 1
INTERVAL_S = 0.5
MOST_ROWS = 2400
_OWN_COLUMNS = ("time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent", "available_bytes")
_GPU_COLUMNS = ("percent", "bytes", "w")

Row: TypeAlias = "tuple[float | int | None, ...]"


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one moment; seconds are CPU time since start, None where the system does not tell."""

    moment_s: float
    process_cpu_s: float
    busy_ticks: int | None
    all_ticks: int | None
    rss_bytes: int | None
    available_bytes: int | None


def resident_bytes(statm: str, page_bytes: int) -> int | None:
    """Return the resident size from the text of /proc/self/statm."""
    words = statm.split()
    return int(words[1]) * page_bytes if len(words) > 1 else None


def read_counters(proc: Path = Path("/proc")) -> Reading:
    """Return the counters now."""
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
    ]
    for gpu in gpus:
        own += [gpu.utilization_percent, gpu.used_bytes, gpu.power_w]
    return tuple(own)


class Samples:
    """Rows at equal distances; thins itself out, so that a run of days fits in memory and in a plot."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
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
    """What was seen; `interval_s` is the distance of the kept rows. pressure: what held the run back (`pressure`)."""

    interval_s: float
    gpus: tuple[GpuFacts, ...]
    rows: tuple[Row, ...]
    pressure: Mapping[str, Json] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values of a row."""
        return _OWN_COLUMNS + tuple(f"gpu{gpu.index}_{name}" for gpu in self.gpus for name in _GPU_COLUMNS)

    def content(self) -> dict[str, Json]:
        """Return the content of load.json."""
        return {
            "format": FORMAT,
            "interval_s": self.interval_s,
            "gpus": [{"index": gpu.index, "name": gpu.name} for gpu in self.gpus],
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }

    def summary(self) -> dict[str, Json]:
        """Return the part for result.json: means of loads, peaks of memory; None where nothing was seen."""
        gpus: list[Json] = [
            {
                "index": gpu.index,
                "name": gpu.name,
                "mean_percent": self._mean(f"gpu{gpu.index}_percent"),
                "peak_bytes": self._peak(f"gpu{gpu.index}_bytes"),
                "mean_w": self._mean(f"gpu{gpu.index}_w"),
            }
            for gpu in self.gpus
        ]
        return {
            "sample_count": len(self.rows),
            "peak_rss_bytes": self._peak("rss_bytes"),
            "mean_process_cpu_percent": self._mean("process_cpu_percent"),
            "mean_machine_cpu_percent": self._mean("machine_cpu_percent"),
            **self.pressure,
            "gpus": gpus,
        }

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

    `with_gpus`: also ask NVIDIA's driver. Where there is none, that part stays empty. `server`: where the measured
    server listens, if it is on this machine: its work is not other programs' work.
    """

    def __init__(self, *, with_gpus: bool, interval_s: float = INTERVAL_S, server: ServerPlace | None = None) -> None:
        self._nvml = Nvml() if with_gpus else None
        self._interval_s = interval_s
        self._samples = Samples()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="monitor")
        self._server = server
        self._before, self._started_s = Counters(), 0.0
        self._pressure: Mapping[str, Json] = {}

    @property
    def gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that are watched."""
        return () if self._nvml is None else self._nvml.gpus

    def __enter__(self) -> Monitor:
        self._before, self._started_s = read_pressure(server=self._server), time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        now = read_pressure(server=self._server)
        self._pressure = pressure(self._before, now, time.monotonic() - self._started_s)
        if self._nvml is not None:
            self._nvml.close()

    def _watch(self) -> None:
        before = read_counters()
        started_s = before.moment_s
        is_last = False
        while not is_last:
            is_last = self._done.wait(self._interval_s)  # a short run gets one row too
            now = read_counters()
            if is_last and self._samples.rows and now.moment_s - before.moment_s < self._interval_s / 4:
                return  # too short a time for a rate: the kernel counts in ticks of 10 ms
            loads = () if self._nvml is None else self._nvml.loads()
            self._samples.add(make_row(started_s, before, now, loads))
            before = now

    def record(self) -> LoadRecord:
        """Return what was seen, after the block."""
        step = self._samples.step
        return LoadRecord(
            interval_s=self._interval_s * step,
            gpus=self.gpus,
            rows=tuple(self._samples.rows),
            pressure=self._pressure,
        )
