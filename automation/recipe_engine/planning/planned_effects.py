"""The port of running/effects.py in a plan: hooks and scripts become what they may change, and nothing is touched.

The one recipe code that a plan calls are ``plan(i)`` and ``plan_reuse(i)`` (see planned_step.py), which must change
nothing outside of what they are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn, Protocol

from ..rules.conditions import NOTHING_UNKNOWN, WatchedEnv, has_symbol, symbol
from ..rules.env import PREFIX, Env, merge_env
from ..rules.errors import RecipeError, RequestError
from ..rules.model import CacheEntry, Configured, HookResult, Maker, Recipe, Request
from ..running.compat import Automation
from ..running.context import StepContext, foreseen_os_env, remarks
from ..running.effects import VALIDATE_SCRIPT, Entries
from ..running.hooks import FILE_NAME, call_hook, hook_input
from ..running.shell import find_script
from .planned_step import ANY, PlannedStep, Planner

PLAN_HOOK = "plan"
REUSE_HOOK = "plan_reuse"
HOST_KEYS = ("HOST_OS_FLAVOR", "HOST_OS_FLAVOR_LIKE", "HOST_OS_TYPE", "HOST_OS_VERSION", "HOST_PLATFORM_FLAVOR")
"""What a native script is chosen by."""
DETECT_OS_UID = "863735b7db8c44fc"
"""The recipe detect-os of cm4mlops and of mlperf-automations, for whose answer most others wait: facts of this host."""


class RunPlanner(Planner, Protocol):
    """What planned effects need of the engine."""

    parse: Callable[[Mapping[str, Any]], Request]

    def plan_request(self, step: PlannedStep, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Plans one request below ``step``."""


