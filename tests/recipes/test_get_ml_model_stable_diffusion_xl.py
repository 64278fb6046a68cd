"""get-ml-model-stable-diffusion-xl and get-dataset-coco2014: copies are found and looked at, made captions have the
real form."""

import json
from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need
from recipe_loader import load_recipe
from recipe_programs import run_python


def call(hook_input: Any, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    env = {
        "CM_PUBLISHED_MODEL_SOURCE": "published",
        "CM_ML_MODEL_FRAMEWORK": "onnx",
        "CM_MLPERF_DATA_GIVEN_PATH": str(path),
    }
    i = hook_input(env)
    return load_recipe("get-ml-model-stable-diffusion-xl").preprocess(i), i["env"]


def pipeline(folder: Path) -> Path:
    for part in ("text_encoder", "text_encoder_2", "unet", "vae", "tokenizer", "tokenizer_2"):
        (folder / part).mkdir(parents=True)
        if part.startswith("tokenizer"):
            (folder / part / "vocab.json").write_text("{}")
            (folder / part / "merges.txt").write_text("")
        else:
            (folder / part / "model.safetensors").write_bytes(b"x")
    return folder


def test_the_pipelines_folder_is_found_and_its_tokenizers_compared(hook_input, inside, tmp_path, monkeypatch):
    from crowdperf.data import capacity

    monkeypatch.setattr(capacity, "shortage_here", lambda what, needed, i: None)
    folder = pipeline(tmp_path / "model" / "checkpoint_pipe")
    answer, env = call(hook_input, tmp_path)
    assert answer == {"return": 0} and env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == str(folder)
    assert json.loads(env["CM_PUBLISHED_MODEL_FACTS"])["reference"]["CLIP_SCORE"] == 31.74981837
    (folder / "tokenizer_2" / "merges.txt").write_text("a b\n")
    answer, _ = call(hook_input, tmp_path)
    assert answer["return"] == 1 and "tokenizer_2/merges.txt differ" in answer["error"]
    (folder / "tokenizer_2" / "merges.txt").unlink()
    answer, _ = call(hook_input, tmp_path)
    assert answer["return"] == 1 and "there is no" in answer["error"]
    (folder / "vae" / "model.safetensors").unlink()
    answer, _ = call(hook_input, tmp_path)
    assert answer["return"] == 1 and "no folder with weights in text_encoder, text_encoder_2, unet" in answer["error"]


@pytest.mark.parametrize(
    ("count", "code"), [("1", 2), pytest.param("3", 0, marks=pytest.mark.full)]  # torch, and two networks
)  # fmt: skip
def test_made_captions_are_what_the_harness_reads(count, code, tmp_path):
    need("numpy", "torch", "safetensors")
    done = run_python(
        "-m", "crowdperf.standins.datasets.coco2014", "--count", count, "--kind", "tiny", "--output_dir", tmp_path
    )
    assert done.returncode == code, done.stderr
    if code == 0:
        from crowdperf.harness.datasets.coco2014 import CLIP_FILES, open_dataset

        dataset = open_dataset(tmp_path)
        assert dataset.count == 3 and dataset.facts.is_synthetic and dataset.latent.shape == (4, 16, 16)
        assert len(dataset.files) == 5 and dataset.scoring_file(CLIP_FILES).is_file()
