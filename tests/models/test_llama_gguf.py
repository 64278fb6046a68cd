"""llama_gguf: names, the order of rows, and a model that goes to GGUF and comes back."""

import json

import gguf
import gguf_files
import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from crowdperf.data import gguf_file
from crowdperf.data.errors import DataError
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models import llama_gguf
from crowdperf.standins import tiny_llama

SIZES = {"vocab": 300, "hidden": 32, "layers": 2, "heads": 4, "kv_heads": 2}


def test_rows_of_a_head_are_pairs_in_gguf():
    weight = np.arange(8, dtype=np.float32)[:, None]  # two heads of four
    assert gguf_files.side_by_side(weight, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert np.array_equal(llama_gguf.in_halves(gguf_files.side_by_side(weight, 2), 2), weight)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "output.weight"),
        ("model.layers.11.self_attn.o_proj.weight", "blk.11.attn_output.weight"),
    ],
)
def test_tensors_have_the_names_of_llama_cpp(name, expected):
    assert gguf_files.gguf_name(name) == expected


def test_a_model_goes_to_gguf_and_comes_back(tmp_path, monkeypatch):
    source = tiny_llama.make(tmp_path / "source", **SIZES, seed=1).parent
    (tmp_path / "gguf").mkdir()
    facts = read_model_facts(None, gguf_files.write_gguf(source, tmp_path / "gguf" / "tiny.gguf"))
    path = facts.files["model"].path
    assert (facts.framework, facts.precision) == ("gguf", "fp16") and facts.files["model"].sha256 == file_sha256(path)
    monkeypatch.setattr(llama_gguf, "_SPLITS", {"gpt-2": "bytes"})
    back = llama_gguf.write_huggingface(
        path, tmp_path / "back", {"framework": "huggingface", "precision": "fp32"}
    ).parent
    before, after = (load_file(folder / "model.safetensors") for folder in (source, back))
    assert before.keys() == after.keys()
    for name, weight in before.items():
        assert np.allclose(after[name], weight, rtol=1e-3, atol=1e-4), name
    config, expected = (json.loads((folder / "config.json").read_text()) for folder in (back, source))
    assert {**config, "rms_norm_eps": 1e-5} == expected
    text = f"{tiny_llama.TURN_START}user\nfor x in range: print('žluť')"
    first, second = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in (source, back))
    assert first.encode(text).ids == second.encode(text).ids
    template = json.loads((back / "tokenizer_config.json").read_text())["chat_template"]
    assert template == tiny_llama.CHAT_TEMPLATE


def test_other_architectures_and_tokenizers_are_refused(tmp_path):
    source = tiny_llama.make(tmp_path / "source", **SIZES, seed=1).parent
    gguf_files.write_gguf(source, tmp_path / "tiny.gguf")
    with pytest.raises(HarnessError, match="cuts text as 'gpt-2'; allowed: smollm"):
        llama_gguf.write_huggingface(tmp_path / "tiny.gguf", tmp_path / "out", {})
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "mamba")
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    with pytest.raises(HarnessError, match="architecture 'mamba'; allowed: 'llama'"):
        llama_gguf.write_huggingface(tmp_path / "other.gguf", tmp_path / "out", {})
    (tmp_path / "bad.gguf").write_bytes(b"no model")
    with pytest.raises(HarnessError, match=r"cannot read .*bad.gguf"):
        llama_gguf.write_huggingface(tmp_path / "bad.gguf", tmp_path / "out", {})


def test_the_reader_without_libraries_agrees_with_the_package_gguf(tmp_path):
    source = tiny_llama.make(tmp_path / "source", **SIZES, seed=1).parent
    path = tmp_path / "tiny.gguf"
    gguf_files.write_gguf(source, path)
    found, fields = gguf_file.read_gguf(path), gguf.GGUFReader(path).fields
    for name, value in found.values.items():
        wanted = fields[name].contents()
        assert value == (len(wanted) if name in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges") else
                         tuple(wanted) if isinstance(wanted, list) else wanted), name  # fmt: skip
    assert (found.quantization, found.vocabulary, found.special) == ("F16", 300, (0, 1, 2))
    known = {int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    assert {number: known[number] for number in gguf_file.BLOCKS} == gguf_file.BLOCKS
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="it is truncated"):
        gguf_file.read_gguf(path)
