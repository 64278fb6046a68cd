"""Between cmind and the engine: where things are, which of several engines answers, how answers and errors look.

CM gives the commands of ``cm ... script`` to the automation it finds first. Repositories such as mlcommons@cm4mlops
bring script and cache automations with the same UIDs as ours; CM's index keeps the one of the repository registered
first and does not say so. ``home_of`` refuses to work in the wrong order, ``use_action`` puts this repository first.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..disk.files import STANDARD_OUTPUT, explained, naming, read_json, write_text
from ..disk.repos import CHECKOUT, RecipeSource, RepoInfo
from ..rules.env import merge_env, merge_state
from ..rules.errors import ErrorText, Interrupted, RecipeError, RequestError
from ..rules.frozen import Frozen
from ..rules.model import StepResult
from ..rules.schema import is_yes
from ..rules.secrets import hidden_text, hidden_texts, known_from, without_secrets
from ..running.console import RED, YELLOW, colored, masked_output, raised_as_interrupted, shown, wait_for_children

logger = logging.getLogger(__name__)


Values = Mapping[str, Any]

INTERRUPTED = 130
"""Exit status of a program ended by Ctrl-C: 128 + SIGINT (POSIX shells)."""

ROOT_LOGGER = "recipe_engine"

CACHE_VARIABLE = "CROWDPERF_CACHE"
"""Names the folder of the store; without it the store is the ``cache`` folder of CM's local repository."""


OWN_HELP = ("describe", "help", "run")
"""Actions that answer ``--help`` themselves: it may be asked of a recipe."""


class Home(Frozen):
    """Where things are: the registered repositories, CM's home folder and the store."""

    repos: Sequence[RepoInfo]
    path: Path
    local_repo: Path

    @property
    def index_folder(self) -> Path:
        """Where the engine remembers what it read of each repository."""
        return self.path / "recipe-index"

    def source(self) -> RecipeSource:
        """The recipes of the registered repositories, as they are now."""
        return RecipeSource(self.repos, self.index_folder)

    @property
    def store_path(self) -> Path:
        """The folder of cache entries."""
        chosen = os.environ.get(CACHE_VARIABLE, "").strip()
        return Path(chosen).absolute() if chosen else self.local_repo / "cache"


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


def _updated(given: Any, merge: Callable[[Values, Values], dict[str, Any]], new: Values) -> dict[str, Any]:
    """``given`` merged with ``new``, in place when it is a dict."""
    merged = merge(given if isinstance(given, Mapping) else {}, new)
    if not isinstance(given, dict):
        return merged
    given.clear()
    given.update(merged)
    return given


