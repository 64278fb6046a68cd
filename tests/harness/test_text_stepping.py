"""crowdperf.harness.text.step_driver: requests in places, and how long they may take, with a Steps that computes
nothing."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from text_engines import Told

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.text.engine import EngineRequest, Finish, Prompt, Request, Tokens
from crowdperf.harness.text.request import TextRequest
from crowdperf.harness.text.step_driver import Progress, StepEngine
from crowdperf.rules.record import Sampling


class IdleSteps:
    """Gives every request a token a step, for ever, and tells once more of what was dropped."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.dropped: list[int] = []

    def enter(self) -> None:
        pass

    def add(self, number: int, tokens: Tokens) -> str:
        self.numbers.append(number)
        return ""

    def step(self) -> Sequence[Progress]:
        time.sleep(0.002)
        return [Progress(number, (7,)) for number in (*self.numbers, *self.dropped)]

    def drop(self, number: int) -> None:
        self.numbers.remove(number)
        self.dropped.append(number)

    def close(self) -> None:
        pass


def engine_of(steps: IdleSteps, timeout_s: float) -> StepEngine:
    request = EngineRequest(
        facts=ModelFacts(), sampling=Sampling(max_tokens=8), text=TextRequest(max_in_flight=1, timeout_s=timeout_s),
        precision="fp32", device="cpu", threads=1, cores=(), longest_prompt=8, folder=Path(),
    )  # fmt: skip
    return StepEngine(steps, request, {}, {})


def requests(count: int, issued_s: float | None) -> list[Request]:
    prompt = Prompt(tokens=np.array([1], np.int32))
    return [Request(number=number, prompt=prompt, issued_s=issued_s) for number in range(count)]


def test_requests_that_wait_for_a_place_time_out_as_those_that_are_worked_on() -> None:
    """The limit counts from LoadGen's issue: 5 requests share one place, and none is ever done."""
    engine, told = engine_of(IdleSteps(), timeout_s=0.1), Told()
    engine.start(told)
    engine.submit(requests(5, time.monotonic()))
    told.wait(5)
    engine.close()
    assert sorted(told.whys) == [0, 1, 2, 3, 4]
    assert "no complete answer within 0.1 s" in told.whys[0] and "waited longer than 0.1 s" in told.whys[4]


def test_requests_that_are_all_issued_at_once_have_their_limit_from_the_start_of_work() -> None:
    engine, told = engine_of(IdleSteps(), timeout_s=0.1), Told()
    engine.start(told)
    engine.submit(requests(3, None))
    told.wait(3)
    engine.close()
    assert all("no complete answer" in why for why in told.whys.values())


def test_what_is_told_of_a_dropped_request_breaks_nothing() -> None:
    steps = IdleSteps()
    engine, told = engine_of(steps, timeout_s=0.1), Told()
    engine.start(told)
    engine.submit(requests(2, None))
    told.wait(2)  # the second one is worked on while the steps still tell of the first
    engine.close()
    assert steps.dropped == [0, 1] and not told.errors


def test_the_first_tokens_are_told_once_however_many_steps_follow() -> None:
    class Several(IdleSteps):
        def step(self) -> Sequence[Progress]:
            numbers, self.numbers = self.numbers, []
            return [Progress(one, (4,), finish) for one in numbers for finish in (None, None, Finish.STOP)]

    engine, told = engine_of(Several(), timeout_s=60.0), Told()
    engine.start(told)
    engine.submit(requests(2, None))
    told.wait(2)
    engine.close()
    assert sorted(told.events) == [("done", 0), ("done", 1), ("first", 0), ("first", 1)]


def test_a_finished_answer_has_all_its_tokens() -> None:
    class Three(IdleSteps):
        def step(self) -> Sequence[Progress]:
            numbers, self.numbers = self.numbers, []
            return [Progress(number, (4, 5, 6), Finish.STOP) for number in numbers]

    engine, told = engine_of(Three(), timeout_s=60.0), Told()
    engine.start(told)
    engine.submit(requests(3, None))
    told.wait(3)
    engine.close()
    assert [told.answers[number].tokens.tolist() for number in range(3)] == [[4, 5, 6]] * 3  # type: ignore[attr-defined]
