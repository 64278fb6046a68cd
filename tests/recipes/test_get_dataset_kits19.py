"""get-dataset-kits19 with a whole copy, get-preprocessed-dataset-kits19."""

import importlib

from harness_libraries import need
from made_sets import make_set
from recipe_loader import exported, load_recipe
from recipe_script import run_script

ALIAS = "get-dataset-kits19"
GIVEN = {"CM_DATASET_KITS19_WAY": "given"}


def test_a_whole_given_copy_is_taken(inside, hook_input, tmp_path):
    (nibabel, numpy) = need("nibabel", "numpy")
    kits19 = importlib.import_module("crowdperf.harness.datasets.kits19")
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
    make_set("kits19", tmp_path / "kits19", size="tiny", count=2, calibration_count=1)
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
    assert answer["return"] == 1 and "contains no preprocessed.json" in answer["error"]
