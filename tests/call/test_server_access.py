"""Keys, headers and certificates of a server: secrets from variables and files, real TLS servers, redirects."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from certificates import authority

from crowdperf.call import model_server
from crowdperf.call.model_server import ServerProblem, look
from crowdperf.call.server_access import AccessProblem, context_of, credentials_of, settings_of
from crowdperf.rules.prompt_settings import AccessSettings

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    look.cache_clear()
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("AZURE_KEY", SECRET)


def test_secrets_come_from_variables_and_files_and_are_shown_nowhere(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"Bearer {SECRET}-2\n")
    settings = AccessSettings(headers=("X-Team: perf", "api-key:env:K", f"X-Auth:file:{tmp_path / 'token'}"))
    found = credentials_of(settings, {"K": f" {SECRET} "})
    assert found.headers() == {"X-Team": "perf", "api-key": SECRET, "X-Auth": f"Bearer {SECRET}-2"}
    assert found.is_given and found.names == ("X-Team", "api-key", "X-Auth")
    assert "hunter2" not in f"{found!r} {found} {found.hidden_in(f'no {SECRET} and {SECRET}-2')}"
    assert "perf" in found.hidden_in("team perf")


def test_the_key_has_its_own_header_or_is_a_bearer() -> None:
    for header, expected in (
        (None, {"Authorization": f"Bearer {SECRET}"}), ("authorization", {"authorization": f"Bearer {SECRET}"}),
        ("api-key", {"api-key": SECRET}),
    ):  # fmt: skip
        settings = AccessSettings(key_variable="K", key_header=header)
        assert credentials_of(settings, {"K": SECRET}).headers() == expected
    assert credentials_of(AccessSettings(key_variable="K"), {"K": "abcd"}).headers() == {"Authorization": "Bearer abcd"}


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"key_variable": "NONE"}, "NONE for the API key is not set", "export NONE="),
        ({"key_variable": "TWO"}, "TWO does not contain an API key: 15 characters", "copy it again"),
        ({"key_variable": "SHORT"}, "3 characters, allowed: at least 4", "copy it again"),
        ({"headers": ("a-key:env:NONE",)}, "the header a-key: the environment variable NONE is not set", "export NONE"),
        ({"headers": ("a-key:env:TWO",)}, "TWO has no value for it: 15 characters", "copy it again"),
        ({"headers": ("a-key:file:/no/such",)}, "cannot read /no/such: No such file", "NAME:file:PATH"),
        ({"headers": ("a-key:file:/dev/zero",)}, "cannot read /dev/zero: a device, allowed: a", "NAME:file"),
    ],
)
def test_a_secret_that_cannot_be_sent_is_said(given: dict[str, Any], words: str, hint: str) -> None:
    with pytest.raises(AccessProblem) as caught:
        credentials_of(AccessSettings(**given), {"TWO": "hunter2\nhunter2", "SHORT": "abc"})
    assert words in str(caught.value) and hint in caught.value.hint and "hunter2" not in str(caught.value)


def test_certificates_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("hello")
    bundle, _ = authority(tmp_path)
    for given, words in (
        ({"ca_file": str(text)}, "--ca_file: "), ({"ca_file": "/no/such"}, "/no/such cannot be used: No such file"),
        ({"client_certificate": str(text)}, "--client_certificate: "),
        ({"client_certificate": str(bundle)}, "not a PEM file with a certificate and its key"),
        ({"client_certificate": str(bundle), "client_key": "/no/such"}, "No such file"),
    ):  # fmt: skip
        with pytest.raises(AccessProblem) as caught:
            context_of(AccessSettings(**given))
        assert words in str(caught.value) and "PEM file" in caught.value.hint


def test_texts_of_a_sweep_are_settings() -> None:
    found = settings_of({"endpoint_header": "A: 1, b:env:C", "endpoint_ca_file": "ca.pem", "endpoint_key_variable": ""})
    assert found == AccessSettings(headers=("A: 1", "b:env:C"), ca_file="ca.pem")


class Server(BaseHTTPRequestHandler):
    """Lists a model, or redirects, and notes what it got."""

    seen: list[tuple[str, dict[str, str]]]
    location = ""

    def do_GET(self) -> None:
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        body = json.dumps({"data": [{"id": "m"}]}).encode()
        self.send_response(307 if self.location else 200)
        if self.location:
            self.send_header("Location", self.location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


Running = Callable[..., tuple[int, list[tuple[str, dict[str, str]]]]]


@pytest.fixture
def serve() -> Iterator[Running]:
    """Starts servers; gives the port of each, and what it has seen."""
    servers = []

    def start(context: ssl.SSLContext | None = None, location: str = "") -> Any:
        seen: list[tuple[str, dict[str, str]]] = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Server,), {"seen": seen, "location": location}))
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_address[1], seen

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_server_gets_headers_and_query(serve: Running) -> None:
    port, seen = serve()
    access = AccessSettings(key_variable="AZURE_KEY", key_header="api-key", headers=("X-Team: perf",))
    look(f"http://127.0.0.1:{port}/openai/v1?api-version=2024-10-21", None, access)
    ((path, headers),) = seen
    assert path == "/openai/v1/models?api-version=2024-10-21"
    assert (headers["api-key"], headers["x-team"]) == (SECRET, "perf") and "authorization" not in headers


def test_a_redirect_to_another_host_is_never_followed(serve: Running) -> None:
    port, reached = serve()
    first, _ = serve(location=f"http://127.0.0.1:{port}/v1/models")
    with pytest.raises(ServerProblem, match="redirects are not followed"):
        look(f"http://127.0.0.1:{first}/v1", None, AccessSettings(headers=("api-key:env:AZURE_KEY",)))
    assert reached == []


@pytest.fixture
def mutual(tmp_path: Path, serve: Running) -> tuple[int, Path, Path]:
    """A server that requires a certificate of its clients: its port, the CA bundle, and a certificate with its key."""
    bundle, both = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(bundle)
    context.verify_mode = ssl.CERT_REQUIRED
    return serve(context)[0], bundle, both


def test_a_server_with_its_own_authority_may_require_a_certificate_of_the_client(
    mutual: tuple[int, Path, Path], tmp_path: Path
) -> None:
    port, bundle, both = mutual
    url = f"https://127.0.0.1:{port}/v1"
    with pytest.raises(ServerProblem) as caught:
        look(url, None, AccessSettings(client_certificate=str(both)))
    assert "is not trusted" in str(caught.value) and "--ca_file=FILE.pem" in caught.value.hint
    with pytest.raises(ServerProblem) as caught:
        look(url, None, AccessSettings(ca_file=str(bundle)))
    assert "--client_certificate=FILE.pem" in caught.value.hint, (str(caught.value), caught.value.hint)
    look(url, None, AccessSettings(ca_file=str(bundle), client_certificate=str(both)))
    text = both.read_text()
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    place = text.index("-----BEGIN CERTIFICATE")
    key.write_text(text[:place])
    certificate.write_text(text[place:])
    separate = {"client_certificate": str(certificate), "client_key": str(key)}
    look(url, None, AccessSettings(ca_file=str(bundle), **separate))


def test_a_key_of_the_environment_is_used_where_openais_clients_do(
    serve: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, seen = serve()
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    model_server.look_for_run(f"http://127.0.0.1:{port}/v1", "", AccessSettings(key_header="api-key"), "")
    assert seen[0][1]["api-key"] == SECRET
