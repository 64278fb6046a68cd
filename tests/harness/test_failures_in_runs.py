"""An exception anywhere in a callback, a worker or a completion ends the run with its text: LoadGen never waits for
ever. Real LoadGen runs, one process for all (fault_runs.py says how)."""

import json
import subprocess
import sys
from pathlib import Path

import fault_runs
import pytest
from harness_support import environment


@pytest.fixture(scope="module")
def ended() -> dict[str, tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, str(Path(fault_runs.__file__))],
        env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", fault_runs.cases(), ids=fault_runs.case_name)
def test_every_fault_ends_the_run_with_its_text(ended: dict[str, tuple[int, str]], case: tuple[str, str, bool]) -> None:
    code, stderr = ended[fault_runs.case_name(case)]
    if case[1] == fault_runs.SLOW:
        assert (code, stderr) == (0, "ended as if all were well")
        return
    assert code == 1, stderr
    if case[1] in fault_runs.HANGS:
        assert "inference failed during the run: no response for 1 s while" in stderr
        assert "hint:" not in stderr or "--request_timeout_s=2 to wait longer" in stderr
        return
    if case[1] == fault_runs.HELD:
        assert "Timeout (0:00:06)!" in stderr and "in predict" in stderr
        return
    assert f"harness: error: inference failed during the run: {fault_runs.WORDS}" in stderr
