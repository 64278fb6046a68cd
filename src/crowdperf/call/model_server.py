"""Answers of a server of language models before it gets a prompt, in words that a user can act on, and never with the
API key. Standard library only, so that a wrong URL is found before anything is installed.

`look` requests the models (GET /models) as the harness's client does at the start of a run.
"""

from __future__ import annotations

import base64
import difflib
import functools
import http.client
import json
import os
import shlex
import socket
import ssl
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import unquote, urljoin, urlsplit

from crowdperf.call.server_access import AccessProblem, Credentials, context_of, credentials_of
from crowdperf.kit.server_address import call_url, is_loopback
from crowdperf.rules.names import printable
from crowdperf.rules.prompt_settings import DEFAULT_KEY_VARIABLE, WITH_MESSAGES, AccessSettings, has_messages

MODELS = "/models"
CALLS = ("/chat/completions", "/completions", MODELS)
"""What follows the URL of a server in requests, longer ones first."""
NO_LIST = (404, 405, 501)
"""Statuses of servers that have no list of models."""
_MAX_SHOWN = 10
_CONNECT_S, _ANSWER_S = 5.0, 10.0
_LARGEST_BYTES = 8 << 20

STATUS_WORDS = {
    400: "the server refused the request (400)",
    401: "the server requires authentication (401)",
    402: "the server requires payment (402)",
    403: "the server does not allow this key or address (403)",
    404: "the server does not know this path or model (404)",
    405: "the server does not accept POST at this path (405)",
    408: "the server gave up waiting for the request (408)",
    413: "the request is too large for the server (413)",
    422: "the server cannot read the request (422)",
    429: "the server limits the request rate (429)",
    500: "the server failed (500)",
    502: "the gateway got no answer from the server behind it (502)",
    503: "the server is not ready or overloaded (503)",
    504: "the gateway gave up waiting for the server behind it (504)",
}
Response: TypeAlias = "tuple[int, http.client.HTTPMessage, bytes]"
"""Status, headers and body."""

START_HINT = "start the server, wait until it is ready, and check host and port: curl {}"
KIND_HINT = "check that the URL belongs to a server with OpenAI's API, and check the server's log"


class ServerProblem(Exception):
    """Why a server cannot be measured: the request and the response. hint: the suggested fix."""

    def __init__(self, asked: str, found: str, hint: str) -> None:
        super().__init__(f"the endpoint cannot be used: request {asked}: {found}")
        self.hint = hint


def one_line(text: str) -> str:
    """Return a server's message on one line, with escapes for characters that a terminal would obey."""
    return printable(" ".join(text.split()))


def error_text(body: Any) -> str:
    """Return the server's own words for an error, whole: OpenAI's {"error": {"message": ...}} or a relative of it. Who
    shows them hides the key first and cuts them afterwards."""
    if isinstance(body, dict):
        for key in ("error", "message", "detail", "msg"):
            if body.get(key):
                return error_text(body[key])
    if isinstance(body, list) and body:
        where = ".".join(str(part) for part in body[0].get("loc", ())) if isinstance(body[0], dict) else ""
        return f"{where}: {error_text(body[0])}" if where else error_text(body[0])
    return one_line(body if isinstance(body, str) else repr(body))


def body_text(body: bytes) -> str:
    """Return the server's own words for an error from the bytes of a response."""
    try:
        return error_text(json.loads(body)) if body else ""
    except (ValueError, RecursionError):
        return error_text(body.decode(errors="replace"))


def shown_url(location: str) -> str:
    """Return the URL of a redirect without user, password and query."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return "an invalid URL"
    host = parts.netloc.rpartition("@")[2]
    return error_text((f"{parts.scheme}://{host}" if host else "") + parts.path)


def refusal_words(status: int, text: str, location: str | None) -> str:
    """Return the meaning of an error response. text: the server's own words. location: of a redirect."""
    if 300 <= status < 400:
        where = location or "nowhere"
        return f"the server redirects to {where} ({status}), and redirects are not followed"
    words = STATUS_WORDS.get(status, f"the server answered with status {status}")
    return f"{words}: {text}" if text else words


def packed_words(coding: str | None) -> str:
    """Return the problem of a response with this Content-Encoding, "" for one that is not packed."""
    name = error_text((coding or "identity").strip().lower())
    off = "which was not requested. Switch compression off in the server or gateway"
    return "" if name in ("", "identity") else f"the server packed its answer ({name}), {off}"


