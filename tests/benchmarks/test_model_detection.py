"""retinanet, ssd-mobilenet and ssd-resnet34: networks, both frameworks, responses and the score."""

import json
from dataclasses import replace
from pathlib import Path

import harness_support
import numpy as np
import pytest
import torch
from made_sets import make_set

from crowdperf.benchmarks.retinanet import model as retinanet
from crowdperf.benchmarks.ssd_mobilenet import model as ssd_mobilenet
from crowdperf.benchmarks.ssd_resnet34 import model as ssd_resnet34
from crowdperf.harness.backends.onnxruntime.backend import open_backend
from crowdperf.harness.base.architecture import architecture_of
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.harness.detection.boxes import encode
from crowdperf.harness.runner.registry import load_dataset
from crowdperf.models.make_model import ModelRequest, build_modules, write_model
from crowdperf.rules.benchmarks import record_of
from crowdperf.standins.datasets import scenes
from crowdperf.standins.fit_program import write_fitted
from crowdperf.standins.fits import detection as fit_detection

harness_support.need("cv2", "pycocotools", "safetensors")

pytestmark = pytest.mark.usefixtures("one_thread")

MODULES = {"retinanet": retinanet, "ssd_mobilenet": ssd_mobilenet, "ssd_resnet34": ssd_resnet34}
CLASSES = {name: harness_support.SCRIPTS / f"get-dataset-{name}" / "classes.txt" for name in ("coco", "openimages")}
EVERY = pytest.mark.parametrize("name", sorted(MODULES))


def facts_of(name, config="tiny"):
    return ModelFacts(config=dict(architecture_of(name).CONFIGS[config]))


def model_order(name, folder, framework="onnx"):
    return ModelRequest(architecture=name, config="tiny", framework=framework, output_dir=folder)


def data_set(folder: Path, layout: str, count: int = 6):
    make_set("scenes", folder, layout=layout, classes=CLASSES[layout], count=count, seed=1, pictures="small")
    return load_dataset(layout).open_dataset(folder)


