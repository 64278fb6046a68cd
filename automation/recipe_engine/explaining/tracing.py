"""Carries a request out on paper, as a plan does, and records for each step who decided what (origins.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..planning.plan import PlannedStep
from ..planning.planned import PlannedEngine
from ..planning.planned_step import PlannedContext
from ..rules.conditions import Verdict
from ..rules.deps import tag_origins
from ..rules.model import (
    PHASES,
    CacheKey,
    Configured,
    Dependency,
    Phase,
    Recipe,
    Request,
    StepEvent,
)
from ..rules.query import Choice
from ..running.context import StepContext
from ..running.engine import Engine
from .origins import Asker, EntryOrigin, Origin, StepTrace

KeyHistories = dict[str, tuple[Any, tuple[Origin, ...]]]
"""Env key to its value and its history."""


class ExplainEngine(PlannedEngine):
    """A planned engine that gives each request a trace of its step (``trace_of``).

    ``skipped`` has, for each dependency that a condition keeps from running, the keys of its conditions as they were.
    """

    def __init__(self, engine: Engine, parse: Callable[[Mapping[str, Any]], Request]) -> None:
        super().__init__(engine, parse)
        self.planned_store.on_find = self._keep_key
        self.skipped: dict[PlannedStep, KeyHistories] = {}
        self._asker = Asker()
        self._choice: Choice | None = None

    def run_dependency(self, step: StepContext, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Notes which entry of which parent asks for the next step."""
        parent = trace_of(step.configured)
        position = next((at for at, known in enumerate(step.lists[phase]) if known is dependency), -1)
        added = EntryOrigin(f"{phase} of recipe, changed by its customize.py")
        words = tuple(tag_origins(dependency, step))
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
        """Keeps what the plan's tree does not: what the last step gives, and why a dependency is skipped."""
        step = self.tree.current
        super().emit(event)
        if event.kind == "done" and step.configured:
            trace_of(step.configured).ends()
        elif event.kind == "skip" and step.configured:
            trace = trace_of(step.configured)
            found = [d for phase in PHASES for d in step.configured.layer.dependencies(phase) if d.label == event.label]
            keys = [key for dependency in found for block in dependency.conditions for key, _ in block.wanted]
            self.skipped[step.children[-1]] = {key: (trace.last.get(key, ""), trace.history(key)) for key in keys}
        elif event.kind == "again" and self.tree.is_empty:
            self._asker = Asker()

    def _keep_key(self, key: CacheKey) -> None:
        """Keeps the entries that the current step could have the first time it looks for one."""
        assert self.tree.current.configured
        trace = trace_of(self.tree.current.configured)
        if trace.key is None:
            trace.key, trace.found = key, tuple(self.store.entries_of(key.recipe.uid))


def trace_of(configured: Configured) -> StepTrace:
    """The trace of a step that an ExplainEngine configured."""
    trace = configured.request.origins
    assert isinstance(trace, StepTrace)
    return trace
