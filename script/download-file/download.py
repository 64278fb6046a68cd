"""Downloads one file over HTTP(S) so that it is either there whole and checked, or not there.

The bytes go to `<name>.part`, and what is needed to go on after an interruption to `<name>.part.json`. A download goes
on from there with `Range` (and `If-Range` where the server gave a validator), if the addresses or the checksum make
sure that it is the same file. When all bytes are there and the checksums are right, the part is moved to its name.

    for each address:  for each attempt:  request -> append to the part -> size right? -> checksums right? -> move
"""

from __future__ import annotations

import errno
import functools
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from . import checks, inputs, part

if TYPE_CHECKING:  # a plan loads this recipe, too, and is a tenth slower with requests
    import requests

CHUNK_BYTES = 256 * 1024
ATTEMPTS_PER_URL = 4
TIMEOUTS_S = (20.0, 60.0)
"""For a connection, and between two pieces of what a server sends."""
MAX_RETRY_AFTER_S = 60.0
LOOK_TIMEOUT_S = 3.0
"""For a connection before a run."""
# Answers that may be better the next time: RFC 9110 section 15 (408, 5xx), RFC 6585 (429).
RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)

MAX_UNPROMISED_BYTES = 8 * 1024**3
"""Of a body whose length the server does not say: such are pages and archives made on demand, and endless streams."""
KEPT_BYTES = 64 * 1024**2
"""What stays free on the disk (1 % of a small one): a full disk stops everything else on the machine."""
BLOCKS_PER_LOOK = 256
"""Blocks of CHUNK_BYTES between two looks at the free space."""

Progress = Callable[[int, int | None], None]


class DownloadError(Exception):
    """The file could not be downloaded. The text names every attempt; addresses are masked."""


