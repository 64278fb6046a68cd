"""The exceptions of the engine: one class per kind of failure that a caller can treat differently.

Inside the engine everything raises; only ``report.answer_cm`` turns an error into CM's answer with a code and a text.
The return codes are CM's: 1 wrong request, 2 a script failed, 16 nothing found (reference engine, cm4mlops e1d5c7cf0).
"""

from __future__ import annotations

from collections.abc import Sequence


class RecipeError(Exception):
    """Expected failure with a message for the user.

    ``hint`` is the command or change to try next; ``trace`` names the recipes that led here, outermost first;
    ``log_path`` is the file that holds the output of the failed step, when there is one.
    """

    code = 1

    def __init__(self, message: str, *, hint: str = "", trace: Sequence[str] = (), log_path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.trace = tuple(trace)
        self.log_path = log_path

    def describe(self) -> str:
        """The whole text shown to the user: message, chain of recipes, log file, hint."""
        lines = [self.message]
        if self.trace:
            lines.append("  chain: " + " -> ".join(self.trace))
        if self.log_path:
            lines.append(f"  log: {self.log_path}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


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


class MetaError(RecipeError):
    """A recipe's ``_cm.yaml`` cannot be used; the message starts with the file and the key path."""


class NotFound(RecipeError):
    """No recipe has the tags that were asked for."""


class VariationNotFound(RecipeError):
    """Recipes have the tags, but none declares the variations that were asked for."""

    code = 16


class VariationError(RecipeError):
    """The variations asked for contradict each other or the recipe."""


class Ambiguous(RecipeError):
    """Several recipes match and nobody can be asked which one is meant."""


class ConditionError(RecipeError):
    """A condition block of a dependency is malformed."""


class CycleError(RecipeError):
    """A recipe needs, through its dependencies, the very thing it is making."""

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
    """A native script (``run.sh``) ended with an exit status other than 0."""

    code = 2


class ScriptNotFound(RecipeError):
    """A recipe names a native script that its folder does not hold."""

    code = 16


class StoreError(RecipeError):
    """The cache cannot be read or written as asked."""


class CacheMiss(RecipeError):
    """``--only_execute_from_cache`` was given and no entry fits."""


class LockTimeout(RecipeError):
    """Another process holds a lock for longer than the caller wanted to wait."""
