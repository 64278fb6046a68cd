"""Measures the energy of a run by counters of this machine, or by a command of the user. Informative: a power result
of MLPerf needs a certified meter.

RAPL: `energy_uj` of each CPU package below /sys/class/powercap, in microjoules; it wraps at `max_energy_range_uj`
(Documentation/power/powercap/powercap.rst of Linux, read November 2026). Packages only: cores and uncore are parts of
them, psys contains them, and intel-rapl-mmio counts them a second time. Memory is not in them. NVML: the energy counter
of each GPU of the run. Neither was run on hardware: the tests have a tree of files and a stand-in for the package. A
command prints its power in watts, one number per line; only its value counts then, because it may contain the others.

All meters are read from before the run to its end. The energy is the difference at LoadGen's power_begin and power_end,
linear between two readings.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, TypeAlias

from crowdperf.harness.watch.machine import read_text
from crowdperf.harness.watch.nvml import Nvml
from crowdperf.logs.efficiency import Work, energy_per_work
from crowdperf.logs.run_log import Json

POWERCAP = Path("/sys/class/powercap")
IDLE_S = 2.0
"""How long the idle power is measured before a run: this project's choice, as the following limits are."""
INTERVAL_S = 0.25
MIN_READINGS = 2
"""In the measured time."""
MAX_GAP_S = 15.0
"""Between two readings: a command may print every 10 s."""
_MAX_LINE_BYTES = 256
_STOP_S = 2.0
_MAX_SAID = 200
_PACKAGE = re.compile(r"intel-rapl:\d+")

Readings: TypeAlias = "list[tuple[float, float]]"
"""Monotonic seconds and joules since some start, in order."""


class NoEnergy(ValueError):
    """The readings of a meter give no energy for a time; the text says why."""


def energy_between(readings: Sequence[tuple[float, float]], begin_s: float, end_s: float) -> float:
    """Return the joules between two moments, linear between readings. Raises NoEnergy for too few readings."""
    inside = [one for one in readings if begin_s <= one[0] <= end_s]
    if len(inside) < MIN_READINGS:
        count = f"{len(inside)} {'reading' if len(inside) == 1 else 'readings'}"
        raise NoEnergy(f"{count} in {end_s - begin_s:.1f} s, at least {MIN_READINGS} are needed")
    before = [one for one in readings if one[0] < begin_s][-1:]
    after = [one for one in readings if one[0] > end_s][:1]
    used = [*before, *inside, *after]
    moments = [*([] if before else [begin_s]), *(moment_s for moment_s, _ in used), *([] if after else [end_s])]
    gap_s = max(later - one for one, later in itertools.pairwise(moments))
    if gap_s > MAX_GAP_S:
        raise NoEnergy(f"no reading for {gap_s:.0f} s, at most {MAX_GAP_S:g} s are allowed")
    return _at(used, end_s) - _at(used, begin_s)


def _at(readings: Sequence[tuple[float, float]], moment_s: float) -> float:
    """The joules at a moment; before the first and after the last reading, the power next to it goes on."""
    later = next((place for place, one in enumerate(readings) if one[0] >= moment_s), len(readings) - 1)
    (first_s, first_j), (second_s, second_j) = readings[max(later, 1) - 1 : max(later, 1) + 1]
    return first_j + (second_j - first_j) * (moment_s - first_s) / (second_s - first_s)


@dataclass(slots=True, kw_only=True)
class Meter:
    """The readings of one counter, or of the command. problem: the reason that it has no energy."""

    name: str
    kind: Literal["RAPL", "NVML", "command"]
    readings: Readings = field(default_factory=list)
    problem: str = ""

    def energy_j(self, begin_s: float, end_s: float) -> float | None:
        """Return the joules of a time, None if there are none."""
        if self.problem:
            return None
        try:
            return energy_between(self.readings, begin_s, end_s)
        except NoEnergy:
            return None

    def why_not(self, begin_s: float, end_s: float) -> str:
        """Return why a time has no energy, empty if it has."""
        try:
            energy_between(self.readings, begin_s, end_s)
        except NoEnergy as error:
            return self.problem or f"{self.name}: {error}"
        return self.problem