class _Failure(Exception):
    """One attempt failed; `is_final` when the same address need not be tried again."""

    def __init__(self, message: str, *, is_final: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(inputs.shown(message))
        self.is_final = is_final
        self.retry_after_s = retry_after_s


OWN_COPY_HINT = "without a network: download the file elsewhere, and give it with --from=FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadResult:
    """A file that is there: which address gave its last byte, and how many bytes an earlier try had left."""

    path: Path
    size_bytes: int
    url: str
    resumed_bytes: int


def download(
    request: inputs.FileRequest, report: Progress = lambda done, total: None, first_delay_s: float = 1.0
) -> DownloadResult:
    """Downloads the file; returns where it is. Raises DownloadError when no address gives it.

    Delays between attempts double from `first_delay_s` on.

    Side effects: writes beside `request.target`, moves the finished file onto it, sleeps between attempts.
    """
    import requests

    failures: list[str] = []
    with part.open_part(request.target) as partial, requests.Session() as session:
        for url in request.urls:
            for attempt in range(ATTEMPTS_PER_URL):
                try:
                    return _attempt(session, request, url, partial, report)
                except _Failure as failure:
                    failures.append(f"{inputs.shown(url)}: {failure}")
                    if failure.is_final or attempt + 1 == ATTEMPTS_PER_URL:
                        break
                    time.sleep(max(failure.retry_after_s, first_delay_s * 2**attempt))
    raise not_downloaded(request.target.name, failures, request.own_copy_hint or OWN_COPY_HINT)


def not_downloaded(name: str, failures: list[str], own_copy_hint: str) -> DownloadError:
    """Return the error that lists every attempt."""
    return DownloadError(
        f"{name} could not be downloaded. Tried:{_counted(failures)}\n  {own_copy_hint}\n"
        "hint: check the address, the network and the proxy (https_proxy), then rerun: finished parts are kept"
    )


def unreachable(urls: tuple[str, ...], proxies: Mapping[str, str]) -> list[str]:
    """Return why the server of each address cannot be reached; empty when one of them may be reached.

    A proxy has its own way to the servers, and a server that does not answer in time may do so later: neither counts.
    Raises inputs.InputError if it is not an address.
    """
    names = {name.lower().removesuffix("_proxy") for name in (*getproxies(), *proxies)}
    if names & {"http", "https", "all"}:
        return []
    failures = []
    for url in urls:
        parts = inputs.split(url)
        reason = _no_connection(parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
        if not reason:
            return []
        failures.append(f"{inputs.shown(url)}: {reason}")
    return failures


@functools.cache
def _no_connection(host: str, port: int) -> str:
    """Why there is certainly no way to a server; empty when there may be one. A name is looked up twice."""
    for pause_s in (0.5, 0.0):
        try:
            socket.create_connection((host, port), timeout=LOOK_TIMEOUT_S).close()
        except (socket.gaierror, ConnectionRefusedError) as error:
            reason = f"no connection to {host}: {error.strerror}"
            time.sleep(pause_s)
        except OSError as error:
            return f"no connection to {host}: {error.strerror}" if error.errno in _NO_WAY else ""
        else:
            return ""
    return reason


_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH)


def _counted(failures: list[str]) -> str:
    """The failures, a line each; the same one of several tries once, with how often."""
    rows = Counter(failures)
    return "".join(f"\n  {line}" + (f" ({count} times)" if count > 1 else "") for line, count in rows.items())


def _attempt(
    session: requests.Session, request: inputs.FileRequest, url: str, partial: part.Part, report: Progress
) -> DownloadResult:
    """One request and what follows from it; raises _Failure."""
    from urllib3.exceptions import HTTPError

    have = partial.usable_bytes(url, has_checksum=bool(request.checksums))
    try:
        with _get(session, request, url, partial.resume_headers(url, have)) as response:
            start, total = _start_and_total(response, have, partial)
            if start is not None:
                _check_encoding(response, request)
                limit = _limit(request, total)
                _check_space(request.target.parent, (total or 0) - start)
                partial.begin(start, url, response.headers)
                _receive(response, partial, total, limit, report)
    except (HTTPError, OSError, ValueError) as error:  # requests' own are OSErrors
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise DownloadError(f"the disk of {request.target.parent} is full\nhint: --download_path=FOLDER") from error
        raise _Failure(_unconnected(error, url) or f"{type(error).__name__}: {error}") from error
    kept_bytes = have if start is None else start
    try:
        checks.verify(partial.path, request.checksums)
    except checks.ChecksumError as error:
        partial.discard()
        # With old bytes in it the fault may be theirs: once more from the start.
        raise _Failure(f"{error}, the part was removed", is_final=not kept_bytes) from error
    size_bytes = partial.size_bytes
    partial.finish()
    return DownloadResult(path=request.target, size_bytes=size_bytes, url=inputs.shown(url), resumed_bytes=kept_bytes)


def _unconnected(error: BaseException, url: str) -> str:
    """The system's reason why there was no connection; empty for another error, and on the way to a proxy."""
    below: BaseException | None = getattr(error.args[0] if error.args else None, "reason", None)
    if type(below).__name__ not in ("NameResolutionError", "NewConnectionError"):
        return ""
    while below is not None and not (isinstance(below, OSError) and below.strerror):
        below = below.__cause__ or below.__context__
    return f"no connection to {urlsplit(url).hostname}: {below.strerror}" if below else ""


def _get(
    session: requests.Session, request: inputs.FileRequest, url: str, headers: Mapping[str, str]
) -> requests.Response:
    """The answer to a GET with its body still to be read; raises _Failure for a status that is no success."""
    response = session.get(
        url,
        # "identity": the bytes of the file itself, so that sizes and ranges mean the file.
        headers={"Accept-Encoding": "identity", "User-Agent": "crowdperf-download-file", **headers},
        stream=True,
        timeout=TIMEOUTS_S,
        verify=request.verifies_tls,
        proxies=_proxies(url, request.proxies),
    )
    status = response.status_code
    if status in (200, 206, 416):
        return response
    response.close()
    is_final = status not in RETRY_STATUSES
    wait = response.headers.get("Retry-After", "")
    wait_s = min(float(wait), MAX_RETRY_AFTER_S) if wait.isdigit() else 0.0
    raise _Failure(f"the server answered {status} {response.reason}", is_final=is_final, retry_after_s=wait_s)


def _proxies(url: str, proxies: Mapping[str, str]) -> dict[str, str]:
    """The proxies of CM's env for requests, none for a host that no_proxy lists. The process's own apply anyway."""
    from requests.utils import should_bypass_proxies

    no_proxy = proxies.get("no_proxy") or proxies.get("NO_PROXY")
    if should_bypass_proxies(url, no_proxy=no_proxy):
        return {}
    by_scheme = {"http": "http_proxy", "https": "https_proxy"}
    found = {scheme: proxies.get(key) or proxies.get(key.upper(), "") for scheme, key in by_scheme.items()}
    return {scheme: proxy for scheme, proxy in found.items() if proxy}


def _start_and_total(response: requests.Response, have: int, partial: part.Part) -> tuple[int | None, int | None]:
    """At which byte the body starts and how long the file is; start None when all bytes are there already."""
    if response.status_code == 206:
        start, total = part.parse_content_range(response.headers.get("Content-Range", ""))
        if start == have:
            return start, total
        partial.discard()
        raise _Failure(f"requested the bytes from {have}, received them from {start}")
    if response.status_code == 416:
        _, total = part.parse_content_range(response.headers.get("Content-Range", ""))
        if have and total == have:
            return None, total
        partial.discard()
        raise _Failure(f"the part has {have} bytes, the file on the server has {total}")
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _check_encoding(response: requests.Response, request: inputs.FileRequest) -> None:
    """Raises _Failure for a body that is packed unasked, unless a checksum or the name ".gz" settles what is meant."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    is_settled = bool(request.checksums) or request.target.suffix in (".gz", ".tgz")
    if encoding not in ("", "identity") and not is_settled:
        raise _Failure(f"the server sends the file encoded as {encoding}, which was not requested", is_final=True)


def _limit(request: inputs.FileRequest, total: int | None) -> int:
    """The most bytes that the file may have. Raises _Failure when the server promises more."""
    limit = request.max_size_bytes
    if total is None:
        return MAX_UNPROMISED_BYTES if limit is None else limit
    if limit is not None and total > limit:
        raise _Failure(f"the file has {total} bytes, --max_size_bytes allows {limit}", is_final=True)
    return total


def _check_space(folder: Path, needed_bytes: int) -> None:
    disk = shutil.disk_usage(folder)
    kept_bytes = min(KEPT_BYTES, disk.total // 100)
    if needed_bytes + kept_bytes > disk.free:
        raise DownloadError(
            f"{needed_bytes} bytes are needed in {folder}, {disk.free} are free and {kept_bytes} must stay free. "
            "hint: free some, or choose another disk with --download_path=FOLDER"
        )


def _receive(response: requests.Response, partial: part.Part, total: int | None, limit: int, report: Progress) -> None:
    """Appends the body to the part; raises _Failure when the body ends before the file does, or not at the limit."""
    for count, block in enumerate(response.raw.stream(CHUNK_BYTES, decode_content=False), start=1):
        if partial.size_bytes + len(block) > limit:
            partial.discard()
            raise _Failure(
                f"more than {limit} bytes came, and the server did not report the size, so the partial file was "
                "removed. --max_size_bytes=N allows more (--env.CM_DOWNLOAD_MAX_SIZE_BYTES=N from another recipe)",
                is_final=True,
            )
        if count % BLOCKS_PER_LOOK == 0:
            _check_space(partial.path.parent, 0)
        partial.append(block)
        report(partial.size_bytes, total)
    if total is not None and partial.size_bytes != total:
        raise _Failure(f"the connection ended after {partial.size_bytes} of {total} bytes")
