"""Whether two formulas whose texts differ are equal, as sympy says: the last step of the official grader of MATH-500
(grading/grader.py of openai/prm800k, 7ecc7947; sympy's `simplify` of their difference is 0).

sympy's parser evaluates what a model wrote as Python. So, as there, formulas with more than two letters beside the word
sqrt, or with powers of powers, are never parsed; and other than there, what parses them is a process of its own, which
has limits of time and memory, starts no process and writes no file. This module is that process's program, too:

    python -I -B formulas.py        stdin: a difference as JSON on each line; stdout: "equal" or "differ"
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import select
import subprocess
import sys
import time
import unicodedata
from types import TracebackType

LIMIT_S, START_LIMIT_S = 30.0, 120.0
"""Of one pair; of the program, which loads sympy first."""
_MEMORY_BYTES = 4 << 30
_MAX_LETTERS, _MAX_CHARACTERS = 2, 400
_NEVER = re.compile(r"\^\{|\^\(|\^[0-9]+\^|\^[0-9][0-9]+")
_UNSAFE = re.compile(r"""['"\\]|__""")
_NAMES = re.compile("[\u0370-\u03ffℂℕℚℝℤ\U0001d400-\U0001d433]")
"""Greek, hollow and bold letters: names to the parser, as there."""
_REPLIES = {b"equal": True, b"differ": False}
_LOG = logging.getLogger(__name__)


def difference(right: str, given: str) -> str | None:
    """Return the difference of two formulas for sympy, empty where the official grader calls them unequal without it,
    or its parser cannot but fail (signs that Python does not have); None for one that is not parsed here at all."""
    text = f"({right})-({given})"
    letters = {one for one in text.replace("sqrt", "").replace("frac", "") if one.isalpha()}
    if len(letters) > _MAX_LETTERS or _NEVER.search(text):
        return ""
    if _UNSAFE.search(text) or len(text) > _MAX_CHARACTERS:
        return None
    others = {one for one in _NAMES.sub("", text) if not (_is_plain(one) or _is_name(one))}
    kinds = {unicodedata.category(one) for one in others}
    if kinds & {"Nd", "Nl"} or any(kind[0] in "LMC" for kind in kinds):
        return None  # letters and digits that only look like others
    return "" if others else text.replace("^", "**")


def _is_plain(character: str) -> bool:
    return character.isascii() and (character.isprintable() or character == "\n")


def _is_name(character: str) -> bool:
    """Whether a letter, such as an i with a hat, is a name to the parser and no other form of another letter."""
    return character.isidentifier() and unicodedata.normalize("NFKC", character) == character


class FormulaChecker:
    """Asks the program, which is started with the first pair; a context, at whose end it is gone."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._is_usable = True

    def __enter__(self) -> FormulaChecker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, right: str, given: str) -> bool | None:
        """Return whether two formulas are equal; None where that is not known: sympy is missing, or took too long."""
        text = difference(right, given)
        if not text:
            return None if text is None else False
        if self._process is None and not (self._is_usable and self._start()):
            return None
        answer = self._ask(text)
        if answer is None:
            self._end()
        return answer

    def _start(self) -> bool:
        command = [self._python, "-I", "-B", __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._is_usable = self._line(START_LIMIT_S) == b"ready"
        if not self._is_usable:
            self._end()
            _LOG.warning("formulas whose texts differ are not graded: sympy is missing (pip install sympy)")
        return self._is_usable

    def _ask(self, text: str) -> bool | None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(text).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return None
        return _REPLIES.get(self._line(LIMIT_S))

    def _line(self, limit_s: float) -> bytes:
        """Return a line of the program; empty where none came in time."""
        assert self._process is not None and self._process.stdout is not None
        end_s, stream, found = time.monotonic() + limit_s, self._process.stdout.fileno(), b""
        while not found.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, end_s - time.monotonic()))
            piece = os.read(stream, 100) if ready else b""
            if not piece:
                return b""
            found += piece
        return found.strip()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                process.wait()


def _serve() -> None:
    """Answer pairs until stdin ends."""
    import resource

    import sympy
    from sympy.parsing import sympy_parser

    rules = (*sympy_parser.standard_transformations, sympy_parser.implicit_multiplication_application)
    for limit, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):  # fmt: skip
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            is_equal = bool(sympy.simplify(sympy_parser.parse_expr(json.loads(line), transformations=rules)) == 0)
        except Exception:  # whatever the parser says of a text that is no formula: the official grader calls it wrong
            is_equal = False
        print("equal" if is_equal else "differ", flush=True)


if __name__ == "__main__":
    _serve()
