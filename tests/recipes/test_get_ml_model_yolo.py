"""get-ml-model-yolo: weights of one's own copy, fitted or random ones; nothing is downloaded."""

import json
from typing import Any

import pytest
from recipe_loader import load_recipe, recipe_meta


def call(hook_input: Any, source: str = "published", **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    i = hook_input({"CM_PUBLISHED_MODEL_SOURCE": source, "CM_ML_MODEL_FRAMEWORK": "onnx", **env})
    return load_recipe("get-ml-model-yolo").preprocess(i), i["env"]


def test_without_a_copy_the_recipe_says_how_to_get_one(hook_input, inside):
    answer, _ = call(hook_input)
    assert answer["return"] == 1
    for part in ("https://yolo.mlcommons-storage.org/metadata/YOLO-model.uri", "AGPL-3.0", "--path=", "--source=tiny"):
        assert part in answer["error"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_copy_is_converted_as_a_file_or_in_the_downloaders_folder(is_folder, hook_input, inside, tmp_path):
    checkpoint = tmp_path / "model" / "yolo11l.pt"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"PK")
    answer, env = call(hook_input, CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path if is_folder else checkpoint))
    assert answer == {"return": 0}
    assert (env["CM_PUBLISHED_MODEL_WORK"], env["CM_PUBLISHED_MODEL_IS_FETCHED"]) == ("convert", "no")
    assert env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == str(checkpoint)
    assert json.loads(env["CM_PUBLISHED_MODEL_FACTS"])["reference"] == {"mAP": 53.4}
    (tmp_path / "other.pt").write_bytes(b"PK")
    answer, _ = call(hook_input, CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path))
    assert answer["return"] == 1 and "is not a file" in answer["error"]


@pytest.mark.parametrize("source", ["tiny", "random"])
def test_made_weights_need_no_copy(source, hook_input, inside):
    answer, env = call(hook_input, source)
    assert answer == {"return": 0} and env["CM_PUBLISHED_MODEL_WORK"] == source


def test_the_small_model_is_fitted_for_the_small_data_set():
    meta = recipe_meta("get-ml-model-yolo")
    assert "get,dataset,coco,original,_safe,_tiny" in json.dumps(meta["variations"]["tiny"])
    assert meta["variations"]["onnx"]["default"] and "prehook_deps" not in meta
