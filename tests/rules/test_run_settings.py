"""Inputs of a run in run.json and back, and the numbers of GPUs."""

import pytest

from crowdperf.rules.run_settings import RunSetting, as_inputs, as_json, gpus_problem

SETTINGS = (RunSetting(name="gpus"), RunSetting(name="threads"), RunSetting(name="bits"))


def test_inputs_come_back_as_they_were_given() -> None:
    content = as_json(SETTINGS, {"gpus": (2, 0, 2), "threads": 4, "bits": None})
    assert content == {"gpus": [0, 2], "threads": 4, "bits": None}
    assert as_inputs(SETTINGS, content) == {"gpus": "0,2", "threads": 4, "bits": None}


@pytest.mark.parametrize(
    ("gpus", "device", "problem"),
    [
        ((), "cpu", ""),
        ((0, 2), "cuda", ""),
        ((0,), "cpu", "device cpu has none (give --device=cuda)"),
        ((1, 1), "cuda", "allowed: numbers from 0, separated by commas, none twice"),
    ],
)
def test_numbers_of_gpus_need_gpus_and_come_once(gpus: tuple[int, ...], device: str, problem: str) -> None:
    assert gpus_problem(gpus, device, "give --device=cuda") == problem
