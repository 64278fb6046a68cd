"""get-ml-model-digits: the fit is repeatable and good, its ONNX file says the same, and a poor one is refused."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from harness_libraries import need
from recipe_programs import program

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
ALIAS = "get-ml-model-digits"
RECIPE = SCRIPTS / ALIAS


@pytest.fixture(scope="module")
def fit_model() -> ModuleType:
    need("numpy", "onnxruntime")
    return program(ALIAS, "fit_model")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("numpy")
    folder = tmp_path_factory.mktemp("dataset")
    program("get-dataset-digits", "make_dataset").make_dataset(folder)
    return folder


@pytest.fixture(scope="module")
def model(fit_model: ModuleType, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipe's own model."""
    folder = tmp_path_factory.mktemp("model")
    fit_model.make_model(dataset, folder, fit_model.FitSettings())
    return folder


def test_the_model_and_its_accuracy_are_handed_on_while_its_files_are_those_of_the_fit(inside, hook_input):
    recipe, path = program(ALIAS, "customize"), inside / "digits.onnx"
    path.write_bytes(b"x")
    file = {"file": path.name, "sha256": hashlib.sha256(b"x").hexdigest()}
    info = {"format": 1, "name": "digits", "framework": "onnx", "files": {"model": file}, "reference": {"acc": 99.332}}
    (inside / "model.json").write_text(json.dumps(info))
    i = hook_input()
    assert recipe.postprocess(i) == {"return": 0, "files": [str(path), str(inside / "model.json")]}
    assert i["env"]["CM_ML_MODEL_FILE_WITH_PATH"] == str(path)
    assert i["env"]["CM_ML_MODEL_REFERENCE_ACCURACY"] == "99.332"
    path.write_bytes(b"y")
    assert "digits.onnx has the SHA-256" in recipe.postprocess(i)["error"]


def test_onnxruntime_reads_at_least_98_percent_of_the_validation_part(model, dataset):
    numpy, onnxruntime = need("numpy", "onnxruntime")
    session = onnxruntime.InferenceSession(model / "digits.onnx", providers=["CPUExecutionProvider"])
    images = numpy.load(dataset / "validation_images.npy")
    labels = numpy.load(dataset / "validation_labels.npy")
    (logits,) = session.run(["logits"], {"image": (images / 16).astype(numpy.float32).reshape(-1, 1, 8, 8)})
    correct = int((logits.argmax(axis=1) == labels).sum())
    info = json.loads((model / "model.json").read_text())
    assert correct / 599 >= 0.98
    assert (info["validation_correct"], info["validation_count"]) == (correct, 599)
    assert info["reference"]["acc"] == round(100 * correct / 599, 3)


def test_inputs_and_outputs_are_as_promised_for_any_batch_size(model):
    numpy, onnxruntime = need("numpy", "onnxruntime")
    session = onnxruntime.InferenceSession(model / "digits.onnx", providers=["CPUExecutionProvider"])
    (given,), (answered,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.type, given.shape[1:]) == ("image", "tensor(float)", [1, 8, 8])
    assert (answered.name, answered.type, answered.shape[1:]) == ("logits", "tensor(float)", [10])
    for batch in (1, 3, 1024):
        (logits,) = session.run(None, {"image": numpy.zeros((batch, 1, 8, 8), numpy.float32)})
        assert logits.shape == (batch, 10)


def test_model_json_describes_the_file_beside_it(model, fit_model):
    content = (model / "digits.onnx").read_bytes()
    info = json.loads((model / "model.json").read_text())
    assert info["sha256"] == hashlib.sha256(content).hexdigest()
    assert info["size_bytes"] == len(content)
    assert info["seed"] == fit_model.FitSettings().seed
    assert set(info["versions"]) == {"python", "numpy", "onnxruntime"}


def test_a_second_fit_gives_the_same_bytes(model, fit_model, dataset, tmp_path):
    fit_model.make_model(dataset, tmp_path, fit_model.FitSettings())
    assert (tmp_path / "digits.onnx").read_bytes() == (model / "digits.onnx").read_bytes()


def test_the_onnx_graph_computes_what_the_fit_computes(model, fit_model, dataset):
    (numpy,) = need("numpy")
    network = program(ALIAS, "network")
    images = network.as_input(numpy.load(dataset / "train_images.npy"))
    labels = numpy.load(dataset / "train_labels.npy")
    fitted = network.fit_network(images, labels, fit_model.FitSettings())
    features = network.features_of(images[:50], fitted.filters.reshape(-1, 9), fitted.filter_bias)
    expected = (features @ fitted.head + fitted.head_bias).argmax(axis=1)
    assert numpy.array_equal(fit_model.predict((model / "digits.onnx").read_bytes(), images[:50]), expected)


def test_the_file_is_the_one_that_the_package_onnx_writes_and_checks(model, fit_model, dataset):
    numpy, onnx = need("numpy", "onnx")
    network, helper = program(ALIAS, "network"), onnx.helper
    images = network.as_input(numpy.load(dataset / "train_images.npy"))
    fitted = network.fit_network(images, numpy.load(dataset / "train_labels.npy"), fit_model.FitSettings())
    nodes = [
        helper.make_node("Conv", ["image", "filters", "filter_bias"], ["maps"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["maps"], ["positive_maps"]),
        helper.make_node("MaxPool", ["positive_maps"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["features"], axis=1),
        helper.make_node("Gemm", ["features", "head", "head_bias"], ["logits"]),
    ]
    names = ("filters", "filter_bias", "head", "head_bias")
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 10])],
        [onnx.numpy_helper.from_array(getattr(fitted, name), name) for name in names],
    )
    expected = helper.make_model(
        graph,
        producer_name="crowdperf get-ml-model-digits",
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.checker.check_model(expected, full_check=True)
    assert (model / "digits.onnx").read_bytes() == expected.SerializeToString(deterministic=True)


def test_a_poor_model_is_refused_and_not_written(fit_model, dataset, tmp_path):
    poor = replace(fit_model.FitSettings(), filter_count=2, patch_count=200)
    with pytest.raises(fit_model.ModelError, match=r"below 98\.0 %"):
        fit_model.make_model(dataset, tmp_path, poor)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("percent", "is_refused"), [(97.999, True), (98.0, False), (99.332, False)])
def test_98_percent_is_the_limit(fit_model, percent, is_refused):
    if is_refused:
        with pytest.raises(fit_model.ModelError):
            fit_model.check_accuracy(percent)
    else:
        fit_model.check_accuracy(percent)


def test_an_edited_dataset_file_is_refused(fit_model, dataset, tmp_path):
    for path in dataset.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    labels = tmp_path / "train_labels.npy"
    content = labels.read_bytes()
    labels.write_bytes(content[:-1] + bytes([(content[-1] + 1) % 10]))
    output = tmp_path / "output"
    output.mkdir()
    with pytest.raises(fit_model.ModelError, match="the file was changed"):
        fit_model.make_model(tmp_path, output, fit_model.FitSettings())
    assert list(output.iterdir()) == []
