"""Calls the functions of a recipe's ``customize.py`` and checks what they answer.

The file is loaded from its path just before its first use (dependencies may extend ``sys.path`` for it), as a package
of its own, so that ``from . import table`` reaches a module beside it. The packages of its repository (``python: src``
in ``cmr.yaml``) are found behind everything else on ``sys.path``; where two repositories have one of the same name,
each hook gets that of its own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..disk.files import store_error
from ..rules.env import Env, plain_copy, with_lists
from ..rules.errors import ErrorText, HookFailed, RecipeError
from ..rules.model import HookResult, Recipe
from ..rules.query import split_words
from ..rules.secrets import learn
from .compat import Automation
from .console import MaskedOutput
from .context import StepContext, os_info, user_path
from .shell import STATE_IN, STATE_OUT, ScriptCall, find_script, package_names, rival_package, run_script

if TYPE_CHECKING:
    from ..rules.input_types import Values

logger = logging.getLogger(__name__)
FILE_NAME = "customize.py"
FOLDER_KEY = "CM_TMP_CURRENT_PATH"
"""Where the command was given; relative paths count from there."""
_loaded: dict[str, tuple[int, ModuleType]] = {}
_libraries: list[str] = []
"""The folders of packages that hooks put on ``sys.path``; that of the hook which runs is the first."""
_put_aside: dict[str, dict[str, ModuleType]] = {}
"""The modules of each of these folders that another one has, too, while hooks of that one run."""


class Artifact:
    """What recipes get as ``i['artifact']``; ``meta`` is a copy, made when it is asked for."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self.path = str(recipe.path)
        self.repo_path = str(recipe.repo_path)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The recipe's metadata as it is in its file."""
        copied: dict[str, Any] = plain_copy(self._recipe.meta)
        return copied


def load_customize(recipe: Recipe) -> ModuleType | None:
    """The recipe's module, or None when it has none; loaded again when the file changed.

    Raises HookFailed with the traceback when it cannot be imported.
    """
    path = recipe.path / FILE_NAME
    try:
        mtime_ns = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    known = _loaded.get(str(path))
    if known and known[0] == mtime_ns:
        _offer_imports(recipe)
        return known[1]
    if known:  # Python's own compiled file tells edits within a second apart by size only
        with contextlib.suppress(OSError):
            os.unlink(importlib.util.cache_from_source(str(path)))
    name = f"recipe_{recipe.id.uid}_customize"
    for stale in [module for module in sys.modules if module == name or module.startswith(name + ".")]:
        del sys.modules[stale]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(recipe.path)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        _offer_imports(recipe)
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise HookFailed(f"{recipe.id.alias}: cannot load {path}: {_own_lines(error, recipe.path)}") from error
    _loaded[str(path)] = (mtime_ns, module)
    return module


def _offer_imports(recipe: Recipe) -> None:
    if recipe.is_successor:
        from .compat import offer_imports  # here, because no other recipe needs it

        offer_imports(recipe)


@contextlib.contextmanager
def _own_packages(recipe: Recipe) -> Iterator[None]:
    """Inside the block, imports find the packages of the recipe's repository, also where another one has the same.

    Raises HookFailed when Python finds another package of the same name first.
    """
    before = _libraries[:1]
    if recipe.packages and recipe.packages not in _libraries:
        rival = rival_package(recipe.packages, [place for place in sys.path if place not in _libraries])
        if rival:
            hint = "remove it with pip uninstall, or remove its folder from PYTHONPATH"
            raise HookFailed(f"{recipe.id.alias}: {rival}", hint=hint)
    _put_first(recipe.packages)
    try:
        yield
    finally:
        _put_first(*before or [""])


