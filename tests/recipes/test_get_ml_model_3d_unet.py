"""get-ml-model-3d-unet: given files, the archive of BraTS, and the small fitted model."""

import hashlib
import json
from pathlib import Path

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import exported, load_recipe
from recipe_script import run_script

ALIAS = "get-ml-model-3d-unet"


def env_of(**more: str) -> dict[str, str]:
    return {
        "CM_PUBLISHED_MODEL_SOURCE": "published",
        "CM_3D_UNET_DATA": "kits19",
        "CM_ML_MODEL_FRAMEWORK": "onnx",
        "CM_ML_MODEL_SEED": "0",
        **more,
    }


def test_a_given_onnx_file_is_described_and_exported(inside, hook_input, tmp_path):
    file = tmp_path / "mine.onnx"
    file.write_bytes(b"weights")
    recipe = load_recipe(ALIAS)
    i = hook_input(env_of(CM_MLPERF_DATA_GIVEN_PATH=str(file)))
    assert "is not the published file" in recipe.preprocess(i)["error"]  # of BraTS's no MD5 is known
    i = hook_input(env_of(CM_3D_UNET_DATA="brats", CM_MLPERF_DATA_GIVEN_PATH=str(file)))
    assert recipe.preprocess(i) == {"return": 0}
    assert i["env"]["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"
    assert run_script(ALIAS, inside, i["env"]).returncode == 0
    assert recipe.postprocess(i)["return"] == 0
    info = json.loads((inside / "model.json").read_text())
    assert info["reference"] == {"DICE": 0.853} and info["is_synthetic"] is False
    assert info["files"]["model"]["sha256"] == hashlib.sha256(b"weights").hexdigest()
    found = exported(ALIAS, i["env"])
    assert found["CM_ML_MODEL_FILE_WITH_PATH"] == str(file) and found["CM_ML_MODEL_IS_SYNTHETIC"] == "no"


def test_the_archive_of_brats_is_unpacked_by_its_user(inside, hook_input):
    env = env_of(CM_3D_UNET_DATA="brats", CM_ML_MODEL_FRAMEWORK="pytorch")
    answer = load_recipe(ALIAS).preprocess(hook_input(env))
    assert answer["return"] == 1 and "give model_final_checkpoint.model with" in answer["error"]


@pytest.mark.full
def test_the_tiny_model_is_fitted_to_a_meaningful_score(inside, hook_input, tmp_path):
    need("numpy", "torch", "onnx", "scipy", "nibabel")
    data = tmp_path / "kits19"
    make_set("kits19", data, size="tiny", count=3, calibration_count=8)
    recipe = load_recipe(ALIAS)
    i = hook_input(env_of(CM_PUBLISHED_MODEL_SOURCE="tiny", CM_DATASET_PATH=str(data)))
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i)["return"] == 0
    info = json.loads((inside / "model.json").read_text())
    assert 0.6 < info["reference"]["DICE"] < 1 and info["config"]["window"] == 32
    assert Path(i["env"]["CM_ML_MODEL_FILE_WITH_PATH"]).name == "unet3d.onnx"
