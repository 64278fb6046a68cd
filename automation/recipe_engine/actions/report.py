"""From results and errors to what CM and the user see."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..disk.os_errors import explained
from ..rules.env import merge_env, merge_state
from ..rules.errors import ErrorText, Interrupted, RecipeError
from ..rules.model import StepResult
from ..rules.schema import is_yes
from ..rules.secrets import hidden_text, hidden_texts, known_from, without_secrets
from ..running.interrupts import raised_as_interrupted
from ..running.masked_output import masked_output

logger = logging.getLogger(__name__)

Values = Mapping[str, Any]

INTERRUPTED = 130
"""Exit status of a program ended by Ctrl-C: 128 + SIGINT (POSIX shells)."""

ROOT_LOGGER = "recipe_engine"


def to_cm(result: StepResult, i: Mapping[str, Any]) -> dict[str, Any]:
    """CM's answer for a finished run of the request ``i``; an answer that is going to be printed holds no secrets.

    As in CM the dicts ``env`` and ``state`` of a caller in Python are updated with what the run gives, and are the ones
    in the answer.
    """
    is_shown = bool(i.get("out"))
    values = {
        "env": _updated(i.get("env"), merge_env, result.new_env),
        "new_env": result.new_env,
        "state": _updated(i.get("state"), merge_state, result.new_state),
        "new_state": result.new_state,
    }
    if is_shown:
        values = {key: without_secrets(value) for key, value in values.items()}
    answer: dict[str, Any] = {"return": 0, **values, "deps": list(result.dependency_tags)}
    if result.status == "skipped":
        answer["skipped"] = True
    if result.version:
        answer["version"] = result.version
    if result.entry:
        answer["cache_entry"] = {"uid": result.entry.uid, "path": str(result.entry.path)}
    return printable(answer) if is_shown else answer


def show(i: Mapping[str, Any], text: str) -> None:
    """Prints a text when the caller of an action is the console."""
    if i.get("out") == "con":
        sys.stdout.write(text + "\n")


def _updated(given: Any, merge: Callable[[Values, Values], dict[str, Any]], new: Values) -> dict[str, Any]:
    """``given`` merged with ``new``, in place when it is a dict."""
    merged = merge(given if isinstance(given, Mapping) else {}, new)
    if not isinstance(given, dict):
        return merged
    given.clear()
    given.update(merged)
    return given


def printable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer whose values JSON can hold: cmind would drop a whole env because of one value that it cannot."""
    try:
        json.dumps(answer)
    except (TypeError, ValueError):
        answer = json.loads(json.dumps(answer, default=str, skipkeys=True))
    return answer


def answer_cm(action: Callable[[Mapping[str, Any]], dict[str, Any]], i: dict[str, Any], cmind: Any) -> dict[str, Any]:
    """Runs one action for cmind: the one place where errors become CM's codes.

    On the console the error text goes to stderr from here, because cmind would put an exclamation mark behind the
    command that the hint suggests. With ``--out=json`` everything but the answer goes to stderr. What is shown, and
    every error, is without the secrets of the user's environment, of the input and of the steps.
    """
    open_standard_streams()
    out = str(i.get("out") or "")
    if out == "con" and wants_json(i):
        i["out"] = out = "json"
        if cmind is not None:
            cmind.output = out
    set_up_logging(is_verbose=bool(i.get("verbose") or i.get("v")))
    with known_from(os.environ, i) as is_top, masked_output(is_top and bool(out)):
        answer = _answer(action, i, cmind)
        return hidden_texts(answer) if out else answer


def _answer(action: Callable[[Mapping[str, Any]], dict[str, Any]], i: dict[str, Any], cmind: Any) -> dict[str, Any]:
    out = str(i.get("out") or "")
    signals = raised_as_interrupted() if out else contextlib.nullcontext()  # children end, and locks are freed
    try:
        with explained(), stdout_to_stderr(out == "json"), signals:
            return action(i)
    except RecipeError as error:
        if is_yes(i.get("debug")):
            traceback.print_exc()
        return _failed(error.code, ErrorText.of(error), out, cmind)
    except KeyboardInterrupt as stop:
        from ..running.engine import running_trace  # here, because most calls never need it

        if running_trace():  # a recipe made this call; the whole run ends
            raise
        interrupted = stop if isinstance(stop, Interrupted) else Interrupted("SIGINT", INTERRUPTED)
        return _failed(interrupted.code, interrupted.describe(), out, cmind)
    except Exception as error:
        if i.get("debug"):
            traceback.print_exc()
        from ..rules.advice import advice

        place = traceback.extract_tb(error.__traceback__)[-1]
        text = hidden_text(
            f"internal error: {type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})\n"
            f"  hint: {advice([str(error)]) or '--debug shows the traceback; please report it'}"
        )
        return _failed(1, text, out, cmind)


def open_standard_streams() -> None:
    """Connects each of standard input, output and error that the caller closed to /dev/null.

    Else the next file that is opened, such as an index, would get its number and what scripts print.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def wants_json(i: Mapping[str, Any]) -> bool:
    """Whether ``-j`` or ``--json`` asks for ``--out=json``; of ``cm add script`` the latter is a flag of its own."""
    return is_yes(i.get("j")) or (is_yes(i.get("json")) and i.get("action") != "add")


def _failed(code: int, text: str, out: str, cmind: Any) -> dict[str, Any]:
    if out == "con":
        print(f"\nCM error: {text}", file=sys.stderr)  # noqa: T201
        if cmind is not None:
            cmind.output = "shown"
    return {"return": code, "error": text}


class MaskedFormatter(logging.Formatter):
    """Lines of the story without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of one line."""
        return hidden_text(super().format(record))


def set_up_logging(*, is_verbose: bool) -> None:
    """The story goes to stderr, one line per step; with ``-v`` also what was skipped and why."""
    root = logging.getLogger(ROOT_LOGGER)
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(MaskedFormatter("%(message)s"))
        root.addHandler(handler)
        root.propagate = False
        root.setLevel(logging.INFO)
    if is_verbose:
        root.setLevel(logging.DEBUG)


@contextlib.contextmanager
def stdout_to_stderr(is_wanted: bool) -> Iterator[None]:
    """Sends standard output, children's too, to standard error inside the block."""
    if not is_wanted:
        yield
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
