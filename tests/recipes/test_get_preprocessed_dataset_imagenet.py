"""get-preprocessed-dataset-imagenet: what it tells the harness, and the store it hands on."""

import json

import pytest
from recipe_loader import load_recipe

recipe = load_recipe("get-preprocessed-dataset-imagenet")


@pytest.mark.parametrize("way", ["vgg", "pytorch"])
def test_the_harness_is_told_how_images_are_prepared(hook_input, inside, way):
    assert recipe.preprocess(
        hook_input({"CM_DATASET_IMAGENET_PREPROCESSING": way, "CM_DATASET_IMAGENET_SIDE": "64"})
    ) == {"return": 0}
    info = json.loads((inside / "model.json").read_text(encoding="utf-8"))
    assert info == {"format": 1, "files": {}, "config": {"preprocessing": way, "side": 64}}


def test_a_store_is_handed_on_and_its_descriptions_declared(hook_input, inside):
    store = inside / "preprocessed"
    store.mkdir()
    for name in ("preprocessed.json", "chunk.00000.json", "image.00000.npy"):
        (store / name).touch()
    i = hook_input()
    answer = recipe.postprocess(i)
    assert answer == {"return": 0, "files": [str(store / "chunk.00000.json"), str(store / "preprocessed.json")]}
    assert i["env"] == {"CM_DATASET_PREPROCESSED_PATH": str(store)}


def test_a_store_that_was_not_finished_is_an_error(hook_input, inside):
    i = hook_input()
    assert "preprocessed.json" in recipe.postprocess(i)["error"]
    assert i["env"] == {}
