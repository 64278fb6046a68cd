"""`make check_submission` on real runs of 600 s (of the tiny ResNet-50) makes the whole tree, and the gate takes it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from generate_support import FACTS, SUT, unpack_runs
from helpers import CHECKOUT, cm_command

PATIENCE_S = 240


@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_tree_of_a_workspace_is_complete_and_accepted(tmp_path: Path, division: str) -> None:
    (tmp_path / "repos.json").write_text(json.dumps([str(CHECKOUT)]), encoding="utf-8")
    env = {**os.environ, "CM_REPOS": str(tmp_path), "CROWDPERF_CACHE": str(tmp_path / "cache")}
    words = ["--tags=run,mlperf,make,_init", f"--path={tmp_path}", "--submitter=ACME", f"--division={division}"]
    subprocess.run(cm_command(["run", "script", *words]), env=env, check=True, capture_output=True, timeout=PATIENCE_S)
    work = tmp_path / division / "ACME"
    (work / "build").mkdir()
    unpack_runs(tmp_path / "real").rename(work / "build/runs")
    for scenario in ("SingleStream", "MultiStream", "Offline"):
        row = {"place": f"build/logs/t/s/resnet50/{scenario}", "target": f"build/runs/{SUT}/resnet50/{scenario}"}
        with open(work / "build/.made", "a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "made_by": "", "kind": "run"}) + "\n")
    (work / "system_facts.yaml").write_text(
        "".join(f"{name}: {text}\n" for name, text in FACTS.items()), encoding="utf-8"
    )
    (work / "my_scratch").mkdir()
    (work / "my_scratch/x.txt").write_text("mine", encoding="utf-8")
    line = ["make", f"CROWDPERF_MAKE_CM={cm_command([])[0]}", "check_submission", "SOURCE=tiny"]
    done = subprocess.run(line, cwd=work, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 results good" in done.stdout
    assert "verdict: accepted as a pipeline proof only: synthetic" in done.stdout
    tree = work / "build/submission" / division / "ACME"
    there = {"results", "src", "systems"} | ({"documentation"} if division == "closed" else set())
    assert {path.name for path in tree.iterdir()} == there
    assert (tree / f"systems/{SUT}.json").is_file()
    for scenario in ("SingleStream", "MultiStream", "Offline"):
        names = {path.name for path in (tree / f"results/{SUT}/resnet50/{scenario}").iterdir()}
        assert {"measurements.json", "user.conf", "README.md", "accuracy", "performance"} <= names
    assert not list((work / "build/submission").rglob("x.txt"))
