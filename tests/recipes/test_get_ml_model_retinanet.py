"""get-ml-model-retinanet, -ssd-mobilenet, -ssd-resnet34: given models, programs that run; weights out of pickled
modules."""

import hashlib
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need
from recipe_loader import load_recipe
from recipe_script import run_script

from crowdperf.models import published_model

NAMES = ("retinanet", "ssd-mobilenet", "ssd-resnet34")
EVERY = pytest.mark.parametrize("name", NAMES)


def call(hook_input: Any, name: str, source: str = "published", **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    i = hook_input({"CM_PUBLISHED_MODEL_SOURCE": source, "CM_ML_MODEL_FRAMEWORK": "onnx", **env})
    return load_recipe(f"get-ml-model-{name}").preprocess(i), i["env"]


@EVERY
def test_a_given_file_becomes_the_model_with_a_model_json(name, hook_input, inside, tmp_path, monkeypatch):
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(b"onnx")
    monkeypatch.setattr(importlib.import_module("crowdperf.data.model_sources"), "_MAX_DIGESTED_BYTES", 3)
    answer, env = call(hook_input, name, CM_MLPERF_DATA_GIVEN_PATH=str(copy))
    assert answer == {"return": 0} and env["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"
    answer = load_recipe(f"get-ml-model-{name}").postprocess({"env": env})
    assert answer["return"] == 0, answer
    assert env["CM_ML_MODEL_FILE_WITH_PATH"] == str(copy) and env["CM_ML_MODEL_IS_SYNTHETIC"] == "no"
    info = json.loads(Path(env["CM_ML_MODEL_INFO_FILE"]).read_text())
    assert info["config"] == {} and info["framework"] == "onnx" and info["reference"]["mAP"] > 0


def test_another_file_than_the_published_one_is_refused(hook_input, inside, tmp_path):
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(b"another")
    answer, _ = call(hook_input, "retinanet", CM_MLPERF_DATA_GIVEN_PATH=str(copy))
    assert answer["return"] == 1
    for part in ("4544f4e56e0a4684215831cc937ea45c", hashlib.md5(b"another").hexdigest(), "zenodo.org"):
        assert part in answer["error"]
    answer, _ = call(hook_input, "retinanet", CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path))
    assert "is not a file" in answer["error"]


@EVERY
@pytest.mark.parametrize(
    ("work", "programs"),
    [
        ("tiny", ["crowdperf.standins.fits.detection"]),
        ("random", ["crowdperf.models.make_model"]),
        ("take", []),
        ("convert", ["crowdperf.models.make_model"]),
    ],
)
def test_run_sh_calls_the_programs_of_the_kind_of_weights(name, work, programs, inside, tmp_path):
    fake = tmp_path / "python"
    real = f'[ "$3" != crowdperf.models.published_model ] || exec {sys.executable} "$@"'
    fake.write_text(f'#!/bin/sh\n{real}\necho "$*" >> calls.txt\n')
    fake.chmod(0o755)
    env = {
        "CM_PYTHON_BIN_WITH_PATH": str(fake), "CM_PUBLISHED_MODEL_WORK": work,
        "CM_PUBLISHED_MODEL_ARCHITECTURE": name, "CM_ML_MODEL_FRAMEWORK": "onnx",
        "CM_ML_MODEL_SEED": "3",
        "CM_DATASET_PATH": "/d", "CM_PUBLISHED_MODEL_FILE_WITH_PATH": "/w.pth", "CM_PUBLISHED_MODEL_FACTS": "{}",
    }  # fmt: skip
    done = run_script(f"get-ml-model-{name}", inside, env)
    assert done.returncode == 0, done.stderr
    calls = (inside / "calls.txt").read_text().splitlines() if programs else []
    assert [call.split()[2] for call in calls] == programs
    assert all(f"--architecture {name} " in call for call in calls)
    assert run_script(f"get-ml-model-{name}", inside, {**env, "CM_PUBLISHED_MODEL_WORK": "x"}).returncode == 2


@pytest.mark.parametrize("status", [0, 3])
def test_unpacked_weights_go_once_the_model_is_made(status, inside):
    Path("python").write_text(f'#!/bin/sh\necho "$*" > calls.txt\nexit {status}\n')
    Path("python").chmod(0o755)
    Path("weights.pth").write_text("")
    env = {
        "CM_PYTHON_BIN_WITH_PATH": str(inside / "python"), "CM_PUBLISHED_MODEL_WORK": "convert",
        "CM_PUBLISHED_MODEL_ARCHITECTURE": "rnnt", "CM_ML_MODEL_FRAMEWORK": "pytorch", "CM_PUBLISHED_MODEL_FACTS": "{}",
        "CM_PUBLISHED_MODEL_IS_ARCHIVE": "yes", "CM_PUBLISHED_MODEL_MEMBER": "weights.pth",
    }  # fmt: skip
    assert published_model.make(env, [], inside) == status
    assert f"--weights {inside}/weights.pth --facts {{}}" in Path("calls.txt").read_text()
    assert Path("weights.pth").exists() is bool(status)


PICKLING = """
import sys, types, torch
from torch import nn
module = types.ModuleType("models.ssd_r34")
sys.modules["models"], sys.modules["models.ssd_r34"] = types.ModuleType("models"), module
class Coder:
    def __init__(self): self.boxes = torch.ones(3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.coder = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)), Coder()
for part in (Coder, Net):
    part.__module__ = "models.ssd_r34"
    setattr(module, part.__name__, part)
torch.manual_seed(0)
net = Net()
torch.save(net, "new.pytorch")
torch.save(net, "old.pytorch", _use_new_zipfile_serialization=False)
torch.save({"model": net.state_dict(), "epoch": 3}, "checkpoint.pth")
torch.save(net.state_dict(), "state.pt")
class Evil:
    def __reduce__(self):
        import os
        return os.system, ("touch it_ran",)
torch.save({"model": Evil()}, "evil.pytorch")
"""


def test_weights_of_pickled_modules_are_read_without_running_their_code(inside):
    torch = need("torch")[0]
    from crowdperf.harness.base.checkpoints import read_checkpoint
    from crowdperf.harness.base.errors import HarnessError

    subprocess.run([sys.executable, "-c", PICKLING], check=True, timeout=120, capture_output=True)
    wanted = torch.load("state.pt")
    for file in ("new.pytorch", "old.pytorch", "checkpoint.pth"):
        found = read_checkpoint(Path(file))
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    with pytest.raises(HarnessError, match=r"posix\.system|os\.system"):
        read_checkpoint(Path("evil.pytorch"))
    assert not Path("it_ran").exists()
    Path("cut.pytorch").write_bytes(Path("new.pytorch").read_bytes()[:500])
    with pytest.raises(HarnessError, match="cannot read the weights"):
        read_checkpoint(Path("cut.pytorch"))
