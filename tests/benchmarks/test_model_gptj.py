"""GPT-J: its answers are those of Hugging Face's generate, alone and in a batch, in torch and in ONNX."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from harness_support import need
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from crowdperf.benchmarks.gptj import model as gptj
from crowdperf.benchmarks.gptj import network as networks
from crowdperf.benchmarks.gptj.beam_search import BeamSearch, SearchRules
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.tensors import Infer
from crowdperf.harness.datasets import cnndm
from crowdperf.harness.text.tokenizer import open_tokenizer
from crowdperf.models.make_model import ModelRequest, write_model

need("onnx", "rouge_score", "nltk")

torch.set_num_threads(1)
# Recorded with transformers 5.23.0 (GPTJForCausalLM.generate, fp32, one prompt a call) and torch 2.13.0: weights of a
# small random network, and answers for eight strengths of its end token, from "never ends" to "ends at once".
RECORDED = json.loads(Path(__file__).with_name("gptj_generate.json").read_text())
CONFIG = RECORDED["config"]


@pytest.fixture
def as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores as transformers has made them since 4.36, which the recorded answers are of."""
    monkeypatch.setattr(gptj.GptJ, "counts_prompt", False)


STRENGTHS = sorted({case["end_bias"] for case in RECORDED["cases"]})


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    module = networks.build("model", CONFIG)
    with np.load(Path(__file__).with_name("gptj_generate.npz")) as file:
        state = {name: torch.from_numpy(file[name]) for name in file}
    module.load_state_dict(networks.convert_checkpoint("model", {**state, "transformer.h.0.attn.bias": torch.ones(1)}))
    return module


def with_end_bias(network: torch.nn.Module, end_bias: float) -> None:
    with torch.no_grad():
        network.lm_head.bias[CONFIG["eos_token_id"]] = end_bias


def torch_call(network: torch.nn.Module, model: gptj.GptJ) -> dict[str, Infer]:
    spec = model.networks[0]

    def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        assert set(inputs) == {tensor.name for tensor in spec.inputs}
        for tensor in spec.inputs:
            assert str(inputs[tensor.name].dtype) == tensor.dtype, tensor.name
            assert inputs[tensor.name].ndim == 1 + len(tensor.shape), tensor.name
        with torch.inference_mode():
            outputs = network(*(torch.as_tensor(np.ascontiguousarray(inputs[t.name])) for t in spec.inputs))
        return {tensor.name: output.numpy() for tensor, output in zip(spec.outputs, outputs, strict=True)}

    return {"model": call}


def samples_of(cases: list[dict]) -> list[dict[str, np.ndarray]]:
    return [{"input_ids": np.array(case["prompt"], dtype=np.int64)} for case in cases]


@pytest.mark.parametrize("end_bias", STRENGTHS)
@pytest.mark.usefixtures("as_recorded")
def test_answers_are_those_of_hugging_face_generate(network: torch.nn.Module, end_bias: float) -> None:
    model = gptj.open_model(ModelFacts(config=CONFIG))
    with_end_bias(network, end_bias)
    cases = [case for case in RECORDED["cases"] if case["end_bias"] == end_bias]
    answers = model.predict(torch_call(network, model), model.collate(samples_of(cases)))
    assert [answer.tolist() for answer in answers] == [case["answer"] for case in cases]
    assert all(answer.dtype == np.int64 for answer in answers)


@pytest.mark.usefixtures("as_recorded")
def test_an_answer_does_not_depend_on_its_batch(network: torch.nn.Module) -> None:
    model = gptj.open_model(ModelFacts(config=CONFIG))
    with_end_bias(network, 2.6)
    cases = [case for case in RECORDED["cases"] if case["end_bias"] == 2.6][:4]
    for case, sample in zip(cases, samples_of(cases), strict=True):
        (answer,) = model.predict(torch_call(network, model), model.collate([sample]))
        assert answer.tolist() == case["answer"]


