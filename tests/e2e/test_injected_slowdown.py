"""A server that became slower, by the commands of a user: sweeps of one endpoint over four concurrencies, ten repeats
each, and the verdict of `--max_slowdown`.

The server is paced: its time to the first token, and between tokens, do not depend on the machine. Other programs may
run. Needs the package index that pip is set up with.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import TemporaryHome, cm_command, write_indexes
from paced import running_paced_server

CONCURRENCIES = (1, 2, 4, 8)
BASE, SLOWER = "60-20", "78-22"
"""Paces: ms to the first token and between tokens. The slower one has 30 % and 10 % more."""
LIMIT_S = 1800
"""Of a sweep of 40 runs, about 5 s each on two free cores."""


@pytest.fixture
def server() -> Iterator[str]:
    with running_paced_server() as url:
        yield url


def sweep(home: TemporaryHome, url: str, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    load = f"--concurrency={','.join(map(str, CONCURRENCIES))}"
    lengths = ("--input_tokens=16", "--output_tokens=24", "--min_duration_ms=1000", "--repeats=10")
    words = ["run", "script", "--tags=run,mlperf,inference", f"--endpoint={url}", load, *lengths, f"--run_id={name}"]
    done = subprocess.run(
        cm_command([*words, *more, "--quiet"]), cwd=home.work, env=home.process_env(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    print(done.stdout[-6000:], done.stderr[-3000:])
    assert "Traceback" not in done.stdout + done.stderr
    return done


def verdicts(home: TemporaryHome, name: str) -> list[dict[str, str]]:
    words = ["diff", "script", "results/base", f"results/{name}", "--max_slowdown=5%", "--out=json"]
    done = subprocess.run(
        cm_command(words), cwd=home.work, env=home.process_env(), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    found: list[dict[str, str]] = json.loads(done.stdout)["metrics"]
    return found


@pytest.mark.full
def test_two_injected_slowdowns_are_both_named_and_the_same_server_never_is(tmp_path: Path, server: str) -> None:
    home = TemporaryHome(tmp_path)
    write_indexes(home.path)
    judging = ("--baseline=results/base", "--max_slowdown=5%")
    assert sweep(home, f"{server}/{BASE}/v1", "base").returncode == 0
    assert sweep(home, f"{server}/{BASE}/v1", "same", *judging).returncode in (0, 2)  # 2: other load differed
    assert sweep(home, f"{server}/{SLOWER}/v1", "slower", *judging).returncode == 1
    assert not [one for one in verdicts(home, "same") if one["state"] == "slower"]
    worse = {(one["name"].rpartition("=")[2], one["metric"]) for one in verdicts(home, "slower")
             if one["state"] == "slower"}  # fmt: skip
    assert {metric for _, metric in worse} >= {"TTFT p50", "TPOT p50"}
    assert {concurrency for concurrency, metric in worse if metric == "TPOT p50"} == set(map(str, CONCURRENCIES))
