"""What one question to the server finds out before a curve."""

from collections.abc import Iterator

import pytest
from stub_openai import MODEL, Stub, running_stub

from crowdperf.curves.probe import ProbeError, probe, root_of


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Stub, str]]:
    with running_stub() as found:
        yield found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://host:8000", "http://host:8000"),
        ("http://host:8000/", "http://host:8000"),
        ("https://host/gateway/v1", "https://host/gateway"),
        ("http://host:8000/v1/", "http://host:8000"),
        ("http://host:8000//v1", "http://host:8000"),
        ("http://host:8000/v1/chat/completions", "http://host:8000"),
    ],
)
def test_the_client_gets_the_url_without_the_call(given: str, expected: str) -> None:
    assert root_of(given) == expected


@pytest.mark.parametrize("given", [
        "", "host:8000", "ftp://me:secret@host", "http://", "http://me:secret@host", "http://h/?k=1", "http://HOST:PORT",
        "http://host:99999", "http://[::1",
    ])  # fmt: skip
def test_a_url_that_is_none_is_refused_without_repeating_a_password(given: str) -> None:
    with pytest.raises(ValueError, match="--url must") as caught:
        root_of(given)
    assert "secret" not in str(caught.value)


def test_a_server_that_streams_is_measured(server: tuple[Stub, str]) -> None:
    found = probe(f"{server[1]}/tokens=8,ttft_ms=5", MODEL)
    assert found.pieces == 8
    assert found.finish_reason == "length"
    assert 0 < found.first_token_s < found.seconds
    assert found.notes == ()


def test_the_key_goes_into_the_header_and_a_missing_one_is_named(server: tuple[Stub, str]) -> None:
    probe(server[1], MODEL, "MY_KEY", {"MY_KEY": "sesame"})
    assert server[0].headers["authorization"] == "Bearer sesame"
    with pytest.raises(ProbeError, match="MY_KEY of --api_key_variable is not set"):
        probe(server[1], MODEL, "MY_KEY", {})


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("status=401", "answers 401.*api_key_variable"),
        ("status=503", "answers 503.*server's log"),
        ("die", "cut it off|no answer"),
        ("empty", "no streamed token"),
        ("error", "broke the answer off"),
        ("json", "no streamed token"),
        ("garbage", r"not of OpenAI's form: \{.choices.: 7\}"),
    ],
)
def test_what_would_spoil_a_curve_is_found_at_once(server: tuple[Stub, str], behaviour: str, words: str) -> None:
    with pytest.raises(ProbeError, match=words):
        probe(f"{server[1]}/{behaviour}", MODEL)


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(server: tuple[Stub, str]) -> None:
    for value in ("open sesame", "opensesame\r", "opens\u00e9same"):
        with pytest.raises(ProbeError, match="MY_KEY does not contain an API key") as caught:
            probe(server[1], MODEL, "MY_KEY", {"MY_KEY": value})
        assert "open" not in str(caught.value)


def test_no_server_is_said_with_the_address() -> None:
    with pytest.raises(ProbeError, match=r"no answer from http://127\.0\.0\.1:9.*start the server"):
        probe("http://127.0.0.1:9", MODEL)
    with pytest.raises(ProbeError, match=r"no answer from http://a\.\.b"):
        probe("http://a..b", MODEL)


def test_what_the_client_does_not_do_is_said(server: tuple[Stub, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProbeError, match="Use http:// for a server without TLS"):
        probe(server[1].replace("http:", "https:"), MODEL)
    monkeypatch.setattr("crowdperf.curves.probe.proxy_of", lambda url: "http://proxy:3128")
    (note,) = probe(server[1], MODEL).notes
    assert note.startswith("the environment names a proxy for this URL: the client does not use it")


def test_another_name_in_the_answer_is_a_note(server: tuple[Stub, str]) -> None:
    found = probe(f"{server[1]}/other", MODEL)
    assert len(found.notes) == 1 and repr(MODEL) in found.notes[0]
