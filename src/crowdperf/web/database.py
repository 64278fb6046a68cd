"""The database behind a server that answers many at once: a few threads that read, one that writes.

Each thread has a `Store` of its own, opened in it. One writer means that an upload is in whole or not at all, and that
nothing waits for SQLite's lock.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from starlette.exceptions import HTTPException

from crowdperf.store.store import NoSuchResult, Store

Answer = TypeVar("Answer")
READERS: Final = 4
VERIFIERS: Final = 2


class Database:
    """Runs functions on a store, in threads. `close` waits for those that have begun."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._path = path
        self._local = threading.local()
        Store.open(path, read_only=read_only).close()  # made and migrated here, once, or the error is seen here
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._writer = ThreadPoolExecutor(1, "writer")
        self._verifiers = ThreadPoolExecutor(VERIFIERS, "verifier")

    def _store(self, *, read_only: bool) -> Store:
        store: Store | None = getattr(self._local, "store", None)
        if store is None:
            store = self._local.store = Store.open(self._path, read_only=read_only)
        return store

    async def read(self, function: Callable[[Store], Answer]) -> Answer:
        """What `function` says of the store; it must not write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: function(self._store(read_only=True)))

    async def find(self, function: Callable[[Store], Answer | None], words: str | None = None) -> Answer:
        """What `function` says of the store. Raises HTTPException, 404 with these words, where it finds nothing."""
        with contextlib.suppress(NoSuchResult):
            if (found := await self.read(function)) is not None:
                return found
        raise HTTPException(404, words)

    async def write(self, function: Callable[[Store], Answer]) -> Answer:
        """What `function` says after it has written; one at a time."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, lambda: function(self._store(read_only=False)))

    async def work(self, function: Callable[[], Answer]) -> Answer:
        """What a long computation without the store gives, beside the answers to readers."""
        return await asyncio.get_running_loop().run_in_executor(self._verifiers, function)

    def close(self) -> None:
        """End the threads: what is being written is finished, a check that is under way is not waited for."""
        self._verifiers.shutdown(wait=False, cancel_futures=True)
        for pool in (self._writer, self._readers):
            pool.shutdown(wait=True, cancel_futures=True)