class PlannedEffects:
    """What a plan puts in the place of ``RealEffects``."""

    def __init__(self, planner: RunPlanner) -> None:
        self.entries: Entries = planner.planned_store
        self._planner = planner

    def hook(self, step: StepContext, name: str) -> HookResult:
        """What is known of a hook without calling it; ``plan`` is called in place of preprocess."""
        assert isinstance(step, PlannedStep)
        recipe, texts = step.recipe, self._planner.texts
        label = recipe.id.alias
        is_there = texts.has_function(recipe, name)
        if FILE_NAME not in texts.of(recipe) or (name == "predeps" and not (recipe.has_predeps and is_there)):
            return HookResult()
        has_plan = texts.has_function(recipe, PLAN_HOOK)
        if name == "preprocess" and has_plan:
            return self._plan_hook(step)
        if name == "predeps" or not has_plan:
            step.forget(label)
            step.wait_for(f"{name} of {label}, which has no plan(i)", may_end_early=name == "preprocess")
        elif is_there:
            step.forget(label)
        if name == "postprocess" and recipe.id.uid == DETECT_OS_UID:
            foreseen = foreseen_os_env().items()
            step.facts_of_host = {recipe.prefix + key[len(PREFIX) :]: value for key, value in foreseen}
            step.env.update(step.facts_of_host)
        return HookResult()

    def _plan_hook(self, step: PlannedStep) -> HookResult:
        label, meta = step.recipe.id.alias, step.meta()
        env, given = WatchedEnv(step.env, step.unknown), WatchedEnv(step.configured.request.inputs, NOTHING_UNKNOWN)
        i = {**hook_input(step, meta, _automation(step)), "env": env, "input": given}
        i["run_script_input"]["env"] = env  # one env by both names, as in a run
        error: RecipeError | None = None
        try:
            result = call_hook(step.recipe, PLAN_HOOK, i) or HookResult()
        except RecipeError as caught:
            result, error = HookResult(), caught
        unknown = {**env.read_unknown, **given.read_unknown}
        if error and not unknown:
            raise error
        if unknown:
            waits = [f"{key} from {step.source_of(key)}" for key in unknown]
            step.forget(label)
            step.wait_for(f"plan(i) of {label}, which reads {', '.join(waits)}", may_end_early=True)
        else:
            step.promised, step.is_promised = env.changed - _below_another_folder(step, env), True
            step.env = env.plain
            step.set_unknown(env.changed - step.promised, label)
            step.take_lists(meta)
            step.enforce_const()
            step.added_tags = result.extra_cache_tags
            step.version = result.version or symbol("version", label)
        for inputs in result.runs:
            request = self._planner.parse(inputs)._replace(trace=step.trace)
            self._planner.plan_request(step, request.query.text or request.alias, request, step.pending)
        return HookResult() if unknown else result

    def run_script(self, step: StepContext) -> None:
        """Marks what the native script may set."""
        assert isinstance(step, PlannedStep)
        recipe = step.recipe
        step.map_env_keys()
        if step.unknown.rules:
            step.set_unknown([new + ANY for new in recipe.env_key_mappings.values()], recipe.id.alias)
        texts = self._planner.texts.of(recipe)
        if FILE_NAME not in texts and not any(has_symbol(step.env.get(recipe.prefix + key)) for key in HOST_KEYS):
            find_script(recipe.path, step.script_name, step.env, recipe.prefix)  # raises when there is none
        if any(name.endswith(".sh") and name != VALIDATE_SCRIPT for name in texts):
            step.forget(recipe.id.alias)

    def reuse_problem(self, step: StepContext, entry: CacheEntry) -> str:
        """What ``plan_reuse(i)`` answers; without it, whether validate_cache.sh accepts an entry is not known."""
        assert isinstance(step, PlannedStep)
        if self._planner.texts.has_function(step.recipe, REUSE_HOOK):
            env = WatchedEnv(merge_env(step.env, self.entries.load(entry)[0]), step.unknown)
            problem = ""
            try:
                call_hook(step.recipe, REUSE_HOOK, {"env": env})
            except RecipeError as error:
                problem = error.message
            if not env.read_unknown:
                return problem
            if self._planner.planned_store.is_planned(entry):
                return ""  # made earlier in this plan, by the recipe as it is
        step.open_by(f"the {VALIDATE_SCRIPT} of {step.recipe.id.alias}, which may refuse the entry")
        return ""

    def inside(self, folder: Path) -> AbstractContextManager[None]:
        """The folder of an entry that is never made."""
        return nullcontext()

    def workplace(self, step: StepContext, entry: CacheEntry | None) -> AbstractContextManager[None]:
        """Nothing runs, so no folder is needed."""
        return nullcontext()

    def remove_outputs(self, step: StepContext) -> None:
        """Nothing is removed."""

    def write_env_file(self, step: StepContext, name: str, env: Env, lines_before: Sequence[str] = ()) -> None:
        """Nothing is written."""

    def maker(self, recipe: Recipe) -> Maker:
        """Nothing is made."""
        return Maker("", "")

    def remarks(self, step: StepContext) -> list[str]:
        """As for a run."""
        return remarks(step.configured)

    def tell(self, configured: Configured, mark: str, text: str) -> None:
        """Keeps what needs attention as a note of the step."""
        if mark == "!":
            self._planner.tree.note(text)


def _automation(step: PlannedStep) -> Automation:
    """The helper object for ``plan(i)``: it looks, and refuses to run anything."""

    def refuse(*_: Any) -> NoReturn:
        raise RequestError(f"{step.recipe.id.alias}: plan(i) must not run a script or detect_version")

    return Automation(None, run_native=refuse, detect_version=refuse, work_path=os.getcwd(), prefix=step.recipe.prefix)


def _below_another_folder(step: PlannedStep, env: WatchedEnv) -> set[str]:
    """The keys that ``plan`` gave a path below the current folder, where a run works in its cache entry."""
    here = str(Path.cwd())
    given = {str(value) for value in (*step.env.values(), *step.configured.request.inputs.values())}
    found = {key for key in env.changed if here in str(env.plain.get(key, "")) and str(env.plain[key]) not in given}
    return found if step.has_new_folder else set()
