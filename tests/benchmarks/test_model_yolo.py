"""yolo: the network's size, squares with bars and the way back, responses in COCO's category ids, the score."""

import json

import harness_support
import numpy as np
import pytest
import torch
from made_sets import make_set

from crowdperf.benchmarks.yolo import model as yolo
from crowdperf.benchmarks.yolo import network
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.runner.registry import load_dataset
from crowdperf.rules.benchmarks import BENCHMARKS

harness_support.need("cv2", "pycocotools")

TINY = dict(network.CONFIGS["tiny"])
CLASSES = harness_support.SCRIPTS / "get-dataset-coco" / "classes.txt"


def opened(**changes):
    return yolo.open_model(ModelFacts(config={**TINY, **changes}))


def said(model, boxes, classes, scores):
    """The outputs of a network that says this about its first places."""
    outputs = {spec.name: spec.zeros(1) for spec in model.network.outputs}
    outputs["boxes"][0, : len(boxes)] = boxes
    outputs["classes"][0, : len(boxes)] = classes
    outputs["scores"][0, : len(boxes)] = scores
    return {"model": lambda _: outputs}


def inputs_of(height, width, index=5):
    return {
        "images": np.zeros((1, 3, 96, 96), np.float32),
        "image_index": np.array([index]),
        "image_sides": np.array([[height, width]]),
    }


def test_the_full_network_has_as_many_parameters_and_places_as_the_published_one():
    module = network.Yolo(network.CONFIGS["full"])
    count = sum(parameter.numel() for parameter in module.parameters())
    assert count == 25_372_160  # cfg/models/11/yolo11.yaml, scale l
    model = yolo.open_model(ModelFacts(config=dict(network.CONFIGS["full"])))
    assert [spec.fixed_shape for spec in model.network.outputs] == [(8400, 4), (8400,), (8400,)]
    assert model.network.inputs[0].fixed_shape == (3, 640, 640)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_boxes_are_float32_in_a_network_of_another_type(dtype, monkeypatch):
    config = {**TINY, "image_size": 640}
    module = network.build("model", config).to(dtype)
    assert {parameter.dtype for parameter in module.parameters()} == {dtype}
    places = 6400 + 1600 + 400
    sides = torch.tensor([0.5, 1.0, 1.5, 2.0]).expand(1, places, 4)  # exact in every type
    answers = lambda maps: (torch.zeros(1, places, 6, dtype=dtype), sides.to(dtype))  # noqa: E731
    monkeypatch.setattr(network._Detect, "forward", lambda self, maps: answers(maps))
    monkeypatch.setattr(network.Yolo, "maps", lambda self, images: [])
    boxes, _, _ = module(torch.zeros(1, 3, 640, 640, dtype=dtype))
    assert boxes.dtype is torch.float32
    assert boxes[0, 6399].tolist() == [(79.5 - 0.5) * 8, (79.5 - 1.0) * 8, (79.5 + 1.5) * 8, (79.5 + 2.0) * 8]
    sides = sides + 1 / 64  # a sixty-fourth of a stride: lost beside 79.5 in both types
    sides = sides.to(dtype)
    boxes, _, _ = module(torch.zeros(1, 3, 640, 640, dtype=dtype))
    assert torch.equal(boxes[0, 6399, 2:], (79.5 + sides[0, 0, 2:].float()) * 8)


def test_the_classes_have_cocos_category_ids():
    numbers = [int(line.split()[0]) for line in CLASSES.read_text().splitlines()[1:]]
    assert yolo.CATEGORIES.tolist() == numbers


def test_an_image_is_fitted_into_the_square_between_grey_bars():
    picture = np.full((24, 48, 3), (10, 100, 250), dtype=np.uint8)
    square = opened().prepare(picture)
    assert square.shape == (3, 96, 96) and square.dtype == np.float32
    assert np.allclose(square[:, :24], 114 / 255) and np.allclose(square[:, 72:], 114 / 255)
    assert np.allclose(square[:, 24:72].mean(axis=(1, 2)), np.array([10, 100, 250]) / 255, atol=1e-6)


