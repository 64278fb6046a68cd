"""crowdperf.harness.runner.text_sut and tally: what LoadGen is told of requests, however an engine behaves."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.runner.text_sut import PromptLibrary, TextSut, TextWork
from crowdperf.harness.text.engine import Answer, Finish, Prompt, Request
from crowdperf.harness.text.tally import Ended, Tally, bar_width, lengths_record, percentile
from crowdperf.harness.text.tokenizer import end_tokens
from crowdperf.harness.watch.silence import Silence, silence_ends

COUNT = 10
IDS = np.array([7, 8, 9], np.int32)


def answer(*tokens: int, skipped: int = 0) -> Answer:
    return Answer(tokens=np.array(tokens, np.int32), finish=Finish.STOP, skipped=skipped)


class FakeLoadGen:
    """Keeps what it is told: (call, id, the numbers that lie at the address, tokens said)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, list[int], int]] = []
        self.sink = ResponseSink(lambda *values: values, self.complete, self.first)

    def _note(self, call: str, responses: Sequence[tuple[int, ...]]) -> None:
        for identifier, address, size, *tokens in responses:
            data = np.frombuffer(ctypes.string_at(address, size), np.int32).tolist()
            self.told.append((call, identifier, data, *(tokens or [-1])))

    def complete(self, responses: Sequence[tuple[int, ...]]) -> None:
        self._note("done", responses)

    def first(self, responses: Sequence[tuple[int, ...]]) -> None:
        self._note("first", responses)


class FakeEngine:
    """Hands each request to `then`, at once or when the test says so."""

    def __init__(self, then: Callable[[FakeEngine, Request], None]) -> None:
        self.then = then
        self.requests: list[Request] = []
        self.settings: dict[str, object] = {}

    def record(self) -> dict[str, object]:
        return self.settings

    def start(self, listener: TextSut) -> None:
        self.listener = listener

    def submit(self, requests: Sequence[Request]) -> None:
        self.requests += requests
        for request in requests:
            self.then(self, request)


def sut_of(
    then: Callable[[FakeEngine, Request], None],
    *,
    has_first: bool = True,
    ends: tuple[int, ...] = (),
    padding: int | None = None,
    is_paced: bool = False,
) -> SimpleNamespace:
    loadgen, engine = FakeLoadGen(), FakeEngine(then)
    raw = SimpleNamespace(count=COUNT, load=list)
    library = PromptLibrary(raw, lambda rows: [Prompt(tokens=np.arange(row + 1, dtype=np.int32)) for row in rows])
    library.load(range(COUNT))
    work = TextWork(
        engine=engine, library=library, response_of=lambda one: one.tokens, sink=loadgen.sink, has_first=has_first,
        failures=Failures(grace_s=60.0), ends=ends, padding=padding, is_paced=is_paced,
    )  # fmt: skip
    sut = TextSut(work)
    engine.start(sut)
    return SimpleNamespace(sut=sut, work=work, engine=engine, told=loadgen.told)


def streams(engine: FakeEngine, request: Request) -> None:
    engine.listener.first(request.number, IDS[:1])
    engine.listener.done(request.number, answer(*IDS))


def problems(made: SimpleNamespace, *, has_token_latencies: bool = True) -> str:
    made.work.failures.settle()
    return "; ".join(made.work.tally.problems(has_token_latencies=has_token_latencies))


def test_a_streamed_answer_becomes_a_first_token_and_a_completion_with_the_number_of_tokens() -> None:
    made = sut_of(streams)
    made.sut.issue([100, 101], [3, 4])
    assert made.told == [("first", 100, [7], -1), ("done", 100, [7, 8, 9], 3),
                         ("first", 101, [7], -1), ("done", 101, [7, 8, 9], 3)]  # fmt: skip
    tally = made.work.tally
    assert (tally.issued, tally.completed, tally.failed, tally.in_flight) == (2, 2, 0, 0)
    assert (tally.tokens_in, tally.tokens_out, made.work.counts.done) == (4 + 5, 6, 2)
    assert problems(made) == ""


def test_offline_gets_no_first_tokens() -> None:
    made = sut_of(streams, has_first=False)
    made.sut.issue([1, 2], [0, 1])
    assert [call for call, *_ in made.told] == ["done", "done"]
    assert made.work.counts.expected == 2


def test_a_query_of_multistream_is_not_the_whole_run() -> None:
    made = sut_of(streams, is_paced=True)
    made.sut.issue(list(range(8)), list(range(8)))
    assert (made.work.counts.expected, made.work.counts.done) == (0, 8)
    assert problems(made) == ""


