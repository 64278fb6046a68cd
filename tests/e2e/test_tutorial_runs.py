"""The benchmark part of the crowd-benchmarking tutorial: its commands as they are, and with a small network on a CPU.

The full test needs the package index that pip is set up with. Nothing is judged by its speed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import CHECKOUT, TemporaryHome, cm_command, write_indexes

PATIENCE_S = 1500
TUTORIAL = (
    "--tags=generate-run-cmds,inference,_find-performance,_all-scenarios --adr.python.name=mlperf-cuda --model=bert-99 "
    "--implementation=reference --device=cuda --backend=onnxruntime --quiet",
    "--tags=generate-run-cmds,inference,_accuracy-only,_all-scenarios --adr.python.name=mlperf-cuda --model=bert-99 "
    "--device=cuda --implementation=reference --backend=onnxruntime --quiet --execution-mode=valid "
    "--results_dir=$HOME/inference_3.0_results",
    "--tags=generate-run-cmds,inference,_performance-only,_all-scenarios --adr.python.name=mlperf-cuda --model=bert-99 "
    "--device=cuda --implementation=reference --backend=onnxruntime --quiet --execution-mode=valid "
    "--results_dir=$HOME/inference_3.0_results",
    "--tags=generate-run-cmds,inference,_populate-readme,_all-scenarios --adr.python.name=mlperf-cuda --model=bert-99 "
    "--device=cuda --implementation=reference --backend=onnxruntime --quiet --execution-mode=valid "
    "--results_dir=$HOME/inference_3.0_results",
    "--tags=generate-run-cmds,inference,_accuracy-only,_all-scenarios --adr.python.name=mlperf-cuda --model=bert-99 "
    "--device=cuda --implementation=reference --backend=pytorch --execution-mode=valid "
    "--results_dir=$HOME/inference_3.0_results --quiet",
)
"""The words of the tutorial's `cm run script` commands of this part, verbatim."""
SMALL = ("--device=cuda", "--device=cpu"), ("--model=bert-99", "--model=resnet50 --source=tiny"), ("valid", "test")
"""What is replaced for a run that takes seconds: no GPU, a small made network and data set, 2 s a performance run."""


def cm(home: TemporaryHome, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        cm_command(words),
        cwd=home.work,
        env={**home.process_env(), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def words_of(line: str, home: TemporaryHome, *, is_small: bool) -> list[str]:
    for old, new in SMALL if is_small else ():
        line = line.replace(old, new)
    return shlex.split(line.replace("$HOME", str(home.work)))


@pytest.fixture
def home(tmp_path: Path) -> TemporaryHome:
    made = TemporaryHome(tmp_path)
    made.register(CHECKOUT)
    write_indexes(made.path)
    return made


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a GPU here")
def test_a_command_as_it_stands_is_refused_without_a_gpu_before_anything_is_installed(home):
    done = cm(home, "run", "script", *words_of(TUTORIAL[0], home, is_small=False))
    assert done.returncode != 0
    assert "--device=cuda: no GPU answers through nvidia-smi" in done.stderr
    assert not list((home.path / "repos" / "local" / "cache").glob("*/_cm.json"))


def test_a_plan_of_a_command_names_its_runs_and_changes_nothing(home):
    words = [word.replace("cuda", "cpu") for word in words_of(TUTORIAL[0], home, is_small=False)]
    done = cm(home, "plan", "script", *words)
    for scenario in ("singlestream", "offline"):
        assert f"app-mlperf-inference,_bert-99,_onnxruntime,_cpu,_{scenario},_performance" in done.stdout
    assert "multistream" not in done.stdout
    assert not (home.work / "find_results").exists()


@pytest.mark.parametrize(
    ("query", "alias"),
    [
        ("generate-run-cmds,inference", "run-mlperf-inference-app"),
        ("run-mlperf,inference", "run-mlperf-inference-app"),
        ("run-mlperf-inference", "run-mlperf-inference"),
    ],
)
def test_each_query_selects_one_recipe(home, query, alias):
    found = cm(home, "find", "script", f"--tags={query}")
    aliases = [Path(line).name for line in found.stdout.splitlines() if line.startswith("/")]
    assert aliases == [alias]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporaryHome]:
    """A home with a copy of this checkout, whose recipes nobody else edits."""
    folder = tmp_path_factory.mktemp("tutorial")
    for name in ("automation", "script", "src"):
        shutil.copytree(CHECKOUT / name, folder / "crowd perf" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(CHECKOUT / "cmr.yaml", folder / "crowd perf" / "cmr.yaml")
    made = TemporaryHome(folder / "h")
    made.register(folder / "crowd perf")
    yield made


def kill_amid(home: TemporaryHome, *words: str) -> None:
    """Starts a command and kills it, with all that it started, soon after its second run began."""
    log = home.work / "killed.txt"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            cm_command(words), cwd=home.work, env={**home.process_env(), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while "Run 2 of 3" not in log.read_text(encoding="utf-8", errors="replace"):
            assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.full
def test_the_commands_make_a_results_folder_and_repeat_nothing(shared):
    done = cm(shared, "run", "script", *words_of(TUTORIAL[0], shared, is_small=True))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (
        "Valid Scenarios for resnet50 in edge category are :['SingleStream', 'MultiStream', 'Offline']" in done.stdout
    )
    assert "Using MLCommons Inference rules of v6.1" in done.stdout
    for scenario in ("SingleStream", "MultiStream", "Offline"):
        assert f"Running loadgen scenario: {scenario} and mode: performance" in done.stdout
    assert "In find performance mode: using " in done.stdout
    assert "model: resnet50, scenario: Offline, target_qps updated as " in done.stdout
    assert "New config stored in " in done.stdout
    assert '- running time of script "' in done.stdout + done.stderr

    accuracy = words_of(TUTORIAL[1], shared, is_small=True)
    kill_amid(shared, "run", "script", *accuracy)
    done = cm(shared, "run", "script", *accuracy)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "SingleStream accuracy: Run files exist, skipping run..." in done.stdout
    assert "MultiStream accuracy is repeated: it did not finish" in done.stdout
    assert "accuracy=" in done.stdout

    done = cm(shared, "run", "script", *words_of(TUTORIAL[2], shared, is_small=True))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Result is : VALID" in done.stdout

    readme = words_of(TUTORIAL[3], shared, is_small=True)
    for words in ("README of this run: ", "Skipping regeneration..."):
        done = cm(shared, "run", "script", *readme)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert done.stdout.count("Run files exist, skipping run...") == 6
        assert done.stdout.count(words) == 6
        assert "no LoadGen runs left" in done.stdout

    done = cm(shared, "run", "script", *words_of(TUTORIAL[4], shared, is_small=True))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    suts = sorted((shared.work / "inference_3.0_results" / "test_results").iterdir())
    assert [path.name.split("-")[1:4] for path in suts] == [
        ["crowdperf", "cpu", "onnxruntime"], ["crowdperf", "cpu", "pytorch"],
    ]  # fmt: skip
    for sut in suts:
        record = json.loads((sut / "sut.json").read_text(encoding="utf-8"))
        assert (record["format"], record["sut"]) == (1, sut.name)
        assert (sut / "resnet50" / "Offline" / "accuracy" / "accuracy.txt").is_file()
    texts = [path.read_text(encoding="utf-8") for path in suts[0].rglob("README.md")]
    assert len(texts) == 6
    assert not any(str(Path.home()) in text and Path.home() != Path("/") for text in texts)
