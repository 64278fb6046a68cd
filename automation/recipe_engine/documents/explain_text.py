"""An explanation as text for people and as JSON for programs; docs/reference/explain.md describes both."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ..rules.secrets import hidden
from .explain import CacheAnswer, EnvRow, ExplainedChoice, Explanation, WordOrigin, decides
from .origins import Origin

FORMAT = 1
WIDTH = 100
OWN_KINDS = frozenset(["env", "default_env", "const", "--env or a flag", "flag or entry", "the version that holds"])
"""Sources whose keys are told one by one; what hooks, scripts, dependencies and entries give is told by giver."""
SHOWN_PLACES = 4
SHORT_VALUE = 60
"""Letters of a value in a list of keys; a key that is asked for is shown whole."""


def wrapped(text: str, indent: int, *, hanging: int = 2) -> Iterator[str]:
    """A text in lines of at most ``WIDTH`` letters; long words, such as paths, stay whole."""
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def explanation_lines(found: Explanation, *, is_asked_for_keys: bool) -> Iterator[str]:
    """The explanation of one step for a terminal."""
    yield from wrapped(f"explain: {found.label}", 0)
    yield from wrapped(f"in: {found.command}", 2)
    if len(found.chain) > 1:
        yield from wrapped(f"chain: {' -> '.join(found.chain)}", 2)
    yield from wrapped(f"asked for by: {found.asked_by}", 2)
    yield from wrapped(f"in this plan: {_action_text(found)}", 2)
    for text in found.waits_for:
        yield from wrapped(f"waits for: {text}", 2)
    if found.others:
        below = [chain.rpartition(" -> ")[0].rpartition(" -> ")[2] for chain in found.others[:SHOWN_PLACES]]
        text = f"stands at more places ({len(found.others)}), which --step=NAME#2 and so on explain: below "
        yield from wrapped(
            text + ", ".join(dict.fromkeys(below)) + (" ..." if len(found.others) > len(below) else ""), 2
        )
    for line in found.error.splitlines():
        yield from wrapped(line, 2)
    if found.choice:
        yield from _choice_lines(found.choice)
    yield from _variation_lines(found)
    if found.recipe:
        yield from ["", "version"]
        for bound in found.bounds:
            yield from wrapped(f"{bound.name} {bound.value}: {bound.source}", 2)
        if not found.bounds:
            yield "  any: nobody asks for one, and the recipe has no default"
    yield from _env_lines(found, is_asked_for_keys=is_asked_for_keys)
    if found.cache:
        yield from _cache_lines(found.cache)


def _action_text(found: Explanation) -> str:
    words = {"run": "runs", "reuse": "reused from the cache", "skip": "skipped", "fail": "would fail"}
    return words.get(found.action, found.action) + (f" ({found.reason})" if found.reason else "")


def _choice_lines(choice: ExplainedChoice) -> Iterator[str]:
    yield from ["", "recipe"]
    yield from wrapped(f"query: {choice.query}", 2)
    for row in choice.candidates:
        mark, reason = ("*", choice.reason) if row.verdict == "chosen" else ("-", row.reason)
        yield from wrapped(f"{mark} {row.alias}: {reason}", 2, hanging=4)
        if row.verdict == "chosen":
            yield from wrapped(row.path, 6)


def _variation_lines(found: Explanation) -> Iterator[str]:
    if not found.recipe:
        return
    yield from ["", "variations"]
    for row in found.variations:
        yield from wrapped(_variation_text(row), 2)
    for row in found.excluded:
        yield from wrapped(f"not {_variation_text(row)}", 2)
    if not found.variations and not found.excluded:
        yield "  none"


def _variation_text(row: WordOrigin) -> str:
    by = f" by {row.asked_by}" if row.asked_by else ""
    return f"_{row.name}: {row.reason}{by}"


def _env_lines(found: Explanation, *, is_asked_for_keys: bool) -> Iterator[str]:
    if not found.env and not found.recipe:
        return
    yield from ["", "env"]
    if is_asked_for_keys or not found.recipe:
        for row in found.env:
            sure = _sure(row)
            value = value_text(hidden(sure.value if sure else row.value, row.key), None)
            yield from wrapped(f"{row.key}{': ' + row.note if row.note else f' = {value}{_changer(row)}'}", 2)
            yield from _history_lines(row)
        return
    givers: dict[str, list[str]] = {}
    for row in found.env:
        sure = _sure(row)
        if sure and (sure.kind in OWN_KINDS or sure.kind.startswith("input")):
            rivals = [o for o in row.history if o != sure and o.effect not in ("same", "handed down", "may change")]
            more = f" ({len(rivals)} more in its history)" if rivals else ""
            value = value_text(hidden(sure.value, row.key), SHORT_VALUE)
            text = f"{row.key} = {value}: {source_text(sure)}{more}{_changer(row)}"
            yield from wrapped(text, 2, hanging=4)
        else:
            deciding = [origin for origin in row.history if decides(origin)]
            last = next((o for o in reversed(deciding) if o.kind in ("dependency", "cache entry")), deciding[-1])
            maybe = "may be set: " if last.effect.startswith("may") and last.kind != "dependency" else ""
            givers.setdefault(maybe + source_text(last._replace(detail="")), []).append(row.key)
    for source, keys in givers.items():
        yield from wrapped(f"{source}: {', '.join(keys)}", 2, hanging=4)
    text = f"{found.other_count} more keys, which it does not set itself; --env=KEY,KEY tells the history of keys"
    yield from wrapped(text, 2)


def _sure(row: EnvRow) -> Origin | None:
    """What gave the last value that is known before the run."""
    return next((o for o in reversed(row.history) if decides(o) and not o.effect.startswith("may")), None)


def _changer(row: EnvRow) -> str:
    """Who may still change a known value when the step runs, in words."""
    last = next((origin for origin in reversed(row.history) if decides(origin)), None)
    is_open = last is not None and last.effect == "may change" and _sure(row) is not None
    return f"; may be changed: {source_text(last._replace(detail=''))}" if last and is_open else ""


def _history_lines(row: EnvRow) -> Iterator[str]:
    step = ""
    sure = _sure(row)
    for origin in row.history:
        if origin.step != step:
            step = origin.step
            yield from wrapped(f"in {step}", 4)
        mark = "*" if origin is sure else " "
        value = value_text(hidden(origin.value, row.key), None)
        effect = f"{origin.effect}: " if origin.effect not in ("set", "handed down") else ""
        yield from wrapped(f"{mark} {source_text(origin)}: {effect}{value}", 6, hanging=4)


def source_text(origin: Origin) -> str:
    """Where a value comes from, in words."""
    text = f"handed down by {origin.where}" if origin.effect == "handed down" else origin.text
    if origin.kind == "dependency":
        text = f"given by the dependency {origin.where}"
    elif origin.kind == "cache entry":
        text = f"kept in the cache entry {origin.where}"
    return text + (f" (there: {origin.detail})" if origin.detail else "")


def value_text(value: Any, limit: int | None) -> str:
    """A value for people: texts in quotes, cut at ``limit`` letters."""
    text = repr(value)
    return text if limit is None or len(text) <= limit else text[: limit - 3] + "..."


def _cache_lines(answer: CacheAnswer) -> Iterator[str]:
    yield from ["", "cache"]
    yield from wrapped(answer.reason or "no entry is looked for", 2)
    for row in answer.entries:
        mark = "=" if row.fits else "-"
        version = f" {row.version}" if row.version else ""
        note = f" ({row.note})" if row.note else ""
        part = f"{row.part}: " if row.part else ""
        yield from wrapped(f"{mark} {row.uid}{version}: {part}{row.reason}{note}", 2, hanging=4)
    if answer.is_cached and not answer.entries:
        yield "  this recipe has no entry"


def explanation_json(found: Explanation) -> dict[str, Any]:
    """The explanation as plain values; every key is always there."""
    return {
        "format": FORMAT,
        "command": found.command,
        "step": {
            "label": found.label,
            "chain": list(found.chain),
            "recipe": found.recipe,
            "path": found.path,
            "action": found.action,
            "reason": found.reason,
            "asked_by": found.asked_by,
            "waits_for": list(found.waits_for),
            "others": list(found.others),
            "error": found.error,
        },
        "choice": _choice_json(found.choice),
        "variations": [item._asdict() for item in found.variations],
        "excluded_variations": [item._asdict() for item in found.excluded],
        "version": [item._asdict() for item in found.bounds],
        "env": [_env_json(item) for item in found.env],
        "other_env_count": found.other_count,
        "cache": _cache_json(found.cache),
    }


def _choice_json(choice: ExplainedChoice | None) -> dict[str, Any] | None:
    return {**choice._asdict(), "candidates": [row._asdict() for row in choice.candidates]} if choice else None


def _env_json(row: EnvRow) -> dict[str, Any]:
    history = [{**item._asdict(), "value": hidden(item.value, row.key)} for item in row.history]
    return {"key": row.key, "value": hidden(row.value, row.key), "note": row.note, "history": history}


def _cache_json(answer: CacheAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    entries = [{**row._asdict(), "tags": list(row.tags)} for row in answer.entries]
    return {"is_cached": answer.is_cached, "reason": answer.reason, "entries": entries}


def entry_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """The explanation of one cache entry (see ``explain_cache``) for a terminal."""
    yield from ["", f"entry {row['uid']}: {row['recipe']}{' ' + row['version'] if row['version'] else ''}"]
    yield from wrapped(row["path"], 2)
    made = f"made {row['created_utc'] or 'by CM'}"
    yield from wrapped(f"{made}, asked for as '{row['request']['tags']}'", 2)
    if row["request"]["chain"]:
        yield from wrapped(f"chain: {' -> '.join(row['request']['chain'])}", 2)
    yield from wrapped(f"state: {row['state']}", 2)
    yield from wrapped(f"recipe: {row['recipe_state']}", 2)
    for name in row["recipe_files_newer"]:
        yield f"    newer than the entry: {name}"
    for variation in row["variations"]:
        yield from wrapped(f"variation _{variation['name']}: {variation['reason'] or 'on'}", 2)
    for name, value in row["request"]["inputs"].items():
        yield from wrapped(f"input --{name}={value}", 2)
    yield from wrapped(f"tags: {', '.join(row['tags'])}", 2, hanging=4)
    intact = sum(1 for file in row["files"] if not file["problem"])
    yield f"  files: {len(row['files'])} declared, {intact} as they were made"
    for file in row["files"]:
        if file["problem"]:
            yield from wrapped(file["problem"], 4)
    if row["depends_on"]:
        yield from wrapped(f"depends on: {row['depends_on']}", 2)
    yield from wrapped(
        f"last use: {row['last_use_utc'] or 'never noted'}{'; in use now' if row['is_in_use'] else ''}", 2
    )
    for other in row["used_by"]:
        yield from wrapped(f"needed by: {other['uid']} ({other['recipe']}): {other['by']}", 2)
    yield f"  reached by: {row['command']}"
    yield from wrapped(row["command_note"], 4)
