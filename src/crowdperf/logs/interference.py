"""What disturbed a measured run: other programs, swapping, a processor or GPU that was held back. Pure.

The harness records what this needs in each result.json (`load`, `machine`, `duration_s`), so that a verdict can be
derived again from the record alone. A figure of a disturbed run says little about the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.records import number_of
from crowdperf.rules.names import Scenario

MIN_OTHERS_PERCENT = 5.0
"""Part of all processors that other programs must have used. Quiet runs of the digits benchmark (2 cores, virtual
machine, 2026-11-22) had 0 to 1.7 %, runs on the same machine with other work 44 to 83 %; a quiet system scatters by 2 %
from run to run."""

MIN_OTHERS_S = 0.4
"""Processor seconds that other programs must have used: in a run of 2 s the system's own housekeeping is more than 5 %
(0.27 s, 6.8 %, in one quiet run of 2026-11-22)."""

MIN_STOLEN_PERCENT = 1.0
"""From here on the part that other virtual machines took is named."""

MIN_SWAPPED_BYTES_PER_S = 1024 * 1024
"""A page (4 KiB) that comes from an SSD takes about 0.1 ms: so many pages cost a thread 2.5 % of its time."""

MIN_HELD_BACK_PERCENT = 1.0
"""Part of the time in which heat slowed the processor down, or of the periods in which a quota stopped the run."""

MIN_SLOWDOWN_PERCENT = 10.0
"""From here on a core that became slower during a run is named: the 10th percentile of the probe's speed beside the
90th. A virtual machine of 2 cores on a shared host had 29 to 42 % within minutes, with nothing else running
(2026-11-28)."""

MIN_CLOCK_STEP_S = 0.05
"""LoadGen's power_begin and power_end are times of day. NTP sets a clock that is off by more than 0.128 s (STEPT of
RFC 5905) and slews it otherwise, which both clocks of Linux follow."""

VERDICT = "do not compare these results"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One cause. words: a sentence with `{}` in the place of `amount` ("42 %"). percent: the amount, None for another
    unit. is_slowing: it can only have made the run slower."""

    words: str
    amount: str
    percent: float | None = None
    is_slowing: bool = True

    def __str__(self) -> str:
        return self.words.format(self.amount)


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def others_percent(load: Mapping[str, Any], machine: Mapping[str, Any]) -> float | None:
    """Return the part of all processors that others than the run used, with what other virtual machines took (steal
    time); None where the system did not tell. `load`, `machine`: of a result.json; the harness says it in `load`, but
    for records from before 2026-11-23, where it follows from the means."""
    said = number_of(load.get("others_percent"))
    if said is not None:
        return said
    everything, own = number_of(load.get("mean_machine_cpu_percent")), number_of(load.get("mean_process_cpu_percent"))
    cores = number_of(machine.get("core_count"))
    if everything is None or own is None or not cores:
        return None
    return max(0.0, everything - own / cores)


def _others(result: Mapping[str, Any], load: Mapping[str, Any], seconds: float) -> list[Disturbance]:
    machine = result.get("machine") or {}
    percent = others_percent(load, machine)
    if percent is None or percent < MIN_OTHERS_PERCENT:
        return []
    if percent / 100 * seconds * float(machine.get("core_count") or 1) < MIN_OTHERS_S:
        return []
    stolen = number_of(load.get("stolen_percent")) or 0.0
    virtual = f" ({_percent(stolen)} other virtual machines)" if stolen >= MIN_STOLEN_PERCENT else ""
    if "server_percent" in load and load["server_percent"] is None:
        return []  # what the measured server used is in it, and nobody knows how much: `server_lines` says so
    return [Disturbance("other programs used {} of the CPU", f"{_percent(percent)}{virtual}", percent)]


