"""Why a step is what it is: its recipe, variations, version, env and cache entry, each with its origin.

``ExplainEngine`` carries a request out on paper, as a plan does, and records for each step who decided what
(origins.py); ``explanation_of`` puts that together. The names of all fields are those of the answer's JSON.
"""

import fnmatch
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..planning.plan import PlannedStep, maker_note
from ..planning.planned import PlannedEngine
from ..planning.planned_step import PlannedContext
from ..rules.cachekey import Part, misfits
from ..rules.conditions import Verdict, shown
from ..rules.configure import ASKED_FOR
from ..rules.deps import tag_origins
from ..rules.env import is_glob
from ..rules.model import PHASES, CacheEntry, CacheKey, Configured, Dependency, Phase, Recipe, Request, StepEvent
from ..rules.query import (
    BOUND_KEYS,
    Choice,
    ChoiceRule,
    IndexEntry,
    RecipeIndex,
    Refusal,
    TagQuery,
    named,
    nearest,
    refusal,
)
from ..rules.query import Verdict as RecipeVerdict
from ..rules.secrets import hidden
from ..running.context import StepContext
from ..running.engine import Engine
from .origins import Asker, EntryOrigin, Origin, StepTrace, last_source

NEAR_COUNT = 3
"""How many recipes are named that just one tag keeps from being candidates."""
NEAR_LIMIT = 10
"""When more recipes than this lack the same tag, it is what the query is about, and they are not near."""
FORMAT = 1


# --- what is recorded ---


