"""Why a step is what it is, as frozen types: its recipe, variations, version, env and cache entry, each with origin.

Built from what a run on paper recorded (origins.py); nothing here acts. ``explain_text`` shows it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..rules.cachekey import misfits
from ..rules.conditions import is_glob, shown
from ..rules.model import CacheEntry, CacheKey, Configured, Request
from ..rules.query import TagQuery, nearest
from ..rules.select import Choice, ChoiceRule, IndexEntry, RecipeIndex, Refusal, Verdict, named, refusal
from ..rules.variations import ASKED_FOR
from .origins import Asked, Origin, StepTrace

NEAR_COUNT = 3
"""How many recipes are named that just one tag keeps from being candidates."""
NEAR_LIMIT = 10
"""When more recipes than this lack the same tag, it is what the query is about, and they are not near."""

Part = Literal["", "unfinished", "broken", "expired", "tags", "version", "variations", "inputs", "files"]


class Candidate(NamedTuple):
    """A recipe that was considered, and what spoke for or against it."""

    alias: str
    uid: str
    path: str
    sort: int
    verdict: Verdict | Literal["chosen", "lacks a tag"]
    reason: str


class ExplainedChoice(NamedTuple):
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
    """One part of the version that holds: ``version``, ``version_min`` ..."""

    name: str
    value: str
    source: str


class EnvRow(NamedTuple):
    """A key, what it holds at the end of the step, and how it came to that; a ``note`` tells why it holds nothing."""

    key: str
    value: Any
    history: tuple[Origin, ...]
    note: str = ""


class EntryRow(NamedTuple):
    """A cache entry of the recipe: whether it serves the step, else the first part that differs and how."""

    uid: str
    tags: tuple[str, ...]
    version: str
    fits: bool
    part: Part
    reason: str
    note: str = ""


class CacheAnswer(NamedTuple):
    """Whether the step is served from the cache, and why."""

    is_cached: bool
    reason: str
    entries: tuple[EntryRow, ...] = ()


class Explanation(NamedTuple):
    """All about one step. ``others`` are the places where steps of the same name stand."""

    command: str
    label: str
    chain: tuple[str, ...]
    action: str
    reason: str
    asked_by: str
    waits_for: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    recipe: str = ""
    path: str = ""
    choice: ExplainedChoice | None = None
    variations: tuple[WordOrigin, ...] = ()
    excluded: tuple[WordOrigin, ...] = ()
    bounds: tuple[Bound, ...] = ()
    env: tuple[EnvRow, ...] = ()
    other_count: int = 0
    cache: CacheAnswer | None = None
    error: str = ""


REASONS: Mapping[ChoiceRule, str] = {
    "only one fits": "the only recipe that fits",
    "name": "named by alias or uid",
    "own repository": "it is in the repository of the recipe that asks",
    "remembered": "the same query was answered by it before in this run",
    "variations": "the only one whose variations go together as asked",
    "cached": "it has a finished entry with these tags in the cache",
    "tags_help": "its tags_help is the query, word for word",
    "first by sort and path": "the first by sort and path, as --quiet takes",
    "picked on the terminal": "picked on the terminal",
}


def choice_of(index: RecipeIndex, request: Request, choice: Choice, asked: Asked) -> ExplainedChoice:
    """What decided for a recipe, with every recipe that came near."""
    query = request.query
    considered = named(request.alias, index) if request.alias else index.by_tags(query.all_of, ())
    passed_over = {entry.path: why for entry, why in choice.passed_over}
    rows = []
    for entry in considered:
        why = passed_over.get(entry.path) or refusal(query, entry) or Refusal("fits", "")
        row = _candidate(entry, why.verdict, why.reason)
        rows.append(row._replace(verdict="chosen", reason="") if entry.path == choice.entry.path else row)
    source = asked.text if asked.dependency is None else f"{asked.text} ({asked.entry.declared_by})"
    text = query.text or request.alias
    return ExplainedChoice(text, source, choice.rule, REASONS[choice.rule], (*rows, *_near(index, query, rows)))


def _candidate(entry: IndexEntry, verdict: Verdict | Literal["lacks a tag"], reason: str) -> Candidate:
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
                yield _candidate(entry, "lacks a tag", f"lacks the tag '{tag}'")


def word_source(asked: Asked, word: str) -> str:
    """Who put ``word`` into the query: the command line, or which part of which dependency entry."""
    keys = [key for found, key in asked.words if found == word]
    if asked.dependency is None or not keys:
        return asked.text
    kind, _, key = keys[0].partition(" ")
    if kind == "tags":
        return f"tags of {asked.text} ({asked.entry.of_word(word)})"
    text = f"{keys[0]} of {asked.text}"
    history = asked.parent.history(key) if asked.parent and key else ()
    return f"{text}; {key} is from {last_source(history)}" if history else text


def decides(origin: Origin) -> bool:
    """Whether an entry of a history gave the key its value, for a while at least."""
    return origin.effect not in ("same", "not taken", "handed down")


def last_source(history: Sequence[Origin]) -> str:
    """Where a value comes from: what changed it last, in words; through dependencies, the step that made it."""
    deciding = [origin for origin in history if decides(origin)]
    if not deciding:
        return history[-1].text if history else ""
    last = deciding[-1]
    if last.kind == "dependency":
        return last.detail or last.where
    alias = last.step.partition(",")[0]
    return last.text if alias in last.text else f"{last.text} of {alias}"


def variations_of(configured: Configured, asked: Asked) -> tuple[WordOrigin, ...]:
    """The variations that are on, in the order in which they apply."""
    return tuple(
        WordOrigin(
            applied.name, applied.reason, word_source(asked, "_" + applied.name) if _is_asked(applied.reason) else ""
        )
        for applied in configured.applied
    )


def _is_asked(reason: str) -> bool:
    return reason == ASKED_FOR


def excluded_of(configured: Configured, asked: Asked) -> tuple[WordOrigin, ...]:
    """The variations that the query rules out; the reason tells what that changed."""
    rows = []
    for name in configured.request.query.excluded_variations:
        variation = configured.recipe.variations.get(name)
        group = variation.group if variation else ""
        chosen = [a.name for a in configured.applied if group and _group(configured, a.name) == group]
        reason = "excluded"
        if variation and variation.is_default:
            reason = f"excluded: it would be the default of group '{group}'" + (f", now _{chosen[0]}" if chosen else "")
        words = [word for word in (f"-_{name}", f"_-{name}") if any(word == found for found, _ in asked.words)]
        rows.append(WordOrigin(name, reason, word_source(asked, words[0] if words else "")))
    return tuple(rows)


def _group(configured: Configured, name: str) -> str:
    declared = configured.recipe.variations.get(name)
    return declared.group if declared else ""


BOUNDS = (
    ("version", "exact", "VERSION"),
    ("version_min", "minimum", "VERSION_MIN"),
    ("version_max", "maximum", "VERSION_MAX"),
    ("version_max_usable", "maximum_usable", "VERSION_MAX_USABLE"),
)


def bounds_of(first: Configured, last: Configured, trace: StepTrace) -> tuple[Bound, ...]:
    """The parts of the version: as configured ``first``, and as it holds ``last``, when the step is about to run."""
    found = []
    for name, field, key in BOUNDS:
        value = str(getattr(last.version, field))
        if value:
            before = str(getattr(first.version, field))
            source = _default_source(first, trace) if not before else _bound_source(name, field, key, (first, trace))
            found.append(Bound(name, str(shown(value)), source))
    return tuple(found)


def _default_source(first: Configured, trace: StepTrace) -> str:
    default = first.layer.default_version
    by = trace.default_version_by or "recipe"
    moved = first.version.clamp(default) != default
    return f"default_version of {by}" + (f", moved from {default} into the bounds" if moved else "")


def _bound_source(name: str, field: str, key: str, step: tuple[Configured, StepTrace]) -> str:
    configured, trace = step
    asked = trace.asked
    if getattr(configured.request.version, field):
        if trace.is_narrowed:
            return f"what suits all steps of this run that need the same thing; this one: {asked.text}"
        return asked.text if asked.dependency is None else f"{asked.text} ({asked.entry.of_key(name)})"
    env_key = configured.recipe.prefix + key
    history = [origin for origin in trace.history(env_key) if origin.kind != "the version that holds"]
    return f"{env_key}: {last_source(history)}" if history else f"{name} of recipe"


def env_rows(trace: StepTrace, patterns: Sequence[str]) -> tuple[EnvRow, ...]:
    """The keys that fit ``patterns`` (names or globs); without any, those that the step itself decides."""
    if not patterns:
        return tuple(_row(trace, key) for key in sorted(trace.items) if _is_decided_here(trace, key))
    rows = []
    for pattern in patterns:
        known = sorted({*trace.items, *trace.inherited})
        keys = [key for key in known if fnmatch.fnmatchcase(key, pattern)]
        rows += [_row(trace, key) for key in keys] or [_absent(trace, pattern)]
    return tuple({row.key: row for row in rows}.values())


def _is_decided_here(trace: StepTrace, key: str) -> bool:
    deciding = [origin for origin in trace.items[key] if decides(origin) and origin.kind != "engine"]
    is_own = any(origin.effect != "may change" for origin in deciding)
    return is_own and not key.startswith(("CM_TMP_", "MLC_TMP_")) and not is_glob(key)


def _row(trace: StepTrace, key: str) -> EnvRow:
    note = "" if key in trace.last else _absent(trace, key).note
    return EnvRow(key, shown(trace.last.get(key, "")), shown_history(trace.history(key)), note)


def shown_history(history: Sequence[Origin]) -> tuple[Origin, ...]:
    """A history with what is not known yet in words."""
    return tuple(origin._replace(value=shown(origin.value)) for origin in history)


def _absent(trace: StepTrace, key: str) -> EnvRow:
    parent = trace.asked.parent
    source = trace.unknown.source(key)
    if source:
        return EnvRow(key, "", (), f"not known before the run: {source} may set it")
    if parent is not None and key in parent.last:
        note = f"not set here: {parent.label} has it, but does not hand it down (a local key, or not filled in yet)"
        return EnvRow(key, "", shown_history(parent.history(key)), note)
    known = nearest(key, trace.last, 3, 0.75)
    return EnvRow(key, "", (), "nobody sets it" + (f"; there is {', '.join(known)}" if known else ""))


def entry_row(entry: CacheEntry, key: CacheKey, problem: str, is_expired: bool) -> EntryRow:
    """Whether an entry serves a step; ``problem`` is what the store has against its files, or empty."""
    if not entry.is_complete:
        return _entry(entry, "broken" if entry.retired else "unfinished", entry.retired or "it was never finished")
    found = list(misfits(entry, key))
    if found:
        return _entry(entry, found[0][0], "; ".join(str(shown(reason)) for _, reason in found))
    if problem:
        return _entry(entry, "expired" if is_expired else "files", problem)
    return _entry(entry, "", "fits")


def _entry(entry: CacheEntry, part: Part, reason: str) -> EntryRow:
    return EntryRow(entry.uid, entry.tags, entry.version, not part, part, reason)
