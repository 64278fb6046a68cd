"""Which recipe answers a query that several could: the one picked before, one that is cached, the first, or ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..disk.repos import RecipeSource, recipe_stamp
from ..disk.store import Store
from ..rules.cachemodel import CacheEntry, CacheKey, Maker
from ..rules.conditions import Verdict
from ..rules.configure import configure
from ..rules.demands import Demands
from ..rules.deps import dependency_request
from ..rules.errors import RecipeError, VariationError
from ..rules.events import StepEvent
from ..rules.index import IndexEntry
from ..rules.model import Configured, Dependency, Phase, Recipe, Request, StepResult
from ..rules.select import Choice, ChoiceRule, Refusal, candidates, nearest_to_asker
from ..rules.version import VersionRange
from .frame import Frame
from .locked import Guard

logger = logging.getLogger(__name__)

Runner = Callable[["Engine", Request], StepResult]


class Engine:
    """What all steps of one call share.

    ``top_folder`` is where the call was made, ``chosen`` remembers which recipe was picked for an ambiguous query, and
    ``told`` which entries were already reported as reused. ``run`` carries out a request: a step's dependencies and
    replacements go through it. ``observers`` are told of every step; ``guard`` holds
    the run to a lock.
    """

    def __init__(self, *, source: RecipeSource, store: Store, cmind: Any, top_folder: str, run: Runner) -> None:
        self.source = source
        self.store = store
        self.cmind = cmind
        self.top_folder = top_folder
        self.chosen: dict[frozenset[str], IndexEntry] = {}
        self.told: set[str] = set()
        self.run = run
        self.demands = Demands()
        self.guard: Guard | None = None
        self.observers: list[Callable[[StepEvent], None]] = []

    def choose(self, request: Request) -> Choice:
        """The recipe that answers a request, and what decided."""
        return choose(self, request)

    def frame(self, configured: Configured, folder: Path, log_path: Path | None) -> Frame:
        """The running side of one step that works in ``folder``."""
        return Frame(configured, folder=folder, log_path=log_path, top_folder=self.top_folder, cmind=self.cmind)

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """The recipe with all that is decided before its dependencies run."""
        return configure(recipe, request)

    def run_dependency(self, frame: Frame, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Runs a dependency that ``verdict`` lets run, and hands what it gives to its parent's frame."""
        frame.take(self.run(self, dependency_request(dependency, frame.as_parent(), phase)), phase)

    def narrowed_version(self, frame: Frame, key: CacheKey) -> VersionRange:
        """The version a cached step asks for, after what else is known to be asked of the same artifact."""
        if frame.configured.request.options.mixed_versions:
            return key.version
        bound = self.guard.bound(key, frame.configured.label) if self.guard else None
        return self.demands.narrowed(key, frame.trace, bound)

    def before_reuse(self, frame: Frame, entry: CacheEntry) -> None:
        """Called before an entry is reused; only a plan has something to do."""

    def note_choice(self, frame: Frame, key: CacheKey, result: StepResult) -> None:
        """Remembers what a cached step gave, so that later steps get the same."""
        self.demands.note(key, result.version, result.entry)
        if self.guard and result.entry:
            self.guard.verify(key, result.entry, frame.configured.label)

    def maker(self, recipe: Recipe) -> Maker:
        """What an entry notes of the recipe that makes it."""
        return Maker(self.source.digest(recipe), recipe_stamp(recipe.path))

    def tell(self, configured: Configured, symbol: str, text: str) -> None:
        """One line of the story: ``*`` starts, ``+`` done, ``=`` reused, ``-`` ended early, ``!`` needs attention."""
        options = configured.request.options
        if not options.silent or symbol == "!":
            logger.info("%s%s %s", "  " * len(configured.request.trace), symbol, text)

    def emit(self, event: StepEvent) -> None:
        """Tells all observers, the lock first."""
        if self.guard:
            self.guard.take(event)
        if event.kind == "skip":
            logger.debug("%s- %s: skipped (%s)", "  " * (len(event.trace) - 1), event.label, event.reason)
        for observer in self.observers:
            observer(event)


