"""BERT: what goes into the network and comes out, the network against Hugging Face's, ONNX against torch."""

import json

import numpy as np
import pytest
import torch
from harness_support import need

from crowdperf.benchmarks.bert import model as bert
from crowdperf.benchmarks.bert import network
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.datasets.squad import SquadSample
from crowdperf.models import make_model as makemodel
from crowdperf.models.make_model import ModelRequest
from crowdperf.rules.benchmarks import record_of

need("onnxruntime", "onnx", "safetensors")

SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}
IDS = [[2, 7, 11, 3, 20, 21, 22, 40, 49, 3], [2, 9, 3, 30, 31, 3, 0, 0, 0, 0]]
SEGMENTS = [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]]
# BertForQuestionAnswering of transformers 4.57.6 (eager attention, torch 2.13.0) with the weights of `set_weights`
HF_START = [[0.408074, 0.347272, 0.311167, 0.400547, 0.395466, 0.382869, 0.351023, 0.354299, 0.364627, 0.414603],
            [0.272056, 0.260933, 0.270968, 0.259107, 0.237588, 0.266823]]  # fmt: skip
HF_END = [[0.465691, 0.396079, 0.357428, 0.456289, 0.450125, 0.43537, 0.400126, 0.403672, 0.422795, 0.474162],
          [0.335853, 0.31425, 0.328912, 0.311908, 0.286677, 0.322317]]  # fmt: skip
HF_LAYER_NAMES = (
    "attention.output.LayerNorm", "attention.output.dense", "attention.self.key", "attention.self.query",
    "attention.self.value", "intermediate.dense", "output.LayerNorm", "output.dense",
)  # fmt: skip

PADDING_TOLERANCE = 2e-5
"""Largest difference of a logit when a sample is padded or in a batch: sums in another order, nothing else. Logits here
are of the size of 1."""


def set_weights(module: torch.nn.Module) -> None:
    """Sines, by the parameters' order of name."""
    with torch.no_grad():
        for place, (name, parameter) in enumerate(sorted(module.named_parameters())):
            angles = torch.arange(parameter.numel(), dtype=torch.float64) * 0.37 + place
            values = torch.sin(angles) * (0.3 if parameter.dim() > 1 else 0.1)
            values = values + 1 if name.endswith("LayerNorm.weight") else values
            parameter.copy_(values.reshape(parameter.shape).float())


