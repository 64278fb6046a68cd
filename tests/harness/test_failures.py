"""What goes wrong around a run: bad models and data, a full disk, no memory, a killed process.

Each ends with a cause and a way out, a code that is not 0 and no result.json; and the same run then works in the same
folder."""

import errno
import json
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from harness_support import Ended, environment, need, request, run_harness
from test_harness_runs import Digits, digits, write_linear_model  # noqa: F401 - a fixture

from crowdperf.harness.base import environment_errors
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.run import perform, read_config
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.names import Mode

need("mlperf_loadgen", "onnxruntime")

SHORT = {"min_duration_ms": 150, "threads": 1, "instances": 1, "batch_size": 8}
MEBIBYTE = 1 << 20


def limit(which: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (value, value))


def require_clean_failure(ended: Ended, *words: str) -> None:
    """The failure names its cause, gives a hint, and has left nothing that could be taken for a result."""
    assert ended.code in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "terminate called" not in ended.stderr
    assert "harness: error: " in ended.stderr
    assert "harness: hint: " in ended.stderr
    for word in words:
        assert word in ended.stderr
    assert not (ended.folder / "result.json").exists()


def require_recovery(folder: Path, content: dict[str, object]) -> None:
    """The same request runs in the same folder."""
    ended = run_harness(folder, content)
    assert ended.code == 0, ended.stderr
    assert ended.result["errors"] == 0


# --- models ---


def rewrite_model_json(folder: Path, **changes: object) -> None:
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**content, **changes}))


