"""What a run says while it goes on and afterwards: progress, memory and load, metadata.json."""

import contextlib
import dataclasses
import fcntl
import io
import itertools
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import harness_support
import pytest

from crowdperf.harness.runner import metadata_json
from crowdperf.harness.watch import machine, measuring, monitor, pressure, processes, progress
from crowdperf.harness.watch import owner as owner_of
from crowdperf.harness.watch.machine import GpuFacts
from crowdperf.harness.watch.monitor import LoadRecord, Monitor, Reading, Samples, make_row
from crowdperf.harness.watch.nvml import GpuLoad
from crowdperf.harness.watch.progress import Counts, Expectation, Meter, Moment
from crowdperf.harness.watch.silence import Silence, silence_limit_s

harness_support.need("numpy")


def expectation(at_least_s: float = 60.0, at_least_samples: int = 100) -> Expectation:
    return Expectation(title="digits null Server performance", at_least_s=at_least_s, at_least_samples=at_least_samples)


# --- progress ---


def moment(done: int, measured_s: float | None = 10.0, rate: float = 5.0, **changes: Any) -> Moment:
    known: dict[str, Any] = {"expected": 0, "waited_s": (measured_s or 0.0) + 30.0, "is_over": False, **changes}
    return Moment(done=done, measured_s=measured_s, rate=rate, **known)


@pytest.mark.parametrize(
    ("expected", "done", "measured_s", "rate", "left_s"),
    [
        (0, 50, 10.0, 5.0, 50.0),  # the minimum time rules
        (0, 50, 10.0, 0.5, 100.0),  # the minimum number rules
        (0, 100, 70.0, 5.0, 0.0),
        (0, 50, 10.0, 0.0, None),
        (0, 0, None, 0.0, None),  # LoadGen still makes its queries
        (1000, 500, 10.0, 5.0, 100.0),  # Offline: only its samples count
        (1000, 1000, 10.0, 5.0, 0.0),
    ],
)
def test_the_time_left_is_that_of_the_condition_that_is_met_last(expected, done, measured_s, rate, left_s):
    assert progress.time_left_s(expectation(), moment(done, measured_s, rate, expected=expected)) == left_s


TITLE = "digits null Server performance"


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (moment(0, None), f"{TITLE}: LoadGen is making queries and loading samples, 30 s"),
        (moment(1534, 20.4, 76.7), f"{TITLE}: measuring, 1,534 samples, about 40 s left, 76.7 samples/s, 20 s"),
        (
            moment(1534, 20.4, 76.7, expected=10_000),
            f"{TITLE}: measuring, 1,534 of 10,000 samples, about 1 min 50 s left, 76.7 samples/s, 20 s",
        ),
        (moment(1534, 90.0, 76.7), f"{TITLE}: measuring, 1,534 samples, ends soon, 76.7 samples/s, 1 min 30 s"),
        (moment(50, 0.5, 0.0), f"{TITLE}: measuring, 50 samples, time left not known yet, 0 samples/s, 0 s"),
        (
            moment(9000, 61.0, is_over=True),
            f"{TITLE}: 9,000 samples, 1 min 1 s, LoadGen is sorting latencies and writing its logs",
        ),
    ],
)
def test_a_line_names_the_phase_what_is_done_and_how_long_it_still_takes(seen, line):
    assert progress.progress_lines(expectation(), seen)[0] == line


def test_an_accuracy_run_counts_the_samples_of_the_data_set():
    accuracy = expectation(at_least_s=0.0, at_least_samples=2000)
    assert "1,534 of 2,000 samples" in progress.progress_lines(accuracy, moment(1534))[0]


def test_time_and_rate_count_from_the_first_sample_and_the_end_is_seen():
    counts = Counts(2)
    story = progress.Story(counts, started_s=100.0)
    assert story.look(300.0).measured_s is None  # LoadGen made queries for 200 s
    counts.slots[0] += 50
    first = story.look(301.0)
    assert (first.measured_s, first.rate) == (1.0, 50.0)
    counts.slots[1] += 150
    counts.flush()
    assert not story.look(303.0).is_over  # the last queries are still being answered
    assert story.look(304.0).is_over


def test_offline_is_measured_from_its_one_query_on_and_over_with_its_last_sample():
    counts = Counts()
    story = progress.Story(counts, started_s=0.0)
    story.look(5.0)
    counts.expected = 100
    assert story.look(6.0).measured_s == 1.0
    counts.flush()
    counts.slots[0] = 99
    story.look(7.0)
    assert not story.look(8.0).is_over
    counts.slots[0] = 100
    assert story.look(9.0).is_over


@pytest.mark.parametrize(
    ("given_s", "batch_s", "limit_s"),
    [
        (None, 0.0, 900.0),
        (None, 0.01, 900.0),
        (None, 600.0, 18_000.0),  # a volume takes a processor ten minutes, and another one ten times as long
        (20.0, 600.0, 20.0),
    ],
)
def test_how_long_nothing_may_be_answered_comes_from_the_user_or_from_what_was_measured(given_s, batch_s, limit_s):
    assert silence_limit_s(given_s, batch_s) == limit_s


def test_silence_is_time_in_which_something_is_open_and_nothing_is_answered():
    counts = Counts(2)
    silence = Silence(counts)
    assert (silence.look(0.0), silence.look(500.0)) == (0.0, 0.0)  # LoadGen makes queries
    counts.asked = 3
    assert (silence.look(501.0), silence.look(504.0)) == (0.0, 3.0)
    counts.slots[1] += 1
    assert (silence.look(505.0), silence.look(506.0)) == (0.0, 1.0)
    counts.slots[0] += 2
    assert silence.look(507.0) == 0.0
    counts.asked = 4  # the next part of an accuracy run: its samples were loaded meanwhile
    assert (silence.look(900.0), silence.look(901.0)) == (0.0, 1.0)


def test_silence_in_a_query_that_loadgen_waits_for():
    counts = Counts()
    silence = Silence(counts)
    counts.answering = 8
    assert (silence.look(1.0), silence.look(4.0)) == (0.0, 3.0)
    counts.answered += 8  # and LoadGen asks for the next one before the next look
    assert (silence.look(5.0), silence.look(7.0), counts.open) == (0.0, 2.0, 8)
    counts.answering = 0
    assert (silence.look(8.0), counts.open, counts.done, counts.signs) == (0.0, 0, 8, 8)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_are_told_as_people_say_them(seconds, text):
    assert progress.duration_text(seconds) == text


def test_the_rate_is_that_of_the_last_seconds_only():
    meter = Meter(0.0)
    for second in range(1, 31):
        rate = meter.rate(float(second), 100 * second if second <= 10 else 1000 + 10 * (second - 10))
    assert rate == pytest.approx(10.0)


