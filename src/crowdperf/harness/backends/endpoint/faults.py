"""Says what went wrong between here and the server, in words that a user can act on; never with the API key."""

import asyncio
import os
import re
import ssl

import aiohttp

from crowdperf.call.model_server import certificate_words, error_text, refusal_words
from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.answers import AnswerError
from crowdperf.harness.text.engine import OTHER_FAILURE
from crowdperf.kit.event_stream import StreamError


class Refused(Exception):
    """A response that is no answer. text: the server's own words, one line. retry_after: of its headers."""

    def __init__(self, status: int, text: str, retry_after: str | None = None, location: str | None = None) -> None:
        super().__init__(f"status {status}: {text}")
        self.status = status
        self.text = text
        self.retry_after = retry_after
        self.location = location


class Unfit(Exception):
    """A response of another kind than asked for; the text says what came."""


class NotStreamed(Unfit):
    """A whole answer in the place of a stream."""


def is_about_streaming(error: BaseException) -> bool:
    """Return whether a server answers whole, or refuses to stream."""
    if isinstance(error, Refused):
        is_named = re.search(r"\bstream(s|ed|ing)?\b", error.text, re.IGNORECASE) is not None
        return is_named and error.status in (400, 422, 501)
    return isinstance(error, NotStreamed)


def _connection(error: aiohttp.ClientConnectorError, host: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the host name in {host} does not resolve (DNS)"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "the proxy set in the environment cannot be reached"
    number = error.os_error.errno
    reason = os.strerror(number) if number is not None and number > 0 else type(error.os_error).__name__
    return f"no connection to {host}: {reason}"


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the reason of an error that says that a certificate is not trusted; None for any other."""
    found = error.certificate_error if isinstance(error, aiohttp.ClientConnectorCertificateError) else error
    return found if isinstance(found, ssl.SSLCertVerificationError) else None


def _tls(error: BaseException, host: str) -> str:
    if (untrusted := certificate_error(error)) is not None:
        return certificate_words(untrusted, host)[0]
    reason = getattr(error, "reason", None) or error
    return f"no TLS connection to {host}: {reason}; use http:// for a server without TLS"


_CUT = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionResetError, aiohttp.ClientOSError)


def kind_of(error: BaseException) -> str:
    """Return in a word or two what kind of failure an error of one request is, by which failures are counted."""
    if isinstance(error, Refused):
        return f"status {error.status}"
    if isinstance(error, AnswerError):
        return error.kind
    if isinstance(error, StreamError | Unfit):
        return AnswerError.kind
    if isinstance(error, aiohttp.ClientConnectorError | TimeoutError):  # a ClientOSError, too
        return "no connection"
    return "cut connection" if isinstance(error, _CUT) else OTHER_FAILURE


def words(error: BaseException, address: Address) -> str:
    """Return what an error of one request means; raises it again where it is a fault of this program."""
    if isinstance(error, Refused):
        found = refusal_words(error.status, error.text, error.location)
    elif isinstance(error, AnswerError | StreamError | Unfit):
        found = str(error)
    elif isinstance(error, aiohttp.ClientConnectorSSLError):
        found = _tls(error.os_error, address.shown_host)
    elif isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
        found = _tls(error, address.shown_host)
    elif isinstance(error, aiohttp.ClientConnectorError):
        found = _connection(error, address.shown_host)
    elif isinstance(error, asyncio.TimeoutError | aiohttp.ServerTimeoutError):
        found = f"no connection to {address.shown_host} in time"
    elif isinstance(error, aiohttp.ClientPayloadError):
        found = "the server ended the connection in the middle of its answer"
    elif isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError | aiohttp.ClientOSError):
        found = "the server ended the connection without an answer"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        found = f"the proxy refused the connection (status {error.status})"
    elif isinstance(error, aiohttp.ClientResponseError):
        found = f"the server does not speak HTTP: {error_text(error.message)}"
    elif isinstance(error, aiohttp.ClientError | OSError):
        found = f"the request failed: {error_text(str(error)) or type(error).__name__}"
    else:
        raise error
    return address.shown(found)
