"""get-ml-model-3d-unet: published files by framework and data set, what is refused, and the small fitted model."""

import hashlib
import json
from pathlib import Path

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import RECIPES, exported, load_recipe
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


@pytest.mark.parametrize(
    ("data", "framework", "file", "md5"),
    [
        ("kits19", "onnx", "3dunet_kits19_128x128x128_dynbatch.onnx", "82f0618fde78f9839e7c712274019b4a"),
        ("kits19", "pytorch", "3dunet_kits19_pytorch_checkpoint.pth", "09c696e3ec13d83c628498bcd831eb5b"),
        ("brats", "onnx", "224_224_160_dyanmic_bs.onnx", ""),
    ],
)
def test_the_published_file_is_fetched(inside, hook_input, data, framework, file, md5):
    i = hook_input(env_of(CM_3D_UNET_DATA=data, CM_ML_MODEL_FRAMEWORK=framework))
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    env = i["env"]
    assert env["CM_PUBLISHED_MODEL_IS_FETCHED"] == "yes"
    assert (env["CM_PUBLISHED_MODEL_FILE_NAME"], env["CM_PUBLISHED_MODEL_MD5"]) == (file, md5)
    assert (
        env["CM_PUBLISHED_MODEL_URL"].startswith("https://zenodo.org/record/") and file in env["CM_PUBLISHED_MODEL_URL"]
    )


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


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (env_of(CM_PUBLISHED_MODEL_SOURCE="tiny", CM_MLPERF_DATA_GIVEN_PATH="/w"), "exclude each other"),
        (env_of(CM_3D_UNET_DATA="brats", CM_ML_MODEL_FRAMEWORK="pytorch"), "give model_final_checkpoint.model with"),
    ],
)
def test_what_cannot_be_is_refused(inside, hook_input, env, says):
    answer = load_recipe(ALIAS).preprocess(hook_input(env))
    assert answer["return"] == 1 and says in answer["error"]


def test_each_data_set_has_an_architecture_of_the_harness():
    recipe = load_recipe(ALIAS)
    for name in (recipe.KITS19.architecture, recipe.BRATS.architecture):
        for file in ("model.py", "network.py"):
            assert (RECIPES.parent / "src" / "crowdperf" / "benchmarks" / name / file).is_file()


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
