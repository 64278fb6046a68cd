"""The backend endpoint against a server that answers well, or badly on purpose (stub_openai.py)."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from endpoint_client import (  # noqa: F401
    GREEDY,
    NUMBERS,
    SECRET,
    Listening,
    asked,
    assert_right,
    folder_fixture,
    prompt,
    run,
    server_fixture,
)  # fmt: skip
from stub_openai import MODEL, Stub, answer_tokens, running_stub

from crowdperf.harness.backends.endpoint import connections, conversation
from crowdperf.harness.backends.endpoint import engine as engine_module
from crowdperf.harness.backends.endpoint.checks import require_counter
from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.engine import EngineRequest, Prompt, Request  # fmt: skip
from crowdperf.harness.text.request import TextRequest
from crowdperf.rules.record import Sampling


@pytest.mark.parametrize(
    ("behaviour", "text", "form", "counted"),
    [
        ("", {}, ("completions", "tokens"), "token ids of the server"),
        ("ids=0", {}, ("completions", "tokens"), "the run's tokenizer over the text"),
        ("textonly", {}, ("completions", "text"), "token ids of the server"),
        ("nocompletions", {}, ("chat/completions", "chat"), "token ids of the server"),
        ("c", {"api": "chat"}, ("chat/completions", "chat"), "token ids of the server"),
        ("strict", {}, ("completions", "tokens"), "the run's tokenizer over the text"),
        ("vague", {}, ("completions", "tokens"), "the run's tokenizer over the text"),
        ("split,tokens=5", {}, ("completions", "tokens"), "token ids of the server"),
        ("once", {}, ("completions", "tokens"), "token ids of the server"),
        ("filter,ping", {}, ("completions", "tokens"), "token ids of the server"),
        ("ping,type=text/plain", {}, ("completions", "tokens"), "token ids of the server"),
        ("split,tokens=5,type=application/json", {}, ("completions", "tokens"), "token ids of the server"),
        ("nomodels", {"model": MODEL}, ("completions", "tokens"), "token ids of the server"),
        ("models=a+b", {"model": "b"}, ("completions", "tokens"), "token ids of the server"),
    ],
)
def test_answers_come_from_every_kind_of_good_server(
    server: tuple[Stub, str], folder: Path, behaviour: str, text: dict, form: tuple, counted: str
) -> None:
    engine = open_engine(asked(f"{server[1]}/{behaviour}/v1" if behaviour else f"{server[1]}/v1", folder, **text))
    try:
        assert_right(run(engine, 5), 5, 5 if "split" in behaviour else 12)
        record = engine.record()
    finally:
        engine.close()
    assert (record["api"]["value"], record["prompt"]["value"]) == form  # type: ignore[index,call-overload]
    assert record["token_counts"]["value"] == counted  # type: ignore[index,call-overload]
    counts = record["counts"]
    assert isinstance(counts, dict) and (counts["requests"], counts["answered"], counts["failed"]) == (5, 5, 0)


def test_the_sampling_is_sent_and_what_was_accepted_is_recorded(server: tuple[Stub, str], folder: Path) -> None:
    server[0].seen.clear()
    sampling = Sampling(max_tokens=12, temperature=0.7, top_p=0.9, seed=3, is_end_ignored=True)
    engine = open_engine(asked(f"{server[1]}/strict,c/v1", folder, sampling, max_in_flight=2, timeout_s=9.0))
    run(engine, 4)
    record = engine.record()
    engine.close()
    (sent,) = [body for body in server[0].seen if body["prompt"] == [3, 2, 3]]  # two are on their way at once
    assert sent == {
        "prompt": [3, 2, 3],
        "model": MODEL, "stream": True, "max_tokens": 12, "temperature": 0.7, "top_p": 0.9, "seed": 3, "min_tokens": 1,
        "ignore_eos": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    found = record["sampling"]
    assert isinstance(found, dict) and found["seed"] == {"value": 3, "origin": "benchmark", "accepted": True}
    assert found["return_token_ids"] == {"value": True, "origin": "benchmark", "accepted": False}
    assert record["max_in_flight"] == {"value": 2, "origin": "user"}
    assert record["timeout_s"] == {"value": 9.0, "origin": "user"}
    assert record["counts"]["peak_in_flight"] == 2 and record["counts"]["waited"] == 2  # type: ignore[index,call-overload]
    assert engine.versions()["server"] == "stub"


@pytest.mark.parametrize(
    ("behaviour", "needs_first", "is_streamed"),
    [("", False, False), ("", True, True), ("nousage", False, True), ("always", False, True)],
)
def test_answers_are_streamed_only_where_first_tokens_are_measured_or_whole_ones_have_no_counts(
    server: tuple[Stub, str], folder: Path, behaviour: str, needs_first: bool, is_streamed: bool
) -> None:
    server[0].seen.clear()
    engine = open_engine(replace(asked(f"{server[1]}/{behaviour},w/v1", folder), needs_first=needs_first))
    try:
        listener = run(engine, 4)
        assert engine.record()["streamed"] == {"value": is_streamed, "origin": "probe"}
    finally:
        engine.close()
    assert bool(listener.firsts) == is_streamed and not listener.failures
    assert {number: one.tokens.tolist() for number, one in listener.answers.items()} == {
        number: answer_tokens([number, 2, 3], 12) for number in range(4)
    }
    assert {one["stream"] for one in server[0].seen[-4:]} == {is_streamed}
    assert all(("stream_options" in one) == is_streamed for one in server[0].seen[-4:])


def test_a_text_is_sent_so_that_the_server_counts_its_start_token_as_the_benchmark_does(
    server: tuple[Stub, str], folder: Path
) -> None:
    for ids, expected in [([2, 3], False), ([9, 2, 3], None)]:  # the benchmark's tokens without and with a start token
        engine = open_engine(
            asked(
                f"{server[1]}/textonly,start/v1", folder,
                probes=(Prompt(tokens=np.array(ids, np.int32), text="w2 日本"),),
            )
        )  # fmt: skip
        engine.close()
        assert server[0].seen[-1].get("add_special_tokens") is expected


def test_a_setting_that_the_benchmark_needs_and_the_server_refuses_ends_it(
    server: tuple[Stub, str], folder: Path
) -> None:
    sampling = Sampling(max_tokens=12, stop=(7,))
    with pytest.raises(HarnessError, match="the benchmark's stop_token_ids") as caught:
        open_engine(asked(f"{server[1]}/strict,d/v1", folder, sampling))
    assert "needs this setting" in caught.value.hint


def test_connections_are_used_again_and_many_requests_are_in_flight(server: tuple[Stub, str], folder: Path) -> None:
    before = server[0].connections
    engine = open_engine(asked(f"{server[1]}/ttft_ms=100/v1", folder, max_in_flight=200))
    for start in (0, 200):
        assert_right(run(engine, 200, start), 200)
    assert engine.record()["counts"]["peak_in_flight"] == 200  # type: ignore[index,call-overload]
    engine.close()
    assert server[0].connections - before <= 201


OPENING = [
    ("status=401", "the server requires authentication (401)", "--endpoint_key_variable"),
    ("status=403", "the server does not allow this key or address (403)", "--endpoint_key_variable"),
    ("status=404", "the server does not know this path or model (404)", "--endpoint_model=NAME"),
    ("status=500", "the server failed (500)", "check the server's log"),
    ("redirect", "redirects to http://127.0.0.1:1/v1/models (307), and redirects are not followed", "--endpoint"),
    ("models=x+y", "it serves 2 models: x, y", "--endpoint_model=x"),
    ("noise", "the server does not speak HTTP", "OpenAI's API"),
    ("die", "ended the connection in the middle of its answer", "log"),
    ("stall", "its answer had begun", "--request_timeout_s=SECONDS"),
    ("empty", "answered with an empty stream", "log"),
    ("garbage", "4 pieces of the answer could not be read", "curl -N"),
    ("endless", "more than the 8 requested tokens (max_tokens)", "log"),
    ("line", "a line of the stream is longer than", "log"),
    ("gzip", "the server packed its answer (gzip)", "log"),
    ("alien", "no events of OpenAI's API, but 9 named 'delta'", "log"),
    ("json", "answered with application/json instead of a stream of events", "switch streaming on in the server"),
    ("other", "the server answered as 'another-70b'", "--endpoint_model=another-70b"),
    ("few=2,tokens=4", "the server reports 6 tokens, its stream has 4", "log"),
    ("bos", "with a prompt of 5 tokens, sent as tokens: the server counts 6", "tokenizer"),
    ("textonly,nochat,bos", "its tokenizer is not the benchmark's", "tokenizer"),
    ("nochat,nocompletions", "(POST /chat/completions, prompt as chat): the server does not know this path", "the URL"),
]


@pytest.mark.parametrize(("behaviour", "found", "hint"), OPENING)
def test_the_probe_says_what_is_wrong_before_the_run(
    server: tuple[Stub, str], folder: Path, behaviour: str, found: str, hint: str
) -> None:
    threads = threading.active_count()
    with pytest.raises(HarnessError) as caught:
        open_engine(asked(f"{server[1]}/{behaviour}/v1", folder, timeout_s=0.4 if behaviour == "stall" else 10.0))
    assert found in str(caught.value) and hint in caught.value.hint, f"{caught.value} {caught.value.hint}"
    assert str(caught.value).startswith("the endpoint cannot be used: request ") and "secret" not in str(caught.value)
    assert threading.active_count() <= threads


HOSTILE = [
    ("status=401", "the server requires authentication (401)"),
    ("status=404", "the server does not know this path or model (404)"),
    ("status=429,retry_after=30", "the server limits the request rate (429)"),
    ("status=500", "the server failed (500)"),
    ("die", "ended the connection in the middle of its answer, after part of the answer had arrived"),
    ("stall", "its answer had begun, after part of the answer had arrived"),
    ("empty", "answered with an empty stream"),
    ("noise", "the server does not speak HTTP"),
    ("error", "the server sent an error in the stream: out of memory, after part of the answer"),
    ("endless", "more than the 12 requested tokens"),
    ("line", "a line of the stream is longer than 1,048,576 bytes"),
    ("nodone", "without data: [DONE]: the answer is cut off"),
    ("gzip", "the server packed its answer (gzip)"),
    ("json", "answered with application/json instead of a stream"),
    ("redirect", "redirects to https://elsewhere.example/v1/completions (308)"),
    ("other", "answered as another model, 'another-70b', not 'stub-8b'"),
    ("few=3", "reports 15 tokens (usage.completion_tokens), but 12 arrived"),
    ("many=1", "more than the 12 requested tokens"),
]


@pytest.mark.parametrize(("behaviour", "found"), HOSTILE)
def test_a_server_that_turns_hostile_in_the_run_is_a_failure_of_each_request_that_says_why(
    server: tuple[Stub, str], folder: Path, behaviour: str, found: str
) -> None:
    engine = open_engine(
        asked(f"{server[1]}/{behaviour},after=2/v1", folder, timeout_s=0.5 if behaviour == "stall" else 10.0)
    )
    try:
        listener = run(engine, 3)
    finally:
        engine.close()
    assert not listener.answers and listener.error is None
    for why in listener.failures.values():
        assert found in why and "Traceback" not in why, why


def test_pieces_that_cannot_be_read_are_counted_in_the_answer(server: tuple[Stub, str], folder: Path) -> None:
    engine = open_engine(asked(f"{server[1]}/garbage,after=2/v1", folder))
    listener = run(engine, 3)
    assert [one.skipped for one in listener.answers.values()] == [4, 4, 4]
    assert engine.record()["counts"]["skipped"] == 12  # type: ignore[index,call-overload]
    engine.close()


def test_a_server_that_asks_to_wait_is_asked_again(server: tuple[Stub, str], folder: Path) -> None:
    engine = open_engine(asked(f"{server[1]}/status=429,retry_after=0,times=5,after=2/v1", folder))
    assert_right(run(engine, 3), 3)
    assert engine.record()["counts"]["retried"] == 5  # type: ignore[index,call-overload]
    engine.close()


def test_a_server_that_asks_to_wait_before_the_run_is_asked_again(server: tuple[Stub, str], folder: Path) -> None:
    engine = open_engine(asked(f"{server[1]}/status=429,retry_after=0,times=2,after=0/v1", folder))
    assert_right(run(engine, 3), 3)
    assert engine.record()["counts"]["retried"] == 0  # type: ignore[index,call-overload]
    engine.close()


def test_a_server_that_asks_to_wait_for_long_before_the_run_is_refused(server: tuple[Stub, str], folder: Path) -> None:
    with pytest.raises(HarnessError, match="limits the request rate") as caught:
        open_engine(asked(f"{server[1]}/status=429,retry_after=31/v1", folder))
    assert caught.value.hint == "wait, or raise the server's limit on requests"


def test_a_request_that_waited_longer_than_its_limit_is_not_sent(server: tuple[Stub, str], folder: Path) -> None:
    """The limit counts from LoadGen's issue, where that is known; in Offline everything waits by design."""
    engine = open_engine(asked(f"{server[1]}/ids/v1", folder, timeout_s=5.0, max_in_flight=1))
    listener = Listening(3)
    engine.start(listener)
    now_s = time.monotonic()
    issued = (now_s, now_s - 6.0, None)
    engine.submit([Request(number=number, prompt=prompt(number), issued_s=one) for number, one in enumerate(issued)])
    listener.wait()
    engine.close()
    assert sorted(listener.answers) == [0, 2]
    assert "waited longer than the limit of a request (5 s) for one of the 1 places" in listener.failures[1]


