"""The description of a user's language model: the same wherever the model is, with the digests of its files."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import model_files
import pytest
from recipe_loader import load_recipe

from crowdperf.kit.whole_file import file_sha256
from crowdperf.rules.backends import BACKENDS

describing: ModuleType = load_recipe("get-ml-model-own-llm")


def described(hook_input: Any, model: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    i = hook_input({"CM_OWN_LANGUAGE_MODEL_FILE": str(model)})
    answer = describing.postprocess(i)
    assert answer["return"] == 0
    return answer, i["env"]


def test_a_folder_is_described_without_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook_input: Any
) -> None:
    texts = []
    for name in ("here", "there"):
        (tmp_path / name / "entry").mkdir(parents=True)
        folder = model_files.huggingface(tmp_path / name / "mine")
        monkeypatch.chdir(tmp_path / name / "entry")
        answer, env = described(hook_input, folder)
        texts.append(Path("model.json").read_text(encoding="utf-8"))
        weights = folder / "model-00001-of-00001.safetensors"
        assert answer["locked"]["model_files"][weights.name] == file_sha256(weights)
        assert env["CM_GET_DEPENDENT_CACHED_PATH"] == str(weights)
    assert texts[0] == texts[1], "a lockfile compares it on every machine"
    assert json.loads(texts[0])["source"] == "mine"


def test_a_gguf_file_is_locked_by_its_digest(inside: Path, tmp_path: Path, hook_input: Any) -> None:
    path = model_files.gguf(tmp_path / "m.gguf")
    answer, env = described(hook_input, path)
    assert answer["locked"] == {"model_files": {"m.gguf": file_sha256(path)}}
    assert env["CM_GET_DEPENDENT_CACHED_PATH"] == str(path)
    assert env["CM_ML_MODEL_STARTING_WEIGHTS_FILENAME"] == "m.gguf"


@pytest.mark.parametrize("name", [name for name, one in BACKENDS.items() if one.framework == "huggingface"])
def test_backends_of_folders_install_what_reads_their_tokenizer(name: str) -> None:
    assert "tokenizers" in {one.name for one in BACKENDS[name].packages}
