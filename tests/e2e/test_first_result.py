"""A newcomer's walk: ./run.sh in a copy of the checkout, with an empty home, then what ./cm does with the results.

Needs the package index that pip is set up with. Nothing is judged by its speed.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from result_schemas import problems_below

from crowdperf.kit.path_redaction import absolute_paths
from crowdperf.kit.privacy import SHORTEST_NAME

ROOT = Path(__file__).resolve().parents[2]

SCENARIOS = ["SingleStream", "MultiStream", "Offline", "Server"]
SHORT = ("--min_duration_ms=500", "--instances=1", "--threads=1")
"""A quarter of what a test run takes by default, in a shape that is not searched for."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git would clone: the tracked files, and those it would add, of this checkout."""
    folder = tmp_path_factory.mktemp("clone") / "crowd perf"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def environment(checkout: Path) -> dict[str, str]:
    """The process environment of someone with an empty home and no CM."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CM_", "CROWDPERF", "PYTHON"))}
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    return {**env, "HOME": str(home)}


def ended(
    checkout: Path, *command: str, folder: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    """How a command ended, in ``checkout`` or another folder, with further environment variables."""
    return subprocess.run(
        command,
        cwd=folder or checkout,
        env={**environment(checkout), **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


def run_sh(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ended(checkout, "./run.sh", *words)


def cm(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ended(checkout, "./cm", *words)


def plain_cm(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Calls cm itself, beside the checkout."""
    home = {"CM_REPOS": str(checkout / ".cm"), "CROWDPERF_CACHE": str(checkout / "cache")}
    return ended(checkout, str(checkout / ".venv" / "bin" / "cm"), *words, folder=checkout.parent, **home)


