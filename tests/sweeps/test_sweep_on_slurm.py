"""A sweep on a real Slurm, from the command line."""

import json
import time

import pytest
from helpers import TemporaryHome
from slurm_sandbox import Sandbox, reason_against

REASON = reason_against()
TOY = {
    "cache": False,
    "deps": [{"tags": "get,thing"}],
    "input_mapping": {"number": "CM_NUMBER", "results_dir": "CM_DIR", "run_id": "CM_ID"},
}
FILE = """format: 1
name: it's a toy
recipe: run,toy
sweep: {number: [1, 2, 3, 4]}
executor: {kind: slurm, partition: bench, max_parallel: 2, cpus: 1, exclusive: no}
point_seconds: 5
"""
WORDS = ("run", "script", "--quiet", "--out=json")


@pytest.mark.full
@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_points_run_as_jobs_from_the_cache_and_are_kept(home: TemporaryHome) -> None:
    home.recipe(
        "get-thing", {"cache": True, "new_env_keys": ["CM_THING"]}, run_sh="echo CM_THING=1 > tmp-run-env.out\n"
    )
    home.recipe("run-toy", TOY, run_sh='echo "$CM_NUMBER $CM_THING" >> "$CM_DIR/said.txt"\nsleep 2\n')
    (home.work / "s.yaml").write_text(FILE, encoding="utf-8")
    with Sandbox(2) as sandbox:
        environment = {name: sandbox.environment[name] for name in ("PATH", "SLURM_CONF")}
        planned = home.cm(*WORDS, "--tags=run,mlperf,sweep", "--file=s.yaml", "--plan", "--bash", env=environment)
        assert planned.code == 0, planned.stderr
        assert "run_point.py" in planned.answer["new_state"]["mlperf_sweep"]["job"]
        child = home.start(*WORDS, "--tags=run,mlperf,sweep", "--file=s.yaml", "--collect_job=yes", env=environment)
        running = []
        while child.poll() is None:
            running.append(len(sandbox.run("squeue", "-h", "-r", "-t", "R").split("\n")) - 1)
            time.sleep(0.2)
        assert child.returncode == 0, child.communicate()[1].decode()
        assert 1 <= max(running) <= 2
        folder = home.work / "results" / "it's a toy"
        said = sorted(path.read_text() for path in folder.glob("points/*/results/said.txt"))
        assert said == ["1 1\n", "2 1\n", "3 1\n", "4 1\n"]
        again = home.cm(*WORDS, "--tags=run,mlperf,sweep", "--file=s.yaml", env=environment)
        assert again.code == 0
        content = json.loads((folder / "sweep.json").read_text())
        assert (content["totals"], len(content["lock_sha256"])) == ({"points": 4, "done": 4}, 64)
        shown = home.cm(*WORDS, "--tags=show,mlperf,sweep", f"--sweep_dir={folder}", env=environment)
        assert shown.code == 0
