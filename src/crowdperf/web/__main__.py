"""Starts a collector: python -m crowdperf.web --db=FILE [--host= --port= ...], with the words of the recipe.

Ends with 0 at SIGTERM and SIGINT within 5 s: uploads that have arrived are kept whole, others are dropped whole.
"""

import asyncio
import os
import signal
import socket
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from crowdperf.kit.server_address import is_loopback
from crowdperf.store.imports import FAILURES, import_path, report_lines
from crowdperf.store.local_tokens import forget_token, remember_token
from crowdperf.store.refusal import BundleRefused
from crowdperf.store.schema import StoreError
from crowdperf.store.store import Store
from crowdperf.web.access import TokenFileError, Tokens, tokens_of
from crowdperf.web.app import create_app
from crowdperf.web.bundle_checks import warm_up
from crowdperf.web.settings import Settings, SettingsError, settings_of

MAX_CONNECTIONS = 200
MAX_CONNECTIONS_OF_ADDRESS = 100
HEAD_WITHIN_S = 10.0
ENDS_WITHIN_S = 4


class TimedHeads(H11Protocol):
    """HTTP/1.1 whose connections are closed where the head of a request takes longer than `head_within_s`."""

    head_within_s: ClassVar = HEAD_WITHIN_S
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.head_within_s, transport.abort)

    def data_received(self, data: bytes) -> None:
        """A whole head ends the waiting; the beginning of another one starts it again."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_within_s, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class LimitedHeads(TimedHeads):
    """Of one address at most `most` connections; not behind a proxy, whose address is that of all."""

    most: ClassVar = MAX_CONNECTIONS_OF_ADDRESS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close at once what is one too many."""
        super().connection_made(transport)
        clients = [getattr(one, "client", None) for one in self.connections]
        if self.client and sum(client is not None and client[0] == self.client[0] for client in clients) > self.most:
            transport.abort()


def given_of(words: Sequence[str]) -> dict[str, str]:
    """Inputs by name from words like --db=FILE. Raises SettingsError."""
    found = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not equals:
            raise SettingsError(f"{word!r} is not --NAME=VALUE")
        found[name] = value
    return found


def listening_socket(settings: Settings) -> socket.socket:
    """A bound socket. Raises SettingsError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host.strip("[]"), settings.port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise SettingsError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}\n"
            "hint: --port=0 selects a free port"
        ) from error
    return made


def greeting(settings: Settings, port: int, tokens: Tokens | None, is_new: bool) -> list[str]:
    """What is printed when the server answers."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}/"
    lines = [f"Results: {url}  (Ctrl-C ends it)"]
    if settings.read_only:
        return [*lines, "Pages only: no uploads and no moderation"]
    if tokens is not None:
        if is_new:
            lines += [f"Upload token:     {tokens.upload}", f"Moderation token: {tokens.moderation}  (never share it)"]
        lines.append(f"Tokens are kept in {settings.token_file}")
    lines.append(f"Share a result:   cm run script --tags=share,mlperf,result --result=FOLDER --collector={url}")
    return lines


def open_database(settings: Settings) -> None:
    """See that the database is one; it is made where there is none. Raises SettingsError."""
    try:
        Store.open(settings.database, read_only=settings.read_only).close()
    except (StoreError, OSError, sqlite3.Error) as error:
        raise SettingsError(
            f"--db={settings.database} cannot be opened: {error}\n"
            "hint: --db=results.db sets the file, which is created if it is missing"
        ) from error


def import_all(settings: Settings) -> None:
    """Put what was named into the database, and print what became of it. Raises SettingsError."""
    for path in settings.imports:
        try:
            report = import_path(settings.database, path)
        except (*FAILURES, BundleRefused) as error:
            raise SettingsError(f"--path: {path}: {error}") from error
        print("\n".join([f"{path}:", *(f"  {line}" for line in report_lines(report))]), flush=True)


def main(words: Sequence[str]) -> int:
    """Serve until a signal ends it; 0, or 1 where it cannot be started."""
    try:
        given = given_of(words)
        settings = settings_of(given, Path(given.pop("folder", ".")))
        open_database(settings)
        tokens, is_new = None, False
        if settings.token_file is not None and not settings.read_only:
            tokens, is_new = tokens_of(settings.token_file)
        import_all(settings)
        listener = listening_socket(settings)
    except (SettingsError, TokenFileError) as error:
        print(f"serve-mlperf-results: {error}", file=sys.stderr)
        return 1
    port = listener.getsockname()[1]
    if tokens is not None and is_loopback(settings.host):
        remember_token(port, tokens.upload, os.environ)
    if not settings.read_only:
        warm_up()
    app = create_app(
        settings, tokens, on_start=lambda: print("\n".join(greeting(settings, port, tokens, is_new)), flush=True)
    )
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=TimedHeads if settings.behind_proxy else LimitedHeads,
            access_log=False,
            log_level="warning",
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=ENDS_WITHIN_S,
            h11_max_incomplete_event_size=16_384,
            proxy_headers=settings.behind_proxy,
            forwarded_allow_ips="127.0.0.1" if settings.behind_proxy else None,
        )
    )

    def ends_quietly(number: int, frame: FrameType | None) -> None:
        """Stands where uvicorn raises the signal again after it has ended everything."""

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ends_quietly)
    server.run(sockets=[listener])
    forget_token(port, os.environ)
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