def start_run(checkout: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["./run.sh", *words],
        cwd=checkout,
        env=environment(checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def newest_results(checkout: Path) -> dict[str, object]:
    folder = max((checkout / "results").iterdir())
    results: dict[str, object] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return results


def accuracies(results: dict[str, object]) -> list[object]:
    scenarios = results["scenarios"]
    assert isinstance(scenarios, list)
    return [row["accuracy"]["metrics"][0]["value"] for row in scenarios]


@pytest.fixture(scope="module")
def first(checkout: Path, request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """The first run that ends; one before it was killed with everything it had started; with --full another alone."""
    for delay_s, is_group in ((5.0, True), (9.0, False))[: 2 if request.config.getoption("--full") else 1]:
        process = start_run(checkout)
        time.sleep(delay_s)
        (os.killpg if is_group else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    return run_sh(checkout)


def test_the_first_run_ends_with_the_table_although_earlier_ones_were_killed(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    assert first.returncode == 0, first.stdout[-3000:] + first.stderr[-3000:]
    for scenario in SCENARIOS:
        assert any(line.startswith(scenario) and " VALID" in line for line in first.stdout.splitlines())
    assert "test run, not a valid MLPerf result" in first.stdout
    assert "./cm run script --tags=run,mlperf,inference" in first.stdout, "the line to run it again can be pasted"
    results = newest_results(checkout)
    assert results["label"] == "test run, not a valid MLPerf result"
    assert results["passed"] is True


def test_the_results_folder_holds_untouched_logs_and_the_facts_of_the_run(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    folder = max((checkout / "results").iterdir())
    for scenario in SCENARIOS:
        for run in ("performance/run_1", "accuracy"):
            log = folder / "digits" / scenario / run / "mlperf_log_detail.txt"
            assert ":::MLLOG" in log.read_text(encoding="utf-8")
    facts = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert facts["host"]["CM_HOST_CPU_TOTAL_CORES"]
    assert {"get-ml-model-digits", "app-mlperf-inference"} <= {row["alias"] for row in facts["recipes"]}
    assert all(len(row["sha256"]) == 64 for row in facts["recipes"])
    assert facts["runs"][0]["versions"]["onnxruntime"]


def test_every_file_of_a_result_is_as_its_published_schema_says(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    expected = ["results.json", "environment.json", "session.json", "run.json", "result.json", "accuracy.json"]
    expected += ["load.json", "metadata.json", "shape.json"]
    assert problems_below(max((checkout / "results").iterdir()), expected) == []


def test_each_run_leaves_its_load_and_nvidias_summary_and_the_call_a_page(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    folder = max((checkout / "results").iterdir())
    for scenario in SCENARIOS:
        run = folder / "digits" / scenario / "performance" / "run_1"
        assert json.loads((run / "load.json").read_text(encoding="utf-8"))["rows"]
        metadata = json.loads((run / "metadata.json").read_text(encoding="utf-8"))
        assert metadata[metadata["scenario_key"]] > 0
        assert metadata["result_validity"] == "VALID"
    page = (folder / "results.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 8
    assert "test run, not a valid MLPerf result" in page


def test_no_file_of_a_result_names_a_folder_or_the_machine(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    folder = max((checkout / "results").iterdir())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 80
    name = re.compile(rf"\b{re.escape(socket.gethostname())}\b")
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert str(checkout) not in text, path
        if not path.name.startswith("mlperf_log_"):  # LoadGen lists its sources by names that begin with a slash
            assert [found[0] for found in absolute_paths(text)] == [], path
            assert len(socket.gethostname()) < SHORTEST_NAME or not name.search(text), path
    assert "CM_HOST_SYSTEM_NAME" not in (folder / "environment.json").read_text(encoding="utf-8")


def test_no_entry_is_left_half_made(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    metas = [json.loads(path.read_text(encoding="utf-8")) for path in (checkout / "cache").glob("*/_cm.json")]
    assert metas
    assert [meta["uid"] for meta in metas if "tmp" in meta["tags"]] == []
    identities = [meta["crowdperf"]["fingerprint"] for meta in metas]
    assert len(identities) == len(set(identities))


def test_the_printed_line_runs_it_again_from_the_cache_with_the_same_accuracy(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    before = accuracies(newest_results(checkout))
    (again,) = [line.split("Again:")[1].strip() for line in first.stdout.splitlines() if line.startswith("Again:")]
    assert again == "./cm run script --tags=run,mlperf,inference"
    second = ended(checkout, "bash", "-c", f"{again} --scenario=Offline,SingleStream {' '.join(SHORT)}")
    assert second.returncode == 0, second.stdout[-3000:] + second.stderr[-3000:]
    for recipe in ("install-python-venv", "get-mlperf-loadgen", "get-dataset-digits", "get-ml-model-digits"):
        assert any(f"= {recipe}" in line and "reused" in line for line in second.stderr.splitlines())
    assert " running in " not in second.stderr
    assert set(accuracies(newest_results(checkout))) == set(before)


def test_the_cache_is_listed_by_the_same_command(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    shown = cm(checkout, "show", "cache")
    assert shown.returncode == 0, shown.stderr
    assert any(line.startswith("get-ml-model-digits ") for line in shown.stdout.splitlines())
    assert " cache entries, " in shown.stdout and str(checkout / "cache") in shown.stdout


def test_a_misspelt_input_runs_nothing(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    before = sorted((checkout / "results").iterdir())
    failed = cm(checkout, "run", "script", "--tags=run,mlperf,inference", "--scenaro=Offline")
    assert failed.returncode != 0
    assert "did you mean --scenario?" in failed.stderr
    assert "./cm run script --tags=run,mlperf,inference --scenario=Offline" in failed.stderr
    assert sorted((checkout / "results").iterdir()) == before


def test_own_data_is_found_again_without_its_path(
    checkout: Path, first: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    for number in (1, 2):
        (tmp_path / f"ILSVRC2012_val_0000000{number}.JPEG").write_bytes(b"\xff\xd8\xff\xd9")
    (tmp_path / "val.txt").write_text("ILSVRC2012_val_00000001.JPEG 0\nILSVRC2012_val_00000002.JPEG 1\n", "utf-8")
    request = ("run", "script", "--tags=get,dataset,imagenet,validation,_size.2")
    missing = cm(checkout, *request)
    assert missing.returncode != 0
    assert "./cm run script --tags=get,dataset,imagenet,validation --path=FOLDER" in missing.stderr
    assert cm(checkout, *request, f"--path={tmp_path}").returncode == 0
    found = cm(checkout, *request)
    assert found.returncode == 0, found.stderr
    assert f"your own copy {tmp_path}" in found.stderr
    planned = cm(checkout, "plan", *request[1:])
    assert planned.returncode == 0, planned.stdout


def test_an_onnx_file_of_the_user_is_measured_under_its_own_name(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    (network,) = (checkout / "cache").glob("*/digits.onnx")
    own = checkout.parent / "my network.onnx"
    shutil.copy2(network, own)
    words = ("run", "script", "--tags=run,mlperf,inference", f"--model_path={own}", "--results_dir=own", *SHORT)
    done = cm(checkout, *words, "--scenario=SingleStream")
    assert done.returncode == 0, done.stdout + done.stderr
    (results,) = (json.loads(path.read_text(encoding="utf-8")) for path in (checkout / "own").glob("*/results.json"))
    assert results["model"] == "own-onnx"
    assert results["provenance"]["model"] == "own"
    assert "own model (not the published file)" in results["label"]
    assert "own-onnx: your model my network.onnx." in done.stdout


def test_two_results_are_compared_by_their_figures(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    made = []
    for size in ("16", "32"):
        words = ("--scenario=Offline", "--mode=performance", f"--batch_size={size}", *SHORT)
        done = cm(checkout, "run", "script", "--tags=run,mlperf,inference", *words)
        assert done.returncode == 0, done.stderr[-3000:]
        assert f"batch of {size} (given)" in done.stdout
        (page,) = [line.split("Page:")[1].strip() for line in done.stdout.splitlines() if line.startswith("Page:")]
        assert "throughput" in Path(page).read_text(encoding="utf-8")
        made.append(str(Path(page).parent.relative_to(checkout)))
    compared = cm(checkout, "diff", "script", *made)
    assert compared.returncode == 0, compared.stderr
    lines = compared.stdout.splitlines()
    assert any(line.startswith("digits/Offline/performance  throughput, samples/s ") for line in lines[:6])
    assert any(line.split() == ["setting", "batch_size", "16", "32"] for line in lines)


def test_a_rehearsal_ends_with_a_push_and_what_a_submission_needs(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    done = cm(checkout, "run", "script", "--tags=generate,inference,submission", "--rehearsal")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "verdict: accepted as a rehearsal only, not as a submission" in done.stdout
    assert "Offline performance requested " in done.stdout
    branches = ["git", "--git-dir", str(checkout / "rehearsal" / "repository.git"), "branch", "--list", "rehearsal"]
    assert subprocess.run(branches, capture_output=True, text=True).stdout.strip() == "rehearsal"
    tree = f"--submission_dir={checkout / 'rehearsal' / 'tree'}"
    refused = cm(checkout, "run", "script", "--tags=check,mlperf,submission", tree, "--version=v6.1")
    assert refused.returncode != 0
    assert "rehearsal, not an MLPerf submission" in refused.stdout


def test_nothing_outside_the_checkout_is_touched(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    left = {path.name for path in (checkout.parent / "home").iterdir()}
    assert left <= {".rustup"}  # pip asks rustc for its version, and where that is rustup's proxy it leaves this folder


@pytest.mark.full
def test_json_is_one_object_on_standard_output(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    done = run_sh(checkout, "--scenario=Offline", "--mode=performance", "--out=json")
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["new_state"]["mlperf_results"]["scenarios"][0]["scenario"] == "Offline"


@pytest.mark.full
def test_a_bundle_of_the_run_gives_the_same_accuracy_on_a_machine_without_a_network(
    checkout: Path, first: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    lonely = [str(ROOT / "tools" / "without_network.sh")]
    if subprocess.run([*lonely, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    other = tmp_path / "another machine"
    made = cm(checkout, "run", "script", "--tags=make,bundle", "--for=run", f"--output={other / 'digits.pyz'}")
    assert made.returncode == 0, made.stderr[-3000:]
    before = accuracies(newest_results(checkout))
    hidden = checkout.with_name("hidden")
    checkout.rename(hidden)  # nothing of it may be used
    try:
        env = {"PATH": os.environ["PATH"], "HOME": str(other)}
        words = [*lonely, "python3", "digits.pyz", "--scenario=Offline", *SHORT]
        done = subprocess.run(words, cwd=other, env=env, capture_output=True, text=True, timeout=900)
    finally:
        hidden.rename(checkout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert any("= get-ml-model-digits" in line and "reused" in line for line in done.stderr.splitlines())
    assert accuracies(newest_results(other)) == before[:1]


def test_an_unknown_scenario_is_refused_with_the_known_ones(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    failed = run_sh(checkout, "--scenario=Weekly")
    assert failed.returncode == 1
    assert "--scenario=Weekly is not one of its values (allowed: SingleStream, MultiStream," in failed.stderr


def wait_for_run(checkout: Path, number: int, process: subprocess.Popen[bytes]) -> Path:
    """Waits until the newest call of ``checkout`` has begun its run of this number; the folder of the call."""
    end_s = time.monotonic() + 300
    while time.monotonic() < end_s and process.poll() is None:
        newest = max((checkout / "resumed").glob("*/session.json"), default=None)
        if newest and len(json.loads(newest.read_text(encoding="utf-8"))["runs"]) >= number:
            return newest.parent
        time.sleep(0.05)
    pytest.fail(f"run {number} did not begin (the process ended with {process.poll()})")


RESUMED = ("--scenario=Offline,SingleStream", "--results_dir=resumed")


@pytest.mark.full
def test_a_killed_call_keeps_its_finished_runs_and_makes_the_others(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    process = start_run(checkout, *RESUMED)
    folder = wait_for_run(checkout, 3, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = folder / "digits" / "SingleStream" / "performance" / "run_1" / "result.json"
    before = kept.read_bytes()
    assert not (folder / "results.json").exists()
    done = run_sh(checkout, *RESUMED, "--resume=unfinished")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "  kept: SingleStream performance (passed)" in done.stdout
    assert "  kept: SingleStream accuracy (passed)" in done.stdout
    assert kept.read_bytes() == before
    assert [path.name for path in (checkout / "resumed").iterdir()] == [folder.name]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["passed"] is True
    assert [row["scenario"] for row in results["scenarios"]] == ["SingleStream", "Offline"]
    again = run_sh(checkout, *RESUMED, "--resume=all")
    assert again.returncode == 0, again.stderr[-3000:]
    assert "no LoadGen runs left" in again.stdout


@pytest.mark.full
def test_an_interrupted_call_goes_on_with_cm_resume(checkout: Path, first: subprocess.CompletedProcess[str]) -> None:
    shutil.rmtree(checkout / "resumed", ignore_errors=True)
    process = start_run(checkout, *RESUMED)
    folder = wait_for_run(checkout, 2, process)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 130
    done = plain_cm(checkout, "resume", "script")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "interrupted (130) in run-mlperf-inference" in done.stderr
    assert "  from the cache: " in done.stderr
    assert "get-mlperf-loadgen" in done.stderr
    assert "  kept: SingleStream performance (passed)" in done.stdout
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["passed"] is True


@pytest.mark.full
def test_the_app_without_a_scenario_makes_all_runs_and_ends_with_the_table(
    checkout: Path, first: subprocess.CompletedProcess[str]
) -> None:
    words = ["--tags=app,mlperf,inference,_digits,_null", "--mode=performance", "--min_duration_ms=200", "--quiet"]
    done = plain_cm(checkout, "run", "script", *words)
    assert "digits with null on cpu: stand-in for a backend, not an MLPerf result; test run" in done.stdout, (
        done.stderr[-3000:]
    )
    for scenario in SCENARIOS:
        assert any(line.startswith(scenario) and "VALID" in line for line in done.stdout.splitlines())
    (folder,) = (checkout.parent / "results").iterdir()
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["backend"] == "null"
