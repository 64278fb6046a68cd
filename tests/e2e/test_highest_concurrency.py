"""`--find=concurrency` by the command of a user, at a server that becomes slower with each request in flight.

The server is paced: 10 ms between tokens, and 5 ms more for each request in flight. Other programs may run, which makes
answers later, never earlier. Needs the package index that pip is set up with.
"""

import json
import subprocess
from pathlib import Path

import pytest
from helpers import TemporaryHome, cm_command, write_indexes
from paced import running_paced_server

SLO = "ttft:2s,tpot:47ms"
HIGHEST = 7
"""45 ms between tokens. With one more it is 50 ms."""
LIMIT_S = 600


@pytest.mark.full
def test_the_highest_concurrency_within_the_limits_is_found_and_measured(tmp_path: Path) -> None:
    home = TemporaryHome(tmp_path)
    write_indexes(home.path)
    with running_paced_server() as url:
        lengths = ("--input_tokens=16", "--output_tokens=24", "--min_duration_ms=1000", "--min_query_count=16")
        words = ["run", "script", "--tags=run,mlperf,inference", f"--endpoint={url}/20-10-5/v1", *lengths,
                 "--find=concurrency", f"--slo={SLO}", "--run_id=search", "--quiet"]  # fmt: skip
        done = subprocess.run(
            cm_command(words), cwd=home.work, env=home.process_env(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    print(done.stdout[-6000:], done.stderr[-3000:])
    assert "Traceback" not in done.stdout + done.stderr
    found = json.loads((home.work / "results" / "search" / "find.json").read_text())
    assert not [one for one in found["tries"] if one["is_valid"] and one["concurrency"] > HIGHEST]
    assert done.returncode == 0 and 1 <= found["concurrency"] <= HIGHEST
    assert f"Highest concurrency within --slo={SLO}: {found['concurrency']} requests in flight" in done.stdout
    assert (home.work / "results" / "search" / found["run_id"] / "results.json").is_file()
