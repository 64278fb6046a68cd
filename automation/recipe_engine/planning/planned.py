"""Carries a request out on paper: the same straight line (running/step.py), with effects that change nothing.

What is known of each step is the business of its context (planned_step.py). A dependency whose condition rests on a
symbol is planned as *not known yet*, and what it gives counts as unknown: a plan never decides what it cannot know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..rules.cachekey import Artifact, Restart, artifact_of
from ..rules.conditions import Verdict, decide, env_names, has_symbol, sources, with_unknown
from ..rules.configure import configure
from ..rules.deps import dependency_request
from ..rules.env import PREFIX, SUCCESSOR_PREFIX, Env
from ..rules.errors import Ambiguous, NotFound, RecipeError, VariationNotFound
from ..rules.model import CacheEntry, CacheKey, Configured, Dependency, Phase, Recipe, Request, StepEvent, StepResult
from ..rules.query import VersionRange
from ..rules.select import Choice
from ..running.context import StepContext
from ..running.engine import Engine
from .planned_effects import PlannedEffects
from .planned_step import ANY, PlannedStep, RecipeTexts
from .planned_store import PlannedStore
from .planned_tree import TreeBuilder

MOST_STEPS = 1000
"""A longer plan leaves out steps that may not happen: one that is not certain is planned again at each place that may
need it, which for recipes with hooks that nothing is known of grows without measure."""
RUN_STATE_KEYS = (f"{PREFIX}RUN_STATE_DOCKER", f"{SUCCESSOR_PREFIX}RUN_STATE_DOCKER")


class PlannedEngine(Engine):
    """An engine whose steps are only thought through; ``tree`` is the plan that comes out.

    ``parse`` turns the input of a run that a recipe starts itself into a request.
    """

    def __init__(self, engine: Engine, parse: Callable[[Mapping[str, Any]], Request]) -> None:
        self.parse = parse
        self.texts = RecipeTexts()
        self.tree = TreeBuilder(engine.source, self.texts.of)
        self.planned_store = PlannedStore(engine.store, self.tree.pending_now)
        super().__init__(engine.source, PlannedEffects(self), engine.top_folder, engine.run)
        self.guard = engine.guard
        self._choices: dict[Artifact, list[tuple[bool, VersionRange, str, CacheEntry | None]]] = {}
        self._starts_over = False
        self._maybe_chosen: set[frozenset[str]] = set()
        self._choice_waits: tuple[str, ...] = ()

    def step(self, configured: Configured, folder: Path, log_path: Path | None) -> PlannedStep:
        """A context that knows what is unknown."""
        given = {**configured.env, **configured.request.env, **configured.request.local_env}
        undecided = [text for key in configured.undecided for text in sources(given.get(key, "")) or (key,)]
        undecided += sources(list(configured.version))
        uncertain = tuple(dict.fromkeys((*self.planned_store.is_open_for(folder), *undecided)))
        self.tree.explain(self.planned_store.take_reason(), uncertain)
        return self.new_step(configured, folder, uncertain)

    def new_step(self, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> PlannedStep:
        """The context itself; ``is_open`` says what could make the step a reuse."""
        return PlannedStep(self, configured, folder, is_open)

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
                self._choice_waits = (f"which of {', '.join(entry.alias for entry in fitting)} is taken",)
        return choice

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """As the engine does; a key that metadata decides by, and that an earlier step may have set, is unknown."""
        if request.unknown.rules:
            changes = env_names([request.overrides, request.recursive_overrides, request.local_env])
            names = (*self.texts.env_names(recipe), *changes, *RUN_STATE_KEYS)
            request = request._replace(env=with_unknown(request.env, names, request.unknown))
        waits, self._choice_waits = self._choice_waits, ()
        return configure(recipe, request._replace(pending=(*request.pending, *waits)))

    def narrowed_version(self, step: StepContext, key: CacheKey) -> VersionRange:
        """A step that may not happen, or whose version is not known yet, puts no bounds on others."""
        if artifact_of(key) in self.planned_store.doubtful and isinstance(step, PlannedStep):
            step.open_by(self.planned_store.doubtful[artifact_of(key)])
        return key.version if _is_open(step, key) else super().narrowed_version(step, key)

    def note_choice(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """What may not happen decides nothing; a version that is not known yet counts as unknown."""
        self._compare_choices(step, key, result)
        if not _is_open(step, key):
            version = "" if has_symbol(result.version) else result.version
            is_planned = result.entry is None or self.planned_store.is_planned(result.entry)
            self.demands.note(key, version, result.entry)
            if self.guard and result.entry and not is_planned:
                self.guard.verify(key, result.entry, step.configured.label)

    def _compare_choices(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """Starts over when a step that may not happen would change which entry a sure one reuses."""
        artifact, doubtful = artifact_of(key), self.planned_store.doubtful
        rows = self._choices.setdefault(artifact, [])
        rows.append((_is_open(step, key), key.version, result.version, result.entry))
        sure = [
            (version, entry.uid)
            for is_open, _, version, entry in rows
            if entry and not is_open and not self.planned_store.is_planned(entry)
        ]
        for is_open, asked, _, entry in rows:
            mine = entry.uid if entry else ""
            is_other = any(mine != uid or has_symbol(asked.text) or not asked.holds(version) for version, uid in sure)
            if is_open and is_other and artifact not in doubtful:
                doubtful[artifact] = f"which version of {key.recipe.alias} suits all steps"
                self._starts_over = True
                raise Restart(doubtful[artifact])

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
        assert isinstance(step, PlannedStep)
        request = dependency_request(dependency, step.as_parent(), phase)
        waits = [
            f"{key} from {step.source_of(key)}" for key in (*verdict.waiting_for, *_undecided(dependency, step.env))
        ]
        query = request.query
        waits += sources((*query.all_of, *query.variations, *query.none_of, *query.excluded_variations))
        if dependency.continue_on_error:
            waits.append(f"whether {dependency.label} succeeds (continue_on_error)")
        self.plan_request(step, dependency.label, _without_symbols(request), (*step.pending, *waits))

    def plan_request(self, step: PlannedStep, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Plans one request below ``step`` and hands on what it gives."""
        request = request._replace(pending=tuple(dict.fromkeys(pending)))
        count = self.tree.count
        if request.pending and count >= MOST_STEPS:
            self.tree.note(f"{label} is not looked into: the plan has {count} steps already; plan that recipe alone")
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
            return
        if request.phase:
            step.take_planned(result, request.phase, is_certain=not request.pending)


def _is_open(step: StepContext, key: CacheKey) -> bool:
    return isinstance(step, PlannedStep) and bool(step.pending or has_symbol(key.version.text))


def _undecided(dependency: Dependency, env: Env) -> list[str]:
    """The unknown keys on which blocks inside a dependency's entry depend."""
    blocks = [block.conditions for block in dependency.conditional] + list(dependency.update_tags_if_env.values())
    return [key for conditions in blocks for key in decide(conditions, env).waiting_for]


def _without_symbols(request: Request) -> Request:
    """The request with only those tags and variations that are known."""
    query = request.query
    return request._replace(
        query=query._replace(
            all_of=tuple(word for word in query.all_of if not has_symbol(word)),
            variations=tuple(word for word in query.variations if not has_symbol(word)),
        )
    )
