"""One recipe while it runs: its env and state, its dependencies, its hooks and its scripts.

A frame lives for one step. It changes its own env and state and nothing else; what leaves a step is computed from them
at the end, so that an error or a skip leaves no trace in the caller.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..disk.files import lock_folder, remove_file, remove_tree, working_folder
from ..disk.store import Store
from ..rules.cachemodel import CacheEntry
from ..rules.deps import ParentView
from ..rules.env import PREFIX, Env, State, expand_env, merge_env, merge_state, new_items, select_keys
from ..rules.errors import RequestError, ScriptFailed
from ..rules.model import PHASES, Configured, Dependency, HookResult, Phase, StepResult
from ..rules.schema import parse_dependency
from ..rules.version import compare
from .compat import Automation
from .hooks import call_hook, has_hook, hook_input
from .host import cm_version, free_disk_mb, os_info
from .shell import ENV_OUT, RUN_FILE, STATE_IN, STATE_OUT, ScriptCall, find_script, run_script, write_env_files

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
        self.const: Env = dict(configured.const)
        self.const_state: State = dict(configured.const_state)
        self.lists: dict[Phase, tuple[Dependency, ...]] = {p: configured.layer.dependencies(p) for p in PHASES}
        self.version = ""
        self.locked: Mapping[str, Any] = {}
        self.facts: dict[str, Any] = {}
        self.added_tags: tuple[str, ...] = ()
        self.files: tuple[str, ...] = ()
        self.dependency_tags: list[str] = []
        self.chosen_script = ""
        self.has_run_dynamic = False
        self.unknown = configured.request.unknown
        self.exported: tuple[tuple[str, str], ...] = ()
        repo = str(self.recipe.repo_path)
        self.tell_hooks(
            TMP_CURRENT_PATH=top_folder,
            TMP_CURRENT_SCRIPT_PATH=str(self.recipe.path),
            TMP_CURRENT_SCRIPT_WORK_PATH=str(folder),
            TMP_CURRENT_SCRIPT_REPO_PATH=repo,
            TMP_CURRENT_SCRIPT_REPO_PATH_WITH_PREFIX=repo,
        )

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

    def take(self, result: StepResult) -> None:
        """Adds what a dependency gave."""
        self.env = expand_env(merge_env(self.env, result.new_env))
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
        """What the user should know of this machine and of the inputs before the step runs.

        Raises RequestError when the recipe needs a newer CM.
        """
        wanted, present = self.recipe.min_cm_version, cm_version()
        if wanted and present and compare(present, wanted) < 0:
            raise RequestError(
                f"{self.configured.label} needs CM {wanted} or newer (min_cm_version), this is {present}",
                hint="python3 -m pip install --upgrade cmind",
            )
        lines = self._unusual_inputs()
        needed_mb = self.configured.layer.required_disk_space_mb
        if needed_mb:
            lines.append(f"needs about {needed_mb} MB of disk; {free_disk_mb(Path.cwd())} MB are free in {Path.cwd()}")
        return lines

    def _unusual_inputs(self) -> list[str]:
        """Inputs whose value is none of the choices that the recipe describes; it may still take them."""
        lines = []
        for name, described in self.recipe.inputs.items():
            given = self.configured.request.inputs.get(name)
            is_one = str(given).strip().lower() in {choice.lower() for choice in described.choices}
            if described.choices and isinstance(given, str | bool | int | float) and not is_one:
                lines.append(f"--{name}={given} is none of its choices: {', '.join(described.choices)}")
        return lines

    def hook(self, name: str) -> HookResult:
        """Calls a function of customize.py, if there is one, and takes over what it changed."""
        meta = self._meta()
        i = hook_input(recipe=self.recipe, env=self.env, state=self.state, meta=meta, extra=self._common_input(meta))
        result = call_hook(self.recipe, name, i)
        if result is None:
            return HookResult()
        self.env, self.state = i["env"], i["state"]
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
        meta = copy.deepcopy(dict(self.recipe.meta))
        for phase in PHASES:
            if self.lists[phase] or phase in meta:
                meta[phase] = [copy.deepcopy(dict(dependency.entry)) for dependency in self.lists[phase]]
        return meta

    def _take_lists(self, meta: Mapping[str, Any]) -> None:
        for phase in PHASES:
            entries = meta.get(phase) or []
            if entries != [dependency.entry for dependency in self.lists[phase]]:
                where = f"{self.recipe.id.alias}: {phase} after its hook"
                self.lists[phase] = tuple(parse_dependency(entry, where) for entry in entries)

    def _common_input(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        query = self.configured.request.query
        run_script_input = {
            "path": str(self.recipe.path),
            "script_name": self.script_name,
            "bat_ext": os_info()["bat_ext"],
            "os_info": os_info(),
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
            "input": dict(self.configured.request.inputs),
            "locked": self.locked,
            "automation": self.automation(),
            "const": self.const,
            "const_state": self.const_state,
            "os_info": os_info(),
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
        meta = dict(self.recipe.meta)
        i = hook_input(recipe=self.recipe, env=env, state=self.state, meta=meta, extra=self._common_input(meta))
        result = call_hook(self.recipe, "detect_version", i)
        return {"version": result.version} if result else {}

    def _call(self, script: Path, env: Env) -> ScriptCall:
        return ScriptCall(
            label=self.configured.label,
            script=script,
            folder=Path.cwd(),
            env=env,
            state=self.state,
            log_path=self.log_path,
            shown_if_error=self.recipe.print_files_if_script_error,
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
        try:
            self.env, self.state = run_script(self._call(script, self.env))
        except ScriptFailed as error:
            if not self.configured.request.options.ignore_script_error:
                raise
            logger.warning("! %s\n  going on because of --ignore_script_error", error.message)

    def results(self) -> tuple[Env, State]:
        """The part of env and state that leaves the step."""
        request, layer = self.configured.request, self.configured.layer
        env_keys = layer.new_env_keys if request.new_env_keys is None else request.new_env_keys
        state_keys = layer.new_state_keys if request.new_state_keys is None else request.new_state_keys
        self.enforce_const()
        new_env = new_items(select_keys(self.env, env_keys), request.env)
        return new_env, copy.deepcopy(select_keys(self.state, [key for key in state_keys if key]))

    def clean_up(self, folder: Path, *, with_scratch: bool) -> None:
        """Removes files that the recipe declares as scratch, and maybe the engine's own, from a working folder."""
        own = (RUN_FILE, STATE_IN, STATE_OUT, ENV_OUT, "tmp-ver.out") if with_scratch else ()
        for name in (*self.recipe.clean_files, *own):
            path = Path(name)
            if not path.is_absolute() and ".." not in path.parts:
                remove_file(folder / path)

    def inside(self, folder: Path) -> AbstractContextManager[None]:
        """The current folder is ``folder`` inside the block."""
        return working_folder(folder)

    def alone_in(self, folder: Path) -> AbstractContextManager[None]:
        """No other run uses ``folder`` inside the block."""
        return lock_folder(folder, timeout_s=self.configured.request.options.lock_timeout_s)

    def remove_outputs(self) -> None:
        """Removes the files of an earlier run that the recipe names, before it is decided whether it runs."""
        for name in self.recipe.clean_output_files:
            remove_file(Path(name))

    def validation_problem(self, new_env: Env) -> str:
        """What the recipe's validate_cache.sh, run in a scratch folder, has against an entry that gave ``new_env``."""
        import tempfile  # here, because most calls never need it

        scratch = Path(tempfile.mkdtemp(prefix="cm-validate-"))
        call = self._call(self.recipe.path / VALIDATE_SCRIPT, merge_env(self.env, new_env))
        try:
            run_script(call._replace(folder=scratch, state={}, log_path=None, shown_if_error=()))
        except ScriptFailed as error:
            return error.last_words or f"its recipe's {VALIDATE_SCRIPT} refused it"
        finally:
            remove_tree(scratch)
        return ""

    def write_env_files(self, new_env: Env) -> None:
        """Leaves tmp-env.sh and tmp-env-all.sh in the current folder."""
        write_env_files(Path.cwd(), new_env, self.env)
