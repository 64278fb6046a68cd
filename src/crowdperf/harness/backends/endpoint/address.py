"""The server's address: the checked URL, headers with secrets, certificates, and the proxy. Imports no HTTP library.

Secrets are read from the environment variables and files that the user specifies, are sent in headers of the requests
to the URL's host, and are removed from every text of a server or a library before that text is shortened.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit, urlunsplit

from crowdperf.call.model_server import CALLS, key_on_proxy_words, proxy_of
from crowdperf.call.server_access import AccessProblem, Credentials, context_of, credentials_of
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.request import Endpoint
from crowdperf.kit.records import Problem
from crowdperf.rules.names import printable
from crowdperf.rules.prompt_settings import QUERY_ADVICE, secret_query_name

_EXAMPLE = "a URL up to and with /v1, such as http://127.0.0.1:8000/v1"
_LONGEST_SHOWN = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server. url: without a slash at the end and without a query. query: of every call. shown_host: host and port.
    context: of TLS, None without it. proxy: None if no proxy is used."""

    url: str
    shown_host: str
    key: Credentials
    query: str = ""
    context: ssl.SSLContext | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)

    @property
    def shown_url(self) -> str:
        """The URL as the user gave it."""
        return f"{self.url}?{self.query}" if self.query else self.url

    @property
    def root(self) -> str:
        """The URL without its path: scheme, host and port."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def plain(self, text: str) -> str:
        """Return a text that may contain a server's words, in full, for messages and records: without the key, with
        escapes for characters that a terminal would obey."""
        return self.key.hidden_in(printable(text))

    def shown(self, text: str) -> str:
        """Return the same, shortened: a server may send much."""
        line = self.plain(text)
        return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]} ..."


def _refusal(found: str, allowed: str) -> ConfigError:
    return ConfigError(
        "the run", [Problem("endpoint.url", found, allowed)], "give it as --endpoint=http://HOST:PORT/v1"
    )


def _parts(url: str) -> SplitResult:
    """Return the parts of a usable URL. Raises ConfigError for any other, without showing a password."""
    if not url or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise _refusal(repr(url), f"{_EXAMPLE}, without spaces")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise _refusal("a URL whose host or port cannot be read", _EXAMPLE) from None
    if "@" in parts.netloc:
        shown = f"{parts.scheme}://***@{parts.netloc.rpartition('@')[2]}"
        why = "a URL without user and password (they would appear in logs). Put the key in an environment variable"
        raise _refusal(shown, f"{why} and name it with --endpoint_key_variable")
    if parts.scheme not in ("http", "https") or not host:
        raise _refusal(repr(url), _EXAMPLE)
    if port == 0:
        raise _refusal("port 0", "a port from 1 to 65535")
    if parts.fragment:
        raise _refusal("a URL with a fragment", f"{_EXAMPLE}, without #")
    if name := secret_query_name(parts.query):
        raise _refusal(f"a query with {name!r}, {QUERY_ADVICE}", f"{_EXAMPLE}, without secrets")
    return parts


def parse_address(endpoint: Endpoint, environment: Mapping[str, str]) -> Address:
    """Return the address. Raises ConfigError and HarnessError with the problem of URL or key."""
    parts = _parts(endpoint.url)
    path = parts.path.rstrip("/")
    call = next((one for one in CALLS if path.endswith(one)), None)
    if call is not None:
        base = urlunsplit((parts.scheme, parts.netloc, path.removesuffix(call), "", ""))
        raise _refusal(repr(endpoint.url), f"the URL without {call}: {base}")
    try:
        key = credentials_of(endpoint.access, environment)
        context = context_of(endpoint.access) if parts.scheme == "https" else None
    except AccessProblem as error:
        raise HarnessError(str(error), error.hint) from None
    proxy = proxy_of(endpoint.url)
    if proxy and key.is_given and parts.scheme == "http":
        raise HarnessError(*key_on_proxy_words(endpoint.url))
    url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return Address(url=url, shown_host=parts.netloc, key=key, query=parts.query, context=context, proxy=proxy)
