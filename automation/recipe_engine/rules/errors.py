"""The exceptions of the engine: one class per kind of failure that a caller can treat differently.

Inside the engine everything raises; only ``adapter.answer_cm`` turns an error into CM's answer with a code and a text.
The return codes are CM's: 1 wrong request, 2 a script failed, 16 nothing found (reference engine, cm4mlops e1d5c7cf0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .secrets import hidden_text


class RecipeError(Exception):
    """Expected failure with a message for the user.

    ``hint`` is the command or change to try next; ``trace`` names the recipes that led here, outermost first;
    ``log_path`` is the file that holds the output of the failed step, when there is one; ``command`` runs the failed
    program by hand, ``notes`` are further facts and ``output`` the last lines it wrote, under ``output_title``.
    Where the error passes through, ``rerun`` becomes the line that runs the failed part alone, ``left_out`` what that
    line lacks (secrets, state), ``run_id`` the journal by which the whole run can be resumed, and at last ``given`` the
    command of the user; ``resume`` is a recipe's own command that resumes. ``instead`` are inputs with values that are
    allowed, where a wrong one was found.
    """

    code = 1
    may_be_resumed = True
    """Whether the same request can succeed later, so that a resume is offered."""

    def __init__(self, message: str, *, hint: str = "", trace: Sequence[str] = (), log_path: str = "") -> None:
        message = hidden_text(message)
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.trace = tuple(trace)
        self.log_path = log_path
        self.command = ""
        self.notes: tuple[str, ...] = ()
        self.output: tuple[str, ...] = ()
        self.output_title = ""
        self.rerun = ""
        self.left_out: tuple[str, ...] = ()
        self.given = ""
        self.given_left_out: tuple[str, ...] = ()
        self.shows_step = False
        self.instead: Mapping[str, Any] = {}
        self.run_id = ""
        self.resume = ""

    @property
    def last_words(self) -> str:
        """The last line that the failed program wrote, else the last line of the message."""
        return (self.output or self.message.splitlines() or ("",))[-1].strip()

    def describe(self) -> str:
        """The whole text shown to the user, from what failed to one command that comes next.

        That is the hint where it is a command, else what resumes the run, else the command that was given; with
        ``shows_step`` all of them.
        """
        again, left_out = (self.given, self.given_left_out) if self.given else (self.rerun, self.left_out)
        resume = self.resume or (f"cm resume script {self.run_id}" if self.run_id else "")
        resume = resume if self.may_be_resumed else ""
        if not self.shows_step:
            resume = "" if self.hint.startswith("cm ") else resume
            again = "" if resume or self.hint.startswith("cm ") else again
        has_step = self.shows_step and self.rerun != again
        output = [f"{self.output_title}:", *(f"  {line}" for line in self.output)] if self.output else []
        lines = [
            ("chain: ", " -> ".join(self.trace)),
            ("command: ", self.command),
            *(("", text) for text in (*self.notes, *output)),
            ("log: ", self.log_path),
            ("hint: ", self.hint),
            ("again: ", again),
            ("  not included: ", ", ".join(left_out) if again else ""),
            ("step alone: ", self.rerun if has_step else ""),
            ("  not included: ", ", ".join(self.left_out) if has_step else ""),
            ("resume: ", resume),
            ("  not included: ", ", ".join(left_out) if resume and not again else ""),
        ]
        shown = [f"  {label}{text}" for label, text in lines if text]
        return hidden_text("\n".join([self.message, *shown]))


class Interrupted(KeyboardInterrupt):
    """The user or the system ended the run by a signal: ``SIGINT`` (Ctrl-C), ``SIGTERM`` ...

    ``code`` is the exit status that a shell gives such a program, 128 + the signal's number. ``trace`` and ``run_id``
    are filled on the way out, as for a RecipeError.
    """

    def __init__(self, signal_name: str, code: int) -> None:
        super().__init__(signal_name)
        self.signal_name = signal_name
        self.code = code
        self.trace: tuple[str, ...] = ()
        self.run_id = ""

    def describe(self) -> str:
        """One line: what was interrupted and how to resume."""
        where = f" in {' -> '.join(self.trace)}" if self.trace else ""
        way_on = f"cm resume script {self.run_id}" if self.run_id else "give the same command"
        return f"interrupted by {self.signal_name}{where}. To resume: {way_on}"


class ErrorText(str):
    """The text of a CM answer that reports an error; a recipe that passes it on passes ``origin`` on with it."""

    origin: RecipeError

    @classmethod
    def of(cls, origin: RecipeError) -> ErrorText:
        """The whole text of an error."""
        text = cls(origin.describe())
        text.origin = origin
        return text


class RequestError(RecipeError):
    """A wrong request: a flag, an input or a value that cannot be used."""

    may_be_resumed = False


class MetaError(RecipeError):
    """A recipe's ``_cm.yaml`` cannot be used; the message starts with the file and the key path."""


class NotFound(RecipeError):
    """No recipe has the tags that were asked for."""


class NothingFound(RequestError):
    """There is no cache entry, run, result, file or configuration of the kind that was asked for; CM's code is 16."""

    code = 16


class VariationNotFound(RecipeError):
    """Recipes have the tags, but none declares the variations that were asked for."""

    code = 16


class VariationError(RecipeError):
    """The variations asked for contradict each other or the recipe."""


class Ambiguous(RecipeError):
    """Several recipes match and none was picked."""


class CycleError(RecipeError):
    """A recipe needs, through its dependencies, what it is making itself."""

    @classmethod
    def endless(cls, trace: Sequence[str]) -> CycleError:
        """The error for recipes that call each other without end, named by the part of the chain that repeats."""
        before = list(trace[:-1])
        start = len(before) - 1 - before[::-1].index(trace[-1]) if trace[-1] in before else 0
        return cls(
            f"recipes need each other without end ({len(trace)} below each other): {' -> '.join(trace[start:])}",
            hint="give one of these dependencies a condition that ends the circle",
            trace=(*trace[:5], "..."),
        )


class HookFailed(RecipeError):
    """A function of ``customize.py`` answered with an error, raised, or broke the contract."""

    def __init__(self, message: str, *, code: int = 1, hint: str = "", log_path: str = "") -> None:
        super().__init__(message, hint=hint, log_path=log_path)
        self.code = code


class ScriptFailed(RecipeError):
    """A native script (``run.sh``) ended with an exit status other than 0.

    ``missing_program`` is the one that its shell did not find, when that is why.
    """

    code = 2
    missing_program = ""


class ScriptNotFound(RecipeError):
    """A recipe names a native script that its folder does not hold."""

    code = 16


class StoreError(RecipeError):
    """The cache cannot be read or written as asked."""


class CacheMiss(RecipeError):
    """``--only_execute_from_cache`` was given and no entry fits."""


class LockTimeout(RecipeError):
    """Another process holds a lock for longer than the caller wanted to wait."""


def printable(text: str) -> str:
    """A foreign text (a file name, what a server says) for one line of a terminal.

    Control, bidirectional and invisible characters, line ends and bytes that are not UTF-8 are shown as escapes.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )
