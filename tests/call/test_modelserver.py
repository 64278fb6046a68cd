"""A wrong URL is found by one question that needs nothing but the standard library; the key is shown nowhere."""

import base64
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from certificates import HOST, authority

from crowdperf.call import model_server
from crowdperf.call.model_server import ServerProblem, choose_model
from crowdperf.rules.prompt_settings import AccessSettings

KEY = "sk-0123456789abcdef"


def look(url: str, model: str | None, variable: str | None, chat_hint: str = "") -> None:
    apis = ("completions",) if chat_hint else ()
    model_server.look(url, model, AccessSettings(key_variable=variable), apis, chat_hint)


class Server(BaseHTTPRequestHandler):
    """Answers GET /KIND/v1/models as KIND says."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        status = int(kind) if kind.isdigit() else 404 if not self.path.endswith("/v1/models") else 200
        if kind == "key":
            status = 200 if self.headers.get("Authorization") == f"Bearer {KEY}" else 401
        content = json.dumps({"data": [{"id": "org/llama-8b", "aliases": ["llama"]}]})
        body = {
            "page": "<html>",
            "list": "[1]",
            "two": content.replace("]}]", ']}, {"id": "b\\u001b[31m"}]'),
            "twice": content.replace("]}]", ']}, {"id": "org/llama-8b"}]'),
        }.get(kind, content)
        if status >= 400:
            body = json.dumps({"error": {"message": f"no {self.headers.get('Authorization')}\x1b[31m" + "x" * 1000}})
        self.send_response(status)
        if status == 307:
            self.send_header("Location", "https://user:secret@elsewhere.example/v1/models?token=secret")
        if "/later/" in self.path:
            self.send_header("Retry-After", "1")
        if kind == "packed":
            self.send_header("Content-Encoding", "gzip")
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
    model_server.look.cache_clear()
    monkeypatch.setenv("THE_KEY", KEY)


@pytest.mark.parametrize(
    ("path", "model", "variable"),
    [
        ("good/v1", None, None), ("good/v1/", None, None), ("good/v1", "llama", None),
        ("429/later/v1", None, None), ("503/later/v1", None, None), ("103/v1", None, None),
        ("good/v1", "org/llama-8b", None),
        ("key/v1", None, "THE_KEY"), ("404/v1", "any", None), ("405/v1", "any", None), ("two/v1", "llama", None),
        ("twice/v1", None, None),
    ],
)  # fmt: skip
def test_a_good_server_is_passed(root, path, model, variable):
    look(f"{root}/{path}", model, variable)


@pytest.mark.parametrize(
    ("path", "model", "variable", "found", "hint"),
    [
        ("good", None, None, "does not know this path or model (404)", "good/v1. If the server has no list of models"),
        ("404/v1", None, None, "(404)", "path of the URL. If the server has no list of models: --endpoint_model=NAME"),
        ("429/v1", None, None, "limits the request rate (429)", "wait, or raise the server's limit"),
        ("key/v1", None, None, "requires authentication (401)", "no key was sent"),
        ("403/v1", None, "THE_KEY", "does not allow this key", "the key in THE_KEY was refused"),
        ("500/v1", "m", None, "the server failed (500): no None\\x1b[31mxxx", "wait until"),
        ("402/v1", "m", None, "the server requires payment (402)", "pay for more requests"),
        ("503/v1", "m", None, "not ready or overloaded (503)", "loaded its model"),
        (
            "307/v1",
            "m",
            None,
            "redirects to https://elsewhere.example/v1/models",
            "--endpoint=https://elsewhere.example/v1",
        ),
        ("packed/v1", None, None, "the server packed its answer (gzip)", "OpenAI's API"),
        ("page/v1", None, None, "something that is not JSON: <html>", "OpenAI's API"),
        ("list/v1", None, None, "the answer has no list `data`", "OpenAI's API"),
        ("good/v1", "lama-8b", None, "the server has: org/llama-8b", "did you mean --endpoint_model=org/llama-8b?"),
        ("two/v1", None, None, "it serves 2 models: org/llama-8b, b\\x1b[31m", "choose one: --endpoint_model=org/"),
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
        ("http://no-such-host.invalid/v1", "does not resolve (DNS)", "check host and port"),
        (root.replace("http:", "https:") + "/v1", "Use http:// for a server without TLS", "OpenAI's API"),
    ):
        with pytest.raises(ServerProblem) as caught:
            look(url, None, None)
        assert found in str(caught.value)
        assert hint in caught.value.hint


def test_a_server_that_is_slow_to_answer_may_be_good(monkeypatch):
    monkeypatch.setattr(model_server, "_ANSWER_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        look(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", None, None)


def test_a_server_is_asked_once_by_a_process(root):
    look(f"{root}/good/v1", None, None)
    look(f"{root}/good/v1", None, None)
    assert (model_server.look.cache_info().hits, model_server.look.cache_info().misses) == (1, 1)


def test_a_model_is_named_so_that_a_shell_takes_it_as_one_word():
    with pytest.raises(ServerProblem) as caught:
        choose_model([{"id": "my model; rm x"}, {"id": "b"}], None)
    assert caught.value.hint == "choose one: --endpoint_model='my model; rm x'"


def test_a_server_with_chats_only_is_found_where_the_benchmark_needs_more(root):
    hint = "give another server"
    look(f"{root}/good/v1", None, None, hint)
    look(f"{root}/chat/v1", None, None)
    with pytest.raises(ServerProblem, match=r"request for a token \(POST /completions\): .* \(404\)") as caught:
        look(f"{root}/chat/v1", None, None, hint)
    assert caught.value.hint == hint


def test_a_server_that_has_none_of_the_apis_is_found(root):
    model_server.look_for_run(f"{root}/good/v1", "", AccessSettings(), "own-prompts")
    model_server.look_for_run(f"{root}/good/v1", "", AccessSettings(), "own-prompts", "completions")
    with pytest.raises(ServerProblem, match=r"POST /chat/completions\): .* \(404\)") as caught:
        model_server.look_for_run(f"{root}/chat/v1", "", AccessSettings(), "own-prompts")
    assert caught.value.hint == model_server.KIND_HINT
    with pytest.raises(ServerProblem) as caught:
        model_server.look_for_run(f"{root}/good/v1", "", AccessSettings(), "own-prompts", "chat")
    assert "omit --endpoint_api" in caught.value.hint


# --- proxies and certificates, with real ones on this machine ---


class Proxy(BaseHTTPRequestHandler):
    """Takes HOST for this machine, in plain requests and in tunnels; notes what it was asked, and by whom."""

    seen: list[tuple[str, str, str]]
    needs_login = False

    def note(self) -> bool:
        login = self.headers.get("Proxy-Authorization", "")
        self.seen.append((f"{self.command} {self.path}", login, self.headers.get("Authorization", "")))
        if not self.needs_login or login:
            return True
        self.send_error(407)
        return False

    def do_GET(self) -> None:
        if not self.note():
            return
        body = json.dumps({"data": [{"id": "behind-a-proxy"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        if not self.note():
            return
        with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2])), timeout=5) as other:
            self.send_response(200)
            self.end_headers()
            pair = [self.connection, other]
            while ready := select.select(pair, [], [], 5)[0]:
                for one in ready:
                    if not (received := one.recv(65536)):
                        return
                    pair[pair.index(one) - 1].sendall(received)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Proxy]]:
    """A proxy that the environment names."""
    kind = type("OwnProxy", (Proxy,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("http_proxy", "https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    kind.address = f"127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HTTP_PROXY", f"http://{kind.address}")
    monkeypatch.setenv("HTTPS_PROXY", f"http://{kind.address}")
    yield kind
    server.shutdown()
    server.server_close()


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Path]]:
    """A server with TLS: its port, and the CA bundle that its certificate needs."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    bundle, both = authority(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], bundle
    server.shutdown()
    server.server_close()


