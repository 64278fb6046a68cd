"""What all steps of one call share and decide together: recipes, choices, versions required, entries that serve."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ..disk.entries import keeps_identity
from ..disk.files import explained
from ..disk.repos import RecipeSource
from ..rules.cachekey import Backtrack, Requirement, Requirements, VersionConflict, misfit, with_derived_tags
from ..rules.conditions import Verdict
from ..rules.configure import configure
from ..rules.deps import dependency_request
from ..rules.env import DEPENDENT_PATH_KEYS
from ..rules.errors import Interrupted, RecipeError, VariationError
from ..rules.inputs import warnings_of_inputs
from ..rules.model import CacheEntry, CacheKey, Configured, Dependency, Phase, Recipe, Request, StepEvent, StepResult
from ..rules.query import Choice, ChoiceRule, IndexEntry, Refusal, VersionRange, candidates, nearest_to_asker
from .context import StepContext
from .effects import VALIDATE_SCRIPT, Effects, Entries

logger = logging.getLogger(__name__)


MAX_ATTEMPTS = 20
"""Each new attempt narrows the version of one artifact (cachekey.py); nothing sensible narrows that often."""

_running: list[str] = []

_runs: list[Engine] = []
"""The runs in progress in this process: a recipe of each one started the next."""

Runner = Callable[["Engine", Request], StepResult]


def running_trace() -> tuple[str, ...]:
    """The labels of the recipes that run right now in this process, outermost first.

    A recipe that calls ``cm.access`` itself starts a new request; its chain goes on from here.
    """
    return tuple(_running)


class Guard(Protocol):
    """What holds a run to a lockfile; ``provenance/lock.py`` says what each method does."""

    is_cache_only: bool

    def take(self, event: StepEvent) -> None: ...
    def bound(self, key: CacheKey, label: str) -> Requirement | None: ...
    def facts(self, key: CacheKey) -> Mapping[str, Any]: ...
    def verify(self, key: CacheKey, entry: CacheEntry, label: str) -> None: ...


def guard_in_progress() -> Guard | None:
    """What the innermost run in progress is held to."""
    return _runs[-1].guard if _runs else None


def check_inputs(recipe: Recipe, request: Request, engine: Engine) -> None:
    """Raises RequestError for inputs of a call that the recipe refuses (rules/inputs.py).

    Of others that it does not read the console is warned, once for each line in ``engine.reported``.
    """
    is_shown = bool(request.inputs.get("out"))

    def hooks() -> str:
        from ..disk.metadata import recipe_texts  # here, because few inputs are unknown

        return "\n".join(recipe_texts(recipe.path, (".py",)).values())

    def below() -> Sequence[tuple[str, str]]:
        return engine.names_below(request) if is_shown else ()

    for line in warnings_of_inputs(recipe, request, lambda: engine.source.dependency_names, hooks, below):
        if is_shown and line not in engine.reported:
            engine.reported.add(line)
            logger.warning("! %s", line)


class Engine:
    """What all steps of one call share.

    ``top_folder`` is where the call was made, ``chosen`` remembers which recipe was picked for an ambiguous query, and
    ``reported`` which lines were printed already; ``names_below`` plans the names that ``rules.inputs`` lists. ``run``
    carries out a request: a step's dependencies and replacements go through it. ``observers`` get every event;
    ``guard`` holds the run to a lockfile.
    """

    def __init__(self, source: RecipeSource, effects: Effects, top_folder: str, run: Runner) -> None:
        self.source = source
        self.effects = effects
        self.top_folder = top_folder
        self.run = run
        self.chosen: dict[frozenset[str], IndexEntry] = {}
        self.remembers_choices = True
        self.reported: set[str] = set()
        self.names_below: Callable[[Request], Sequence[tuple[str, str]]] = lambda request: ()
        self.requirements = Requirements()
        self.guard: Guard | None = None
        self.observers: list[Callable[[StepEvent], None]] = []

    @property
    def store(self) -> Entries:
        """The cache."""
        return self.effects.entries

    @contextmanager
    def in_progress(self) -> Iterator[bool]:
        """The run of this engine is the block; whether a user started it.

        One that a recipe started has the observers of that recipe's run, uses the same lockfile, and does not print
        again what that run reported.
        """
        for outer in _runs[-1:]:
            self.guard, self.reported = outer.guard, outer.reported
            self.observers += outer.observers
        _runs.append(self)
        try:
            yield len(_runs) == 1
        finally:
            _runs.pop()

    def run_consistently(self, request: Request) -> StepResult:
        """Runs one request; starts over with tighter bounds when a later step needs another version than was chosen.

        What was made before that is in the cache; recipes that do not use it run again. Raises RecipeError.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                return self.run(self, request)
            except Backtrack as again:
                logger.info("starting over: %s", again.text)
                self.requirements.start_over()
        raise VersionConflict(f"no combination of versions satisfies all recipes after {MAX_ATTEMPTS} attempts")

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """The recipe with all that is decided before its dependencies run."""
        return configure(recipe, request)

    def step(self, configured: Configured, folder: Path, log_path: Path | None) -> StepContext:
        """The context of a step that works in ``folder``."""
        return StepContext(configured, folder=folder, log_path=log_path, top_folder=self.top_folder)

    def run_dependency(self, parent: StepContext, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Runs a dependency that ``verdict`` lets run, and hands what it gives to its parent."""
        parent.take(self.run(self, dependency_request(dependency, parent, phase)), phase)

    def narrowed_version(self, step: StepContext, key: CacheKey) -> VersionRange:
        """The version a cached step asks for, after what else is known to be asked of the same artifact."""
        if step.configured.request.options.mixed_versions:
            return key.version
        bound = self.guard.bound(key, step.configured.label) if self.guard else None
        return self.requirements.narrowed(key, step.trace, bound)

    def note_choice(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """Remembers what a cached step gave, so that later steps get the same."""
        self.requirements.note(key, result.version, result.entry)
        if self.guard and result.entry:
            self.guard.verify(key, result.entry, step.configured.label)

    def tell_once(self, configured: Configured, mark: str, text: str, name: str = "") -> None:
        """A line of progress, unless it, or one of the same ``name``, was printed before in this call."""
        if (name or text) not in self.reported:
            self.reported.add(name or text)
            self.effects.tell(configured, mark, text)

    def emit(self, event: StepEvent) -> None:
        """Hands an event to all observers, the lockfile's guard first."""
        if self.guard:
            self.guard.take(event)
        if event.kind == "skip":
            logger.debug("%s- %s: skipped (%s)", "  " * (len(event.trace) - 1), event.label, event.reason)
        for observer in self.observers:
            observer(event)

    @contextmanager
    def tracing(self, recipe: Recipe, request: Request) -> Iterator[tuple[str, ...]]:
        """The labels of the recipes down to the step of the block; an error in it gets them, facts and hints.

        The observers learn how the step failed; that it started and what it gave is reported by itself.
        """
        label = ",".join([recipe.id.alias, *("_" + name for name in request.query.variations)])
        trace = (*request.trace, label)
        _running.append(label)
        try:
            with explained():
                yield trace
        except RecipeError as error:
            if not error.trace:
                from .failure import complete  # here, because only failures need it

                complete(error, self.source.index, request, recipe, trace)
            self.emit(StepEvent("fail", trace, error=error))
            raise
        except Interrupted as stop:
            stop.trace = stop.trace or trace
            raise
        except Backtrack as again:
            self.emit(StepEvent("again", trace, reason=again.text))
            raise
        finally:
            _running.pop()

    def choose(self, request: Request) -> Choice:
        """The recipe for a query, and what decided: the only one, the one picked before, one that is cached, the first.

        Raises NotFound, VariationError, or Ambiguous when the user is asked and does not answer.
        """
        query = request.query
        fitting = candidates(query, request.alias, self.source.index)
        if len(fitting) == 1:
            return Choice(fitting[0], "name" if request.alias else "only one matches")
        field = _Field(fitting)
        own = nearest_to_asker(fitting, request.asked_by.repo_path if request.asked_by else None)
        other = Refusal("other repository", "is not in the repository of the requesting recipe")
        field.narrow(own, "own repository", other)
        key = frozenset(query.all_of + query.variations)
        remembered = self.chosen.get(key)
        if remembered in field.left:
            other = Refusal("fits", "another one was chosen for the same query earlier in this run")
            field.narrow((remembered,), "remembered", other)
        if len(field.left) == 1:
            return field.choice()
        field.refuse(self._clashing(request, field.left))
        words = {*query.all_of, *("_" + name for name in query.variations)}
        cached = tuple(entry for entry in field.left if self._is_cached(entry, words))
        field.narrow(cached, "cached", Refusal("fits", "has no finished entry with these tags in the cache"))
        if len(field.left) > 1 and not (request.options.quiet or str(request.env.get("CM_QUIET", "")) == "yes"):
            helped = tuple(entry for entry in field.left if set() < self._help_words(entry) <= words)
            field.narrow(helped, "tags_help", Refusal("fits", "its tags_help has words that are not in the query"))
            if len(field.left) > 1:
                picked = field.left[ask_which(query.text or request.alias, field.left)]
                field.narrow((picked,), "picked on the terminal", Refusal("fits", "was not picked on the terminal"))
        field.narrow(field.left[:1], "first by sort and path", Refusal("fits", "comes later by sort and path"))
        if self.remembers_choices:
            self.chosen[key] = field.left[0]
        return field.choice()

    def _clashing(self, request: Request, found: tuple[IndexEntry, ...]) -> list[tuple[IndexEntry, Refusal]]:
        """The recipes whose variations cannot be combined as asked; raises VariationError when that is true of all."""
        errors: list[tuple[IndexEntry, VariationError]] = []
        for entry in found:
            try:
                self.configure(self.source.recipe(entry), request)
            except VariationError as error:
                logger.debug("not using %s for '%s': %s", entry.alias, request.query.text, error)
                errors.append((entry, error))
            except RecipeError:
                pass  # it is reported when the recipe is chosen
        if len(errors) == len(found):
            raise errors[0][1]
        return [(entry, Refusal("variations clash", error.message)) for entry, error in errors]

    def _is_cached(self, recipe: IndexEntry, words: set[str]) -> bool:
        """Whether the recipe has a finished entry with all these tags."""
        return any(entry.is_complete and words <= set(entry.tags) for entry in self.store.entries_of(recipe.uid))

    def _help_words(self, entry: IndexEntry) -> set[str]:
        """The recipe's own ``tags_help``: a query with all these words means it and no other."""
        return set(str(self.source.recipe(entry).meta.get("tags_help") or "").replace(",", " ").split())


class _Field:
    """The recipes that are left to choose from, and why the others are not."""

    def __init__(self, fitting: tuple[IndexEntry, ...]) -> None:
        self.left = fitting
        self._rule: ChoiceRule = "only one matches"
        self._passed: list[tuple[IndexEntry, Refusal]] = []

    def narrow(self, kept: tuple[IndexEntry, ...], rule: ChoiceRule, why: Refusal) -> None:
        """Leaves those that a rule prefers, if it prefers any, and remembers it when that was a decision."""
        if kept and len(kept) < len(self.left):
            self._passed += [(entry, why) for entry in self.left if entry not in kept]
            self.left, self._rule = kept, rule

    def refuse(self, refused: Sequence[tuple[IndexEntry, Refusal]]) -> None:
        """Leaves out those whose variations cannot be combined."""
        for entry, why in refused:
            self.narrow(tuple(other for other in self.left if other != entry), "variations", why)

    def choice(self) -> Choice:
        """The first of those that are left."""
        return Choice(self.left[0], self._rule, tuple(self._passed))


def ask_which(text: str, found: tuple[IndexEntry, ...]) -> int:
    """Asks on the terminal which recipe is meant; raises Ambiguous without a valid answer."""
    from .console import pick  # here, because few calls ask

    aliases = [entry.alias for entry in found]
    names = [entry.alias if aliases.count(entry.alias) == 1 else f"{entry.repo_alias}:{entry.alias}" for entry in found]
    rows = [f"{name} ({','.join(sorted(entry.tags))})" for name, entry in zip(names, found, strict=True)]
    hint = f"choose one, such as {names[0]}, add a tag that only it has, or use the first with --quiet"
    return pick(f"several recipes match '{text}':", rows, hint=hint)


def may_matter(engine: Engine, configured: Configured, key: CacheKey, *, refresh: bool = False) -> bool:
    """Whether the tags that dynamic dependencies decide on make a difference: to which entry is reused, or to versions.

    Where they do not, the entry is made and all its dependencies run in their order, once.
    """
    if engine.guard or engine.requirements.knows(key):
        return True
    any_tags = with_derived_tags(key, ())
    entries = engine.store.entries_of(configured.recipe.id.uid, refresh=refresh)
    return not configured.request.options.new and any(not misfit(entry, any_tags) for entry in entries)


def usable_entry(
    engine: Engine,
    key: CacheKey,
    step: StepContext,
    run_dynamic: Callable[[Engine, StepContext], None],
    *,
    refresh: bool = False,
) -> CacheEntry | None:
    """The first entry that fits and is whole, in use from now on unless it is to be renewed.

    The others are reported with what is wrong; with ``refresh``, under the lock of ``key``, they are put away.
    """
    configured, store = step.configured, engine.store
    is_renewal = configured.request.options.renew
    for entry in engine.requirements.preferred(key, store.find(key, refresh=refresh)):
        if is_renewal and not keeps_identity(entry, key):
            continue
        trouble = store.problem(entry) or ("" if is_renewal else store.claim(entry))
        if not trouble and (step.recipe.path / VALIDATE_SCRIPT).is_file():
            run_dynamic(engine, step)
            trouble = engine.effects.reuse_problem(step, entry)
        if not trouble:
            return entry
        engine.tell_once(configured, "!", f"{configured.label}: not reusing {entry.path}: {trouble}")
        if refresh and entry.is_expired(time.time()):
            store.put_away(entry, trouble, key)
        elif refresh:
            with store.held(entry, key) as is_free:
                if is_free:
                    store.retire(entry, trouble)
    return None


def dependent_path(env: Mapping[str, Any], folder: Path) -> str:
    """The path outside the entry in ``folder`` on which it depends, when the recipe named one that exists."""
    path = next((str(env[key]) for key in DEPENDENT_PATH_KEYS if env.get(key)), "")
    return path if path and os.path.exists(path) and not Path(path).is_relative_to(folder) else ""
