"""Responses are read the same however the network cuts them, and what is not HTTP/1.1 is refused."""

import random

import pytest

from crowdperf.harness.backends.endpoint.client import parsed
from crowdperf.harness.backends.endpoint.response_reader import NotHttp, ResponseReader
from crowdperf.kit.event_stream import DONE, EventStream

TEXT = "日本 naïve 😀 \r\n ß"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunks(*parts: bytes, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    return b"".join(b"%x%s\r\n%s\r\n" % (len(one), extension, one) for one in parts) + b"0\r\n" + trailer + b"\r\n"


BODY = TEXT.encode()
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GOOD = [
    ("length", HEAD + LENGTH + b"\r\n" + BODY, True),
    ("two equal lengths", HEAD + LENGTH + LENGTH + b"\r\n" + BODY, True),
    ("chunked", CHUNKED + chunks(BODY[:5], BODY[5:9], BODY[9:]), True),
    ("a byte in each chunk", CHUNKED + chunks(*(bytes([one]) for one in BODY)), True),
    ("extension and trailer", CHUNKED + chunks(BODY, extension=b";a=b", trailer=b"X-Sum: 1\r\nY: 2\r\n"), True),
    ("chunked wins over length", CHUNKED.replace(b"\r\nT", b"\r\ncontent-length: 3\r\nT") + chunks(BODY), True),
    ("lines end with LF", (HEAD + LENGTH + b"\r\n").replace(b"\r", b"") + BODY, True),
    ("an interim response first", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED + chunks(BODY), True),
    ("the server closes", HEAD + b"Connection: close\r\n" + LENGTH + b"\r\n" + BODY, False),
    ("HTTP/1.0", b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY, False),
    ("HTTP/1.0 that stays", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + LENGTH + b"\r\n" + BODY, True),
    ("no reason", b"HTTP/1.1 200\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY, True),
]  # fmt: skip


def read(sent: bytes, cuts: list[int]) -> tuple[bytes, ResponseReader]:
    reader, body = ResponseReader(), b""
    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        if end > start:
            body += reader.feed(sent[start:end])
    return body, reader


@pytest.mark.parametrize(("sent", "is_kept"), [(sent, kept) for _, sent, kept in GOOD], ids=[name for name, *_ in GOOD])
def test_a_response_is_the_same_however_it_is_cut(sent: bytes, is_kept: bool) -> None:
    draw = random.Random(38)
    cuttings = [list(range(1, len(sent))), [], *([place] for place in range(1, len(sent)))]
    cuttings += [sorted(draw.sample(range(1, len(sent)), draw.randrange(2, 9))) for _ in range(100)]
    for cuts in cuttings:
        body, reader = read(sent, cuts)
        assert body == BODY and reader.head is not None and reader.head.status == 200, cuts
        assert reader.is_complete and reader.can_be_used_again == is_kept, cuts


def test_a_body_without_length_ends_with_the_connection_and_the_others_are_cut() -> None:
    body, reader = read(HEAD + b"\r\n" + BODY, [3, 20])
    assert body == BODY and not reader.is_complete and reader.end() and not ResponseReader().end()
    for _, sent, _ in GOOD:
        for place in range(1, len(sent)):
            assert not read(sent[:place], [])[1].end(), sent[:place]


def test_what_comes_behind_a_response_keeps_the_connection_from_being_used_again() -> None:
    for _, sent, _ in GOOD:
        for cuts in ([], [len(sent)], [len(sent) - 1]):
            body, reader = read(sent + b"HTTP/1.1 200 OK", cuts)
            assert body == BODY and reader.is_complete and not reader.can_be_used_again


@pytest.mark.parametrize("head", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n"])
def test_some_responses_have_no_body(head: bytes) -> None:
    assert read(head, [])[1].can_be_used_again


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it began with 'SSH-2.0"),
        (b"HTTP/2 200\r\n\r\n", "it began with 'HTTP/2 200'"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "it began with 'HTTP/1.1 20 OK'"),
        (HEAD + b"no colon\r\n\r\n", "a header is 'no colon'"),
        (HEAD + b"bad name: x\r\n\r\n", "a header is 'bad name: x'"),
        (HEAD + b"Content-Length: -1\r\n\r\n", "its length is -1"),
        (HEAD + b"Content-Length: 5, 6\r\n\r\n", "its length is 5, 6"),
        (HEAD + b"Content-Length: \xc2\xb2\r\n\r\n", "its length is"),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "sent as gzip, chunked"),
        (CHUNKED + b"0x1f\r\n", "the size of a chunk is '0x1f'"),
        (CHUNKED + b"-1\r\n", "the size of a chunk is '-1'"),
        (CHUNKED + b"1_0\r\n", "the size of a chunk is '1_0'"),
        (CHUNKED + b"\r\n", "the size of a chunk is ''"),
        (CHUNKED + b"2\r\nabc\r\n", "a chunk is longer than its size"),
        (CHUNKED + b"1" * 5000, "the size of a chunk has no end"),
        (b"HTTP/1.1 " + b"2" * 70_000, "it began with"),
    ],
)
def test_what_is_not_http_is_refused(sent: bytes, words: str) -> None:
    for cuts in ([], list(range(1, min(len(sent), 200)))):
        with pytest.raises(NotHttp, match="the server does not speak HTTP: ") as caught:
            read(sent, cuts)
        if not cuts:
            assert words in str(caught.value)


def test_random_bytes_end_or_are_refused() -> None:
    draw = random.Random(7)
    for _ in range(2000):
        sent = bytearray(draw.choice(GOOD)[1])
        for _ in range(draw.randrange(1, 4)):
            sent[draw.randrange(len(sent))] = draw.randrange(256)
        whole: list[object] = []
        for cuts in ([], sorted(draw.sample(range(1, len(sent)), 5))):
            try:
                body, reader = read(bytes(sent), cuts)
                whole.append((body, reader.is_complete, reader.can_be_used_again))
            except NotHttp:
                whole.append(None)
        assert whole[0] == whole[1], bytes(sent)


def test_events_in_chunks_are_the_same_however_they_are_cut() -> None:
    events = [b'data: {"choices": [{"text": "%s"}]}\r\n\r\n' % one.encode() for one in ("日本", "naïve", "😀")]
    sent = CHUNKED + chunks(b": hello\n\n", *events, b"event: ping\ndata: {}\n\n", b"data: [DONE]\n\n")
    draw = random.Random(1)
    for _ in range(300):
        reader, stream, found = ResponseReader(), EventStream(1 << 20, parsed), []
        cuts = sorted(draw.sample(range(1, len(sent)), draw.randrange(1, 60)))
        for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            found += stream.feed(reader.feed(sent[start:end]))
        assert [one["choices"][0]["text"] for one in found if one is not DONE] == ["日本", "naïve", "😀"]
        assert found[-1] is DONE and reader.can_be_used_again and (stream.ignored, stream.skipped) == (1, 0)


def test_json_reads_the_same_with_and_without_orjson() -> None:
    assert parsed(b'{"a": "\\ud83d"}') == {"a": "\ud83d"}  # half a character, which orjson refuses
    assert parsed(b'{"a": ' + b"9" * 400 + b"}") == {"a": int("9" * 400)}
    for bad in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises((ValueError, RecursionError)):
            parsed(bad)
