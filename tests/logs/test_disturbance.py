"""When a figure must not be compared: loads of quiet and busy runs as recorded, counters of swap, heat and quota."""

from typing import Any

import pytest

from crowdperf.logs.interference import disturbance_lines, disturbances, server_lines

RECORDED = {
    "busy": [(99.6, 109.6, 2.003), (99.8, 85.6, 2.0), (99.9, 96.2, 7.12), (93.2, 21.0, 2.001)],
    "quiet": [(50.5, 100.8, 2.0), (97.8, 195.9, 2.0), (94.7, 187.9, 4.754), (10.8, 18.2, 2.001),
              (50.0, 99.7, 2.0), (50.4, 98.0, 2.0), (94.9, 188.6, 4.341), (17.3, 20.9, 2.0)],
}  # fmt: skip
"""mean_machine_cpu_percent, mean_process_cpu_percent and duration_s of runs of the digits benchmark in the scenarios
SingleStream, MultiStream, Offline, Server on 2 cores: on 2026-11-22 20:02 UTC beside other work (Offline 84,137
samples/s), at 22:48 and 23:14 UTC alone (197,510 and 166,431)."""


def result(machine: float, process: float, seconds: float, cores: int = 2, **load: Any) -> dict[str, Any]:
    return {
        "metric": {"name": "throughput", "value": 1.0},
        "duration_s": seconds,
        "machine": {"core_count": cores},
        "load": {"mean_machine_cpu_percent": machine, "mean_process_cpu_percent": process, **load},
    }


@pytest.mark.parametrize("row", RECORDED["busy"])
def test_a_recorded_run_beside_other_work_is_disturbed(row):
    (found,) = disturbances(result(*row))
    assert str(found).startswith("other programs used ")


@pytest.mark.parametrize("row", RECORDED["quiet"])
def test_a_recorded_run_on_a_quiet_machine_is_not(row):
    assert disturbances(result(*row)) == ()


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (result(52.0, 90.0, 600.0), "other programs used 7.0 % of the CPU"),
        (result(49.9, 90.0, 600.0), ""),  # 4.9 %
        (result(56.0, 90.0, 1.5), ""),  # 0.33 processor seconds
        (result(100.0, 3200.0, 60.0, cores=64), "other programs used 50 % of the CPU"),
        (result(60.0, 90.0, 600.0, stolen_percent=12.3), "used 15 % (12 % other virtual machines) of the CPU"),
        (result(45.0, 90.0, 10.0, swapped_bytes=20_000_000), "20 MB of memory were swapped"),
        (result(45.0, 90.0, 10.0, swapped_bytes=10_000_000), ""),
        (result(45.0, 90.0, 10.0, swapped_bytes=10**400), ""),  # a number that no float holds, by another program
        (result(45.0, 90.0, 10.0, gpus=[{"index": 0, "other_processes": float("nan")}]), ""),
        (result(45.0, 90.0, 10.0, heat_throttled_percent=3.4), "heat slowed the CPU down for 3.4 % of the time"),
        (
            result(45.0, 90.0, 10.0, quota_throttled_percent=34.0),
            "a CPU quota (cgroup) stopped the run in 34 % of",
        ),
        (result(45.0, 90.0, 10.0, heat_throttled_percent=0.9, quota_throttled_percent=0.0, swapped_bytes=None), ""),
        (result(45.0, 90.0, 10.0, clock_step_s=-0.4), "the machine's clock was set by -0.4 s during the run"),
        (result(45.0, 90.0, 10.0, clock_step_s=3600.0), "the machine's clock was set by +3600 s during the run"),
        (result(45.0, 90.0, 10.0, clock_step_s=0.002), ""),
        (result(99.0, 90.0, 10.0, others_percent=0.4), ""),  # the processors of a container, of a larger machine
        (result(45.0, 90.0, 10.0, others_percent=31.0), "other programs used 31 % of the CPU"),
        (result(99.0, 90.0, 10.0, others_percent=3.0, server_percent=71.0), ""),  # it is what is measured
        (result(99.0, 90.0, 10.0, others_percent=74.0, server_percent=None), ""),  # nobody knows: server_lines
        ({**result(99.0, 90.0, 10.0), "metric": None}, ""),  # an accuracy run
        ({**result(99.0, 90.0, 10.0), "machine": None}, ""),  # nothing says how many processors
        ({**result(99.0, 90.0, 10.0), "load": None}, ""),
    ],
)
def test_what_is_told_begins_where_the_thresholds_say(load, words):
    found = "; ".join(map(str, disturbances(load)))
    assert words in found
    assert bool(words) is bool(found)


@pytest.mark.parametrize(
    ("scenario", "slowest_percent", "words"),
    [
        ("Offline", 68.2, "a core was up to 32 % slower at times (clock, heat, or other virtual machines on its host)"),
        ("Offline", 90.1, ""),
        ("Offline", None, ""),  # too short a run to tell
        ("Server", 68.2, ""),  # the run itself is busy at one moment and idle at the next
    ],
)
def test_a_core_that_became_slower_is_told_where_the_run_cannot_be_the_cause(scenario, slowest_percent, words):
    seen = result(97.8, 195.9, 600.0, probe_slowest_percent=slowest_percent)
    found = disturbances({**seen, "run": {"scenario": {"value": scenario}}})
    assert "".join(map(str, found)) == words


def test_each_cause_has_one_line_with_the_runs_that_it_disturbed():
    runs = [("Offline", result(99.8, 85.6, 2.0, swapped_bytes=3_000_000_000)), ("Server", result(93.2, 21.0, 2.0))]
    assert disturbance_lines(runs) == (
        "other programs used 57 % of the CPU during Offline, 83 % during Server: do not compare these results",
        "3.0 GB of memory were swapped during Offline: do not compare these results",
    )
    assert disturbance_lines([("Offline", result(50.0, 98.0, 2.0))]) == ()


def test_the_work_of_the_measured_server_is_said_and_is_no_disturbance():
    one = result(99.0, 90.0, 10.0, others_percent=3.0, server_percent=71.2)
    two = result(99.0, 90.0, 10.0, others_percent=3.0, server_percent=6.04)
    unknown = result(99.0, 90.0, 10.0, others_percent=74.0, server_percent=None)
    assert server_lines([("Offline", one), ("Server", two), ("SingleStream", result(99.0, 90.0, 10.0))]) == (
        "the server on this machine used 71 % of the CPU during Offline, 6.0 % during Server",
    )
    (line,) = server_lines([("Offline", unknown)])
    assert line.startswith("the server on this machine belongs to another user, so its CPU use")
    assert server_lines([("Offline", {"load": None}), ("Server", {})]) == ()
