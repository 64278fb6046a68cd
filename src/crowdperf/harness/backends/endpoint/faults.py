"""Explains errors between client and server in words that a user can act on, never with the API key."""

import re
import ssl

from crowdperf.call.model_server import connection_words, refusal_words
from crowdperf.harness.backends.endpoint.address import Address
from crowdperf.harness.backends.endpoint.answers import AnswerError
from crowdperf.harness.backends.endpoint.response_reader import NotHttp
from crowdperf.harness.text.engine import OTHER_FAILURE
from crowdperf.kit.event_stream import StreamError


class Refused(Exception):
    """A response with another status than 200. text: the server's own words, one line. retry_after: of its headers."""

    def __init__(self, status: int, text: str, retry_after: str | None = None, location: str | None = None) -> None:
        super().__init__(f"status {status}: {text}")
        self.status = status
        self.text = text
        self.retry_after = retry_after
        self.location = location


class Unfit(Exception):
    """A response of another kind than requested. The text shows it."""


class NotStreamed(Unfit):
    """A whole answer in the place of a stream."""


def is_about_streaming(error: BaseException) -> bool:
    """Return whether a server answers whole, or refuses to stream."""
    if isinstance(error, Refused):
        is_named = re.search(r"\bstream(s|ed|ing)?\b", error.text, re.IGNORECASE) is not None
        return is_named and error.status in (400, 422, 501)
    return isinstance(error, NotStreamed)


class CutOff(Exception):
    """A connection that the server ended before its response was there. has_begun: a part of it was."""

    def __init__(self, has_begun: bool) -> None:
        where = "in the middle of its answer" if has_begun else "without an answer"
        super().__init__(f"the server ended the connection {where}")
        self.has_begun = has_begun


class NoConnection(Exception):
    """A connection that could not be opened. cause: the reason. waited_s: at most."""

    def __init__(self, cause: BaseException, waited_s: float) -> None:
        super().__init__(str(cause))
        self.cause = cause if isinstance(cause, OSError) else TimeoutError()
        self.waited_s = waited_s


class NoProxy(Exception):
    """The proxy of the environment cannot be used. The text is the reason."""


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the reason of an error that says that a certificate is not trusted. None for any other."""
    found = error.cause if isinstance(error, NoConnection) else error
    return found if isinstance(found, ssl.SSLCertVerificationError) else None


def kind_of(error: BaseException) -> str:
    """Return in a word or two what kind of failure an error of one request is, by which failures are counted."""
    if isinstance(error, Refused):
        return f"status {error.status}"
    if isinstance(error, AnswerError):
        return error.kind
    if isinstance(error, StreamError | Unfit):
        return AnswerError.kind
    if isinstance(error, NoConnection | NoProxy):
        return "no connection"
    return "cut connection" if isinstance(error, CutOff) else OTHER_FAILURE


def words(error: BaseException, address: Address) -> str:
    """Return the meaning of an error of one request. Raises errors of this program again."""
    if isinstance(error, Refused):
        found = refusal_words(error.status, error.text, error.location)
    elif isinstance(error, NoConnection):
        found = connection_words(error.cause, address.url, error.waited_s)[0]
    elif isinstance(error, FAULTS):
        found = str(error)
    else:
        raise error
    return address.shown(found)


FAULTS = (Refused, Unfit, AnswerError, StreamError, NotHttp, CutOff, NoConnection, NoProxy)
"""All errors between client and server. `words` explains them."""