def printable(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, in which each value that JSON cannot hold is a text: cmind would drop a whole env because of one such
    value, and print ``NaN``, which JSON does not have."""
    try:
        json.dumps(answer, allow_nan=False)
    except (TypeError, ValueError):
        answer = json.loads(json.dumps(answer, default=str, skipkeys=True), parse_constant=str)
    return answer


def answer_cm(action: Callable[[Mapping[str, Any]], dict[str, Any]], i: dict[str, Any], cmind: Any) -> dict[str, Any]:
    """Runs one action for cmind: the one place where errors become CM's codes.

    On the console the error text goes to stderr from here, because cmind would put an exclamation mark behind the
    command that the hint suggests. With ``--out=json`` everything but the answer goes to stderr. What is shown, and
    every error, is without the secrets of the user's environment, of the input and of the steps.
    """
    open_standard_streams()
    wait_for_children()
    out = str(i.get("out") or "")
    if out and i.get("action") not in OWN_HELP:
        action = loaded("help.checked")(action)
    if out == "con" and wants_json(i):
        i["out"] = out = "json"
        if cmind is not None:
            cmind.output = out
    accept_every_letter(out)
    set_up_logging(is_verbose=bool(i.get("verbose") or i.get("v")))
    with known_from(os.environ, i) as is_top, masked_output(is_top and bool(out)):
        answer = _answer(action, i, cmind)
        answer = hidden_texts(answer) if out else answer
    is_written = is_top and out == getattr(cmind, "output", None) == "json"  # not of a call that cmind makes itself
    return _written(answer, cmind) if is_written else answer


def _written(answer: dict[str, Any], cmind: Any) -> dict[str, Any]:
    """Writes an answer as the ``cm`` command does with JSON, without values that JSON lacks (dump_safe_json of cmind
    4.2.0), and reports a full disk."""
    text = json.dumps(_json_values(answer), indent=2, sort_keys=True, ensure_ascii=False)
    try:
        with explained(), naming(STANDARD_OUTPUT):
            print(text, flush=True)  # noqa: T201
    except RecipeError as error:
        return _failed(error.code, ErrorText.of(error), "con", cmind)
    cmind.output = "shown"
    return answer


def _json_values(answer: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in answer.items():
        with contextlib.suppress(TypeError, ValueError):
            json.dumps(value)
            kept[key] = value
    return kept


def _answer(action: Callable[[Mapping[str, Any]], dict[str, Any]], i: dict[str, Any], cmind: Any) -> dict[str, Any]:
    out = str(i.get("out") or "")
    signals = raised_as_interrupted() if out else contextlib.nullcontext()  # children end, and locks are freed
    try:
        with explained(), stdout_to_stderr(out == "json"), signals:
            answered = action(i)
            if out == "con":
                with naming(STANDARD_OUTPUT):
                    sys.stdout.flush()
                if answered.get("return") and cmind is not None:
                    return {**answered, **_failed(answered["return"], str(answered.get("error", "")), out, cmind)}
            return answered
    except RecipeError as error:
        from ..running.engine import running_trace  # here, because most calls never need it

        if is_yes(i.get("debug")):
            traceback.print_exc()
        if not running_trace() and (error.rerun or error.instead):
            from ..rules.rerun import name_command

            name_command(error, i, is_verbose=is_verbose(i))
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
            f"  hint: {advice([str(error)]) or '--debug shows the traceback. Please report it'}"
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


def accept_every_letter(out: str) -> None:
    """Lets standard output take what the locale cannot write: JSON is UTF-8, and letters of texts become escapes."""
    if out and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8" if out == "json" else None, errors="backslashreplace")


def wants_json(i: Mapping[str, Any]) -> bool:
    """Whether ``-j`` or ``--json`` asks for ``--out=json``; of ``cm add script`` the latter is a flag of its own."""
    return is_yes(i.get("j")) or (is_yes(i.get("json")) and i.get("action") != "add")


def _failed(code: int, text: str, out: str, cmind: Any) -> dict[str, Any]:
    if out == "con":
        _drop_unwritable()
        print(f"\n{colored('CM error:', RED, sys.stderr)} {text}", file=sys.stderr)  # noqa: T201
        if cmind is not None:
            cmind.output = "shown"
    return {"return": code, "error": text}


def _drop_unwritable() -> None:
    """Connects standard output to /dev/null where it no longer takes what was printed.

    Else Python tries again when it exits, prints a traceback and changes the exit status to 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


class ShownFormatter(logging.Formatter):
    """Lines of the story as people see them, warnings in colour."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of one line."""
        text = shown(super().format(record))
        return colored(text, YELLOW, sys.stderr) if record.levelno >= logging.WARNING else text


def set_up_logging(*, is_verbose: bool) -> None:
    """The story goes to stderr, one line per step; with ``-v`` also what was skipped and why."""
    root = logging.getLogger(ROOT_LOGGER)
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(ShownFormatter("%(message)s"))
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


def listing_width() -> int:
    """How many columns a line of a listing may have: those of the terminal, at most ``WIDTH``."""
    from ..documents.console_text import WIDTH  # here, because most calls list nothing

    try:
        return min(WIDTH, os.get_terminal_size(1).columns or WIDTH)
    except OSError:  # standard output is not a terminal
        return WIDTH


def print_lines(lines: Iterable[str]) -> None:
    """Prints what a user asked for."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def show(i: Mapping[str, Any], *lines: str) -> None:
    """Prints lines when the caller of an action is the console, and not a program."""
    if i.get("out") == "con":
        print_lines(lines)


def is_verbose(i: Mapping[str, Any]) -> bool:
    """Whether ``-v`` or ``--verbose`` asks for more."""
    return is_yes(i.get("v")) or is_yes(i.get("verbose"))


def is_forced(i: Mapping[str, Any]) -> bool:
    """Whether ``-f`` or ``--force`` answers a question beforehand."""
    return is_yes(i.get("f")) or is_yes(i.get("force"))


def answer(cmind: Any, i: dict[str, Any], function: str, *facts: object) -> dict[str, Any]:
    """What ``function`` (see ``loaded``) answers to ``i`` and ``facts``; "home" and "cmind" stand for these."""

    def act(i: Mapping[str, Any]) -> dict[str, Any]:
        action = loaded(function)
        given = (home_of(cmind) if fact == "home" else cmind if fact == "cmind" else fact for fact in facts)
        answered: dict[str, Any] = action(i, *given)
        return answered

    return answer_cm(act, i, cmind)


def loaded(function: str) -> Any:
    """The ``package.module.function`` of the engine; without a package it is in ``actions``.

    Its module is imported here, so that a run does not load what it does not use.
    """
    module, _, name = function.rpartition(".")
    path = module if "." in module else f"actions.{module}"
    return getattr(import_module(f"..{path}", __package__), name)


def home_of(cmind: Any) -> Home:
    """The registered repositories, CM's home and its local repository, read from a loaded ``cmind`` object.

    Raises RequestError when another engine comes before this one.
    """
    repos = _repos(cmind)
    check_first(repos)
    home = Path(cmind.repos_path)
    local = [repo.path for repo in repos if repo.alias == "local"]
    return Home(repos=repos, path=home, local_repo=local[0] if local else home / "repos" / "local")


def _repos(cmind: Any) -> list[RepoInfo]:
    return [
        RepoInfo(
            Path(repo.path_with_prefix),
            str(repo.meta.get("alias", "")),
            str(repo.meta.get("uid", "")),
            "literal" if repo.meta.get("values") == "literal" else "cm",
            repo.meta.get("inputs") == "strict",
            repo.meta.get("python"),
        )
        for repo in cmind.repos.lst
    ]


def found_artifacts(cmind: Any, artifact: type, paths: Sequence[Path]) -> dict[str, Any]:
    """CM's answer of a search: each path as one of cmind's ``artifact``, with its metadata and the repository it is in.

    A cache outside all repositories counts as the local one's: cmind's own actions (update, copy) look it up. Metadata
    is read when it is first looked at: cmind takes 10 ms for each file, and a search on the console needs none of them.
    """
    by_path = {Path(repo.path_with_prefix): repo for repo in cmind.repos.lst}
    local = by_path.get(home_of(cmind).local_repo)
    artifact = _read_late(artifact)
    listed = []
    for path in paths:
        found = artifact(cmind=cmind, path=str(path))
        repo = by_path.get(path.parent.parent) or local
        if repo:
            found.repo_path, found.repo_meta = repo.path_with_prefix, repo.meta
        listed.append(found)
    return {"return": 0, "list": listed}


def _read_late(artifact: type) -> type:
    """cmind's artifact, whose two kinds of metadata are loaded by the first use of either, or by ``load()``."""

    def metadata(name: str) -> property:
        def get(found: Any) -> Any:
            if not found.__dict__.get("is_loaded"):
                found.load()
            return found.__dict__.get(name, {})

        return property(get, lambda found, value: found.__dict__.__setitem__(name, value))

    def load(found: Any, *words: Any, **named: Any) -> Any:
        found.is_loaded = True
        return artifact.load(found, *words, **named)  # type: ignore[attr-defined]

    return type("FoundArtifact", (artifact,), {"meta": metadata("meta"), "original_meta": metadata("original_meta"),
                                               "load": load})  # fmt: skip


def rival_automations(repos: Sequence[RepoInfo]) -> tuple[RepoInfo | None, list[RepoInfo], list[RepoInfo]]:
    """This repository, and those with a script automation of their own before and behind it; nothing when this one is
    not among ``repos``.
    """
    number = next((number for number, repo in enumerate(repos) if _is_own(repo.path)), None)
    if number is None:
        return None, [], []
    before, behind = (list(filter(_has_automation, part)) for part in (repos[:number], repos[number + 1 :]))
    return repos[number], before, behind


def _is_own(path: Path) -> bool:
    return path == CHECKOUT or os.path.realpath(path) == os.path.realpath(CHECKOUT)


def _has_automation(repo: RepoInfo) -> bool:
    folder = repo.path / "automation" / "script"
    return any((folder / name).is_file() for name in ("_cm.json", "_cm.yaml"))


def check_first(repos: Sequence[RepoInfo]) -> None:
    """Raises RequestError when another repository's engine comes before this one, or this one is there twice."""
    own, before, behind = rival_automations(repos)
    if own is None:
        return
    remedy = f"cm use {own.alias}:script"
    copies = [repo for repo in (*before, *behind) if repo.uid == own.uid]
    if copies:
        raise RequestError(
            f"two copies of {own.alias} are registered: {own.path} and {copies[0].path}",
            hint=f"remove one of them from repos.json in the CM home, then: cm reindex repo && {remedy}",
        )
    if before:
        raise RequestError(
            f"two engines are registered for 'cm ... script': {before[0].path} ({before[0].alias}) comes first, so "
            f"'cm run script' runs its engine and not this one ({own.path})",
            hint=f"{remedy}   (puts {own.alias} first, and the recipes of both then run here)",
        )


def use_action(i: Mapping[str, Any], cmind: Any) -> dict[str, Any]:
    """Answers ``cm use crowdperf:script``: this repository comes first in CM's list, and CM's index is rebuilt.

    Raises RequestError when something still comes before it.
    """
    path = Path(cmind.repos_path) / "repos.json"
    known = read_json(path)
    paths = [item for item in known if isinstance(item, str)] if isinstance(known, list) else []
    folder = Path(cmind.repos_path) / "repos"
    others = [item for item in paths if not _is_own(folder / item)]
    first = next((item for item in paths if _is_own(folder / item)), str(CHECKOUT))
    if paths != [first, *others]:
        write_text(path, json.dumps([first, *others], indent=2))
    cmind.repos.load(init=True)
    answered: dict[str, Any] = cmind.access({"action": "reindex", "automation": "repo,55c3e27e8a140e48"})
    if answered["return"] > 0:
        return answered
    _, before, behind = rival_automations(_repos(cmind))
    if before:
        raise RequestError(
            f"{before[0].path} still comes first: cmind puts Python packages whose name starts with 'cm' before all "
            "registered repositories",
            hint=f"pip uninstall {before[0].path.name}, or set CM_CORE_SKIP_INTERNAL_REPOS=yes in your shell",
        )
    if behind and not cmind.use_index:
        raise RequestError(
            "CM_INDEX is off in this shell: without its index cmind refuses two automations of one name",
            hint="unset CM_INDEX, or write crowdperf:script instead of script in every command",
        )
    names = ", ".join(f"{repo.alias} ({repo.path})" for repo in behind) or "none"
    logger.info("cm ... script and cm ... cache now run on %s, with these engines behind it: %s", CHECKOUT, names)
    return {"return": 0, "path": str(CHECKOUT), "behind": [str(repo.path) for repo in behind]}
