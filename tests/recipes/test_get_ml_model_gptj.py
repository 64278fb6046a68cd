"""get-ml-model-gptj: refuses early what cannot fit, takes a checkpoint in Hugging Face's form, trains a tokenizer."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

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
def customize() -> ModuleType:
    return program(RECIPE.name, "customize")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """convert_checkpoint.py's command line with the libraries that run.sh has: exit code and stderr."""
    convert = program(RECIPE.name, "convert_checkpoint")

    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["convert_checkpoint.py", *map(str, words)])
        code = convert.main()
        return code, capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("framework", "source", "wanted"),
    [("pytorch", "random", 24), ("onnx", "random", 48), ("pytorch", "published", 71), ("onnx", "published", 95)],
)
def test_disk_need_is_known(
    customize: ModuleType, monkeypatch: pytest.MonkeyPatch, framework: str, source: str, wanted: int
) -> None:
    room = importlib.import_module("crowdperf.data.capacity")
    monkeypatch.setattr(room, "free_room", lambda folder: room.Room(disk_bytes=0, memory_bytes=None))
    answer, _ = run_preprocess(customize, source, CM_ML_MODEL_FRAMEWORK=framework)
    assert f"(6.05 billion weights) needs {wanted} GB of disk (0 GB are free)" in answer["error"]


def run_preprocess(customize: ModuleType, source: str, **env: str) -> tuple[dict, dict]:
    values = {"CM_PUBLISHED_MODEL_SOURCE": source, "CM_ML_MODEL_FRAMEWORK": "onnx", **env}
    return customize.preprocess({"env": values}), values


def test_the_full_size_is_refused_where_memory_is_short(customize: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    room = importlib.import_module("crowdperf.data.capacity")
    free = room.Room(disk_bytes=30 * 10**9, memory_bytes=23 * 10**9)
    monkeypatch.setattr(room, "free_room", lambda folder: free)
    for source in ("random", "published"):
        answer, _ = run_preprocess(customize, source)
        assert answer["return"] == 1
        assert "GB of disk (30 GB are free) and 61 GB of memory (23 GB available)" in answer["error"]
        assert "_tiny" in answer["error"]
    answer, env = run_preprocess(customize, "tiny")
    assert (answer["return"], env["CM_PUBLISHED_MODEL_IS_FETCHED"]) == (0, "no")


def test_a_given_checkpoint_is_taken_and_not_mixed_with_made_weights(customize: ModuleType, tmp_path: Path) -> None:
    answer, _ = run_preprocess(customize, "published", CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path))
    assert (
        answer["return"] == 1 and f"{tmp_path} is not a checkpoint of GPT-J: there is no config.json" in answer["error"]
    )
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "config.json").write_text("{}", encoding="utf-8")
    answer, env = run_preprocess(customize, "published", CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path))
    assert (answer["return"], env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"]) == (0, str(tmp_path))
    assert env["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"
    answer, _ = run_preprocess(customize, "tiny", CM_MLPERF_DATA_GIVEN_PATH=str(tmp_path))
    assert "synthetic weights exclude each other" in answer["error"]


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