def test_recorded_cases_hold_every_way_to_end() -> None:
    lengths = [len(case["answer"]) for case in RECORDED["cases"]]
    assert min(lengths) == 31  # 30 tokens and the end
    assert max(lengths) == 128
    assert len(set(lengths)) > 15


@pytest.mark.usefixtures("as_recorded")
def test_onnx_agrees_with_torch(network: torch.nn.Module, tmp_path: Path) -> None:
    with_end_bias(network, 3)
    order = ModelRequest(architecture="gptj", config=CONFIG, framework="onnx", output_dir=tmp_path)
    facts = read_model_facts(None, write_model({"model": network}, order))
    model = gptj.open_model(facts)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(facts.files["model"].path), options)
    names = [tensor.name for tensor in model.networks[0].outputs]
    largest = [0.0]
    in_torch = torch_call(network, model)["model"]

    def call(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = dict(zip(names, session.run(names, dict(inputs)), strict=True))
        for name, expected in in_torch(inputs).items():
            if name != "top_token":  # equal ones may come in another order
                real = ~np.isinf(expected)
                largest[0] = max(largest[0], float(np.abs(answer[name][real] - expected[real]).max()))
        return answer

    cases = [case for case in RECORDED["cases"] if case["end_bias"] == 3]
    answers = model.predict({"model": call}, model.collate(samples_of(cases)))
    assert [answer.tolist() for answer in answers] == [case["answer"] for case in cases]
    assert largest[0] < 1e-4


# --- search alone ---


def search(steps: list[list[list[float]]], rules: SearchRules, words: int = 4) -> list[list[int]]:
    """Answers of one sample where step i gives each beam the same row of logarithms by token."""
    run = BeamSearch(1, rules)
    beams = 1
    for rows in steps:
        if run.is_done:
            break
        table = np.array(rows, np.float32)
        logprob = np.broadcast_to(table, (1, beams, words)).astype(np.float32)
        run.step(logprob, np.broadcast_to(np.arange(words), logprob.shape))
        beams = rules.beams
    assert run.is_done
    return [answer.tolist() for answer in run.answers()]


RULES = SearchRules(beams=2, min_tokens=0, max_tokens=3, end_token=0)


def test_equal_scores_are_taken_in_the_order_of_beams_and_tokens() -> None:
    assert search([[-1.0, -1.0, -1.0, -1.0]] * 3, RULES) == [[0]]
    without_end = [[-9.0, -1.0, -1.0, -1.0]] * 3
    assert search(without_end, RULES) == [[1, 1, 1]]


def test_the_end_counts_only_among_the_best_beams_of_a_step() -> None:
    # the end is third best at first, so that it is no answer though its average would be the best
    assert search([[-1.2, -1.0, -1.1, -5.0], [-9.0, -3.0, -4.0, -5.0], [-9.0, -3.0, -4.0, -5.0]], RULES) == [[1, 1, 1]]


def test_a_longer_answer_wins_by_its_average() -> None:
    assert search([[-2.0, -0.1, -3.0, -9.0], [-0.1, -4.0, -4.0, -9.0], [-9.0, -9.0, -9.0, -9.0]], RULES) == [[1, 0]]


def test_no_answer_ends_before_its_least_length() -> None:
    rules = SearchRules(beams=2, min_tokens=2, max_tokens=4, end_token=0)
    (answer,) = search([[-0.1, -3.0, -4.0, -5.0]] * 4, rules)
    assert answer == [1, 1, 0]


@pytest.mark.parametrize(
    ("prompt_tokens", "tokens"),
    [
        pytest.param(None, 6, id="new tokens"),  # -3.0 / 6 > -2.0 / 3
        pytest.param(0, 6, id="without an end"),  # -3.0 / 5 > -2.0 / 2
        pytest.param(870, 3, id="as the reference"),  # -2.0 / 872 > -3.0 / 875
    ],
)
def test_the_length_that_a_score_is_divided_by_chooses_the_answer(prompt_tokens: int | None, tokens: int) -> None:
    run = BeamSearch(1, SearchRules(beams=2, min_tokens=1, max_tokens=8, end_token=0, prompt_tokens=prompt_tokens))

    def give(*beams: tuple[tuple[int, float], ...]) -> None:
        logprob = np.full((1, len(beams), 5), -50.0, np.float32)
        token = np.tile(np.arange(90, 95, dtype=np.int64), (1, len(beams), 1))
        for row, told in enumerate(beams):
            for place, (number, value) in enumerate(told):
                token[0, row, place], logprob[0, row, place] = number, value
        run.step(logprob, token)

    # A beam of token 10 ends after 3 tokens with -2.0; one of token 20 after 6 with -3.0.
    give(((10, -0.6), (20, -0.7)))
    give(((11, -0.6),), ((21, -0.5),))
    third = {10: ((0, -0.8), (12, -9.0)), 20: ((22, -0.45),)}
    give(*(third[first] for first in run._tokens[0, :, 0].tolist()))
    while not run.is_done:
        said = (0, -0.45) if run._length == 5 else (23, -0.45)
        give(*(((said if first == 20 else (13, -9.0)),) for first in run._tokens[0, :, 0].tolist()))
    (answer,) = run.answers()
    assert len(answer) == tokens


def test_the_longest_prompt_of_the_batch_counts(network: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SearchRules] = []

    def search_of(count: int, rules: SearchRules) -> BeamSearch:
        asked.append(rules)
        return BeamSearch(count, rules)

    monkeypatch.setattr(gptj, "BeamSearch", search_of)
    model = gptj.open_model(ModelFacts(config=CONFIG))
    with_end_bias(network, 3)
    samples = samples_of(RECORDED["cases"][:3])
    model.predict(torch_call(network, model), model.collate(samples))
    assert [rules.prompt_tokens for rules in asked] == [max(len(sample["input_ids"]) for sample in samples)]


# --- model.json, memory, tokens ---


def test_memory_is_known_before_the_run() -> None:
    full = ModelFacts(config=networks.CONFIGS["full"])
    assert gptj.parameter_count(full.config) == 6_050_882_784  # "6B", EleutherAI/gpt-j-6B
    assert 24.2e9 < gptj.memory_bytes(full) < 29e9
    half = ModelFacts(config=networks.CONFIGS["full"], precision="fp16")
    assert gptj.memory_bytes(half) * 2 == gptj.memory_bytes(full)
    tiny = networks.build("model", networks.CONFIGS["tiny"])
    assert gptj.parameter_count(networks.CONFIGS["tiny"]) == sum(p.numel() for p in tiny.parameters())


def test_full_size_has_the_names_of_the_published_checkpoint() -> None:
    with torch.device("meta"):
        names = networks.build("model", networks.CONFIGS["full"]).state_dict()
    layer = {f"attn.{part}_proj.weight" for part in ("q", "k", "v", "out")} | {
        f"{part}.{kind}" for part in ("ln_1", "mlp.fc_in", "mlp.fc_out") for kind in ("weight", "bias")
    }
    expected = {f"transformer.h.{number}.{name}" for number in range(28) for name in layer}
    expected |= {"transformer.wte.weight", "lm_head.weight", "lm_head.bias"}
    expected |= {f"transformer.ln_f.{kind}" for kind in ("weight", "bias")}
    assert set(names) == expected
    assert tuple(names["lm_head.weight"].shape) == (50400, 4096)


def test_a_config_without_sizes_is_refused() -> None:
    with pytest.raises(HarnessError, match="is missing n_embd, n_layer"):
        gptj.open_model(ModelFacts())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["Below is an instruction that describes a task"] * 9, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_prompts_have_the_official_form_and_are_cut_at_their_end(folder: Path) -> None:
    model = gptj.open_model(ModelFacts(folder=folder, config={**CONFIG, "eos_token_id": 0}))
    articles = [cnndm.Article("Do it:", "A b " * size, "") for size in (1, 4000)]
    short, long = model.preprocess(articles)
    text = model._tokenizer.decode(short["input_ids"].tolist())
    assert text.startswith("Below is an instruction that describes a task, paired with")
    assert text.endswith("completes the request.\n\n### Instruction:\nDo it:\n\n### Input:\nA b \n\n### Response:")
    assert (len(long["input_ids"]), model.length(long)) == (1919, 1919)
    batch = model.collate([short, long])
    padding = 1919 - len(short["input_ids"])
    assert batch["input_ids"][0, :padding].tolist() == [0] * padding
    assert batch["token_count"].tolist() == [len(short["input_ids"]), 1919]


def test_vocab_and_merges_stand_in_for_tokenizer_json(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = open_tokenizer(folder)
    other = tmp_path_factory.mktemp("parts")
    content = json.loads((folder / "tokenizer.json").read_text())["model"]
    (other / "vocab.json").write_text(json.dumps(content["vocab"]))
    merges = ["#version: 0.2", *(" ".join(merge) for merge in content["merges"])]
    (other / "merges.txt").write_text("\n".join(merges) + "\n")
    texts = ["Below is an instruction", " é ☃\n\n x<|endoftext|>y", ""]
    parts = open_tokenizer(other)
    assert parts.encode_plain(texts) == whole.encode_plain(texts)
    assert parts.decode(whole.encode_plain(texts)[1]) == whole.decode(whole.encode_plain(texts)[1])


def test_decoding_leaves_out_special_tokens_and_spaces_before_punctuation(folder: Path) -> None:
    tokenizer = open_tokenizer(folder, is_cleaned=True)
    (tokens,) = tokenizer.encode_plain(["He said , \" it 's so . \" Did n't he ?"])
    assert tokenizer.decode([*tokens, 0, 0]) == "He said, \" it's so. \" Didn't he?"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "contains neither tokenizer.json"), ("{}", "cannot read the tokenizer")]
)
def test_a_folder_without_tokenizer_is_named(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(HarnessError, match=said):
        open_tokenizer(tmp_path)


def test_score_reads_int64_tokens(folder: Path) -> None:
    model = gptj.open_model(ModelFacts(folder=folder, config={**CONFIG, "eos_token_id": 0}))
    entries = [{"instruction": "x", "input": "y", "output": "An instruction that describes ."}]
    (folder / "cnn_eval.json").write_text(json.dumps(entries))
    dataset = cnndm.open_dataset(folder)
    tokens = [*model.encode(["an instruction that\ndescribes"])[0], 0]
    score = model.score([(0, np.array(tokens, np.int64).tobytes())], dataset)
    assert score.values["ROUGE1"] == 100.0
    assert score.values["GEN_LEN"] == len("an instruction that\ndescribes")


# --- data set ---


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot read"),
        ("[]", "contains no list"),
        ("{}", "contains no list"),
        ('[{"instruction": "a", "input": "b"}]', "entry 0 cannot be used: KeyError"),
        ('[{"instruction": "a", "input": "b", "output": 3}]', "must be texts"),
        ("[7]", "entry 0"),
    ],
)
def test_a_list_that_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "cnn_eval.json").write_text(text)
    with pytest.raises(HarnessError, match=said):
        cnndm.open_dataset(tmp_path)


def test_articles_come_in_the_order_asked_for(tmp_path: Path) -> None:
    entries = [{"instruction": "i", "input": f"a{number}", "output": f"s{number}"} for number in range(3)]
    (tmp_path / "cnn_eval.json").write_text(json.dumps(entries, indent=4, ensure_ascii=False))
    dataset = cnndm.open_dataset(tmp_path)
    assert (dataset.count, dataset.summaries) == (3, ("s0", "s1", "s2"))
    assert [article.text for article in dataset.load([2, 0])] == ["a2", "a0"]
