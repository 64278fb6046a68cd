"""Recipes of data sets that users get themselves (crowdperf.data.datasets.CaseSet): what the hooks decide, refuse and
export; run.sh on real files."""

import importlib
import json
from collections.abc import Mapping

import pytest
from harness_libraries import need
from recipe_loader import exported, load_recipe, recipe_meta
from recipe_script import run_script

SETS: Mapping[str, tuple[str, ...]] = {
    "kits19": ("https://github.com/neheller/kits19", "CC BY-NC-SA 4.0", "starter_code.get_imaging", "--path=FOLDER"),
    "brats19": ("https://www.med.upenn.edu/cbica/brats2019/data.html", "MICCAI_BraTS_2019_Data_Training", "--path="),
    "coco2014": ("pt_inception-2015-12-05-6726825d.pth",),
    "criteo": ("https://ailab.criteo.com", "terabyte_processed_test.bin", "day_23_dense.npy", "--path=FOLDER"),
    "igbh": ("2.2 TB", "600 GB", "download_igbh_full.sh", "split_seeds.py", "--source=tiny"),
    "whisper": ("metadata/whisper-dataset.uri",),
}
"""Each data set, with what a refusal without a copy says."""
VOLUMES = pytest.mark.parametrize(
    ("name", "folder", "missing"),
    [("kits19", "case_00000", "/case_00000/imaging.nii.gz"), ("brats19", "HGG", "BraTS19_2013_13_1_t1.nii.gz")],
)
"""Those of volumes, with a folder that a copy has, and the first file that it then lacks."""
SYNTHETIC = {"WAY": "synthetic", "KIND": "tiny", "SEED": "0", "MULTIHOT": "no"}
GIVEN = {"WAY": "given", "MULTIHOT": "no"}


def env_of(name: str, words: Mapping[str, str], **more: str) -> dict[str, str]:
    return {**{f"CM_DATASET_{name.upper()}_{word}": value for word, value in words.items()}, **more}


@pytest.mark.parametrize("name", SETS)
def test_without_a_copy_it_says_where_to_get_one(inside, hook_input, name):
    answer = load_recipe(f"get-dataset-{name}").preprocess(hook_input(env_of(name, GIVEN)))
    assert answer["return"] == 1
    assert all(text in answer["error"] for text in SETS[name])


@pytest.mark.parametrize("name", SETS)
def test_a_tiny_set_is_a_synthetic_one(name):
    env = recipe_meta(f"get-dataset-{name}")["variations"]["tiny"]["env"]
    assert env[f"CM_DATASET_{name.upper()}_WAY"] == "synthetic"
    assert name == "whisper" or env[f"CM_DATASET_{name.upper()}_KIND"] == "tiny"  # its clips are small alike


@pytest.mark.parametrize(
    ("name", "words", "size", "path", "says"),
    [
        ("kits19", SYNTHETIC, "2", "/data", "exclude each other"),
        ("kits19", SYNTHETIC, "0", "", "_size.0 cannot be"),
        ("kits19", SYNTHETIC, "-1", "", "_size.-1 cannot be"),
        ("kits19", SYNTHETIC, "many", "", "_size.1 to _size.9999"),
        ("criteo", SYNTHETIC, "400000", "", "_size.1 to _size.330067"),
        ("kits19", GIVEN, "3", "/data", "used completely"),
    ],
)
def test_what_cannot_be_is_refused(inside, hook_input, name, words, size, path, says):
    env = env_of(name, words, CM_DATASET_SIZE=size, CM_MLPERF_DATA_GIVEN_PATH=path)
    answer = load_recipe(f"get-dataset-{name}").preprocess(hook_input(env))
    assert answer["return"] == 1 and says in answer["error"]


@pytest.mark.parametrize("name", ["kits19", "brats19"])
def test_a_synthetic_set_is_made_and_exported(inside, hook_input, name):
    need("numpy", "nibabel")
    alias = f"get-dataset-{name}"
    recipe = load_recipe(alias)
    i = hook_input(env_of(name, SYNTHETIC, CM_DATASET_SIZE="2"))
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(alias, inside, i["env"])
    assert done.returncode == 0, done.stderr
    answer = recipe.postprocess(i)
    assert answer["return"] == 0 and str(inside / name / "dataset.json") in answer["files"]
    found = exported(alias, i["env"])
    assert found["CM_DATASET_PATH"] == found[f"CM_DATASET_{name.upper()}_PATH"] == str(inside / name)
    assert found["CM_DATASET_IS_SYNTHETIC"] == "yes" and found["CM_DATASET_SIZE"] == "2"
    facts = json.loads((inside / name / "dataset.json").read_text())
    assert facts["is_synthetic"] is True and len(facts["calibration_cases"]) == 8


@VOLUMES
def test_a_given_copy_is_checked_and_what_is_missing_named(inside, hook_input, tmp_path, name, folder, missing):
    need("numpy", "nibabel")
    copy = tmp_path / "a copy"
    (copy / folder).mkdir(parents=True)
    i = hook_input(env_of(name, GIVEN, CM_MLPERF_DATA_GIVEN_PATH=str(copy)))
    assert load_recipe(f"get-dataset-{name}").preprocess(i) == {"return": 0}
    done = run_script(f"get-dataset-{name}", inside, i["env"])
    assert done.returncode != 0
    assert f"{missing} is missing" in done.stderr and "Traceback" not in done.stderr


def test_a_whole_given_copy_is_taken(inside, hook_input, tmp_path):
    (nibabel, numpy) = need("nibabel", "numpy")
    kits19 = importlib.import_module("crowdperf.harness.datasets.kits19")
    volume = nibabel.Nifti1Image(numpy.zeros((2, 3, 4), numpy.uint8), numpy.eye(4))
    for case in kits19.INFERENCE_CASES:
        (tmp_path / "copy" / "data" / case).mkdir(parents=True)
        for name in ("imaging", "segmentation"):
            nibabel.save(volume, tmp_path / "copy" / "data" / case / f"{name}.nii.gz")
    recipe = load_recipe("get-dataset-kits19")
    i = hook_input(env_of("kits19", GIVEN, CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path / "copy")))
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script("get-dataset-kits19", inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i) == {"return": 0, "files": []}
    assert i["env"]["CM_DATASET_IS_SYNTHETIC"] == "no"
    assert i["env"]["CM_GET_DEPENDENT_CACHED_PATH"] == str(tmp_path / "copy")
