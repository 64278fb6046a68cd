"""Builds the tree of a plan out of the events of a run on paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..disk.repos import RecipeSource
from ..documents.needs import needs_of
from ..documents.plan import PlannedStep
from ..rules.cachekey import visible_inputs
from ..rules.conditions import has_symbol, shown
from ..rules.errors import RecipeError
from ..rules.model import Configured, Recipe, Request, StepEvent

RecipeCode = Callable[[Recipe], dict[str, str]]


@dataclasses.dataclass
class _OpenStep:
    """A step that has begun and not ended yet."""

    label: str
    configured: Configured | None
    is_run: bool = False
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    later_waits_for: tuple[str, ...] = ()
    notes: list[str] = dataclasses.field(default_factory=list)
    children: list[PlannedStep] = dataclasses.field(default_factory=list)


class TreeBuilder:
    """Grows while the request is carried out on paper; ``root`` is there when it is through.

    ``count`` is the number of steps that began.
    """

    def __init__(self, source: RecipeSource, code_of: RecipeCode) -> None:
        self._source = source
        self._code_of = code_of
        self._stack: list[_OpenStep] = [_OpenStep("", None)]
        self.count = 0

    @property
    def root(self) -> PlannedStep:
        """The step that was asked for."""
        return self._stack[0].children[0]

    @property
    def is_empty(self) -> bool:
        """Whether not even the first step began."""
        return not self._stack[0].children

    def pending_now(self) -> tuple[str, ...]:
        """What must turn out true for the step that is looked at to happen."""
        configured = self._stack[-1].configured
        return configured.request.pending if configured else ()

    def note(self, text: str) -> None:
        """Adds a remark to the step that is looked at."""
        notes = self._stack[-1].notes
        if text not in notes:
            notes.append(text)

    def explain(self, reason: str, waits_for: tuple[str, ...]) -> None:
        """Why the step that is looked at is not served by the cache, and what it depends on whether it is."""
        step = self._stack[-1]
        step.reason = reason or step.reason
        step.waits_for = tuple(dict.fromkeys((*step.waits_for, *(str(shown(text)) for text in waits_for))))

    def doubt_later(self, text: str) -> None:
        """What the step that is looked at does from here on depends on ``text``."""
        step = self._stack[-1]
        step.later_waits_for = (*step.later_waits_for, text)

    def take(self, event: StepEvent) -> None:
        """Adds what an event tells."""
        if event.kind == "start":
            assert event.configured is not None
            self.count += 1
            pending = tuple(str(shown(text)) for text in event.configured.request.pending)
            self._stack.append(_OpenStep(event.label, event.configured, waits_for=pending))
        elif event.kind == "run":
            self._stack[-1].is_run = True
            self._stack[-1].configured = event.configured
        elif event.kind == "skip":
            parent = self._stack[-1]
            waits_for = (*parent.waits_for, *parent.later_waits_for)
            parent.children.append(PlannedStep(str(shown(event.label)), "skip", event.reason, waits_for))
        elif event.kind == "done":
            self._close(event)
        elif event.kind == "again":
            self._stack.pop()
        elif event.kind == "fail" and event.error is not None:
            self._fail(event, event.error)

    def add_failure(self, trace: Sequence[str], request: Request, error: RecipeError) -> None:
        """Adds a dependency for which not even a recipe was found."""
        self.count += 1
        self._stack[-1].children.append(
            PlannedStep(
                str(shown(trace[-1])),
                "fail",
                reason=error.message.splitlines()[0],
                waits_for=tuple(str(shown(text)) for text in request.pending),
                phase=request.phase,
                error=error,
            )
        )

    def _fail(self, event: StepEvent, error: RecipeError) -> None:
        """Ends the step an error belongs to; an error before the step began is left to ``add_failure``."""
        step = self._stack[-1]
        if step.label != event.label or len(self._stack) == 1:
            return
        self._stack.pop()
        planned = self._planned(step)._replace(action="fail", reason=error.message.splitlines()[0], error=error)
        self._stack[-1].children.append(planned)

    def _close(self, event: StepEvent) -> None:
        step, result = self._stack.pop(), event.result
        assert result is not None
        planned = self._planned(step)._replace(version="" if has_symbol(result.version) else result.version)
        if result.status == "reused" and result.entry:
            entry = result.entry
            record = entry.record
            if record and record.recipe_digest and step.configured:
                recipe = step.configured.recipe
                if not self._source.is_unchanged(recipe, record.recipe_digest, record.recipe_stamp):
                    planned = planned._replace(notes=(*planned.notes, "made by another version of this recipe"))
            reason = "from the cache" if record is None or record.recipe_digest else "made earlier in this plan"
            planned = planned._replace(action="reuse", entry=entry.uid, reason=reason)
        elif step.configured and result.status != "reused":
            planned = planned._replace(needs=needs_of(step.configured, self._code_of(step.configured.recipe)))
        self._stack[-1].children.append(planned)

    def _planned(self, step: _OpenStep) -> PlannedStep:
        configured = step.configured
        assert configured is not None
        recipe, request = configured.recipe, configured.request
        return PlannedStep(
            label=str(shown(step.label)),
            action="run",
            reason=step.reason or ("" if recipe.is_cached else "not kept in the cache, runs each time"),
            waits_for=step.waits_for,
            phase=request.phase,
            recipe=recipe.id,
            tags=tuple(str(shown(tag)) for tag in request.query.all_of),
            version=str(shown(configured.version.exact)),
            variations=configured.applied,
            inputs=_texts(visible_inputs(configured)),
            notes=tuple(step.notes),
            children=tuple(step.children),
        )


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {name: str(shown(value)) for name, value in values.items()}
