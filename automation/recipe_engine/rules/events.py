"""The events of a run, for its observers: the journal, the lockfile, ``--time``.

``Engine.observers`` are called with each event in the order in which things happen. An observer never steers a run,
except that an error it raises stops it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .errors import RecipeError
from .model import Configured, StepResult

EventKind = Literal["start", "run", "done", "skip", "fail", "again"]


class StepEvent(NamedTuple):
    """What happened to a step.

    ``start``: its recipe is chosen and configured; ``run``: it is not served by the cache and begins; ``done``: it gave
    ``result`` (whose status says whether it ran or was reused); ``skip``: a dependency that ``reason`` keeps from
    running; ``fail``: it ended with ``error``; ``again``: it is broken off, because the whole run starts over for
    ``reason``. ``trace`` are the labels from the outermost recipe down to this one.
    """

    kind: EventKind
    trace: tuple[str, ...]
    configured: Configured | None = None
    result: StepResult | None = None
    error: RecipeError | None = None
    reason: str = ""

    @property
    def label(self) -> str:
        """The step itself."""
        return self.trace[-1]
