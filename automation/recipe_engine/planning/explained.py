"""Carries a request out on paper, as a plan does, and keeps for each step who decided what (origins.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..documents.explain import CacheAnswer, EntryRow, ExplainedChoice, choice_of, entry_row, last_source
from ..documents.origins import Asked, EntryOrigin, StepTrace
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
from .planned import PlannedEngine
from .planned_effects import PlannedEffects
from .planned_step import PlannedStep
from .planned_store import PREFIX


class SeenStep:
    """What was seen of one step: its trace, how it was configured first and last, its choice and its cache key."""

    def __init__(self, configured: Configured, trace: StepTrace, chain: tuple[str, ...]) -> None:
        self.first = configured
        self.last = configured
        self.trace = trace
        self.chain = chain
        self.choice: ExplainedChoice | None = None
        self.key: CacheKey | None = None
        self.entries: tuple[EntryRow, ...] = ()

    def cache_answer(self, action: str, reason: str) -> CacheAnswer:
        """Whether the step is served from the cache, and why."""
        options = self.first.request.options
        is_forced = self.first.recipe.can_force_cache and options.force_cache
        is_kept = self.first.is_cached or is_forced
        names = ("fake_run", "new", "renew") if is_forced else ("skip_cache", "fake_run", "new", "renew")
        flags = [name for name in names if getattr(options, name)]
        if not is_kept:
            return CacheAnswer(False, "the recipe does not keep its result (no 'cache: true'), so it runs each time")
        if flags:
            reason = f"--{flags[0]} keeps it from being reused"
        return CacheAnswer(True, reason or ("served from the cache" if action == "reuse" else ""), self.entries)


class SkippedStep:
    """A dependency that a condition keeps from running, as its parent saw it."""

    def __init__(self, event: StepEvent, parent: StepTrace, keys: tuple[str, ...]) -> None:
        self.label = event.label
        self.chain = event.trace
        self.reason = event.reason
        self.parent = parent
        self.rows = {key: (parent.last.get(key, ""), parent.history(key)) for key in keys}


class ExplainEngine(PlannedEngine):
    """A planned engine that keeps, in the order in which they start, the ``steps`` and the ``skipped`` dependencies.

    ``is_wanted`` tells from a step's chain of labels and its recipe's alias whether its choice and its cache entries
    shall be explained too; the histories are kept of all, because each step's go on in the next.
    """

    def __init__(
        self,
        engine: Engine,
        parse: Callable[[Mapping[str, Any]], Request],
        is_wanted: Callable[[tuple[str, ...], str], bool],
    ) -> None:
        super().__init__(engine, parse)
        self.effects = TracingEffects(self)
        self.planned_store.asked = self._saw_key
        self.is_wanted = is_wanted
        self.steps: list[SeenStep] = []
        self.skipped: list[SkippedStep] = []
        self.finished: StepTrace | None = None
        self._open: list[SeenStep] = []
        self._asked: Asked = Asked()
        self._choice: Choice | None = None

    def run_dependency(self, step: StepContext, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Notes which entry of which parent asks for the step to come."""
        parent = trace_of(step.configured)
        position = next((at for at, known in enumerate(step.lists[phase]) if known is dependency), -1)
        self._asked = Asked(
            parent=parent,
            dependency=dependency,
            phase=phase,
            entry=parent.entries.get((phase, position), EntryOrigin(f"{phase} of recipe, changed by its customize.py")),
            words=tuple(tag_origins(dependency, step.as_parent())),
        )
        super().run_dependency(step, dependency, phase, verdict)

    def plan_request(self, step: PlannedStep, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Notes who starts a run that is no dependency."""
        self._asked = self._asked if request.phase else Asked(parent=trace_of(step.configured))
        super().plan_request(step, label, request, pending)
        trace_of(step.configured).changed("dependency that cannot be chosen yet", label, step.env)

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """Configures with a fresh trace; a step that is configured again with other bounds keeps its asker."""
        before = request.origins
        asked = before.asked if isinstance(before, StepTrace) else self._asked
        label = ",".join([recipe.id.alias, *("_" + name for name in request.query.variations)])
        trace = StepTrace(label, asked)
        trace.is_narrowed = isinstance(before, StepTrace)
        return super().configure(recipe, request._replace(origins=trace))

    def choose(self, request: Request) -> Choice:
        """Keeps what decided."""
        self._choice = super().choose(request)
        return self._choice

    def emit(self, event: StepEvent) -> None:
        """Keeps the steps beside the plan's tree."""
        super().emit(event)
        if event.kind == "start" and event.configured:
            step = SeenStep(event.configured, trace_of(event.configured), event.trace)
            self.steps.append(step)
            self._open.append(step)
            if self._choice and self.is_wanted(event.trace, event.configured.recipe.id.alias):
                step.choice = choice_of(self.source.index, event.configured.request, self._choice, step.trace.asked)
        elif event.kind == "run" and event.configured:
            self._open[-1].last = event.configured
            self._open[-1].trace = trace_of(event.configured)
        elif event.kind == "skip" and self._open:
            self._keep_skipped(event)
        elif event.kind == "done" or (event.kind == "fail" and self._is_open(event)):
            self.finished = self._open.pop().trace
        elif event.kind == "again":
            self._start_over(event)

    def _is_open(self, event: StepEvent) -> bool:
        return bool(self._open) and self._open[-1].chain == event.trace

    def _start_over(self, event: StepEvent) -> None:
        if self._is_open(event):
            self._open.pop()
        if not self._open:
            self.steps.clear()
            self.skipped.clear()
            self._asked = Asked()

    def _keep_skipped(self, event: StepEvent) -> None:
        step = self._open[-1]
        lists = step.last.layer
        found = [d for phase in PHASES for d in lists.dependencies(phase) if d.label == event.label]
        keys = [key for dependency in found for condition in dependency.conditions for key, _ in condition.wanted]
        self.skipped.append(SkippedStep(event, step.trace, tuple(dict.fromkeys(keys))))

    def _saw_key(self, key: CacheKey) -> None:
        """Explains the entries of the step at hand the first time it looks for one."""
        step = self._open[-1] if self._open else None
        if step is None or step.key is not None or not self.is_wanted(step.chain, step.first.recipe.id.alias):
            return
        step.key = key
        rows = []
        for entry in self.store.entries_of(key.recipe.uid):
            is_expired = entry.expires_s is not None and time.time() >= entry.expires_s
            row = entry_row(entry, key, self.store.problem(entry) if entry.is_complete else "", is_expired)
            rows.append(row._replace(note=self._note(step.first.recipe, entry)))
        step.entries = tuple(sorted(rows, key=lambda row: (not row.fits, row.part, row.uid)))

    def _note(self, recipe: Recipe, entry: CacheEntry) -> str:
        if entry.uid.startswith(PREFIX):
            return "made earlier in this plan"
        record = entry.record
        if record is None:
            return "broken" if entry.retired else "made by CM"
        is_same = self.source.is_unchanged(recipe, record.recipe_digest, record.recipe_stamp)
        return "" if is_same else "made by another version of this recipe"

    def new_step(self, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> PlannedStep:
        """A context that tells the step's trace what changes its env."""
        seen = self._open[-1] if self._open else None
        if seen and seen.trace is not trace_of(configured):  # configured again, with the bounds of other steps
            seen.first, seen.last, seen.trace = configured, configured, trace_of(configured)
        return TracedStep(self, configured, folder, is_open)


def trace_of(configured: Configured) -> StepTrace:
    """The trace of a step that an ExplainEngine configured."""
    trace = configured.request.origins
    assert isinstance(trace, StepTrace)
    return trace


class TracingEffects(PlannedEffects):
    """Planned effects that tell the step's trace what a hook or a script may change."""

    def hook(self, step: StepContext, name: str) -> HookResult:
        """What a hook may set."""
        trace_of(step.configured).changed("engine", "", step.env)
        result = super().hook(step, name)
        _note(step, f"{name}() in customize.py")
        return result

    def run_script(self, step: StepContext) -> None:
        """What a native script may set; the copies that ``env_key_mappings`` makes come first."""
        trace, copies = trace_of(step.configured), step.map_env_keys()
        trace.offers("env_key_mappings", "recipe", copies, {**trace.last, **copies})
        super().run_script(step)
        _note(step, "native script")


class TracedStep(PlannedStep):
    """A planned step whose changes of env are kept with their cause."""

    def __init__(self, engine: ExplainEngine, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> None:
        super().__init__(engine, configured, folder, is_open)
        self._engine = engine
        trace_of(configured).restarts(self.env)

    def take_planned(self, result: StepResult, phase: Phase, *, is_certain: bool) -> None:
        """What a dependency gives."""
        child = self._engine.finished
        super().take_planned(result, phase, is_certain=is_certain)
        details = {key: last_source(child.history(key)) for key in result.new_env} if child else {}
        trace_of(self.configured).offers("dependency", result.label, result.new_env, self.env, details)
        trace_of(self.configured).unknown = self.unknown

    def take_entry(self, entry: CacheEntry, new_env: Env, new_state: State) -> None:
        """What a cache entry gives."""
        super().take_entry(entry, new_env, new_state)
        trace_of(self.configured).offers("cache entry", entry.uid, new_env, self.env)
        trace_of(self.configured).unknown = self.unknown


def _note(step: StepContext, what: str) -> None:
    trace = trace_of(step.configured)
    trace.changed(what, step.recipe.id.alias, step.env)
    trace.unknown = step.unknown
