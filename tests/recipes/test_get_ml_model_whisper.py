"""get-ml-model-whisper and get-dataset-whisper: copies are found and looked at, made clips have the real form."""

from pathlib import Path

import pytest
from harness_libraries import need
from recipe_loader import load_recipe
from recipe_programs import run_python


def test_the_folder_with_weights_and_tokenizer_is_found(hook_input, inside, tmp_path):
    folder = tmp_path / "model" / "whisper-large-v3"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text("{}")
    env = {"CM_PUBLISHED_MODEL_SOURCE": "published", "CM_MLPERF_DATA_GIVEN_PATH": str(tmp_path)}
    answer = load_recipe("get-ml-model-whisper").preprocess(hook_input(env))
    assert answer["return"] == 1 and "no folder with tokenizer.json and weights" in answer["error"]
    (folder / "model.safetensors").write_bytes(b"x")
    assert load_recipe("get-ml-model-whisper").checkpoint_folder(tmp_path) == folder


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