class Package:
    """The counter of one CPU package. Raises OSError if it cannot be read."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / "energy_uj"
        self._range_uj = int((folder / "max_energy_range_uj").read_text())
        self._last_uj, self._sum_uj = int(self._file.read_text()), 0
        self.meter = Meter(name=name, kind="RAPL")

    def joules(self) -> float | None:
        now_uj = int(self._file.read_text())
        step_uj = now_uj - self._last_uj
        self._last_uj, self._sum_uj = now_uj, self._sum_uj + step_uj + (self._range_uj if step_uj < 0 else 0)
        return self._sum_uj / 1e6


def open_packages(powercap: Path) -> tuple[list[Package], list[str]]:
    """Return the CPU packages whose counters can be read, and why others cannot."""
    found, problems = [], []
    for folder in sorted(powercap.glob("intel-rapl:*")):
        name = read_text(folder / "name").strip()
        if not _PACKAGE.fullmatch(folder.name) or not name.startswith("package"):
            continue
        try:
            found.append(Package(folder, name))
        except (OSError, ValueError) as error:
            why = "readable by root only" if isinstance(error, PermissionError) else str(error)
            problems.append(f"RAPL of {name}: {folder / 'energy_uj'} is not usable: {why}")
    return found, problems


def watts_of(line: bytes) -> float:
    """Return the power that a line of a command is. Raises ValueError."""
    text = line.decode("utf-8", "replace").strip()
    try:
        watts = float(text)
    except ValueError:
        watts = math.nan
    if not math.isfinite(watts) or watts < 0:
        raise ValueError(f"printed {text[:40]!r}; allowed: one number of watts per line, 0 or more")
    return watts


class PowerCommand:
    """The user's program, started without a shell in a session of its own, which is stopped whole.

    words: the program and its arguments. Its power is that of the last line until the next one, in between linear.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.meter = Meter(name=words[0].rpartition("/")[2], kind="command")
        self._is_stopping = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `stop`
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                list(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True
            )
        except OSError as error:
            self._fail(f"cannot be started: {error.strerror or error}")
            return
        self._thread = threading.Thread(target=self._read, daemon=True, name="power command")
        self._thread.start()

    def _fail(self, why: str) -> None:
        self.meter.problem = f"--power_command={self.meter.name} {why}. The run has no energy"
        print(f"harness: {self.meter.problem}", file=sys.stderr, flush=True)

    def _read(self) -> None:
        process, watts = self._process, None
        assert process is not None and process.stdout is not None
        for number, line in enumerate(iter(lambda: _line(process.stdout), b""), start=1):
            try:
                now_w, now_s = watts_of(line), time.monotonic()
            except ValueError as error:
                self._fail(f"{error} (line {number})")
                self._signal(signal.SIGTERM)
                return
            readings = self.meter.readings
            step_j = 0.0 if watts is None else (now_w + watts) / 2 * (now_s - readings[-1][0])
            readings.append((now_s, (readings[-1][1] if readings else 0.0) + step_j))
            watts = now_w
        code = process.wait()
        if not self._is_stopping:
            self._said.seek(0)
            said = " ".join(self._said.read(10_000).decode("utf-8", "replace").split())[-_MAX_SAID:]
            self._fail(f"ended with code {code} before the run{f': {said}' if said else ''}")

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def stop(self) -> None:
        self._is_stopping = True
        if self._process is not None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._thread.join(_STOP_S)
            self._process = None
        self._said.close()


