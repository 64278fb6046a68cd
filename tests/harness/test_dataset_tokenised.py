"""samples.jsonl: what is read, what is refused, and which of a data set's parts a run has."""

import json
from pathlib import Path

import pytest

from crowdperf.harness.base.dataset import require_answers
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.parts import sample_folder
from crowdperf.harness.datasets.tokenised import open_dataset
from crowdperf.rules.names import Mode


def write(folder: Path, *rows: object, facts: dict | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if facts is not None:
        (folder / "dataset.json").write_text(json.dumps(facts))
    return folder


def test_samples_are_read_in_order(tmp_path: Path) -> None:
    rows = (
        {"tokens": [5, 0, 2**31 - 1], "reference": "é"},
        {"text": "Why?", "reference": "B", "subset": "gpqa", "answer": "ANSWER: B"},
    )
    dataset = open_dataset(write(tmp_path, *rows, facts={"is_synthetic": True}))
    first, second = dataset.load([0, 1])
    assert (dataset.count, dataset.facts.is_synthetic, dataset.references) == (2, True, ("é", "B"))
    assert (first.tokens.dtype.name, first.tokens.tolist(), first.text) == ("int32", [5, 0, 2**31 - 1], None)
    assert (second.tokens, second.text, second.subset, second.answer) == (None, "Why?", "gpqa", "ANSWER: B")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"reference": "a"}, "no tokens and no text"),
        ({"reference": "a", "tokens": []}, "at least one"),
        ({"reference": "a", "tokens": [1.5]}, "whole numbers"),
        ({"reference": "a", "tokens": [True, False]}, "whole numbers"),
        ({"reference": "a", "tokens": [-1, 2]}, "from 0"),
        ({"reference": "a", "tokens": [2**31]}, "from 0"),
        ({"reference": "a", "tokens": [[1, 2]]}, "list of whole numbers"),
        *(({"tokens": [1], **other}, "must be texts") for other in (
            {"reference": 7}, {"text": 7}, {"text": []}, {"answer": 0}, {"subset": None})),
        ("[1, 2]", "cannot be used"),
        ("{", "cannot be used"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_sample_is_named(tmp_path: Path, row: object, said: str) -> None:
    with pytest.raises(HarnessError, match=r"line 2 of .*samples.jsonl cannot be used") as raised:
        open_dataset(write(tmp_path, {"tokens": [1], "reference": ""}, row))
    assert said in str(raised.value)


def test_samples_without_a_reference_are_for_performance_runs_only(tmp_path: Path) -> None:
    dataset = open_dataset(write(tmp_path, {"tokens": [1], "reference": ""}, {"tokens": [2]}))
    assert (dataset.count, dataset.without_answers, dataset.load([1])[0].reference) == (2, 1, None)
    with pytest.raises(HarnessError, match=r"1 of 2 samples in .*samples.jsonl have no reference answer") as raised:
        require_answers(dataset, "get,dataset,mlperf-text,_llama3.1-8b")
    assert "cm run script --tags=get,dataset,mlperf-text,_llama3.1-8b." in str(raised.value.hint)
    with pytest.raises(HarnessError, match="which an accuracy run needs"):
        _ = dataset.references
    require_answers(open_dataset(write(tmp_path, {"tokens": [1], "reference": ""})), "get,dataset")


def test_a_folder_without_samples_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"cannot read .*samples.jsonl"):
        open_dataset(tmp_path)
    with pytest.raises(HarnessError, match="contains no sample"):
        open_dataset(write(tmp_path))


def test_a_run_has_the_samples_of_its_test_or_its_mode(tmp_path: Path) -> None:
    facts = {"is_synthetic": True}
    for name in ("performance", "accuracy", "TEST07"):
        write(tmp_path / name, {"tokens": [1], "reference": name})
    (tmp_path / "dataset.json").write_text(json.dumps(facts))
    cases = ((Mode.PERFORMANCE, None, "performance"), (Mode.ACCURACY, None, "accuracy"))
    cases += ((Mode.PERFORMANCE, "TEST07", "TEST07"), (Mode.PERFORMANCE, "TEST09", "performance"))
    for mode, test, part in cases:
        dataset = open_dataset(sample_folder(tmp_path, mode, test))
        assert (dataset.references, dataset.facts.is_synthetic) == ((part,), True)
    plain = write(tmp_path / "plain", {"tokens": [1], "reference": "all"})
    assert all(sample_folder(plain, mode, test) == plain for mode, test, _ in cases)