def test_failures_and_retries_are_counted_by_kind(server: tuple[Stub, str], folder: Path) -> None:
    for behaviour, kind in [
        ("status=500", "status 500"), ("stall", "timeout"), ("die", "cut connection"), ("nodone", "cut stream"),
        ("empty", "empty answer"), ("error", "error in the stream"), ("many=1", "unusable answer"),
        ("status=429,retry_after=30", "status 429"),
    ]:  # fmt: skip
        url = f"{server[1]}/{behaviour},after=2/v1"
        engine = open_engine(asked(url, folder, timeout_s=0.5 if behaviour == "stall" else 5.0))
        listener = run(engine, 2)
        engine.close()
        assert set(listener.kinds.values()) == {kind}, behaviour
    engine = open_engine(asked(f"{server[1]}/status=429,retry_after=0,times=2,after=2/v1", folder))
    run(engine, 2)
    assert engine.record()["counts"]["retried_by_status"] == {"429": 2}  # type: ignore[index,call-overload]
    engine.close()


def test_answers_that_a_proxy_holds_back_are_counted(server: tuple[Stub, str], folder: Path) -> None:
    for behaviour, held in [("odd=plain", 2), ("tpot_ms=2", 0)]:  # one write; one for each token
        engine = open_engine(asked(f"{server[1]}/{behaviour}/v1", folder))
        run(engine, 2)
        assert engine.record()["counts"]["in_one_read"] == held  # type: ignore[index,call-overload]
        engine.close()


