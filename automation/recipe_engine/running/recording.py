"""Keeps a journal of each run that a user starts, from its first step that the cache does not serve.

A run that only reuses entries leaves no journal, reads no more modules and costs a list of events. Runs that recipes
start themselves belong to the journal of the run that started them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..rules.errors import Interrupted, RecipeError
from ..rules.events import StepEvent
from .engine import Engine

if TYPE_CHECKING:
    from .journal import Journal

RUNS_FOLDER = "runs"
"""Below the CM home: one folder for each run."""

_current: list[Recorder] = []


class Recorder:
    """Listens to one run; ``start`` makes its journal when there is something to write down."""

    def __init__(self, start: Callable[[], Journal]) -> None:
        self._start = start
        self._journal: Journal | None = None
        self._waiting: list[tuple[float, StepEvent]] = []

    def observe(self, event: StepEvent) -> None:
        """Takes an event; the first ``run`` starts the journal."""
        now_s = time.time()
        if self._journal is None and event.kind != "run":
            self._waiting.append((now_s, event))
            return
        if self._journal is None:
            self._journal = self._start()
            for moment_s, earlier in self._waiting:
                self._journal.add(moment_s, earlier)
            self._waiting.clear()
        self._journal.add(now_s, event)

    def end(self, error: BaseException | None) -> None:
        """Closes the journal; an error that ended the run is told by which journal it can be resumed."""
        if self._journal is None:
            return
        self._journal.end(error)
        if isinstance(error, RecipeError | Interrupted):
            error.run_id = self._journal.run_id

    @property
    def journal(self) -> Journal | None:
        """The journal that is written, once something ran."""
        return self._journal


def rows_until_now() -> list[dict[str, Any]]:
    """The journal of the run that goes on in this process, as far as it came; empty outside of one."""
    journal = _current[-1].journal if _current else None
    return journal.rows() if journal else []


@contextmanager
def recorded(engine: Engine, inputs: Mapping[str, Any], home: Path) -> Iterator[None]:
    """What ``engine`` does inside the block goes to the journal of the run, which a user started with ``inputs``."""
    if _current:
        engine.observers.append(_current[-1].observe)
        yield
        return

    def start() -> Journal:
        from .journal import Journal  # here, because a run that reuses everything writes none

        return Journal(home / RUNS_FOLDER, inputs, engine)

    recorder = Recorder(start)
    engine.observers.append(recorder.observe)
    _current.append(recorder)
    error: BaseException | None = None
    try:
        yield
    except BaseException as caught:
        error = caught
        raise
    finally:
        _current.pop()
        recorder.end(error)
