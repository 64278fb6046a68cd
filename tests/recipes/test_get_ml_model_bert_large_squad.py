"""get-ml-model-bert-large-squad: the tiny fit, what is done for each request, and published files as they are found."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import exported, load_module, load_recipe, recipe_meta

ALIAS = "get-ml-model-bert-large-squad"
REQUEST = {**recipe_meta(ALIAS)["env"], "CM_BERT_SOURCE": "zenodo", "CM_ML_MODEL_FRAMEWORK": "onnx",
           "CM_ML_MODEL_PRECISION": "fp32"}  # fmt: skip
ZENODO = "https://zenodo.org/record/"


@pytest.fixture(scope="module")
def fit_model() -> ModuleType:
    need("numpy", "torch", "onnx", "onnxruntime")
    from crowdperf.standins.fits import bert

    return bert


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    make_set("squad", folder, kind="tiny", count=48)
    return folder


@pytest.fixture(scope="module")
def fitted(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipe's own tiny ONNX model."""
    need("onnx", "onnxruntime")
    from crowdperf.standins.fitted_models import write_kept

    folder = tmp_path_factory.mktemp("model")
    write_kept("bert", dataset, folder)
    return folder


def plan(hook_input, **env: str) -> tuple[dict, dict]:
    i = hook_input({**REQUEST, **env})
    return load_recipe(ALIAS).preprocess(i), i["env"]


