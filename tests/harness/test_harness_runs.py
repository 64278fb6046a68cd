"""Whole runs with the real LoadGen, each a process of its own: `python -m crowdperf.harness run.json`, `... score
run.json`."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from harness_support import SOURCE, Ended, copy_harness, need, request, run_harness
from onnx import TensorProto, helper, numpy_helper
from recipe_programs import program

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.run import perform, read_config
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import read_run_logs

need("mlperf_loadgen", "onnxruntime")

SCENARIOS = ("SingleStream", "MultiStream", "Offline", "Server")
VALIDATION = 300
SHORT = {"min_duration_ms": 150}
ONE = {"instances": 1, "threads": 1}
"""A shape that needs no search."""


@dataclass(frozen=True)
class Digits:
    """A data set folder, a model fitted on the rest of the digits, and how many validation images it gets right."""

    dataset: Path
    model: Path
    info: Path
    right_count: int

    def request(self, folder: Path, **changes: object) -> dict[str, object]:
        """Return a run.json that writes to `folder`/out."""
        paths = {"dataset_path": self.dataset, "model_path": self.model, "model_info_path": self.info}
        texts = {key: str(path) for key, path in {**paths, "output_dir": folder / "out"}.items()}
        return request(**{**texts, **changes})


def write_linear_model(path: Path, weights: np.ndarray, bias: np.ndarray) -> None:
    """Write logits = image x weights + bias as ONNX: float32[batch, 1, 8, 8] to float32[batch, 10]."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [
            numpy_helper.from_array(weights.astype(np.float32), "weights"),
            numpy_helper.from_array(bias.astype(np.float32), "bias"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    folder = tmp_path_factory.mktemp("digits")
    source = program("get-dataset-digits", "make_dataset").read_source()
    np.save(folder / "validation_images.npy", source.images[:VALIDATION])
    np.save(folder / "validation_labels.npy", source.labels[:VALIDATION])
    flat = source.images.reshape(-1, 64) / 16.0
    fit_head = program("get-ml-model-digits", "network").fit_head
    weights, bias = fit_head(flat[VALIDATION:], source.labels[VALIDATION:], penalty=1.0)
    write_linear_model(folder / "model.onnx", weights, bias)
    right_count = int(((flat[:VALIDATION] @ weights + bias).argmax(axis=1) == source.labels[:VALIDATION]).sum())
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    info = {
        "format": 1,
        "framework": "onnx",
        "files": {"model": {"file": "model.onnx", "sha256": digest}},
        "reference": {"acc": 100.0 * right_count / VALIDATION},
    }
    (folder / "model.json").write_text(json.dumps(info))
    return Digits(folder, folder / "model.onnx", folder / "model.json", right_count)


def assert_tells_the_log(ended: Ended, backend: str, scenario: str, mode: str) -> None:
    """Assert that result.json says what LoadGen's own logs say."""
    assert ended.code == 0, ended.stderr
    result, log = ended.result, read_run_logs(RunPaths(ended.folder))
    assert (log.scenario.value, log.mode.value) == (scenario, mode)
    assert (result["valid"], result["errors"]) == (log.is_valid, log.error_count)
    assert bool(result["invalid_reasons"]) is not result["valid"]
    stand_in = ["stand-in for a backend, not an MLPerf result"] if backend == "null" else []
    assert result["label"].split("; ") == [*stand_in, "test run, not a valid MLPerf result"]
    assert result["seeds"]["qsl"] == log.seeds.qsl != 0
    assert result["sample_counts"] == {"dataset": VALIDATION, "performance": VALIDATION, "accuracy": VALIDATION}
    if mode == "performance":
        assert log.metric is not None
        assert result["metric"]["value"] == log.metric.value > 0
        assert result["latency"]["p99_ns"] >= result["latency"]["p50_ns"]
        assert log.effective.min_duration_ms == 150


WHOLE_RUNS = [
    pytest.param(
        backend, scenario, mode, marks=() if (backend == "null") is (mode == "performance") else pytest.mark.full
    )
    for backend in ("null", "onnxruntime")
    for scenario in SCENARIOS
    for mode in ("performance", "accuracy")
]
"""A stand-in is measured and a network scored in each scenario; the other way round with --full."""


@pytest.mark.parametrize(("backend", "scenario", "mode"), WHOLE_RUNS)
def test_a_run_ends_with_a_result_that_says_what_loadgen_logged(
    digits: Digits, tmp_path: Path, backend: str, scenario: str, mode: str
) -> None:
    searches = (mode, scenario) == ("performance", "Server")
    given = {**SHORT, **({} if searches else ONE)}
    content = digits.request(tmp_path, backend=backend, scenario=scenario, mode=mode, **given)
    ended = run_harness(tmp_path, content)
    assert_tells_the_log(ended, backend, scenario, mode)
    run = ended.result["run"]
    assert run["backend"] == {"value": backend, "origin": "request"}, "run.json does not say whether a user chose it"
    assert {name for name, row in run.items() if isinstance(row, dict) and row["origin"] == "user"} == set(given)
    assert all(row["origin"] == "default" for row in run.values() if isinstance(row, dict) and row["value"] is None)
    digest = hashlib.sha256(digits.model.read_bytes()).hexdigest()
    assert ended.result["model_sha256"] == ({} if backend == "null" else {"model": digest})
    assert ended.result["calibration"] is None
    assert ("onnxruntime" in ended.result["versions"]) is (backend == "onnxruntime")
    if mode == "accuracy":
        assert ended.result["valid"] is True
        assert f"harness: {VALIDATION} samples answered, VALID\n" in ended.stderr
        assert_scores(digits, tmp_path, content, digits.right_count if backend == "onnxruntime" else None)


def assert_scores(
    digits: Digits, folder: Path, content: dict[str, object], right_count: int | None, source: Path = SOURCE
) -> None:
    """Assert that the responses score as the model does outside LoadGen (None: as zeros do)."""
    if right_count is None:
        right_count = int((np.load(digits.dataset / "validation_labels.npy") == 0).sum())
    scored = run_harness(folder, content, "score", source=source)
    assert scored.code == 0, scored.stderr
    accuracy = json.loads((scored.folder / "accuracy.json").read_text())
    (metric,) = accuracy["metrics"]
    assert (metric["name"], metric["value"]) == ("acc", pytest.approx(100.0 * right_count / VALIDATION, abs=5e-4))
    assert accuracy["passed"] is metric["passed"] is (right_count == digits.right_count)
    assert metric["target"] == pytest.approx(0.99 * 100.0 * digits.right_count / VALIDATION)
    percent = f"{100 * right_count / VALIDATION:.3f}"
    line = (scored.folder / "accuracy.txt").read_text()
    assert line == f"accuracy={percent}%, good={right_count}, total={VALIDATION}\n"


def test_the_queue_of_the_server_gives_the_same_answers(digits: Digits, tmp_path: Path) -> None:
    """A slow network is answered by the worker; here one that is linear, then sleeps."""
    source = with_backend(tmp_path, "slow", SLOW_BACKEND, "onnxruntime")
    content = digits.request(tmp_path, backend="slow", scenario="Server", mode="accuracy", instances=1)
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 0, ended.stderr
    assert ended.result["issue_shape"] == "queued, at most 32 at once on 1 instances"
    assert_scores(digits, tmp_path, content, digits.right_count, source)


SLOW_BACKEND = '''"""onnxruntime, slowed down."""
import time
from crowdperf.harness.backends.onnxruntime.backend import open_backend as open_fast
class Slow:
    def __init__(self, inner): self.inner = inner
    def instance(self, number):
        fast = self.inner.instance(number)
        def infer(inputs):
            time.sleep(0.001)
            return fast(inputs)
        return infer
    def versions(self): return self.inner.versions()
    def close(self): self.inner.close()
def open_backend(request): return Slow(open_fast(request))
'''

RAISING_BACKEND = '''"""Answers the warm-up, then raises."""
from crowdperf.harness.backends.null import backend as null
from crowdperf.harness.runner.loadgen import _SingleUse
class Raising(null.NullBackend):
    def instance(self, number):
        zeros = super().instance(number)
        def infer(inputs):
            if _SingleUse.is_used:
                raise RuntimeError("the accelerator is on fire")
            return zeros(inputs)
        return infer
def open_backend(request): return Raising(request.network)
'''


def with_backend(folder: Path, name: str, text: str, like: str) -> Path:
    """Return a copy of the harness with one more backend, whose record is that of the backend `like`."""
    source = folder / "source"
    copy_harness(source)
    backends = source / "crowdperf" / "harness" / "backends"
    (backends / name).mkdir()
    (backends / name / "backend.py").write_text(text)
    shutil.copy(backends / like / "record.py", backends / name)
    return source


@pytest.mark.parametrize(
    ("scenario", "mode"),
    [
        pytest.param(
            scenario, mode, marks=() if scenario.endswith("Stream") is (mode == "performance") else pytest.mark.full
        )
        for scenario in SCENARIOS
        for mode in ("performance", "accuracy")
    ],
)
def test_a_backend_that_raises_ends_the_run_with_its_error(
    digits: Digits, tmp_path: Path, scenario: str, mode: str
) -> None:
    source = with_backend(tmp_path, "raising", RAISING_BACKEND, "null")
    content = digits.request(tmp_path, backend="raising", scenario=scenario, mode=mode, threads=1, **SHORT)
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 1, ended.stderr
    assert "the accelerator is on fire" in ended.stderr
    assert "terminate called" not in ended.stderr
    assert not (ended.folder / "result.json").exists()


def test_a_long_run_is_not_waited_for_after_an_error(digits: Digits, tmp_path: Path) -> None:
    """LoadGen would go on sending ten queries a second for ten minutes; the helper would give up long before."""
    source = with_backend(tmp_path, "raising", RAISING_BACKEND, "null")
    content = digits.request(
        tmp_path, backend="raising", scenario="Server", execution_mode="valid", target_qps=10, threads=1
    )
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 1
    assert "the accelerator is on fire" in ended.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backend": "cuda"}, ["backend", "null, onnxruntime"]),
        ({"precision": "int8"}, ["precision", "fp32 (backend null)"]),
        ({"model": "resnet"}, ["model", "digits"]),
        ({"scenario": "Interactive"}, ["scenario", "SingleStream, MultiStream, Offline, Server"]),
        ({"backend": "onnxruntime", "device": "tpu"}, ["device", "cpu, cuda"]),
        ({"backend": "onnxruntime", "model_path": None, "model_info_path": None}, ["model_path"]),
        ({"performance_sample_count": VALIDATION + 1}, ["performance_sample_count", f"1 to {VALIDATION}"]),
        ({"user_conf": "no-such.conf"}, ["user_conf"]),
        ({"target_qps": 10_000_000, "execution_mode": "valid"}, ["min_duration_ms", "GB"]),
    ],
)
def test_a_wrong_request_is_refused(digits: Digits, tmp_path: Path, changes: dict, words: list) -> None:
    run_json = tmp_path / "run.json"
    run_json.write_text(json.dumps(digits.request(tmp_path, **{**ONE, "batch_size": 8, **changes})))
    with pytest.raises(HarnessError) as caught:
        perform(read_config(run_json))
    assert caught.value.exit_code == 2
    for word in words:
        assert word in f"{caught.value} {caught.value.hint}"
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_process_with_a_wrong_request_ends_with_code_2_and_the_error(digits: Digits, tmp_path: Path) -> None:
    ended = run_harness(tmp_path, digits.request(tmp_path, backend="cuda"))
    assert ended.code == 2, ended.stderr
    assert "harness: error: " in ended.stderr and "null, onnxruntime" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (ended.folder / "result.json").exists()


