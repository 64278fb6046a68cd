"""What running points costs beside their programs: the wrapper, the executor of this machine, and Slurm.

wrapper     CPU time of one start: a point that runs `true`, and one that is done already
watching    CPU time of a wrapper in --seconds of waiting for its program, as a share of a core
local       seconds per point that runs `true`, one after another
states      CPU time of one look at --points points that are done
slurm       seconds per point that runs `true`, and per element of a plain array of `true`, in a Slurm of its own with
            one emulated node below a temporary folder (needs root and Debian's packages; else left out)

.venv-test/bin/python benchmarks/fleet_overhead.py --rounds=5
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "sweeps")]

from point_builder import make_point, wrapper  # noqa: E402
from slurm_sandbox import Sandbox, reason_against  # noqa: E402

from crowdperf.sweeps.folder import SweepFolder  # noqa: E402
from crowdperf.sweeps.local import LocalExecutor  # noqa: E402
from crowdperf.sweeps.sbatch import SlurmOptions  # noqa: E402
from crowdperf.sweeps.slurm import SlurmExecutor  # noqa: E402


def children_s() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor_s(work: Callable[[], object]) -> float:
    """Processor seconds of the processes that `work` starts and waits for."""
    before = children_s()
    work()
    return children_s() - before


def wall_s(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def report(name: str, values: list[float], unit: str, scale: float = 1.0) -> None:
    """Prints the median and the range of a figure."""
    shown = [value * scale for value in values]
    print(f"{name:58} {statistics.median(shown):9.3f} {unit}  ({min(shown):.3f} to {max(shown):.3f})")


def measure_here(folder: Path, rounds: int, count: int, seconds: float) -> None:
    """The wrapper, the executor of this machine, and a look at many points."""
    sweep = SweepFolder(folder / "wrapper")
    points = [make_point(sweep, f"p{number}", "true") for number in range(rounds)]
    fresh = [processor_s(lambda point=point: wrapper(point).wait()) for point in points]
    report("wrapper, a point that runs `true`", fresh, "s of CPU time")
    kept = [processor_s(lambda point=point: wrapper(point).wait()) for point in points]
    report("wrapper, a point that is done", kept, "s of CPU time")
    waiting = make_point(SweepFolder(folder / "waiting"), "p", f"exec sleep {seconds}")
    share = (processor_s(lambda: wrapper(waiting).wait()) - statistics.median(fresh)) / seconds
    report(f"wrapper, watching for {seconds:g} s", [max(0.0, share)], "% of a core", 100)
    local = []
    for number in range(rounds):
        one = SweepFolder(folder / f"local{number}")
        few = [make_point(one, f"p{index}", "true") for index in range(5)]
        local.append(wall_s(lambda one=one, few=few: LocalExecutor().start(one, few)) / len(few))
    report("local executor, a point that runs `true`", local, "s")
    many = SweepFolder(folder / "many")
    published = SweepFolder(folder / "wrapper").point("p0").path
    for number in range(count):
        path = many.point(f"p{number:05d}").path
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", str(published), str(path)], check=True)
    looks = []
    for _ in range(rounds):
        begin = time.process_time()
        LocalExecutor().states(many)
        looks.append(time.process_time() - begin)
    report(f"states of {count} points", looks, "s of CPU time")


def measure_slurm(folder: Path, rounds: int) -> None:
    """An array of points, and a plain one, on one emulated node with four processors."""
    count = 20
    with Sandbox(1) as sandbox:
        os.environ.update({name: sandbox.environment[name] for name in ("SLURM_CONF", "PATH")})
        plain, ours = [], []
        for number in range(rounds):
            words = ["sbatch", f"--array=0-{count - 1}", "--output=/dev/null", "--cpus-per-task=1", "--mem=100"]
            begin = time.monotonic()
            subprocess.run([*words, "--wrap=true"], env=sandbox.environment, check=True, capture_output=True)
            sandbox.until(lambda: not sandbox.run("squeue", "-h"))
            plain.append((time.monotonic() - begin) / count)
            sweep = SweepFolder(folder / f"slurm{number}")
            points = [make_point(sweep, f"p{index}", "true") for index in range(count)]
            executor = SlurmExecutor(SlurmOptions(exclusive=False, cpus=1, mem="100", poll_s=0.1))
            begin = time.monotonic()
            executor.start(sweep, points)
            executor.wait(sweep, lambda: None)
            ours.append((time.monotonic() - begin) / count)
    report("plain array of `true`, an element", plain, "s")
    report("array of points that run `true`, a point", ours, "s")


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # no waiting for other sweeps of this machine
        measure_here(Path(folder), given.rounds, given.points, given.seconds)
        if reason := reason_against():
            print(f"slurm: left out: {reason}")
        else:
            measure_slurm(Path(folder), given.rounds)


if __name__ == "__main__":
    main()
