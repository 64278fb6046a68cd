"""What a user sees of a failure: how the script ended, its last lines, one suggestion, the line that runs it again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..disk.metadata import CODE, recipe_texts
from ..rules.advice import advice, missing_program, tags_for_program
from ..rules.errors import RecipeError, ScriptFailed
from ..rules.inputs import declared_inputs
from ..rules.query import BOUND_KEYS
from ..rules.rerun import rerun_line
from .process import Ended, exit_text, is_kill, signal_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..rules.model import Recipe, Request
    from ..rules.query import RecipeIndex

FILE_LINES = 40
"""How much is shown of a file that the recipe names for the case that its script fails."""
NOT_FOUND = 127
"""Exit code of a shell that did not find a program (POSIX, section 2.8.2)."""
MEMORY_HINT = "out of memory: provide more, or use less at a time (a smaller --batch_size, fewer parallel jobs)"
KILLED_HINT = (
    "SIGKILL means out of memory (sent by the kernel), or a limit from outside (kill -9, a batch system, a container): "
    "use less at a time (a smaller --batch_size), or request more memory and time"
)
SIGNAL_HINTS = {
    "SIGABRT": "the program aborted: see the lines above and the log",
    "SIGBUS": "a memory-mapped file shrank, or its disk is full (df -h, and df -h /dev/shm in a container)",
    "SIGHUP": "the terminal or the connection closed: rerun it under tmux, screen or nohup",
    "SIGILL": "a program uses instructions that this CPU does not have: get or build it for this machine (lscpu)",
    "SIGPIPE": "the program that read its output ended too early",
    "SIGSEGV": "a program crashed on an invalid memory access: try another version. The command above reruns it",
    "SIGTERM": "it was stopped from outside (kill, a batch system, a time limit): allow more time there",
    "SIGXCPU": "the CPU time limit was reached: ulimit -t shows it",
    "SIGXFSZ": "the file size limit was reached: ulimit -f shows it",
}
"""What each signal usually means (POSIX, signal.h), with what to try."""
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
"""What Python writes between two tracebacks (library reference, traceback)."""
_OWN_ERROR, _OWN_HINT = re.compile(r"[\w-]+(?:\.py|: error): "), re.compile(r"(?:[\w-]+: )?hint: (.+)")
"""How programs of recipes end: `harness: error: TEXT`, `harness: hint: TEXT`; or `make.py: TEXT`, `hint: TEXT`."""
DEFAULT_HINT = "see the lines above and the log for the cause. The command above reruns it"


def script_failure(label: str, script: Path, folder: Path, ended: Ended, files: Iterable[str]) -> ScriptFailed:
    """The error for a native script that did not end with 0.

    ``folder`` holds the ``files`` whose ends are shown too. The last lines are those of standard
    error; only of a script that wrote none there, those of standard output.
    """
    shown, stream = (ended.errors, "error") if ended.errors else (ended.output, "output")
    error = ScriptFailed(f"{label}: {script.name} {exit_text(ended.status)}")
    error.notes = (*ended.memory.lines, *_ends_of(folder, files))
    error.output_title = f"last lines of its standard {stream}"
    own, shown = own_hint(shown)
    known = own or advice(shown)
    error.output = without_tracebacks(shown) if known else shown
    if is_kill(ended.status):
        error.hint = MEMORY_HINT if ended.memory.is_exhausted else KILLED_HINT
        return error
    if ended.status == NOT_FOUND or not known:  # a script may go on after it missed a program
        error.missing_program = missing_program(shown, is_certain=ended.status == NOT_FOUND)
    if error.missing_program:
        known = f"install the program {error.missing_program}, or add its folder to PATH"
    error.hint = known or SIGNAL_HINTS.get(signal_name(ended.status)) or DEFAULT_HINT
    return error


def own_hint(lines: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The hint that a program of a recipe gave with its error, and the lines without it; empty where it gave none.

    It knows more than a table of patterns does, which may match what a server or a library wrote into the error.
    """
    for place in range(len(lines) - 1, 0, -1):
        if (found := _OWN_HINT.fullmatch(lines[place])) and _OWN_ERROR.match(lines[place - 1]):
            return found[1], (*lines[:place], *lines[place + 1 :])
    return "", lines