def _put_first(library: str) -> None:
    """Lets imports look into this folder before those of other repositories, and behind everything else."""
    if not library or library in _libraries[:1]:
        return
    own = package_names(library)
    for name, module in [row for row in sys.modules.items() if row[0].partition(".")[0] in own]:
        place = next((place for place in _libraries if place != library and _is_in(module, place)), "")
        if place:
            _put_aside.setdefault(place, {})[name] = sys.modules.pop(name)
    sys.modules.update(_put_aside.pop(library, {}))
    kept = [place for place in sys.path if place not in _libraries]
    _libraries[:] = [library, *(place for place in _libraries if place != library)]
    sys.path[:] = [*kept, *_libraries]


def _is_in(module: ModuleType, folder: str) -> bool:
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    return any(place.startswith(folder + os.sep) for place in places)


def has_hook(recipe: Recipe, name: str) -> bool:
    """Whether the recipe has this function, without loading it: a dependency may have to make that possible first."""
    try:
        text = (recipe.path / FILE_NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return defines(text, name)


def defines(text: str, name: str) -> bool:
    """Whether the text of a customize.py has a hook of this name at its top level: a function, or a name for one."""
    return name in text and re.search(rf"^(?:def {name}\(|(?:\w+ = )*{name} = )", text, re.MULTILINE) is not None


def call_hook(recipe: Recipe, name: str, i: dict[str, Any]) -> HookResult | None:
    """Calls ``predeps``, ``preprocess``, ``postprocess`` or ``detect_version``; None when the recipe does not have it.

    Raises HookFailed when it raises, answers with an error, answers something that is no CM answer, or breaks what it
    was given; the text of it shows no secret of the hook's env.
    """
    with _own_packages(recipe):
        function = getattr(load_customize(recipe), name, None)
        if function is None:
            return None
        if recipe.inputs:
            i["values"] = typed_values(recipe, i)
        return _answer_of(recipe, name, function, i)


def typed_values(recipe: Recipe, i: Mapping[str, Any]) -> Values:
    """The values of a recipe's inputs as its hook gets them."""
    from ..rules.input_types import Values  # here, because recipes without inputs need none

    return Values(
        recipe.inputs, i["env"], i.get("input") or {}, lambda path: user_path(path, i["env"].get(FOLDER_KEY) or "")
    )


def _answer_of(recipe: Recipe, name: str, function: Any, i: dict[str, Any]) -> HookResult:
    given = [key for key in ("env", "state", "run_script_input") if key in i]
    threads = set(threading.enumerate())
    try:
        answer = function(i)
    except RecipeError:
        raise
    except OSError as error:
        _learn(i)
        told = store_error(error)  # a full disk, a folder that cannot be made: no mistake of the recipe
        raise HookFailed(f"{recipe.id.alias}: {told.message}", hint=told.hint) from error
    except (Exception, SystemExit, GeneratorExit) as error:
        _learn(i)
        text = f"{recipe.id.alias}: {name} in {FILE_NAME} raised {type(error).__name__}: {error}\n"
        raise HookFailed(text + _own_lines(error, recipe.path)) from error
    _check_streams(recipe, name)
    try:
        _learn(i)
    except RecursionError as error:
        for key in given:
            i[key].clear()  # nobody can walk through it, to write it or to look for secrets in it
        where = f"{recipe.id.alias}: {name} in {FILE_NAME}"
        raise HookFailed(f"{where} must not leave a value in i['env'] or i['state'] that contains itself") from error
    left = [thread.name for thread in set(threading.enumerate()) - threads if not thread.daemon]
    if left:
        words = (
            "%s: %s in %s left a thread running (%s): cm waits for it before it exits\n  hint: join it, or "
            "make it a daemon"
        )
        logger.warning(words, recipe.id.alias, name, FILE_NAME, ", ".join(sorted(left)))
    _check_left(recipe, name, {key: i.get(key) for key in given})
    return check_answer(recipe, name, answer)


def _check_streams(recipe: Recipe, name: str) -> None:
    """Raises HookFailed where a hook closed standard output or error, as which it is given a `MaskedOutput`."""
    for stream in ("stdout", "stderr"):
        found = getattr(sys, stream)
        if found is not None and found.closed:
            if isinstance(found, MaskedOutput):
                found.closed = False
            else:
                setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
            raise HookFailed(
                f"{recipe.id.alias}: {name} in {FILE_NAME} closed sys.{stream}, which belongs to the engine"
            )


def _learn(i: Mapping[str, Any]) -> None:
    learn((_unwatched(i.get("env")), i.get("state")))


def _unwatched(env: Any) -> Any:
    """The values of an env, also of one whose keys a plan watches."""
    return getattr(env, "plain", env)


def _check_left(recipe: Recipe, name: str, left: Mapping[str, Any]) -> None:
    """Raises HookFailed unless each value is still a dict with texts as keys."""
    for place, value in left.items():
        keys = _unwatched(value)
        odd = [key for key in keys if not isinstance(key, str)] if isinstance(keys, Mapping) else [keys]
        if odd:
            where = f"{recipe.id.alias}: {name} in {FILE_NAME}"
            raise HookFailed(f"{where} must leave i['{place}'] as a dict with string keys, found {odd[0]!r}")


def check_answer(recipe: Recipe, name: str, answer: Any) -> HookResult:
    """A hook's answer as a type; raises HookFailed when it reports an error or breaks the contract."""
    where = f"{recipe.id.alias}: {name} in {FILE_NAME}"
    if not isinstance(answer, Mapping) or not isinstance(answer.get("return"), int):
        raise HookFailed(f"{where} must return a dict with an integer 'return', got {answer!r}")

    def items(key: str) -> list[Any]:
        """What is listed under a key; a text counts as a list of one."""
        value = answer.get(key) or ()
        if isinstance(value, Mapping) or not isinstance(value, Iterable):
            raise HookFailed(f"{where} must return a list as '{key}', got {value!r}")
        return [value] if isinstance(value, str) else list(value)

    if answer["return"] > 0 and isinstance(answer.get("error"), ErrorText):
        raise answer["error"].origin  # of a recipe that this one ran; it needs no second wrapping
    if answer["return"] > 0:
        raise _reported(recipe, answer["return"], str(answer.get("error") or "no error text"))
    replacement, locked = answer.get("script"), answer.get("locked") or {}
    if not isinstance(locked, Mapping):
        raise HookFailed(f"{where} must return a dict as 'locked', got {locked!r}")
    return HookResult(
        skip=bool(answer.get("skip")),
        replacement=replacement if isinstance(replacement, Mapping) else None,
        version=str(answer.get("version") or ""),
        extra_cache_tags=split_words(items("add_extra_cache_tags")),
        files=tuple(map(str, items("files"))),
        runs=tuple(items("runs")),
        locked=dict(locked),
    )


def _reported(recipe: Recipe, code: int, text: str) -> HookFailed:
    """The error that a hook reported; a code above 255, which no process can end with, is a raw status of wait(2).

    A last line ``hint: ...`` of its text is the hint.
    """
    if code <= 255:
        found = re.fullmatch(_ONE_HINT, text)
        text, hint = found.groups() if found else (text, "")
        return HookFailed(f"{recipe.id.alias}: {text}", code=code, hint=hint)
    from .process import exit_text  # here, because only failures need it

    try:
        words = f"return code {code}: a program {exit_text(os.waitstatus_to_exitcode(code & 0xFFFF))}"
    except (AttributeError, ValueError):  # Windows has no such status, and not every number is one
        words = f"return code {code}"
    return HookFailed(f"{recipe.id.alias}: {text} ({words})", code=(code >> 8) & 0xFF or 1)


_ONE_HINT = r"(?sm)((?:(?!^[ \t]*hint:).)*)\n[ \t]*hint: ([^\n]+)\n?"
"""A text whose last line, and no other, is a hint."""


def _own_lines(error: BaseException, folder: Path) -> str:
    """The part of a traceback that lies in the recipe."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(folder))]
    lines = [f"  {frame.filename}:{frame.lineno}: {frame.line}" for frame in frames]
    return f"{type(error).__name__}: {error}" + "".join("\n" + line for line in lines)


def run_hook(step: StepContext, name: str, cmind: Any, cache: Path) -> HookResult:
    """Calls a function of customize.py, if there is one; the step takes over what it changed.

    ``cmind`` is CM's own object, ``cache`` the folder of entries.
    """
    meta = step.meta()
    i = hook_input(step, meta, _automation(step, cmind, cache))
    result = call_hook(step.recipe, name, i)
    if result is None:
        return HookResult()
    step.take_hook(i, meta, result)
    return result


def detected_version(step: StepContext, env: Env, cmind: Any, cache: Path) -> str | None:
    """What the recipe's ``detect_version`` finds in ``env``; None when it has none."""
    i = hook_input(step, step.meta(), _automation(step, cmind, cache))
    result = call_hook(step.recipe, "detect_version", {**i, "env": env})
    return result.version if result else None


def _automation(step: StepContext, cmind: Any, cache: Path) -> Automation:
    def run_native(name: str, env: dict[str, Any]) -> dict[str, Any]:
        script = find_script(step.recipe.path, name, env, step.recipe.prefix)
        return run_script(script_call(step, script, env))[0] if script else dict(env)

    def detect_version(env: dict[str, Any]) -> dict[str, Any]:
        version = detected_version(step, env, cmind, cache)
        return {} if version is None else {"version": version}

    return Automation(
        cmind, run_native=run_native, detect_version=detect_version, cache_path=str(cache), prefix=step.recipe.prefix
    )


def run_own_script(step: StepContext) -> None:
    """Runs the recipe's native script, if it has one; the step takes over what it wrote."""
    step.map_env_keys()
    script = find_script(step.recipe.path, step.script_name, step.env, step.recipe.prefix)
    if script:
        call = script_call(step, script, step.env)
        ignores_failure = step.configured.request.options.ignore_script_error
        step.env, step.state = run_script(call._replace(ignores_failure=ignores_failure))


def script_call(step: StepContext, script: Path, env: Env) -> ScriptCall:
    """A native script of the step's recipe, to be run in the current folder with ``env``."""
    return ScriptCall(
        label=step.configured.label,
        script=script,
        folder=Path.cwd(),
        env=with_lists(env),
        state=step.state,
        log_path=step.log_path,
        shown_if_error=step.recipe.print_files_if_script_error,
        values=step.recipe.values,
        is_silent=step.configured.request.options.silent,
        scratch=step.scratch,
        packages=step.recipe.packages,
    )


def hook_input(step: StepContext, meta: dict[str, Any], automation: Automation) -> dict[str, Any]:
    """The dict ``i`` that recipes expect, at this point of a step; all of it is theirs to change."""
    configured, recipe, host = step.configured, step.recipe, plain_copy(os_info())
    query = configured.request.query
    shared = {
        "env": step.env,
        "state": step.state,
        "meta": meta,
        "const": step.const,
        "const_state": step.const_state,
        "os_info": host,
        "recursion_spaces": step.indent,
    }
    run_script_input = {
        **shared,
        "path": str(recipe.path),
        "script_name": step.script_name,
        "bat_ext": host["bat_ext"],
        "recursion": True,
        "run_state": {"script_id": recipe.id.text, "script_variation_tags": list(configured.explicit)},
        "found_script_tags": list(recipe.tags),
        "tmp_file_run": "tmp-run",
        "tmp_file_run_state": STATE_OUT,
        "tmp_file_state": STATE_IN,
    }
    return {
        **shared,
        "artifact": Artifact(recipe),
        "customize": meta.get("customize") or {},
        "input": plain_copy(configured.request.inputs),
        "locked": plain_copy(step.locked),
        "automation": automation,
        "script_tags": list(query.all_of),
        "variation_tags": list(query.variations),
        "run_script_input": run_script_input,
    }
