"""Questions on the terminal: which one of several, and yes or no.

A wrong answer never counts as an answer: the question is asked again, and after a few times refused.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

from ..rules.errors import Ambiguous, RequestError

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
