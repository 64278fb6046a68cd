"""Recipes of preprocessed data sets: what the harness is told, the store that it writes, and what is handed on."""

import json

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import exported, load_recipe, recipe_meta
from recipe_script import run_script

SQUAD = "get-preprocessed-dataset-squad"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("coco", {}),
        ("imagenet", {}),
        ("kits19", {}),
        ("librispeech", {"CM_DATASET_PREPROCESSED_JSON": "/data/dev-clean-wav.json"}),
        ("openimages", {}),
    ],
)
def test_a_whole_store_is_handed_on_and_its_descriptions_declared(name, more, hook_input, inside):
    recipe, store = load_recipe(f"get-preprocessed-dataset-{name}"), inside / "preprocessed"
    given = {"CM_DATASET_PATH": "/data"}
    error = recipe.postprocess(hook_input(dict(given)))["error"]
    assert "contains no preprocessed.json" in error and f"preprocessed,{name} --renew" in error
    store.mkdir()
    for file in ("chunk.00000.json", "image.00000.npy"):
        (store / file).touch()
    i = hook_input(dict(given))
    assert "contains no preprocessed.json" in recipe.postprocess(i)["error"]  # a run that was broken off
    assert i["env"] == given
    (store / "preprocessed.json").touch()
    files = [str(store / file) for file in ("chunk.00000.json", "preprocessed.json")]
    assert recipe.postprocess(i) == {"return": 0, "files": files}
    assert i["env"] == {**given, "CM_DATASET_PREPROCESSED_PATH": str(store), **more}


@pytest.mark.parametrize("way", ["vgg", "pytorch"])
def test_the_harness_is_told_how_images_are_prepared(hook_input, inside, way):
    env = {"CM_DATASET_IMAGENET_PREPROCESSING": way, "CM_DATASET_IMAGENET_SIDE": "64"}
    assert load_recipe("get-preprocessed-dataset-imagenet").preprocess(hook_input(env)) == {"return": 0}
    info = json.loads((inside / "model.json").read_text(encoding="utf-8"))
    assert info == {"format": 1, "files": {}, "config": {"preprocessing": way, "side": 64}}


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


def test_the_store_is_exported_with_the_numbers_of_the_reference(inside, hook_input):
    for name in ("preprocessed.json", "sample_map.txt", "chunk.00000.json", "input_ids.00000.npy"):
        (inside / name).write_bytes(b"x")
    i = hook_input()
    answer = load_recipe(SQUAD).postprocess(i)
    names = ["preprocessed.json", "sample_map.txt", "chunk.00000.json", "input_ids.00000.npy"]
    assert answer == {"return": 0, "files": names}
    assert exported(SQUAD, i["env"]) == {
        "CM_DATASET_PREPROCESSED_PATH": str(inside),
        "CM_DATASET_SQUAD_TOKENIZED_ROOT": str(inside),
        "CM_DATASET_SQUAD_TOKENIZED_MAX_SEQ_LENGTH": "384",
        "CM_DATASET_SQUAD_TOKENIZED_MAX_QUERY_LENGTH": "64",
        "CM_DATASET_SQUAD_TOKENIZED_DOC_STRIDE": "128",
    }


def test_a_store_that_is_not_whole_is_refused(inside, hook_input):
    answer = load_recipe(SQUAD).postprocess(hook_input())
    assert answer["return"] == 1
    assert "is missing preprocessed.json, sample_map.txt" in answer["error"]


@pytest.mark.parametrize("name", ["tiny", "synthetic"])
def test_a_variation_asks_the_data_set_for_the_same_one(name):
    assert recipe_meta(SQUAD)["variations"][name]["ad"] == {"squad-dataset": {"tags": f"_{name}"}}


def test_run_sh_writes_the_samples_of_the_data_set(tmp_path):
    (numpy,) = need("numpy")
    dataset, store = tmp_path / "dataset", tmp_path / "it's a store"
    dataset.mkdir()
    store.mkdir()
    make_set("squad", dataset, kind="tiny", count=12)
    done = run_script(SQUAD, store, {"CM_DATASET_SQUAD_PATH": str(dataset), "CM_NUM_PREPROCESS_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    facts = json.loads((store / "preprocessed.json").read_text())
    names = (store / "sample_map.txt").read_text().splitlines()
    assert (facts["model"], facts["is_ragged"], facts["dataset"]["is_synthetic"]) == ("bert", True, True)
    assert facts["count"] == len(names) > 12
    lengths = numpy.load(store / "input_ids.00000.shapes.npy")[:, 0]
    assert lengths.max() == 384
    ids = numpy.load(store / "input_ids.00000.npy")
    assert len(ids) == lengths.sum()
    assert (ids[numpy.cumsum(lengths)[:-1]] == 101).all()


def test_run_sh_ends_with_what_is_wrong_with_the_data_set(tmp_path):
    need("numpy")
    done = run_script(SQUAD, tmp_path, {"CM_DATASET_SQUAD_PATH": str(tmp_path), "CM_NUM_PREPROCESS_THREADS": "1"})
    assert done.returncode != 0
    assert "is missing dev-v1.1.json and vocab.txt" in done.stderr
