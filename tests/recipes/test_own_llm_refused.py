"""Models of users that cannot be measured: each call is refused with what to give, and nothing is installed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import model_files
import pytest
from helpers import CHECKOUT
from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import run_action
from recipe_engine.disk.files import working_folder
from recipe_engine.disk.repos import RepoInfo
from recipe_engine.rules.errors import RecipeError

Call = dict[str, Any]
SHARD = "model-00002-of-00003.safetensors"


def gguf(**changes: Any) -> Callable[[Path], Call]:
    """A call with a GGUF file. Keys of the call begin with a capital letter."""
    call = {name.lower(): changes.pop(name) for name in list(changes) if name[0].isupper()}
    return lambda folder: {"model_path": model_files.gguf(folder / "m.gguf", **changes), **call}


def folder_of(**changes: Any) -> Callable[[Path], Call]:
    """A call with a Hugging Face folder."""
    call = {name.lower(): changes.pop(name) for name in list(changes) if name[0].isupper()}
    return lambda folder: {"model_path": model_files.huggingface(folder / "hf", **changes), **call}


def with_bytes(data: bytes, name: str = "m.gguf") -> Callable[[Path], Call]:
    def call(folder: Path) -> Call:
        (folder / name).write_bytes(data)
        return {"model_path": folder / name}

    return call


def cut(size: int) -> Callable[[Path], Call]:
    def call(folder: Path) -> Call:
        path = model_files.gguf(folder / "m.gguf")
        path.write_bytes(path.read_bytes()[:size])
        return {"model_path": path}

    return call


def cut_weights(folder: Path) -> Call:
    path = model_files.huggingface(folder / "hf", shards=2)
    weights = path / "model-00001-of-00002.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    return {"model_path": path}


def old_tokenizer(folder: Path) -> Call:
    path = model_files.huggingface(folder / "hf", without=("tokenizer.json",))
    (path / "tokenizer.model").touch()
    return {"model_path": path}


def old_weights(folder: Path) -> Call:
    first = "model-00001-of-00001.safetensors"
    path = model_files.huggingface(folder / "hf", without=(first, "model.safetensors.index.json"))
    (path / "pytorch_model.bin").touch()
    return {"model_path": path}


def with_prompts(call: Callable[[Path], Call], *rows: Any) -> Callable[[Path], Call]:
    def made(folder: Path) -> Call:
        path = folder / "prompts.jsonl"
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
        return {**call(folder), "prompts": path}

    return made


CHAT = {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}
GGUF_BACKENDS = "is a GGUF file; allowed: llama_cpp, openvino_genai"
FOLDER_BACKENDS = "is a Hugging Face folder; allowed: torch_llm, vllm"
LENGTHS = {"Input_tokens": "64", "Output_tokens": "32"}
REFUSED: dict[str, tuple[Callable[[Path], Call], str]] = {
    "no file": (lambda folder: {"model_path": folder / "none.gguf"}, "none.gguf is not a file"),
    "no such kind of file": (with_bytes(b"PK", "m.pt"), "m.pt. Without --model, allowed: model_path=FILE.gguf"),
    "no such path": (lambda folder: {"model_path": folder / "none"}, "none (it does not exist). Without --model"),
    "empty": (with_bytes(b""), "cannot be used as a GGUF file: the file is empty"),
    "another content": (with_bytes(b"PK\3\4" * 9), "it does not begin with GGUF"),
    "pointer of Git LFS": (with_bytes(b"version https://git-lfs.github.com/spec/v1\n"), "run git lfs pull"),
    "header cut": (cut(200), "it is truncated: the header is incomplete"),
    "weights cut": (cut(-1), "it is truncated: "),
    "version 1": (gguf(version=1), "it has version 1; supported: 2, 3"),
    "part of a split": (gguf(split__count=3), "one of 3 parts\nhint: merge them: llama-gguf-split --merge"),
    "adapter": (gguf(general__type="adapter"), "of type adapter, not a model"),
    "embeddings": (gguf(llama__attention__causal=False), "of llama, which writes no text"),
    "no tokenizer in GGUF": (gguf(without=("tokenizer.ggml.tokens",)), "without tokens of a tokenizer"),
    "no context": (gguf(without=("llama.context_length",)), "without llama.context_length"),
    "context too small": (gguf(), "is 256 tokens, but 512 tokens of the longest prompt and 128 of its answer"),
    "context too small for lengths": (gguf(Input_tokens="225", Output_tokens="32"), "hint: --input_tokens=224"),
    "answer longer than context": (gguf(Input_tokens="8", Output_tokens="300"), "hint: --output_tokens=128"),
    "lengths": (gguf(Input_tokens="many"), "--input_tokens: found 'many'"),
    "another precision": (gguf(**LENGTHS, Precision="int8"), "are int4 (Q4_K). Omit --precision"),
    "backend of networks": (gguf(**LENGTHS, Backend="onnxruntime"), GGUF_BACKENDS),
    "backend of folders": (gguf(**LENGTHS, Backend="torch_llm"), GGUF_BACKENDS),
    "a server": (gguf(**LENGTHS, Endpoint="http://127.0.0.1:9/v1"), "To measure a server, omit --model_path"),
    "architecture of GenAI": (
        gguf(**LENGTHS, Backend="openvino_genai", general__architecture="gemma", **{
            key.replace("llama.", "gemma.").replace(".", "__"): value
            for key, value in model_files.LLAMA.items() if key.startswith("llama.")
        }),
        "model_type is 'gemma' (supported: 'llama', 'qwen2', 'qwen3'). Use --backend=llama_cpp",
    ),
    "weights of GenAI": (gguf(**LENGTHS, kind="Q5_K", Backend="openvino_genai"), "quantization is 'Q5_K' (supported"),
    "prompts for GenAI": (
        with_prompts(gguf(Backend="openvino_genai"), {"prompt": "a"}), "gets prompts as tokens, and "
    ),
    "chats without template": (with_prompts(gguf(), CHAT), "messages need a chat template, but "),
    "prompts and lengths": (with_prompts(gguf(**LENGTHS), {"prompt": "a"}), "--input_tokens=64 cannot be"),
    "chats and prompts": (
        with_prompts(gguf(tokenizer__chat_template="{{ x }}", Output_tokens="9"), CHAT, {"prompt": "a"}),
        "found 1 line with messages and 1 with a prompt, which a run cannot mix",
    ),
    "lengths of answers": (
        with_prompts(gguf(), {"prompt": "a", "max_tokens": 10}), "has max_tokens, which only a server supports"
    ),
    "a wrong prompt": (with_prompts(gguf(), {"prompt": "a"}, "x\n"), "prompts.jsonl, line 2: "),
    "a shape": (gguf(**LENGTHS, Shape="x:1,3"), "--shape: only supported for your own ONNX file"),
    "expected values": (gguf(**LENGTHS, Expected="e.npz"), "--expected: only supported for your own ONNX file"),
    "accuracy": (gguf(**LENGTHS, Mode="accuracy"), "--mode: an accuracy run needs"),
    "a device": (gguf(**LENGTHS, Device="cuda"), "cuda and llama_cpp cannot be combined"),
    "no config": (folder_of(without=("config.json",)), "cannot be measured: config.json is missing"),
    "no tokenizer": (folder_of(without=("tokenizer.json",)), "cannot be measured: tokenizer.json is missing"),
    "tokenizer of SentencePiece": (old_tokenizer, "hint: write it: AutoTokenizer.from_pretrained"),
    "missing shard": (folder_of(shards=3, without=(SHARD,)), f"1 of 3 files of weights are missing: {SHARD}"),
    "pickled weights": (old_weights, "there is no *.safetensors (it has pytorch_model.bin)"),
    "truncated weights": (cut_weights, "it has "),
    "quantized weights": (folder_of(dtype="I8"), "its weights are of no type of floating-point numbers"),
    "no generation": (folder_of(architectures=["BertModel"]), "architectures in config.json are BertModel"),
    "no context in config": (folder_of(max_position_embeddings=None), "max_position_embeddings is None"),
    "architecture of torch_llm": (
        folder_of(model_type="qwen2", **LENGTHS), "model_type is 'qwen2' (supported: 'llama'). Use --backend=vllm"
    ),
    "precision of torch_llm": (folder_of(**LENGTHS, Precision="int8"), "backend torch_llm cannot run int8"),
    "folder for llama.cpp": (folder_of(**LENGTHS, Backend="llama_cpp"), FOLDER_BACKENDS),
    "folder for GenAI": (folder_of(**LENGTHS, Backend="openvino_genai"), FOLDER_BACKENDS),
    "chats for torch_llm": (with_prompts(folder_of(), CHAT), "messages need a chat template, but "),
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An empty CM home with this repository, in which every call fails."""
    folder = tmp_path_factory.mktemp("home")
    return Home([RepoInfo(CHECKOUT, "crowdperf", "0123456789abcdef", python="src")], folder, folder / "local")


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_before_anything_is_installed(case: str, home: Home, tmp_path: Path) -> None:
    made, said = REFUSED[case]
    call = {name: str(value) for name, value in made(tmp_path).items()}
    before = set(tmp_path.iterdir())
    with working_folder(tmp_path):
        try:
            error = str(run_action({"tags": "run,mlperf,inference", "quiet": True, **call}, home, None).get("error"))
        except RecipeError as failed:
            error = f"{failed}\nhint: {failed.hint}"
    assert said in error, error
    assert error.count("hint: ") == 1, error
    assert not list(home.store_path.glob("*/_cm.json"))
    assert set(tmp_path.iterdir()) == before
