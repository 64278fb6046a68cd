"""What the backend endpoint reads and writes, without a network: events, answers, addresses, requests, settings."""

import json
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
from harness_support import need

from crowdperf.call.model_server import ServerProblem, choose_model, error_text
from crowdperf.call.server_access import Credentials, credentials_of
from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.answers import AnswerError, Collector, ShapedEvents
from crowdperf.harness.backends.endpoint.faults import NotStreamed, Refused, Unfit, is_about_streaming
from crowdperf.harness.backends.endpoint.probe import Prober
from crowdperf.harness.backends.endpoint.request_body import BodyMaker, Field, Form, fields_of, forms_of, named_in
from crowdperf.harness.backends.endpoint.retries import pause_s
from crowdperf.harness.backends.endpoint.settings import in_flight, resolve_client
from crowdperf.harness.backends.endpoint.token_count import require_text
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.engine import Finish, Prompt
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.kit.event_stream import DONE, EventStream, StreamError
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.prompt_settings import AccessSettings
from crowdperf.rules.record import Sampling

need("tokenizers")

TEXT = "日本 naïve 😀 ß"


def piece(text: str, finish: str | None = None) -> bytes:
    content = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"


def texts(events: list) -> list[str]:
    return [one["choices"][0]["text"] for one in events if one is not DONE]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_events_are_the_same_however_the_network_cuts_them(size: int, line_end: bytes, mark: bytes) -> None:
    sent = b": hello\n\nevent: message\nid: 7\n" + piece(TEXT) + piece(" end", "stop") + b"data: [DONE]\n\n"
    sent = mark + sent.replace(b"\n", line_end)
    stream, events = EventStream(1 << 20), []
    for start in range(0, len(sent), size):
        events += stream.feed(sent[start : start + size])
    assert texts(events) == [TEXT, " end"] and events[-1] is DONE
    assert stream.skipped == 0 and stream.end() == []


def test_a_mark_before_the_first_data_is_no_part_of_it_and_later_it_is() -> None:
    stream = EventStream(1000)
    assert texts(stream.feed(b"\xef\xbb\xbf" + piece("a"))) == ["a"]
    assert stream.feed(b"\xef\xbb\xbf" + piece("b")) == []
    assert stream.skipped == 1


@pytest.mark.parametrize(
    ("sent", "events", "ignored"),
    [
        (b'event: ping\ndata: {"type": "ping"}\n\n', [], 1),
        (b"event: ping\ndata: not JSON\n\n", [], 1),
        (b"event: ping\n\n", [], 0),  # without data it is no event
        (b"event:ping\ndata: {}\n\n", [], 1),
        (b'event: message\ndata: {"a": 1}\n\n', [{"a": 1}], 0),
        (b'event: ping\n\ndata: {"a": 1}\n\n', [{"a": 1}], 0),  # the name ends with its event
        (b"event: done\ndata: [DONE]\n\n", [DONE], 0),
        (b'event: error\ndata: {"error": {"message": "gone"}}\n\n', [{"error": {"message": "gone"}}], 0),
        (b'event: error\ndata: {"message": "gone"}\n\n', [{"error": {"message": "gone"}}], 0),
        (b"event: error\ndata: gone\n\n", [{"error": "gone"}], 0),
    ],
)
def test_events_of_other_names_are_counted_apart_and_an_error_is_one(sent: bytes, events: list, ignored: int) -> None:
    stream = EventStream(1000)
    assert stream.feed(sent) == events
    assert (stream.ignored, stream.skipped) == (ignored, 0)


def test_an_event_of_several_lines_and_one_without_its_empty_line_are_read() -> None:
    stream = EventStream(1000)
    assert stream.feed(b'data: {"choices":\ndata:[]}\n\n') == [{"choices": []}]
    assert stream.feed(b"data: [DONE]") == [] and stream.end() == [DONE]


