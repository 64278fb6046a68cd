"""The terminal of one call: questions, output without secrets, and the signals that end a run.

A wrong answer never counts as an answer: the question is asked again, and refused after a few times. A signal becomes
an exception; one that comes while a child process is being started waits until the child can be ended with the run.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from ..rules.errors import Ambiguous, Interrupted, RequestError
from ..rules.secrets import ANCHORS, MASK, hidden_text, known_secrets, without_shapes

ATTEMPTS = 3
QUIT_WORDS = ("q", "quit", "exit")


def has_terminal() -> bool:
    """Whether a question can be answered: standard input is a terminal."""
    with contextlib.suppress(ValueError):  # a closed stream
        return bool(sys.stdin and sys.stdin.isatty())
    return False


def pick(title: str, rows: Sequence[str], *, hint: str) -> int:
    """The position of the row that the user picks; an empty answer picks the first.

    Raises Ambiguous, with the rows and ``hint``, when stdin is not a terminal, after ``ATTEMPTS`` wrong answers, and at
    ``q`` or the end of the input.
    """
    menu = "\n".join([title, *(f"  {number}) {row}" for number, row in enumerate(rows))])
    if not has_terminal():
        raise Ambiguous(menu, hint=hint)
    _show(f"{menu}\n")
    allowed = f"a number from 0 to {len(rows) - 1}, or q to quit"
    for answer in _answers("Which one? [0] ", allowed):
        if answer is None or answer.lower() in QUIT_WORDS:
            raise Ambiguous("no choice was made, so nothing was run", hint=hint)
        if not answer:
            return 0
        if answer.isascii() and answer.isdigit() and int(answer) < len(rows):
            return int(answer)
    raise Ambiguous(f"no valid answer after {ATTEMPTS} attempts; expected {allowed}", hint=hint)


def confirm(question: str, *, refusal: str, hint: str) -> bool:
    """Whether the user answers yes; an empty answer is a no.

    Raises RequestError: ``refusal`` when stdin is not a terminal, and after ``ATTEMPTS`` wrong answers or at the end of
    the input; always with ``hint``.
    """
    if not has_terminal():
        raise RequestError(f"{refusal}; stdin is not a terminal, so it cannot be confirmed", hint=hint)
    for answer in _answers(f"{question} [y/N] ", "y or n"):
        if answer is None:
            raise RequestError(f"{refusal}; it was not confirmed", hint=hint)
        if answer.lower() in ("y", "yes"):
            return True
        if answer.lower() in ("", "n", "no", *QUIT_WORDS):
            return False
    raise RequestError(f"{refusal}; no valid answer after {ATTEMPTS} attempts, expected y or n", hint=hint)


def wait_for_enter(text: str) -> None:
    """Waits until the user presses Enter, or ends the input."""
    _answer(text)


def _answers(question: str, expected: str) -> Iterator[str | None]:
    """What the user types, ``ATTEMPTS`` times; an answer after which the next one is asked for was not ``expected``."""
    for _ in range(ATTEMPTS):
        answer = _answer(question)
        yield answer
        _show(f"'{answer}' is not {expected}\n")


def _answer(question: str) -> str | None:
    """What the user types, without surrounding whitespace; None at the end of the input."""
    _show(question)
    line = sys.stdin.readline()
    return line.strip() if line else None


def _show(text: str) -> None:
    """Prompts go to stderr: stdout is for data."""
    sys.stderr.write(text)
    sys.stderr.flush()


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


SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C, ``kill``, and the end of the terminal."""

_waiting: list[int] = []
_depth: list[int] = []


def interrupt(number: int, _frame: Any) -> None:
    """The signal handler: raises Interrupted, now or at the end of the block that holds it back."""
    if _depth:
        _waiting.append(number)
    else:
        raise Interrupted(signal.Signals(number).name, 128 + number)


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that come inside the block raise Interrupted at its end."""
    _depth.append(1)
    try:
        yield
    finally:
        _depth.pop()
        if _waiting and not _depth:
            number = _waiting[0]
            _waiting.clear()
            interrupt(number, None)


@contextmanager
def raised_as_interrupted() -> Iterator[None]:
    """Inside the block the signals of SIGNALS raise Interrupted; those that are ignored stay so (nohup).

    Does nothing outside the main thread, where Python allows no handlers: cmind is used as a library there.
    """
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    wanted = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    try:
        before = [(number, signal.signal(number, interrupt)) for number in wanted]
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