def test_a_slow_model_has_a_rate_between_two_answers():
    meter = Meter(0.0)
    rates = [meter.rate(float(second), second // 4) for second in range(1, 13)]
    assert all(rate > 0 for rate in rates[3:])


@contextlib.contextmanager
def a_terminal(columns: int) -> Iterator[tuple[int, int]]:
    """A terminal of this width: what it shows is read from the first descriptor, programs write to the second."""
    leader, follower = pty.openpty()
    try:
        resize(follower, columns)
        yield leader, follower
    finally:
        os.close(leader)
        os.close(follower)


def resize(descriptor: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def shown(leader: int, wanted: str) -> str:
    """What came, as much as is wanted: a terminal may hand out what was written in pieces."""
    seen = b""
    while len(seen) < len(wanted):
        seen += os.read(leader, 4096)
    return seen.decode()


def test_a_terminal_gets_one_rewritten_line_and_a_file_gets_lines():
    with a_terminal(columns=80) as (leader, follower):
        with progress.open_outlet({progress.FD_VARIABLE: str(follower)}, io.StringIO()) as outlet:
            assert outlet.is_terminal
            outlet.write(["one"])
            outlet.write(["two"])
            outlet.close()
        wanted = "\r\x1b[Jharness: one \r\x1b[Jharness: two \r\x1b[J"
        assert shown(leader, wanted) == wanted
    file = io.StringIO()
    for environment in ({}, {progress.FD_VARIABLE: "98765"}, {progress.FD_VARIABLE: "x"}):
        with progress.open_outlet(environment, file) as outlet:
            outlet.write(["line", "short"])
            outlet.close()
    assert file.getvalue() == "harness: line\n" * 3


def test_a_line_never_fills_the_terminal_and_a_narrower_one_is_cleared_of_all_its_rows():
    lines = ["a" * 59, "b" * 39, "c" * 30]
    with a_terminal(columns=70) as (leader, follower):
        with progress.open_outlet({progress.FD_VARIABLE: str(follower)}, io.StringIO()) as outlet:
            outlet.write(lines)
            resize(follower, 50)
            outlet.write(lines)
            resize(follower, 25)
            outlet.write(lines)
        wanted = (
            "\r\x1b[Jharness: " + "a" * 59 + " "
            + "\x1b[1A\r\x1b[Jharness: " + "b" * 39 + " "  # 69 letters stood in 2 rows of 50
            + "\x1b[1A\r\x1b[J" + "c" * 24  # 49 letters in 2 rows of 25
        )  # fmt: skip
        assert shown(leader, wanted) == wanted


def test_progress_reports_while_the_block_runs_and_ends_with_it(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.01)
    monkeypatch.delenv(progress.FD_VARIABLE, raising=False)
    counts = Counts()
    with progress.progress(expectation(), counts):
        counts.slots[0] = 7
        time.sleep(0.1)
    told = capsys.readouterr().err.splitlines()
    assert told
    assert told[-1].startswith("harness: digits null Server performance: measuring, 7 samples")


# --- memory and load ---

STAT = "cpu  100 0 50 800 50 0 0 0 30 0\ncpu0 1 2 3\n"


def test_waiting_for_a_disk_is_not_busy_and_guests_are_not_counted_twice():
    assert monitor.machine_ticks(STAT) == (150, 1000)
    assert monitor.machine_ticks("") == (None, None)


def test_a_row_holds_rates_between_two_moments_and_nothing_for_what_is_not_told():
    before = Reading(10.0, 1.0, 100, 1000, 5000, 7000)
    after = Reading(10.5, 1.9, 175, 1100, 6000, 6500)
    row = make_row(10.0, before, after, [GpuLoad(utilization_percent=97, used_bytes=8, sm_mhz=1980, reasons=4)])
    assert row == (0.5, 6000, 180.0, 75.0, 6500, None, None, 97, 8, None, 1980, None, None, 4, None)
    unknown = Reading(10.5, 1.9, None, None, None, None)
    assert make_row(10.0, before, unknown, []) == (0.5, None, 180.0, None, None, None, None)
    answered = Reading(10.5, 1.9, None, None, None, None, answered=640, probe_mb_per_s=431.2)
    assert make_row(10.0, before, answered, [])[-2:] == (640, 431.2)


def test_a_long_run_keeps_every_second_row_and_then_every_fourth():
    samples = Samples(most_rows=8)
    for number in range(1, 33):
        samples.add((number,))
    assert samples.step in (4, 8)
    numbers = [row[0] for row in samples.rows]
    assert len(numbers) < 8
    assert {after - before for before, after in itertools.pairwise(numbers)} <= {samples.step}
    assert numbers[-1] == 32


def test_the_summary_has_means_of_loads_and_peaks_of_memory():
    gpu = GpuFacts(index=0, name="NVIDIA H100", memory_bytes=80)
    rows = (
        (0.5, 100, 50.0, None, 9, None, None, 90, 40, 300.0, 1980, 2619, 50, 0x4, 0),
        (1.0, 300, 150.0, None, 8, None, None, None, 60, None, 1000, 2619, 61, 0x20 | 0x4, 1),
    )
    record = LoadRecord(interval_s=0.5, gpus=(gpu,), rows=rows)
    assert record.content()["columns"][-8:-5] == ["gpu0_percent", "gpu0_bytes", "gpu0_w"]
    seen = {
        "index": 0, "name": "NVIDIA H100", "mean_percent": 90.0, "peak_bytes": 60, "mean_w": 300.0, "energy_j": None,
        "mean_sm_mhz": 1490.0, "mean_memory_mhz": 2619.0, "peak_c": 61, "power_capped_percent": 100.0,
        "heat_throttled_percent": 50.0, "other_processes": 1,
    }  # fmt: skip
    assert record.summary() == {
        "sample_count": 2, "peak_rss_bytes": 300, "mean_process_cpu_percent": 100.0, "mean_machine_cpu_percent": None,
        "clock_step_s": 0.0, "probe_mb_per_s": None, "probe_slowest_percent": None, "rate_spread_percent": None,
        "gpus": [seen],
    }  # fmt: skip
    counted = dataclasses.replace(record, energies_j=(1300.0,), seconds=2.0).summary()["gpus"][0]
    assert (counted["energy_j"], counted["mean_w"]) == (1300.0, 650.0)
    assert LoadRecord(interval_s=0.5, gpus=(), rows=()).summary()["peak_rss_bytes"] is None


def load_of(answered: Sequence[int], probes: Sequence[float | None]) -> dict[str, object]:
    """The summary of a run with a row each half second."""
    rows = tuple(
        (0.5 * number, 100, 50.0, 60.0, 9, done, probe)
        for number, (done, probe) in enumerate(zip(answered, probes, strict=True), start=1)
    )
    return LoadRecord(interval_s=0.5, gpus=(), rows=rows).summary()


def test_how_far_a_rate_scatters_is_told_from_ten_slices_of_the_run():
    steady = load_of([0, *range(50, 2150, 100), 2100, 2100], [400.0] * 24)
    assert steady["rate_spread_percent"] == 0.0
    # 10 slices of 90 or 110 samples: standard deviation 10.54, t(9) = 2.26, 2.26 * 10.54 / sqrt(10) / 100
    done = list(itertools.accumulate([0, 50, *[90, 110] * 5, 7]))
    assert load_of(done, [400.0] * len(done))["rate_spread_percent"] == 7.5
    short = list(itertools.accumulate([0, 50, 90, 110, 90, 7]))
    assert load_of(short, [400.0] * 6)["rate_spread_percent"] is None, "three slices say nothing"
    assert load_of([0] * 9, [400.0] * 9)["rate_spread_percent"] is None


def test_the_speed_of_a_core_counts_only_while_samples_are_answered():
    done = list(itertools.accumulate([0, 0, 0, 50, *[100] * 10, 7, 0]))
    probes = [800.0, 800.0, 800.0, *[400.0] * 5, *[300.0] * 6, 300.0, 900.0]
    seen = load_of(done, probes)
    assert (seen["probe_mb_per_s"], seen["probe_slowest_percent"]) == (300.0, 75.0)
    assert load_of([1, 2, 3, 4, 5, 6], [None] * 6)["probe_slowest_percent"] is None, "a clock that is too coarse"


def a_system(root: Path, *, stolen: int, swapped: int, hot_ms: int, throttled: int) -> Path:
    """The files of a system with counters of this height; its processors have a quota in their cgroup's parent."""
    files = {
        "proc/stat": f"cpu  100 0 50 800 50 0 0 {stolen} 30 0\ncpu0 1 2 3\n",
        "proc/vmstat": f"nr_free_pages 7\npswpin {swapped}\npswpout 5\n",
        "proc/self/cgroup": "4:cpu,cpuacct:/v1\n0::/jobs/one\n",
        "sys/fs/cgroup/jobs/cpu.stat": f"usage_usec 9\nnr_periods 1{throttled:03}\nnr_throttled {throttled}\n",
        "sys/fs/cgroup/jobs/one/cpu.stat": "usage_usec 9\n",
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms": "0\n",
        "sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_total_time_ms": f"{hot_ms}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_steal_time_swapping_heat_and_a_quota_are_counted_from_before_to_after(tmp_path):
    before = pressure.read_counters(a_system(tmp_path, stolen=0, swapped=100, hot_ms=40, throttled=0))
    after = pressure.read_counters(a_system(tmp_path, stolen=250, swapped=356, hot_ms=240, throttled=40))
    alone = {**pressure.pressure(before, after, seconds=2.0), "others_percent": None}  # below
    assert alone == {
        "others_percent": None,
        "stolen_percent": 100.0,  # nothing but steal time in these counters
        "swapped_bytes": 256 * os.sysconf("SC_PAGE_SIZE"),
        "heat_throttled_percent": 10.0,
        "quota_throttled_percent": 100.0,
    }
    assert pressure.pressure(before, before, seconds=2.0)["quota_throttled_percent"] == 0.0


def test_others_are_what_all_programs_used_less_this_process():
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    before = pressure.Counters(process_s=10.0, busy_ticks=0, all_ticks=0)
    after = pressure.Counters(process_s=14.0, busy_ticks=9 * ticks_per_s, all_ticks=10 * ticks_per_s)
    assert pressure.pressure(before, after, seconds=5.0)["others_percent"] == 50.0  # 9 s busy, 4 s of them ours, of 10
    late_ticks = dataclasses.replace(after, busy_ticks=3 * ticks_per_s)
    assert pressure.pressure(before, late_ticks, seconds=5.0)["others_percent"] == 0.0


def family_ticks(proc: Path, pid: int) -> int:
    rows = processes.process_rows(proc)
    return processes.used_ticks(rows, processes.family(rows, {pid}))


def test_what_this_process_started_is_not_others_work(tmp_path):
    rows = {  # pid: name, parent, user, system, and the two of children that were waited for
        7: ("harness", 1, 100, 20, 3, 4), 8: ("keeper) S (x", 7, 1, 1, 0, 0), 9: ("server", 8, 900, 50, 5, 5),
        10: ("somebody", 1, 7000, 0, 0, 0), 11: ("other child", 10, 7000, 0, 0, 0),
    }  # fmt: skip
    for pid, (name, parent, *times) in rows.items():
        (tmp_path / str(pid)).mkdir()
        words = " ".join(map(str, times))
        (tmp_path / str(pid) / "stat").write_text(
            f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 0 0 0 {words} 20 0 1 0\n"
        )
    assert family_ticks(tmp_path, 7) == 127 + 2 + 960
    (tmp_path / "9" / "stat").write_text("")  # it has just ended
    assert family_ticks(tmp_path, 7) == 127 + 2
    assert family_ticks(tmp_path, 12) == 0


def test_a_busy_child_counts_as_this_process():
    before = pressure.read_counters()
    loop = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", loop], check=True)
    assert pressure.read_counters().process_s - before.process_s >= 0.15


def test_a_system_without_these_counters_says_nothing(tmp_path):
    nothing = pressure.read_counters(tmp_path)
    assert set(pressure.pressure(nothing, nothing, seconds=1.0).values()) == {None}


def test_a_block_is_watched_in_this_process():
    counts = Counts()
    with Monitor(counts=counts, interval_s=0.02) as watched:
        counts.slots[0] = 7
        began_s = time.process_time()
        block = bytearray(30_000_000)
        while time.process_time() < began_s + 0.3:  # of the processor, however much of it others leave
            block[0] = 1
    record = watched.record()
    content = json.loads(json.dumps(record.content()))
    assert len(content["rows"]) >= 3
    assert all(len(row) == len(content["columns"]) for row in content["rows"])
    assert record.summary()["peak_rss_bytes"] > 30_000_000
    assert {"stolen_percent", "swapped_bytes"} <= set(record.summary())
    assert record.rows[-1][content["columns"].index("answered")] == 7
    if hasattr(time, "thread_time") and sys.platform != "win32":
        assert all(row[content["columns"].index("probe_mb_per_s")] for row in content["rows"])
    rows = [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
    lengths_s = (end - begin for begin, end in itertools.pairwise([0.0, *(row["time_s"] for row in rows)]))
    seen_s = sum(row["process_cpu_percent"] / 100 * length_s for row, length_s in zip(rows, lengths_s, strict=True))
    assert 0.15 < seen_s < 0.6


@pytest.mark.parametrize(("set_by_s", "zone_s"), [(-0.4, 0), (0.0, 3600), (0.0, 0)])
def test_a_clock_that_is_set_during_a_block_is_seen(set_by_s: float, zone_s: int, monkeypatch: pytest.MonkeyPatch):
    """By NTP, or where daylight saving begins; two readings of a clock that nobody sets are the same."""
    now, localtime = time.time, time.localtime
    with Monitor(interval_s=60.0) as watched:
        monkeypatch.setattr(time, "time", lambda: now() + set_by_s)
        monkeypatch.setattr(
            time, "localtime", lambda moment: SimpleNamespace(tm_gmtoff=localtime(moment).tm_gmtoff + zone_s)
        )
    assert watched.record().summary()["clock_step_s"] == pytest.approx(set_by_s + zone_s, abs=0.04)


def test_a_block_that_ends_at_once_still_has_a_row():
    with Monitor(interval_s=60.0) as watched:
        pass
    assert len(watched.record().rows) == 1


WATCHING = (
    "import os, time; from crowdperf.harness.watch.owner import end_with_owner; end_with_owner(os.environ); "
    "time.sleep(60)"
)


def watching(owner: str) -> subprocess.Popen[str]:
    """A process that works for this one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), owner_of.OWNER_VARIABLE: owner}
    return subprocess.Popen([sys.executable, "-c", WATCHING], env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system has no pidfd")
def test_a_run_ends_with_the_process_that_it_works_for():
    with subprocess.Popen(["sleep", "60"]) as owner:
        run = watching(str(owner.pid))
        try:
            time.sleep(0.5)
            assert run.poll() is None
            owner.kill()
            owner.wait()
            _, said = run.communicate(timeout=30)
        finally:
            run.kill()
    assert run.returncode == -signal.SIGTERM
    assert "has ended, so the run ends too" in said


@pytest.mark.parametrize("owner", ["", "no number", "4194304999"])
def test_a_run_that_works_for_nobody_is_not_watched(owner):
    assert owner_of.open_owner({owner_of.OWNER_VARIABLE: owner}) is None
    assert owner_of.open_owner({}) is None


def test_a_process_that_measures_beside_another_one_says_so(tmp_path, capsys):
    path = tmp_path / "lock"
    with measuring.measuring(path):
        assert capsys.readouterr().err == ""
        with measuring.measuring(path):
            assert capsys.readouterr().err == f"harness: {measuring.MESSAGE}\n"
            with measuring.measuring(path):
                assert measuring.MESSAGE in capsys.readouterr().err
    with measuring.measuring(path):
        assert capsys.readouterr().err == ""


def test_one_that_began_second_is_still_known_when_the_first_has_ended(tmp_path, capsys):
    path = tmp_path / "lock"
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(measuring.measuring(path))
        second.enter_context(measuring.measuring(path))
        first.close()
        capsys.readouterr()
        with measuring.measuring(path):
            assert measuring.MESSAGE in capsys.readouterr().err


@pytest.mark.parametrize("name", ["no/such/folder", "link"])
def test_a_lock_file_that_cannot_be_opened_stops_no_run(tmp_path, capsys, name):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with measuring.measuring(tmp_path / name):
        assert capsys.readouterr().err == ""
    assert not (tmp_path / "elsewhere").exists()


# --- the machine ---


def test_the_machine_is_described_by_its_processor_memory_and_gpus(tmp_path, monkeypatch):
    for name in ("MODEL_NAME", "SOCKETS"):
        monkeypatch.delenv(f"CM_HOST_CPU_{name}", raising=False)
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Some  CPU @ 2.0GHz\nphysical id : 0\n")
    (tmp_path / "meminfo").write_text("MemTotal:       16 kB\nMemAvailable: 8 kB\n")
    facts = machine.machine_facts([GpuFacts(index=0, name="NVIDIA H100", memory_bytes=1)], tmp_path)
    assert (facts["processor"], facts["socket_count"]) == ("Some CPU @ 2.0GHz", 1)
    assert facts["memory_bytes"] == 16 * 1024
    assert facts["gpus"] == [{"index": 0, "name": "NVIDIA H100", "memory_bytes": 1}]
    bare = machine.machine_facts([], tmp_path / "nothing")
    assert (bare["memory_bytes"], bare["socket_count"]) == (None, None)
    assert bare["processor"]
    monkeypatch.setenv("CM_HOST_CPU_MODEL_NAME", "10 x Cortex-X925, 10 x Cortex-A725")
    monkeypatch.setenv("CM_HOST_CPU_SOCKETS", "2")
    detected = machine.machine_facts([], tmp_path)
    assert (detected["processor"], detected["socket_count"]) == ("10 x Cortex-X925, 10 x Cortex-A725", 2)


@pytest.mark.parametrize(
    ("facts", "backend", "name"),
    [
        ({"gpus": [{"name": "NVIDIA H100 80GB HBM3"}] * 8}, "tensorrt", "H100_80GB_HBM3x8_TRT"),
        ({"processor": "Some(R) CPU @ 2", "usable_core_count": 4}, "onnxruntime", "Some_CPU_2x1_onnxruntime"),
        ({"processor": "Some CPU", "core_count": 64, "socket_count": 2}, "onnxruntime", "Some_CPUx2_onnxruntime"),
        ({}, "null", "unknownx1_null"),
        ({"processor": "Client CPU", "gpus": [{"name": "RTX"}]}, "endpoint", "unknownx1_Endpoint"),
    ],
)
def test_a_system_has_a_name_of_safe_letters(facts, backend, name):
    assert machine.system_name(facts, backend) == name


# --- metadata.json ---


def result(scenario: str = "Offline", mode: str = "performance", **changes: object) -> dict[str, object]:
    def given(value: object) -> dict[str, object]:
        return {"value": value, "origin": "user"}

    content: dict[str, object] = {
        "run": {
            "model": given("bert-99.9"), "scenario": given(scenario), "mode": given(mode),
            "backend": given("tensorrt"), "min_duration_ms": given(600_000), "min_query_count": given(270_336),
        },
        "label": "a label", "is_synthetic": {"model": True, "dataset": False}, "valid": True,
        "metric": {"value": 812.5, "unit": "samples/s"}, "latency": {"p90_ns": 90, "p99_ns": 99},
        "early_stopping": {"is_met": True}, "min_duration_met": True, "samples_per_query": 24_576,
        "versions": {"tensorrt": "10.2.0"}, "machine": {"processor": "p", "gpus": [{"name": "NVIDIA L4"}]},
    }  # fmt: skip
    return {**content, **changes}


@pytest.mark.parametrize(
    ("scenario", "key", "figure"),
    [
        ("SingleStream", "result_90.00_percentile_latency_ns", 90),
        ("MultiStream", "result_99.00_percentile_per_query_latency_ns", 99),
        ("Offline", "result_samples_per_second", 812.5),
        ("Server", "result_completed_samples_per_sec", 812.5),
    ],
)
def test_the_figure_stands_under_the_key_that_scenario_key_names(scenario, key, figure):
    content = metadata_json.metadata(result(scenario))
    assert content["scenario_key"] == key
    assert content[key] == figure
    words = content["summary_string"].split(" ")
    assert words[1] == f"{figure},"  # VirtualClient's parser takes the second word without its last letter
    assert "Result is VALID" in content["summary_string"]


@pytest.mark.parametrize(
    ("scenario", "least"), [("SingleStream", 1024), ("MultiStream", 270_336), ("Offline", 24_576), ("Server", 270_336)]
)
def test_nvidias_count_of_queries_is_met_from_its_least_number_on(scenario: str, least: int) -> None:
    for count, is_met in ((least, True), (least - 1, False), (None, False)):
        made = result(scenario, samples_per_query=count)
        made["run"] = {**made["run"], "min_query_count": {"value": count, "origin": "user"}}
        content = metadata_json.metadata(made)
        assert content["satisfies_query_constraint"] is is_met
        key = "effective_samples_per_query" if scenario == "Offline" else "effective_min_query_count"
        assert content[key] == count


def test_a_performance_run_has_every_field_of_nvidias():
    content = metadata_json.metadata(result())
    assert set(content) == {
        "benchmark_full", "benchmark_short", "config_name", "detected_system", "early_stopping_met",
        "effective_min_duration_ms", "effective_samples_per_query", "result_samples_per_second", "result_validity",
        "satisfies_query_constraint", "scenario", "scenario_key", "summary_string", "system_name", "tensorrt_version",
        "test_mode", "label", "is_synthetic",
    }  # fmt: skip
    assert (content["benchmark_full"], content["benchmark_short"]) == ("bert-99.9", "bert")
    assert content["config_name"] == "L4x1_TRT-crowdperf_k_99_9_MaxP-Offline"
    assert content["satisfies_query_constraint"] is True
    assert content["test_mode"] == "PerformanceOnly"
    json.dumps(content)


def test_the_machine_of_a_client_is_not_called_the_system():
    base = result()
    content = metadata_json.metadata({**base, "run": {**base["run"], "backend": {"value": "endpoint"}}})
    assert content["system_name"] == "unknownx1_Endpoint"
    assert content["detected_system"].startswith("Client of a server: Machine(processor=p")


def test_a_short_run_says_that_the_ten_minutes_are_not_met_and_a_run_without_figures_null():
    short = result()
    short["run"] = {**short["run"], "min_duration_ms": {"value": 2000, "origin": "rule"}}
    content = metadata_json.metadata(short)
    assert content["summary_string"].endswith(
        "Result is INVALID, 10-min runtime requirement met: False"
    )  # NVIDIA's v4.1
    assert content["result_validity"] == "VALID"  # LoadGen's word
    bare = metadata_json.metadata(result("SingleStream", valid=False, latency=None, early_stopping=None))
    assert bare["result_90.00_percentile_latency_ns"] is None
    assert bare["result_validity"] == "INVALID"


def test_an_accuracy_run_lists_its_metrics_with_thresholds():
    score = {
        "passed": False,
        "metrics": [
            {"name": "ROUGE1", "value": 42.99, "unit": "", "reference": 43, "target": 42.55, "upper_limit": None,
             "passed": True},
            {"name": "GEN_LEN", "value": 3.0, "unit": "", "reference": 4, "target": 3.6, "upper_limit": 5.0,
             "passed": False},
            {"name": "X", "value": 1.0, "unit": "", "reference": None, "target": None, "upper_limit": None,
             "passed": None},
        ],
    }  # fmt: skip
    content = metadata_json.metadata(result(mode="accuracy"), score)
    assert content["accuracy"] == [
        {"name": "ROUGE1", "value": 42.99, "threshold": 42.55, "pass": True},
        {"name": "GEN_LEN", "value": 3.0, "threshold": 3.6, "pass": False, "upper_limit": 5.0},
        {"name": "X", "value": 1.0, "threshold": None, "pass": None},
    ]
    assert content["accuracy_pass"] is False
    assert content["summary_string"].startswith("[PASSED] ROUGE1: 42.990 (Threshold=42.550) | [FAILED] GEN_LEN")
    assert content["test_mode"] == "AccuracyOnly"


def test_an_accuracy_run_that_is_not_scored_says_so():
    content = metadata_json.metadata(result(mode="accuracy"))
    assert (content["accuracy"], content["accuracy_pass"]) == ([], None)
    assert content["summary_string"] == "not scored yet"


def test_the_speed_of_a_core_is_the_fastest_of_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter((0.0, 0.004, 1.0, 1.001, 2.0, 2.002))
    monkeypatch.setattr(time, "thread_time", lambda: next(moments))
    assert monitor.probe_mb_per_s() == 65.5  # 65,536 bytes in 1 ms
    monkeypatch.setattr(time, "thread_time", lambda: 5.0)
    assert monitor.probe_mb_per_s() is None
