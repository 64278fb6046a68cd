"""What is read of language models without any library, beside what the libraries read."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import model_files
import pytest

from crowdperf.data.errors import DataError
from crowdperf.data.gguf_file import precision_of, read_gguf
from crowdperf.data.given_prompts import generated_lengths, generated_rows
from crowdperf.data.language_models import chosen_precision, files_in, longest_text, misfits, read_language_model

WRONG = (
    None, 5, -1, 1e400, True, "x", "../x", "a\0b", [], [1], ["x"], [[]], [{}], [None], {}, {"a": 1}, {"id": [1]},
    [{"id": 10**30}],
)  # fmt: skip
INDEX, CHAT, WEIGHTS = "model.safetensors.index.json", "tokenizer_config.json", "model-00001-of-00001.safetensors"


def test_a_gguf_file_is_described(tmp_path: Path) -> None:
    path = model_files.gguf(tmp_path / "m.gguf", tokenizer__chat_template="{{ x }}", kind="Q6_K")
    found = read_language_model(path)
    assert found.facts() == {
        "architecture": "llama", "quantization": "Q6_K", "context": 256, "vocabulary": 40, "has_chat_template": True,
    }  # fmt: skip
    assert (found.precision, found.framework, found.ordinary_tokens) == ("int8", "gguf", list(range(2, 40)))
    assert found.config["num_key_value_heads"] == 2 and found.config["head_dim"] == 16
    assert found.config["eos_token_id"] == 1


def test_a_folder_is_described(tmp_path: Path) -> None:
    path = model_files.huggingface(tmp_path / "hf", shards=2)
    found = read_language_model(path)
    assert found.facts() == {
        "architecture": "LlamaForCausalLM", "quantization": "", "context": 256, "vocabulary": 40,
        "has_chat_template": False,
    }  # fmt: skip
    assert (found.precision, found.ordinary_tokens) == ("bf16", list(range(1, 40)))
    (tmp_path / "entry").mkdir()
    links = files_in(found, tmp_path / "entry")
    assert {link.name for link in links.values()} == {path.name for path in path.iterdir()}
    assert all(link.resolve().parent == path for link in links.values())


@pytest.mark.parametrize(
    ("kind", "precision"),
    [("F32", "fp32"), ("F16", "fp16"), ("BF16", "bf16"), ("Q8_0", "int8"), ("Q6_K", "int8"), ("Q5_1", "int8"),
     ("Q4_K", "int4"), ("IQ4_XS", "int4"), ("IQ2_XXS", "int4"), ("MXFP4", "int4"), ("TQ1_0", "int4")],
)  # fmt: skip
def test_quantized_weights_have_a_precision(kind: str, precision: str) -> None:
    assert precision_of(kind) == precision


@pytest.mark.parametrize(
    ("dtype", "backend", "precision"),
    [("BF16", "torch_llm", "bf16"), ("F16", "torch_llm", "fp32"), ("F32", "vllm", "fp32")],
)
def test_a_folder_runs_as_it_is_or_in_what_the_backend_casts_it_to(
    tmp_path: Path, dtype: str, backend: str, precision: str
) -> None:
    model = read_language_model(model_files.huggingface(tmp_path / "hf", dtype=dtype))
    assert chosen_precision(model, backend) == precision
    assert misfits(model, backend, precision) == []


def test_generated_prompts_have_the_lengths_that_were_checked(tmp_path: Path) -> None:
    tokens = read_language_model(model_files.gguf(tmp_path / "m.gguf")).ordinary_tokens
    rows = generated_rows(30.0, 9.0, 20, 3, tokens)
    assert [len(row["tokens"]) for row in rows] == generated_lengths(30.0, 9.0, 20, 3)
    assert set().union(*(row["tokens"] for row in rows)) <= set(tokens)
    assert rows != generated_rows(30.0, 9.0, 20, 4, tokens)


def test_no_text_has_more_tokens_than_are_reserved(tmp_path: Path) -> None:
    model = read_language_model(model_files.gguf(tmp_path / "m.gguf", llama__context_length=4096))
    assert longest_text([{"text": "é"}], model, "llama_cpp", 8) == 2 + 512
    assert longest_text([{"text": "a" * 9999}], model, "llama_cpp", 96) == 4000
    with pytest.raises(DataError, match=r"is 4,096 tokens, but 1 token of the longest prompt and 5,000"):
        longest_text([{"text": "a"}], model, "llama_cpp", 5000)


@pytest.mark.parametrize("place", range(5, 400, 7))
def test_a_damaged_header_is_refused_or_read_but_nothing_else(tmp_path: Path, place: int) -> None:
    path = model_files.gguf(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)
    try:
        read_gguf(path)
    except DataError as error:
        assert str(path) in str(error)


def places(value: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each place in a JSON value, the value itself first."""
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, one in list(inner)[:5]:
        yield from places(one, (*place, key))


def with_value(value: Any, place: tuple[Any, ...], other: object) -> Any:
    """The JSON value with another one at a place."""
    if not place:
        return other
    changed = value.copy()
    changed[place[0]] = with_value(value[place[0]], place[1:], other)
    return changed


def put(path: Path, value: object, rest: bytes = b"") -> None:
    """Writes a value as JSON, with the size in front and `rest` behind for a safetensors file."""
    data = json.dumps(value).encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data + rest if path.suffix == ".safetensors" else data)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", INDEX, CHAT, WEIGHTS])
def test_a_value_of_the_wrong_form_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    folder = model_files.huggingface(tmp_path / "hf")
    put(folder / INDEX, {"weight_map": {"w": WEIGHTS}})
    put(folder / CHAT, {"chat_template": "x"})
    data = (folder / name).read_bytes()
    size = 8 + struct.unpack_from("<Q", data)[0] if name == WEIGHTS else len(data)
    before = json.loads(data[8 if name == WEIGHTS else 0 : size])
    for place in places(before):
        for wrong in WRONG:
            put(folder / name, with_value(before, place, wrong), data[size:])
            try:
                read_language_model(folder).ordinary_tokens  # noqa: B018
            except DataError as error:
                assert str(folder) in str(error), (place, wrong)


def test_an_index_names_files_of_the_folder_only(tmp_path: Path) -> None:
    folder = model_files.huggingface(tmp_path / "hf")
    put(folder / INDEX, {"weight_map": {"w": "../model.safetensors"}})
    with pytest.raises(DataError, match=r"found '\.\./model\.safetensors'; allowed: names of files"):
        read_language_model(folder)


def test_a_truth_value_is_no_id_of_a_token(tmp_path: Path) -> None:
    folder = model_files.huggingface(tmp_path / "hf")
    put(folder / "tokenizer.json", {**model_files.TOKENIZER, "added_tokens": [{"id": 0}, {"id": True}]})
    assert read_language_model(folder).special == (0,)