def test_answers_that_come_whole_in_one_piece_make_the_run_invalid_where_most_do() -> None:
    def at_once(engine: FakeEngine, request: Request) -> None:
        engine.listener.first(request.number, IDS if request.number % 3 else IDS[:1])
        engine.listener.done(request.number, answer(*IDS))

    made = sut_of(at_once)
    made.sut.issue(list(range(9)), list(range(9)))
    assert problems(made).startswith("6 of 9 answers arrived in one piece")
    assert made.work.tally.record()["mean_first_tokens"] == (6 * 3 + 3) / 9
    made = sut_of(at_once)
    made.sut.issue([0], [0])
    made.sut.issue([1], [0])
    assert problems(made) == ""
    made = sut_of(at_once, has_first=False)
    made.sut.issue(list(range(9)), list(range(9)))
    assert problems(made) == ""


def test_a_first_token_that_the_engine_never_tells_is_told_before_the_end_and_makes_the_run_invalid() -> None:
    made = sut_of(lambda engine, request: engine.listener.done(request.number, answer(5, 6)))
    made.sut.issue([1], [0])
    assert made.told == [("first", 1, [5], -1), ("done", 1, [5, 6], 2)]
    assert problems(made) == "the engine gave the first token of 1 answer only with the last"


@pytest.mark.parametrize("tokens", [(), (5,)])
def test_the_number_of_tokens_is_never_made_up(tokens: tuple[int, ...]) -> None:
    made = sut_of(lambda engine, request: engine.listener.done(request.number, answer(*tokens)))
    made.sut.issue([1], [0])
    assert made.told[-1] == ("done", 1, list(tokens), len(tokens))
    assert "1 answer had fewer than 2 tokens" in problems(made)
    assert problems(made, has_token_latencies=False) == ""


def test_failed_requests_are_completed_with_no_tokens_and_the_first_reasons_are_said() -> None:
    def fail(engine: FakeEngine, request: Request) -> None:
        engine.listener.failed(request.number, f"HTTP 50{request.number // 2}")

    made = sut_of(fail)
    made.sut.issue(list(range(9)), list(range(9)))
    assert made.told[:2] == [("first", 0, [], -1), ("done", 0, [], 0)]
    assert len(made.told) == 18
    words = "9 of 9 requests got no answer: HTTP 500 (2 times); HTTP 501 (2 times); HTTP 502 (2 times)"
    assert problems(made) == words
    assert made.work.tally.record()["failures"] == {"HTTP 500": 2, "HTTP 501": 2, "HTTP 502": 2}


def test_a_request_that_fails_in_the_middle_of_its_answer_has_one_first_token() -> None:
    def cut(engine: FakeEngine, request: Request) -> None:
        engine.listener.first(request.number, IDS[:1])
        engine.listener.failed(request.number, "the server closed the connection")

    made = sut_of(cut)
    made.sut.issue([1], [0])
    assert made.told == [("first", 1, [7], -1), ("done", 1, [], 0)]


@pytest.mark.parametrize("again", ["first", "done", "failed"])
def test_what_is_told_of_a_request_that_is_over_never_reaches_loadgen(again: str) -> None:
    made = sut_of(streams)
    made.sut.issue([1], [0])
    told = {"first": IDS, "done": answer(1, 2), "failed": "late"}
    getattr(made.sut, again)(0, told[again])
    assert len(made.told) == 2
    assert problems(made) == "the engine reported 1 times on a request that was not in flight"


def test_pieces_of_a_stream_that_could_not_be_read_make_the_run_invalid() -> None:
    made = sut_of(
        lambda engine, request: engine.listener.done(request.number, answer(1, 2, skipped=3)), has_first=False
    )
    made.sut.issue([1], [0])
    assert problems(made) == "3 pieces of the answers' streams could not be read"


def test_a_broken_engine_ends_everything_in_flight_and_what_is_asked_later() -> None:
    made = sut_of(lambda engine, request: None)
    made.sut.issue([1, 2], [0, 1])
    assert made.told == []
    made.sut.broken(HarnessError("the server died"))
    made.sut.issue([3], [2])
    assert [(call, identifier) for call, identifier, *_ in made.told if call == "done"] == [
        ("done", 2), ("done", 1), ("done", 3)
    ]  # fmt: skip
    assert str(made.work.failures.first) == "the server died"
    assert len(made.engine.requests) == 2
    made.work.failures.settle()


