"""What is read of language models without any library, beside what the libraries read."""

from pathlib import Path

import model_files
import pytest

from crowdperf.data.errors import DataError
from crowdperf.data.gguf_file import precision_of, read_gguf
from crowdperf.data.given_prompts import generated_lengths, generated_rows
from crowdperf.data.language_models import chosen_precision, files_in, longest_text, misfits, read_language_model


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
