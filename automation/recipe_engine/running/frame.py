"""One recipe while it runs: its env and state, its dependencies, its hooks and its scripts.

A frame lives for one step. It changes its own env and state and nothing else; what leaves a step is computed from them
at the end, so that an error or a skip leaves no trace in the caller.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..disk.files import remove_tree, working_folder
from ..disk.locks import lock_folder
from ..disk.removal import remove_below
from ..disk.store import Store
from ..rules.cachemodel import CacheEntry
from ..rules.deps import ParentView, kept_env
from ..rules.env import (
    PREFIX,
    Env,
    State,
    expand_env,
    merge_env,
    merge_state,
    new_items,
    plain_copy,
    select_keys,
    with_lists,
)
from ..rules.errors import HookFailed, RequestError, ScriptFailed
from ..rules.model import PHASES, Configured, Dependency, HookResult, Phase, StepResult
from ..rules.schema import parse_dependency
from ..rules.secrets import learn
from .compat import Automation
from .hooks import call_hook, has_hook, hook_input
from .host import os_info, remarks
from .shell import (
    ENV_OUT,
    RUN_FILE,
    STATE_IN,
    STATE_OUT,
    ScriptCall,
    find_script,
    run_script,
    write_env_file,
)

logger = logging.getLogger(__name__)

VALIDATE_SCRIPT = "validate_cache.sh"


class Frame:
    """The changing side of one step; ``folder`` is where it works, ``log_path`` takes its scripts' output."""

    def __init__(
        self, configured: Configured, *, folder: Path, log_path: Path | None, top_folder: str, cmind: Any
    ) -> None:
        self.configured = configured
        self.recipe = configured.recipe
        self.folder = folder
        self.log_path = log_path
        self.cmind = cmind
        self.env: Env = dict(configured.env)
        self.state: State = copy.deepcopy(configured.state)
        self.const: Env = plain_copy(configured.const)
        self.const_state: State = plain_copy(configured.const_state)
        self.lists: dict[Phase, tuple[Dependency, ...]] = {p: configured.layer.dependencies(p) for p in PHASES}
        self.version = ""
        self.locked: Mapping[str, Any] = {}
        self.facts: dict[str, Any] = {}
        self.added_tags: tuple[str, ...] = ()
        self.derived_tags: tuple[str, ...] = ()
        self.files: tuple[str, ...] = ()
        self.dependency_tags: list[str] = []
        self.chosen_script = ""
        self.has_run_dynamic = False
        self.unknown = configured.request.unknown
        self.pending = configured.request.pending
        self.exported: tuple[tuple[str, str], ...] = ()
        repo = str(self.recipe.repo_path)
        self.tell_hooks(
            TMP_CURRENT_PATH=top_folder,
            TMP_CURRENT_SCRIPT_PATH=str(self.recipe.path),
            TMP_CURRENT_SCRIPT_WORK_PATH=str(folder),
            TMP_CURRENT_SCRIPT_REPO_PATH=repo,
            TMP_CURRENT_SCRIPT_REPO_PATH_WITH_PREFIX=repo,
        )

    @property
    def env(self) -> Env:
        """The env as it is now; secrets that come into it are hidden from then on."""
        return self._env

    @env.setter
    def env(self, env: Env) -> None:
        learn(env)
        self._env = env

    def tell_hooks(self, **values: str) -> None:
        """Sets keys of the engine's own, named without prefix: with CM's, and with the recipe's where that differs."""
        for prefix in {PREFIX, self.recipe.prefix}:
            self.env.update({prefix + name: value for name, value in values.items()})

    @property
    def trace(self) -> tuple[str, ...]:
        """The labels of the recipes that led here, this one last."""
        return (*self.configured.request.trace, self.configured.label)

    def as_parent(self) -> ParentView:
        """What a dependency of this step is told."""
        return ParentView(
            configured=self.configured,
            env=self.env,
            state=self.state,
            const=self.const,
            const_state=self.const_state,
            recursive_overrides=self.configured.recursive_overrides,
            trace=self.trace,
            unknown=self.unknown,
        )

    def take_entry(self, store: Store, entry: CacheEntry) -> None:
        """Adds what a finished entry of this very recipe holds."""
        new_env, new_state = store.load(entry)
        self.env = merge_env(self.env, new_env)
        self.state = merge_state(self.state, new_state)
        self.enforce_const()

    def take(self, result: StepResult, phase: Phase) -> None:
        """Adds what a dependency of this phase gave."""
        kept = kept_env(self.env, self.configured, phase)
        self.env = expand_env({**merge_env(self.env, result.new_env), **kept})
        self.state = merge_state(self.state, result.new_state)
        self.enforce_const()

    def enforce_const(self) -> None:
        """Puts the constants back over whatever was changed."""
        self.env.update(self.const)
        self.state = merge_state(self.state, self.const_state) if self.const_state else self.state

    @property
    def has_predeps(self) -> bool:
        """Whether customize.py has something to do before the dependencies run."""
        return self.recipe.has_predeps and has_hook(self.recipe, "predeps")

    def check_host(self) -> list[str]:
        """What the user should know before the step runs; see ``remarks``."""
        return remarks(self.configured)

    def hook(self, name: str) -> HookResult:
        """Calls a function of customize.py, if there is one, and takes over what it changed."""
        meta = self._meta()
        i = hook_input(recipe=self.recipe, env=self.env, state=self.state, meta=meta, extra=self._common_input(meta))
        result = call_hook(self.recipe, name, i)
        if result is None:
            return HookResult()
        self.env, self.state = with_lists(i["env"]), i["state"]
        self._take_lists(meta)
        chosen = i["run_script_input"].get("script_name")
        self.chosen_script = str(chosen or "")
        self.version = result.version or self.version
        self.added_tags = tuple(dict.fromkeys((*self.added_tags, *result.extra_cache_tags)))
        self.files = (*self.files, *result.files)
        self.facts.update(result.locked)
        return result

    @property
    def script_name(self) -> str:
        """The base name of the native script to run."""
        return self.chosen_script or self.configured.layer.script_name or "run"

    def _meta(self) -> dict[str, Any]:
        """A copy of the recipe's metadata with the dependency lists as they are now, for hooks to read and change."""
        meta: dict[str, Any] = plain_copy(self.recipe.meta)
        for phase in PHASES:
            if self.lists[phase] or phase in meta:
                meta[phase] = [plain_copy(dependency.entry) for dependency in self.lists[phase]]
        return meta

    def _take_lists(self, meta: Mapping[str, Any]) -> None:
        for phase in PHASES:
            entries = meta.get(phase) or []
            if entries != [dependency.entry for dependency in self.lists[phase]]:
                where = f"{self.recipe.id.alias}: {phase} after its hook"
                self.lists[phase] = tuple(parse_dependency(entry, where) for entry in entries)

    def _common_input(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        query = self.configured.request.query
        host = plain_copy(os_info())
        run_script_input = {
            "path": str(self.recipe.path),
            "script_name": self.script_name,
            "bat_ext": host["bat_ext"],
            "os_info": host,
            "env": self.env,
            "state": self.state,
            "const": self.const,
            "const_state": self.const_state,
            "meta": meta,
            "recursion": True,
            "recursion_spaces": self.indent,
            "run_state": {"script_id": self.recipe.id.text, "script_variation_tags": list(self.configured.explicit)},
            "found_script_tags": list(self.recipe.tags),
            "tmp_file_run": "tmp-run",
            "tmp_file_run_state": STATE_OUT,
            "tmp_file_state": STATE_IN,
        }
        return {
            "input": plain_copy(self.configured.request.inputs),
            "locked": plain_copy(self.locked),
            "automation": self.automation(),
            "const": self.const,
            "const_state": self.const_state,
            "os_info": host,
            "recursion_spaces": self.indent,
            "script_tags": list(query.all_of),
            "variation_tags": list(query.variations),
            "run_script_input": run_script_input,
        }

    @property
    def indent(self) -> str:
        """Blanks in front of a recipe's own log lines."""
        return "  " * len(self.trace)

    def automation(self) -> Automation:
        """The helper object of this step."""
        return Automation(
            self.cmind,
            run_native=self._run_native,
            detect_version=self._detect_version,
            work_path=os.getcwd(),
            prefix=self.recipe.prefix,
        )

    def _run_native(self, name: str, env: dict[str, Any]) -> dict[str, Any]:
        script = find_script(self.recipe.path, name, env, self.recipe.prefix)
        return run_script(self._call(script, env))[0] if script else dict(env)

    def _detect_version(self, env: dict[str, Any]) -> dict[str, Any]:
        meta = self._meta()
        i = hook_input(recipe=self.recipe, env=env, state=self.state, meta=meta, extra=self._common_input(meta))
        result = call_hook(self.recipe, "detect_version", i)
        return {"version": result.version} if result else {}

    def _call(self, script: Path, env: Env) -> ScriptCall:
        return ScriptCall(
            label=self.configured.label,
            script=script,
            folder=Path.cwd(),
            env=with_lists(env),
            state=self.state,
            log_path=self.log_path,
            shown_if_error=self.recipe.print_files_if_script_error,
            values=self.recipe.values,
        )

    @property
    def has_scripts(self) -> bool:
        """Whether the recipe has native scripts, which leave scratch files of fixed names in the working folder."""
        names = os.listdir(self.recipe.path)
        return any(name.endswith(".sh") and name != VALIDATE_SCRIPT for name in names)

    def output_folder(self) -> Path:
        """Where the recipe works: the current folder, or the one below it that ``--outdirname`` asks for."""
        name = str(self.env.get(self.recipe.prefix + "OUTDIRNAME", "") or "")
        if not name or self.configured.request.options.fake_run:
            return Path.cwd()
        try:
            os.makedirs(name, exist_ok=True)
        except OSError as error:
            label = self.configured.label
            raise RequestError(f"{label}: cannot make the folder of --outdirname={name}: {error}") from None
        return Path(name)

    def run_script(self) -> None:
        """Runs the recipe's native script, if it has one, and takes over what it wrote."""
        for old, new in self.recipe.env_key_mappings.items():
            copies = {new + key[len(old) :]: value for key, value in self.env.items() if key.startswith(old)}
            self.env.update(copies)
        script = find_script(self.recipe.path, self.script_name, self.env, self.recipe.prefix)
        if not script:
            return
        call = self._call(script, self.env)
        ignores_failure = self.configured.request.options.ignore_script_error
        self.env, self.state = run_script(call._replace(ignores_failure=ignores_failure))

    def let_out(self, env: Env) -> Env:
        """What of ``env`` the recipe's ``new_env_keys``, or the caller's, let out of the step."""
        own, asked = self.configured.layer.new_env_keys, self.configured.request.new_env_keys
        return new_items(select_keys(env, own if asked is None else asked), self.configured.request.env)

    def results(self) -> tuple[Env, State]:
        """The part of env and state that leaves the step."""
        request, layer = self.configured.request, self.configured.layer
        state_keys = layer.new_state_keys if request.new_state_keys is None else request.new_state_keys
        self.enforce_const()
        return self.let_out(self.env), copy.deepcopy(select_keys(self.state, [key for key in state_keys if key]))

    def clean_up(self, folder: Path, *, with_scratch: bool) -> None:
        """Removes files that the recipe declares as scratch, and maybe the engine's own, from a working folder."""
        own = (RUN_FILE, STATE_IN, STATE_OUT, ENV_OUT, "tmp-ver.out") if with_scratch else ()
        remove_below(folder, (*self.recipe.clean_files, *own))

    def inside(self, folder: Path) -> AbstractContextManager[None]:
        """The current folder is ``folder`` inside the block."""
        return working_folder(folder)

    def alone_in(self, folder: Path) -> AbstractContextManager[None]:
        """No other run uses ``folder`` inside the block."""
        return lock_folder(folder, timeout_s=self.configured.request.options.lock_timeout_s)

    def remove_outputs(self) -> None:
        """Removes the files of an earlier run that the recipe names, before it is decided whether it runs."""
        remove_below(self.folder, self.recipe.clean_output_files)

    def validation_problem(self, new_env: Env, version: str) -> str:
        """What the recipe has against a cache entry of ``version`` that gave ``new_env``, empty when it is still right.

        Its validate_cache.sh runs in a scratch folder, then its detect_version reads there what the script left.
        """
        import tempfile  # here, because most calls never need it

        scratch = Path(tempfile.mkdtemp(prefix="cm-validate-"))
        call = self._call(self.recipe.path / VALIDATE_SCRIPT, merge_env(self.env, new_env))
        try:
            env, _ = run_script(call._replace(folder=scratch, state={}, log_path=None, shown_if_error=()))
            found = ""
            if version and has_hook(self.recipe, "detect_version"):
                with working_folder(scratch):
                    found = str(self._detect_version(env).get("version") or "")
        except ScriptFailed as error:
            return error.last_words or f"its recipe's {VALIDATE_SCRIPT} refused it"
        except HookFailed as error:
            return error.message
        finally:
            remove_tree(scratch)
        return f"it is of version {version}, detect_version now finds {found}" if found not in ("", version) else ""

    def write_env_file(self, name: str, env: Env, lines_before: Sequence[str] = ()) -> None:
        """Leaves a file in the current folder that sets ``env`` in the shell which sources it."""
        write_env_file(Path.cwd() / name, env, self.recipe.values, lines_before)