@pytest.mark.parametrize(
    ("height", "width", "box", "wanted"),
    [
        (48, 96, (0, 24, 96, 72), (0, 0, 1, 1)),  # bars above and below
        (96, 48, (24, 0, 48, 96), (0, 0, 1, 0.5)),  # bars on the left and right
        (300, 600, (48, 48, 96, 96), (0.5, 0.5, 1, 1)),  # out of the image: cut at its edge
        (96, 96, (12, 24, 36, 48), (0.25, 0.125, 0.5, 0.375)),
    ],
)
def test_boxes_are_parts_of_the_image_without_the_bars(height, width, box, wanted):
    model = opened()
    (rows,) = model.predict(said(model, [box], [4], [0.9]), inputs_of(height, width))
    assert rows.dtype == np.float32 and rows.shape == (1, 7)
    assert np.allclose(rows[0], [5, *wanted, 0.9, 5], atol=1e-6)


def test_low_scores_and_overlapping_boxes_of_a_class_fall_and_a_response_may_be_empty():
    model = opened()
    boxes = [(0, 0, 40, 40), (0, 0, 40, 38), (0, 0, 40, 38), (50, 50, 90, 90)]
    (rows,) = model.predict(said(model, boxes, [0, 0, 1, 0], [0.5, 0.9, 0.4, 0.0005]), inputs_of(96, 96))
    assert np.allclose(rows[:, 5], [0.9, 0.4]) and rows[:, 6].tolist() == [1, 2]
    (rows,) = model.predict(said(model, boxes, [0] * 4, [0.0] * 4), inputs_of(96, 96))
    assert rows.tobytes() == b""


def test_a_network_that_says_the_truth_scores_100_on_images_of_any_shape(tmp_path):
    make_set("scenes", tmp_path, layout="coco", classes=CLASSES, count=12, seed=1, pictures="small")
    (tmp_path / "val2017").rename(tmp_path / "val2017_safe")  # where the images of free licenses are
    dataset = load_dataset("coco").open_dataset(tmp_path)
    content = json.loads(dataset.annotations_path.read_text())
    model, numbers, responses = opened(), yolo.CATEGORIES.tolist(), []
    for index, image in enumerate(content["images"]):
        rows = [row for row in content["annotations"] if row["image_id"] == image["id"]]
        boxes = np.array([row["bbox"] for row in rows], dtype=np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        part = 96 / max(image["width"], image["height"])
        bars = [(96 - part * image["width"]) / 2, (96 - part * image["height"]) / 2] * 2
        kinds = [numbers.index(row["category_id"]) for row in rows]
        networks = said(model, boxes * part + bars, kinds, [0.99] * len(rows))
        responses.append((index, model.predict(networks, model.preprocess(dataset.load([index])))[0].tobytes()))
    assert responses[11][1] == b""  # the twelfth picture shows nothing
    score = model.score(responses, dataset)
    assert score.line == "mAP=100.000%" and score.values == {"mAP": pytest.approx(100.0)}


def test_the_fit_and_the_network_mean_the_same_places():
    anchors = yolo.anchors_of(ModelFacts(config=TINY)) * np.float32(TINY["image_size"])
    module = network.build("model", TINY)
    middles = (module.points * module.strides).numpy()
    assert np.allclose(anchors[:, :2], middles)
    corners = torch.randn((1, len(anchors), 4)).abs()
    corners[..., 2:] += corners[..., :2] + 1
    module._found = lambda images: (torch.zeros(1), corners)
    deltas = module.raw(torch.zeros(1))[1].detach().numpy()[0]
    from crowdperf.harness.detection.boxes import decode

    assert np.allclose(decode(deltas, anchors, yolo.CODING), corners[0].numpy(), atol=1e-3)


@pytest.mark.parametrize(
    "changes", [{"class_count": 0}, {"class_count": 81}, {"image_size": "640"}, {"image_size": 100}]
)
def test_an_unusable_configuration_is_refused(changes):
    with pytest.raises(HarnessError, match=next(iter(changes))):
        opened(**changes)


def test_a_file_without_a_configuration_is_refused_with_the_recipe_that_makes_one():
    with pytest.raises(HarnessError) as raised:
        yolo.open_model(ModelFacts())
    assert "get,ml-model,yolo" in raised.value.hint


def test_the_levels_are_the_rounds():
    assert [BENCHMARKS[name].level for name in ("yolo-95", "yolo-99")] == [0.95, 0.99]
    assert BENCHMARKS["yolo-95"].record.loadgen_name == "yolo"
