"""Carries a request out on paper, as a plan does, and records for each step who decided what (origins.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..planning.plan import PlannedStep
from ..planning.planned import PlannedEffects, PlannedEngine
from ..planning.planned_step import PlannedContext
from ..rules.conditions import Verdict
from ..rules.deps import tag_origins
from ..rules.env import Env, State
from ..rules.model import (
    PHASES,
    CacheEntry,
    CacheKey,
    Configured,
    Dependency,
    HookResult,
    Phase,
    Recipe,
    Request,
    StepEvent,
    StepResult,
)
from ..rules.select import Choice
from ..running.context import StepContext
from ..running.engine import Engine
from .origins import Asker, EntryOrigin, Origin, Source, StepTrace, last_source

KeyHistories = dict[str, tuple[Any, tuple[Origin, ...]]]
"""Env key to its value and its history."""


class ExplainEngine(PlannedEngine):
    """A planned engine that keeps the trace of each step of the plan.

    ``skipped`` has, for each dependency that a condition keeps from running, the keys of its conditions as they were.
    """

    def __init__(self, engine: Engine, parse: Callable[[Mapping[str, Any]], Request]) -> None:
        super().__init__(engine, parse)
        self.effects = TracingEffects(self)
        self.planned_store.on_find = self._keep_key
        self.traces: dict[PlannedStep, StepTrace] = {}
        self.skipped: dict[PlannedStep, KeyHistories] = {}
        self.finished: StepTrace | None = None
        self._asker = Asker()
        self._choice: Choice | None = None

    def run_dependency(self, step: StepContext, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Notes which entry of which parent asks for the next step."""
        parent = trace_of(step.configured)
        position = next((at for at, known in enumerate(step.lists[phase]) if known is dependency), -1)
        added = EntryOrigin(f"{phase} of recipe, changed by its customize.py")
        words = tuple(tag_origins(dependency, step.as_parent()))
        self._asker = Asker(parent, dependency, phase, parent.entries.get((phase, position), added), words)
        super().run_dependency(step, dependency, phase, verdict)

    def plan_request(self, step: PlannedContext, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Notes who starts a run that is not a dependency."""
        trace = trace_of(step.configured)
        if not request.phase:
            self._asker = Asker(trace)
        super().plan_request(step, label, request, pending)
        trace.changed("dependency that cannot be chosen yet", label, step.env)

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """Configures with a new trace; a step that is configured again with other bounds keeps its asker."""
        label = ",".join([recipe.id.alias, *("_" + name for name in request.query.variations)])
        before = request.origins
        if isinstance(before, StepTrace):
            trace = StepTrace(label, before.asker, before.choice, is_narrowed=True)
        else:
            trace = StepTrace(label, self._asker, self._choice)
        trace.configured = super().configure(recipe, request._replace(origins=trace))
        return trace.configured

    def choose(self, request: Request) -> Choice:
        """Keeps what decided."""
        self._choice = super().choose(request)
        return self._choice

    def emit(self, event: StepEvent) -> None:
        """Keeps what the plan's tree does not: the trace of the last step, and why a dependency is skipped."""
        step = self.tree.current
        super().emit(event)
        if event.kind == "done":
            self.finished = self.traces[step]
        elif event.kind == "skip" and step.configured:
            trace = self.traces[step]
            found = [d for phase in PHASES for d in step.configured.layer.dependencies(phase) if d.label == event.label]
            keys = [key for dependency in found for block in dependency.conditions for key, _ in block.wanted]
            self.skipped[step.children[-1]] = {key: (trace.last.get(key, ""), trace.history(key)) for key in keys}
        elif event.kind == "again" and self.tree.is_empty:
            self._asker = Asker()

    def new_step(self, configured: Configured, folder: Path, open_for: tuple[str, ...]) -> PlannedContext:
        """A context that reports to the step's trace what changes its env."""
        self.traces[self.tree.current] = trace_of(configured)
        return TracedContext(self, configured, folder, open_for)

    def _keep_key(self, key: CacheKey) -> None:
        """Keeps the entries that the current step could have the first time it looks for one."""
        trace = self.traces[self.tree.current]
        if trace.key is None:
            trace.key, trace.found = key, tuple(self.store.entries_of(key.recipe.uid))


def trace_of(configured: Configured) -> StepTrace:
    """The trace of a step that an ExplainEngine configured."""
    trace = configured.request.origins
    assert isinstance(trace, StepTrace)
    return trace


class TracingEffects(PlannedEffects):
    """Planned effects that report to the step's trace what a hook or a script may change."""

    def hook(self, step: StepContext, name: str) -> HookResult:
        """What a hook may set."""
        trace_of(step.configured).changed("engine", "", step.env)
        result = super().hook(step, name)
        _note_unknown(step, f"{name}() in customize.py")
        return result

    def run_script(self, step: StepContext) -> None:
        """What a native script may set; the copies that ``env_key_mappings`` makes come first."""
        trace, copies = trace_of(step.configured), step.map_env_keys()
        trace.offers(Source("env_key_mappings", "recipe"), copies, {**trace.last, **copies})
        super().run_script(step)
        _note_unknown(step, "native script")


class TracedContext(PlannedContext):
    """A planned step whose changes of env are kept with their cause."""

    def __init__(self, engine: ExplainEngine, configured: Configured, folder: Path, open_for: tuple[str, ...]) -> None:
        super().__init__(engine, configured, folder, open_for)
        self._engine = engine
        trace_of(configured).restarts(self.env)

    def take_planned(self, result: StepResult, phase: Phase, *, is_certain: bool) -> None:
        """What a dependency gives."""
        child = self._engine.finished
        super().take_planned(result, phase, is_certain=is_certain)
        details = {key: last_source(child.history(key)) for key in result.new_env} if child else {}
        trace = trace_of(self.configured)
        trace.offers(Source("dependency", result.label), result.new_env, self.env, details)
        trace.unknown = self.unknown

    def take_entry(self, entry: CacheEntry, new_env: Env, new_state: State) -> None:
        """What a cache entry gives."""
        super().take_entry(entry, new_env, new_state)
        trace = trace_of(self.configured)
        trace.offers(Source("cache entry", entry.uid), new_env, self.env)
        trace.unknown = self.unknown


def _note_unknown(step: StepContext, what: str) -> None:
    trace = trace_of(step.configured)
    trace.changed(what, step.recipe.id.alias, step.env)
    trace.unknown = step.unknown