def refusal_hint(status: int, url: str, variable: str | None, location: str | None = None) -> str:
    """Return the suggested fix for an error response. url: of the server. variable: has the key. location: of a
    redirect."""
    parts = urlsplit(url)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    if status in (401, 403):
        held = f"the key in {variable} was refused" if variable else "no key was sent"
        return f"{held}: export the key and pass the name of its variable: --endpoint_key_variable=NAME"
    if status == 404:
        added = "" if path.endswith("/v1") else f". Most servers need /v1 at its end: --endpoint={root}{path}/v1"
        return f"check the path of the URL{added}. If the server has no list of models: --endpoint_model=NAME"
    if 300 <= status < 400:
        target = urljoin(root, location or "").rstrip("/")
        call = next((one for one in CALLS if target.endswith(one)), "")
        return f"give the redirect target, including /v1: --endpoint={target.removesuffix(call)}"
    if status == 429:
        return "wait, or raise the server's limit on requests"
    if status == 402:
        return "pay for more requests, or use another key: --endpoint_key_variable=NAME"
    waited = "wait until the server has loaded its model, and " if status >= 500 or status == 408 else ""
    return f"{waited}check the server's log"


def asks_to_wait(status: int, retry_after: str | None) -> bool:
    """Return whether the same request may be answered later. retry_after: the header of the response."""
    return status == 429 or (status == 503 and retry_after is not None)


def listed_models(content: Any) -> list[dict[str, Any]]:
    """Return the models in the answer to GET /models. Raises ServerProblem for any other content."""
    entries = content.get("data") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ServerProblem(
            "for the models (GET /models)", "the answer has no list `data`",
            "check that the URL belongs to a server with OpenAI's API",
        )  # fmt: skip
    return [one for one in entries if isinstance(one, dict) and isinstance(one.get("id"), str)]


def choose_model(entries: Sequence[Mapping[str, Any]] | None, wanted: str | None) -> str:
    """Return the model to request. Raises ServerProblem with the available models, the nearest first."""
    if entries is None:
        return str(wanted)
    names = list(dict.fromkeys(str(one["id"]) for one in entries))
    known = {*names, *(str(alias) for one in entries for alias in one.get("aliases") or ())}
    if wanted in known or (wanted is None and len(names) == 1):
        return wanted or names[0]
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    shown = ", ".join(map(one_line, names[:_MAX_SHOWN])) + more
    none_yet = "wait until the server has loaded its model"
    if wanted is None:
        found = f"it serves {len(names)} models: {shown}" if names else "it serves no model"
        hint = f"choose one: {model_word(names[0])}" if names else none_yet
        raise ServerProblem("for the model it serves", found, hint)
    nearest = difflib.get_close_matches(wanted, names, n=1, cutoff=0.0) or names[:1]
    hint = f"did you mean {model_word(nearest[0])}?" if nearest else none_yet
    raise ServerProblem(f"for the model {wanted!r}", f"the server has: {shown or 'none'}", hint)


def model_word(name: str) -> str:
    """Return the input that names a model, for a shell."""
    return f"--endpoint_model={shlex.quote(one_line(name))}"