def test_an_engine_that_raises_ends_the_run() -> None:
    def raises(engine: FakeEngine, request: Request) -> None:
        raise ValueError("planned fault")

    made = sut_of(raises)
    made.sut.issue([1], [0])
    assert [call for call, *_ in made.told] == ["first", "done"]
    assert str(made.work.failures.first) == "planned fault"
    made.work.failures.settle()


def test_an_engine_that_falls_silent_ends_the_run() -> None:
    made = sut_of(lambda engine, request: None)
    with silence_ends(made.work.counts, 0.05, made.sut.broken):
        made.sut.issue([1], [0])
        for _ in range(200):
            if made.told:
                break
            time.sleep(0.01)
    assert "no response for 0.05 s while 1 sample waited" in str(made.work.failures.first)
    made.work.failures.settle()


def test_a_first_token_is_a_sign_of_life_and_a_query_that_is_asked_is_none() -> None:
    made = sut_of(lambda engine, request: None)
    silence = Silence(made.work.counts)
    made.sut.issue([1], [0])
    assert (silence.look(10.0), silence.look(13.0)) == (0.0, 3.0)
    made.sut.issue([2], [1])  # Server goes on asking an engine that hangs
    assert silence.look(14.0) == 4.0
    made.sut.first(0, IDS[:1])
    assert (silence.look(15.0), silence.look(17.0)) == (0.0, 2.0)
    made.sut.done(0, answer(*IDS))
    made.sut.failed(1, "planned")
    assert (silence.look(18.0), silence.look(99.0)) == (0.0, 0.0)


def test_a_query_whose_issue_fails_in_the_middle_leaves_no_sample_without_an_answer() -> None:
    made = sut_of(streams)
    made.work.library.load([0, 1])
    made.sut.issue([100, 101, 102], [0, 1, 3])  # 3 is not in memory
    assert sorted(identifier for call, identifier, *_ in made.told if call == "done") == [100, 101, 102]
    assert not made.engine.requests and str(made.work.failures.first).startswith("sample 3 was requested but is")
    made.work.failures.settle()


@pytest.mark.parametrize(
    ("tokens", "ends", "counted"),
    [
        ((5, 6, 2, *[2] * 112), (2,), (5, 6, 2)),  # an answer padded with its end token
        ((5, 9, 7, 2), (2, 9), (5, 9)),  # the first of several end tokens
        ((5, 6, 2), (2,), (5, 6, 2)),
        ((5, 6, 2, 2), (), (5, 6, 2, 2)),  # the end is ignored
    ],
)
def test_tokens_behind_the_end_token_do_not_count_whatever_the_engine(
    tokens: tuple[int, ...], ends: tuple[int, ...], counted: tuple[int, ...]
) -> None:
    made = sut_of(lambda engine, request: engine.listener.done(request.number, answer(*tokens)), ends=ends)
    made.sut.issue([1], [0])
    assert made.told[-1] == ("done", 1, list(counted), len(counted))
    record, behind = made.work.tally.record(), len(tokens) - len(counted)
    assert (record["tokens_out"], record["tokens_behind_end"]) == (len(counted), behind)
    assert record["padded_answers"] == (behind > 0)
    made.work.failures.settle()


@pytest.mark.parametrize(
    ("tokens", "counted"),
    [((5, 6, 9, 9, 9), (5, 6)), ((5, 9, 6), (5, 9, 6)), ((5, 2, 9, 9), (5, 2)), ((9, 9), ())],
)
def test_padding_that_ends_an_answer_does_not_count(tokens: tuple[int, ...], counted: tuple[int, ...]) -> None:
    made = sut_of(lambda engine, request: engine.listener.done(request.number, answer(*tokens)), ends=(2,), padding=9)
    made.sut.issue([1], [0])
    assert made.told[-1] == ("done", 1, list(counted), len(counted))
    assert made.work.tally.record()["tokens_behind_end"] == len(tokens) - len(counted)
    made.work.failures.settle()


def test_the_first_tokens_end_with_the_end_token_too() -> None:
    def at_once(engine: FakeEngine, request: Request) -> None:
        engine.listener.first(request.number, np.array([5, 2, 2, 2], np.int32))
        engine.listener.done(request.number, answer(5, 2, 2, 2))

    made = sut_of(at_once, ends=(2,))
    made.sut.issue([1], [0])
    assert made.told == [("first", 1, [5, 2], -1), ("done", 1, [5, 2], 2)]
    made.work.failures.settle()


