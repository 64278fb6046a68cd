"""How instances share work: the queue between LoadGen's Server callback and them, and one iterator for all of them."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class SharedIterator(Generic[Item]):
    """An iterator for several threads: each item goes to exactly one of them, also where Python has no GIL."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)


class BatchQueue:
    """Gives each taker up to `largest` waiting samples in the order they came.

    A taker gets what waits at once. With `wait_s` above 0 it lets a batch fill first, until it is full or the oldest
    sample has waited so long.
    """

    def __init__(self, largest: int, wait_s: float = 0.0) -> None:
        self._largest = largest
        self._wait_s = wait_s
        self._waiting: deque[tuple[int, int, float]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._is_closed = False

    def put(self, ids: list[int], indices: list[int]) -> None:
        """Add samples; never waits for a taker."""
        now = time.monotonic() if self._wait_s else 0.0
        with self._changed:
            self._waiting.extend((identifier, index, now) for identifier, index in zip(ids, indices, strict=True))
            self._changed.notify(len(ids))

    def take(self) -> tuple[list[int], list[int]] | None:
        """Return the ids and indices of the next batch; None when the queue is closed and empty."""
        with self._changed:
            while True:
                while not self._waiting:
                    if self._is_closed:
                        return None
                    self._changed.wait()
                if self._is_ready():
                    break
                self._changed.wait(max(0.0, self._waiting[0][2] + self._wait_s - time.monotonic()))
            count = min(len(self._waiting), self._largest)
            taken = [self._waiting.popleft() for _ in range(count)]
            if self._waiting:
                self._changed.notify()
        return [entry[0] for entry in taken], [entry[1] for entry in taken]

    def _is_ready(self) -> bool:
        if self._is_closed or not self._wait_s or len(self._waiting) >= self._largest:
            return True
        return time.monotonic() >= self._waiting[0][2] + self._wait_s

    def close(self) -> None:
        """Let the takers end when nothing waits any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
