"""get-dataset-brats19: what the hooks decide, refuse and export; run.sh on real files."""

from __future__ import annotations

import json

import pytest
from harness_libraries import need
from recipe_loader import exported, load_recipe
from recipe_script import run_script

ALIAS = "get-dataset-brats19"
SYNTHETIC = {"CM_DATASET_BRATS19_WAY": "synthetic", "CM_DATASET_SIZE": "2"}
GIVEN = {"CM_DATASET_BRATS19_WAY": "given"}


def test_without_a_copy_it_says_where_to_get_one(inside, hook_input):
    answer = load_recipe(ALIAS).preprocess(hook_input(dict(GIVEN)))
    assert answer["return"] == 1
    for text in ("https://www.med.upenn.edu/cbica/brats2019/data.html", "MICCAI_BraTS_2019_Data_Training", "--path="):
        assert text in answer["error"]


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({**SYNTHETIC, "CM_MLPERF_DATA_GIVEN_PATH": "/data"}, "exclude each other"),
        ({**SYNTHETIC, "CM_DATASET_SIZE": "-1"}, "_size.-1 cannot be"),
        ({**GIVEN, "CM_DATASET_SIZE": "3", "CM_MLPERF_DATA_GIVEN_PATH": "/data"}, "taken whole"),
    ],
)
def test_what_cannot_be_is_refused(inside, hook_input, env, says):
    answer = load_recipe(ALIAS).preprocess(hook_input(env))
    assert answer["return"] == 1 and says in answer["error"]


def test_a_synthetic_set_is_made_and_exported(inside, hook_input):
    need("numpy", "nibabel")
    recipe = load_recipe(ALIAS)
    i = hook_input({**SYNTHETIC, "CM_DATASET_BRATS19_KIND": "tiny", "CM_DATASET_BRATS19_SEED": "0"})
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i)["return"] == 0
    found = exported(ALIAS, i["env"])
    assert found["CM_DATASET_PATH"] == found["CM_DATASET_BRATS19_PATH"] == str(inside / "brats19")
    assert found["CM_DATASET_IS_SYNTHETIC"] == "yes" and found["CM_DATASET_SIZE"] == "2"
    assert json.loads((inside / "brats19" / "dataset.json").read_text())["is_synthetic"] is True


def test_a_given_copy_is_checked_and_what_is_missing_named(inside, hook_input, tmp_path):
    need("numpy", "nibabel")
    copy = tmp_path / "a copy"
    (copy / "HGG").mkdir(parents=True)
    i = hook_input({**GIVEN, "CM_MLPERF_DATA_GIVEN_PATH": str(copy)})
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode != 0
    assert "BraTS19_2013_13_1_t1.nii.gz is missing" in done.stderr and "Traceback" not in done.stderr