CERTIFICATE_HINT = "point to the CA bundle of its authority: --ca_file=FILE.pem, or export SSL_CERT_FILE=FILE.pem"
_CLIENT_ALERTS = ("CERTIFICATE_REQUIRED", "ALERT_BAD_CERTIFICATE", "ALERT_UNKNOWN_CA", "ALERT_HANDSHAKE_FAILURE")
"""Parts of OpenSSL's reasons if the server wants another certificate of the client, or any (sslerr.h of 3.0)."""
_OTHER_NAME = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH (x509_vfy.h of 3.0)."""


def certificate_words(error: ssl.SSLCertVerificationError, host: str) -> tuple[str, str]:
    """Return why the certificate of a host is refused, and what to try."""
    found = f"the certificate of {host} is not trusted: {error.verify_message}"
    named = os.environ.get("SSL_CERT_FILE", "")
    if error.verify_code in _OTHER_NAME:
        return found, "use a host name in the URL that the certificate covers"
    if named and not os.path.isfile(named):
        return f"{found}. SSL_CERT_FILE={printable(named)} is not a file", CERTIFICATE_HINT
    return found, CERTIFICATE_HINT


class _ProxyProblem(Exception):
    """The text explains why the proxy of the environment cannot be used."""


_PROXY_HINT = "fix the proxy in {0}_PROXY, or bypass it: export NO_PROXY={1}"


def connection_words(
    error: OSError | http.client.HTTPException, url: str, waited_s: float = _CONNECT_S
) -> tuple[str, str]:
    """Return why no answer came from the server at `url`, and what to try. waited_s: at most, for a connection."""
    parts = urlsplit(url)
    host, start = parts.netloc, START_HINT.format(call_url(url, MODELS))
    if isinstance(error, socket.gaierror):
        return f"the host name in {host} does not resolve (DNS)", start
    if isinstance(error, ssl.SSLCertVerificationError):
        return certificate_words(error, host)
    if isinstance(error, ssl.SSLEOFError) or any(
        word in (getattr(error, "reason", "") or "") for word in _CLIENT_ALERTS
    ):
        found = f"{host} ended the TLS handshake: {getattr(error, 'reason', '') or error}"
        return f"{found}. It may require a certificate of its clients", "give it with --client_certificate=FILE.pem"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection to {host}: {error.reason or error}. Use http:// for a server without TLS", KIND_HINT
    if isinstance(error, TimeoutError):
        return f"no connection to {host} within {waited_s:g} s", start
    if isinstance(error, http.client.HTTPException):
        return f"the server does not speak HTTP: {error or type(error).__name__}", KIND_HINT
    reason = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    return f"no connection to {host}: {reason}", start


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment sets for a URL (HTTP_PROXY, HTTPS_PROXY), or None if it sets none, for this
    machine, and for hosts in NO_PROXY."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname or "") or urllib.request.proxy_bypass(parts.netloc):
        return None
    return urllib.request.getproxies().get(parts.scheme) or None


def key_on_proxy_words(url: str) -> tuple[str, str]:
    """Return why a key is not sent to a URL with http:// through a proxy, and what to try."""
    host = urlsplit(url).hostname
    return (
        f"the proxy of HTTP_PROXY could read the API key on its way to {host}",
        f"use an https URL, or bypass the proxy: export NO_PROXY={host}",
    )


def _direct(url: str, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_CONNECT_S, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_CONNECT_S)


def _through(proxy: str, url: str, context: ssl.SSLContext | None) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    """Return an open connection to a proxy, for a tunnel to a URL with https, and the headers for the proxy. Raises
    _ProxyProblem."""
    parts, through = urlsplit(url), urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    shown, is_tunnel = f"the proxy {through.hostname}:{through.port or 80}", parts.scheme == "https"
    headers = {}
    if through.username:
        login = f"{unquote(through.username)}:{unquote(through.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    place = through.hostname or "", through.port or 80
    connection = http.client.HTTPConnection(*place, timeout=_CONNECT_S)
    if is_tunnel:
        connection = http.client.HTTPSConnection(*place, timeout=_CONNECT_S, context=context)
        connection.set_tunnel(parts.hostname or "", parts.port or http.client.HTTPS_PORT, headers)
    try:
        connection.connect()
    except ssl.SSLError:
        raise
    except OSError as error:
        connection.close()
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise _ProxyProblem(f"{shown} cannot be used: {reason}") from None
    return connection, {} if is_tunnel else headers


@dataclass(frozen=True, slots=True)
class _Asked:
    """A server that is asked, with the headers and certificates that it gets. variable: has the key, if any."""

    url: str
    credentials: Credentials
    variable: str | None
    context: ssl.SSLContext | None

    def problem(self, call: str, found: str, hint: str) -> ServerProblem:
        hidden = self.credentials.hidden_in
        return ServerProblem(call, hidden(one_line(found))[:400], hidden(hint))

    def answer(self, call: str, path: str, body: bytes | None = None) -> Response | None:
        """Return status, headers and body of an answer, or None if the server is slow. Raises ServerProblem."""
        parts, proxy = urlsplit(self.url), proxy_of(self.url)
        if proxy and self.credentials.is_given and parts.scheme == "http":
            raise self.problem(call, *key_on_proxy_words(self.url))
        try:
            found = _answer(call_url(self.url, path), self, body, proxy)
        except _ProxyProblem as error:
            hint = _PROXY_HINT.format(parts.scheme.upper(), parts.hostname)
            raise self.problem(call, str(error), hint) from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) and str(error) == _SLOW:
                return None
            raise self.problem(call, *connection_words(error, self.url)) from None
        if packed := packed_words(found[1].get("Content-Encoding")):
            raise self.problem(call, packed, KIND_HINT)
        return found

    def refused(self, call: str, answer: Response) -> ServerProblem:
        """Return the meaning of an answer with another status than 200."""
        status, headers, body = answer
        location = headers.get("Location")
        target = None if location is None else shown_url(location)
        words = refusal_words(status, body_text(body), target)
        hint = refusal_hint(status, self.url, self.variable if self.credentials.is_given else None, target)
        return self.problem(call, words, hint)


