"""The ways to a server: IPv6, TLS, proxies with and without a tunnel, each with a real relay on this machine."""

import asyncio
import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import HOST, authority
from endpoint_client import SECRET, asked, assert_right, folder_fixture, run  # noqa: F401
from stub_openai import Stub, running_stub

from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.base.errors import HarnessError


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class Relay:
    """Hands everything on to a port of 127.0.0.1. is_proxy: it reads CONNECT, or a request with a whole URL, first.
    heads: what it read; status: of its answers to CONNECT."""

    def __init__(self, port: int, is_proxy: bool = False) -> None:
        self.port, self.is_proxy, self.status = port, is_proxy, 200
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, port = b"", self.port
        if self.is_proxy:
            first = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(first.decode())
            target = first.split(b" ")[1]
            if first.startswith(b"CONNECT"):
                port, first = int(target.rpartition(b":")[2]), b""
                writer.write(b"HTTP/1.1 %d X\r\n\r\n" % self.status)
            else:
                first = first.replace(target, b"/" + target.split(b"/", 3)[3], 1)
        other = await asyncio.open_connection("127.0.0.1", port)
        other[1].write(first)
        await asyncio.gather(pump(reader, other[1]), pump(other[0], writer))


@contextmanager
def running(relay: Relay, host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The relay in a thread; gives its port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(relay.serve, host, 0, ssl=context))
    loop.set_exception_handler(lambda *_: None)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))  # connections end
        loop.close()


@pytest.fixture(scope="module")
def stub() -> Iterator[tuple[Stub, int]]:
    with running_stub() as (found, url):
        yield found, int(url.rpartition(":")[2])


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: tuple[Stub, int]) -> Iterator[tuple[int, Path]]:
    """The port of the stub with TLS, and the CA bundle that its certificate needs."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    bundle, both = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    with running(Relay(stub[1]), context=context) as port:
        yield port, bundle


@pytest.fixture
def proxy(stub: tuple[Stub, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A proxy that the environment names, with a login."""
    relay = Relay(stub[1], is_proxy=True)
    for name in ("http_proxy", "https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with running(relay) as port:
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://me:pa%20ss@127.0.0.1:{port}")
        yield relay


def answered(url: str, folder: Path, **values: object) -> None:
    engine = open_engine(asked(url, folder, **values))
    try:
        assert_right(run(engine, 20), 20)
    finally:
        engine.close()


def refused(url: str, folder: Path) -> HarnessError:
    with pytest.raises(HarnessError) as caught:
        open_engine(asked(url, folder))
    return caught.value


def test_a_server_is_reached_by_ipv6_and_by_name(stub: tuple[Stub, int], folder: Path) -> None:
    with running(Relay(stub[1]), "::1") as port:
        answered(f"http://[::1]:{port}/v1", folder)
        assert stub[0].headers["host"] == f"[::1]:{port}"
    answered(f"http://localhost:{stub[1]}/v1", folder)


def test_a_server_with_tls_is_read_where_its_certificate_is_trusted(
    tls: tuple[int, Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"https://127.0.0.1:{tls[0]}/v1"
    found = refused(url, folder)
    assert f"the certificate of 127.0.0.1:{tls[0]} is not trusted" in str(found) and "SSL_CERT_FILE" in found.hint
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    answered(url, folder)
    other = refused(url.replace("127.0.0.1", "localhost"), folder)
    assert "not trusted: Hostname mismatch" in str(other) and "that the certificate covers" in other.hint


def test_a_plain_request_goes_through_the_proxy_with_its_login(proxy: Relay, folder: Path) -> None:
    answered(f"http://{HOST}:8000/v1", folder)
    login = base64.b64encode(b"me:pa ss").decode()
    assert proxy.heads[0].startswith(f"GET http://{HOST}:8000/v1/models HTTP/1.1\r\nHost: {HOST}:8000\r\n")
    assert all(f"Proxy-Authorization: Basic {login}\r\n" in one for one in proxy.heads)


def test_tls_goes_through_a_tunnel_that_sees_neither_key_nor_path(
    proxy: Relay, tls: tuple[int, Path], stub: tuple[Stub, int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    monkeypatch.setenv("STUB_KEY", SECRET)
    answered(f"https://{HOST}:{tls[0]}/v1", folder, key_variable="STUB_KEY")
    assert stub[0].headers["authorization"] == f"Bearer {SECRET}" and "proxy-authorization" not in stub[0].headers
    assert all(one.startswith(f"CONNECT {HOST}:{tls[0]} HTTP/1.1\r\n") for one in proxy.heads)
    assert SECRET not in "".join(proxy.heads) and "/v1" not in "".join(proxy.heads)


def test_a_proxy_that_refuses_or_is_not_there_is_said(
    proxy: Relay, tls: tuple[int, Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.status = 407
    assert "the proxy refused the connection (status 407)" in str(refused(f"https://{HOST}:{tls[0]}/v1", folder))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert "the proxy set in the environment cannot be reached" in str(refused(f"http://{HOST}:8000/v1", folder))


def test_headers_query_and_key_header_reach_the_server_and_no_record(
    stub: tuple[Stub, int], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", SECRET)
    (tmp_path / "token").write_text(f"{SECRET}-file\n")
    headers = ("X-Team: perf", f"X-Token:file:{tmp_path / 'token'}")
    url = f"http://127.0.0.1:{stub[1]}/v1?api-version=2024-10-21"
    engine = open_engine(asked(url, folder, key_variable="STUB_KEY", key_header="api-key", headers=headers))
    try:
        assert_right(run(engine, 4), 4)
        seen = stub[0].headers
        assert (seen["api-key"], seen["x-team"], seen["x-token"]) == (SECRET, "perf", f"{SECRET}-file")
        assert "authorization" not in seen and stub[0].query == "api-version=2024-10-21"
        record = engine.record()
    finally:
        engine.close()
    assert record["endpoint"] == {"value": url, "origin": "user"}
    assert record["headers"] == {"value": ["api-key", "X-Team", "X-Token"], "origin": "user"}
    assert SECRET not in repr(record)


def test_a_server_with_its_own_authority_and_clients_with_certificates(
    stub: tuple[Stub, int], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    bundle, both = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(bundle)
    context.verify_mode = ssl.CERT_REQUIRED
    with running(Relay(stub[1]), context=context) as port:
        url = f"https://127.0.0.1:{port}/v1"
        answered(url, folder, ca_file=str(bundle), client_certificate=str(both))
        with pytest.raises(HarnessError) as caught:
            open_engine(asked(url, folder, ca_file=str(bundle)))
        assert "endpoint cannot be used" in str(caught.value)
        with pytest.raises(HarnessError, match="--ca_file: /no/such cannot be used"):
            open_engine(asked(url, folder, ca_file="/no/such"))


def test_a_secret_of_a_header_never_passes_a_proxy_without_tls(
    proxy: Relay, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", SECRET)
    with pytest.raises(HarnessError, match="could read"):
        open_engine(asked(f"http://{HOST}:8000/v1", folder, headers=("api-key:env:STUB_KEY",)))
    assert proxy.heads == []