@pytest.mark.parametrize(
    "garbage",
    [b"data: {broken\n\n", b"data: 7\n\n", b'data: "text"\n\n', b"data: \xff\xfe\n\n", b"rubbish\n\n",
     b"data: " + b"[" * 100_000 + b"\n\n"],
)  # fmt: skip
def test_what_cannot_be_read_is_counted(garbage: bytes) -> None:
    stream = EventStream(1 << 20)
    assert texts(stream.feed(piece("a") + garbage + piece("b"))) == ["a", "b"]
    assert stream.skipped == 1


def test_a_stream_and_a_line_have_an_end() -> None:
    with pytest.raises(StreamError, match="longer than 1,000 bytes"):
        EventStream(1000).feed(b":\n" * 501)
    stream = EventStream(1 << 30)
    with pytest.raises(StreamError, match="a line of the stream is longer"):
        for _ in range(20):
            stream.feed(b"x" * 100_000)


def collected(*events: dict, most: int = 4) -> Collector:
    collector = Collector(most)
    for event in events:
        collector.take(event)
    return collector


def choice(**values: object) -> dict:
    return {"model": "m", "choices": [{"index": 0, **values}]}


@pytest.mark.parametrize(
    ("events", "text", "ids"),
    [
        ([choice(text=" a", token_ids=[1]), choice(text=" b", token_ids=[2, 3])], " a b", [1, 2, 3]),
        ([{**choice(text=" a"), "tokens": [1]}], " a", [1]),
        ([{**choice(text=" a"), "__verbose": {"tokens": [5]}}], " a", [5]),
        ([choice(delta={"role": "assistant", "content": ""}), choice(delta={"content": "x"})], "x", []),
        ([choice(delta={"reasoning_content": "hm "}), choice(delta={"content": "yes"})], "hm yes", []),
        ([choice(text="\ud83d"), choice(text="\ude00")], "😀", []),  # a character sent as two halves
        ([choice(text=None, finish_reason="stop"), {"choices": [], "usage": {"completion_tokens": 1}}], "", []),
    ],
)
def test_text_and_token_ids_are_found_where_servers_put_them(events: list, text: str, ids: list) -> None:
    collector = collected(*events)
    assert (collector.text(), collector.ids, collector.skipped) == (text, ids, 0)


@pytest.mark.parametrize(
    "event",
    [{"choices": 7}, {"choices": [7]}, choice(text=7), choice(text="a", token_ids="abc"), {"other": 1},
     choice(text="a", token_ids=[1.5]), choice(delta=[1]), choice(text="a", token_ids=[-1])],
)  # fmt: skip
def test_events_of_another_form_are_counted(event: dict) -> None:
    assert collected(event).skipped == 1


def test_a_first_event_without_a_name_of_the_model_names_none() -> None:
    nameless = {"model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    assert collected(nameless, choice(text="a")).model == "m"
    assert collected(nameless).model is None
    assert collected(choice(text="a"), nameless).model == "m"


@pytest.mark.parametrize(
    ("decoded", "text", "is_alike"),
    [
        ("a b c", " abc", True),
        ("a b c", "a b d", False),
        ("\ufffda\ufffdb", "a b", True),  # the server leaves broken characters out
        ("a 日 b", "a \ufffd b", True),
        ("\ufffdx\ufffdy", "a b", False),
        ("\ufffd\ufffd", "日", True),
    ],
)
def test_ids_mean_a_text_whatever_its_spaces_and_broken_characters(decoded: str, text: str, is_alike: bool) -> None:
    vocabulary = SimpleNamespace(size=10, decode=lambda ids, with_special=False: decoded)
    if is_alike:
        require_text([1], text, vocabulary)  # type: ignore[arg-type]
        return
    with pytest.raises(AnswerError, match="decodes the tokens as"):
        require_text([1], text, vocabulary)  # type: ignore[arg-type]


def test_half_a_character_is_counted() -> None:
    collector = collected(choice(text="a\ud83d"))
    assert collector.text() == "a\ufffd" and collector.skipped == 1


def test_an_error_in_the_stream_and_too_many_tokens_are_errors() -> None:
    with pytest.raises(AnswerError, match="out of memory"):
        collected({"error": {"message": "out of memory", "code": 500}})
    with pytest.raises(AnswerError, match="more than the 4 requested tokens"):
        collected(choice(text="x", token_ids=[1, 2, 3, 4, 5]))
    with pytest.raises(AnswerError, match="more than the 4 requested tokens"):
        collected(*[choice(text="x")] * 40)


def test_an_answer_ends_with_a_reason() -> None:
    good = collected(choice(text="x"), choice(text="", finish_reason="length"))
    assert good.ending(needs_done=False) is Finish.LENGTH
    with pytest.raises(AnswerError, match=r"without data: \[DONE\]"):
        good.ending(needs_done=True)
    for events, words in [
        ([], "empty stream"),
        ([choice(text="x")], "without a finish_reason"),
        ([choice(text="x", finish_reason="content_filter")], "finish_reason 'content_filter'"),
    ]:
        with pytest.raises(AnswerError, match=words):
            collected(*events).ending(needs_done=False)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "no such\nmodel"}}, "no such model"),
        ({"object": "error", "message": "bad"}, "bad"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs"}]}, "body.seed: Extra inputs"),
        ("a\x1b[31mb\u202ec\x07", "a\\x1b[31mb\\u202ec\\x07"),  # escapes of the terminal, text that runs backwards
        ("ça va 日本", "ça va 日本"),
    ],
)
def test_the_servers_own_words_are_one_plain_line(body: object, text: str) -> None:
    assert error_text(body) == text