_OPEN = AccessSettings()
_API_CALLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "completions": ("/completions", {"prompt": "a"}),
    "chat": ("/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
}
"""The path of each API, and a prompt for it."""


def _asked(url: str, access: AccessSettings, call: str) -> _Asked:
    """Return the server with its requirements. Raises ServerProblem."""
    try:
        context = context_of(access) if url.startswith("https:") else None
        return _Asked(url.rstrip("/"), credentials_of(access), access.key_variable, context)
    except AccessProblem as error:
        raise ServerProblem(call, str(error), error.hint) from None


@functools.lru_cache(maxsize=8)
def look(
    url: str, model: str | None, access: AccessSettings = _OPEN, apis: tuple[str, ...] = (), hint: str = ""
) -> None:
    """Request the models of the server at `url` (up to and with /v1), once per process, and one token by the first of
    `apis` (completions, chat) that it has. hint: the fix for a server that has none of them. Raises ServerProblem for
    every problem that would end any run: no server, another path, no key, an unknown model. A slow server is not a
    problem, nor is one that asks to wait: a run asks it again."""
    call = "for the models (GET /models)"
    server = _asked(url, access, call)
    answer = server.answer(call, MODELS)
    if answer is None:
        return
    status, headers, body = answer
    retry_after = headers.get("Retry-After")
    if retry_after is not None and asks_to_wait(status, retry_after):
        return
    if status in NO_LIST and model is not None:
        name = model
    elif status != http.client.OK:
        raise server.refused(call, answer)
    else:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise server.problem(call, f"something that is not JSON: {body_text(body)}", KIND_HINT) from None
        name = choose_model(listed_models(content), model)
    for api in apis:
        path, prompt = _API_CALLS[api]
        call = f"for a token (POST {path})"
        answer = server.answer(call, path, json.dumps({"model": name, "max_tokens": 1, **prompt}).encode())
        if answer is None or answer[0] not in NO_LIST:
            return
    if apis and answer is not None:
        raise server.problem(call, refusal_words(answer[0], body_text(answer[2]), None), hint)


def look_for_run(url: str, model: str, access: AccessSettings, benchmark: str, api: str = "") -> None:
    """Check the server that a run is to measure. model: its name at the server, "" for the only one. access: without a
    variable for the API key the usual one counts if it is set. benchmark, api: "" if not known yet. Raises
    ServerProblem."""
    if not access.key_variable and DEFAULT_KEY_VARIABLE in os.environ:
        access = replace(access, key_variable=DEFAULT_KEY_VARIABLE)
    if benchmark and not has_messages(benchmark):
        look(url, model or None, access, ("completions",), f"use a server with /completions. {WITH_MESSAGES}")
    else:
        apis = (api,) if api else ("completions", "chat")
        hint = "omit --endpoint_api, or use a server with this API" if api else KIND_HINT
        look(url, model or None, access, apis if benchmark else (), hint if benchmark else "")


_SLOW = "connected, but no answer yet"


def _answer(url: str, server: _Asked, body: bytes | None, proxy: str | None) -> Response:
    """Return status, headers and body of a GET, or of a POST of JSON. Raises OSError, http.client.HTTPException and
    _ProxyProblem."""
    parts, more = urlsplit(url), dict[str, str]()
    if proxy is None:
        connection = _direct(url, server.context)
    else:
        connection, more = _through(proxy, url, server.context)
    own = parts.path + (f"?{parts.query}" if parts.query else "")
    target = url if proxy is not None and parts.scheme == "http" else own
    try:
        if connection.sock is None:
            connection.connect()
        if connection.sock is not None:
            connection.sock.settimeout(_ANSWER_S)
        headers = {"Accept-Encoding": "identity", "User-Agent": "crowdperf", **more, **server.credentials.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request("GET" if body is None else "POST", target, body, headers)
            response = connection.getresponse()
            if http.client.CONTINUE <= response.status < http.client.OK:  # 103 comes ahead; the run reads what follows
                raise TimeoutError
            return response.status, response.headers, response.read(_LARGEST_BYTES)
        except TimeoutError:
            raise TimeoutError(_SLOW) from None
    finally:
        connection.close()


def answer_at(url: str, path: str, access: AccessSettings) -> tuple[int, bytes] | None:
    """Return status and body of GET for a path behind a URL, or None if the server is slow. Raises ServerProblem."""
    call = f"for {path} (GET)"
    answer = _asked(url, access, call).answer(call, path)
    return None if answer is None else (answer[0], answer[2])
