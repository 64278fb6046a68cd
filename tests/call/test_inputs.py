"""crowdperf.call.inputs: the inputs of a call are taken one by one, and everything that is wrong is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowdperf.call.inputs import Inputs
from crowdperf.rules.names import Mode, parse_mode

HERE = Path("/user")
KEYS = {"device": "CM_DEVICE", "threads": "CM_THREADS", "rate": "CM_RATE", "again": "CM_AGAIN", "run_mode": "CM_MODE",
        "folder": "CM_FOLDER", "gpus": "CM_GPUS", "simulate": "CM_SIMULATE"}  # fmt: skip


def inputs(**texts: object) -> Inputs:
    return Inputs({KEYS[name]: value for name, value in texts.items()}, HERE, KEYS)


def test_what_is_right_is_read_and_what_is_not_given_is_none() -> None:
    given = inputs(device=" GPU ", threads="8", rate="0.5", again="On", folder="a/b", gpus="1, 0")
    assert given.one_of("device", ("cpu", "Cuda"), {"gpu": "cuda"}) == "Cuda"
    assert (given.whole_number("threads"), given.positive_number("rate")) == (8, 0.5)
    assert (given.truth("again"), given.path("folder")) == (True, HERE / "a" / "b")
    assert given.gpus("gpus", "cuda", "take _cuda") == [1, 0]
    nothing = inputs(threads=None, device="")
    assert (nothing.text("device", "cpu"), nothing.whole_number("threads"), nothing.path("folder")) == (
        "cpu",
        None,
        None,
    )
    assert nothing.truth("again", otherwise=True)
    assert inputs(threads=4, device="").given(("device", "threads")) == {"threads": "4"}
    assert given.problems == nothing.problems == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("threads", "0", "--threads: found '0'; allowed: a whole number from 1, with at most 18 digits"),
        ("rate", "nan", "--rate: found 'nan'; allowed: a number above 0"),
        ("again", "perhaps", "--again: found 'perhaps'; allowed: yes, true, on, 1, no, false, off, 0"),
        ("device", "CPV", "--device: unknown device 'CPV' (did you mean cpu?); known: cpu, cuda"),
        ("run_mode", "x", "--run_mode: unknown mode 'x'; known: performance, accuracy"),
        ("gpus", "0", "--gpus: found '0'; device cpu has none (take _cuda)"),
        ("simulate", "x", "--simulate: found 'x' with backend onnxruntime; allowed: neuron with backend neuron"),
    ],
    ids=lambda value: value.split(":")[0],
)
def test_what_is_wrong_is_named_with_what_is_allowed(name: str, text: str, words: str) -> None:
    given = inputs(**{name: text})
    assert given.whole_number("threads") is None
    assert given.positive_number("rate") is None
    assert given.truth("again") is False
    assert given.parsed("run_mode", lambda text: parse_mode(text or "performance"), Mode.ACCURACY) in Mode
    given.gpus("gpus", "cpu", "take _cuda")
    assert given.simulated("simulate", "onnxruntime", "cpu") == ("onnxruntime", "cpu")
    if name == "device":
        assert given.one_of("device", ("cpu", "cuda")) == "cpv"
    assert given.problems == [words]


def test_without_input_mapping_the_names_are_keys() -> None:
    given = Inputs({"CM_THREADS": "x", "CM_TEST": "y"}, HERE, start="")
    given.whole_number("CM_THREADS")
    given.one_of("CM_TEST", ("TEST01",), kind="compliance test")
    assert given.problems == [
        "CM_THREADS: found 'x'; allowed: a whole number from 1, with at most 18 digits",
        "CM_TEST: unknown compliance test 'y'; known: TEST01",
    ]
