"""Conversations: each turn is sent after the answer before it, with all that was said until then.

LoadGen issues all turns at once (Offline). Here those that must wait are held back, and at most so many conversations
go on at once. LoadGen's samples are the turns.
"""

import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace

from crowdperf.harness.text.engine import Request

_UNLIMITED = 1 << 30


class Dialogues:
    """The conversations of a run. most: of them at once, None without a limit. May be used by several threads."""

    def __init__(self, most: int | None) -> None:
        self._free = most or _UNLIMITED
        self._waiting: deque[deque[Request]] = deque()
        self._ongoing: dict[int, tuple[Request, deque[Request]]] = {}
        self._lock = threading.Lock()

    def begin(self, requests: Sequence[Request]) -> list[Request]:
        """Take all turns, and return those to send now. A turn that comes again belongs to another conversation."""
        seen, turns = Counter[tuple[int | None, int]](), dict[tuple[int | None, int], list[Request]]()
        for one in requests:
            place = one.prompt.conversation, one.prompt.turn
            turns.setdefault((one.prompt.conversation, seen[place]), []).append(one)
            seen[place] += 1
        with self._lock:
            self._waiting.extend(deque(sorted(group, key=lambda one: one.prompt.turn)) for group in turns.values())
            return self._fill()

    def answered(self, number: int, text: str) -> list[Request]:
        """Return the requests to send after an answer: the next turn with the history, or other conversations."""
        with self._lock:
            found = self._ongoing.pop(number, None)
            if found is None:
                return []
            sent, rest = found
            if not rest:
                self._free += 1
                return self._fill()
            said = (*(sent.prompt.messages or ()), {"role": "assistant", "content": text})
            following = rest.popleft()
            prompt = replace(following.prompt, messages=(*said, *(following.prompt.messages or ())))
            return [self._sent(replace(following, prompt=prompt), rest)]

    def failed(self, number: int) -> tuple[list[int], list[Request]]:
        """Return the numbers of the turns that cannot be sent after a turn without an answer, and the requests of other
        conversations to send instead."""
        with self._lock:
            found = self._ongoing.pop(number, None)
            if found is None:
                return [], []
            self._free += 1
            return [one.number for one in found[1]], self._fill()

    def _fill(self) -> list[Request]:
        begun = []
        while self._waiting and self._free:
            self._free -= 1
            rest = self._waiting.popleft()
            begun.append(self._sent(rest.popleft(), rest))
        return begun

    def _sent(self, request: Request, rest: deque[Request]) -> Request:
        self._ongoing[request.number] = request, rest
        return request
