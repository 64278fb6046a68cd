"""harness.accuracy, models.digits and datasets.digits: from response bytes to a verdict."""

import json
from pathlib import Path

import pytest
from harness_support import need

need("numpy")

import numpy as np  # noqa: E402
from harness.accuracy import accuracy_line, judge, parse_model_info, parse_responses, require_all  # noqa: E402
from harness.datasets.digits import open_dataset  # noqa: E402
from harness.errors import HarnessError  # noqa: E402
from harness.models.base import Score  # noqa: E402
from harness.models.digits import preprocess, score  # noqa: E402


def logits(best: int) -> bytes:
    row = np.zeros(10, np.float32)
    row[best] = 1.0
    return row.tobytes()


def log_text(entries: list[tuple[int, bytes]]) -> str:
    return json.dumps([{"seq_id": n, "qsl_idx": i, "data": d.hex().upper()} for n, (i, d) in enumerate(entries)])


def test_the_first_response_of_a_sample_counts() -> None:
    responses = parse_responses(log_text([(1, logits(5)), (0, logits(7)), (1, logits(6))]), "log")
    assert responses.duplicate_count == 1
    require_all(responses, 2, "log")
    result = score(responses.by_index, np.array([7, 5], np.uint8))
    assert (result.good_count, result.total_count, result.accuracy_percent) == (2, 2, 100.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (log_text([(0, logits(1))])[:40], "truncated"),
        ("", "truncated"),
        ("{}", "should hold a list"),
        ('[{"qsl_idx": 0}]', "entry 0"),
        ('[{"qsl_idx": 0, "data": "0G"}]', "entry 0"),
        ("[7]", "entry 0"),
    ],
)
def test_a_damaged_log_is_refused(text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        parse_responses(text, "log")


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 2], r"lacks a response for 1 samples \(1\)"),
        ([0], r"lacks a response for 2"),
        ([0, 1, 2, 3], r"unknown 1 samples \(3\)"),
        ([0, 1, 2, -1], "unknown"),
        ([], "holds no response"),
    ],
)
def test_every_validation_sample_must_be_there_and_no_other(indices: list[int], message: str) -> None:
    responses = parse_responses(log_text([(index, logits(0)) for index in indices]), "log")
    with pytest.raises(HarnessError, match=message):
        require_all(responses, 3, "log")


def test_a_response_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(HarnessError, match="has 36 bytes; it should have 40"):
        score({0: logits(0)[:-4]}, np.array([0], np.uint8))


@pytest.mark.parametrize(("good", "is_passed"), [(989, False), (990, True), (1000, True)])
def test_the_target_is_99_percent_of_the_reference(good: int, is_passed: bool) -> None:
    info = parse_model_info('{"reference_accuracy_percent": 100}', "model.json")
    verdict = judge(Score(good_count=good, total_count=1000), info, 0.99)
    assert (verdict.target_percent, verdict.is_passed) == (99.0, is_passed)


def test_without_a_reference_there_is_no_verdict() -> None:
    assert judge(Score(good_count=1, total_count=2), None, 0.99).is_passed is None


@pytest.mark.parametrize(
    "text", ["{}", "[]", "", '{"reference_accuracy_percent": 0}', '{"reference_accuracy_percent": "98"}']
)
def test_a_model_json_without_a_reference_is_refused(text: str) -> None:
    with pytest.raises(HarnessError, match="reference_accuracy_percent"):
        parse_model_info(text, "model.json")


def test_the_official_line() -> None:
    assert accuracy_line(Score(good_count=589, total_count=599)) == "accuracy=98.331%, good=589, total=599\n"


def write_digits(folder: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    np.save(folder / "validation_images.npy", images)
    np.save(folder / "validation_labels.npy", labels)
    return folder


def test_images_become_numbers_from_0_to_1(tmp_path: Path) -> None:
    images = np.zeros((3, 8, 8), np.uint8)
    images[1, 2, 3] = 16
    dataset = open_dataset(write_digits(tmp_path, images, np.array([1, 2, 3], np.uint8)))
    inputs = preprocess(dataset.load([2, 1]))["image"]
    assert (inputs.dtype, inputs.shape) == (np.float32, (2, 1, 8, 8))
    assert (inputs[0].max(), inputs[1, 0, 2, 3]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 8, 8), np.float32), np.zeros(2, np.uint8), "float32"),
        (np.zeros((2, 64), np.uint8), np.zeros(2, np.uint8), "uint8"),
        (np.zeros((0, 8, 8), np.uint8), np.zeros(0, np.uint8), "N >= 1"),
        (np.full((2, 8, 8), 17, np.uint8), np.zeros(2, np.uint8), "value of 17"),
        (np.zeros((2, 8, 8), np.uint8), np.full(2, 10, np.uint8), "value of 10"),
        (np.zeros((2, 8, 8), np.uint8), np.zeros(3, np.uint8), "2 validation images but 3 labels"),
    ],
)
def test_a_data_set_that_is_not_the_digits_is_refused(tmp_path: Path, images, labels, message: str) -> None:
    with pytest.raises(HarnessError, match=message) as caught:
        open_dataset(write_digits(tmp_path, images, labels))
    assert "get,dataset,digits" in caught.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="validation_images"):
        open_dataset(tmp_path)
