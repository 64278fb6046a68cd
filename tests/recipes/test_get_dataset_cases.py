"""get-dataset-kits19, -brats19: what the hooks decide, refuse and export; run.sh on real files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from harness_libraries import need
from recipe_loader import exported, load_recipe
from recipe_script import run_script


@dataclass(frozen=True, kw_only=True)
class Cases:
    """A data set of cases. says: what a refusal without a copy holds. folder: one that a copy has; missing: the first
    file that then lacks."""

    says: tuple[str, ...]
    folder: str
    missing: str


SETS: Mapping[str, Cases] = {
    "kits19": Cases(
        says=("https://github.com/neheller/kits19", "CC BY-NC-SA 4.0", "starter_code.get_imaging", "--path=FOLDER"),
        folder="case_00000",
        missing="/case_00000/imaging.nii.gz",
    ),
    "brats19": Cases(
        says=("https://www.med.upenn.edu/cbica/brats2019/data.html", "MICCAI_BraTS_2019_Data_Training", "--path="),
        folder="HGG",
        missing="BraTS19_2013_13_1_t1.nii.gz",
    ),
}
EVERY = pytest.mark.parametrize("name", SETS)
SYNTHETIC = {"WAY": "synthetic", "KIND": "tiny", "SEED": "0"}


def env_of(name: str, words: Mapping[str, str], **more: str) -> dict[str, str]:
    return {**{f"CM_DATASET_{name.upper()}_{word}": value for word, value in words.items()}, **more}


@EVERY
def test_without_a_copy_it_says_where_to_get_one(inside, hook_input, name):
    answer = load_recipe(f"get-dataset-{name}").preprocess(hook_input(env_of(name, {"WAY": "given"})))
    assert answer["return"] == 1
    assert all(text in answer["error"] for text in SETS[name].says)


@pytest.mark.parametrize(
    ("words", "size", "path", "says"),
    [
        (SYNTHETIC, "2", "/data", "exclude each other"),
        (SYNTHETIC, "0", "", "_size.0 cannot be"),
        (SYNTHETIC, "-1", "", "_size.-1 cannot be"),
        (SYNTHETIC, "many", "", "_size.1 to _size.9999"),
        ({"WAY": "given"}, "3", "/data", "used completely"),
    ],
)
def test_what_cannot_be_is_refused(inside, hook_input, words, size, path, says):
    env = env_of("kits19", words, CM_DATASET_SIZE=size, CM_MLPERF_DATA_GIVEN_PATH=path)
    answer = load_recipe("get-dataset-kits19").preprocess(hook_input(env))
    assert answer["return"] == 1 and says in answer["error"]


@EVERY
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


@EVERY
def test_a_given_copy_is_checked_and_what_is_missing_named(inside, hook_input, tmp_path, name):
    need("numpy", "nibabel")
    copy = tmp_path / "a copy"
    (copy / SETS[name].folder).mkdir(parents=True)
    i = hook_input(env_of(name, {"WAY": "given"}, CM_MLPERF_DATA_GIVEN_PATH=str(copy)))
    assert load_recipe(f"get-dataset-{name}").preprocess(i) == {"return": 0}
    done = run_script(f"get-dataset-{name}", inside, i["env"])
    assert done.returncode != 0
    assert f"{SETS[name].missing} is missing" in done.stderr and "Traceback" not in done.stderr
