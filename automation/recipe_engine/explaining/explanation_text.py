"""An explanation as text for people; docs/reference/explain.md describes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..documents.console_text import wrapped
from .explanation import CacheAnswer, Explanation, KeyHistory, WordOrigin
from .origins import Origin

ACTIONS = {"run": "runs", "reuse": "reused from the cache", "skip": "skipped", "fail": "would fail"}
OWN_KINDS = frozenset(["env", "default_env", "const", "--env or a flag", "flag or entry", "the version that holds"])
"""Sources whose keys are printed one by one; what hooks, scripts, dependencies and entries give is printed by giver."""
SHOWN_PLACES = 4
SHORT_VALUE = 60
"""Letters of a value in a list of keys; a key that is asked for is shown whole."""


def explanation_lines(found: Explanation, *, is_asked_for_keys: bool) -> Iterator[str]:
    """The explanation of one step for a terminal."""
    env = _env_lines(found, is_asked_for_keys)
    return wrapped(*_step_lines(found), *_recipe_lines(found), *env, *_cache_lines(found.cache))


def _step_lines(found: Explanation) -> Iterator[str]:
    step = found.step
    yield f"explain: {step.label}"
    yield f"  in: {found.command}"
    if len(step.chain) > 1:
        yield f"  chain: {' -> '.join(step.chain)}"
    yield f"  asked for by: {step.asked_by}"
    yield f"  in this plan: {ACTIONS[step.action]}" + (f" ({step.reason})" if step.reason else "")
    yield from (f"  waits for: {text}" for text in step.waits_for)
    if step.others:
        below = [chain.rpartition(" -> ")[0].rpartition(" -> ")[2] for chain in step.others[:SHOWN_PLACES]]
        text = ", ".join(dict.fromkeys(below)) + (" ..." if len(step.others) > len(below) else "")
        yield f"  further places ({len(step.others)}), which --step=NAME#2 and so on explain: below {text}"
    yield from (f"  {line}" for line in step.error.splitlines())


def _recipe_lines(found: Explanation) -> Iterator[str]:
    if found.choice:
        yield from ["", "recipe", f"  query: {found.choice.query}"]
        for row in found.choice.candidates:
            is_chosen = row.verdict == "chosen"
            yield f"  * {row.alias}: {found.choice.reason}" if is_chosen else f"  - {row.alias}: {row.reason}"
            if is_chosen:
                yield f"      {row.path}"
    if found.step.recipe:
        yield from ["", "variations"]
        yield from (f"  {_variation_text(row)}" for row in found.variations)
        yield from (f"  not {_variation_text(row)}" for row in found.excluded_variations)
        if not found.variations and not found.excluded_variations:
            yield "  none"
        yield from ["", "version"]
        yield from (f"  {bound.name} {bound.value}: {bound.source}" for bound in found.version)
        if not found.version:
            yield "  any: no step asks for one, and the recipe has no default"


def _variation_text(row: WordOrigin) -> str:
    return f"_{row.name}: {row.reason}" + (f" by {row.asked_by}" if row.asked_by else "")


def _env_lines(found: Explanation, is_asked_for_keys: bool) -> Iterator[str]:
    if not found.env and not found.step.recipe:
        return
    yield from ["", "env"]
    if is_asked_for_keys or not found.step.recipe:
        for row in found.env:
            yield from _history_lines(row)
        return
    givers: dict[str, list[str]] = {}
    for row in found.env:
        sure = row.sure
        if sure and (sure.kind in OWN_KINDS or sure.kind.startswith("input")):
            rivals = [o for o in row.history if o != sure and o.effect not in ("same", "handed down", "may change")]
            more = f" ({len(rivals)} more in its history)" if rivals else ""
            yield f"  {row.key} = {_value_text(sure.value, SHORT_VALUE)}: {source_text(sure)}{more}{_changer(row)}"
        else:
            last = next((o for o in row.deciding if o.kind in ("dependency", "cache entry")), row.deciding[0])
            maybe = "may be set: " if last.is_open and last.kind != "dependency" else ""
            givers.setdefault(maybe + source_text(last._replace(detail="")), []).append(row.key)
    yield from (f"  {source}: {', '.join(keys)}" for source, keys in givers.items())
    yield f"  {found.other_env_count} more keys, which it does not set itself; --env=KEY,KEY shows the history of keys"


def _changer(row: KeyHistory) -> str:
    """What may still change a known value when the step runs, in words."""
    last = row.deciding[0] if row.deciding else None
    is_open = last is not None and last.effect == "may change" and row.sure is not None
    return f"; may be changed: {source_text(last._replace(detail=''))}" if last and is_open else ""


def _history_lines(row: KeyHistory) -> Iterator[str]:
    sure, step = row.sure, ""
    value = _value_text(sure.value if sure else row.value)
    yield f"  {row.key}: {row.note}" if row.note else f"  {row.key} = {value}{_changer(row)}"
    for origin in row.history:
        if origin.step != step:
            step = origin.step
            yield f"    in {step}"
        mark = "*" if origin is sure else " "
        effect = f"{origin.effect}: " if origin.effect not in ("set", "handed down") else ""
        yield f"      {mark} {source_text(origin)}: {effect}{_value_text(origin.value)}"


def source_text(origin: Origin) -> str:
    """Where a value comes from, in words."""
    text = f"handed down by {origin.where}" if origin.effect == "handed down" else origin.text
    if origin.kind == "dependency":
        text = f"given by the dependency {origin.where}"
    elif origin.kind == "cache entry":
        text = f"kept in the cache entry {origin.where}"
    return text + (f" (there: {origin.detail})" if origin.detail else "")


def _value_text(value: Any, limit: int | None = None) -> str:
    text = repr(value)
    return text if limit is None or len(text) <= limit else text[: limit - 3] + "..."


def _cache_lines(answer: CacheAnswer | None) -> Iterator[str]:
    if answer is None:
        return
    yield from ["", "cache", f"  {answer.reason or 'no entry is looked for'}"]
    for row in answer.entries:
        version = f" {row.version}" if row.version else ""
        note = f" ({row.note})" if row.note else ""
        part = f"{row.part}: " if row.part else ""
        yield f"  {'=' if row.fits else '-'} {row.uid}{version}: {part}{row.reason}{note}"
    if answer.is_cached and not answer.entries:
        yield "  this recipe has no entry"