@pytest.mark.parametrize(
    ("env", "work", "url", "md5"),
    [
        ({}, "describe", "3733910/files/model.onnx", "819b25b19cd8e59080c10892689750ca"),
        (
            {"CM_ML_MODEL_PRECISION": "int8"},
            "describe",
            "3750364/files/bert_large_v1_1_fake_quant.onnx",
            "45f88ffb2915362242703c85c38ec2d4",
        ),
        (
            {"CM_ML_MODEL_FRAMEWORK": "pytorch"},
            "convert",
            "3733896/files/model.pytorch",
            "00fbcbfaebfa20d87ac9885120a6e9b4",
        ),
        (
            {"CM_BERT_IS_FREE_LENGTH": "yes"},
            "convert",
            "3733896/files/model.pytorch",
            "00fbcbfaebfa20d87ac9885120a6e9b4",
        ),
    ],
)
def test_the_published_files_are_those_of_the_community(inside, hook_input, env, work, url, md5):
    answer, found = plan(hook_input, **env)
    assert answer == {"return": 0}
    assert (found["CM_BERT_WORK"], found["CM_BERT_URL"], found["CM_BERT_MD5"]) == (work, ZENODO + url, md5)
    assert found["CM_BERT_IS_DOWNLOADED"] == "yes"
    assert found["CM_BERT_PUBLISHED_FILE"] == str(inside / url.rsplit("/", 1)[1])
    assert json.loads(found["CM_BERT_FACTS"])["license"] == "Apache-2.0"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"CM_ML_MODEL_FRAMEWORK": "pytorch", "CM_ML_MODEL_PRECISION": "int8"}, "no published file for pytorch, int8"),
        ({"CM_BERT_IS_FREE_LENGTH": "yes", "CM_ML_MODEL_PRECISION": "int8"}, "int8, free length"),
        ({"CM_BERT_SOURCE": "tiny", "CM_ML_MODEL_PRECISION": "int8"}, "_tiny models are made in fp32"),
        ({"CM_BERT_SOURCE": "synthetic", "CM_MLPERF_DATA_GIVEN_PATH": "/x"}, "leave one of them out"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused(inside, hook_input, env, message):
    answer, _ = plan(hook_input, **env)
    assert answer["return"] == 1
    assert message in answer["error"]
    assert "hint:" in answer["error"]


def test_a_given_file_that_is_not_the_published_one_is_refused(inside, hook_input, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"cut off")
    answer, _ = plan(hook_input, CM_MLPERF_DATA_GIVEN_PATH=str(path))
    assert answer["return"] == 1
    for part in (str(path), "819b25b19cd8e59080c10892689750ca", ZENODO, "model.json"):
        assert part in answer["error"]


@pytest.mark.parametrize(
    ("source", "framework", "work"),
    [("tiny", "onnx", "tiny"), ("tiny", "pytorch", "fit"), ("synthetic", "onnx", "synthetic")],
)
def test_made_models_need_no_download(inside, hook_input, source, framework, work):
    answer, env = plan(hook_input, CM_BERT_SOURCE=source, CM_ML_MODEL_FRAMEWORK=framework)
    assert answer == {"return": 0}
    assert (env["CM_BERT_WORK"], env["CM_BERT_IS_DOWNLOADED"]) == (work, "no")


def test_a_given_folder_is_handed_on_with_its_model_json(fitted, inside, hook_input):
    i = hook_input({**REQUEST, "CM_MLPERF_DATA_GIVEN_PATH": str(fitted)})
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    answer = load_recipe(ALIAS).postprocess(i)
    assert answer == {"return": 0, "files": [str(fitted / "bert.onnx"), str(fitted / "model.json")]}
    known = exported(ALIAS, i["env"])
    assert known["CM_ML_MODEL_FILE_WITH_PATH"] == known["CM_ML_MODEL_BERT_LARGE_FP32_PATH"] == str(fitted / "bert.onnx")
    assert known["CM_ML_MODEL_INFO_FILE"] == str(fitted / "model.json")
    assert known["CM_ML_MODEL_INPUT_MASK_NAME"] == "input_mask"
    assert float(known["CM_ML_MODEL_F1"]) > 90
    assert known["CM_ML_MODEL_IS_SYNTHETIC"] == "yes"


def test_a_folder_without_a_model_json_is_refused(inside, hook_input, tmp_path):
    i = hook_input({**REQUEST, "CM_MLPERF_DATA_GIVEN_PATH": str(tmp_path)})
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    answer = load_recipe(ALIAS).postprocess(i)
    assert answer["return"] == 1
    assert "model.json" in answer["error"]


def test_the_fitted_model_answers_its_questions_by_onnxruntime_too(fitted, dataset):
    """The reference in model.json, measured one by one, is reached by the ONNX file in batches of mixed lengths."""
    (onnxruntime,) = need("onnxruntime")
    from crowdperf.benchmarks.bert import model as bert
    from crowdperf.harness.base.model_facts import read_model_facts
    from crowdperf.harness.datasets.squad import open_dataset

    facts = read_model_facts(None, fitted / "model.json")
    assert facts.is_synthetic
    assert facts.reference is not None
    assert facts.reference["F1"] >= 90
    model, questions = bert.open_model(facts), open_dataset(dataset)
    session = onnxruntime.InferenceSession(str(facts.files["model"].path), providers=["CPUExecutionProvider"])

    def infer(inputs):
        return dict(zip(bert.OUTPUTS, session.run(list(bert.OUTPUTS), dict(inputs)), strict=True))

    samples = model.preprocess(questions.load(range(questions.count)))
    rows = []
    for start in range(0, len(samples), 7):
        rows.extend(model.predict({"model": infer}, model.collate(samples[start : start + 7])))
    score = model.score(((index, row.tobytes()) for index, row in enumerate(rows)), questions)
    assert dict(score.values) == pytest.approx(dict(facts.reference), abs=1e-9)
    assert score.line.startswith('{"exact_match": ')


def test_a_poor_fit_is_not_written(fit_model, dataset, tmp_path, monkeypatch):
    from crowdperf.harness.base.errors import HarnessError
    from crowdperf.models.make_model import ModelRequest
    from crowdperf.standins.fit_program import write_fitted

    monkeypatch.setattr(fit_model, "train", lambda *_: None)
    order = ModelRequest(architecture="bert", config="tiny", framework="onnx", output_dir=tmp_path)
    with pytest.raises(HarnessError, match="below 90"):
        write_fitted(order, fit_model.fit(order, dataset))
    assert not list(tmp_path.iterdir())


# --- published ONNX files ---


def write_onnx(path: Path, inputs: list[str], outputs: list[str], shape: list[object]) -> Path:
    """An ONNX file with these tensors: outputs are casts of the first input."""
    onnx, _ = need("onnx", "numpy")
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Cast", [inputs[0]], [name], to=types.FLOAT) for name in outputs],
        "bert",
        [helper.make_tensor_value_info(name, types.INT64, shape) for name in inputs],
        [helper.make_tensor_value_info(name, types.FLOAT, shape) for name in outputs],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]), str(path))
    return path