def cut_model(folder: Path) -> None:
    data = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(data[: len(data) // 2])


def cut_model_without_digest(folder: Path) -> None:
    cut_model(folder)
    rewrite_model_json(folder, files={"model": {"file": "model.onnx"}})


def remove_model(folder: Path) -> None:
    (folder / "model.onnx").unlink()


def model_of_another_shape(folder: Path) -> None:
    write_linear_model(folder / "model.onnx", np.zeros((64, 7)), np.zeros(7))
    rewrite_model_json(folder, files={"model": {"file": "model.onnx"}})


def model_with_another_input(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    model.graph.input[0].name = model.graph.node[0].input[0] = "picture"
    onnx.save(model, folder / "model.onnx")
    rewrite_model_json(folder, files={"model": {"file": "model.onnx"}})


def framework_of_another_backend(folder: Path) -> None:
    rewrite_model_json(folder, framework="pytorch")


def remove_labels(folder: Path) -> None:
    (folder / "validation_labels.npy").unlink()


def cut_images(folder: Path) -> None:
    data = (folder / "validation_images.npy").read_bytes()
    (folder / "validation_images.npy").write_bytes(data[: len(data) // 2])


def one_label_less(folder: Path) -> None:
    labels = np.load(folder / "validation_labels.npy")
    np.save(folder / "validation_labels.npy", labels[:-1])


def images_of_another_size(folder: Path) -> None:
    images = np.load(folder / "validation_images.npy")
    np.save(folder / "validation_images.npy", images[:, :7])


def facts_that_are_no_json(folder: Path) -> None:
    (folder / "dataset.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_model, ["model.onnx", "sha256"]),
        (cut_model_without_digest, ["model.onnx"]),
        (remove_model, ["model.onnx"]),
        (model_of_another_shape, ["7]", "belongs to this model"]),
        (model_with_another_input, ["picture"]),
        (framework_of_another_backend, ["pytorch", "onnx"]),
        (remove_labels, ["validation_labels.npy"]),
        (cut_images, ["validation_images.npy"]),
        (one_label_less, ["300 validation images but 299 labels"]),
        (images_of_another_size, ["validation_images.npy"]),
        (facts_that_are_no_json, ["dataset.json"]),
    ],
)
def test_a_bad_model_or_data_set_is_refused_by_name(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
    damage: Callable[[Path], None],
    words: list[str],
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(digits.dataset, copy)
    damage(copy)
    paths = {"dataset_path": copy, "model_path": copy / "model.onnx", "model_info_path": copy / "model.json"}
    texts = {key: str(path) for key, path in {**paths, "output_dir": tmp_path / "out"}.items()}
    (tmp_path / "run.json").write_text(json.dumps(request(backend="onnxruntime", **{**texts, **SHORT})))
    with pytest.raises(HarnessError) as caught:
        perform(read_config(tmp_path / "run.json"))
    assert caught.value.hint
    for word in words:
        assert word in f"{caught.value} {caught.value.hint}"
    assert not (tmp_path / "out" / "result.json").exists()


# --- the disk ---


def log_size(digits: Digits, folder: Path) -> int:  # noqa: F811
    content = digits.request(folder, mode="accuracy", **SHORT)
    ended = run_harness(folder, content)
    return RunPaths(ended.folder).accuracy_log.stat().st_size


@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize("size_bytes", [100, 8192])
def test_logs_that_cannot_be_written_fail_the_run(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
    mode: str,
    size_bytes: int,
) -> None:
    content = digits.request(tmp_path, mode=mode, **SHORT)
    ended = run_harness(tmp_path, content, before=limit(resource.RLIMIT_FSIZE, size_bytes))
    require_clean_failure(ended, "File too large" if size_bytes == 100 else "LoadGen left no complete logs")
    require_recovery(tmp_path, content)


def test_an_accuracy_log_that_is_cut_off_fails_the_run_though_loadgen_says_nothing(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
) -> None:
    size_bytes = log_size(digits, tmp_path / "whole")
    content = digits.request(tmp_path, mode="accuracy", **SHORT)
    ended = run_harness(tmp_path, content, before=limit(resource.RLIMIT_FSIZE, size_bytes - 20))
    require_clean_failure(ended, "mlperf_log_accuracy.json ends in the middle")
    require_recovery(tmp_path, content)


def test_a_full_disk_is_named(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    small = tmp_path / "small"
    small.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(small)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system here")
    try:
        content = digits.request(tmp_path, **{**SHORT, "output_dir": str(small / "out")})
        require_clean_failure(run_harness(tmp_path, content), "is full", "free some space")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    require_recovery(tmp_path, content)


# --- memory ---


def test_too_little_memory_for_loadgens_queries_is_named(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    """LoadGen generates 16 million samples first; the machine has the memory, the limit of the process has not."""
    content = digits.request(tmp_path, target_qps=5_000_000, **{**SHORT, "min_duration_ms": 3000})
    ended = run_harness(tmp_path, content, before=limit(resource.RLIMIT_AS, 700 * MEBIBYTE))
    require_clean_failure(ended, "not enough memory", "fewer instances")
    require_recovery(tmp_path, digits.request(tmp_path, **SHORT))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/result.json"), "cannot write /x/result.json: No space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "cannot write a file: Disk quota exceeded"),
        (MemoryError("std::bad_alloc"), "not enough memory: std::bad_alloc"),
        (MemoryError(), "not enough memory: MemoryError"),
        (RuntimeError("can't start new thread"), "no more threads or processes could be started: can't start"),
        (RuntimeError("unable to start watchdog thread"), "no more threads or processes could be started: unable"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no more threads or processes"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
        (OSError(errno.ENOENT, "No such file"), None),
        (ValueError("a bug"), None),
    ],
)
def test_errors_of_the_machine_are_told_from_bugs(error: Exception, words: str | None) -> None:
    told = environment_errors.explained(error)
    assert (told is None) == (words is None)
    assert words is None or (words in str(told) and told is not None and told.hint)


def test_threads_that_cannot_be_started_are_named_before_numpy_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    environment_errors.require_threads({"OPENBLAS_NUM_THREADS": "3"})
    assert len(started) == 2 and not [one for one in threading.enumerate() if one.name == "probe"]
    for variables in ({"OMP_NUM_THREADS": "4"}, {"OPENBLAS_NUM_THREADS": "5", "OMP_NUM_THREADS": "1"}):
        with pytest.raises(HarnessError, match="no more threads") as caught:
            environment_errors.require_threads(variables)
        assert "ulimit -u" in str(caught.value.hint)


def test_an_error_of_the_machine_is_found_behind_one_of_the_harness() -> None:
    outer = HarnessError("cannot load backends/onnxruntime.py", "install its library")
    outer.__cause__ = ImportError("libonnx.so: failed to map segment from shared object")
    told = environment_errors.explained(outer)
    assert told is not None
    assert "not enough memory" in str(told)
    assert environment_errors.explained(HarnessError("x")) is None


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [("[\n]\n", True), ('[\n{ "seq_id" : 0 }\n]\n', True), ('[\n{ "seq_id" : 0, "qsl', False), ("", False)],
)
def test_a_log_that_is_cut_off_is_seen_at_its_end(tmp_path: Path, text: str, is_whole: bool) -> None:
    paths = RunPaths(tmp_path)
    paths.accuracy_log.write_text(text)
    assert (environment_errors.cut_off_log(paths, Mode.ACCURACY) == "") is is_whole
    assert environment_errors.cut_off_log(paths, Mode.PERFORMANCE) == ""
    paths.accuracy_log.unlink()
    assert environment_errors.cut_off_log(paths, Mode.ACCURACY) != ""


# --- a process that is killed ---


@pytest.mark.parametrize(
    ("scenario", "target"), [("SingleStream", {"target_latency_ms": 1}), ("Server", {"target_qps": 100})]
)
def test_a_run_that_is_killed_leaves_no_result_and_the_next_one_works(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
    scenario: str,
    target: dict[str, object],
) -> None:
    content = digits.request(tmp_path, scenario=scenario, **{**SHORT, **target, "min_duration_ms": 60_000})
    (tmp_path / "run.json").write_text(json.dumps(content))
    process = subprocess.Popen(
        [sys.executable, "-m", "crowdperf.harness", "run.json"],
        env=environment(),
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    paths = RunPaths(Path(str(content["output_dir"])))
    end_s = time.monotonic() + 60
    while not paths.detail_log.exists() and process.poll() is None and time.monotonic() < end_s:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert paths.detail_log.exists()
    assert not paths.result_json.exists()
    require_recovery(tmp_path, {**content, "min_duration_ms": 150, "target_latency_ms": None, "target_qps": None})


# --- LoadGen ---


def test_an_output_folder_that_cannot_be_made_is_named(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "file").write_text("")
    content = digits.request(tmp_path, **{**SHORT, "output_dir": str(tmp_path / "file" / "out")})
    require_clean_failure(run_harness(tmp_path, content), "file/out")


LOADGEN_ERROR = """
from crowdperf.harness.runner import loadgen
real = loadgen.run_test
def run_test(test, calls, samples, paths):
    real(test, calls, samples, paths)
    {action}
loadgen.run_test = run_test
"""


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("paths.detail_log.unlink()", "mlperf_log_detail.txt"),
        ("paths.summary_log.write_text('Result is : INVALID\\n')", "disagree"),
        (
            "paths.detail_log.write_text(paths.detail_log.read_text().replace('result_validity', 'x'))",
            "result_validity",
        ),
    ],
)
def test_logs_that_do_not_hold_a_result_fail_the_run(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
    action: str,
    words: str,
) -> None:
    content = digits.request(tmp_path, **SHORT)
    require_clean_failure(run_harness(tmp_path, content, first=LOADGEN_ERROR.format(action=action)), words)
    require_recovery(tmp_path, content)


def test_an_error_that_loadgen_logs_makes_the_result_invalid(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    """LoadGen ran out of queries: it logs an error, which counts though its own verdict came before."""
    content = digits.request(
        tmp_path, scenario="SingleStream", target_latency_ms=20, **{**SHORT, "min_duration_ms": 400}
    )
    ended = run_harness(tmp_path, content)
    assert ended.code == 0
    assert ended.result["valid"] is False
    assert any("LoadGen error" in reason for reason in ended.result["invalid_reasons"])


def test_a_network_that_answers_nothing_for_the_time_that_was_given_ends_the_run(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
) -> None:
    content = digits.request(tmp_path, backend="paced", **{**SHORT, "batch_size": 128})  # a batch takes 1 s
    ended = run_harness(tmp_path, {**content, "silence_s": 0.25})
    require_clean_failure(ended, "no response for 0.25 s while 128 samples waited (", "--request_timeout_s=0.5")
    require_recovery(tmp_path, {**content, "silence_s": 15.0})