def server_lines(results: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return what a measured server on the same machine used of it: "the server on this machine used 71 % of the
    processor during Offline". It is part of the system under test, and no disturbance. `results`: as
    `disturbance_lines` takes them."""
    loads = [(name, load) for name, result in results if isinstance(load := result.get("load"), Mapping)]
    used = [(name, said) for name, load in loads if (said := number_of(load.get("server_percent"))) is not None]
    unknown = [name for name, load in loads if "server_percent" in load and load["server_percent"] is None]
    lines = []
    if used:
        amounts = ", ".join(f"{_percent(said)}{'' if place else ' of the CPU'} during {name}"
                            for place, (name, said) in enumerate(used))  # fmt: skip
        lines.append(f"the server on this machine used {amounts}")
    if unknown:
        lines.append(
            f"the server on this machine belongs to another user, so its CPU use during {', '.join(unknown)}, and that "
            f"of other programs, is unknown: run as its user or as root to measure it"
        )
    return tuple(lines)


def is_steady_load(result: Mapping[str, Any]) -> bool:
    """Return whether the run itself loads the cores in the same way all the time, so that a core that becomes slower
    does so for another reason: Offline. Elsewhere a run's own thread may share a core with the probe, as the other
    hyper-thread, at one moment and not at the next. `result`: the content of a result.json."""
    scenario = ((result.get("run") or {}).get("scenario") or {}).get("value")
    return bool(scenario == Scenario.OFFLINE.value)


def clock_step_s(result: Mapping[str, Any]) -> float:
    """Return by how much the machine's clock was set during a run, 0 where that was too little to matter. No rate is
    derived from such a run. `result`: the content of a result.json."""
    step_s = number_of((result.get("load") or {}).get("clock_step_s")) or 0.0
    return step_s if abs(step_s) >= MIN_CLOCK_STEP_S else 0.0


def disturbances(result: Mapping[str, Any]) -> tuple[Disturbance, ...]:
    """Return what disturbed a run so much that its figure should not be compared; empty for a quiet machine, for an
    accuracy run and where nothing was recorded. `result`: the content of a result.json."""
    load, seconds = result.get("load"), number_of(result.get("duration_s"))
    if not isinstance(load, Mapping) or not seconds or result.get("metric") is None:
        return ()
    found = _others(result, load, seconds)
    swapped = number_of(load.get("swapped_bytes")) or 0.0
    if swapped and swapped >= MIN_SWAPPED_BYTES_PER_S * seconds:  # a clock that was set makes any number of seconds
        found.append(Disturbance("{} of memory were swapped", _size(swapped)))
    slower = 100.0 - (number_of(load.get("probe_slowest_percent")) or 100.0)
    if slower >= MIN_SLOWDOWN_PERCENT and is_steady_load(result):
        words = "a core was up to {} slower at times (clock, heat, or other virtual machines on its host)"
        found.append(Disturbance(words, _percent(slower), slower))
    for key, words in (
        ("heat_throttled_percent", "heat slowed the CPU down for {} of the time"),
        ("quota_throttled_percent", "a CPU quota (cgroup) stopped the run in {} of its periods"),
    ):
        percent = number_of(load.get(key)) or 0.0
        if percent >= MIN_HELD_BACK_PERCENT:
            found.append(Disturbance(words, _percent(percent), percent))
    step_s = clock_step_s(result)
    if step_s:
        words = (
            "the machine's clock was set by {} during the run, so LoadGen's timestamps are wrong: rerun "
            "before you submit"
        )
        found.append(Disturbance(words, f"{step_s:+.6g} s", is_slowing=False))
    return (*found, *_on_gpus(load))


def _on_gpus(load: Mapping[str, Any]) -> list[Disturbance]:
    """What disturbed the GPUs of the run; that a GPU works at its own power limit is no disturbance."""
    found = []
    for gpu in load.get("gpus") or ():
        name = f"GPU {gpu.get('index')}"
        if (others := int(number_of(gpu.get("other_processes")) or 0)) > 0:
            found.append(Disturbance(f"{{}} had {name} open", f"{others} other program{'s' * (others > 1)}"))
        percent = number_of(gpu.get("heat_throttled_percent")) or 0.0
        if percent >= MIN_HELD_BACK_PERCENT:
            words = f"heat or power supply slowed {name} down for {{}} of the time"
            found.append(Disturbance(words, _percent(percent), percent))
    return found


def disturbance_lines(results: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return one line for each cause, with the runs that it disturbed: "other programs used 42 % of the CPU
    during Offline, 38 % during Server: do not compare these results". `results`: name and content of result.json."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, result in results:
        for one in disturbances(result):
            found.setdefault(one.words, []).append((name, one.amount))
    lines = []
    for words, ((name, amount), *others) in found.items():
        more = "".join(f", {further} during {run}" for run, further in others)
        lines.append(f"{words.format(amount)} during {name}{more}: {VERDICT}")
    return tuple(lines)
