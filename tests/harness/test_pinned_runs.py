"""Samples in memory that GPUs copy from directly: who asks for it, and whole runs with LoadGen on a device that is the
processor."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from harness_support import TIMEOUT_S, need, request
from pinned_runs import Linear

from crowdperf.harness.backends.onnxruntime import backend as onnxruntime
from crowdperf.harness.backends.pytorch import backend as pytorch
from crowdperf.harness.backends.tensorrt import backend as tensorrt
from crowdperf.harness.base import torch_cuda
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.components import sample_memory_of

need("mlperf_loadgen")

COUNT = 40
IMAGES = np.random.default_rng(1).integers(0, 17, (COUNT, 8, 8), dtype=np.uint8)
MODES = {"SingleStream": "accuracy", "MultiStream": "accuracy", "Server": "accuracy", "Offline": "performance"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict]]:
    """The output folder and what was printed of a run in each scenario."""
    tmp_path = tmp_path_factory.mktemp("pinned")
    np.save(tmp_path / "validation_images.npy", IMAGES)
    np.save(tmp_path / "validation_labels.npy", np.zeros(COUNT, np.uint8))
    (tmp_path / "weights").write_bytes(b"read by nobody")
    files = {"model": {"file": "weights"}}
    (tmp_path / "model.json").write_text(json.dumps({"format": 1, "framework": "pytorch", "files": files}))
    for scenario, mode in MODES.items():
        content = request(
            backend="pytorch", device="cuda", gpus=[3], scenario=scenario, mode=mode, dataset_path=str(tmp_path),
            model_path=str(tmp_path / "weights"), model_info_path=str(tmp_path / "model.json"),
            output_dir=str(tmp_path / scenario), min_duration_ms=50, instances=1,
            batch_size=None if scenario.endswith("Stream") else 7,
        )  # fmt: skip
        (tmp_path / f"{scenario}.json").write_text(json.dumps(content))
    program = str(Path(__file__).with_name("pinned_runs.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, program, *(str(tmp_path / f"{scenario}.json") for scenario in MODES)],
        env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, done.stdout.splitlines())
    return {scenario: (tmp_path / scenario, line) for scenario, line in zip(MODES, lines, strict=True)}


@pytest.mark.parametrize("scenario", MODES)
def test_a_run_on_a_gpu_copies_its_samples_from_where_they_were_loaded_to(told, scenario: str) -> None:
    """No batch is gathered into memory of its own, and the answers in LoadGen's log are the network's."""
    folder, line = told[scenario]
    assert {(gpu, *shape[1:], name) for gpu, shape, name in line["given"]} == {(3, 1, 8, 8, "float32")}
    assert line["buffers"] and {size % 10 for size in line["buffers"]} == {0}  # ten values an answer, 64 an image
    if MODES[scenario] == "accuracy":
        rows = json.loads((folder / "mlperf_log_accuracy.json").read_text())
        found = {row["qsl_idx"]: np.frombuffer(bytes.fromhex(row["data"]), np.float32) for row in rows}
        wanted = Linear()(torch.from_numpy(IMAGES[:, None].astype(np.float32) / 16))[0].numpy()
        assert sorted(found) == list(range(COUNT))
        assert all(np.allclose(found[index], wanted[index], rtol=1e-5, atol=1e-4) for index in found)


def test_memory_for_samples_is_asked_for_only_where_a_gpu_copies_from_it() -> None:
    def parts(backend, device: str, gpus: tuple[int, ...] = ()):
        return SimpleNamespace(backend=backend, config=SimpleNamespace(device=device, gpus=gpus))

    assert sample_memory_of(parts(pytorch, "cpu")) is None
    assert sample_memory_of(parts(onnxruntime, "cuda", (0,))) is None
    for backend in (pytorch, tensorrt):
        memory = sample_memory_of(parts(backend, "cuda", (99, 1)))
        assert memory is not None
        with pytest.raises(HarnessError, match="requested: 99"):  # before torch begins to use GPU 0
            memory((2, 3), np.dtype(np.float32))


def test_samples_that_cannot_be_pinned_lie_in_ordinary_memory(monkeypatch, capsys) -> None:
    def empty(*shape, **options) -> None:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch_cuda, "require_gpus", lambda gpus: None)
    monkeypatch.setattr(torch.cuda, "device", lambda gpu: contextlib.nullcontext())
    monkeypatch.setattr(torch, "empty", empty)
    assert torch_cuda.sample_memory(0, (1000, 1000), np.dtype(np.float32)).shape == (1000, 1000)
    assert "4 MB of samples could not be pinned, copies are slower: CUDA error" in capsys.readouterr().err
