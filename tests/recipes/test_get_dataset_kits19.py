"""get-dataset-kits19, -brats19, get-preprocessed-dataset-kits19: what the hooks decide and export; run.sh on files."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

import pytest
from harness_libraries import need
from recipe_loader import RECIPES, exported, load_recipe
from recipe_script import run_script

ALIAS = "get-dataset-kits19"
SYNTHETIC = {"CM_DATASET_KITS19_WAY": "synthetic", "CM_DATASET_SIZE": "2"}
GIVEN = {"CM_DATASET_KITS19_WAY": "given"}


def test_without_a_copy_it_says_where_to_get_one(inside, hook_input):
    answer = load_recipe(ALIAS).preprocess(hook_input(dict(GIVEN)))
    assert answer["return"] == 1
    for text in ("https://github.com/neheller/kits19", "CC BY-NC-SA 4.0", "starter_code.get_imaging", "--path=FOLDER"):
        assert text in answer["error"]


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({**SYNTHETIC, "CM_MLPERF_DATA_GIVEN_PATH": "/data"}, "exclude each other"),
        ({**SYNTHETIC, "CM_DATASET_SIZE": "0"}, "_size.0 cannot be"),
        ({**SYNTHETIC, "CM_DATASET_SIZE": "many"}, "_size.1 to _size.9999"),
        ({**GIVEN, "CM_DATASET_SIZE": "3", "CM_MLPERF_DATA_GIVEN_PATH": "/data"}, "taken whole"),
    ],
)
def test_what_cannot_be_is_refused(inside, hook_input, env, says):
    answer = load_recipe(ALIAS).preprocess(hook_input(env))
    assert answer["return"] == 1 and says in answer["error"]


def test_a_synthetic_set_is_made_and_exported(inside, hook_input):
    need("numpy", "nibabel")
    recipe = load_recipe(ALIAS)
    i = hook_input({**SYNTHETIC, "CM_DATASET_KITS19_KIND": "tiny", "CM_DATASET_KITS19_SEED": "0"})
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    answer = recipe.postprocess(i)
    assert answer["return"] == 0 and str(inside / "kits19" / "dataset.json") in answer["files"]
    found = exported(ALIAS, i["env"])
    assert found["CM_DATASET_PATH"] == found["CM_DATASET_KITS19_PATH"] == str(inside / "kits19")
    assert found["CM_DATASET_IS_SYNTHETIC"] == "yes" and found["CM_DATASET_SIZE"] == "2"
    facts = json.loads((inside / "kits19" / "dataset.json").read_text())
    assert facts["is_synthetic"] is True and len(facts["calibration_cases"]) == 8


def test_a_given_copy_is_checked_and_what_is_missing_named(inside, hook_input, tmp_path):
    need("numpy", "nibabel")
    copy = tmp_path / "a copy"
    (copy / "case_00000").mkdir(parents=True)
    i = hook_input({**GIVEN, "CM_MLPERF_DATA_GIVEN_PATH": str(copy)})
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode != 0
    assert f"{copy}/case_00000/imaging.nii.gz is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_whole_given_copy_is_taken(inside, hook_input, tmp_path):
    (nibabel, numpy) = need("nibabel", "numpy")
    sys.path.insert(0, str(RECIPES / "app-mlperf-inference"))
    kits19 = importlib.import_module("harness.datasets.kits19")
    volume = nibabel.Nifti1Image(numpy.zeros((2, 3, 4), numpy.uint8), numpy.eye(4))
    for case in kits19.INFERENCE_CASES:
        (tmp_path / "copy" / "data" / case).mkdir(parents=True)
        for name in ("imaging", "segmentation"):
            nibabel.save(volume, tmp_path / "copy" / "data" / case / f"{name}.nii.gz")
    recipe = load_recipe(ALIAS)
    i = hook_input({**GIVEN, "CM_MLPERF_DATA_GIVEN_PATH": str(tmp_path / "copy")})
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i) == {"return": 0, "files": []}
    assert i["env"]["CM_DATASET_IS_SYNTHETIC"] == "no"
    assert i["env"]["CM_GET_DEPENDENT_CACHED_PATH"] == str(tmp_path / "copy")


def test_the_store_is_made_for_the_tiny_window(inside, hook_input, tmp_path):
    need("numpy", "nibabel", "scipy")
    make = [sys.executable, "-B", str(RECIPES / ALIAS / "make_volumes.py"), "--output_dir", str(tmp_path / "kits19")]
    environment = {**os.environ, "PYTHONPATH": str(RECIPES / "get-mlperf-data-lib")}
    options = ["--size", "tiny", "--count", "2", "--calibration_count", "1"]
    subprocess.run([*make, *options], check=True, env=environment, timeout=60)
    alias = "get-preprocessed-dataset-kits19"
    recipe = load_recipe(alias)
    env = {
        "CM_DATASET_KITS19_WINDOW": "32",
        "CM_DATASET_PATH": str(tmp_path / "kits19"),
        "CM_NUM_PREPROCESS_THREADS": "1",
    }
    i = hook_input(env)
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(alias, inside, i["env"])
    assert done.returncode == 0, done.stderr
    answer = recipe.postprocess(i)
    assert answer["return"] == 0 and answer["files"]
    assert exported(alias, i["env"]) == {"CM_DATASET_PREPROCESSED_PATH": str(inside / "preprocessed")}


def test_an_empty_store_is_an_error(inside, hook_input):
    (inside / "preprocessed").mkdir()
    answer = load_recipe("get-preprocessed-dataset-kits19").postprocess(hook_input({}))
    assert answer["return"] == 1 and "holds no preprocessed.json" in answer["error"]