def address_error(url: str, **values: object) -> HarnessError:
    with pytest.raises(HarnessError) as caught:
        parse_address(Endpoint(url=url, **values), {"KEY": "sk-secret-1", "EMPTY": " "})  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "allowed: a URL up to and with /v1"),
        ("127.0.0.1:8000/v1", "allowed: a URL up to and with /v1"),
        ("ftp://host/v1", "allowed: a URL up to and with /v1"),
        ("http:///v1", "allowed: a URL up to and with /v1"),
        ("http://host:99999/v1", "host or port cannot be read"),
        ("http://host:0/v1", "port 0"),
        ("http://ho st/v1", "without spaces"),
        ("http://host/v1?key=1", "a query with 'key', which may be a secret"),
        ("http://host/v1#x", "a fragment"),
        ("http://host/v1/chat/completions", "the URL without /chat/completions: http://host/v1"),
        ("http://host/v1/models/", "the URL without /models: http://host/v1"),
    ],
)
def test_a_wrong_url_is_refused_with_what_is_allowed(url: str, words: str) -> None:
    error = address_error(url)
    assert isinstance(error, ConfigError) and words in str(error) and "--endpoint=" in error.hint


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    error = address_error("https://me:s3cret@host:8443/v1")
    assert "https://***@host:8443" in str(error) and "s3cret" not in f"{error}{error.hint}"
    assert "--endpoint_key_variable" in str(error)


def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NONE" in str(address_error("http://h/v1", key_variable="NONE"))
    assert "is not set" in str(address_error("http://h/v1", key_variable="EMPTY"))
    with pytest.raises(HarnessError) as caught:
        parse_address(Endpoint(url="http://h/v1", key_variable="KEY"), {"KEY": "zwei\nZeilen"})
    assert "zwei" not in str(caught.value)


def test_a_key_shows_in_no_text() -> None:
    key = credentials_of(AccessSettings(key_variable="A"), {"A": "sk-secret-1"})
    assert "secret" not in f"{key} {key!r} {key.hidden_in('Incorrect key sk-secret-1!')}"
    assert key.headers() == {"Authorization": "Bearer sk-secret-1"} and Credentials().headers() == {}


