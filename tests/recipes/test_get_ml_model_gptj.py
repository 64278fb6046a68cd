"""get-ml-model-gptj: takes a checkpoint in Hugging Face's form, trains a tokenizer."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness_libraries import need
from recipe_programs import program

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
RECIPE = SCRIPTS / "get-ml-model-gptj"
Make = Callable[..., tuple[int, str]]
CONFIG = {
    "model_type": "gptj", "n_embd": 16, "n_layer": 2, "n_head": 2, "rotary_dim": 4, "vocab_size": 300,
    "layer_norm_epsilon": 1e-5, "eos_token_id": 7, "n_positions": 2048,
}  # fmt: skip


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """convert_checkpoint.py's command line with the libraries that run.sh has: exit code and stderr."""
    convert = program(RECIPE.name, "convert_checkpoint")

    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["convert_checkpoint.py", *map(str, words)])
        code = convert.main()
        return code, capsys.readouterr().err

    return call


def test_a_given_checkpoint_is_taken(tmp_path: Path) -> None:
    env = {
        "CM_PUBLISHED_MODEL_SOURCE": "published",
        "CM_ML_MODEL_FRAMEWORK": "onnx",
        "CM_MLPERF_DATA_GIVEN_PATH": str(tmp_path),
    }
    preprocess = program(RECIPE.name, "customize").preprocess
    answer = preprocess({"env": env})
    assert answer["return"] == 1
    assert f"{tmp_path} is not a checkpoint of GPT-J: there is no config.json" in answer["error"]
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "config.json").write_text("{}", encoding="utf-8")
    assert preprocess({"env": env})["return"] == 0
    assert env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == str(tmp_path)
    assert env["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkpoint as transformers writes it: two shards, config.json, the tokenizer's two files."""
    torch, safetensors, _ = need("torch", "safetensors.torch", "tokenizers")
    networks = importlib.import_module("crowdperf.benchmarks.gptj.network")
    folder = tmp_path / "download" / "checkpoint-final"
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    state = networks.build("model", CONFIG).state_dict()
    names = sorted(state)
    half = len(names) // 2
    safetensors.save_file({name: state[name] for name in names[:half]}, folder / "model-00001-of-00002.safetensors")
    safetensors.save_file({name: state[name] for name in names[half:]}, folder / "model-00002-of-00002.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.json").write_text(json.dumps({chr(97 + number): number for number in range(26)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return folder


def test_a_checkpoint_of_hugging_face_becomes_a_model(checkpoint: Path, tmp_path: Path, make: Make) -> None:
    output = tmp_path / "model"
    output.mkdir()
    words = (
        "--framework",
        "pytorch",
        "--output_dir",
        output,
        "--checkpoint",
        checkpoint.parent,
        "--facts",
        json.dumps({"source": "here"}),
    )
    assert make(*words) == (0, "")
    info = json.loads((output / "model.json").read_text())
    assert info["config"]["vocab_size"] == 300
    assert (info["is_synthetic"], info["source"]) == (False, "here")
    assert {path.name for path in output.iterdir()} >= {"vocab.json", "merges.txt", "model.json"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"model_type": "llama"}, "model of type 'llama'"), ({"n_layer": 3}, "transformer.h.2"), (None, "found: none")],
)
def test_another_checkpoint_is_refused(
    checkpoint: Path, tmp_path: Path, make: Make, changes: dict | None, said: str
) -> None:
    if changes is None:
        (checkpoint / "config.json").unlink()
    else:
        (checkpoint / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    code, text = make("--framework", "pytorch", "--output_dir", tmp_path, "--checkpoint", checkpoint.parent)
    assert code == 1
    assert said in text
    assert not (tmp_path / "model.json").exists()


def test_a_checkpoint_without_tokenizer_is_refused(checkpoint: Path, tmp_path: Path, make: Make) -> None:
    (checkpoint / "merges.txt").unlink()
    code, text = make("--framework", "pytorch", "--output_dir", tmp_path, "--checkpoint", checkpoint)
    assert code == 1
    assert "has neither tokenizer.json nor vocab.json" in text


def test_the_trained_tokenizer_has_the_real_kind_of_file(tmp_path: Path) -> None:
    (tokenizers,) = need("tokenizers")
    made = importlib.import_module("crowdperf.standins.tokenizers")
    count = made.write_gptj(tmp_path, ["Tibo rovo nemi ."] * 4, 300)
    assert 256 < count <= 300
    read = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert read.token_to_id("<|endoftext|>") == 0
    assert read.decode(read.encode("Tibo été ☃ .").ids) == "Tibo été ☃ ."
