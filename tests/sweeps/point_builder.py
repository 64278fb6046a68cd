"""Writes points as a sweep does, of small shell programs, and runs their wrapper as executors do."""

import json
import subprocess
import sys
from typing import Any

from crowdperf.sweeps.executor import wrapper_words
from crowdperf.sweeps.folder import PointFolder, SweepFolder


def make_point(sweep: SweepFolder, name: str, program: str, **more: Any) -> PointFolder:
    """Writes a point that runs `program` with sh in its results folder."""
    point = sweep.point(name)
    point.results.mkdir(parents=True)
    content = {
        "format": 1,
        "id": name,
        "recipe": "run,something",
        "inputs": {},
        "repeat": 1,
        "argv": ["/bin/sh", "-c", program],
        "cwd": str(point.results),
        "environment": {},
        "outcome": None,
        "planned_s": 1.0,
        **more,
    }
    point.point_file.write_text(json.dumps(content), encoding="utf-8")
    return point


def wrapper(point: PointFolder, *words: str, **more: Any) -> subprocess.Popen[str]:
    """Starts the wrapper of a point."""
    command = [*wrapper_words(sys.executable), f"--point={point.path}", *words]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def run(point: PointFolder, *words: str, **more: Any) -> tuple[int, str]:
    """Exit code and stderr of the wrapper."""
    child = wrapper(point, *words, **more)
    told = child.communicate(timeout=60)[1]
    return child.returncode, told


def state(point: PointFolder, attempt: int = 1) -> dict[str, Any]:
    """state.json of an attempt."""
    content: dict[str, Any] = json.loads((point.attempts / f"{attempt:03d}" / "state.json").read_text())
    return content
