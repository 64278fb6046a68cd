"""docs/howto/add-backend.md and the backend scripted: engines that answer prompts."""

import re
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from crowdperf.harness.backends.scripted.engine import Pace, ScriptedEngine, made_answer
from crowdperf.harness.text.engine import Prompt, Request
from crowdperf.rules.record import Sampling

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "add-backend.md"
LIMIT_S = 10.0


class Listener:
    """Keeps what it is told, and by which thread."""

    def __init__(self, count: int) -> None:
        self.told: list[tuple] = []
        self.threads: set[int] = set()
        self._left = threading.Semaphore(0)
        self._count = count

    def first(self, number, tokens) -> None:
        self.threads.add(threading.get_ident())
        self.told.append(("first", number, tokens.tolist()))

    def done(self, number, answer) -> None:
        self.threads.add(threading.get_ident())
        self.told.append(("done", number, answer.tokens.tolist(), answer.finish.value))
        self._left.release()

    def failed(self, number, why) -> None:
        self.told.append(("failed", number, why))
        self._left.release()

    def wait(self) -> None:
        for _ in range(self._count):
            assert self._left.acquire(timeout=LIMIT_S)


def asked(*prompts: list[int]) -> list[Request]:
    return [Request(number=n, prompt=Prompt(tokens=np.array(one, np.int32))) for n, one in enumerate(prompts)]


def test_the_engine_of_the_page_answers_every_request_once() -> None:
    (section,) = [part for part in PAGE.read_text().split("\n## ") if part.startswith("Backends that answer prompts")]
    code = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert code is not None
    module = ModuleType("backwards")
    exec(compile(code[1], str(PAGE), "exec"), module.__dict__)
    listener = Listener(3)
    engine = module.open_engine(type("R", (), {"sampling": Sampling(max_tokens=3)}))
    engine.start(listener)
    engine.submit(asked([1, 2, 3, 4], [5], [6, 7]))
    listener.wait()
    engine.close()
    assert listener.told == [
        ("first", 0, [4]), ("done", 0, [4, 3, 2], "stop"), ("failed", 1, "the prompt has fewer than 2 tokens"),
        ("first", 2, [7]), ("done", 2, [7, 6], "stop"),
    ]  # fmt: skip
    assert not engine.thread.is_alive()


def test_the_scripted_engine_tells_first_tokens_before_answers_from_one_thread_few_at_once() -> None:
    engine = ScriptedEngine(Sampling(max_tokens=4), 2, Pace(first_s=0.001, each_s=0.001))
    listener = Listener(5)
    engine.start(listener)
    engine.submit(asked(*([n, n + 1] for n in range(5))))
    listener.wait()
    engine.close()
    assert len(listener.threads) == 1
    begun: set[int] = set()
    for call, number, *_ in listener.told:
        (begun.add if call == "first" else begun.remove)(number)
        assert len(begun) <= 2
    assert not begun and len(listener.told) == 10


@pytest.mark.parametrize(
    ("prompt", "sampling", "expected"),
    [
        (Prompt(expected=np.arange(9, dtype=np.int32)), Sampling(max_tokens=4), [0, 1, 2, 3]),
        (Prompt(tokens=np.array([5], np.int32)), Sampling(max_tokens=3, is_end_ignored=True), [5, 5, 5]),
        (Prompt(text="ab"), Sampling(max_tokens=2), [97, 98]),
        (Prompt(messages=({"role": "user", "content": "c"},)), Sampling(max_tokens=2), [99, 99]),
        (Prompt(tokens=np.array([], np.int32)), Sampling(max_tokens=2), [0, 0]),
    ],
)
def test_scripted_answers_are_the_data_sets_or_made_of_the_prompt(prompt, sampling, expected) -> None:
    assert made_answer(prompt, sampling).tolist() == expected


def test_scripted_answers_differ_in_length_and_are_always_the_same_for_a_prompt() -> None:
    prompts = [Prompt(tokens=np.array([n, 1], np.int32)) for n in range(40)]
    lengths = [len(made_answer(prompt, Sampling(max_tokens=16, min_tokens=3))) for prompt in prompts]
    assert lengths == [len(made_answer(prompt, Sampling(max_tokens=16, min_tokens=3))) for prompt in prompts]
    assert len(set(lengths)) > 5 and min(lengths) >= 3 and max(lengths) <= 16