def _line(stream: IO[bytes] | None) -> bytes:
    return b"" if stream is None else stream.readline(_MAX_LINE_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of energy. is_local: the measured model is on this machine, so that its counters count. gpus: the
    CUDA devices of the run. command: the words of the user's program, none without one."""

    is_local: bool = True
    gpus: tuple[int, ...] = ()
    command: tuple[str, ...] = ()


class EnergyWatch:
    """Reads the meters from the start to the end of a `with` block, which begins with a time of rest for the idle
    power. Without any meter it does nothing."""

    def __init__(self, sources: Sources, *, idle_s: float = IDLE_S, interval_s: float = INTERVAL_S) -> None:
        self._sources, self._idle_s, self._interval_s = sources, idle_s, interval_s
        self._problems: list[str] = []
        self._packages: list[Package] = []
        self._nvml: Nvml | None = None
        self._gpu_meters: list[Meter] = []
        self._command: PowerCommand | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._began_s = 0.0

    @property
    def meters(self) -> list[Meter]:
        """All meters, that of the command last."""
        own = [] if self._command is None else [self._command.meter]
        return [*(one.meter for one in self._packages), *self._gpu_meters, *own]

    def __enter__(self) -> EnergyWatch:
        if self._sources.is_local:
            self._packages, self._problems = open_packages(POWERCAP)
            self._open_gpus()
        if self._sources.command:
            self._command = PowerCommand(self._sources.command)
        if self.meters:
            self._began_s = time.monotonic()
            self._thread = threading.Thread(target=self._watch, daemon=True, name="energy")
            self._thread.start()
            time.sleep(self._idle_s)
        return self

    def _open_gpus(self) -> None:
        if not self._sources.gpus:
            return
        self._nvml = Nvml(self._sources.gpus, tell=lambda reason: None)  # the monitor of the run tells it
        for gpu, energy_j in zip(self._nvml.gpus, self._nvml.energies_j(), strict=True):
            why = "" if energy_j is not None else "the driver has no energy counter for it"
            self._gpu_meters.append(
                Meter(name=f"GPU {gpu.index}", kind="NVML", problem=why and f"GPU {gpu.index}: {why}")
            )
        missing = len(self._sources.gpus) - len(self._gpu_meters)
        if missing:
            self._problems.append(f"NVML does not show {missing} of the {len(self._sources.gpus)} GPUs of this run")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._nvml is not None:
            self._nvml.close()

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self._command is not None:
            self._command.stop()

    def _watch(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._done.wait(self._interval_s)
            for package in self._packages:
                self._read(package.meter, package.joules)
            energies_j = () if self._nvml is None else self._nvml.energies_j()
            for meter, energy_j in zip(self._gpu_meters, energies_j, strict=True):
                self._read(meter, lambda value=energy_j: value)  # type: ignore[misc]

    def _read(self, meter: Meter, joules: Callable[[], float | None]) -> None:
        if meter.problem:
            return
        try:
            energy_j = joules()
        except (OSError, ValueError) as error:
            energy_j, meter.problem = None, f"{meter.name}: {error}"
        if energy_j is not None:
            meter.readings.append((time.monotonic(), energy_j))

    def part(self, begin_s: float, end_s: float, work: Work, *, problem: str = "") -> dict[str, Json] | None:
        """Return the key `energy` of result.json for a time of the block, with its work, None without any meter.

        problem: why the time is not known. The whole is that of the command, else of all counters together.
        """
        if not self.meters and not self._problems:
            return None
        rows = [(meter, *self._values(meter, begin_s, end_s, bool(problem))) for meter in self.meters]
        counted = [row for row in rows if row[0].kind == "command"] or rows
        problems = [problem, *(() if self._command else self._problems)]
        problems += [] if problem else [meter.why_not(begin_s, end_s) for meter, _, _ in counted]
        problems = [one for one in problems if one]
        energy_j = None if problems else math.fsum(one or 0.0 for _, one, _ in counted)
        idle = [watts for _, _, watts in counted]
        known = [watts for watts in idle if watts is not None]
        return {
            "method": _method([meter for meter, _, _ in counted]),
            "is_requested": bool(self._sources.command),
            "energy_j": energy_j,
            "seconds": end_s - begin_s,
            "mean_w": None if energy_j is None else energy_j / (end_s - begin_s),
            "idle_w": math.fsum(known) if known and len(known) == len(idle) and not problems else None,
            "idle_s": self._idle_s,
            **energy_per_work(energy_j, work),
            "meters": [
                {"name": meter.name, "kind": meter.kind, "energy_j": one_j, "idle_w": idle_w,
                 "readings": len(meter.readings)}
                for meter, one_j, idle_w in rows
            ],
            "problems": problems,
        }  # fmt: skip

    def _values(
        self, meter: Meter, begin_s: float, end_s: float, is_unknown: bool
    ) -> tuple[float | None, float | None]:
        """The joules of a time, and the watts of the rest before."""
        idle_j = meter.energy_j(self._began_s, self._began_s + self._idle_s)
        energy_j = None if is_unknown else meter.energy_j(begin_s, end_s)
        return energy_j, None if idle_j is None else idle_j / self._idle_s


def _method(meters: Sequence[Meter]) -> str:
    """How the energy was measured, and of what."""
    if any(meter.kind == "command" for meter in meters):
        return f"Power printed by {meters[0].name}, integrated from power_begin to power_end"
    found = [(kind, [one.name for one in meters if one.kind == kind]) for kind in ("RAPL", "NVML")]
    parts = [f"{kind} of {', '.join(names)}" for kind, names in found if names]
    return "" if not parts else f"{' and '.join(parts)} from power_begin to power_end, no other parts of the machine"
