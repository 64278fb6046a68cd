"""A newcomer's walk: an own network, own prompts at a server, repeats against a baseline, the files for a pipeline and
the pages, by the commands of a user in an empty home.

Needs the package index that pip is set up with. The server is a stub. Nothing is judged by its speed: the exit code of
a comparison may be 2, as other programs may run.
"""

import json
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers import TemporaryHome, cm_command, write_indexes
from onnx_bytes import network
from stub_openai import running_stub

LIMIT_S = 280
"""Of a command: all of them together take less than five minutes on two free cores."""


def cm(home: TemporaryHome, *words: str) -> subprocess.CompletedProcess[str]:
    begun_s = time.monotonic()
    done = subprocess.run(
        cm_command(["run", "script", *words]), cwd=home.work, env=home.process_env(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    print(f"{time.monotonic() - begun_s:5.1f} s  code {done.returncode}  {' '.join(words)}")
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.mark.full
def test_own_network_and_prompts_baseline_junit_and_pages(tmp_path: Path) -> None:
    home = TemporaryHome(tmp_path)
    write_indexes(home.path)
    results = home.work / "results"
    (home.work / "net.onnx").write_bytes(network("n", 4))
    (home.work / "prompts.jsonl").write_text('{"prompt": "Hello"}\n{"prompt": "How are you?"}\n')
    own = ("--tags=run,mlperf,inference", "--model_path=net.onnx", "--scenario=Offline", "--min_duration_ms=300")
    done = cm(home, *own, "--repeats=3", "--run_id=base", "--price_per_hour=2.5", "--quiet")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "cost per million samples" in done.stdout and "3 repeats in" in done.stdout
    judging = ("--baseline=results/base", "--max_slowdown=90%", "--junit=verdict.xml", "--markdown=verdict.md")
    done = cm(home, *own, "--repeats=3", "--run_id=new", *judging, "--quiet")
    assert done.returncode in (0, 2), done.stdout[-3000:] + done.stderr[-3000:]
    assert ElementTree.parse(home.work / "verdict.xml").getroot().get("tests") == "1"
    assert "throughput" in (home.work / "verdict.md").read_text()
    with running_stub() as (_, url):
        asked = (f"--endpoint={url}/v1", "--prompts=prompts.jsonl", "--output_tokens=4", "--min_duration_ms=300")
        done = cm(home, "--tags=run,mlperf,inference", *asked, "--concurrency=1,2,4", "--run_id=server", "--quiet")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    points = json.loads(next(results.rglob("sweep.json")).read_text())["points"]
    assert [point["state"] for point in points] == ["done"] * 3
    for page in (results / "base" / "results.html", results / "base" / "repeat-1" / "results.html",
                 next(results.rglob("sweep.html"))):  # fmt: skip
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    done = cm(home, "--tags=show,mlperf,results")
    assert "repeats in" in done.stdout and "own-onnx" in done.stdout
