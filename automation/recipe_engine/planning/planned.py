"""Carries a request out on paper: the same straight line (running/step.py), with effects that change nothing.

``PlannedEffects`` is the port of running/effects.py in a plan: hooks and scripts become what they may change. The only
code of recipes that a plan calls are ``plan(i)`` and ``plan_reuse(i)``, which must change nothing outside of what they
are given; what is known of each step is the business of its context (planned_step.py). A dependency whose condition
rests on a symbol is planned as *not known yet*, and what it gives counts as unknown: a plan never decides what it
cannot know.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from ..actions.run import parse_request
from ..rules.cachekey import Artifact, Backtrack, artifact_of
from ..rules.conditions import NOTHING_UNKNOWN, Verdict, decide, has_symbol, sources, symbol, with_unknown
from ..rules.configure import configure
from ..rules.deps import dependency_request
from ..rules.env import PREFIX, SUCCESSOR_PREFIX, merge_env
from ..rules.errors import Ambiguous, NotFound, RecipeError, RequestError, VariationNotFound
from ..rules.model import (
    CacheEntry,
    CacheKey,
    Configured,
    Dependency,
    HookResult,
    Maker,
    Phase,
    Recipe,
    Request,
    StepEvent,
    StepResult,
)
from ..rules.query import Choice, VersionRange
from ..running.compat import Automation
from ..running.context import StepContext, foreseen_os_env
from ..running.effects import VALIDATE_SCRIPT, Entries
from ..running.engine import Engine
from ..running.hooks import FILE_NAME, call_hook, hook_input
from ..running.shell import find_script
from .plan import PlanTree
from .planned_step import ANY, PlannedContext, RecipeTexts, WatchedEnv, env_names
from .planned_store import PlannedStore

PLAN_HOOK = "plan"
REUSE_HOOK = "plan_reuse"
HOST_KEYS = ("HOST_OS_FLAVOR", "HOST_OS_FLAVOR_LIKE", "HOST_OS_TYPE", "HOST_OS_VERSION", "HOST_PLATFORM_FLAVOR")
"""What a native script is chosen by."""
DETECT_OS_UID = "863735b7db8c44fc"
"""The recipe detect-os of cm4mlops and of mlperf-automations, for whose answer most others wait: facts of this host."""
MAX_STEPS = 1000
"""A longer plan leaves out steps that may not happen: one that is not certain is planned again at each place that may
need it, which grows without limit for recipes with hooks that have no ``plan(i)``."""
RUN_STATE_KEYS = (f"{PREFIX}RUN_STATE_DOCKER", f"{SUCCESSOR_PREFIX}RUN_STATE_DOCKER")


class PlannedEffects:
    """What a plan puts in the place of ``RealEffects``."""

    def __init__(self, planner: PlannedEngine) -> None:
        self.entries: Entries = planner.planned_store
        self._planner = planner

    def hook(self, step: StepContext, name: str) -> HookResult:
        """What is known of a hook without calling it; ``plan`` is called in place of preprocess."""
        assert isinstance(step, PlannedContext)
        step.witness.changed("engine", "", step.env)
        result = self._hook(step, name)
        step.witness.changed(f"{name}() in customize.py", step.recipe.id.alias, step.env, step.unknown)
        return result

    def _hook(self, step: PlannedContext, name: str) -> HookResult:
        recipe, texts = step.recipe, self._planner.texts
        label, is_there = recipe.id.alias, texts.has_function(recipe, name)
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

    def _plan_hook(self, step: PlannedContext) -> HookResult:
        label, meta = step.recipe.id.alias, step.meta()
        env, given = WatchedEnv(step.env, step.unknown), WatchedEnv(step.configured.request.inputs, NOTHING_UNKNOWN)
        i = {**hook_input(step, meta, _automation(step)), "env": env, "input": given}
        i["run_script_input"]["env"] = env  # one env by both names, as in a run
        i["is_before_run"] = self._planner.is_before_run
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
            step.promised = env.changed - _below_another_folder(step, env)
            step.env = env.plain
            step.set_unknown(env.changed - step.promised, label)
            step.take_lists(meta)
            step.enforce_const()
            step.added_tags = result.extra_cache_tags
            step.version = result.version or symbol("version", label)
        for inputs in result.runs:
            request = parse_request(inputs)._replace(trace=step.trace)
            self._planner.plan_request(step, request.query.text or request.alias, request, step.pending)
        return HookResult() if unknown else result

    def run_script(self, step: StepContext) -> None:
        """Marks what the native script may set."""
        assert isinstance(step, PlannedContext)
        recipe = step.recipe
        step.witness.copies(step.map_env_keys())
        if step.unknown.rules:
            step.set_unknown([new + ANY for new in recipe.env_key_mappings.values()], recipe.id.alias)
        texts = self._planner.texts.of(recipe)
        if FILE_NAME not in texts and not any(has_symbol(step.env.get(recipe.prefix + key)) for key in HOST_KEYS):
            find_script(recipe.path, step.script_name, step.env, recipe.prefix)  # raises when there is none
        if any(name.endswith(".sh") and name != VALIDATE_SCRIPT for name in texts):
            step.forget(recipe.id.alias)
        step.witness.changed("native script", recipe.id.alias, step.env, step.unknown)

    def reuse_problem(self, step: StepContext, entry: CacheEntry) -> str:
        """What ``plan_reuse(i)`` answers; without it, whether validate_cache.sh accepts an entry is not known."""
        assert isinstance(step, PlannedContext)
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
                return ""  # built earlier in this plan, by the recipe as it is
        step.open_by(f"the {VALIDATE_SCRIPT} of {step.recipe.id.alias}, which may refuse the entry")
        return ""

    def _nowhere(self, *_: Any, **__: Any) -> AbstractContextManager[None]:
        """Nothing runs, so no folder is needed."""
        return nullcontext()

    inside = workplace = _nowhere

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Nothing is removed or written."""

    remove_outputs = write_env_file = _nothing

    def maker(self, recipe: Recipe, variations: Sequence[str]) -> Maker:
        """Nothing is made."""
        return Maker("", "")

    def tell(self, configured: Configured, mark: str, text: str, *, is_detail: bool = False) -> None:
        """Keeps what needs attention as a note of the step."""
        if mark == "!":
            self._planner.tree.note(text)


