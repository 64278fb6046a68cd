"""Jobs of Slurm as text: the words of sbatch, the script it submits, and what `scontrol show config` says.

Nothing here runs anything. One array serves many points: each element reads its point from a line of indexes.txt, so
that the script is the same for all, holds no value of a point, and can be read.
"""

import hashlib
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from crowdperf.sweeps.attempts import HEARTBEAT_S
from crowdperf.sweeps.executor import wrapper_words
from crowdperf.sweeps.folder import SweepFolder
from crowdperf.sweeps.planning import limit_min

SAFE = re.compile(r"[A-Za-z0-9_.,:=%@+/-]+")
KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SLURM_CONF", "TZ", "USER")
"""Variables of the caller that a job gets. Slurm keeps them in clear in its state folder, so nothing secret is one."""
OWN_FLAGS = ("array", "chdir", "comment", "export", "job-name", "output", "wrap", "parsable", "open-mode", "requeue",
             "signal")  # fmt: skip
SAME_NAMES = ("partition", "account", "qos", "constraint", "gres", "nodelist", "exclude", "reservation", "mem")
"""Options of ours that sbatch calls the same."""
SIGNAL_S = 120
"""Seconds before the time limit at which a job is told; Slurm may be a minute early (sbatch(1) of 22.05)."""
REQUEUES = 3


@dataclass(frozen=True)
class SlurmOptions:
    """What is asked of Slurm; empty or 0 leaves it to Slurm. Names are those of the inputs, and mostly of sbatch.

    time: a limit as sbatch reads it, or auto: 1.5 times the longest planned point, and 10 minutes. max_parallel: points
    at a time, 0 for no limit. environment: names of further variables that jobs get. secrets: a file of mode 0600 with
    NAME=VALUE lines, read on the node. slurm_extra: further words of sbatch. poll_s: shortest pause between two looks.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    gres: str = ""
    nodelist: str = ""
    exclude: str = ""
    reservation: str = ""
    mem: str = ""
    nodes: int = 1
    cpus: int = 0
    exclusive: bool = True
    time: str = "auto"
    max_parallel: int = 0
    requeue_on_timeout: bool = False
    slurm_extra: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    secrets: Path | None = None
    node_scratch: str = "SLURM_TMPDIR"
    python: str = sys.executable
    heartbeat_s: float = HEARTBEAT_S
    poll_s: float = 1.0


@dataclass(frozen=True)
class Limits:
    """What a Slurm allows. largest_array: elements of one array. kill_wait_s: from SIGTERM to SIGKILL."""

    largest_array: int = 1001
    most_jobs: int = 10_000
    kill_wait_s: int = 30


def limits_in(text: str) -> Limits:
    """The limits that `scontrol show config` prints; Slurm's defaults where it does not say."""
    found = {key.strip(): value.strip() for key, mark, value in (line.partition("=") for line in text.split("\n"))}

    def number(key: str, default: int) -> int:
        digits = re.match(r"\d+", found.get(key, ""))
        return int(digits[0]) if digits else default

    return Limits(number("MaxArraySize", 1001), number("MaxJobCount", 10_000), number("KillWait", 30))


def wrong_options(options: SlurmOptions) -> list[str]:
    """What is wrong with the values, one line for each, with the name of the input."""
    wrong = []
    for field in fields(options):
        value = getattr(options, field.name)
        given = value if isinstance(value, tuple) else (value,)
        if field.name in ("python", "secrets"):
            continue
        for one in given:
            if isinstance(one, str) and one and not SAFE.fullmatch(one):
                wrong.append(f"--{field.name}={one!r} may only contain letters, digits and _.,:=%@+/-")
    for word in options.slurm_extra:
        name = word.removeprefix("--").partition("=")[0]
        if not word.startswith("--") or any(flag.startswith(name) for flag in OWN_FLAGS):
            wrong.append(
                f"--slurm_extra={word!r} must be an option of sbatch such as --licenses=x. crowdperf sets these "
                f"itself, and sbatch also accepts their beginnings: {', '.join(OWN_FLAGS)}"
            )
    for name, least in (("nodes", 1), ("cpus", 0), ("max_parallel", 0)):
        if getattr(options, name) < least:
            wrong.append(f"--{name} must be at least {least}, got {getattr(options, name)}")
    return wrong