class ExplainEngine(PlannedEngine):
    """A planned engine that gives each request a trace of its step (``trace_of``).

    ``skipped`` has, for each dependency that a condition keeps from running, the keys of its conditions as they were.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.planned_store.on_find = self._keep_key
        self.skipped: dict[PlannedStep, dict[str, tuple[Any, tuple[Origin, ...]]]] = {}
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


# --- the answer ---


class Candidate(NamedTuple):
    """A recipe that was considered, and what spoke for or against it."""

    alias: str
    uid: str
    path: str
    sort: int
    verdict: RecipeVerdict | Literal["chosen", "lacks a tag"]
    reason: str


class RecipeChoice(NamedTuple):
    """Why this recipe answers the query and not another."""

    query: str
    asked_by: str
    decided_by: ChoiceRule
    reason: str
    candidates: tuple[Candidate, ...]


class WordOrigin(NamedTuple):
    """A variation and why it is on or ruled out; ``asked_by`` names who put it into the query."""

    name: str
    reason: str
    asked_by: str = ""


class Bound(NamedTuple):
    """One part of the version in effect: ``version``, ``version_min`` ..."""

    name: str
    value: str
    source: str


class KeyHistory(NamedTuple):
    """A key, what it holds at the end of the step, and how it came to that; a ``note`` says why it holds nothing."""

    key: str
    value: Any
    note: str
    history: tuple[Origin, ...]

    @property
    def deciding(self) -> list[Origin]:
        """What gave the key its values, the last one first."""
        return [origin for origin in reversed(self.history) if origin.decides]

    @property
    def sure(self) -> Origin | None:
        """What gave the last value that is known before the run."""
        return next((origin for origin in self.deciding if not origin.is_open), None)


EntryPart = Part | Literal["", "broken", "expired", "files"]


class EntryRow(NamedTuple):
    """A cache entry of the recipe: whether it serves the step, else the first part that differs and how."""

    uid: str
    tags: tuple[str, ...]
    version: str
    fits: bool
    part: EntryPart
    reason: str
    note: str


class CacheAnswer(NamedTuple):
    """Whether the step is served from the cache, and why."""

    is_cached: bool
    reason: str
    entries: tuple[EntryRow, ...] = ()


class StepFacts(NamedTuple):
    """The step itself. ``others`` are the chains of further steps of the same name."""

    label: str
    chain: tuple[str, ...]
    recipe: str
    path: str
    action: str
    reason: str
    asked_by: str
    waits_for: tuple[str, ...]
    others: tuple[str, ...]
    error: str


class Explanation(NamedTuple):
    """All about one step; what has no recipe has only ``step`` and ``env``."""

    format: int
    command: str
    step: StepFacts
    choice: RecipeChoice | None = None
    variations: tuple[WordOrigin, ...] = ()
    excluded_variations: tuple[WordOrigin, ...] = ()
    version: tuple[Bound, ...] = ()
    env: tuple[KeyHistory, ...] = ()
    other_env_count: int = 0
    cache: CacheAnswer | None = None


def explanation_of(
    step: PlannedStep, engine: ExplainEngine, patterns: Sequence[str], command: str, others: Sequence[PlannedStep]
) -> Explanation:
    """All about one step of the plan of ``command``; of its env keys, those that fit ``patterns`` (names or globs)."""
    configured, trace = step.configured, trace_of(step.configured) if step.configured else None
    facts = StepFacts(
        label=step.label,
        chain=step.chain,
        recipe=configured.recipe.id.text if configured else "",
        path=str(configured.recipe.path) if configured else "",
        action=step.action,
        reason=step.reason,
        asked_by=_asked_by(trace.asker) if trace else " -> ".join(step.chain[-2:-1]) or "command line",
        waits_for=step.waits_for,
        others=tuple(" -> ".join(other.chain) for other in others),
        error=step.error.describe() if step.error else "",
    )
    if configured is None or trace is None or trace.configured is None:
        keys = engine.skipped.get(step, {}).items()
        rows = [_row(key, value, history, "" if history else "no step sets it") for key, (value, history) in keys]
        return Explanation(FORMAT, command, facts, env=tuple(rows))
    own, first = env_rows(trace, ()), trace.configured
    bounds = enumerate(zip(BOUND_KEYS, configured.version.bounds, strict=True))
    return Explanation(
        format=FORMAT,
        command=command,
        step=facts,
        choice=_choice(engine.source.index, first, trace.choice, trace.asker) if trace.choice else None,
        variations=_variations(configured, trace.asker),
        excluded_variations=_excluded(configured, trace.asker),
        version=tuple(Bound(key, str(shown(now)), _bound_source(at, first, trace)) for at, (key, now) in bounds if now),
        env=env_rows(trace, patterns) if patterns else own,
        other_env_count=len(set(trace.last) - {row.key for row in own}),
        cache=_cache(step, first, trace, engine),
    )


def _asked_by(asker: Asker) -> str:
    """Who asks for a step, who declared and changed that dependency, and the conditions that let it run."""
    if asker.dependency is None:
        return asker.text
    parts = [f"declared in {asker.entry.declared_by}"]
    parts += [f"{change.key} by {change.by}" for change in asker.entry.changes]
    parts += [condition.text for condition in asker.dependency.conditions]
    return f"{asker.text} ({'; '.join(dict.fromkeys(parts))})"


# --- the recipe ---

REASONS: Mapping[ChoiceRule, str] = {
    "only one matches": "the only recipe that matches",
    "name": "selected by alias or uid",
    "own repository": "it is in the repository of the requesting recipe",
    "remembered": "it was chosen for the same query earlier in this run",
    "variations": "the only one that accepts the requested variations together",
    "cached": "it has a finished entry with these tags in the cache",
    "tags_help": "the query has all words of its tags_help",
    "first by sort and path": "the first by sort and path (--quiet)",
    "picked on the terminal": "picked on the terminal",
}


def _choice(index: RecipeIndex, configured: Configured, choice: Choice, asker: Asker) -> RecipeChoice:
    """What decided for a recipe, with every recipe that came near."""
    query, alias = configured.request.query, configured.request.alias
    considered = named(alias, index) if alias else index.by_tags(query.all_of, ())
    verdicts: dict[IndexEntry, Refusal] = dict(choice.passed_over)
    rows = []
    for entry in considered:
        why = verdicts.get(entry) or refusal(query, entry) or Refusal("fits", "")
        is_chosen = entry.path == choice.entry.path
        rows.append(_candidate(entry, "chosen", "") if is_chosen else _candidate(entry, why.verdict, why.reason))
    asked_by = asker.text if asker.dependency is None else f"{asker.text} ({asker.entry.declared_by})"
    candidates = (*rows, *_near(index, query, rows))
    return RecipeChoice(query.text or alias, asked_by, choice.rule, REASONS[choice.rule], candidates)


def _candidate(entry: IndexEntry, verdict: RecipeVerdict | Literal["chosen", "lacks a tag"], reason: str) -> Candidate:
    return Candidate(entry.alias, entry.uid, str(entry.path), entry.sort, verdict, reason)


def _near(index: RecipeIndex, query: TagQuery, rows: Sequence[Candidate]) -> Iterator[Candidate]:
    """Recipes that have all of at least three tags but one, at most ``NEAR_COUNT``."""
    known = {row.path for row in rows}
    for tag in query.all_of if len(query.all_of) > 2 else ():
        others = index.by_tags([word for word in query.all_of if word != tag], ())
        for entry in others if len(others) <= NEAR_LIMIT else ():
            if len(known) >= len(rows) + NEAR_COUNT:
                return
            if str(entry.path) not in known:
                known.add(str(entry.path))
                yield _candidate(entry, "lacks a tag", f"has no tag '{tag}'")


# --- variations and version ---


def _word_source(asker: Asker, *words: str) -> str:
    """Who put one of ``words`` into the query: the command line, or which part of which dependency entry."""
    word, origin = next((row for row in asker.words if row[0] in words), ("", ""))
    if asker.dependency is None or not origin:
        return asker.text
    kind, _, key = origin.partition(" ")
    if kind == "tags":
        return f"tags of {asker.text} ({asker.entry.of_word(word)})"
    history = asker.parent.history(key) if asker.parent and key else ()
    return f"{origin} of {asker.text}" + (f", and {key} is from {last_source(history)}" if history else "")


def _variations(configured: Configured, asker: Asker) -> tuple[WordOrigin, ...]:
    """The variations that are on, in the order in which they apply."""
    return tuple(
        WordOrigin(row.name, row.reason, _word_source(asker, f"_{row.name}") if row.reason == ASKED_FOR else "")
        for row in configured.applied
    )


def _excluded(configured: Configured, asker: Asker) -> tuple[WordOrigin, ...]:
    """The variations that the query rules out; the reason says what that changed."""
    declared = configured.recipe.variations
    groups = {item.name: declared[item.name].group for item in configured.applied if item.name in declared}
    rows = []
    for name in configured.request.query.excluded_variations:
        variation = declared.get(name)
        reason = "excluded"
        if variation and variation.is_default:
            chosen = [other for other, group in groups.items() if group and group == variation.group]
            now = f", now _{chosen[0]}" if chosen else ""
            reason = f"excluded: it would be the default of group '{variation.group}'{now}"
        rows.append(WordOrigin(name, reason, _word_source(asker, f"-_{name}", f"_-{name}")))
    return tuple(rows)


def _bound_source(place: int, first: Configured, trace: StepTrace) -> str:
    """Where one part of the version comes from; ``first`` is the step as configured, without its default version."""
    name = BOUND_KEYS[place]
    if not first.version.bounds[place]:
        default = first.layer.default_version
        moved = "" if first.version.clamp(default) == default else f", moved from {default} into the bounds"
        return f"default_version of {trace.default_version_by or 'recipe'}{moved}"
    if first.request.version.bounds[place] and trace.is_narrowed:
        return f"what satisfies all steps of this run that need the same artifact, this one: {trace.asker.text}"
    if first.request.version.bounds[place]:
        return trace.asker.with_part(name)
    env_key = first.recipe.prefix + name.upper()
    history = [origin for origin in trace.history(env_key) if origin.kind != "the version in effect"]
    return f"{env_key}: {last_source(history)}" if history else f"{name} of recipe"


# --- env ---


def env_rows(trace: StepTrace, patterns: Sequence[str]) -> tuple[KeyHistory, ...]:
    """The keys that fit ``patterns`` (names or globs); without any, those that the step itself decides."""
    if not patterns:
        return tuple(_known_row(trace, key) for key in sorted(trace.items) if _is_decided_here(trace, key))
    known = sorted({*trace.items, *trace.inherited})
    rows: dict[str, KeyHistory] = {}
    for pattern in patterns:
        keys = [key for key in known if fnmatch.fnmatchcase(key, pattern)]
        rows.update({key: _known_row(trace, key) for key in keys} or {pattern: _absent_row(trace, pattern)})
    return tuple(rows.values())


def _is_decided_here(trace: StepTrace, key: str) -> bool:
    deciding = [origin for origin in trace.items[key] if origin.decides and origin.kind != "engine"]
    is_own = any(origin.effect != "may change" for origin in deciding)
    return is_own and not key.startswith(("CM_TMP_", "MLC_TMP_")) and not is_glob(key)


def _row(key: str, value: Any, history: Sequence[Origin], note: str) -> KeyHistory:
    """A row with what is not known yet in words, and without secrets."""
    origins = tuple(origin._replace(value=hidden(shown(origin.value), key)) for origin in history)
    return KeyHistory(key, hidden(shown(value), key), note, origins)


def _known_row(trace: StepTrace, key: str) -> KeyHistory:
    note = "" if key in trace.last else _absent_row(trace, key).note
    return _row(key, trace.last.get(key, ""), trace.history(key), note)


def _absent_row(trace: StepTrace, key: str) -> KeyHistory:
    parent, source = trace.asker.parent, trace.unknown.source(key)
    if source:
        return _row(key, "", (), f"not known before the run: {source} may set it")
    if parent is not None and key in parent.last:
        note = f"not set here: {parent.label} has it, but does not pass it down (a local key, or not filled in yet)"
        return _row(key, "", parent.history(key), note)
    known = nearest(key, trace.last, 3, 0.75)
    return _row(key, "", (), "no step sets it" + (f", but there is {', '.join(known)}" if known else ""))


# --- the cache ---


def _cache(step: PlannedStep, first: Configured, trace: StepTrace, engine: ExplainEngine) -> CacheAnswer:
    """Whether the step is served from the cache, and why; the entries that fit come first."""
    options = first.request.options
    is_forced = first.recipe.can_force_cache and options.force_cache
    if not (first.is_cached or is_forced):
        return CacheAnswer(False, "the recipe does not keep its result (no 'cache: true'), so it runs each time")
    names = ("fake_run", "new", "renew") if is_forced else ("skip_cache", "fake_run", "new", "renew")
    flags = [f"--{name} prevents reuse" for name in names if getattr(options, name)]
    reason = (*flags, step.reason, "served from the cache" if step.action == "reuse" else "")
    rows = [_entry_row(entry, trace.key, first, engine) for entry in trace.found if trace.key]
    rows.sort(key=lambda row: (not row.fits, row.part, row.uid))
    return CacheAnswer(True, next(filter(None, reason), ""), tuple(rows))


def _entry_row(entry: CacheEntry, key: CacheKey, first: Configured, engine: ExplainEngine) -> EntryRow:
    part: EntryPart = ""
    reason = "fits"
    differing = list(misfits(entry, key))
    if not entry.is_complete:
        part, reason = "broken" if entry.retired else "unfinished", entry.retired or "it was never finished"
    elif differing:
        part, reason = differing[0][0], "; ".join(str(shown(text)) for _, text in differing)
    elif problem := engine.store.problem(entry):
        part, reason = "expired" if entry.is_expired(time.time()) else "files", problem
    note = maker_note(engine.source, first.recipe, entry)
    return EntryRow(entry.uid, entry.tags, entry.version, not part, part, reason, note)
