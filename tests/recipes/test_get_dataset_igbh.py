"""get-dataset-igbh and get-ml-model-rgat: nothing is downloaded; copies are taken, made ones are said to be made."""

import json
from typing import Any

import pytest
from recipe_loader import load_recipe, recipe_meta


def model_call(hook_input: Any, source: str, path: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    i = hook_input({"CM_PUBLISHED_MODEL_SOURCE": source, "CM_MLPERF_DATA_GIVEN_PATH": path})
    return load_recipe("get-ml-model-rgat").preprocess(i), i["env"]


def test_without_a_copy_both_say_where_to_get_one(hook_input, inside):
    answer, _ = model_call(hook_input, "published")
    assert answer["return"] == 1 and "metadata/rgat-model.uri" in answer["error"]
    i = hook_input({"CM_DATASET_IGBH_WAY": "given", "CM_MLPERF_DATA_GIVEN_PATH": ""})
    answer = load_recipe("get-dataset-igbh").preprocess(i)
    assert answer["return"] == 1
    for part in ("2.2 TB", "600 GB", "download_igbh_full.sh", "split_seeds.py", "--source=tiny"):
        assert part in answer["error"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_checkpoint_is_taken_as_a_file_or_in_its_folder(is_folder, hook_input, inside, tmp_path):
    file = tmp_path / "RGAT" / "RGAT.pt"
    file.parent.mkdir()
    file.write_bytes(b"PK")
    answer, env = model_call(hook_input, "published", str(tmp_path if is_folder else file))
    assert answer == {"return": 0} and env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == str(file)
    assert json.loads(env["CM_PUBLISHED_MODEL_FACTS"])["reference"] == {"acc": 72.86}
    answer, _ = model_call(hook_input, "random", str(file))
    assert answer["return"] == 1 and "exclude each other" in answer["error"]
    answer, _ = model_call(hook_input, "published", str(tmp_path / "none"))
    assert answer["return"] == 1


def test_a_synthetic_graph_has_the_asked_size(hook_input, inside):
    i = hook_input({"CM_DATASET_IGBH_WAY": "synthetic", "CM_DATASET_SIZE": "50", "CM_MLPERF_DATA_GIVEN_PATH": ""})
    assert load_recipe("get-dataset-igbh").preprocess(i) == {"return": 0}
    variations = recipe_meta("get-dataset-igbh")["variations"]
    assert variations["tiny"]["env"]["CM_DATASET_IGBH_KIND"] == "tiny"
    assert "get,dataset,igbh,_tiny" in json.dumps(recipe_meta("get-ml-model-rgat")["variations"]["tiny"])