def wrong_path(path: Path) -> str:
    """Why a folder cannot be named to sbatch; empty if it can."""
    if "\\" in str(path) or "\n" in str(path):
        return f"the folder {str(path)!r} contains a backslash or newline, which sbatch does not support"
    return ""


def tag(sweep: SweepFolder) -> str:
    """What marks the jobs of a sweep folder, and of no other, in their --comment."""
    return "crowdperf-" + hashlib.sha256(str(sweep.path.resolve()).encode()).hexdigest()[:16]


def job_name(sweep: SweepFolder) -> str:
    """The name of the jobs for people."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", sweep.path.name) or "sweep"


def request_words(options: SlurmOptions, planned_s: Sequence[float]) -> list[str]:
    """The words of sbatch that say what is asked for, not which jobs."""
    named = {
        **{name: getattr(options, name) for name in SAME_NAMES},
        "nodes": str(options.nodes),
        "ntasks": str(options.nodes),
        "cpus-per-task": str(options.cpus) if options.cpus else "",
        "time": str(limit_min(max(planned_s, default=0.0))) if options.time == "auto" else options.time,
    }
    words = [f"--{name}={value}" for name, value in named.items() if value]
    words += ["--exclusive"] if options.exclusive else []
    limit_s = seconds_of(named["time"])
    warning_s = SIGNAL_S if limit_s is None else min(SIGNAL_S, limit_s // 3)
    return [*words, f"--signal=B:USR1@{warning_s}", *options.slurm_extra]


def seconds_of(limit: str) -> int | None:
    """Seconds of a time limit as sbatch reads it (sbatch(1) of 22.05): minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit)
    if found is None:
        return None
    days, first, second, third = (int(digits or 0) for digits in found.groups())
    if found[1] is not None or found[4] is not None:
        return ((days * 24 + first) * 60 + second) * 60 + third
    return first * 60 + second


def array_words(sweep: SweepFolder, folder: Path, count: int, max_parallel: int) -> list[str]:
    """The words of sbatch that make `count` points one array, with its output in `folder`."""
    throttle = f"%{max_parallel}" if max_parallel else ""
    return [
        "--parsable",
        "--requeue",
        "--open-mode=append",
        "--export=ALL",
        f"--job-name={job_name(sweep)}",
        f"--comment={tag(sweep)}:{folder.name}",
        f"--chdir={sweep.path.resolve()}",
        f"--output={str(folder.resolve()).replace('%', '%%')}/%A_%a.out",
        f"--array=0-{count - 1}{throttle}",
    ]


def script(sweep: SweepFolder, folder: Path, options: SlurmOptions, limits: Limits, words: Sequence[str]) -> str:
    """job.sh: one element of the array makes an attempt at one point. `words`: those of sbatch, to be read."""
    place = f"jobs/{folder.name}"
    wrapper = ["--points=points", f"--list={place}/indexes.txt", f"--heartbeat_s={options.heartbeat_s}"]
    wrapper += [f"--grace_s={max(1, limits.kill_wait_s - 2)}", f"--scratch={options.node_scratch}"]
    wrapper += [f"--requeues={REQUEUES}"] if options.requeue_on_timeout else []
    wrapper += [f"--secrets={options.secrets.resolve()}"] if options.secrets is not None else []
    return f"""#!/bin/bash
# Makes an attempt at the point on line SLURM_ARRAY_TASK_ID + 1 of {place}/indexes.txt. Submitted with
# {shlex.join(["sbatch", *words])}
set -u
cd {shlex.quote(str(sweep.path.resolve()))} || exit 78
exec {shlex.join([*wrapper_words(options.python), *wrapper])} --line="$SLURM_ARRAY_TASK_ID"
"""


def command_line(argv: Sequence[str]) -> str:
    """A line of a script that becomes this command."""
    return "exec " + shlex.join(argv)