def _automation(step: PlannedContext) -> Automation:
    """The helper object for ``plan(i)``: it looks, and refuses to run anything."""

    def refuse(*_: Any) -> NoReturn:
        raise RequestError(f"{step.recipe.id.alias}: plan(i) must not run a script or detect_version")

    cache_path = str(step.planner.planned_store.root)
    return Automation(None, run_native=refuse, detect_version=refuse, cache_path=cache_path, prefix=step.recipe.prefix)


def _below_another_folder(step: PlannedContext, env: WatchedEnv) -> set[str]:
    """The keys that ``plan`` gave a path below the current folder, where a run works in its cache entry."""
    here = os.getcwd()
    given = {str(value) for value in (*step.env.values(), *step.configured.request.inputs.values())}
    found = {key for key in env.changed if here in str(env.plain.get(key, "")) and str(env.plain[key]) not in given}
    return found if step.has_new_folder else set()


class PlannedEngine(Engine):
    """An engine whose steps act nowhere; ``tree`` is the plan that comes out. is_before_run: whether the plan is that
    of a run which is about to begin, whose ``plan(i)`` may ask what the run would ask, a server for example."""

    def __init__(self, engine: Engine, is_before_run: bool = False) -> None:
        self.is_before_run = is_before_run
        self.texts = RecipeTexts()
        self.tree = PlanTree(engine.source, self.texts.of)
        self.planned_store = PlannedStore(engine.store, self.tree.pending_now)
        super().__init__(engine.source, PlannedEffects(self), engine.top_folder, engine.run)
        self.guard, self.names_below, self.reported = engine.guard, engine.names_below, engine.reported
        self._choices: dict[Artifact, list[tuple[bool, VersionRange, str, CacheEntry | None]]] = {}
        self._starts_over = False
        self._maybe_chosen: set[frozenset[str]] = set()
        self._choice_waits: tuple[str, ...] = ()

    def tell_once(self, configured: Configured, mark: str, text: str, name: str = "") -> None:
        """A note of the plan; what a run of it tells the user stays to be told."""
        self.effects.tell(configured, mark, text)

    def step(self, configured: Configured, folder: Path, log_path: Path | None) -> PlannedContext:
        """A context that knows what is unknown."""
        given = {**configured.env, **configured.request.env, **configured.request.local_env}
        undecided = [text for key in configured.undecided for text in sources(given.get(key, "")) or (key,)]
        undecided += sources(list(configured.version.bounds))
        planned = self.planned_store.planned_in(folder)
        open_for = tuple(dict.fromkeys((*(planned.may_exist if planned else ()), *undecided)))

        self.tree.current.configured = configured
        self.tree.explain(self.planned_store.take_reason(), open_for)
        return PlannedContext(self, configured, folder, open_for)

    def choose(self, request: Request) -> Choice:
        """As the engine does; which of several recipes answers may depend on steps that may not happen."""
        key = frozenset(request.query.all_of + request.query.variations)
        is_unsure = key in self._maybe_chosen
        self._choice_waits = ()
        choice = super().choose(request)
        fitting = [choice.entry, *(entry for entry, why in choice.passed_over if why.verdict == "fits")]
        if len(fitting) > 1:
            if request.pending:
                self._maybe_chosen.add(key)
            if is_unsure or any(self.planned_store.has_doubtful(entry.uid) for entry in fitting):
                self._choice_waits = (f"which of {', '.join(entry.alias for entry in fitting)} is used",)
        return choice

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """As the engine does; a key that metadata decides by, and that an earlier step may have set, is unknown."""
        if request.unknown.rules:
            blocks = (request.overrides, request.recursive_overrides, request.local_env, request.version.bounds)
            names = (*self.texts.env_names(recipe), *env_names(blocks), *RUN_STATE_KEYS)
            request = request._replace(env=with_unknown(request.env, names, request.unknown))
        waits, self._choice_waits = self._choice_waits, ()
        return configure(recipe, request._replace(pending=(*request.pending, *waits)))

    def narrowed_version(self, step: StepContext, key: CacheKey) -> VersionRange:
        """A step that may not happen, or whose version is not known yet, puts no bounds on others."""
        doubt = self.planned_store.doubtful.get(artifact_of(key))
        if doubt and isinstance(step, PlannedContext):
            step.open_by(doubt)
        return key.version if _is_open(step, key) else super().narrowed_version(step, key)

    def note_choice(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """What may not happen decides nothing; a version that is not known yet counts as unknown."""
        self._compare_choices(step, key, result)
        if not _is_open(step, key):
            version = "" if has_symbol(result.version) else result.version
            is_planned = result.entry is None or self.planned_store.is_planned(result.entry)
            self.requirements.note(key, version, result.entry)
            if self.guard and result.entry and not is_planned:
                self.guard.verify(key, result.entry, step.configured.label)

    def _compare_choices(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """Starts over when a step that may not happen would change which entry a sure one reuses."""
        artifact, doubtful = artifact_of(key), self.planned_store.doubtful
        rows = self._choices.setdefault(artifact, [])
        row = (_is_open(step, key), key.version, result.version, result.entry)
        if row in rows:
            return  # compared when it came first
        rows.append(row)
        sure = [
            (version, entry.uid)
            for is_open, _, version, entry in rows
            if entry and not is_open and not self.planned_store.is_planned(entry)
        ]
        for is_open, asked, _, entry in rows:
            mine = entry.uid if entry else ""
            is_other = any(mine != uid or has_symbol(asked.text) or not asked.holds(version) for version, uid in sure)
            if is_open and is_other and artifact not in doubtful:
                doubtful[artifact] = f"which version of {key.recipe.alias} satisfies all steps"
                self._starts_over = True
                raise Backtrack(doubtful[artifact])

    def emit(self, event: StepEvent) -> None:
        """Grows the plan, and shows at which step the lock would stop the run."""
        self.tree.take(event)
        if event.kind == "again":
            self._choices.clear()
            if self._starts_over and self.tree.is_empty:
                self._starts_over = False
                self.planned_store.forget_planned()
                self.chosen.clear()
        if self.guard:
            self.guard.take(event)

    def run_dependency(self, step: StepContext, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Plans a dependency; what is not known for sure is marked, and an error stays where it is."""
        assert isinstance(step, PlannedContext)
        request = dependency_request(dependency, step, phase)
        blocks = [block.conditions for block in dependency.conditional] + list(dependency.update_tags_if_env.values())
        inside = [key for conditions in blocks for key in decide(conditions, step.env).waiting_for]
        waits = [f"{key} from {step.source_of(key)}" for key in (*verdict.waiting_for, *inside)]
        query = request.query
        waits += sources((*query.all_of, *query.variations, *query.none_of, *query.excluded_variations))
        if dependency.continue_on_error:
            waits.append(f"whether {dependency.label} succeeds (continue_on_error)")
        known = query._replace(
            all_of=tuple(word for word in query.all_of if not has_symbol(word)),
            variations=tuple(word for word in query.variations if not has_symbol(word)),
        )
        self.plan_request(step, dependency.label, request._replace(query=known), (*step.pending, *waits))

    def plan_request(self, step: PlannedContext, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Plans one request below ``step`` and hands on what it gives."""
        request = request._replace(pending=tuple(dict.fromkeys(pending)))
        count = self.tree.count
        if request.pending and count >= MAX_STEPS:
            self.tree.note(f"{label} is not expanded: the plan already has {count} steps. Plan that recipe alone")
            step.set_unknown([ANY], label)
            return
        try:
            result = self.run(self, request)
        except RecipeError as error:
            error.trace = error.trace or step.trace
            if self.tree.count == count:  # it did not get as far as a step of its own
                self.tree.add_failure((*step.trace, label), request, error)
            if request.pending and isinstance(error, NotFound | Ambiguous | VariationNotFound):
                step.set_unknown([ANY], label)
            for failed in self.tree.current.children[-1:]:  # what it would have said is not known
                step.set_unknown(failed.configured.layer.new_env_keys if failed.configured else (), label)
            return
        if request.phase:
            step.take_planned(result, request.phase, is_certain=not request.pending)


def _is_open(step: StepContext, key: CacheKey) -> bool:
    return bool(step.pending or has_symbol(key.version.text))