def lively(module, name):
    """Let a fresh network claim objects, so that there is something to suppress."""
    with torch.no_grad():
        if name == "retinanet":
            heads = [(module.head.classification_head.cls_logits, module.head.regression_head.bbox_reg)]
        elif name == "ssd_mobilenet":
            heads = [(head.classification, head.regression) for head in module.predictors]
        else:
            heads = list(zip(module.conf, module.loc, strict=True))
        generator = torch.Generator().manual_seed(4)
        for score, move in heads:
            score.weight.normal_(0.0, 0.05, generator=generator)
            score.bias.normal_(-1.0, 0.5, generator=generator)
            move.weight.normal_(0.0, 0.02, generator=generator)
    return module


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lively tiny network of each model: the model, its torch module and its ONNX file."""
    found = {}
    for name in MODULES:
        order = model_order(name, tmp_path_factory.mktemp(name))
        modules = {"model": lively(build_modules(order)["model"], name)}
        write_model(modules, order)
        facts = read_model_facts(None, order.output_dir / "model.json")
        found[name] = (MODULES[name].open_model(facts), modules["model"], facts.files["model"].path)
    return found


def torch_call(model, module):
    def infer(inputs):
        with torch.inference_mode():
            answers = module(*(torch.from_numpy(array) for array in inputs.values()))
        names = [spec.name for spec in model.network.outputs]
        return {name: answer.numpy() for name, answer in zip(names, answers, strict=True)}

    return {"model": infer}


def onnx_call(model, path):
    request = BackendRequest(
        network=model.network, path=path, architecture="", config={}, precision="fp32", device="cpu", gpus=(),
        instances=1, threads=1, cores=(), is_spinning=False, largest_batch=8,
    )  # fmt: skip
    return {"model": open_backend(request).instance(0)}


@EVERY
def test_both_frameworks_and_every_batch_size_give_the_same_detections(name, made):
    model, module, path = made[name]
    size = model.network.inputs[0].fixed_shape[1]
    generator = np.random.default_rng(2)
    images = [model.prepare(generator.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(3)]
    key = model.network.inputs[0].name
    inputs = {key: np.stack(images), "image_index": np.array([7, 0, 123])}
    assert inputs[key].shape == (3, 3, size, size) and inputs[key].dtype == np.float32
    by_torch = model.predict(torch_call(model, module), inputs)
    by_onnx = model.predict(onnx_call(model, path), inputs)
    one_by_one = [
        model.predict(onnx_call(model, path), {name: array[row : row + 1] for name, array in inputs.items()})[0]
        for row in range(3)
    ]
    for wanted, found, alone, index in zip(by_torch, by_onnx, one_by_one, (7, 0, 123), strict=True):
        assert wanted.dtype == found.dtype == np.float32 and wanted.shape[1] == 7
        assert len(wanted) > 3 and (wanted[:, 0] == index).all()
        assert (np.diff(wanted[:, 5]) <= 0).all()
        for other in (found, alone):
            # Scores that are equal but for rounding may change places, and so who is the last of the best.
            apart = np.abs(other[None] - wanted[:, None]).max(axis=2)
            assert np.mean(apart.min(axis=1) < 2e-4) > 0.97
            assert len(other) == pytest.approx(len(wanted), rel=0.02)


@EVERY
def test_the_outputs_have_the_declared_shapes_and_types(name, made):
    model, _, path = made[name]
    images = np.zeros((2, *model.network.inputs[0].fixed_shape), dtype=np.float32)
    answers = onnx_call(model, path)["model"]({model.network.inputs[0].name: images})
    for spec in model.network.outputs:
        assert answers[spec.name].shape == (2, *spec.fixed_shape)
        assert answers[spec.name].dtype == spec.dtype


@EVERY
def test_a_network_that_claims_nothing_gives_empty_responses(name, made):
    model = made[name][0]

    def silent(inputs):
        batch = len(next(iter(inputs.values())))
        outputs = {spec.name: spec.zeros(batch) for spec in model.network.outputs}
        if "logits" in outputs:
            outputs["logits"][:] = -9.0
        return outputs

    images = np.zeros((2, *model.network.inputs[0].fixed_shape), dtype=np.float32)
    rows = model.predict({"model": silent}, {model.network.inputs[0].name: images, "image_index": np.array([0, 1])})
    assert [row.shape for row in rows] == [(0, 7), (0, 7)]


def perfect_outputs(name, model, facts, boxes, kinds):
    """What a network must say to have found exactly these boxes."""
    module = MODULES[name]
    chosen = np.arange(len(boxes)) * 5
    deltas = encode(boxes, module.anchors_of(facts)[chosen], module.CODING)
    outputs = {spec.name: spec.zeros(1) for spec in model.network.outputs}
    if name == "retinanet":
        outputs["logits"][:] = -9.0
        outputs["logits"][0, : len(boxes)] = 5.0
        outputs["places"][0, : len(boxes)] = chosen * facts.config["class_count"] + kinds
        outputs["deltas"][0, : len(boxes)] = deltas
    else:
        outputs["scores"][0, chosen, kinds + 1] = 0.99
        outputs["deltas"][0, chosen] = deltas
    return outputs


@EVERY
def test_a_network_that_says_the_truth_scores_100(name, made, tmp_path):
    model, facts = made[name][0], facts_of(name)
    dataset = data_set(tmp_path, record_of(name).dataset, count=13)
    content = json.loads(dataset.annotations_path.read_text())
    numbers = [category["id"] for category in content["categories"]]
    responses = []
    for index, image in enumerate(content["images"]):
        rows = [row for row in content["annotations"] if row["image_id"] == image["id"]]
        scale = np.array([image["width"], image["height"]] * 2)
        boxes = np.array([row["bbox"] for row in rows], dtype=np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        kinds = np.array([numbers.index(row["category_id"]) for row in rows], dtype=np.int64)
        outputs = perfect_outputs(name, model, facts, (boxes / scale).astype(np.float32), kinds)
        inputs = model.preprocess(dataset.load([index]))
        response = model.predict({"model": lambda _, outputs=outputs: outputs}, inputs)[0]
        responses.append((index, response.tobytes()))
    if record_of(name).dataset == "coco":
        assert responses[11][1] == b""  # the twelfth picture shows nothing
    score = model.score(responses, dataset)
    assert score.values["mAP"] == pytest.approx(100.0)
    assert score.line == "mAP=100.000%"


@EVERY
def test_the_full_configuration_is_the_benchmarks(name):
    sizes = {"retinanet": 800, "ssd_mobilenet": 300, "ssd_resnet34": 1200}
    published = MODULES[name].open_model(ModelFacts())
    own = MODULES[name].open_model(facts_of(name, "full"))
    assert own.network.inputs[0].fixed_shape == (3, sizes[name], sizes[name])
    assert sizes[name] in published.network.inputs[0].fixed_shape
    with torch.device("meta"):
        module = architecture_of(name).build("model", architecture_of(name).CONFIGS["full"])
    # Counted in the reference's own modules (torchvision's RetinaNet for retinanet).
    counts = {"retinanet": 37_128_876, "ssd_mobilenet": 6_812_127, "ssd_resnet34": 19_972_534}
    assert sum(parameter.numel() for parameter in module.parameters()) == counts[name]


def test_published_retinanet_takes_one_image_at_a_time_and_stops_at_the_first_low_score():
    model = retinanet.open_model(ModelFacts())
    calls = []

    def infer(inputs):
        calls.append(inputs["images"].shape)
        boxes = np.array([[80, 160, 240, 320], [0, 0, 800, 800], [1, 1, 2, 2]], dtype=np.float32)
        scores = np.array([0.8, 0.06, 0.01], dtype=np.float32)
        return {"boxes": boxes, "labels": np.array([3, 0, 5]), "scores": scores}

    images = np.zeros((2, 3, 800, 800), dtype=np.float32)
    first, second = model.predict({"model": infer}, {"images": images, "image_index": np.array([4, 9])})
    assert calls == [(1, 3, 800, 800)] * 2
    wanted = np.array([[4, 0.2, 0.1, 0.4, 0.3, 0.8, 3], [4, 0, 0, 1, 1, 0.06, 0]], dtype=np.float32)
    assert np.allclose(first, wanted) and (second[:, 0] == 9).all()


def test_published_ssd_mobilenet_takes_bytes_and_gives_category_ids():
    model = ssd_mobilenet.open_model(ModelFacts())
    assert model.network.inputs[0].dtype == "uint8"
    picture = model.prepare(np.full((30, 40, 3), 200, dtype=np.uint8))
    assert picture.shape == (300, 300, 3) and picture.dtype == np.uint8 and (picture == 200).all()
    outputs = {
        "num_detections:0": np.array([1.0, 0.0], dtype=np.float32),
        "detection_boxes:0": np.array([[[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0]]] * 2, dtype=np.float32),
        "detection_scores:0": np.array([[0.7, 0.0]] * 2, dtype=np.float32),
        "detection_classes:0": np.array([[90.0, 1.0]] * 2, dtype=np.float32),
    }
    inputs = {"image_tensor:0": np.stack([picture] * 2), "image_index": np.array([5, 6])}
    first, second = model.predict({"model": lambda _: outputs}, inputs)
    assert np.allclose(first, [[5, 0.1, 0.2, 0.3, 0.4, 0.7, 90]]) and second.shape == (0, 7)


def test_published_ssd_resnet34_stops_at_scores_below_a_half():
    model = ssd_resnet34.open_model(ModelFacts())
    outputs = {
        "bboxes": np.array([[[0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]]], dtype=np.float32),
        "labels": np.array([[80, 1]]),
        "scores": np.array([[0.7, 0.4]], dtype=np.float32),
    }
    inputs = {"image": np.zeros((1, 3, 1200, 1200), dtype=np.float32), "image_index": np.array([5])}
    (rows,) = model.predict({"model": lambda _: outputs}, inputs)
    assert np.allclose(rows, [[5, 0.2, 0.1, 0.4, 0.3, 0.7, 80]]) and model.is_label_mapped


@EVERY
def test_preparation_follows_the_reference(name):
    grey = np.full((20, 30, 3), (10, 100, 250), dtype=np.uint8)
    found = MODULES[name].open_model(facts_of(name)).prepare(grey)[:, 0, 0]
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    pixel = np.array([10.0, 100.0, 250.0])
    wanted = {
        "retinanet": pixel / 255,
        "ssd_mobilenet": (pixel - 127.5) / 127.5,
        "ssd_resnet34": (pixel / 255 - mean) / deviation,
    }
    assert np.allclose(found, wanted[name], atol=1e-6)


@EVERY
@pytest.mark.parametrize("key, value", [("class_count", 0), ("image_size", "800"), ("class_count", None)])
def test_an_unusable_configuration_is_refused(name, key, value):
    config = {**facts_of(name).config, key: value}
    with pytest.raises(HarnessError, match=key):
        MODULES[name].open_model(ModelFacts(config=config))


@EVERY
def test_weights_without_a_configuration_are_refused(name):
    with pytest.raises(HarnessError, match="without a configuration"):
        MODULES[name].open_model(ModelFacts(framework="pytorch"))


@EVERY
def test_rules_are_the_benchmarks(name):
    rules = record_of(name)
    assert rules.is_official
    assert rules.server_target_latency_ms == {"ssd_mobilenet": None}.get(name, 100.0)  # edge only: no round has Server
    assert rules.performance_sample_count == {"ssd_mobilenet": 256}.get(name, 64)


@EVERY
def test_fitting_lowers_the_loss_and_leaves_an_inference_network(name, tmp_path):
    module = build_modules(model_order(name, tmp_path))["model"]
    facts = facts_of(name)
    model = MODULES[name].open_model(facts)
    recipe = fit_detection.FITS[name]
    grid = fit_detection.Grid(MODULES[name].anchors_of(facts), MODULES[name].CODING)
    size = model.network.inputs[0].fixed_shape[1]
    images, targets = fit_detection.make_batch(model, grid, size, recipe, np.random.default_rng(9))

    def loss():
        with torch.inference_mode():
            return float(fit_detection.loss_of(*module.raw(images), targets, recipe))

    before = loss()
    fit_detection.fit(module, model, grid, replace(recipe, steps=25, batch=4), seed=0)
    assert not module.training and not any(value.requires_grad for value in module.parameters())
    assert loss() < before


def test_a_fitted_model_is_written_with_its_score(tmp_path, monkeypatch):
    recipe = replace(fit_detection.FITS["ssd_resnet34"], steps=2, batch=2)
    monkeypatch.setitem(fit_detection.FITS, "ssd_resnet34", recipe)
    data_set(tmp_path / "data", "coco", count=2)
    order = model_order("ssd_resnet34", tmp_path / "model", "pytorch")
    fitted = fit_detection.make(order, tmp_path / "data")
    write_fitted(order, fitted)
    info = json.loads((tmp_path / "model" / "model.json").read_text())
    assert info["reference"] == dict(fitted.score.values) and info["is_synthetic"] and info["framework"] == "pytorch"
    assert isinstance(
        ssd_resnet34.open_model(read_model_facts(None, tmp_path / "model" / "model.json")).network, NetworkSpec
    )


def test_missing_images_and_broken_annotations_are_refused(tmp_path):
    dataset = data_set(tmp_path, "coco")
    dataset.paths[2].unlink()
    with pytest.raises(HarnessError, match=r"is missing 1 of 6 images: 000000000003\.jpg"):
        load_dataset("coco").open_dataset(tmp_path)
    dataset.annotations_path.write_text('{"images": []}')
    with pytest.raises(HarnessError, match=r"instances_val2017\.json lists no images"):
        load_dataset("coco").open_dataset(tmp_path)
    dataset.annotations_path.write_text('{"images": [{"id": 1}]}')
    with pytest.raises(HarnessError, match="COCO's format"):
        load_dataset("coco").open_dataset(tmp_path)


def test_a_list_of_classes_that_cannot_be_used_is_named_with_what_lines_are(tmp_path, capsys):
    (tmp_path / "classes.txt").write_text("one\n")
    words = ["--layout=coco", f"--classes={tmp_path / 'classes.txt'}", "--count=1", f"--output_dir={tmp_path}"]
    assert scenes.MADE.main("", words) == 1
    assert capsys.readouterr().err.endswith("hint: lines are: id name\n")
