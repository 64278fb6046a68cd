"""The paced backend: the answers of onnxruntime, no sooner than a sample's time allows."""

import time
from types import SimpleNamespace

import numpy as np

from crowdperf.harness.backends.paced import backend as paced
from crowdperf.rules.backends import STAND_IN_BACKENDS


class _Fast:
    """Stands in for onnxruntime: answers at once."""

    def instance(self, number: int):
        return lambda inputs: {"twice": inputs["image"] * 2}

    def versions(self):
        return {"onnxruntime": "1"}

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_answers_are_the_network_s_and_come_when_their_time_has_passed(monkeypatch):
    opened = _Fast()
    monkeypatch.setattr(paced, "open_onnxruntime", lambda request: opened)
    backend = paced.open_backend(SimpleNamespace(network=SimpleNamespace(inputs=[SimpleNamespace(name="image")])))
    infer = backend.instance(0)
    for count in (1, 8):
        begun_s = time.perf_counter()
        answer = infer({"image": np.ones((count, 2))})
        assert time.perf_counter() - begun_s >= count * paced.SECONDS_PER_SAMPLE
        assert answer["twice"].tolist() == [[2.0, 2.0]] * count
    assert backend.versions() == {"onnxruntime": "1"} and not opened.is_closed
    backend.close()
    assert opened.is_closed


def test_it_is_known_as_a_stand_in():
    assert "paced" in STAND_IN_BACKENDS
