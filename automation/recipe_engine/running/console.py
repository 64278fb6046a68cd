"""The terminal of one call: questions, output without secrets, and the signals that end a run.

What is printed names commands as the user calls them, which is not always ``cm`` (``as_called``).

A wrong answer never counts as an answer: the question is asked again, and refused after a few times. A signal becomes
an exception; one that comes while a child process is being started waits until the child can be ended with the run.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

from ..rules.errors import Ambiguous, Interrupted, RequestError
from ..rules.secrets import ANCHORS, MASK, hidden_text, known_secrets, without_shapes

ATTEMPTS = 3
QUIT_WORDS = ("q", "quit", "exit")
CALL_VARIABLE = "CROWDPERF_CM"
"""What the user called ``cm`` by: ``./cm`` of a checkout, ``crowdperf cm`` of the installed package. Without it ``cm``
is what its users type."""
VERBS_VARIABLE = "CROWDPERF_VERBS"
"""The short verbs of such a command, one per line: ``VERB=WORDS`` of ``cm`` that it stands for. The longest come first;
words that end in ``=`` take what follows."""
_COMMAND = r"(?<![\w./-])(?<!\d )(?:crowdperf )?cm(?= [A-Za-z][A-Za-z_-]* (?:\w+:)?(?:script|cache|repo|core|utils)\b)"
Meaning = TypeVar("Meaning")


def as_called(text: str) -> str:
    """The text with the command ``cm`` as the user calls it; kept files and journals say ``cm``. Does it once."""
    call = os.environ.get(CALL_VARIABLE)
    if not call:
        return text
    text = re.sub(_COMMAND, lambda _: call, text)
    for verb, _, words in (line.partition("=") for line in os.environ.get(VERBS_VARIABLE, "").splitlines()):
        end = "" if words.endswith("=") else r"(?![\w-]|,\S)"
        text = re.sub(f"{re.escape(f'{call} {words}')}{end}", verb, text)
    return text


def shown(text: str) -> str:
    """A text as people see it: without secrets, its commands as the user calls them."""
    return as_called(hidden_text(text))


RED, YELLOW = "31", "33"


def colored(text: str, color: str, stream: TextIO) -> str:
    """The text in a color if the stream gets colors: NO_COLOR forbids them (https://no-color.org), FORCE_COLOR and
    CLICOLOR_FORCE ask for them (https://force-color.org, https://bixense.com/clicolors), else they are for a terminal
    whose TERM is not ``dumb`` (pages read November 2026)."""
    env = os.environ
    is_forced = any(env.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    with contextlib.suppress(ValueError):  # a closed stream
        if not env.get("NO_COLOR") and (is_forced or (stream.isatty() and env.get("TERM") != "dumb")):
            return f"\x1b[{color}m{text}\x1b[0m"
    return text


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
    meanings = {**{str(number): number for number in range(len(rows))}, "": 0, **dict.fromkeys(QUIT_WORDS)}
    try:
        chosen = _ask("Which one? [0] ", meanings, allowed)
    except ValueError as error:
        raise Ambiguous(str(error), hint=hint) from None
    if chosen is None:
        raise Ambiguous("no recipe was chosen, so none was run", hint=hint)
    return chosen


def confirm(question: str, *, refusal: str, hint: str) -> bool:
    """Whether the user answers yes; an empty answer is a no.

    Raises RequestError: ``refusal`` when stdin is not a terminal, and after ``ATTEMPTS`` wrong answers or at the end of
    the input; always with ``hint``.
    """
    if not has_terminal():
        raise RequestError(f"{refusal}: stdin is not a terminal, so it cannot be confirmed", hint=hint)
    meanings = {"y": True, "yes": True, **dict.fromkeys(("", "n", "no", *QUIT_WORDS), False)}
    try:
        is_confirmed = _ask(f"{question} [y/N] ", meanings, "y or n")
    except ValueError as error:
        raise RequestError(f"{refusal}: {error}", hint=hint) from None
    if is_confirmed is None:
        raise RequestError(f"{refusal}: it was not confirmed", hint=hint)
    return is_confirmed


def wait_for_enter(text: str) -> None:
    """Waits until the user presses Enter, or ends the input."""
    _answer(text)


def _ask(question: str, meanings: Mapping[str, Meaning], expected: str) -> Meaning | None:
    """What the answer means; None at the end of the input. Raises ValueError after ``ATTEMPTS`` other answers."""
    for _ in range(ATTEMPTS):
        answer = _answer(question)
        if answer is None:
            return None
        if answer.lower() in meanings:
            return meanings[answer.lower()]
        _show(f"'{answer}' is not {expected}\n")
    raise ValueError(f"no valid answer after {ATTEMPTS} attempts, expected {expected}")


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
        return b"" if is_open else self._release(text, _begin_of_known(text))

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
        begins = [min(len(rest.partition(anchor)[0]), _begin_of(anchor, rest)) for anchor in ANCHORS]
        safe = min(line + min(begins), _begin_of_known(text))
        key = text.rfind("-----BEGIN ")
        end_line = text[key:].partition("-----END ")[2]  # whole once something follows it
        if key >= 0 and "PRIVATE KEY" in text[key:] and not end_line.partition("-----")[2]:
            safe = min(safe, key)
        return safe if len(text) - safe <= HELD_LIMIT else len(text)


def _begin_of_known(text: str) -> int:
    return min((_begin_of(_as_bytes(secret), text) for secret in known_secrets()), default=len(text))


def _as_bytes(secret: str) -> str:
    return secret.encode("utf-8", "surrogateescape").decode("latin-1")


def _begin_of(word: str, text: str) -> int:
    """Where an ending of ``text`` begins that is the beginning of ``word``; the length of ``text`` without any."""
    longest = min(len(word) - 1, len(text))
    return len(text) - next((length for length in range(longest, 0, -1) if text.endswith(word[:length])), 0)


class MaskedOutput:
    """Standard output or error while an action runs: what the engine or a hook prints is masked."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.closed = False

    def write(self, text: str) -> int:
        """Writes a text for people."""
        self._stream.write(shown(text))
        return len(text)

    def write_document(self, text: str) -> None:
        """Writes a text for a file, without secrets."""
        self._stream.write(hidden_text(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts for people."""
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Only notes that somebody closed it: the stream is the process's own, which prints more."""
        self._stream.flush()
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_document(text: str) -> None:
    """Prints a text that users keep in a file, such as a lockfile: its commands stay as every ``cm`` knows them."""
    if isinstance(sys.stdout, MaskedOutput):
        sys.stdout.write_document(text)
    else:
        sys.stdout.write(text)


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


def wait_for_children() -> None:
    """Lets the system keep the exit status of each child, also if the program that started this one ignores SIGCHLD.

    A child inherits that, its own children then end unseen, and each is a success to ``subprocess`` (returncode 0).
    Does nothing outside the main thread, where Python allows no handlers.
    """
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


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