KEY = "sk-Secret0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Incorrect key {KEY}!", "Incorrect key ***!"),
        (f"type text/{KEY.lower()}", "type text/***"),
        (f"{KEY.upper()}{KEY}", "******"),
        (f"starts with {KEY[:12]}", "starts with ***"),
        (f"starts with {KEY[:8]}.", "starts with ***."),
        (f"ends with {KEY[-9:]}", "ends with ***"),
        (f"{KEY[:7]} {KEY[-7:]}", f"{KEY[:7]} {KEY[-7:]}"),  # fewer than 8 characters in a row
        ("İ" + KEY, "İ***"),  # a letter whose small form is longer
        ("nothing", "nothing"),
    ],
)
def test_a_key_and_its_parts_are_hidden_in_any_case(text: str, shown: str) -> None:
    assert Credentials({}, (KEY,)).hidden_in(text) == shown
    assert Credentials().hidden_in(text) == text


@pytest.mark.parametrize("place", range(360, 420, 4))
def test_a_text_is_cut_after_the_key_is_hidden(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    address = parse_address(Endpoint(url="http://h/v1", key_variable="THE_KEY"), {"THE_KEY": KEY})
    shown = address.shown("x" * place + KEY + "y" * 100)
    assert not any(KEY[:size] in shown for size in range(3, len(KEY)))
    assert len(shown) <= 404


def test_a_proxy_is_for_other_machines_and_never_reads_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    environment = {"KEY": "sk-secret-1"}
    for url in ("http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]:8000/v1"):
        assert parse_address(Endpoint(url=url), environment).proxy is None
    far = parse_address(Endpoint(url="http://gpu-box:8000/v1/"), environment)
    assert far.proxy == "http://proxy:3128" and far.url == "http://gpu-box:8000/v1" and "3128" not in repr(far)
    assert parse_address(Endpoint(url="https://gpu-box/v1", key_variable="KEY"), environment).proxy is not None
    with pytest.raises(HarnessError, match="the proxy of HTTP_PROXY could read"):
        parse_address(Endpoint(url="http://gpu-box/v1", key_variable="KEY"), environment)
    monkeypatch.setenv("NO_PROXY", "gpu-box")
    assert parse_address(Endpoint(url="http://gpu-box/v1", key_variable="KEY"), environment).proxy is None


def test_requests_hold_the_sampling_of_the_benchmark() -> None:
    sampling = Sampling(max_tokens=128, min_tokens=2, temperature=0.8, top_p=0.9, top_k=40, seed=7, stop=(9,))
    fields = fields_of(sampling, "tokens")
    needed = {one.name for one in fields if one.is_needed}
    assert needed == {"temperature", "top_p", "top_k", "seed", "min_tokens", "stop_token_ids"}
    form = Form(prompt="tokens", model="m", fields=fields, max_tokens=1)
    body = json.loads(BodyMaker(form).make(Prompt(tokens=np.array([3, 4], dtype=np.int32), text="a b")))
    expected = {"model": "m", "prompt": [3, 4], "stream": True, "max_tokens": 1, "temperature": 0.8, "top_p": 0.9}
    assert {**body, **expected} == body and body["min_tokens"] == 1 and body["stop_token_ids"] == [9]
    assert body["stream_options"] == {"include_usage": True} and body["return_token_ids"] is True
    greedy = fields_of(Sampling(max_tokens=128, top_k=1, seed=42), "tokens")
    assert {one.name for one in greedy if one.is_needed} == {"temperature"}
    messages = ({"role": "user", "content": "ü"},)
    chat = json.loads(
        BodyMaker(Form(prompt="chat", model="m", fields=(), max_tokens=5)).make(Prompt(messages=messages))
    )
    assert chat["messages"] == [dict(messages[0])] and "prompt" not in chat


def test_special_tokens_are_asked_for_where_the_scorer_reads_them() -> None:
    """language/gpt-oss-120b of mlcommons/inference decodes them: the final part of an answer is marked by them."""
    for name, record in RECORDS.items():
        generation = record.generation
        for sampling in (generation.sampling, generation.accuracy_sampling) if generation is not None else ():
            found = {one.name: one.value for one in fields_of(sampling or generation.sampling, "tokens")}
            asked = found.get("skip_special_tokens"), found.get("spaces_between_special_tokens")
            assert asked == ((False, False) if name.startswith("gpt_oss") else (None, None)), name


def test_the_form_of_a_prompt_follows_the_api() -> None:
    whole = Prompt(tokens=np.zeros(1, np.int32), text="a", messages=({"role": "user", "content": "a"},))
    assert forms_of(whole, None) == ("tokens", "text", "chat")
    assert forms_of(whole, "chat") == ("chat",) and forms_of(whole, "completions") == ("tokens", "text")
    assert forms_of(Prompt(text="a"), "chat") == ()


def test_refused_fields_are_found_by_their_names() -> None:
    fields = (Field("seed", 1), Field("top_k", 1), Field("top_p", 1.0))
    assert named_in("body.top_k: Extra inputs are not permitted", fields) == (fields[1],)
    assert named_in("unseeded", fields) == ()


@pytest.mark.parametrize(
    ("error", "is_about"),
    [
        (NotStreamed("text/html"), True), (Unfit("text/html"), False), (TimeoutError(), False),
        (Refused(400, "stream=true is not supported"), True), (Refused(501, "Streaming is off"), True),
        (Refused(422, "cannot be streamed"), True), (Refused(400, "unknown field seed"), False),
        (Refused(400, "upstream timed out"), False), (Refused(500, "the stream broke"), False),
    ],
)  # fmt: skip
def test_only_a_refusal_that_names_streams_is_asked_again_for_a_whole_answer(
    error: BaseException, is_about: bool
) -> None:
    assert is_about_streaming(error) is is_about


def test_a_model_answers_under_its_id_its_aliases_and_what_it_was_made_of() -> None:
    entries = [
        {"id": "a", "root": "/models/a", "aliases": ["b"]}, {"id": "lora", "parent": "a"}, {"id": "c", "aliases": None}
    ]  # fmt: skip
    for model, names in (("b", {"a", "b", "/models/a"}), ("lora", {"lora", "a"}), ("c", {"c"}), ("d", {"d"})):
        assert Prober._card(entries, model) == names
    assert Prober._card(None, "a") == {"a"}


def test_the_nearest_model_is_named() -> None:
    entries = [{"id": "llama-3.1-8b"}, {"id": "qwen"}]
    assert choose_model(entries, "qwen") == "qwen" and choose_model(entries[:1], None) == "llama-3.1-8b"
    assert choose_model([{"id": "a", "aliases": ["b"]}], "b") == "b" and choose_model(None, "c") == "c"
    for listed, wanted, words, hint in [
        (entries, "llama3.1-8b", "the server has: llama-3.1-8b, qwen", "did you mean --endpoint_model=llama-3.1-8b?"),
        (entries, None, "it serves 2 models: llama-3.1-8b, qwen", "choose one: --endpoint_model=llama-3.1-8b"),
        ([], None, "it serves no model", "wait until the server has loaded its model"),
    ]:
        with pytest.raises(ServerProblem, match=words) as caught:
            choose_model(listed, wanted)
        assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("header", "tries", "chance", "wait_s"),
    [
        ("3", 0, 0.0, 3.0), ("3", 7, 0.0, 3.0), ("3", 0, 1.0, 3.75), ("86400", 0, 0.0, 60.0), ("86400", 0, 1.0, 75.0),
        ("0", 0, 0.0, 0.5), ("0", 3, 0.0, 4.0), ("-1", 1, 0.0, 1.0), ("0.001", 5, 0.0, 0.5),
        ("nan", 1, 0.0, 1.0), (None, 0, 0.0, 0.5), (None, 0, 1.0, 0.625), (None, 3, 0.0, 4.0),
        (None, 50, 0.0, 60.0), ("soon", 1, 0.0, 1.0), ("Thu, 01 Jan 1970 00:00:10 GMT", 0, 0.0, 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 2, 0.0, 2.0),
    ],
)  # fmt: skip
def test_the_pause_is_the_servers_and_bounded_on_both_sides(
    header: str | None, tries: int, chance: float, wait_s: float
) -> None:
    assert pause_s(header, tries, 0.0, chance) == wait_s


