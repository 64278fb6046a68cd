"""crowdperf.harness.runner.accuracy, models.digits and datasets.digits: from response bytes to a verdict."""

from pathlib import Path

import numpy as np
import pytest

from crowdperf.benchmarks.digits.model import open_model
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, parse_model_facts
from crowdperf.harness.base.score import Score
from crowdperf.harness.datasets.digits import open_dataset
from crowdperf.harness.metrics import top1
from crowdperf.harness.runner.accuracy import ResponseLog, all_passed, judge, official_targets


def logits(best: int) -> bytes:
    row = np.zeros(10, np.float32)
    row[best] = 1.0
    return row.tobytes()


def entry(position: int, index: int, data: bytes) -> str:
    """Return an entry as LoadGen 6.0.17 writes it."""
    return f'{{ "seq_id" : {position}, "qsl_idx" : {index}, "data" : "{data.hex().upper()}" }}'


def log_file(folder: Path, entries: list[tuple[int, bytes]]) -> Path:
    path = folder / "mlperf_log_accuracy.json"
    lines = [entry(number, index, data) for number, (index, data) in enumerate(entries)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return path


def score(responses, labels: list[int]) -> Score:
    def label_of(data: bytes) -> int:
        return int(np.frombuffer(data, dtype=np.float32).argmax())

    return top1.score(responses, np.array(labels, np.uint8), response_bytes=40, label_of=label_of)


def test_the_first_response_of_a_sample_counts(tmp_path: Path) -> None:
    log = ResponseLog(log_file(tmp_path, [(1, logits(5)), (0, logits(7)), (1, logits(6))]), 2)
    result = score(log, [7, 5])
    assert (result.values, log.response_count, log.duplicate_count) == ({"acc": 100.0}, 2, 1)
    assert result.line == "accuracy=100.000%, good=2, total=2"
    assert len(log.sha256) == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[\n" + entry(0, 0, logits(1))[:40], "truncated"),
        ("[\n" + entry(0, 0, logits(1)) + ",\n", "truncated"),
        ("[\n" + entry(0, 0, logits(1)) + "\n", "truncated"),
        ("", "truncated"),
        ('[{"qsl_idx": 0}]', "entry 0"),
        ('[{"qsl_idx": 0, "data": "0G"}]', "entry 0"),
        ("[7]", "line 1 of .* no responses logged"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mlperf_log_accuracy.json"
    path.write_text(text)
    with pytest.raises(HarnessError, match=message):
        list(ResponseLog(path, 2))


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 2], r"is missing a response for 1 samples \(1\)"),
        ([0], r"is missing a response for 2"),
        ([0, 1, 2, 3], r"unknown 1 samples \(3\)"),
        ([0, 1, 2, -1], "unknown"),
        ([], "no responses logged"),
    ],
)
def test_every_validation_sample_must_be_there_and_no_other(tmp_path: Path, indices: list[int], message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        list(ResponseLog(log_file(tmp_path, [(index, logits(0)) for index in indices]), 3))


def test_a_response_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(HarnessError, match="has 36 bytes, expected 40"):
        score([(0, logits(0)[:-4])], [0])


@pytest.mark.parametrize(("percent", "is_passed"), [(98.9, False), (99.0, True), (100.0, True)])
def test_without_an_official_target_it_is_99_percent_of_the_reference(percent: float, is_passed: bool) -> None:
    (judged,) = judge(Score(values={"acc": percent}, line=""), (), {"acc": 100.0}, 0.99)
    assert (judged.target, judged.is_passed) == (99.0, is_passed)


@pytest.mark.parametrize(("f1", "is_passed"), [(89.96, False), (89.97, True)])
def test_an_official_benchmark_has_the_official_target_whatever_model_json_says(f1: float, is_passed: bool) -> None:
    score_of_run = Score(values={"F1": f1, "exact_match": 83.0}, line="")
    judged = judge(score_of_run, official_targets("bert-99"), {"F1": 10.0, "exact_match": 99.0}, 0.99)
    assert [item.is_passed for item in judged] == [is_passed, None]
    assert all_passed(judged) is is_passed


def test_without_a_reference_there_is_no_verdict() -> None:
    assert all_passed(judge(Score(values={"acc": 50.0}, line=""), (), None, 0.99)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "format 1"),
        ("[]", "a JSON list, not an object"),
        ("", "no JSON"),
        ('{"format": 1}', "files"),
        ('{"format": 1, "files": {"model": {}}}', "files"),
        ('{"format": 1, "files": {}, "reference": {"acc": "98"}}', "reference.acc: found"),
    ],
)
def test_a_model_json_that_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        parse_model_facts(text, Path("/models/model.json"))


def write_digits(folder: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    np.save(folder / "validation_images.npy", images)
    np.save(folder / "validation_labels.npy", labels)
    return folder


def test_images_become_numbers_from_0_to_1(tmp_path: Path) -> None:
    images = np.zeros((3, 8, 8), np.uint8)
    images[1, 2, 3] = 16
    dataset = open_dataset(write_digits(tmp_path, images, np.array([1, 2, 3], np.uint8)))
    inputs = open_model(ModelFacts()).preprocess(dataset.load([2, 1]))["image"]
    assert (inputs.dtype, inputs.shape) == (np.float32, (2, 1, 8, 8))
    assert (inputs[0].max(), inputs[1, 0, 2, 3]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 8, 8), np.float32), np.zeros(2, np.uint8), "float32"),
        (np.zeros((2, 64), np.uint8), np.zeros(2, np.uint8), "uint8"),
        (np.zeros((0, 8, 8), np.uint8), np.zeros(0, np.uint8), "N >= 1"),
        (np.full((2, 8, 8), 17, np.uint8), np.zeros(2, np.uint8), "contains the value 17"),
        (np.zeros((2, 8, 8), np.uint8), np.full(2, 10, np.uint8), "contains the value 10"),
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