def choose(engine: Engine, request: Request) -> Choice:
    """The recipe for a query: the only one, the one picked before, one that is cached, or the first."""
    query = request.query
    fitting = candidates(query, request.alias, engine.source.index)
    if len(fitting) == 1:
        return Choice(fitting[0], "name" if request.alias else "only one fits")
    field = _Field(fitting)
    own = nearest_to_asker(fitting, request.asked_by.repo_path if request.asked_by else None)
    field.narrow(own, "own repository", Refusal("other repository", "is in another repository than the asking recipe"))
    key = frozenset(query.all_of + query.variations)
    remembered = engine.chosen.get(key)
    if remembered in field.left:
        field.narrow((remembered,), "remembered", Refusal("fits", "the same query was answered by the chosen one"))
    if len(field.left) == 1:
        return field.choice()
    field.refuse(_clashing(engine, request, field.left))
    words = {*query.all_of, *("_" + name for name in query.variations)}
    cached = tuple(entry for entry in field.left if is_cached(engine.store, entry, words))
    field.narrow(cached, "cached", Refusal("fits", "has no finished entry with these tags in the cache"))
    if len(field.left) > 1 and not (request.options.quiet or str(request.env.get("CM_QUIET", "")) == "yes"):
        helped = _named_by_their_help(engine, words, field.left)
        field.narrow(helped, "tags_help", Refusal("fits", "its tags_help is not the query, word for word"))
        if len(field.left) > 1:
            picked = field.left[ask_which(query.text or request.alias, field.left)]
            field.narrow((picked,), "picked on the terminal", Refusal("fits", "was not picked on the terminal"))
    field.narrow(field.left[:1], "first by sort and path", Refusal("fits", "comes later by sort and path"))
    engine.chosen[key] = field.left[0]
    return field.choice()


class _Field:
    """The recipes that are left to choose from, and why the others are not."""

    def __init__(self, fitting: tuple[IndexEntry, ...]) -> None:
        self.left = fitting
        self._rule: ChoiceRule = "only one fits"
        self._passed: list[tuple[IndexEntry, Refusal]] = []

    def narrow(self, kept: tuple[IndexEntry, ...], rule: ChoiceRule, why: Refusal) -> None:
        """Leaves those that a rule prefers, if it prefers any, and remembers it when that was a decision."""
        if kept and len(kept) < len(self.left):
            self._passed += [(entry, why) for entry in self.left if entry not in kept]
            self.left, self._rule = kept, rule

    def refuse(self, refused: Sequence[tuple[IndexEntry, Refusal]]) -> None:
        """Leaves out those whose variations do not go together."""
        for entry, why in refused:
            self.narrow(tuple(other for other in self.left if other != entry), "variations", why)

    def choice(self) -> Choice:
        """The first of those that are left."""
        return Choice(self.left[0], self._rule, tuple(self._passed))


def _clashing(engine: Engine, request: Request, found: tuple[IndexEntry, ...]) -> list[tuple[IndexEntry, Refusal]]:
    """The recipes whose variations do not go together as asked; raises VariationError when that is true of all."""
    errors: list[tuple[IndexEntry, VariationError]] = []
    for entry in found:
        try:
            engine.configure(engine.source.recipe(entry), request)
        except VariationError as error:
            logger.debug("not taking %s for '%s': %s", entry.alias, request.query.text, error)
            errors.append((entry, error))
        except RecipeError:
            pass  # it is reported when the recipe is chosen
    if len(errors) == len(found):
        raise errors[0][1]
    return [(entry, Refusal("variations clash", error.message)) for entry, error in errors]


def _named_by_their_help(engine: Engine, words: set[str], found: tuple[IndexEntry, ...]) -> tuple[IndexEntry, ...]:
    """The recipes whose own ``tags_help`` is the query, word for word: whoever asks so means them and no other."""

    def helped(entry: IndexEntry) -> set[str]:
        return set(str(engine.source.recipe(entry).meta.get("tags_help") or "").replace(",", " ").split())

    return tuple(entry for entry in found if helped(entry) == words)


def is_cached(store: Store, recipe: IndexEntry, words: set[str]) -> bool:
    """Whether the recipe has a finished entry with all these tags."""
    return any(entry.is_complete and words <= set(entry.tags) for entry in store.entries_of(recipe.uid))


def ask_which(text: str, found: tuple[IndexEntry, ...]) -> int:
    """Asks on the terminal which recipe is meant; raises Ambiguous without a valid answer."""
    from .prompts import pick  # here, because few calls ask

    rows = [f"{entry.alias} ({','.join(sorted(entry.tags))})" for entry in found]
    hint = "name one by its alias, add a tag that only it has, or take the first with --quiet"
    return pick(f"several recipes match '{text}':", rows, hint=hint)