def test_settings_have_origins_and_limits() -> None:
    default = resolve_client(TextRequest(), False)
    assert default.record()["max_in_flight"] == {"value": default.max_in_flight, "origin": "default"}
    given = resolve_client(TextRequest(max_in_flight=3, timeout_s=5.0), False)
    assert given.record() == {
        "max_in_flight": {"value": 3, "origin": "user"},
        "client_processes": {"value": 1, "origin": "default"},
        "timeout_s": {"value": 5.0, "origin": "user"},
        "stall_s": {"value": 5.0, "origin": "timeout_s"},
    }
    with pytest.raises(ConfigError, match="the server has its own memory"):
        resolve_client(TextRequest(kv_cache_bytes=1), False)
    with pytest.raises(HarnessError, match="open connections"):
        resolve_client(TextRequest(max_in_flight=1 << 29), False)


@pytest.mark.parametrize(
    ("given", "open_files", "value", "origin", "note"),
    [
        (None, 4096, 1024, "default", ""),
        (None, 1152, 1024, "default", ""),
        (None, 1024, 896, "limit of open files (1,024)", "ulimit -n 1152"),
        (None, 192, 64, "limit of open files (192)", "at most 64 requests are in flight instead of 1,024"),
        (8, 192, 8, "user", ""),
        (2000, 4096, 2000, "user", ""),
    ],
)
def test_the_limit_of_open_files_is_said_where_it_lowers_the_default(given, open_files, value, origin, note) -> None:
    found = in_flight(given, open_files)
    assert found[:2] == (value, origin)
    assert note in "".join(found[2])
    assert bool(found[2]) == bool(note)