def test_a_gpu_that_is_not_there_is_an_error_and_no_silent_fallback(digits: Digits, tmp_path: Path) -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA; the test is about one that has not")
    ended = run_harness(tmp_path, digits.request(tmp_path, backend="onnxruntime", device="cuda"))
    assert ended.code == 1
    assert "CUDAExecutionProvider" in ended.stderr
    assert "onnxruntime-gpu" in ended.stderr


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("model.onnx", b"no model", "describes"),
        ("model.json", b"{}", "not a model.json of format 1"),
        ("validation_labels.npy", b"", "validation_labels"),
    ],
)
def test_a_damaged_input_fails_with_its_name(
    digits: Digits, tmp_path: Path, file: str, content: bytes, words: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(digits.dataset, copy)
    (copy / file).write_bytes(content)
    paths = {"dataset_path": copy, "model_path": copy / "model.onnx", "model_info_path": copy / "model.json"}
    changes = {key: str(path) for key, path in paths.items()}
    ended = run_harness(tmp_path, digits.request(tmp_path, backend="onnxruntime", **changes))
    assert ended.code == 1
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_invalid_run_completes_and_says_so(digits: Digits, tmp_path: Path) -> None:
    content = digits.request(tmp_path, scenario="SingleStream", **ONE, min_duration_ms=500, target_latency_ms=20)
    ended = run_harness(tmp_path, content)
    assert ended.code == 0
    assert ended.result["valid"] is False
    assert ended.result["errors"] == 1
    assert any("minimum duration" in reason for reason in ended.result["invalid_reasons"])


def test_the_users_conf_reaches_loadgen_and_is_marked_as_the_users(digits: Digits, tmp_path: Path) -> None:
    conf = tmp_path / "my.conf"
    conf.write_text("*.Offline.target_qps = 1000\n*.*.min_duration = 321\n")
    ended = run_harness(tmp_path, digits.request(tmp_path, user_conf=str(conf)))
    assert ended.code == 0, ended.stderr
    assert ended.result["run"]["target_qps"] == {"value": 1000.0, "origin": "user"}
    log = read_run_logs(RunPaths(ended.folder))
    assert (log.effective.min_duration_ms, log.effective.target_qps) == (321, 1000.0)


def test_an_earlier_result_does_not_outlive_a_failed_run(digits: Digits, tmp_path: Path) -> None:
    content = digits.request(tmp_path, **SHORT, **ONE)
    assert run_harness(tmp_path, content).code == 0
    content["dataset_path"] = str(tmp_path / "nowhere")
    ended = run_harness(tmp_path, content)
    assert ended.code == 1
    assert list(ended.folder.iterdir()) == []


@pytest.fixture(scope="module")
def accurate(digits: Digits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of an accuracy run."""
    folder = tmp_path_factory.mktemp("accurate")
    ended = run_harness(folder, digits.request(folder, backend="onnxruntime", mode="accuracy", **ONE))
    assert ended.code == 0, ended.stderr
    return ended.folder


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:4096] + "..." + text[-4096:], "truncated"),
        (lambda text: text.replace('"qsl_idx" : 7,', '"qsl_idx" : 8,'), "is missing a response for 1 samples (7)"),
        (lambda text: "[]", "no responses logged"),
    ],
)
def test_a_damaged_accuracy_log_is_not_scored(
    digits: Digits, accurate: Path, tmp_path: Path, damage, words: str
) -> None:
    content = digits.request(tmp_path, backend="onnxruntime", mode="accuracy")
    log = shutil.copytree(accurate, tmp_path / "out") / "mlperf_log_accuracy.json"
    whole = log.read_text()
    log.write_text(damage(whole))
    assert log.read_text() != whole
    scored = run_harness(tmp_path, content, "score")
    assert scored.code == 1
    assert words in scored.stderr
    assert not (tmp_path / "out" / "accuracy.txt").exists()


def test_a_response_logged_twice_is_counted_once(digits: Digits, accurate: Path, tmp_path: Path) -> None:
    content = digits.request(tmp_path, backend="onnxruntime", mode="accuracy")
    log = shutil.copytree(accurate, tmp_path / "out") / "mlperf_log_accuracy.json"
    entries = json.loads(log.read_text())
    log.write_text(json.dumps([*entries, {**entries[0], "data": "00" * 40}]))
    assert_scores(digits, tmp_path, content, digits.right_count)


def test_a_performance_run_cannot_be_scored(digits: Digits, tmp_path: Path) -> None:
    scored = run_harness(tmp_path, digits.request(tmp_path), "score")
    assert scored.code == 2
    assert "accuracy" in scored.stderr
