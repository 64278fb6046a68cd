"""A sweep from the command line: planned, run, given again, shown, collected; with a small recipe of the test."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import Finished, TemporaryHome
from recipe_loader import ROOT
from result_schemas import problems_below

from crowdperf.sweeps.executor import STARTER

TAGS = "run,mlperf,sweep"
TOY = {
    "cache": False,
    "input_mapping": {"number": "CM_NUMBER", "word": "CM_WORD", "results_dir": "CM_DIR", "run_id": "CM_ID"},
    "input_description": {"word": {"desc": "a word", "choices": ["good", "bad"]}},
}
RUN_TOY = 'echo "$CM_NUMBER" >> "$CM_DIR/count.txt"\n[ "$CM_WORD" = good ] || exit 9\n'
FILE = """format: 1
name: toy sweep
recipe: run,toy
base: {word: good}
sweep: {number: [1, 2]}
override_a: {}
override_b: {word: bad, tags: [bad]}
executor: {exclusive: no}
"""
EXAMPLE = """format: 1
name: resnet-batch-{device}
recipe: run,mlperf,inference
base: {model: resnet50, backend: onnxruntime, device: cpu, scenario: Offline, mode: performance, execution_mode: fast}
sweep: {batch_size: [1, 4, 16], precision: [fp32, int8]}
zip: {instances: [1, 2], threads: [2, 1]}
exclude: [{batch_size: 16, precision: fp32}]
n_repeats: 3
override_quiet: {adr.python.name: mlperf-cpu}
zip_override_size: {model: [resnet50, bert-99], performance_sample_count: [1024, 256]}
executor: {kind: slurm, partition: bench, exclusive: true, max_parallel: 4, time: auto}
tags: [nightly]
"""


@pytest.fixture
def toy(home: TemporaryHome) -> TemporaryHome:
    """A home with the recipe and the file of the toy sweep."""
    home.write_cmr(inputs="strict")
    home.recipe("run-toy", TOY, run_sh=RUN_TOY)
    (home.work / "s.yaml").write_text(FILE, encoding="utf-8")
    return home


def installing(home: TemporaryHome, *words: str) -> Finished:
    """A sweep that may install what it needs first."""
    child = home.start("run", "script", f"--tags={TAGS}", "--quiet", "--out=json", *words)
    said = [text.decode() for text in child.communicate(timeout=900)]
    return Finished(child.returncode, *said)


def state_of(finished: Any) -> dict[str, Any]:
    """The state mlperf_sweep of an answer."""
    content: dict[str, Any] = finished.answer["new_state"]["mlperf_sweep"]
    return content


def test_a_sweep_is_planned_run_continued_shown_and_collected(toy: TemporaryHome) -> None:
    planned = toy.run_cm(TAGS, "--file=s.yaml", "--plan")
    assert planned.code == 0, planned.stderr
    points = state_of(planned)["points"]
    assert [(point["variant"], point["inputs"]) for point in points] == [
        ("override_a", {"word": "good", "number": "1"}),
        ("override_a", {"word": "good", "number": "2"}),
        ("override_b", {"word": "bad", "number": "1"}),
        ("override_b", {"word": "bad", "number": "2"}),
    ]
    assert points[0]["command"] == "cm run script --tags=run,toy --word=good --number=1"
    assert state_of(planned)["node_hours"] > 0
    assert not (toy.work / "results").exists()

    good = toy.run_cm(TAGS, "--file=s.yaml:override_a", "--where=number=1")
    assert good.code == 0, good.stderr
    folder = toy.work / "results" / "toy sweep"
    made = state_of(good)
    assert made["totals"] == {"points": 1, "done": 1}
    both = toy.run_cm(TAGS, "--file=s.yaml", "--where=number=1")
    assert both.code == 2
    assert "1 of 2 points without a valid result" in both.answer["error"]
    assert "hint: points/ID/attempts/ has the output of each" in both.answer["error"]
    counts = sorted(path.read_text() for path in folder.glob("points/*/results/count.txt"))
    assert counts == ["1\n", "1\n"], "the point that was done is not run again"

    shown = toy.run_cm("show,mlperf,sweep", f"--sweep_dir={folder}")
    assert [point["state"] for point in state_of(shown)["points"]] == ["done", "failed"]
    lines = (folder / "summary.txt").read_text().splitlines()
    assert lines[0] in (shown.stdout + shown.stderr).splitlines(), "what was measured so far is printed"
    (folder / "sweep.json").unlink()
    collected = toy.run_cm("collect,mlperf,sweep", f"--sweep_dir={folder}")
    assert collected.code == 2
    assert json.loads((folder / "sweep.json").read_text())["totals"] == {"points": 2, "done": 1, "failed": 1}
    assert len((folder / "sweep.csv").read_text().splitlines()) == 3
    assert problems_below(folder, ["sweep.json", "plan.json", "point.json", "done.json", "state.json"]) == []


def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_made(toy: TemporaryHome) -> None:
    text = "format: 1\nname: 'x{no}'\nrecipe: run,toy\nsweep: {word: [good, ugly], nmber: [1]}\nexecutor: {kind: pbs}\n"
    (toy.work / "s.yaml").write_text(text, encoding="utf-8")
    refused = toy.run_cm(TAGS, "--file=s.yaml", "--secrets=~/absent")
    assert refused.code == 1
    error = refused.answer["error"]
    for words in ("/absent is not a file; try: install -m 600",
                  "s.yaml:2: unknown placeholder {no}", "s.yaml:4: --word=ugly is not one of its values",
                  "s.yaml:4: nmber is not an input of run,toy", "did you mean number?",
                  "s.yaml:5: executor must be one of"):  # fmt: skip
        assert words in error
    wrong = toy.run_cm(TAGS, "--file=s.yaml", "--retries=x", "--rerun=lost,some").answer["error"]
    assert "--retries: found 'x'; allowed: a whole number from 0" in wrong
    assert "--rerun=lost,some is not one of its values (allowed: failed, invalid, lost, all)" in wrong
    assert not (toy.work / "results").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--executor=slurm", "--slurm_extra=--outp=/x"), "--slurm_extra='--outp=/x' must be an option of sbatch"),
        (("--max_parallel=2", "--exclusive=yes"), "would let points of one machine disturb each other"),
    ],
)
def test_a_plan_refuses_what_the_sweep_would_refuse(toy: TemporaryHome, given: tuple[str, ...], words: str) -> None:
    planned = toy.cm("plan", "script", f"--tags={TAGS}", "--sweep_file=s.yaml", *given)
    assert (planned.code, words in planned.stdout + planned.stderr) == (1, True), planned
    shown = toy.run_cm(TAGS, "--file=s.yaml", "--plan", *given)
    assert (shown.code, words in shown.answer["error"]) == (1, True), shown.answer


def test_a_server_that_is_not_there_is_found_before_anything_is_planned_or_made(home: TemporaryHome) -> None:
    home.write_cmr(inputs="strict")
    toy = {**TOY, "input_mapping": {**TOY["input_mapping"], "endpoint": "CM_MLPERF_ENDPOINT_URL"}}
    home.recipe("run-toy", toy, run_sh=RUN_TOY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    text = FILE.replace("base: {word: good}", f"base: {{word: good, endpoint: '{url}'}}")
    (home.work / "s.yaml").write_text(text, encoding="utf-8")
    refused = home.run_cm(TAGS, "--file=s.yaml")
    assert refused.code == 1
    assert "request for the models (GET /models): no connection to 127.0.0.1:" in refused.answer["error"]
    assert (
        f"hint: start the server, wait until it is ready, and check host and port: curl {url}/models"
        in (refused.answer["error"])
    )
    assert not (home.work / "results").exists()
    assert home.run_cm(TAGS, "--file=s.yaml", "--plan").code == 0, "a plan opens no connection"


def test_a_sweep_is_locked_by_its_other_spelling_of_file(toy: TemporaryHome) -> None:
    locked = toy.cm("lock", "script", f"--tags={TAGS}", "--sweep_file=s.yaml", "--file=toy.lock")
    assert locked.code == 0, locked.stderr
    assert any(name.startswith("run-toy") for name in json.loads((toy.work / "toy.lock").read_text())["recipes"])
    refused = toy.cm("lock", "script", f"--tags={TAGS}", "--file=s.yaml")
    assert "use --sweep_file=FILE" in refused.stderr
    assert (toy.work / "s.yaml").read_text() == FILE


@pytest.mark.parametrize(
    ("recipe", "words"),
    [("run,nothing", "recipe run,nothing"), ("run,mlperf,sweep", "cannot be swept")],
)
def test_a_recipe_must_be_there_and_be_one_run(toy: TemporaryHome, recipe: str, words: str) -> None:
    (toy.work / "s.yaml").write_text(f"format: 1\nname: x\nrecipe: '{recipe}'\nbase: {{word: a}}\n", encoding="utf-8")
    refused = toy.run_cm(TAGS, "--file=s.yaml", "--plan")
    assert refused.code == 1
    assert words in refused.answer["error"]


def test_a_folder_that_is_no_sweep_is_refused(toy: TemporaryHome) -> None:
    place = toy.work / "results" / "toy sweep"
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("x")
    refused = toy.run_cm(TAGS, "--file=s.yaml:override_a")
    assert "is not the folder of a sweep, and not empty" in refused.answer["error"]
    shown = toy.run_cm("show,mlperf,sweep", f"--sweep_dir={place}")
    assert "plan.json is missing" in shown.answer["error"]
    assert [path.name for path in place.iterdir() if path.name != ".lock"] == ["mine.txt"]


def test_the_documented_example_is_planned_for_slurm_and_nothing_is_made(home: TemporaryHome) -> None:
    (home.work / "s.yaml").write_text(EXAMPLE, encoding="utf-8")
    planned = home.run_cm(TAGS, "--file=s.yaml", "--plan")
    assert planned.code == 0, planned.stderr
    content = state_of(planned)
    assert len({point["id"] for point in content["points"]}) == 90
    assert content["points"][0]["id"] == "mlperf-cpu-1-fp32-1-2-7d83f53d"
    assert content["node_hours"] > 1
    assert all(run["least_s"] == 60 for point in content["points"] for run in point["runs"])
    assert [path.name for path in home.work.iterdir()] == ["s.yaml"]


@pytest.mark.full
def test_four_points_of_digits_are_run_and_kept(home: TemporaryHome) -> None:
    text = (
        "format: 1\nname: digits\nbase: {model: digits, scenario: Offline, mode: performance, execution_mode: test}\n"
    )
    (home.work / "s.yaml").write_text(text + "sweep: {batch_size: [1, 8], instances: [1, 2]}\n", encoding="utf-8")
    made = installing(home, "--file=s.yaml")
    assert made.code == 0, made.stderr
    folder = home.work / "results" / "digits"
    assert json.loads((folder / "sweep.json").read_text())["totals"] == {"points": 4, "done": 4}
    assert len((folder / "sweep.csv").read_text().splitlines()) == 5
    logs = {path: path.stat().st_mtime_ns for path in folder.rglob("mlperf_log_summary.txt")}
    assert len(logs) == 4
    assert home.run_cm(TAGS, "--file=s.yaml").code == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("mlperf_log_summary.txt")} == logs
    assert_nodes_need_the_cache_and_no_network(home)


def assert_nodes_need_the_cache_and_no_network(home: TemporaryHome) -> None:
    """Points that were prepared run where there is no network; with another cache each fails and names the step."""
    prepared = installing(home, "--file=s.yaml", "--results_dir=again", "--prestage=yes", "--where=batch_size=8")
    assert prepared.code == 0, prepared.stderr
    one, other = (path.parent for path in (home.work / "again" / "digits" / "points").glob("*/point.json"))
    assert node(one) == 0
    assert (one / "done.json").is_file()
    content = json.loads((other / "point.json").read_text())
    content["environment"]["CROWDPERF_CACHE"] = str(home.folder / "other cache")
    (other / "point.json").write_text(json.dumps(content))
    assert node(other) == 1
    said = (other / "attempts" / "002" / "out.txt").read_text()
    assert "install-python-venv is not in the cache" in said
    assert "cannot reach" not in said


def node(point: Path) -> int:
    """Exit code of a further attempt at a point, made without a network."""
    (point / "done.json").unlink()
    shutil.rmtree(point / "results")
    words = [ROOT / "tools" / "without_network.sh", sys.executable, STARTER, f"--point={point}"]
    made = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    if made.returncode == 125:
        pytest.skip(made.stderr)
    print(made.stderr)
    return made.returncode