@pytest.mark.parametrize(
    ("given", "open_files", "found", "hint"),
    [
        (None, 100, "the limit of open files (100) leaves 0 connections", "raise the limit: ulimit -n 1152"),
        (None, 191, "leaves 63 connections", "ulimit -n 1152, or choose a number yourself: --max_in_flight=63"),
        (64, 160, "this process may have 32, since its limit of open files is 160", "or use --max_in_flight=32"),
        (1, 100, "may have 0", "raise the limit: ulimit -n 129"),
    ],
)
def test_a_limit_of_open_files_that_would_be_measured_is_refused(given, open_files, found, hint) -> None:
    with pytest.raises(HarnessError, match=re.escape(found)) as caught:
        in_flight(given, open_files)
    assert hint in caught.value.hint


def completion(text: str, ids: list[int], **more: object) -> dict:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None, "token_ids": ids}
    return {"id": "c-1", "model": "m", "choices": [choice], "usage": None, **more}


def chat(text: str, ids: list[int], **more: object) -> dict:
    delta = {"content": text, **more}
    return {"id": "c-1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None, "tokens": ids}]}


def bare(text: str, ids: list[int]) -> dict:
    return {"choices": [{"text": text}]}


_ODD_EVENTS = [
    completion(" a", [5], usage={"completion_tokens": 2}), completion("a", [1, 2]), completion("a", []),
    completion("", [3]), completion("", []), completion(" x", [9], id="c-2"), completion(" x", [9], model="other"),
    chat("a", [1], reasoning_content="think"), chat("", [1], reasoning_content="think"), {"choices": []}, {}, [], 7,
    {"choices": [{"index": 1, "text": " w", "token_ids": [4]}]}, {"error": None, **completion("a", [4])},
    {"choices": [{"index": 0, "text": " e", "finish_reason": "stop", "token_ids": [4]}]},
    {"choices": [{"index": 0, "text": "a", "token_ids": [True]}]}, {"choices": [{"text": 7}]},
    {"tokens": [4], "choices": [{"text": "a"}]}, {"choices": [{"text": "a"}], "__verbose": {"tokens": [5]}},
    {"choices": [{"text": "a", "details": {"tokens": [5]}}]}, {"choices": [{"text": "a", "note": {"text": "b"}}]},
]  # fmt: skip
_ODD_BYTES = [
    b'{"choices": [{"text": "a", "text": "b"}]}', b'{"choices": [{"text": "a", "t\\u0065xt": "b"}]}',
    b'{"choices": [{"text": "a\x01"}]}', b'{"choices": [{"text": "\xff"}]}',
    b'{"choices": [{"text": "a", "token_ids": [01]}]}',
    b'{"choices": [{"text": "a", "token_ids": [1 ]}]}', b'{"choices": [{"text": "a", "token_ids": [-1]}]}',
    b'{"choices": [{"text": "a"}]', b'{"choices": [{"text": "a}]}',
    b'{"choices": [{"text": "a", "token_ids": [99999999999]}]}',
]  # fmt: skip
_TEXTS = [" w", "", "\u3000", "\n", 'a"b', "\\", "\ud83d", "日本", "\x7f", "}", "]", " text", "7", "w~", "😀"]


def _sent(chance: random.Random) -> bytes:
    """Return an event as servers write them: of one shape most often."""
    kind = chance.random()
    if kind < 0.05:
        return chance.choice(_ODD_BYTES)
    make = completion if kind < 0.6 else chat if kind < 0.75 else bare
    event = make(chance.choice(_TEXTS), [chance.randrange(10 ** chance.randrange(1, 11))])
    content = chance.choice(_ODD_EVENTS) if kind > 0.95 else event
    separators = (",", ":") if chance.random() < 0.2 else None
    sent = json.dumps(content, ensure_ascii=chance.random() < 0.2, separators=separators).encode(errors="surrogatepass")
    return _damaged(chance, sent) if chance.random() < 0.1 else sent


def _damaged(chance: random.Random, sent: bytes) -> bytes:
    """Return bytes with some of them gone, or others among them."""
    place = chance.randrange(len(sent))
    added = chance.choice([b"", b"0", b'"', b"\\", b"]", b"}", b",", b"\x01", b"\xff", b"-", b" ", b"1"])
    return sent[:place] + added + sent[place + chance.randrange(2) :]


def _read(lines: list[bytes], parse: object, size: int) -> tuple:
    stream, collector = EventStream(1 << 20, parse), Collector(10_000)  # type: ignore[arg-type]
    content = b"".join(b"data: " + line + b"\n\n" for line in lines)
    firsts = []
    parts = [content[start : start + size] for start in range(0, len(content), size)] if size else (
        [b"data: " + line + b"\n\n" for line in lines]
    )  # fmt: skip
    for part in parts:
        for event in stream.feed(part):
            firsts.append(collector.take(event))
    return firsts, collector, stream.skipped


@pytest.mark.parametrize("size", [0, 1, 60, 100_000])
def test_events_that_are_compared_with_an_earlier_one_are_read_as_parsed_ones(size: int) -> None:
    for seed in range(300 if size != 1 else 30):
        chance = random.Random(seed)
        lines = [_sent(chance) for _ in range(chance.randrange(1, 40))]
        if chance.random() < 0.7:  # a stream of one kind with few exceptions
            kind = [json.dumps(completion(chance.choice(_TEXTS), [chance.randrange(99)])).encode() for _ in range(60)]
            kind += 6 * [json.dumps(chance.choice(_ODD_EVENTS)).encode()]
            lines = [
                *(kind[:9] if chance.random() < 0.8 else kind[-6:]),
                *(_damaged(chance, one) if chance.random() < 0.4 else one for one in kind),
                *lines,
            ]
        assert _read(lines, ShapedEvents(json.loads).read, size) == _read(lines, json.loads, size), seed


@pytest.mark.parametrize("make", [completion, chat, bare])
def test_most_events_of_a_stream_are_not_parsed(make: object) -> None:
    parsed = []
    shaped = ShapedEvents(lambda data: parsed.append(data) or json.loads(data))
    found = [shaped.read(json.dumps(make(f" w{place}", [place])).encode()) for place in range(50)]  # type: ignore[operator]
    assert [type(one) for one in found[:2]] == [dict, dict] and {type(one) for one in found[2:]} == {tuple}
    assert len(parsed) == 3  # the first event, and the second one with its probe
    assert found[9] == (" w9", () if make is bare else (9,))
