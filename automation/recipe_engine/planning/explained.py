"""Carries a request out on paper, as a plan does, and keeps for each step who decided what (origins.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..documents.explain import CacheAnswer, EntryRow, ExplainedChoice, choice_of, entry_row, last_source
from ..documents.origins import Asked, EntryOrigin, StepTrace
from ..rules.cachemodel import CacheEntry, CacheKey
from ..rules.conditions import Verdict
from ..rules.deps import tag_origins
from ..rules.events import StepEvent
from ..rules.model import PHASES, Configured, Dependency, HookResult, Phase, Recipe, Request, StepResult
from ..rules.select import Choice
from ..rules.env import Env, State
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
        self.planned_store = WitnessStore(engine.store, self.tree.pending_now, self._saw_key)
        self.store: Store = self.planned_store
        self.is_wanted = is_wanted
        self.steps: list[SeenStep] = []
        self.skipped: list[SkippedStep] = []
        self.finished: StepTrace | None = None
        self._open: list[SeenStep] = []
        self._asked: Asked = Asked()
        self._choice: Choice | None = None

    def run_dependency(self, frame: Frame, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Notes which entry of which parent asks for the step to come."""
        parent = trace_of(frame.configured)
        position = next((at for at, known in enumerate(frame.lists[phase]) if known is dependency), -1)
        self._asked = Asked(
            parent=parent,
            dependency=dependency,
            phase=phase,
            entry=parent.entries.get((phase, position), EntryOrigin(f"{phase} of recipe, changed by its customize.py")),
            words=tuple(tag_origins(dependency, frame.as_parent())),
        )
        super().run_dependency(frame, dependency, phase, verdict)

    def plan_request(self, frame: PlannedFrame, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Notes who starts a run that is no dependency."""
        self._asked = self._asked if request.phase else Asked(parent=trace_of(frame.configured))
        super().plan_request(frame, label, request, pending)
        trace_of(frame.configured).changed("dependency that cannot be chosen yet", label, frame.env)

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

    def new_frame(self, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> PlannedFrame:
        """A frame that tells the step's trace what changes its env."""
        step = self._open[-1] if self._open else None
        if step and step.trace is not trace_of(configured):  # configured again, with the bounds of other steps
            step.first, step.last, step.trace = configured, configured, trace_of(configured)
        return WitnessFrame(self, configured, folder, is_open)


def trace_of(configured: Configured) -> StepTrace:
    """The trace of a step that an ExplainEngine configured."""
    trace = configured.request.origins
    assert isinstance(trace, StepTrace)
    return trace


class WitnessStore(PlannedStore):
    """Tells which key is looked for, before it is."""

    def __init__(
        self, real: Store, pending_now: Callable[[], tuple[str, ...]], saw_key: Callable[[CacheKey], None]
    ) -> None:
        super().__init__(real, pending_now)
        self._saw_key = saw_key

    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that surely fit, best first."""
        self._saw_key(key)
        return super().find(key, refresh=refresh)


class WitnessFrame(PlannedFrame):
    """A planned frame whose changes of env are kept with their cause."""

    engine: ExplainEngine

    def __init__(self, engine: ExplainEngine, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> None:
        super().__init__(engine, configured, folder, is_open)
        self.trace_kept.restarts(self.env)

    @property
    def trace_kept(self) -> StepTrace:
        """Where the step's origins are kept."""
        return trace_of(self.configured)

    def hook(self, name: str) -> HookResult:
        """What a hook may set."""
        self.trace_kept.changed("engine", "", self.env)
        result = super().hook(name)
        self.trace_kept.changed(f"{name}() in customize.py", self.recipe.id.alias, self.env)
        self.trace_kept.unknown = self.unknown
        return result

    def run_script(self) -> None:
        """What a native script may set; the copies that ``env_key_mappings`` makes come first."""
        copies = {
            new + key[len(old) :]: value
            for old, new in self.recipe.env_key_mappings.items()
            for key, value in self.env.items()
            if key.startswith(old)
        }
        self.trace_kept.offers("env_key_mappings", "recipe", copies, {**self.trace_kept.last, **copies})
        super().run_script()
        self.trace_kept.changed("native script", self.recipe.id.alias, self.env)
        self.trace_kept.unknown = self.unknown

    def take_planned(self, result: StepResult, phase: Phase, *, is_certain: bool) -> None:
        """What a dependency gives."""
        child = self.engine.finished
        super().take_planned(result, phase, is_certain=is_certain)
        details = {key: last_source(child.history(key)) for key in result.new_env} if child else {}
        self.trace_kept.offers("dependency", result.label, result.new_env, self.env, details)
        self.trace_kept.unknown = self.unknown

    def take_entry(self, store: Store, entry: CacheEntry) -> None:
        """What a cache entry gives."""
        new_env, _ = store.load(entry)
        super().take_entry(store, entry)
        self.trace_kept.offers("cache entry", entry.uid, new_env, self.env)
        self.trace_kept.unknown = self.unknown
