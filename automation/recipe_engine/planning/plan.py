"""The plan of a request: a tree of steps, what each would do and why, grown out of the events of a run on paper.

A step is *certain* when ``waits_for`` is empty. Otherwise it is known what the step would be, but not whether it
happens: ``waits_for`` names the env keys that earlier steps give only when they run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ..disk.repos import RecipeSource
from ..documents.needs import NO_NEEDS, Needs, needs_of, needs_together
from ..rules.cachekey import visible_inputs
from ..rules.conditions import has_symbol, shown
from ..rules.errors import RecipeError
from ..rules.model import CacheEntry, Configured, Phase, Recipe, RecipeId, Request, StepEvent, StepResult

Action = Literal["run", "reuse", "skip", "fail"]
MADE_EARLIER = "built earlier in this plan"
MADE_BY_ANOTHER = "built by another version of this recipe"


@dataclasses.dataclass(eq=False)
class PlannedStep:
    """One recipe in a plan; it has no ``configured`` when it is skipped or no recipe was found.

    ``chain`` are the labels from the outermost step down to this one, ``phase`` is the list of its parent that holds
    it. What its later dependencies do depends on ``later_waits_for``, too. It ``is_kept`` when what it makes stays in
    the cache.
    """

    chain: tuple[str, ...]
    action: Action = "run"
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    phase: Phase | Literal[""] = ""
    configured: Configured | None = None
    version: str = ""
    entry: str = ""
    is_kept: bool = False
    notes: tuple[str, ...] = ()
    needs: Needs = NO_NEEDS
    error: RecipeError | None = None
    children: list[PlannedStep] = dataclasses.field(default_factory=list)
    later_waits_for: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What to call the step: its recipe with the variations asked for, or the tags of a dependency."""
        return self.chain[-1]

    @property
    def recipe(self) -> RecipeId | None:
        """The recipe, when one was found."""
        return self.configured.recipe.id if self.configured else None

    @property
    def names(self) -> tuple[str, ...]:
        """What the step may be called: its label, and the alias and the uid of its recipe."""
        return (self.label, self.recipe.alias, self.recipe.uid) if self.recipe else (self.label,)

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs that the recipe maps to env keys, without secrets."""
        given = visible_inputs(self.configured) if self.configured else {}
        return {name: str(shown(value)) for name, value in given.items()}

    @property
    def is_certain(self) -> bool:
        """Whether the step will happen just so."""
        return not self.waits_for

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlannedStep]]:
        """This step and all below it with their depth, in the order in which they start."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class Plan(NamedTuple):
    """A plan. ``free_bytes`` is the free space where the cache is; ``command`` what it is the plan of."""

    root: PlannedStep
    command: str
    cache_path: str
    free_bytes: int

    @property
    def errors(self) -> tuple[RecipeError, ...]:
        """What would surely stop the run, in order."""
        return tuple(step.error for _, step in self.root.walk() if step.error and step.is_certain)

    def count(self, action: Action) -> int:
        """How many steps surely end that way."""
        return sum(step.action == action and step.is_certain for _, step in self.root.walk())

    @property
    def open_count(self) -> int:
        """How many steps are not known yet."""
        return sum(not step.is_certain for _, step in self.root.walk())

    @property
    def needs(self) -> Needs:
        """What all steps that would run need together, those not known yet too."""
        running = [step for _, step in self.root.walk() if step.action == "run"]
        return needs_together(step.needs.named(step.label.partition(",")[0]) for step in running)


class PlanTree:
    """The plan as it grows: ``current`` is the step that is planned now, ``count`` how many have begun."""

    def __init__(self, source: RecipeSource, code_of: Callable[[Recipe], dict[str, str]]) -> None:
        self._source = source
        self._code_of = code_of
        self._open = [PlannedStep(())]
        self.count = 0

    @property
    def current(self) -> PlannedStep:
        """The step that is planned now."""
        return self._open[-1]

    @property
    def root(self) -> PlannedStep:
        """The step that was asked for."""
        return self._open[0].children[0]

    @property
    def is_empty(self) -> bool:
        """Whether not even the first step began."""
        return not self._open[0].children

    def pending_now(self) -> tuple[str, ...]:
        """What must turn out true for the current step to happen."""
        configured = self.current.configured
        return configured.request.pending if configured else ()

    def note(self, text: str) -> None:
        """Adds a remark to the current step."""
        self.current.notes = tuple(dict.fromkeys((*self.current.notes, text)))

    def explain(self, reason: str, waits_for: Iterable[str]) -> None:
        """Why the cache does not serve the current step, and what it depends on whether it does."""
        self.current.reason = reason or self.current.reason
        self.current.waits_for = tuple(dict.fromkeys((*self.current.waits_for, *_words(waits_for))))

    def take(self, event: StepEvent) -> None:
        """Adds what an event reports."""
        step = self.current
        if event.kind == "start" and event.configured:
            self.count += 1
            new = self._add(event.label, event.configured.request)
            new.configured = event.configured
            self._open.append(new)
        elif event.kind == "run":
            step.configured = event.configured
        elif event.kind == "skip":
            skipped = self._add(event.label)
            skipped.action, skipped.reason = "skip", event.reason
            skipped.waits_for = (*step.waits_for, *step.later_waits_for)
        elif event.kind == "done" and event.result:
            self._open.pop()
            self._finish(step, event.result)
        elif event.kind == "again":
            self._open.pop()
            self.current.children.remove(step)
        elif event.kind == "fail" and event.error and step.chain[-1:] == _words([event.label]):
            self._open.pop()  # an error before the step began is left to ``add_failure``
            _fail(step, event.error)

    def add_failure(self, trace: Sequence[str], request: Request, error: RecipeError) -> None:
        """Adds a dependency for which not even a recipe was found."""
        self.count += 1
        _fail(self._add(trace[-1], request), error)

    def _add(self, label: str, request: Request | None = None) -> PlannedStep:
        new = PlannedStep((*self.current.chain, *_words([label])))
        if request:
            new.waits_for, new.phase = _words(request.pending), request.phase
        self.current.children.append(new)
        return new

    def _finish(self, step: PlannedStep, result: StepResult) -> None:
        assert step.configured is not None
        recipe = step.configured.recipe
        step.version = "" if has_symbol(result.version) else result.version
        step.is_kept = result.entry is not None
        if result.status == "reused" and result.entry:
            note = maker_note(self._source, recipe, result.entry)
            step.action, step.entry = "reuse", result.entry.uid
            step.reason = note if note == MADE_EARLIER else "from the cache"
            step.notes = (*step.notes, *([note] if note == MADE_BY_ANOTHER else []))
            return
        if result.status == "faked":
            step.reason = "fake run: only its dependencies run"
            return
        step.reason = step.reason or ("" if step.is_kept else "not kept in the cache, runs each time")
        step.needs = needs_of(step.configured, self._code_of(recipe), self.current.configured)


def _fail(step: PlannedStep, error: RecipeError) -> None:
    step.action, step.error, step.reason = "fail", error, error.message.splitlines()[0]
    step.version = str(shown(step.configured.version.exact)) if step.configured else ""


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts with what is not known yet in words."""
    return tuple(str(shown(text)) for text in texts)


def maker_note(source: RecipeSource, recipe: Recipe, entry: CacheEntry) -> str:
    """What there is to know of the maker of a cache entry; empty when that is the recipe as it is now."""
    if entry.record is None:
        return "broken" if entry.retired else "made by CM"
    if not entry.record.recipe_digest:
        return MADE_EARLIER
    is_same = source.is_unchanged(recipe, entry.record)
    return "" if is_same else MADE_BY_ANOTHER
