"""The server's address: the checked URL, the API key, and the proxy. Imports no HTTP library.

The key is read from the environment variable that the user specifies, is sent in one header of the requests to the
URL's host, and is removed from every text of a server or a library before that text is shortened.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit, urlunsplit

from crowdperf.call.model_server import key_on_proxy_words, proxy_of, without_key
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.text.request import Endpoint
from crowdperf.kit.records import Problem
from crowdperf.rules.names import printable

_EXAMPLE = "a URL up to and with /v1, such as http://127.0.0.1:8000/v1"
_CALLS = ("/chat/completions", "/completions", "/models")
_HIDDEN = "***"
_MIN_KEY_CHARACTERS = 4
"""A shorter key cannot be distinguished from ordinary text, so hiding it would damage that text."""
_LONGEST_SHOWN = 400


class Key:
    """The API key, or none. No text form of it shows the value."""

    __slots__ = ("_value",)

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Key(none)" if self._value is None else f"Key({_HIDDEN})"

    @property
    def is_given(self) -> bool:
        """Whether requests carry a key."""
        return self._value is not None

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        return {} if self._value is None else {"Authorization": f"Bearer {self._value}"}

    def hidden_in(self, text: str) -> str:
        """Return `text` without the key, and without parts of it, in capitals or not."""
        return without_key(text, self._value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server. url: without a slash at the end. shown_host: host and port. proxy: None if no proxy is used."""

    url: str
    shown_host: str
    key: Key
    proxy: str | None = field(default=None, repr=False)

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
    if parts.query or parts.fragment:
        raise _refusal(f"a URL with {'a query' if parts.query else 'a fragment'}", f"{_EXAMPLE}, without ? and #")
    return parts


def _key(variable: str | None, environment: Mapping[str, str]) -> Key:
    """Return the key in an environment variable. Raises HarnessError if the variable has none that can be sent."""
    if variable is None:
        return Key(None)
    value = environment.get(variable, "").strip()
    if not value:
        raise HarnessError(
            f"the environment variable {variable} for the API key is not set",
            f"export {variable}=..., or leave --endpoint_key_variable out for a server without a key",
        )
    if len(value) < _MIN_KEY_CHARACTERS or re.search(r"[^\x21-\x7e]", value):
        raise HarnessError(
            f"the environment variable {variable} does not contain an API key: {len(value)} "
            f"characters, allowed: at least {_MIN_KEY_CHARACTERS}, printable ASCII without spaces",
            "copy the key again",
        )
    return Key(value)


def parse_address(endpoint: Endpoint, environment: Mapping[str, str]) -> Address:
    """Return the address. Raises ConfigError and HarnessError with the problem of URL or key."""
    parts = _parts(endpoint.url)
    path = parts.path.rstrip("/")
    call = next((one for one in _CALLS if path.endswith(one)), None)
    if call is not None:
        base = urlunsplit((parts.scheme, parts.netloc, path.removesuffix(call), "", ""))
        raise _refusal(repr(endpoint.url), f"the URL without {call}: {base}")
    key, proxy = _key(endpoint.key_variable, environment), proxy_of(endpoint.url)
    if proxy and key.is_given and parts.scheme == "http":
        raise HarnessError(*key_on_proxy_words(endpoint.url))
    url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return Address(url=url, shown_host=parts.netloc, key=key, proxy=proxy)
