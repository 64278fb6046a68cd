"""torch_llm: token by token what an independent computation gives, whatever is worked on beside it."""

import contextlib
import json
import math

import harness_support
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from text_engines import Told, answers_of, engine_request, prompts_of, tiny_model

from crowdperf.harness.backends.torch_llm import engine as torch_llm
from crowdperf.harness.backends.torch_llm.llama import Llama, frequencies, open_llama, read_config
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import Finish, Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling

harness_support.need("tokenizers")

SCALED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 24,
}


@pytest.fixture(scope="module")
def model_info(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("llama"))


@contextlib.contextmanager
def opened(info, sampling=None, **changes):
    with contextlib.closing(torch_llm.open_engine(engine_request(info, sampling, **changes))) as engine:
        yield engine


class Numpy:
    """The same model in float64, the whole text anew for every token: no cache, no batch."""

    def __init__(self, info):
        self.config = json.loads((info.parent / "config.json").read_text())
        self.weights = {
            name: one.astype(np.float64) for name, one in load_file(info.parent / "model.safetensors").items()
        }

    def rotations(self, count):
        size, scaling = self.config["head_dim"], self.config["rope_scaling"]
        rates = []
        for pair in range(size // 2):
            rate = self.config["rope_theta"] ** (-2 * pair / size)
            if scaling:
                turns = scaling["original_max_position_embeddings"] * rate / (2 * math.pi)
                part = (turns - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"])
                part = min(1.0, max(0.0, part))
                rate = part * rate + (1 - part) * rate / scaling["factor"]
            rates.append(rate)
        return np.exp(1j * np.outer(np.arange(count), rates))  # [tokens, size / 2]

    def normed(self, values, name):
        return values / np.sqrt((values**2).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * self.weights[name]

    def heads(self, values, name, turns=None):
        size = self.config["head_dim"]
        parts = (values @ self.weights[f"{name}.weight"].T).reshape(len(values), -1, size)
        if turns is None:
            return parts
        turned = (parts[..., : size // 2] + 1j * parts[..., size // 2 :]) * turns[:, None]
        return np.concatenate((turned.real, turned.imag), -1)

    def next_logits(self, tokens):
        values = self.weights["model.embed_tokens.weight"][tokens]
        turns = self.rotations(len(tokens))
        repeat = self.config["num_attention_heads"] // self.config["num_key_value_heads"]
        for number in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{number}."
            normed = self.normed(values, f"{layer}input_layernorm.weight")
            query = self.heads(normed, f"{layer}self_attn.q_proj", turns)
            key = self.heads(normed, f"{layer}self_attn.k_proj", turns).repeat(repeat, 1)
            value = self.heads(normed, f"{layer}self_attn.v_proj").repeat(repeat, 1)
            scores = np.einsum("qhs,khs->hqk", query, key) / math.sqrt(self.config["head_dim"])
            scores = np.where(np.tri(len(tokens), dtype=bool), scores, -np.inf)
            parts = np.exp(scores - scores.max(-1, keepdims=True))
            parts /= parts.sum(-1, keepdims=True)
            said = np.einsum("hqk,khs->qhs", parts, value).reshape(len(tokens), -1)
            values = values + said @ self.weights[f"{layer}self_attn.o_proj.weight"].T
            normed = self.normed(values, f"{layer}post_attention_layernorm.weight")
            gate = normed @ self.weights[f"{layer}mlp.gate_proj.weight"].T
            up = normed @ self.weights[f"{layer}mlp.up_proj.weight"].T
            values = values + (gate / (1 + np.exp(-gate)) * up) @ self.weights[f"{layer}mlp.down_proj.weight"].T
        name = "model.embed_tokens.weight" if self.config["tie_word_embeddings"] else "lm_head.weight"
        return self.normed(values[-1:], "model.norm.weight")[0] @ self.weights[name].T

    def answer(self, prompt, sampling, ends=(2,)):
        said = []
        while len(said) < sampling.max_tokens:
            logits = self.next_logits([*prompt.tolist(), *said])
            if len(said) < sampling.min_tokens:
                logits[list(ends)] = -np.inf
            said.append(int(logits.argmax()))
            if said[-1] in ends:
                break
        return said


@pytest.mark.parametrize(
    "change", [{}, {"rope_scaling": SCALED}, {"tie_word_embeddings": True}], ids=["plain", "llama3 rope", "tied"]
)
def test_answers_are_those_of_the_independent_computation(tmp_path, change):
    info = tiny_model(tmp_path, **change)
    reference, sampling, prompts = Numpy(info), Sampling(max_tokens=8), prompts_of(9)
    with opened(info, sampling) as engine:
        assert answers_of(engine, prompts) == [reference.answer(one, sampling) for one in prompts]


def test_answers_do_not_depend_on_what_is_in_flight(model_info):
    prompts = prompts_of(11)
    with opened(model_info) as together, opened(model_info, text=TextRequest(max_in_flight=1)) as alone:
        assert answers_of(together, prompts) == answers_of(alone, prompts)


def test_first_token_and_end_are_told_once_and_in_order(model_info):
    told = Told()
    with opened(model_info) as engine:
        engine.start(told)
        engine.submit(
            [Request(number=7 + number, prompt=Prompt(tokens=one)) for number, one in enumerate(prompts_of(6))]
        )
        told.wait(6)
    for number in range(7, 13):
        assert [word for word, told_number in told.events if told_number == number] == ["first", "done"]


def test_an_answer_ends_with_a_stop_token_or_at_its_greatest_length(model_info):
    prompt = prompts_of(1)[0]
    with opened(model_info, Sampling(max_tokens=8, is_end_ignored=True)) as engine:
        (whole,) = answers_of(engine, [prompt])
    stop = next(token for token in whole[2:] if token not in whole[:2])
    end = whole.index(stop) + 1
    for sampling, expected in (
        (Sampling(max_tokens=8, stop=(stop,)), (whole[:end], Finish.STOP)),
        (Sampling(max_tokens=8, stop=(stop,), is_end_ignored=True), (whole, Finish.LENGTH)),
        (Sampling(max_tokens=1), (whole[:1], Finish.LENGTH)),
    ):
        told = Told()
        with opened(model_info, sampling) as engine:
            engine.start(told)
            engine.submit([Request(number=0, prompt=Prompt(tokens=prompt))])
            told.wait(1)
        assert (told.answers[0].tokens.tolist(), told.answers[0].finish) == expected


def test_no_end_token_comes_before_min_tokens(model_info):
    prompt = prompts_of(1)[0]
    with opened(model_info, Sampling(max_tokens=8, is_end_ignored=True)) as engine:
        (whole,) = answers_of(engine, [prompt])
    sampling = Sampling(max_tokens=8, min_tokens=4, stop=tuple(set(whole)))
    with opened(model_info, sampling) as engine:
        (answer,) = answers_of(engine, [prompt])
    assert not set(answer[:4]) & set(whole)
    assert answer == Numpy(model_info).answer(prompt, sampling, ends=(2, *set(whole)))


def test_a_prompt_that_does_not_fit_fails_alone(model_info):
    told = Told()
    too_long = np.full(41, 5, dtype=np.int32)
    bad = (too_long, np.array([], dtype=np.int32), np.array([300], dtype=np.int32), np.array([-1], dtype=np.int32))
    with opened(model_info) as engine:
        engine.start(told)
        requests = [Request(number=number, prompt=Prompt(tokens=one)) for number, one in enumerate(bad)]
        engine.submit([*requests, Request(number=9, prompt=Prompt(text="hi")), *answerable(10)])
        told.wait(6)
    assert set(told.answers) == {10}
    assert "41 tokens; allowed: 1 to 40" in told.whys[0] and "0 tokens" in told.whys[1]
    assert "not one of the model's 300" in told.whys[2] and "not one" in told.whys[3] and "as tokens" in told.whys[9]


def answerable(number):
    return [Request(number=number, prompt=Prompt(tokens=prompts_of(1)[0]))]


def test_a_step_that_raises_breaks_the_engine_and_close_returns(model_info, monkeypatch):
    told = Told()
    with opened(model_info) as engine:
        monkeypatch.setattr(torch_llm.TorchSteps, "step", lambda self: 1 / 0)
        engine.start(told)
        engine.submit(answerable(0))
        with pytest.raises(AssertionError):
            told.wait(1)
    assert isinstance(told.errors[0], ZeroDivisionError)


def test_a_request_that_takes_too_long_fails_and_the_next_is_answered(model_info, monkeypatch):
    told, steps = Told(), torch_llm.TorchSteps
    with opened(model_info, text=TextRequest(max_in_flight=1, timeout_s=0.02)) as engine:
        whole = steps.step
        monkeypatch.setattr(steps, "step", lambda self: ())
        engine.start(told)
        engine.submit(answerable(0))
        told.wait(1)
        monkeypatch.setattr(steps, "step", whole)
        engine._timeout_s = 60.0
        engine.submit(answerable(1))
        told.wait(2)
    assert "no complete answer within 0.02 s" in told.whys[0] and 1 in told.answers


def test_sampled_answers_depend_on_seed_and_number_only(model_info):
    prompts = [prompts_of(1)[0]] * 4
    sampling = Sampling(max_tokens=8, temperature=1.0, top_p=0.9, top_k=50, seed=1)
    with opened(model_info, sampling) as together:
        answers = answers_of(together, prompts)
    with opened(model_info, sampling, text=TextRequest(max_in_flight=1)) as alone:
        assert answers == answers_of(alone, prompts)
    assert len({tuple(answer) for answer in answers}) > 1


def test_draws_follow_the_probabilities_after_the_cuts():
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()[[2, 0, 3, 1]]
    generator = torch.Generator().manual_seed(1)

    def shares(**values):
        sampling = Sampling(max_tokens=1, **{"temperature": 1.0, **values})
        drawn = [torch_llm.chosen(logits, sampling, generator) for _ in range(800)]
        return np.bincount(drawn, minlength=4) / 800

    assert np.allclose(shares(), [0.15, 0.5, 0.1, 0.25], atol=0.05)
    assert np.allclose(shares(top_k=2), [0, 2 / 3, 0, 1 / 3], atol=0.05)
    assert np.allclose(shares(top_p=0.8), [1 / 6, 5 / 9, 0, 5 / 18], atol=0.05)
    assert np.allclose(shares(top_p=0.1), [0, 1, 0, 0])
    assert np.allclose(shares(temperature=0.5), np.array([0.15, 0.5, 0.1, 0.25]) ** 2 / 0.345, atol=0.05)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "qwen2"}, "'qwen2'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"hidden_act": "gelu"}, "'gelu'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "'yarn'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"num_hidden_layers": 3}, "model.layers.2."),
        ({"hidden_size": "wide"}, "wide"),
    ],
)
def test_what_is_not_llama_is_refused_by_name(tmp_path, change, word):
    info = tiny_model(tmp_path, **change)
    with pytest.raises(HarnessError, match=word):
        torch_llm.open_engine(engine_request(info))


def test_the_cache_is_as_large_as_said(model_info):
    row = 2 * 2 * 2 * 8 * 48 * 4  # keys and values, layers, heads, size, tokens, bytes
    with opened(model_info, text=TextRequest(max_in_flight=8, kv_cache_bytes=3 * row + 5)) as engine:
        record = engine.record()
        assert answers_of(engine, prompts_of(7))
    assert record["max_in_flight"] == {"value": 3, "origin": "user for the KV cache"}
    assert record["kv_cache_bytes"] == {"value": 3 * row, "origin": "user"}
    with pytest.raises(HarnessError, match="keys and values of one prompt"):
        torch_llm.open_engine(engine_request(model_info, text=TextRequest(kv_cache_bytes=row - 1)))


def test_bfloat16_answers_are_of_the_same_length_and_mostly_equal(model_info):
    prompts = prompts_of(8)
    with opened(model_info) as exact, opened(model_info, precision="bf16") as short:
        pairs = list(zip(answers_of(exact, prompts), answers_of(short, prompts), strict=True))
    assert sum(one[0] == other[0] for one, other in pairs) >= 6


def test_scaled_frequencies_keep_near_positions_and_stretch_far_ones(tmp_path):
    plain, scaled = (
        frequencies(read_config(tiny_model(tmp_path / str(number), rope_scaling=scaling).parent))
        for number, scaling in enumerate((None, SCALED))
    )
    assert scaled[-1] == pytest.approx(plain[-1] / 8) and plain[0] / 8 < scaled[0] <= plain[0]


def bare_model(info, device: str) -> Llama:
    """The model alone, as open_engine opens it."""
    return open_llama(info.parent, [info.parent / "model.safetensors"], torch.float32, torch.device(device))


def test_every_tensor_of_the_model_is_on_its_device(model_info):
    """`meta` stands for a GPU: it computes nothing, and refuses to mix its tensors with the processor's."""
    model = bare_model(model_info, "meta")
    model.make_cache(2, 16)
    first, later = model.prompt(0, [1, 2, 3]), model.following([4, 5], [3, 1])
    model.move(1, 0, 2)
    assert (first.device.type, later.device.type) == ("meta", "meta")
    assert (tuple(first.shape), tuple(later.shape)) == ((1, model.config.vocab), (2, model.config.vocab))


def test_the_tokens_of_a_step_come_to_the_host_at_once(model_info, monkeypatch):
    asked = []
    real = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: asked.append(tuple(tensor.shape)) or real(tensor))
    monkeypatch.setattr(torch.Tensor, "__int__", lambda tensor: asked.append("a row for itself"))
    model = bare_model(model_info, "cpu")
    model.make_cache(3, 16)
    steps = torch_llm.TorchSteps(model, Sampling(max_tokens=4, is_end_ignored=True), 1, 16)
    for number in range(3):
        steps.add(number, np.array([1, 2, 3]))
    steps.step()
    asked.clear()
    assert len(steps.step()) == 3
    assert asked == [(3,)]


@pytest.mark.parametrize(
    ("gpus", "words"), [((0,), "sees 0 GPUs; requested: 0"), ((0, 1), "runs on one GPU; requested: 0, 1")]
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_gpus_that_are_not_there_are_refused_by_name(model_info, gpus, words):
    with pytest.raises(HarnessError, match=words):
        torch_llm.open_engine(engine_request(model_info, device="cuda", gpus=gpus))
