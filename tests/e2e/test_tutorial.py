"""The crowd-benchmarking tutorial from an empty CM home to a commit in a local bare repository: tests/e2e/tutorial.sh.

Three scenarios of 600 s each and everything around them take about 40 minutes; the second run takes seconds. With
CROWDPERF_INFERENCE_CHECKOUT=<checkout of mlcommons/inference> both official checkers judge the tree too. A copy of what
was made is kept in CROWDPERF_TUTORIAL_KEEP, where that is set.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import CHECKOUT

SCRIPT = Path(__file__).with_name("tutorial.sh")
SCENARIOS = ("SingleStream", "MultiStream", "Offline")
FACTS = """\
status: rdi
system_name: Machine of a test
host_memory_configuration: not visible to a test
host_storage_type: not visible to a test
host_networking: not visible to a test
host_networking_topology: N/A
cooling: not visible to a test
"""
STARRED = (
    "Valid Scenarios for resnet50 in edge category are :['SingleStream', 'MultiStream', 'Offline']",
    *(f"Running loadgen scenario: {scenario} and mode: performance" for scenario in SCENARIOS),
    *(f"Running loadgen scenario: {scenario} and mode: accuracy" for scenario in SCENARIOS),
    "In find performance mode: using",
    "model: resnet50, scenario: Offline, target_qps updated as",
    "New config stored in",
    "* MLPerf inference submission dir:",
    "* MLPerf inference model: resnet50",
    "SUMMARY: submission looks OK",
    "- running time of script",
)
"""What the tutorial shows of this part: the starred lines of its commands 12 to 17."""


class Tutorial:
    """The script with its folders, as somebody with an empty CM home runs it."""

    def __init__(self, folder: Path, execution_mode: str) -> None:
        self.folder = folder
        self.repository = folder / "fork.git"
        self.tree = folder / "inference_submission_tree"
        (folder / "work").mkdir(parents=True)
        (folder / "facts.yaml").write_text(FACTS, encoding="utf-8")
        (folder / "CM").mkdir()
        (folder / "CM" / "repos.json").write_text(f'["{CHECKOUT}"]', encoding="utf-8")
        subprocess.run(["git", "init", "-q", "--bare", str(self.repository)], check=True)
        kept = {key: os.environ[key] for key in os.environ if key.startswith(("PIP_", "LANG", "LC_"))}
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "CM_REPOS": str(folder / "CM"),
            "RESULTS": str(folder / "inference_results"),
            "TREE": str(self.tree),
            "REPOSITORY": str(self.repository),
            "FACTS": str(folder / "facts.yaml"),
            "EXECUTION_MODE": execution_mode,
            "GIT_AUTHOR_NAME": "A Volunteer", "GIT_AUTHOR_EMAIL": "volunteer@example.org",
            "GIT_COMMITTER_NAME": "A Volunteer", "GIT_COMMITTER_EMAIL": "volunteer@example.org",
        }  # fmt: skip

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(SCRIPT)],
            cwd=self.folder / "work",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=7200,
        )

    def commits(self) -> list[str]:
        done = subprocess.run(
            ["git", "-C", str(self.repository), "log", "--format=%s", "--all"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.splitlines()


def official_verdicts(tree: Path, inference: Path) -> list[str]:
    """What the two official checkers say at the end, and how many results they count."""
    tools = inference / "tools" / "submission"
    commands = (
        [sys.executable, "-m", "submission_checker.main"],
        [sys.executable, str(tools / "submission_checker_old.py")],
    )
    found = []
    for number, command in enumerate(commands):
        words = [*command, "--input", str(tree), "--version", "v6.1", "--csv", f"official{number}.csv"]
        done = subprocess.run(
            words,
            cwd=tree.parent / "work",
            env={**os.environ, "PYTHONPATH": str(tools)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        found.append(f"{done.returncode} {'Results=3,' in done.stdout} {'submission looks OK' in done.stdout}")
    return found


@pytest.mark.full
@pytest.mark.alone
def test_the_tutorial_ends_at_a_commit_and_run_again_makes_nothing_twice(tmp_path):
    tutorial = Tutorial(tmp_path / "user", "valid")
    first = tutorial.run()
    keep = os.environ.get("CROWDPERF_TUTORIAL_KEEP")
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        (Path(keep) / "first.txt").write_text(first.stdout, encoding="utf-8")
        shutil.copytree(tutorial.folder, Path(keep) / "user", symlinks=True, ignore=shutil.ignore_patterns("CM"))
    assert first.returncode == 0, first.stdout[-4000:]
    assert [line for line in STARRED if line not in first.stdout] == []
    assert tutorial.commits() == ["Crowd results added"]
    inference = os.environ.get("CROWDPERF_INFERENCE_CHECKOUT")
    if inference:
        assert official_verdicts(tutorial.tree, Path(inference)) == ["0 True True"] * 2
    second = tutorial.run()
    assert second.returncode == 0, second.stdout[-4000:]
    assert second.stdout.count("Run files exist, skipping run...") >= 2 * len(SCENARIOS)
    assert "Measure files exist at" in second.stdout
    assert tutorial.commits() == ["Crowd results added"]
