"""Prompts of the user: the data set that the harness opens, and the answers that LoadGen logs."""

import json
from pathlib import Path
from typing import Any

import pytest
from harness_libraries import need

need("numpy")
import numpy as np  # noqa: E402

from crowdperf.benchmarks.own_prompts.dataset import open_dataset  # noqa: E402
from crowdperf.benchmarks.own_prompts.record import RECORD  # noqa: E402
from crowdperf.benchmarks.own_prompts.text import open_text  # noqa: E402
from crowdperf.harness.base.errors import HarnessError  # noqa: E402
from crowdperf.harness.base.model_facts import ModelFacts  # noqa: E402
from crowdperf.harness.text.engine import Answer, Finish  # noqa: E402

USER = {"role": "user", "content": "Hi"}
FACTS = {"is_synthetic": False, "max_tokens": 9, "has_fixed_length": False, "limits": None}


def folder_with(folder: Path, rows: list[Any], **facts: Any) -> Path:
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "dataset.json").write_text(json.dumps({**FACTS, **facts}), encoding="utf-8")
    return folder


def test_prompts_have_every_form_that_they_can_have(tmp_path: Path) -> None:
    system = {"role": "system", "content": "Be brief"}
    dataset = open_dataset(folder_with(tmp_path, [{"text": "a"}, {"messages": [USER]}, {"messages": [system, USER]}]))
    prompts = open_text(ModelFacts()).prompts(dataset.load([2, 0, 1]))
    assert [one.text for one in prompts] == [None, "a", "Hi"]
    assert [one.messages for one in prompts] == [(system, USER), ({"role": "user", "content": "a"},), (USER,)]
    assert all(one.tokens is None for one in prompts)


def test_the_user_decides_length_and_limits(tmp_path: Path) -> None:
    limits = {"ttft_ms": 5.0, "tpot_ms": 2.0}
    found = open_dataset(
        folder_with(tmp_path, [{"text": "a"}], max_tokens=7, has_fixed_length=True, limits=limits)
    ).generation
    assert (found.sampling.max_tokens, found.sampling.min_tokens, found.sampling.is_end_ignored) == (7, 7, True)
    assert found.server is not None
    assert (found.server.ttft_ms, found.server.tpot_ms, found.server.percentile) == (5.0, 2.0, 90)
    usual = open_dataset(folder_with(tmp_path, [{"text": "a"}])).generation
    assert (usual.sampling.max_tokens, usual.sampling.is_end_ignored) == (9, False)
    assert RECORD.generation is not None
    assert usual.server == RECORD.generation.server


@pytest.mark.parametrize("facts", [{"max_tokens": "x"}, {"limits": {"e2e_ms": 1}}, {"limits": 3}])
def test_damaged_facts_are_refused(tmp_path: Path, facts: dict[str, Any]) -> None:
    with pytest.raises(HarnessError, match="cannot read"):
        open_dataset(folder_with(tmp_path, [{"text": "a"}], **facts))


@pytest.mark.parametrize(
    ("text", "logged"), [("né", "né".encode()), ("", b" "), (None, b"\x01\x00\x00\x00\x02\x00\x00\x00")]
)
def test_an_answer_is_logged_as_text(text: str | None, logged: bytes) -> None:
    answer = Answer(tokens=np.array([1, 2], dtype=np.int32), finish=Finish.STOP, text=text)
    assert open_text(ModelFacts()).response(answer).tobytes() == logged


def test_there_is_nothing_to_score(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no reference answers"):
        open_text(ModelFacts()).score([], open_dataset(folder_with(tmp_path, [{"text": "a"}])))
