"""tiny_llama: a folder of Hugging Face with random weights and a tokenizer that knows any text."""

import json

import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.kit.whole_file import file_sha256
from crowdperf.standins import tiny_llama

SIZES = {"vocab": 300, "hidden": 16, "layers": 1, "heads": 4, "kv_heads": 2}


@pytest.fixture(scope="module")
def model_info(tmp_path_factory):
    return tiny_llama.make(tmp_path_factory.mktemp("tiny") / "model", **SIZES, seed=1)


def test_model_json_names_every_file_with_its_digest(model_info):
    facts = read_model_facts(None, model_info)
    assert facts.framework == "huggingface" and facts.is_synthetic
    assert {file.path.name for file in facts.files.values()} == {
        path.name for path in model_info.parent.iterdir() if path.name != "model.json"
    }
    assert all(file.sha256 == file_sha256(file.path) for file in facts.files.values())


def test_the_tensors_have_the_shapes_that_config_json_says(model_info):
    config = json.loads((model_info.parent / "config.json").read_text())
    weights = load_file(model_info.parent / "model.safetensors")
    assert weights["model.embed_tokens.weight"].shape == weights["lm_head.weight"].shape == (300, 16)
    assert weights["model.layers.0.self_attn.q_proj.weight"].shape == (16, 16)
    assert weights["model.layers.0.self_attn.v_proj.weight"].shape == (8, 16)
    assert weights["model.layers.0.mlp.down_proj.weight"].shape == (16, config["intermediate_size"])
    assert sum(name.startswith("model.layers.") for name in weights) == 9 * config["num_hidden_layers"]


def test_the_tokenizer_gives_every_text_back_and_knows_turns(model_info):
    tokenizer = Tokenizer.from_file(str(model_info.parent / "tokenizer.json"))
    text = "for x in range(3): print('žluť 語 🎈')\n\t  end"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    turn = tokenizer.encode(f"{tiny_llama.TURN_START}user\nhi{tiny_llama.TURN_END}").ids
    assert turn[0] == 1 and turn[-1] == 2 and len(turn) < 12
    assert tokenizer.get_vocab_size() == 300


def test_a_seed_gives_the_same_weights_and_another_one_others(model_info, tmp_path):
    def digest_of(seed: int) -> str:
        path = tiny_llama.make(tmp_path / str(seed), **SIZES, seed=seed)
        return json.loads(path.read_text())["files"]["model"]["sha256"]

    assert digest_of(1) == json.loads(model_info.read_text())["files"]["model"]["sha256"] != digest_of(2)


@pytest.mark.parametrize("change", [{"vocab": 258}, {"hidden": 18}, {"kv_heads": 3}, {"heads": 16, "kv_heads": 16}])
def test_sizes_that_do_not_go_together_are_refused(tmp_path, change):
    with pytest.raises(HarnessError, match="sizes of a tiny Llama"):
        tiny_llama.make(tmp_path, **{**SIZES, **change}, seed=1)


def test_without_weights_it_has_the_same_tokenizer_and_nothing_to_compute_with(model_info, tmp_path):
    path = tiny_llama.make(tmp_path, **SIZES, seed=None)
    assert not list(tmp_path.glob("*.safetensors"))
    assert (tmp_path / "tokenizer.json").read_bytes() == (model_info.parent / "tokenizer.json").read_bytes()
    assert set(json.loads(path.read_text())["files"]) == {
        "config", "generation_config", "tokenizer", "tokenizer_config",
    }  # fmt: skip