def make_samples(lengths: list[int], vocabulary: int = 1024) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    raw = [SquadSample(rng.integers(104, vocabulary, length).tolist(), length // 3) for length in lengths]
    return list(bert.open_model(ModelFacts()).preprocess(raw))


def logits_of(infer, samples, batches) -> np.ndarray:
    """The responses of samples inferred in the given batches of indices."""
    model = bert.open_model(ModelFacts())
    rows = np.zeros((len(samples), 384, 2), dtype=np.float32)
    for batch in batches:
        rows[batch] = model.predict({"model": infer}, model.collate([samples[index] for index in batch]))
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The tiny model as ONNX and as a torch module, random weights."""
    import onnxruntime

    folder = tmp_path_factory.mktemp("bert")
    order = ModelRequest(architecture="bert", config="tiny", framework="onnx", output_dir=folder)
    makemodel.make_model(order)
    session = onnxruntime.InferenceSession(str(folder / "bert.onnx"), providers=["CPUExecutionProvider"])
    module = makemodel.build_modules(order)["model"]

    def by_onnx(inputs):
        return dict(zip(bert.OUTPUTS, session.run(list(bert.OUTPUTS), dict(inputs)), strict=True))

    def by_torch(inputs):
        with torch.inference_mode():
            outputs = module(*(torch.from_numpy(inputs[name]) for name in bert.INPUTS))
        return {name: output.numpy() for name, output in zip(bert.OUTPUTS, outputs, strict=True)}

    return folder, by_onnx, by_torch


def test_samples_have_no_padding_and_mark_the_paragraph():
    (sample,) = bert.open_model(ModelFacts()).preprocess([SquadSample([101, 7, 102, 8, 9, 102], 3)])
    assert {name: (array.dtype.name, array.tolist()) for name, array in sample.items()} == {
        "input_ids": ("int64", [101, 7, 102, 8, 9, 102]),
        "input_mask": ("int64", [1, 1, 1, 1, 1, 1]),
        "segment_ids": ("int64", [0, 0, 0, 1, 1, 1]),
    }


def test_a_batch_is_padded_to_its_longest_sample():
    model = bert.open_model(ModelFacts())
    samples = make_samples([5, 9, 7])
    batch = model.collate(samples)
    assert {name: array.shape for name, array in batch.items()} == dict.fromkeys(bert.INPUTS, (3, 9))
    assert batch["input_mask"].sum(axis=1).tolist() == [model.length(sample) for sample in samples] == [5, 9, 7]
    assert not batch["input_ids"][0, 5:].any()
    assert model.collate(samples[:1])["input_ids"].shape == (1, 5)


def test_responses_hold_both_logits_and_minus_10000_behind_the_end():
    model = bert.open_model(ModelFacts())
    inputs = model.collate(make_samples([3, 5]))
    outputs = {name: np.full((2, 5), number, dtype=np.float32) for number, name in enumerate(bert.OUTPUTS, start=1)}
    rows = model.predict({"model": lambda _: outputs}, inputs)
    assert rows.dtype == np.float32
    assert rows.shape == (2, *model.response.shape) == (2, 384, 2)
    assert model.response.size_bytes == 3072
    assert rows[0, :3].tolist() == [[1.0, 2.0]] * 3
    assert (rows[0, 3:] == -10000).all()
    assert (rows[1, 5:] == -10000).all()


def test_a_published_file_of_fixed_length_and_other_names_is_served():
    config = {"sequence_length": 384, "tensor_names": {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}}
    model = bert.open_model(ModelFacts(config=config))
    (spec,) = model.networks
    assert [tensor.name for tensor in spec.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    assert {tensor.shape for tensor in (*spec.inputs, *spec.outputs)} == {(384,)}
    batch = model.collate(make_samples([7]))
    assert {name: array.shape for name, array in batch.items()} == {
        "input_ids": (1, 384), "attention_mask": (1, 384), "token_type_ids": (1, 384),
    }  # fmt: skip
    outputs = {name: np.ones((1, 384), dtype=np.float32) for name in bert.OUTPUTS}
    rows = model.predict({"model": lambda _: outputs}, batch)
    assert (rows[0, :7] == 1).all()
    assert (rows[0, 7:] == -10000).all()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tensor_names": {"mask": "x"}}, "contains mask; allowed: input_ids"),
        ({"tensor_names": ["x"]}, "tensor_names"),
        ({"sequence_length": 128}, "sequence_length of the model is 128; allowed: 384"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(config, message):
    with pytest.raises(HarnessError, match=message):
        bert.open_model(ModelFacts(config=config))


def test_data_with_a_larger_vocabulary_than_the_model_is_refused():
    model = bert.open_model(ModelFacts(config={"vocab_size": 1024}))
    with pytest.raises(HarnessError, match="has a token 1024, but the model knows 1024"):
        model.preprocess([SquadSample([101, 1024, 102], 2)])


@pytest.mark.parametrize("name", ["bert-99", "bert-99.9"])
def test_the_rules_are_the_official_ones(name):
    rules = record_of(name)
    assert (rules.loadgen_name, rules.dataset, rules.is_official) == ("bert", "squad", True)
    assert (rules.performance_sample_count, rules.offline_min_sample_count) == (10_833, 10_833)
    assert rules.server_target_latency_ms == 130.0


def test_parameters_are_named_as_in_the_published_checkpoint():
    names = {name.rpartition(".")[0] for name in network.build("model", SMALL).state_dict()}
    layers = {f"bert.encoder.layer.{number}.{part}" for number in (0, 1) for part in HF_LAYER_NAMES}
    tables = {f"bert.embeddings.{kind}_embeddings" for kind in ("word", "position", "token_type")}
    assert names == layers | tables | {"bert.embeddings.LayerNorm", "qa_outputs"}


def test_the_full_size_is_bert_large():
    with torch.device("meta"):
        module = network.build("model", network.CONFIGS["full"])
    assert sum(parameter.numel() for parameter in module.parameters()) == 334_094_338


def test_logits_are_those_of_hugging_face():
    module = network.build("model", SMALL)
    set_weights(module)
    ids = torch.tensor(IDS)
    with torch.inference_mode():
        outputs = module(ids, (ids != 0).long(), torch.tensor(SEGMENTS))
    for output, expected in zip(outputs, (HF_START, HF_END), strict=True):
        for row, wanted in zip(output.tolist(), expected, strict=True):
            assert row[: len(wanted)] == pytest.approx(wanted, abs=2e-6)


def test_a_checkpoint_with_a_pooler_is_taken_over(tmp_path):
    module = network.build("model", SMALL)
    set_weights(module)
    state = module.state_dict()
    state["bert.pooler.dense.weight"] = torch.zeros(16, 16)
    state["bert.embeddings.position_ids"] = torch.arange(32)[None]
    torch.save(state, tmp_path / "model.pytorch")
    order = ModelRequest(architecture="bert", config=SMALL, framework="pytorch", output_dir=tmp_path,
                  weights=tmp_path / "model.pytorch")  # fmt: skip
    info = json.loads(makemodel.make_model(order).read_text())
    assert info["is_synthetic"] is False
    facts = read_model_facts(None, tmp_path / "model.json")
    loaded = makemodel.read_checkpoint(facts.files["model"].path)
    assert torch.equal(loaded["qa_outputs.weight"], module.qa_outputs.weight)


def test_onnx_and_torch_agree_for_any_batch_and_length(made):
    _, by_onnx, by_torch = made
    samples = make_samples([1, 2, 17, 60, 384])
    batches = [[0], [1, 2], [3, 4]]
    rows = logits_of(by_onnx, samples, batches)
    assert np.abs(rows - logits_of(by_torch, samples, batches)).max() < 1e-5
    assert np.abs(rows[4]).max() > 0.1


@pytest.mark.parametrize("by", [1, 2], ids=["onnx", "torch"])
def test_neither_padding_nor_batch_size_changes_the_logits(made, by):
    infer = made[by]
    samples = make_samples([40, 41, 42, 300, 7, 384])
    alone = logits_of(infer, samples, [[index] for index in range(6)])
    for batches in ([[0, 1, 2, 3, 4, 5]], [[4, 5], [0, 3], [2, 1]]):
        assert np.abs(logits_of(infer, samples, batches) - alone).max() < PADDING_TOLERANCE


def test_the_onnx_file_is_standard_with_free_sizes(made):
    import onnx

    model = onnx.load(str(made[0] / "bert.onnx"))
    assert {opset.domain for opset in model.opset_import} == {""}
    for value in (*model.graph.input, *model.graph.output):
        assert [dim.dim_param for dim in value.type.tensor_type.shape.dim] == ["batch", "tokens"]
    assert not [node for node in model.graph.node if node.op_type == "Concat"], "shapes are computed at each call"
