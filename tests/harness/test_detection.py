"""Anchors, decoding, suppression and response rows of the detection models."""

import numpy as np
import pytest

from crowdperf.benchmarks.retinanet import model as retinanet
from crowdperf.benchmarks.ssd_mobilenet import model as ssd_mobilenet
from crowdperf.benchmarks.ssd_resnet34 import model as ssd_resnet34
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.detection import boxes as d
from crowdperf.harness.detection import ssd

NOTHING = d.Detections(np.zeros((0, 4), dtype=np.float32), np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64))
"""What is found in an empty image."""
FULL_RETINANET = {"image_size": 800, "anchor_sizes": [32, 64, 128, 256, 512]}
FULL_RESNET34 = {
    "image_size": 1200,
    "extra_strides": [2, 2, 2, 2, 1],
    "extra_paddings": [1, 1, 1, 0, 0],
    "head_stride": 3,
}


def random_boxes(generator, count):
    starts = generator.uniform(0, 0.7, size=(count, 2))
    return np.concatenate([starts, starts + generator.uniform(0.02, 0.3, size=(count, 2))], axis=1).astype(np.float32)


def plain_suppression(boxes, labels, limit, most, epsilon=0.0):
    """The definition, box by box: a box stays unless a better one of its class that stays overlaps it too much."""
    kept = []
    for number, box in enumerate(boxes.astype(np.float64)):
        fits = True
        for other in kept:
            rival = boxes[other].astype(np.float64)
            sides = np.minimum(box[2:], rival[2:]) - np.maximum(box[:2], rival[:2])
            common = max(sides[0], 0) * max(sides[1], 0)
            areas = [np.prod(corners[2:] - corners[:2]) for corners in (box, rival)]
            if labels[number] == labels[other] and common / (sum(areas) - common + epsilon) > limit:
                fits = False
        if fits:
            kept.append(number)
    return kept[:most]


@pytest.mark.parametrize("limit, most, epsilon", [(0.5, 300, 0.0), (0.6, None, 1e-5), (0.45, 7, 0.0)])
def test_suppression_keeps_what_its_definition_keeps(limit, most, epsilon):
    generator = np.random.default_rng(3)
    boxes, labels = random_boxes(generator, 250), generator.integers(0, 4, size=250)
    kept = d.suppress(boxes, labels, limit=limit, most=most, epsilon=epsilon)
    assert kept.tolist() == plain_suppression(boxes, labels, limit, most, epsilon)


def test_suppression_of_nothing_is_nothing_and_boxes_without_area_do_not_fall():
    assert d.suppress(NOTHING.boxes, NOTHING.labels, limit=0.5).tolist() == []
    flat = np.zeros((3, 4), dtype=np.float32)
    assert d.suppress(flat, np.zeros(3, dtype=np.int64), limit=0.5).tolist() == [0, 1, 2]


def test_candidates_of_retinanet_below_the_limit_and_those_without_a_number_are_left_out():
    """Equal scores stay in the order of the candidates, which are too far apart to suppress each other."""
    logits = np.array([0.0, -3.0, np.nan, 2.0, 0.0, -2.9], dtype=np.float32)  # sigmoid(-3) is 0.047, of -2.9 0.052
    anchors = np.array([[100.0 * number + 50, 50, 20, 20] for number in range(6)], dtype=np.float32)
    outputs = {"logits": logits, "places": np.arange(6) * 264 + 7, "deltas": np.zeros((6, 4), dtype=np.float32)}
    found = retinanet._Candidates(anchors, 800, 264).find(outputs)
    assert (found.boxes[:, 0] * 800).tolist() == [340, 40, 440, 540] and found.labels.tolist() == [7] * 4
    assert found.scores.tolist() == pytest.approx([0.8808, 0.5, 0.5, 0.0522], abs=1e-4)


@pytest.mark.parametrize("coding", [retinanet.CODING, d.SSD_CODING])
def test_decoding_undoes_encoding(coding):
    generator = np.random.default_rng(5)
    boxes, anchors = random_boxes(generator, 100), d.to_centres(random_boxes(generator, 100))
    assert np.abs(d.decode(d.encode(boxes, anchors, coding), anchors, coding) - boxes).max() < 1e-5


def test_retinanets_decoding_cuts_the_logarithm_of_a_side():
    anchors = np.array([[50, 50, 16, 16]], dtype=np.float32)
    deltas = np.array([[0, 0, 50, 0]], dtype=np.float32)
    left, _, right, _ = d.decode(deltas, anchors, retinanet.CODING)[0]
    assert right - left == pytest.approx(1000.0)  # 16 times 1000/16


@pytest.mark.parametrize(
    "module, config, count",
    [
        (retinanet, FULL_RETINANET, 120_087),  # 9 x (100^2 + 50^2 + 25^2 + 13^2 + 7^2)
        (ssd_mobilenet, {"image_size": 300}, 1_917),
        (ssd_resnet34, FULL_RESNET34, 15_130),
    ],
)
def test_the_full_networks_have_the_references_number_of_anchors(module, config, count):
    assert module.anchors_of(ModelFacts(config=config)).shape == (count, 4)


def test_anchors_have_the_references_values():
    # Printed by torchvision's AnchorGenerator and by the reference's anchor_generator.py and ssd_r34.py.
    pixels = retinanet.anchors_of(ModelFacts(config=FULL_RETINANET)) * np.float32(FULL_RETINANET["image_size"])
    anchors = d.to_corners(pixels).round(3)
    assert anchors[0].tolist() == [-23, -11, 23, 11]
    assert anchors[9].tolist() == [-15, -11, 31, 11]  # the next place is 8 pixels to the right
    assert anchors[-1].tolist() == [397, 110, 971, 1258]  # places are 114 apart, not 128
    boxes = ssd_mobilenet.anchors_of(ModelFacts(config={"image_size": 300}))
    assert boxes[0] == pytest.approx([0.5 / 19, 0.5 / 19, 0.1, 0.1])
    assert boxes[-1] == pytest.approx([0.5, 0.5, np.sqrt(0.95), np.sqrt(0.95)])
    default = ssd_resnet34.anchors_of(ModelFacts(config=FULL_RESNET34))
    assert default[0] == pytest.approx([0.01, 0.01, 0.07, 0.07])
    assert default[2500] == pytest.approx([0.01, 0.01, np.sqrt(0.07 * 0.15), np.sqrt(0.07 * 0.15)])


def test_at_most_200_candidates_of_a_class_come_to_suppression():
    labels = np.array([1, 2, 1, 1, 2, 3], dtype=np.int64)
    assert ssd.first_of_each(labels, 2).tolist() == [True, True, True, False, True, True]


def test_a_row_is_index_ymin_xmin_ymax_xmax_score_class_in_float32():
    found = d.Detections(
        np.array([[0.1, 0.2, 0.3, 0.4]], dtype=np.float32), np.array([0.9], dtype=np.float32), np.array([17])
    )
    rows = d.response_rows(4711, found)
    assert rows.dtype == np.float32
    assert rows[0] == pytest.approx([4711, 0.2, 0.1, 0.4, 0.3, 0.9, 17])
    assert d.response_rows(3, NOTHING).tobytes() == b""
