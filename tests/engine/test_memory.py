"""What the kernel tells of memory: counters, limits, sizes, read from made-up /proc and /sys folders."""

from pathlib import Path

import pytest
from recipe_engine.running.process import MemoryWatch, figures, group_folders, largest_child_bytes

MEMINFO = "MemTotal:       24696032 kB\nMemFree: 1 kB\nMemAvailable:   2048000 kB\nHugePages_Total:       0\n"


def machine(folder: Path, *, vmstat: str = "", cgroup: str = "0::/\n", **files: str) -> tuple[Path, Path]:
    """A /proc and a /sys/fs/cgroup; ``files`` are those of the control group at its top, ``_`` for ``.``."""
    proc, groups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    groups.mkdir()
    (proc / "meminfo").write_text(MEMINFO)
    (proc / "self" / "cgroup").write_text(cgroup)
    if vmstat:
        (proc / "vmstat").write_text(vmstat)
    for name, text in files.items():
        (groups / name.replace("_", ".")).write_text(text)
    return proc, groups


def test_a_counter_that_grows_on_the_machine_means_that_memory_ran_out(tmp_path: Path) -> None:
    proc, groups = machine(tmp_path, vmstat="pgfault 7\noom_kill 3\n")
    watch = MemoryWatch(proc, groups)
    same = watch.facts()
    (proc / "vmstat").write_text("pgfault 9\noom_kill 4\n")
    grown = watch.facts()
    assert (same.is_exhausted, grown.is_exhausted) == (False, True)
    assert "killed no process for memory" in same.lines[0]
    assert "killed a process because memory ran out" in grown.lines[0]


def test_a_counter_that_grows_in_the_control_group_does_too_and_its_limit_is_told(tmp_path: Path) -> None:
    proc, groups = machine(
        tmp_path, vmstat="oom_kill 3\n", memory_events="low 0\noom_kill 0\n", memory_max="512000000\n"
    )
    watch = MemoryWatch(proc, groups)
    (groups / "memory.events").write_text("low 0\noom_kill 1\n")
    facts = watch.facts()
    assert facts.is_exhausted is True
    assert "512.0 MB limit of this control group, 25.3 GB in this machine, 2.1 GB free now" in facts.lines[1]


@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n", ""])
def test_no_limit_is_no_figure(tmp_path: Path, text: str) -> None:
    proc, groups = machine(tmp_path, memory_max=text)
    assert not any("limit" in line for line in MemoryWatch(proc, groups).facts().lines)


def test_the_smallest_limit_of_the_groups_above_counts(tmp_path: Path) -> None:
    proc, groups = machine(tmp_path, cgroup="0::/batch/job\n")
    (groups / "batch" / "job").mkdir(parents=True)
    (groups / "batch" / "memory.max").write_text("1000000000")
    (groups / "batch" / "job" / "memory.max").write_text("2000000000")
    assert any("1.0 GB limit" in line for line in MemoryWatch(proc, groups).facts().lines)


def test_where_the_system_tells_nothing_nothing_is_claimed(tmp_path: Path) -> None:
    facts = MemoryWatch(tmp_path / "no-proc", tmp_path / "no-groups").facts()
    assert facts.is_exhausted is None
    assert not any("limit" in line or "machine" in line or "oom" in line for line in facts.lines)


def test_the_group_of_a_process_is_found_in_both_versions() -> None:
    root = Path("/g")
    assert group_folders("0::/user/x\n", root) == [root, root / "user/x"]
    assert group_folders("7:cpu,cpuacct:/a\n4:memory:/b\n", root) == [root, root / "memory", root / "memory/b"]
    assert group_folders("", root) == [root]


def test_words_of_the_kernel_are_read() -> None:
    assert figures("a 1\noom_kill 12\n")["oom_kill"] == 12
    assert "oom_kill" not in figures("oom_kill_x 12\n")
    assert figures(MEMINFO)["MemTotal"] == 24696032 * 1024
    assert figures("nonsense\n\nA: b kB\n") == {}


def test_the_largest_child_of_this_process_has_a_size() -> None:
    import subprocess

    subprocess.run(["true"], check=True)
    assert largest_child_bytes() > 100_000
