"""Output without secrets: that of child processes, byte for byte, and what is printed in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ..rules.secrets import ANCHORS, MASK, hidden_text, known_secrets, without_shapes

HELD_LIMIT = 65_536
"""Characters of an unfinished line, or of a private key, that are held back at most."""


class StreamMask:
    """Hides secrets in the output of a process, also where one comes in several blocks; lives as long as the stream.

    What may be the beginning of a secret is held back until more of its line is there.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, block: bytes) -> bytes:
        """What may be shown after one more block; the empty block ends the stream."""
        text = self._held + block.decode("latin-1")  # every byte is a character, whatever the encoding
        return self._release(text, self._safe_length(text) if block else len(text))

    def settle(self) -> bytes:
        """What may be shown of what is held back when nothing comes for a while, such as the end of a question."""
        text = self._held
        is_open = any(anchor in text.lower() for anchor in ANCHORS) and not text[-1:].isspace()
        return b"" if is_open else self._release(text, _first(text, _starts_of_known(text)))

    def _release(self, text: str, length: int) -> bytes:
        self._held = text[length:]
        shown = text[:length]
        for secret in known_secrets():
            shown = shown.replace(_as_bytes(secret), MASK)
        return without_shapes(shown).encode("latin-1")

    def _safe_length(self, text: str) -> int:
        """How much of ``text`` belongs to no secret that continues after its end."""
        line = max(text.rfind("\n"), text.rfind("\r")) + 1
        rest = text[line:].lower()
        begins = [rest.find(anchor) for anchor in ANCHORS]
        begins += [_start_of_prefix(rest, anchor) for anchor in ANCHORS]
        starts = [line + at for at in begins if at >= 0]
        key = text.rfind("-----BEGIN ")
        end_line = text[key:].partition("-----END ")[2]  # whole once something follows it
        if key >= 0 and "PRIVATE KEY" in text[key:] and not end_line.partition("-----")[2]:
            starts.append(key)
        safe = _first(text, [*starts, *_starts_of_known(text)])
        return safe if len(text) - safe <= HELD_LIMIT else len(text)


def _first(text: str, starts: list[int]) -> int:
    return min([len(text), *starts])


def _starts_of_known(text: str) -> list[int]:
    found = (_start_of_prefix(text, _as_bytes(secret)) for secret in known_secrets())
    return [at for at in found if at >= 0]


def _as_bytes(secret: str) -> str:
    return secret.encode("utf-8", "surrogateescape").decode("latin-1")


def _start_of_prefix(text: str, word: str) -> int:
    """Where an ending of ``text`` begins that is the beginning of ``word``; -1 when none is."""
    longest = min(len(word) - 1, len(text))
    return next((len(text) - length for length in range(longest, 0, -1) if text.endswith(word[:length])), -1)


class MaskedOutput:
    """Standard output or error while an action runs: what the engine or a hook prints is masked."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text without secrets."""
        self._stream.write(hidden_text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts without secrets."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def masked_output(is_wanted: bool) -> Iterator[None]:
    """Masks what is printed inside the block."""
    if not is_wanted:
        yield
        return
    before = sys.stdout, sys.stderr
    masked: Any = [stream and MaskedOutput(stream) for stream in before]  # None for a process without a console
    sys.stdout, sys.stderr = masked
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