def test_text_with_another_count_is_counted_and_with_far_fewer_tokens_fails(
    server: tuple[Stub, str], folder: Path
) -> None:
    engine = open_engine(asked(f"{server[1]}/ids=0,few=2,after=2/v1", folder))
    listener = run(engine, 3)
    counts = engine.record()["counts"]
    engine.close()
    assert len(listener.answers) == 3
    assert isinstance(counts, dict) and (counts["differing"], counts["differing_tokens"]) == (3, 6)
    engine = open_engine(asked(f"{server[1]}/ids=0,few=5,after=2/v1", folder))
    listener = run(engine, 3)
    engine.close()
    assert {why.count("17 tokens") and why.count("12") for why in listener.failures.values()} == {1}, listener.failures
    assert len(listener.failures) == 3


def test_what_is_only_doubtful_is_noted(
    server: tuple[Stub, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for behaviour, words in [
        ("random", "gave two different answers to the same prompt"), ("cached", "--no-enable-prefix-caching"),
        ("max_model_len=64", "accepts 64 tokens of prompt and answer (max_model_len), the longest may need 112"),
        ("nodone", r"end without data: [DONE]"),
        ("type=text/plain", "sends its streams as text/plain instead of text/event-stream"),
    ]:  # fmt: skip
        engine = open_engine(asked(f"{server[1]}/{behaviour}/v1", folder))
        notes = engine.record()["notes"]
        engine.close()
        assert isinstance(notes, list) and len(notes) == 1 and words in str(notes[0])
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("behaviour", ["ids=0", "ids=0,nocompletions", "ids=0,tokens=3", "ids=0,split"])
def test_a_server_that_is_believed_counts_the_tokens_of_its_answers(server: tuple[Stub, str], behaviour: str) -> None:
    engine = open_engine(replace(asked(f"{server[1]}/{behaviour},b/v1", None), is_server_believed=True))
    with contextlib.closing(engine):
        told = run(engine, 4)
        length = 3 if "tokens=3" in behaviour else GREEDY.max_tokens
        assert sorted(len(answer.tokens) for answer in told.answers.values()) == [length] * 4
        assert all(len(tokens) == 1 for tokens in told.firsts.values())
        assert all(answer.text for answer in told.answers.values())
        assert engine.record()["token_counts"]["value"] == "the server's usage.completion_tokens"  # type: ignore[call-overload,index]


def test_a_believed_server_whose_count_is_too_low_is_told_so_and_of_no_tokenizer(server: tuple[Stub, str]) -> None:
    with pytest.raises(HarnessError, match=r"its count is wrong \(usage\.completion_tokens\)") as caught:
        open_engine(replace(asked(f"{server[1]}/ids=0,few=-7/v1", None), is_server_believed=True))
    assert caught.value.hint == "check the server's limit on tokens, and its usage.completion_tokens"


def test_without_token_ids_and_tokenizer_nothing_can_be_counted(server: tuple[Stub, str], tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"the model has no tokenizer\.json"):
        open_engine(asked(f"{server[1]}/ids=0,e/v1", tmp_path))
    text_alone: Any = SimpleNamespace(ids=[], usage=SimpleNamespace(completion_tokens=None))
    with pytest.raises(HarnessError, match=r"returns only text, without usage\.completion_tokens"):
        require_counter(text_alone, None, is_server_believed=True)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(HarnessError, match="cannot read the tokenizer"):
        open_engine(asked(f"{server[1]}/f/v1", tmp_path))


def test_another_tokenizer_than_the_servers_is_found(server: tuple[Stub, str], folder: Path, tmp_path: Path) -> None:
    text = (folder / "tokenizer.json").read_text().replace('"w1', '"v1')
    (tmp_path / "tokenizer.json").write_text(text)
    ids = Prompt(tokens=np.array([2, 3], np.int32))
    with pytest.raises(HarnessError, match="decodes the tokens as"):
        open_engine(asked(f"{server[1]}/g/v1", tmp_path, probes=(ids,)))


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_nobody_there_and_no_tls_are_said(server: tuple[Stub, str], folder: Path) -> None:
    tls = server[1].replace("http://", "https://")
    for url, words in [
        (f"http://127.0.0.1:{closed_port()}/v1", "no connection to 127.0.0.1:[0-9]+: Connection refused"),
        (f"{tls}/v1", "Use http:// for a server without TLS"),
    ]:
        with pytest.raises(HarnessError, match=words):
            open_engine(asked(url, folder))


def test_an_unknown_host_is_said(folder: Path) -> None:
    with pytest.raises(HarnessError, match=r"does not resolve|no connection to"):
        open_engine(asked("http://no-such-host.invalid/v1", folder))


def test_a_wrong_endpoint_is_refused_before_anything_is_asked(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"endpoint\.url"):
        open_engine(asked("127.0.0.1:8000", folder))
    request = asked("http://x/v1", folder)
    without = EngineRequest(
        facts=request.facts, sampling=GREEDY, text=TextRequest(), precision="fp32", device="cpu", threads=1, cores=(),
        longest_prompt=10, folder=tmp_path,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="an object with url"):
        open_engine(without)


def test_a_server_that_accepts_and_says_nothing_has_a_limit(folder: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        with pytest.raises(HarnessError, match=r"no complete answer within the request timeout \(0.5 s\), no response"):
            open_engine(asked(f"http://127.0.0.1:{silent.getsockname()[1]}/v1", folder, timeout_s=0.5, model="m"))


def test_the_key_is_sent_and_shown_nowhere(
    server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUB_KEY", SECRET)
    engine = open_engine(asked(f"{server[1]}/status=401,after=2/v1", folder, key_variable="STUB_KEY"))
    assert server[0].headers["authorization"] == f"Bearer {SECRET}"
    listener = run(engine, 2)
    engine.close()
    assert "refused Bearer ***" in listener.failures[0]  # the stub repeats the header
    with pytest.raises(HarnessError) as caught:
        open_engine(asked(f"{server[1]}/status=403/v1", folder, key_variable="STUB_KEY"))
    assert "the key in STUB_KEY was refused" in caught.value.hint
    shown = f"{listener.failures} {engine.record()} {caught.value} {caught.value.hint} {capsys.readouterr()}"
    assert SECRET not in shown and caught.value.__cause__ is None


def test_events_of_other_names_are_counted_in_the_record(server: tuple[Stub, str], folder: Path) -> None:
    engine = open_engine(asked(f"{server[1]}/ping/v1", folder))
    assert_right(run(engine, 3), 3)
    assert engine.record()["counts"]["ignored_events"] == 3  # type: ignore[index,call-overload]
    engine.close()


def test_responses_that_stay_open_behind_their_answers_are_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_stub() as (stub, url):
        engine = open_engine(asked(f"{url}/open,ttft_ms=20/v1", folder, max_in_flight=4))
        try:
            assert_right(run(engine, 100), 100)
            assert stub.open_peak < 30  # 4 in flight, 4 left open, and those that are on their way to be closed
            monkeypatch.setattr(connections, "AFTER_ANSWER_S", 0.0)
            for _ in range(3000):
                if stub.open_now == 0:
                    break
                time.sleep(0.01)
            assert stub.open_now == 0
        finally:
            engine.close()


def test_a_client_that_was_busy_most_of_the_time_says_that_it_was_the_limit(
    server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine_module, "MIN_JUDGED_S", 0.0)
    for limit, behaviour, is_said in [(1.0, "busy", False), (0.0, "busy", True)]:
        monkeypatch.setattr(engine_module, "MAX_BUSY_PART", limit)
        engine = open_engine(asked(f"{server[1]}/{behaviour}/v1", folder))
        assert engine.record()["client_busy_part"] == {"value": None, "origin": "measured"}
        run(engine, 20)
        record = engine.record()
        engine.close()
        part = record["client_busy_part"]["value"]  # type: ignore[index,call-overload]
        assert isinstance(part, float) and 0 < part <= 1
        assert ("limited by the client" in str(record["notes"])) == is_said
        assert ("limited by the client" in capsys.readouterr().err) == is_said


@pytest.mark.parametrize(("waits_s", "is_said"), [(0.0, False), (1e6, True)])
def test_a_client_that_other_programs_slowed_down_says_so(
    server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch, waits_s: float, is_said: bool
) -> None:
    monkeypatch.setattr(engine_module, "MIN_JUDGED_S", 0.0)
    monkeypatch.setattr(engine_module, "MAX_BUSY_PART", 0.999)
    engine = open_engine(asked(f"{server[1]}/busy/v1", folder))
    seen = [0.0]
    monkeypatch.setattr(engine_module, "waited_s", lambda path: seen[-1])
    run(engine, 20)
    seen.append(waits_s)
    record = engine.record()
    engine.close()
    assert record["client_waiting_part"] == {"value": min(1.0, waits_s), "origin": "measured"}
    assert ("other programs slowed the client down" in str(record["notes"])) == is_said
    assert "limited by the client" not in str(record["notes"])


def test_the_wait_for_a_core_is_read_from_schedstat(tmp_path: Path) -> None:
    (tmp_path / "schedstat").write_text("923979 2500000000 5\n", encoding="ascii")
    assert engine_module.waited_s(str(tmp_path / "schedstat")) == 2.5
    (tmp_path / "schedstat").write_text("", encoding="ascii")
    assert engine_module.waited_s(str(tmp_path / "schedstat")) == engine_module.waited_s("/nowhere") == 0.0


def test_a_request_on_a_connection_that_the_server_closes_is_sent_again_on_a_new_one(
    server: tuple[Stub, str], folder: Path
) -> None:
    engine = open_engine(asked(f"{server[1]}/stale/v1", folder))
    try:
        for start in (0, 8, 16):
            assert_right(run(engine, 8, start), 8)
        assert engine.record()["counts"]["resent"] == 8  # type: ignore[index,call-overload]
    finally:
        engine.close()


def test_a_dead_server_is_given_up(server: tuple[Stub, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "HOPELESS", 10)
    engine = open_engine(asked(f"{server[1]}/die,after=2/v1", folder, max_in_flight=4))
    listener = run(engine, 60)
    engine.close()
    assert "answered none of the last 10 requests" in str(listener.error) and len(listener.failures) == 60
    assert sum("not sent" in why for why in listener.failures.values()) >= 40


def test_closing_ends_what_is_in_flight_without_a_word(server: tuple[Stub, str], folder: Path) -> None:
    engine = open_engine(asked(f"{server[1]}/stall,after=2/v1", folder))
    listener = Listening(5)
    engine.start(listener)
    engine.submit([Request(number=place, prompt=prompt(place)) for place in range(5)])
    end_s = time.monotonic() + 10
    while len(listener.firsts) < 5 and time.monotonic() < end_s:
        time.sleep(0.01)
    engine.close()
    engine.close()
    engine.submit([Request(number=9, prompt=prompt(9))])
    assert len(listener.firsts) == 5 and not listener.answers and not listener.failures and listener.error is None
    assert not [one for one in threading.enumerate() if one.name == "endpoint"]
