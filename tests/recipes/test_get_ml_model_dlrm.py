"""get-ml-model-dlrm-v2: the small model is fitted to synthetic clicks and exported."""

import json
from pathlib import Path

import pytest
from harness_libraries import need
from recipe_loader import exported, load_recipe
from recipe_script import run_script

ALIAS = "get-ml-model-dlrm-v2"


@pytest.mark.full
def test_the_tiny_model_is_fitted_to_a_meaningful_score(inside, hook_input, tmp_path):
    need("numpy", "torch", "onnx", "safetensors")
    data = tmp_path / "data"
    env = {
        "CM_DATASET_CRITEO_WAY": "synthetic",
        "CM_DATASET_CRITEO_FOLDER": str(data),
        "CM_DATASET_CRITEO_FORM": "multi-hot",
        "CM_DATASET_CRITEO_MULTIHOT": "yes",
        "CM_DATASET_CRITEO_KIND": "tiny",
        "CM_DATASET_SIZE": "32",
        "CM_DATASET_CRITEO_SEED": "7",
    }
    done = run_script("get-dataset-criteo", tmp_path, env)
    assert done.returncode == 0, done.stderr
    asked = {"CM_PUBLISHED_MODEL_SOURCE": "tiny", "CM_ML_MODEL_FRAMEWORK": "pytorch", "CM_ML_MODEL_SEED": "0"}
    i = hook_input({**asked, "CM_DATASET_PATH": str(data)})
    recipe = load_recipe(ALIAS)
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i)["return"] == 0
    info = json.loads((inside / "model.json").read_text())
    assert 72 < info["reference"]["AUC"] < 95 and info["is_synthetic"] is True
    found = exported(ALIAS, i["env"])
    assert found["CM_ML_MODEL_IS_SYNTHETIC"] == "yes" and found["CM_ML_MODEL_FRAMEWORK"] == "pytorch"
    assert Path(found["CM_ML_MODEL_FILE_WITH_PATH"]).is_file()
