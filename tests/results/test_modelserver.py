"""A wrong URL is found by one question that needs nothing but the standard library; the key is shown nowhere."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mlperf_results import modelserver
from mlperf_results.modelserver import ServerProblem, choose_model, look

KEY = "sk-0123456789abcdef"


class Server(BaseHTTPRequestHandler):
    """Answers GET /KIND/v1/models as KIND says."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        status = int(kind) if kind.isdigit() else 404 if not self.path.endswith("/v1/models") else 200
        if kind == "key":
            status = 200 if self.headers.get("Authorization") == f"Bearer {KEY}" else 401
        content = json.dumps({"data": [{"id": "org/llama-8b", "aliases": ["llama"]}]})
        body = {"page": "<html>", "list": "[1]", "two": content.replace("]}]", ']}, {"id": "b\\u001b[31m"}]')}.get(
            kind, content
        )
        if status >= 400:
            body = json.dumps({"error": {"message": f"no {self.headers.get('Authorization')}\x1b[31m" + "x" * 1000}})
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "https://user:secret@elsewhere.example/v1/models?token=secret")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self) -> None:
        """Only /completions of a server that is not called chat, or knows no such model."""
        self.rfile.read(int(self.headers["Content-Length"]))
        is_there = self.path.endswith("/completions") and "/chat/" not in self.path
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    look.cache_clear()
    monkeypatch.setenv("THE_KEY", KEY)


@pytest.mark.parametrize(
    ("path", "model", "variable"),
    [
        ("good/v1", None, None), ("good/v1/", None, None), ("good/v1", "llama", None),
        ("good/v1", "org/llama-8b", None),
        ("key/v1", None, "THE_KEY"), ("404/v1", "any", None), ("405/v1", "any", None), ("two/v1", "llama", None),
    ],
)  # fmt: skip
def test_a_good_server_is_passed(root, path, model, variable):
    look(f"{root}/{path}", model, variable)


@pytest.mark.parametrize(
    ("path", "model", "variable", "found", "hint"),
    [
        ("good", None, None, "does not know this path or model (404)", "most servers need /v1 at its end: --endpoint="),
        ("404/v1", None, None, "(404)", "/v1 at its end"),
        ("key/v1", None, None, "requires authentication (401)", "no key was sent"),
        ("403/v1", None, "THE_KEY", "does not allow this key", "the key in THE_KEY was refused"),
        ("500/v1", "m", None, "the server failed (500): no None\\x1b[31mxxx", "look into its log"),
        ("503/v1", "m", None, "not ready or overloaded (503)", "loaded its model"),
        ("307/v1", "m", None, "redirects to https://elsewhere.example/v1/models (307)", "behind the redirect"),
        ("page/v1", None, None, "something that is not JSON: <html>", "OpenAI's API"),
        ("list/v1", None, None, "the answer has no list `data`", "OpenAI's API"),
        ("good/v1", "lama-8b", None, "the server has: org/llama-8b", "did you mean --endpoint_model=org/llama-8b?"),
        ("two/v1", None, None, "it serves 2 models: org/llama-8b, b\\x1b[31m", "say which: --endpoint_model=org/"),
    ],
)
def test_what_no_run_could_get_over_is_said(root, path, model, variable, found, hint):
    with pytest.raises(ServerProblem) as caught:
        look(f"{root}/{path}", model, variable)
    assert found in str(caught.value)
    assert hint in caught.value.hint
    assert KEY[:8] not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_nobody_there_an_unknown_host_and_no_tls_are_said(root):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url, found, hint in (
        (f"http://127.0.0.1:{port}/v1", "Connection refused", f"curl http://127.0.0.1:{port}/v1/models"),
        ("http://no-such-host.invalid/v1", "is not known (DNS)", "check host and port"),
        (root.replace("http:", "https:") + "/v1", "a server without TLS needs http://", "OpenAI's API"),
    ):
        with pytest.raises(ServerProblem) as caught:
            look(url, None, None)
        assert found in str(caught.value)
        assert hint in caught.value.hint


def test_a_server_that_is_slow_to_answer_may_be_good(monkeypatch):
    monkeypatch.setattr(modelserver, "_ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        look(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", None, None)


def test_a_server_is_asked_once_by_a_process(root):
    look(f"{root}/good/v1", None, None)
    look(f"{root}/good/v1", None, None)
    assert (look.cache_info().hits, look.cache_info().misses) == (1, 1)


def test_a_model_is_named_so_that_a_shell_takes_it_as_one_word():
    with pytest.raises(ServerProblem) as caught:
        choose_model([{"id": "my model; rm x"}, {"id": "b"}], None)
    assert caught.value.hint == "say which: --endpoint_model='my model; rm x'"


def test_a_server_with_chats_only_is_found_where_the_benchmark_needs_more(root):
    hint = "give another server"
    look(f"{root}/good/v1", None, None, hint)
    look(f"{root}/chat/v1", None, None)
    with pytest.raises(ServerProblem, match=r"asked for a token \(POST /completions\): .* \(404\)") as caught:
        look(f"{root}/chat/v1", None, None, hint)
    assert caught.value.hint == hint
