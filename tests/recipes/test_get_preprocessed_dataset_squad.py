"""get-preprocessed-dataset-squad: the store that the harness writes is handed on, and holds the data set's samples."""

import json

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import exported, load_recipe, recipe_meta
from recipe_script import run_script

ALIAS = "get-preprocessed-dataset-squad"


def test_the_store_is_exported_with_the_numbers_of_the_reference(inside, hook_input):
    for name in ("preprocessed.json", "sample_map.txt", "chunk.00000.json", "input_ids.00000.npy"):
        (inside / name).write_bytes(b"x")
    i = hook_input()
    answer = load_recipe(ALIAS).postprocess(i)
    names = ["preprocessed.json", "sample_map.txt", "chunk.00000.json", "input_ids.00000.npy"]
    assert answer == {"return": 0, "files": names}
    assert exported(ALIAS, i["env"]) == {
        "CM_DATASET_PREPROCESSED_PATH": str(inside),
        "CM_DATASET_SQUAD_TOKENIZED_ROOT": str(inside),
        "CM_DATASET_SQUAD_TOKENIZED_MAX_SEQ_LENGTH": "384",
        "CM_DATASET_SQUAD_TOKENIZED_MAX_QUERY_LENGTH": "64",
        "CM_DATASET_SQUAD_TOKENIZED_DOC_STRIDE": "128",
    }


def test_a_store_that_is_not_whole_is_refused(inside, hook_input):
    answer = load_recipe(ALIAS).postprocess(hook_input())
    assert answer["return"] == 1
    assert "is missing preprocessed.json, sample_map.txt" in answer["error"]


@pytest.mark.parametrize("name", ["tiny", "synthetic"])
def test_a_variation_asks_the_data_set_for_the_same_one(name):
    assert recipe_meta(ALIAS)["variations"][name]["ad"] == {"squad-dataset": {"tags": f"_{name}"}}


def test_run_sh_writes_the_samples_of_the_data_set(tmp_path):
    (numpy,) = need("numpy")
    dataset, store = tmp_path / "dataset", tmp_path / "it's a store"
    dataset.mkdir()
    store.mkdir()
    make_set("squad", dataset, kind="tiny", count=12)
    done = run_script(ALIAS, store, {"CM_DATASET_SQUAD_PATH": str(dataset), "CM_NUM_PREPROCESS_THREADS": "1"})
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
    done = run_script(ALIAS, tmp_path, {"CM_DATASET_SQUAD_PATH": str(tmp_path), "CM_NUM_PREPROCESS_THREADS": "1"})
    assert done.returncode != 0
    assert "is missing dev-v1.1.json and vocab.txt" in done.stderr
