"""get-ml-model-whisper and get-dataset-whisper: copies are found and looked at, made clips have the real form."""

import json
from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need
from recipe_loader import load_recipe, recipe_meta
from recipe_programs import run_python


def call(hook_input: Any, source: str, path: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    env = {"CM_PUBLISHED_MODEL_SOURCE": source, "CM_ML_MODEL_FRAMEWORK": "onnx", "CM_MLPERF_DATA_GIVEN_PATH": path}
    i = hook_input(env)
    return load_recipe("get-ml-model-whisper").preprocess(i), i["env"]


def test_without_a_copy_both_say_where_to_get_one(hook_input, inside):
    answer, _ = call(hook_input, "published")
    assert answer["return"] == 1
    for part in ("metadata/whisper-model.uri", "06f233fe06e710322aca913c1bc4249a0d71fce1", "tokenizer.json"):
        assert part in answer["error"]
    i = hook_input({"CM_DATASET_WHISPER_WAY": "given", "CM_MLPERF_DATA_GIVEN_PATH": ""})
    answer = load_recipe("get-dataset-whisper").preprocess(i)
    assert answer["return"] == 1 and "metadata/whisper-dataset.uri" in answer["error"]


def test_the_folder_with_weights_and_tokenizer_is_found(hook_input, inside, tmp_path):
    folder = tmp_path / "model" / "whisper-large-v3"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    answer, _ = call(hook_input, "published", str(tmp_path))
    assert answer["return"] == 1 and "no folder with tokenizer.json and weights" in answer["error"]
    (folder / "model.safetensors").write_bytes(b"x")
    assert load_recipe("get-ml-model-whisper").checkpoint_folder(tmp_path) == folder
    answer, _ = call(hook_input, "random", str(folder))
    assert answer["return"] == 1 and "exclude each other" in answer["error"]


def test_the_full_size_is_refused_where_there_is_no_room_with_the_figure(hook_input, inside, monkeypatch):
    from crowdperf.data import capacity

    monkeypatch.setattr(
        capacity, "shortage_here", lambda what, needed, i: f"{what}: {needed.memory_bytes / 1e9:.1f} GB"
    )
    answer, _ = call(hook_input, "random")
    assert answer["return"] == 1 and "15.4 GB" in answer["error"] and "_tiny" in answer["error"]
    assert call(hook_input, "tiny")[0] == {"return": 0}
    assert "get,dataset,whisper,_tiny" in json.dumps(recipe_meta("get-ml-model-whisper")["variations"]["tiny"])


@pytest.mark.parametrize(("words", "code"), [(["--longest_s", "2"], 2), (["--longest_s", "3.9"], 0)])
def test_made_clips_are_what_the_harness_reads(words, code, tmp_path):
    need("numpy")
    done = run_python("-m", "crowdperf.standins.datasets.whisper", "--count", "3", "--output_dir", tmp_path, *words)
    assert done.returncode == code, done.stderr
    if code == 0:
        from crowdperf.harness.datasets.whisper import open_dataset

        dataset = open_dataset(tmp_path)
        assert dataset.count == 3 and dataset.facts.is_synthetic
        assert all(len(sound) <= 3.9 * 16_000 for sound in dataset.load(range(3)))
        assert Path(dataset.files[0]).name == "dev-all-repack.json"
