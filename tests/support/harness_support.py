"""Shared by the harness tests: what they need, small data sets and models, and whole runs as processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness_libraries import need as need

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
SOURCE = SCRIPTS.parent / "src"
TIMEOUT_S = 120
QUICK_HARNESS = """
import sys
from crowdperf.harness.runner import warmup
warmup._MEASURED_S = 0.04
{first}
from crowdperf.harness.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""What `-m crowdperf.harness` does, but what is measured before a run takes a tenth of its time."""


def request(**changes: object) -> dict[str, object]:
    """Return a whole run.json with `changes`."""
    content: dict[str, object] = {
        "format": 3,
        "model": "digits",
        "backend": "null",
        "device": "cpu",
        "scenario": "Offline",
        "mode": "performance",
        "execution_mode": "test",
        "compliance_test": None,
        "find": False,
        "model_path": None,
        "model_info_path": None,
        "dataset_path": "digits",
        "preprocessed_path": None,
        "output_dir": "out",
        "precision": "fp32",
        "gpus": None,
        "batch_size": None,
        "instances": None,
        "threads": None,
        "batch_timeout_us": None,
        "target_qps": None,
        "target_latency_ms": None,
        "min_duration_ms": None,
        "min_query_count": None,
        "performance_sample_count": None,
        "user_conf": None,
    }
    unknown = set(changes) - set(content)
    assert not unknown, unknown
    return {**content, **changes}


@dataclass(frozen=True)
class Ended:
    """A harness process that has ended, and the folder it wrote to."""

    code: int
    stderr: str
    folder: Path

    @property
    def result(self) -> dict:
        """The content of result.json."""
        return json.loads((self.folder / "result.json").read_text())


def copy_harness(folder: Path) -> Path:
    """Copy the harness into `folder`, with its compiled modules, so that no run of the copy compiles them again."""
    shutil.copytree(SOURCE / "crowdperf", folder / "crowdperf")
    return folder


def environment(source: Path = SOURCE) -> dict[str, str]:
    """Return the environment of a harness process. It leaves no bytecode behind, like run.sh: a limit on file sizes
    would cut it off for everyone."""
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}


def run_harness(
    folder: Path,
    content: dict[str, object],
    *command: str,
    source: Path = SOURCE,
    before: Callable[[], None] | None = None,
    first: str = "",
) -> Ended:
    """Write run.json into `folder` and start `QUICK_HARNESS [command] run.json` as a process of its own. In it `before`
    is called, to set its limits, and then the program `first` is run, to damage it."""
    folder.mkdir(parents=True, exist_ok=True)
    run_json = folder / "run.json"
    run_json.write_text(json.dumps(content))
    done = subprocess.run(
        [sys.executable, "-c", QUICK_HARNESS.format(first=first), *command, str(run_json)],
        env=environment(source),
        cwd=folder,
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Ended(done.returncode, done.stderr, Path(str(content["output_dir"])))
