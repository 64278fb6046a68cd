"""Everything that steps do to the world and ask of it, behind one port: a run acts, a plan answers without acting.

``Effects`` lists it; ``RealEffects`` does it. planning/planned.py has the other side of the port. What steps
share and decide (engine.py), what one of them knows (context.py) and the order of things (step.py) act through here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from ..disk.entries import SCRIPT_NAMES
from ..disk.files import remove_below, remove_tree, working_folder
from ..disk.locks import lock_folder
from ..disk.repos import RecipeSource
from ..disk.store import Store
from ..rules.env import Env, merge_env
from ..rules.errors import HookFailed, Interrupted, RequestError, ScriptFailed
from ..rules.model import CacheEntry, CacheKey, Configured, HookResult, Maker, Outcome, Recipe
from .context import StepContext

logger = logging.getLogger(__name__)

VALIDATE_SCRIPT = "validate_cache.sh"


class Entries(Protocol):
    """The cache as steps use it; ``disk.store.Store`` says what each method does."""

    root: Path

    def entries_of(self, recipe_uid: str, *, refresh: bool = False) -> list[CacheEntry]: ...
    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]: ...
    def problem(self, entry: CacheEntry, *, is_thorough: bool = False) -> str: ...
    def load(self, entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def claim(self, entry: CacheEntry) -> str: ...
    def note_use(self, entry: CacheEntry) -> None: ...
    def watch_child_uses(self) -> None: ...
    def lock(self, key: CacheKey, what: str, timeout_s: float | None = None) -> AbstractContextManager[None]: ...
    def held(self, entry: CacheEntry, key: CacheKey | None = None) -> AbstractContextManager[bool]: ...
    def start(self, key: CacheKey, maker: Maker, replaced: CacheEntry | None = None) -> CacheEntry: ...
    def commit(self, entry: CacheEntry, key: CacheKey, outcome: Outcome) -> CacheEntry: ...
    def retire(self, entry: CacheEntry, reason: str) -> None: ...
    def put_away(self, entry: CacheEntry, reason: str, key: CacheKey | None = None) -> None: ...
    def remove(self, entry: CacheEntry) -> None: ...


class Effects(Protocol):
    """The port: each method is one thing that a step does to the world outside of its context, or asks of it.

    ``RealEffects`` says what each method does.
    """

    entries: Entries

    def hook(self, step: StepContext, name: str) -> HookResult: ...
    def run_script(self, step: StepContext) -> None: ...
    def reuse_problem(self, step: StepContext, entry: CacheEntry) -> str: ...
    def inside(self, folder: Path) -> AbstractContextManager[None]: ...
    def workplace(self, step: StepContext, entry: CacheEntry | None) -> AbstractContextManager[None]: ...
    def remove_outputs(self, step: StepContext) -> None: ...
    def write_env_file(self, step: StepContext, name: str, env: Env, lines_before: Sequence[str] = ()) -> None: ...
    def maker(self, recipe: Recipe, variations: Sequence[str]) -> Maker: ...
    def tell(self, configured: Configured, mark: str, text: str, *, is_detail: bool = False) -> None: ...


class RealEffects:
    """What a run does. ``cmind`` is CM's own object, which hooks may call."""

    def __init__(self, source: RecipeSource, store: Store, cmind: Any) -> None:
        self.entries: Entries = store
        self._source = source
        self._cmind = cmind

    def hook(self, step: StepContext, name: str) -> HookResult:
        """Calls a function of customize.py, if there is one; the step takes over what it changed."""
        from .hooks import has_hook, run_hook  # here, because a call that reuses everything calls none

        if name == "predeps" and not (step.recipe.has_predeps and has_hook(step.recipe, name)):
            return HookResult()  # not even loaded: a dependency may have to make that possible first
        return run_hook(step, name, self._cmind, self.entries.root)

    def run_script(self, step: StepContext) -> None:
        """Runs the recipe's native script, if it has one; the step takes over what it wrote."""
        from .hooks import run_own_script  # here, because a call that reuses everything runs none

        run_own_script(step)

    def reuse_problem(self, step: StepContext, entry: CacheEntry) -> str:
        """What the recipe's validate_cache.sh and detect_version have against an entry; empty when it is still right.

        The script runs in a scratch folder, then detect_version reads there what it left.
        """
        import tempfile  # here, because most calls never need it

        from .hooks import detected_version, has_hook, script_call
        from .shell import run_script

        scratch = Path(tempfile.mkdtemp(prefix="cm-validate-"))
        env = merge_env(step.env, self.entries.load(entry)[0])
        call = script_call(step, step.recipe.path / VALIDATE_SCRIPT, env)
        try:
            env, _ = run_script(
                call._replace(folder=scratch, scratch=None, state={}, log_path=None, shown_if_error=(), is_check=True)
            )
            found = ""
            if entry.version and has_hook(step.recipe, "detect_version"):
                with working_folder(scratch):
                    found = detected_version(step, env, self._cmind, self.entries.root) or ""
        except ScriptFailed as error:
            return error.last_words or f"its recipe's {VALIDATE_SCRIPT} refused it"
        except HookFailed as error:
            return error.message
        finally:
            remove_tree(scratch)
        is_other = found not in ("", entry.version)
        return f"its version is {entry.version}, but detect_version now finds {found}" if is_other else ""

    def inside(self, folder: Path) -> AbstractContextManager[None]:
        """The current folder is ``folder`` inside the block."""
        return working_folder(folder)

    @contextmanager
    def workplace(self, step: StepContext, entry: CacheEntry | None) -> Iterator[None]:
        """Inside the block the recipe works in its output folder, which has no scratch files and no other user.

        Scratch files of the recipe go at its end too, unless an entry keeps them, ``--dirty`` is given, or it fails.
        Those that the engine writes lie elsewhere for recipes whose values are literal: others may rely on them.
        A recipe that is not cached and says `own_folder` works in a folder that nobody else knows, and locks none.
        """
        options = step.configured.request.options
        with ExitStack() as stack:
            is_own = entry is None and bool(step.recipe.meta.get("own_folder"))
            place = stack.enter_context(_scratch_folder()) if is_own else _output_folder(step)
            stack.enter_context(working_folder(place))
            folder = Path.cwd()
            has_scratch = entry is not None or (_has_scripts(step.recipe) and not options.fake_run)
            if has_scratch and entry is None and not is_own:
                stack.enter_context(lock_folder(folder, timeout_s=options.lock_timeout_s))
            left = (*step.recipe.clean_files, *(SCRIPT_NAMES if has_scratch else ()))
            remove_below(folder, left)
            is_cleaned = entry is None and not options.dirty
            if has_scratch and is_cleaned and step.recipe.values == "literal":
                step.scratch = stack.enter_context(_scratch_folder())
            try:
                yield
            except Interrupted:
                remove_below(folder, left if is_cleaned else ())
                raise
            remove_below(folder, left if is_cleaned else ())

    def remove_outputs(self, step: StepContext) -> None:
        """Removes the files of an earlier run that the recipe names, before it is decided whether it runs."""
        remove_below(step.folder, step.recipe.clean_output_files)

    def write_env_file(self, step: StepContext, name: str, env: Env, lines_before: Sequence[str] = ()) -> None:
        """Leaves a file in the current folder that sets ``env`` in the shell which sources it."""
        from .shell import write_env_file  # here, because a call that reuses everything writes none

        write_env_file(Path.cwd() / name, env, step.recipe.values, lines_before)

    def maker(self, recipe: Recipe, variations: Sequence[str]) -> Maker:
        """What a cache entry records of the recipe that makes it with these variations."""
        return self._source.maker(recipe, variations)

    def tell(self, configured: Configured, mark: str, text: str, *, is_detail: bool = False) -> None:
        """One line of progress: ``*`` starts, ``+`` done, ``=`` reused, ``-`` ended early, ``!`` needs attention.

        ``is_detail``: shown with ``-v`` only.
        """
        options = configured.request.options
        if not (options.silent or options.steps_hidden) or mark == "!":
            level = logging.DEBUG if is_detail else logging.INFO
            logger.log(level, "%s%s %s", "  " * len(configured.request.trace), mark, text)


@contextmanager
def _scratch_folder() -> Iterator[Path]:
    """A folder for the engine's files of one step, which stays when the step fails: the error names a file in it."""
    import tempfile  # here, because most calls never need it

    folder = Path(tempfile.mkdtemp(prefix="cm-run-"))
    try:
        yield folder
    except Interrupted:
        remove_tree(folder)
        raise
    remove_tree(folder)


def _has_scripts(recipe: Recipe) -> bool:
    """Whether the recipe has native scripts, which leave scratch files of fixed names in the working folder."""
    return any(name.endswith(".sh") and name != VALIDATE_SCRIPT for name in os.listdir(recipe.path))


def _output_folder(step: StepContext) -> Path:
    """The current folder, or the one below it that ``--outdirname`` asks for."""
    name = str(step.env.get(step.recipe.prefix + "OUTDIRNAME", "") or "")
    if not name or step.configured.request.options.fake_run:
        return Path.cwd()
    try:
        os.makedirs(name, exist_ok=True)
    except OSError as error:
        label = step.configured.label
        raise RequestError(f"{label}: cannot make the folder of --outdirname={name}: {error}") from None
    return Path(name)