FACTS = {"source": "somewhere", "license": "Apache-2.0", "reference": {"F1": 90.067}, "precision": "int8",
         "origin": "published"}  # fmt: skip
OURS = ["input_ids", "input_mask", "segment_ids"]
STARTS_AND_ENDS = ["output_start_logits", "output_end_logits"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "shape", "config"),
    [
        (OURS, STARTS_AND_ENDS, ["batch", 384], {"sequence_length": 384}),
        (OURS, STARTS_AND_ENDS[::-1], ["batch", "tokens"], {}),
        (
            ["input_ids", "token_type_ids", "attention_mask"],
            ["1850", "1851"],
            [1, 384],
            {
                "tensor_names": {
                    "input_mask": "attention_mask",
                    "segment_ids": "token_type_ids",
                    "output_start_logits": "1850",
                    "output_end_logits": "1851",
                },
                "sequence_length": 384,
            },
        ),
    ],
)
def test_names_and_length_of_a_published_file_are_read_from_it(tmp_path, inputs, outputs, shape, config):
    need("onnx", "numpy")
    from crowdperf.benchmarks.bert import model as bert
    from crowdperf.harness.base.model_facts import read_model_facts

    write_onnx(tmp_path / "model.onnx", inputs, outputs, shape)
    sys.argv = ["describe_onnx.py", "--model", str(tmp_path / "model.onnx"), "--output_dir", str(tmp_path),
                "--facts", json.dumps(FACTS)]  # fmt: skip
    assert load_module(ALIAS, "describe_onnx").main() == 0
    facts = read_model_facts(None, tmp_path / "model.json")
    assert (dict(facts.config), facts.precision, facts.reference) == (config, "int8", {"F1": 90.067})
    (spec,) = bert.open_model(facts).networks
    assert {tensor.name for tensor in spec.inputs} == set(inputs)
    assert {tensor.name for tensor in spec.outputs} == set(outputs)
    info = json.loads((tmp_path / "model.json").read_text())
    assert info.get("fixed_batch_size") == (1 if shape[0] == 1 else None)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (["input_ids", "mask", "segment_ids"], STARTS_AND_ENDS, "no input is input_mask"),
        ([*OURS, "position_ids"], STARTS_AND_ENDS, "4 inputs and 2 outputs"),
        (OURS, ["logits"], "3 inputs and 1 outputs"),
    ],
)
def test_a_file_that_is_no_bert_is_refused(tmp_path, inputs, outputs, message):
    need("onnx", "numpy")
    describe_onnx = load_module(ALIAS, "describe_onnx")
    path = write_onnx(tmp_path / "model.onnx", inputs, outputs, ["batch", 384])
    with pytest.raises(describe_onnx.OnnxError, match=message):
        describe_onnx.describe(path, FACTS)


def test_a_truncated_file_is_refused(tmp_path):
    need("onnx", "numpy")
    describe_onnx = load_module(ALIAS, "describe_onnx")
    path = write_onnx(tmp_path / "model.onnx", OURS, STARTS_AND_ENDS, ["batch", 384])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(describe_onnx.OnnxError, match="cannot read"):
        describe_onnx.describe(path, FACTS)