def test_an_answer_counts_no_more_tokens_than_its_engine_says() -> None:
    said = Answer(tokens=np.array([5, 6, 7, 8], np.int32), finish=Finish.STOP, counted=3)
    made = sut_of(lambda engine, request: engine.listener.done(request.number, said))
    made.sut.issue([1], [0])
    assert made.told[-1] == ("done", 1, [5, 6, 7, 8], 3) and made.work.tally.tokens_out == 3
    made.work.failures.settle()


def test_failed_requests_are_counted_by_kind() -> None:
    def fail(engine: FakeEngine, request: Request) -> None:
        engine.listener.failed(request.number, "no", *(["status 500"] if request.number % 3 else []))

    made = sut_of(fail)
    made.sut.issue(list(range(7)), list(range(7)))
    assert made.work.tally.record()["failure_kinds"] == {"other": 3, "status 500": 4}
    made.work.failures.settle()


def test_the_process_is_not_ended_while_the_log_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    before = set(threading.enumerate())
    monkeypatch.setattr("crowdperf.harness.base.failures.os._exit", codes.append)
    failures = Failures(grace_s=60.0)
    failures.log = tmp_path / "mlperf_log_accuracy.json"
    failures.record(HarnessError("planned fault"))
    for length in (100, 200):
        failures.log.write_text("x" * length)
        failures._end_process()  # as the watchdog does when the time is over
        assert codes == []
    failures._end_process()
    assert codes == [1]
    failures.settle()
    failures._end_process()
    assert codes == [1], "a watchdog that was about to end the process when LoadGen ended does not"
    left = set(threading.enumerate()) - before
    assert not [one for one in left if isinstance(one, threading.Timer) and not one.finished.is_set()]


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"config.json": {"eos_token_id": 2}}, (2,)),
        ({"config.json": {"eos_token_id": 2}, "generation_config.json": {"eos_token_id": [7, 9]}}, (7, 9)),
        ({"config.json": {"eos_token_id": 2}, "generation_config.json": {}}, (2,)),
        ({"genai_config.json": {"model": {"eos_token_id": 5}}}, (5,)),
        (
            {
                "tokenizer_config.json": {"eos_token": "<e>"},
                "tokenizer.json": {"added_tokens": [{"id": 3, "content": "<s>"}, {"id": 4, "content": "<e>"}]},
            },
            (4,),
        ),
        ({"tokenizer_config.json": {"eos_token": {"content": "<e>"}}}, ()),
        ({}, ()),
    ],
)
def test_the_end_tokens_are_those_that_the_models_files_name(tmp_path: Path, files: dict, ends: tuple) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert end_tokens(tmp_path) == ends


@pytest.mark.parametrize("wrong", ["2", -1, [1, None], True])
def test_an_end_token_that_is_no_number_is_an_error(tmp_path: Path, wrong: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": wrong}))
    with pytest.raises(HarnessError, match="allowed: a number, or a list of numbers"):
        end_tokens(tmp_path)
    assert end_tokens(None) == ()


def test_lost_requests_are_counted() -> None:
    tally = Tally()
    tally.issue(3, 30, 0)
    tally.complete(answer(1, 2), Ended())
    assert tally.problems(has_token_latencies=True) == ("of 3 requests 1 were answered and 0 failed",)


@pytest.mark.parametrize(("longest", "width"), [(1, 1), (19, 1), (20, 2), (39, 2), (40, 5), (128, 10), (10_240, 1000)])
def test_a_histogram_has_at_most_twenty_bars(longest: int, width: int) -> None:
    assert bar_width(longest) == width
    assert longest // width < 20


def test_lengths_are_described_by_bounds_percentiles_and_bars() -> None:
    found = lengths_record({2: 49, 25: 50, 60: 1})
    assert (found["min"], found["max"], found["mean"]) == (2, 60, (98 + 1250 + 60) / 100)
    assert found["percentiles"] == {"50": 25, "90": 25, "99": 25}
    assert found["bar_width"] == 5
    bars = {one["from"]: one["count"] for one in found["histogram"]}
    assert (bars[0], bars[25], bars[60], sum(bars.values())) == (49, 50, 1, 100)
    assert lengths_record({})["histogram"] == []
    assert percentile({1: 1, 2: 1, 3: 1}, 0.5) == 2


def test_prompts_are_those_of_the_samples_in_memory() -> None:
    made = sut_of(streams)
    made.work.library.load([4, 2])
    assert sorted(made.work.library.prompts) == [2, 4]
    made.sut.issue([1], [3])
    assert "in memory: 2 samples from 2 to 4" in str(made.work.failures.first)
    made.work.failures.settle()