def without_tracebacks(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of output without the frames of Python tracebacks: the exceptions stay."""
    kept, is_inside = [], False
    for line in lines:
        if line.startswith(("Traceback (most recent call last)", *CHAINED)) or re.match(r'  File ".*", line \d+', line):
            is_inside = True
        elif not (is_inside and (not line.strip() or line.startswith(" "))):
            is_inside = False
            kept.append(line)
    return tuple(kept)


def _ends_of(folder: Path, names: Iterable[str]) -> list[str]:
    lines = []
    for name in names:
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            lines += [f"{name}:", *(f"  {line}" for line in text.splitlines()[-FILE_LINES:])]
    return lines


def complete(error: RecipeError, index: RecipeIndex, request: Request, recipe: Recipe, trace: tuple[str, ...]) -> None:
    """Adds to an error, where it first leaves a recipe, the chain, a suggestion and the line for this recipe alone."""
    error.trace = trace
    texts = recipe_texts(recipe.path, (*CODE, ".yaml", ".json")).values()
    error.rerun, error.left_out = rerun_line(request, recipe, texts)
    if isinstance(error, ScriptFailed) and error.missing_program:
        error.hint = _recipe_for(error.missing_program, index) or error.hint
    if not error.hint and "hint:" not in error.message:
        readme = recipe.path / "README.md"
        error.hint = advice([error.message]) or (
            f"{readme} lists the requirements of the recipe" if readme.is_file() else ""
        )
    error.hint = for_caller(error.hint, recipe, request)
    lines = error.message.split("\n")
    error.message = "\n".join(
        for_caller(line, recipe, request) if line.lstrip().startswith("hint:") else line for line in lines
    )


def for_caller(hint: str, recipe: Recipe, request: Request) -> str:
    """The hint of a dependency for a user who typed another recipe: its inputs as that command would give them.

    The flags of a whole command in the hint are that command's own.
    """
    if request.dependency is None:
        return hint
    before, command = re.split(r"(?=\bcm [a-z]+ script\b)|$", hint, maxsplit=1)

    def renamed(found: re.Match[str]) -> str:
        is_own = found[1] in declared_inputs(recipe) or found[1] in BOUND_KEYS
        return _flag_for_caller(found[1], recipe, request) if is_own else found[0]

    return re.sub(r"(?<![\w-])--([a-z][a-z0-9_]*)(?![\w.-])", renamed, before) + command


def _flag_for_caller(name: str, recipe: Recipe, request: Request) -> str:
    """How the user's command gives an input to a recipe deep in the chain: as its own input where each parent hands it
    on, else through a name of a dependency, else through the env that the recipe reads.
    """
    asked: Request | None = request
    while asked and asked.dependency and asked.asked_by:
        is_handed_on = name in BOUND_KEYS and asked.dependency.reuse_version
        if not is_handed_on and name not in declared_inputs(asked.asked_by):
            names, key = asked.dependency.names, recipe.layer.input_mapping.get(name)
            if key and (own := _input_of_command(key, asked)):
                return f"--{own}"
            used = [*(each for each in names if each in request.recursive_overrides), *names]
            return f"--adr.{used[0]}.{name}" if names else f"--env.{key}" if key else f"--{name}"
        recipe, asked = asked.asked_by, asked.parent
    return f"--{name}"


def _input_of_command(key: str, asked: Request) -> str:
    """The input of the recipe that the user called which sets an env key; empty without one."""
    top: Request | None = asked
    mapping: Mapping[str, str] = {}
    while top and top.asked_by:
        mapping, top = top.asked_by.layer.input_mapping, top.parent
    return next((name for name, one in mapping.items() if one == key), "")


def _recipe_for(program: str, index: RecipeIndex) -> str:
    """The command that runs a recipe which gives a program; empty when none is known."""
    for tags in tags_for_program(program):
        if index.by_tags(tags, ()):
            return f"the program {program} is missing. To get it: cm run script --tags={','.join(tags)}"
    return ""
