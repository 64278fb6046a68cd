"""get-ml-model-dlrm and get-ml-model-dlrm-v2: what is refused for lack of room, taken, fitted and exported."""

import importlib
import json
from pathlib import Path

import pytest
from harness_libraries import need
from recipe_loader import exported, load_recipe
from recipe_script import run_script

ALIASES = {"dlrm": "get-ml-model-dlrm", "dlrm_v2": "get-ml-model-dlrm-v2"}


@pytest.fixture
def weights(tmp_path, monkeypatch) -> str:
    """A file of weights, too large for its MD5 to be looked at."""
    monkeypatch.setattr(importlib.import_module("crowdperf.data.model_sources"), "_MAX_DIGESTED_BYTES", -1)
    path = tmp_path / "weights.pt"
    path.write_bytes(b"")
    return str(path)


@pytest.fixture
def with_room(monkeypatch):
    """A machine with so many GB of disk and of memory."""
    room = importlib.import_module("crowdperf.data.capacity")

    def give(disk_gb: float, memory_gb: float) -> None:
        free = room.Room(disk_bytes=int(disk_gb * room.GB), memory_bytes=int(memory_gb * room.GB))
        monkeypatch.setattr(room, "free_room", lambda folder: free)

    return give


def env_of(source: str, **more: str) -> dict[str, str]:
    return {
        "CM_PUBLISHED_MODEL_SOURCE": source,
        "CM_ML_MODEL_FRAMEWORK": "onnx",
        "CM_ML_MODEL_SEED": "0",
        **more,
    }


@pytest.mark.parametrize(
    ("model", "source", "room", "says"),
    [
        ("dlrm", "random", (66, 22), "needs 192 GB of disk (66 GB are free) and 240 GB of memory (22 GB available)"),
        ("dlrm", "random", (500, 22), "needs 240 GB of memory (22 GB available)"),
        ("dlrm", "published", (150, 500), "needs 288 GB of disk (150 GB are free)"),
        ("dlrm_v2", "random", (66, 500), "needs 209 GB of disk (66 GB are free)"),
        ("dlrm_v2", "random", (500, 200), "needs 262 GB of memory (200 GB available)"),
    ],
)
def test_a_machine_without_room_is_told_before_anything_is_fetched(
    inside, hook_input, with_room, model, source, room, says
):
    with_room(*room)
    i = hook_input(env_of(source))
    answer = load_recipe(ALIASES[model]).preprocess(i)
    assert answer["return"] == 1 and says in answer["error"] and "_tiny" in answer["error"]


@pytest.mark.parametrize("model", ALIASES)
def test_a_machine_with_room_goes_on(inside, hook_input, with_room, model):
    with_room(300, 300)
    assert load_recipe(ALIASES[model]).preprocess(hook_input(env_of("random"))) == {"return": 0}


def test_published_weights_of_v1_are_downloaded_or_taken_from_path(inside, hook_input, with_room, weights):
    with_room(300, 300)
    recipe = load_recipe(ALIASES["dlrm"])
    i = hook_input(env_of("published"))
    assert recipe.preprocess(i) == {"return": 0}
    assert i["env"]["CM_PUBLISHED_MODEL_IS_FETCHED"] == "yes"
    i = hook_input(env_of("published", CM_MLPERF_DATA_GIVEN_PATH=weights))
    assert recipe.preprocess(i) == {"return": 0}
    assert i["env"]["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == weights
    assert i["env"]["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"
    assert json.loads(i["env"]["CM_PUBLISHED_MODEL_FACTS"])["reference"] == {"AUC": 80.25}


def test_published_weights_of_v2_must_be_given(inside, hook_input, with_room, weights):
    with_room(300, 300)
    recipe = load_recipe(ALIASES["dlrm_v2"])
    answer = recipe.preprocess(hook_input(env_of("published")))
    assert answer["return"] == 1 and "https://inference.mlcommons-storage.org" in answer["error"]
    i = hook_input(env_of("published", CM_MLPERF_DATA_GIVEN_PATH=weights))
    assert recipe.preprocess(i) == {"return": 0}
    assert i["env"]["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == weights


@pytest.mark.parametrize("model", ALIASES)
def test_a_path_and_made_weights_exclude_each_other(inside, hook_input, model):
    answer = load_recipe(ALIASES[model]).preprocess(hook_input(env_of("tiny", CM_MLPERF_DATA_GIVEN_PATH="/w")))
    assert answer["return"] == 1 and "exclude each other" in answer["error"]


@pytest.mark.full
@pytest.mark.parametrize(("model", "framework"), [("dlrm_v2", "pytorch")])
def test_the_tiny_model_is_fitted_to_a_meaningful_score(inside, hook_input, tmp_path, model, framework):
    need("numpy", "torch", "onnx", "safetensors")
    data = tmp_path / "data"
    env = {
        "CM_DATASET_CRITEO_WAY": "synthetic",
        "CM_DATASET_CRITEO_FOLDER": str(data),
        "CM_DATASET_CRITEO_FORM": "one-hot" if model == "dlrm" else "multi-hot",
        "CM_DATASET_CRITEO_MULTIHOT": "no" if model == "dlrm" else "yes",
        "CM_DATASET_CRITEO_KIND": "tiny",
        "CM_DATASET_SIZE": "32",
        "CM_DATASET_CRITEO_SEED": "7",
    }
    done = run_script("get-dataset-criteo", tmp_path, env)
    assert done.returncode == 0, done.stderr
    i = hook_input(env_of("tiny", CM_ML_MODEL_FRAMEWORK=framework, CM_DATASET_PATH=str(data)))
    recipe = load_recipe(ALIASES[model])
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIASES[model], inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i)["return"] == 0
    info = json.loads((inside / "model.json").read_text())
    assert 72 < info["reference"]["AUC"] < 95 and info["is_synthetic"] is True
    found = exported(ALIASES[model], i["env"])
    assert found["CM_ML_MODEL_IS_SYNTHETIC"] == "yes" and found["CM_ML_MODEL_FRAMEWORK"] == framework
    assert Path(found["CM_ML_MODEL_FILE_WITH_PATH"]).is_file()


def test_free_room_is_that_of_the_disk_and_of_meminfo(tmp_path):
    room = importlib.import_module("crowdperf.data.capacity")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8 kB\nMemAvailable:    4 kB\n")
    free = room.free_room(tmp_path, meminfo)
    assert free.memory_bytes == 4096 and free.disk_bytes > 0
    assert room.free_room(tmp_path, tmp_path / "none").memory_bytes is None
    assert room.shortage("it", free, free) is None
    assert (
        room.shortage("it", room.Room(disk_bytes=0, memory_bytes=10**12), room.free_room(tmp_path, tmp_path / "none"))
        is None
    )
