"""Shared by the tests of engines that answer prompts: a tiny model, what opens an engine, and who is told."""

import json
import threading
from pathlib import Path

import numpy as np

from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.text.engine import EngineRequest, Prompt, Request
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling
from crowdperf.standins import tiny_llama

SIZES = {"vocab": 300, "hidden": 32, "layers": 2, "heads": 4, "kv_heads": 2}
LIMIT_S = 60.0


def tiny_model(folder: Path, **config: object) -> Path:
    """Make a tiny Llama in `folder`, with other values in config.json; return its model.json."""
    info = tiny_llama.make(folder, **SIZES, seed=3)
    path = folder / "config.json"
    if config:
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return info


def engine_request(info: Path, sampling: Sampling | None = None, **changes: object) -> EngineRequest:
    values = {
        "facts": read_model_facts(None, info),
        "sampling": sampling or Sampling(max_tokens=8),
        "text": TextRequest(max_in_flight=4),
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "cores": (),
        "longest_prompt": 40,
        "folder": info.parent,
    }
    return EngineRequest(**{**values, **changes})


def prompts_of(count: int, seed: int = 5) -> list[np.ndarray]:
    """Return prompts of 1 to 40 tokens."""
    generator = np.random.default_rng(seed)
    return [generator.integers(3, SIZES["vocab"], generator.integers(1, 41)).astype(np.int32) for _ in range(count)]


class Told:
    """A listener that keeps what it is told, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.answers: dict[int, object] = {}
        self.whys: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.errors: list[BaseException] = []
        self._changed = threading.Condition()

    def first(self, number, tokens):
        assert len(tokens) >= 1
        self._note("first", number)

    def done(self, number, answer):
        self.answers[number] = answer
        self._note("done", number)

    def failed(self, number, why, kind="other"):
        self.whys[number] = why
        self.kinds[number] = kind
        self._note("failed", number)

    def broken(self, error):
        self.errors.append(error)
        self._note("broken", -1)

    def _note(self, word, number):
        with self._changed:
            self.events.append((word, number))
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        """Wait until `count` requests are done or failed; fails where the engine breaks or takes too long."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.errors or self.ended >= count, LIMIT_S), self.events[-5:]
        assert not self.errors, self.errors

    @property
    def ended(self) -> int:
        return sum(word in ("done", "failed") for word, _ in self.events)


def answers_of(engine, prompts: list[np.ndarray]) -> list[list[int]]:
    """Answer all prompts at once; return the tokens of each."""
    told = Told()
    engine.start(told)
    engine.submit([Request(number=number, prompt=Prompt(tokens=one)) for number, one in enumerate(prompts)])
    told.wait(len(prompts))
    assert not told.whys
    return [told.answers[number].tokens.tolist() for number in range(len(prompts))]