def refusal(url: str, variable: str | None = None) -> ServerProblem:
    """Why a server is refused."""
    with pytest.raises(ServerProblem) as caught:
        look(url, None, variable)
    assert KEY[:8] not in f"{caught.value} {caught.value.hint}"
    return caught.value


def test_a_self_made_certificate_is_refused_with_the_way_to_trust_it(secure, monkeypatch, tmp_path):
    port, bundle = secure
    url = f"https://127.0.0.1:{port}/good/v1"
    found = refusal(url)
    assert f"the certificate of 127.0.0.1:{port} is not trusted" in str(found)
    assert "export SSL_CERT_FILE=FILE.pem" in found.hint
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
    assert "absent.pem is not a file" in str(refusal(url))
    model_server.look.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    look(url, None, None)
    other = refusal(f"https://localhost:{port}/good/v1")
    assert (
        "not trusted: Hostname mismatch" in str(other)
        and "a host name in the URL that the certificate covers" in other.hint
    )


def test_a_server_behind_a_proxy_is_found_and_a_key_stays_out_of_plain_requests(proxy, monkeypatch):
    look(f"http://{HOST}:8000/v1", "behind-a-proxy", None)
    assert proxy.seen == [(f"GET http://{HOST}:8000/v1/models", "", "")]
    found = refusal(f"http://{HOST}:8000/v1", "THE_KEY")
    assert "the proxy of HTTP_PROXY could read the API key" in str(found) and f"NO_PROXY={HOST}" in found.hint
    assert len(proxy.seen) == 1, "nothing was sent"
    monkeypatch.setenv("NO_PROXY", f"{HOST}:8000")
    assert "does not resolve (DNS)" in str(refusal(f"http://{HOST}:8000/v1"))
    assert len(proxy.seen) == 1


def test_a_server_with_tls_behind_a_proxy_is_found_through_a_tunnel(proxy, secure, monkeypatch):
    port, bundle = secure
    url = f"https://{HOST}:{port}/key/v1"
    assert "is not trusted" in str(refusal(url, "THE_KEY"))
    model_server.look.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    look(url, None, "THE_KEY")
    assert set(proxy.seen) == {(f"CONNECT {HOST}:{port}", "", "")}, "the key goes through the tunnel"


def test_a_proxy_that_wants_a_login_gets_it_and_one_that_is_not_there_is_named(proxy, monkeypatch):
    proxy.needs_login = True
    url = f"https://{HOST}:1/v1"
    found = refusal(url)
    assert "the proxy 127.0.0.1:" in str(found) and "407" in str(found) and "HTTPS_PROXY" in found.hint
    model_server.look.cache_clear()
    monkeypatch.setenv("HTTP_PROXY", f"http://me:p%20w@{proxy.address}")
    look(f"http://{HOST}/v1", None, None)
    assert proxy.seen[-1][1] == "Basic " + base64.b64encode(b"me:p w").decode()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = listener.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{gone}")
    model_server.look.cache_clear()
    found = refusal(f"http://{HOST}/v1")
    assert f"the proxy 127.0.0.1:{gone} cannot be used: Connection refused" in str(found)
    assert "secret" not in str(found) and "NO_PROXY" in found.hint


def test_this_machine_is_never_asked_through_a_proxy(proxy, root):
    look(f"{root}/good/v1", None, None)
    assert proxy.seen == []
