"""Asks a server of the tests (stub_openai.py) by the backend endpoint, without LoadGen."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from stub_openai import Stub, answer_tokens, running_stub, word, write_tokenizer

from crowdperf.harness.backends.endpoint.engine import EndpointEngine
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.text.engine import Answer, EngineRequest, Finish, Prompt, Request, Tokens
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.rules.prompt_settings import AccessSettings
from crowdperf.rules.record import Sampling

SECRET = "sk-very-secret-key"
NUMBERS = itertools.count()
GREEDY = Sampling(max_tokens=12, top_k=1, seed=42)


class Listening:
    """Keeps what it is told of `count` requests."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.firsts: dict[int, Tokens] = {}
        self.answers: dict[int, Answer] = {}
        self.failures: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self.error: BaseException | None = None
        self._ended = threading.Event()

    def first(self, number: int, tokens: Tokens) -> None:
        assert number not in self.firsts and number not in self.answers and number not in self.failures
        self.firsts[number] = tokens

    def done(self, number: int, answer: Answer) -> None:
        self._note(self.answers, number, answer)

    def failed(self, number: int, why: str, kind: str = "other") -> None:
        self.kinds[number] = kind
        self._note(self.failures, number, why)

    def _note(self, kind: dict, number: int, what: object) -> None:
        assert number not in self.answers and number not in self.failures
        kind[number] = what
        if len(self.answers) + len(self.failures) == self.count:
            self._ended.set()

    def broken(self, error: BaseException) -> None:
        self.error = error

    def wait(self) -> Listening:
        """Return when every request has been answered or has failed."""
        assert self._ended.wait(30), f"{len(self.answers)} answers, {len(self.failures)} failures, {self.error}"
        return self


@pytest.fixture(scope="module", name="server")
def server_fixture() -> Iterator[tuple[Stub, str]]:
    with running_stub() as found:
        yield found


@pytest.fixture(scope="module", name="folder")
def folder_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("model"))


def asked(
    url: str, folder: Path | None, sampling: Sampling = GREEDY, probes: tuple = (), **text: object
) -> EngineRequest:
    """A request to open the engine at a URL; each has a path of its own, so that the stub counts apart."""
    text.setdefault("client_processes", 1)
    url = url.replace("/v1", f",n{next(NUMBERS)}/v1") if "/v1" in url and url.count("/") > 3 else url
    names = ("model", "api", *AccessSettings.INPUTS)
    endpoint = Endpoint(url=url, **{name: text.pop(name) for name in names if name in text})  # type: ignore[arg-type]
    return EngineRequest(
        facts=ModelFacts(folder=folder), sampling=sampling, text=TextRequest(endpoint=endpoint, **text),  # type: ignore[arg-type]
        precision="fp32", device="cpu", threads=1, cores=(), longest_prompt=100, folder=Path(), probes=probes,
    )  # fmt: skip


def prompt(number: int) -> Prompt:
    ids = [number, 2, 3]
    text = " ".join(map(word, ids))
    return Prompt(tokens=np.array(ids, np.int32), text=text, messages=({"role": "user", "content": text},))


def run(engine: EndpointEngine, count: int, start: int = 0) -> Listening:
    """Ask `count` prompts and wait for what becomes of them."""
    listener = Listening(count)
    engine.start(listener)
    engine.submit([Request(number=start + place, prompt=prompt(start + place)) for place in range(count)])
    return listener.wait()


def assert_right(listener: Listening, count: int, length: int = 12) -> None:
    assert not listener.failures and listener.error is None and len(listener.answers) == count
    for number, answer in listener.answers.items():
        expected = answer_tokens([number, 2, 3], length)
        assert answer.tokens.dtype == np.int32 and answer.tokens.tolist() == expected
        assert answer.text == "".join(f" {word(token)}" for token in expected)
        assert listener.firsts[number].tolist() == expected[:1]
        assert answer.finish is (Finish.LENGTH if length == 12 else Finish.STOP) and answer.skipped == 0
