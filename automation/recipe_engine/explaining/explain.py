"""``cm explain script``: why a step of a run would be what it is; ``cm explain cache``: how an entry came to be.

Nothing is run. docs/reference/explain.md describes both answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..actions.adapter import Home, show
from ..actions.cache_actions import find_entries, nothing_found, state_of
from ..actions.run import new_engine, parse_request
from ..disk.digests import recipe_files
from ..disk.entries import details_of, file_problem
from ..disk.files import utc_seconds, utc_text
from ..disk.locks import is_in_use, last_use_s
from ..disk.store import Store, dependencies
from ..documents.console_text import plain, wrapped
from ..planning.plan import PlannedStep
from ..planning.plan_action import make_plan, name_command_in_errors
from ..rules.amounts import counted, whole_number
from ..rules.cachekey import cache_key, misfit
from ..rules.env import texts_of
from ..rules.errors import MetaError, RecipeError, RequestError
from ..rules.inputs import ACTION_FLAGS
from ..rules.model import CacheEntry, EntryDetails, Recipe
from ..rules.query import BOUND_KEYS, candidates, nearest, split_words
from ..rules.rerun import command_line
from ..rules.secrets import hidden, learn, without_secrets
from ..running.engine import Engine
from .explanation import (
    FORMAT,
    CacheAnswer,
    ExplainEngine,
    Explanation,
    KeyHistory,
    WordOrigin,
    explanation_of,
    trace_of,
)
from .origins import Origin


def explain_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm explain script``; raises RequestError for a step that the plan does not have."""
    inputs, patterns = _without_own_flags(i)
    request = parse_request(inputs)
    name, number = _step_flag(str(i.get("step") or ""))
    engine = ExplainEngine(new_engine(home, None))
    plan = make_plan(engine, request, engine)
    name_command_in_errors(plan, i)
    steps = [step for _, step in plan.root.walk()]
    step, others = _find(steps, name, number)
    found = explanation_of(step, engine, patterns, plan.command, others)
    for configured in (step.configured for step in steps if step.configured):
        learn(configured.request.inputs)
        for key, origins in trace_of(configured).items.items():  # also a secret that another value replaced
            learn([origin.value for origin in origins], key)
    found = hidden(found)
    show(i, *explanation_lines(found, is_asked_for_keys=bool(patterns)))
    return {"return": 0, "explanation": plain(found)}


def _without_own_flags(i: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The input of the run that is explained, and the env keys that are asked for.

    ``--env=KEY,KEY`` is a text; ``--env.KEY=VALUE`` gives the run a value and makes ``env`` a mapping.
    """
    inputs = {key: value for key, value in i.items() if key not in ACTION_FLAGS["explain"]}
    if i.get("keys") is True:
        raise RequestError("--keys has no value", hint="name env keys or patterns of them: --keys=CM_PATH,CM_TMP_*")
    asked = texts_of(i.get("keys"))
    if isinstance(i.get("env"), str | list):
        asked += texts_of(inputs.pop("env"))
    return inputs, split_words(asked)


def _step_flag(text: str) -> tuple[str, int]:
    """The name and the number (from 1) of ``NAME`` or ``NAME#NUMBER``."""
    name, mark, digits = text.rpartition("#")
    number = whole_number(digits) if mark else None
    if number == 0:
        raise RequestError(f"--step={text}: places are counted from 1")
    return (text, 1) if number is None else (name, number)


def _find(steps: list[PlannedStep], name: str, number: int) -> tuple[PlannedStep, list[PlannedStep]]:
    """The step asked for, and the others of that name (a label, or a recipe's alias or uid); skipped ones come last."""
    found = [step for step in steps if name in step.names] if name else steps[:1]
    found.sort(key=lambda step: step.action == "skip")
    if not found:
        raise _no_such_step(name, steps)
    if number > len(found):
        message = f"--step={name}#{number}: the plan has {counted(len(found), 'step')} of this name"
        raise RequestError(message, hint=f"--step={name}#{len(found)}")
    return found.pop(number - 1), found


def _no_such_step(name: str, steps: list[PlannedStep]) -> RequestError:
    aliases = [step.recipe.alias for step in steps if step.recipe]
    labels = list(dict.fromkeys([*(step.label for step in steps), *aliases]))
    close = nearest(name, labels, 5, 0.3) or [label for label in labels if name in label][:5]
    hint = f"the nearest are: {', '.join(close)}" if close else f"its steps are: {', '.join(labels[:20])}"
    if steps[0].action == "reuse":
        hint += f". {steps[0].label} is reused, so its dependencies are not planned: --new plans them"
    return RequestError(f"the plan has no step '{name}'", hint=hint)


# --- its text ---

ACTIONS = {"run": "runs", "reuse": "reused", "skip": "skipped", "fail": "would fail"}
OWN_KINDS = frozenset(["env", "default_env", "const", "--env or a flag", "flag or entry", "the version in effect"])
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
    yield f"  requested by: {step.asked_by}"
    yield f"  in this plan: {ACTIONS[step.action]}" + (f" ({step.reason})" if step.reason else "")
    yield from (f"  waits for: {text}" for text in step.waits_for)
    if step.others:
        below = [chain.rpartition(" -> ")[0].rpartition(" -> ")[2] for chain in step.others[:SHOWN_PLACES]]
        text = ", ".join(dict.fromkeys(below)) + (" ..." if len(step.others) > len(below) else "")
        yield f"  further places ({len(step.others)}), explained by --step=NAME#2 and so on: below {text}"
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
            yield "  any: no step requires one, and the recipe has no default"


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
            maybe = "may set: " if last.is_open and last.kind != "dependency" else ""
            givers.setdefault(maybe + source_text(last._replace(detail="")), []).append(row.key)
    yield from (f"  {source}: {', '.join(keys)}" for source, keys in givers.items())
    more = counted(found.other_env_count, "more key")
    yield f"  {more}, which it does not set itself. --env=KEY,KEY shows the history of keys"


def _changer(row: KeyHistory) -> str:
    """What may still change a known value when the step runs, in words."""
    last = row.deciding[0] if row.deciding else None
    is_open = last is not None and last.effect == "may change" and row.sure is not None
    return f", may be changed: {source_text(last._replace(detail=''))}" if last and is_open else ""


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
    text = f"inherited from {origin.where}" if origin.effect == "handed down" else origin.text
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


# --- cm explain cache ---

MADE_WITH = "built with it"
"""In place of a key: the entry was used while the other one was made, and none of its values names it."""


def explain_cache_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm explain cache [UID | --tags=...]``; raises NothingFound when no entry fits."""
    engine, store = new_engine(home, None), Store.current(home.store_path)
    entries = find_entries(i, store)
    if not entries:
        raise nothing_found(i, store)
    uses = _uses(store)
    rows = [{"state": _state(store, entry), **_entry_row(engine, entry, uses.get(entry.uid, []))} for entry in entries]
    lines = [line for row in rows for line in ("", *_entry_lines(row))]
    show(i, *lines[1:])
    return {"return": 0, "format": FORMAT, "cache": str(home.store_path), "entries": rows}


def _uses(store: Store) -> dict[str, list[dict[str, str]]]:
    """Entry to the entries that need it, each with the key whose value names its folder."""
    entries = store.entries()
    known = {entry.uid for entry in entries}
    found: dict[str, list[dict[str, str]]] = {}
    for entry in entries:
        needed = dependencies(entry, known)
        new_env, new_state = state_of(entry) if needed else ({}, {})
        values = {**new_env, **new_state, "dependent_cached_path": entry.dependent_path}
        for uid in needed:
            by = next((key for key, value in values.items() if uid in str(value)), MADE_WITH)
            found.setdefault(uid, []).append({"uid": entry.uid, "recipe": entry.recipe.text, "by": by})
    return found


def _entry_row(engine: Engine, entry: CacheEntry, used_by: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    details = details_of(entry) or EntryDetails()
    asked, record = details.request, entry.record
    recipe = _recipe_of(engine, entry)
    state, newer = _recipe_state(engine, entry, recipe)
    command, reaches, note = _command(engine, entry, recipe, asked)
    used_s = last_use_s(entry.path)
    return {
        "uid": entry.uid,
        "path": str(entry.path),
        "recipe": entry.recipe.text,
        "tags": list(entry.tags),
        "version": entry.version,
        "created_utc": record.created_utc if record else "",
        "request": {
            "tags": str(asked.get("tags", "")),
            "inputs": dict(without_secrets(record.inputs if record else {})),
            "chain": list(details.chain),
            **{name: str(asked.get(name, "")) for name in ("version", "version_min", "version_max")},
        },
        "recipe_state": state,
        "recipe_files_newer": newer,
        "variations": _variations(entry, details),
        "files": [
            {
                "path": file.path,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
                "problem": file_problem(entry.path / file.path, file, is_thorough=False),
            }
            for file in details.files
        ],
        "last_use_utc": "" if used_s is None else utc_text(used_s),
        "is_in_use": is_in_use(entry.path),
        "depends_on": entry.dependent_path,
        "used_by": list(used_by),
        "command": command,
        "command_reaches_it": reaches,
        "command_note": note,
    }


def _state(store: Store, entry: CacheEntry) -> str:
    if entry.retired:
        return f"never reused: {entry.retired}"
    if not entry.is_complete:
        return "being built right now" if store.is_busy(entry) else "unfinished, never reused"
    return store.problem(entry) or "finished and intact"


def _recipe_of(engine: Engine, entry: CacheEntry) -> Recipe | None:
    found = engine.source.index.by_name(entry.recipe.uid) if entry.recipe.uid else ()
    try:
        return engine.source.recipe(found[0]) if found else None
    except RecipeError:
        return None


def _recipe_state(engine: Engine, entry: CacheEntry, recipe: Recipe | None) -> tuple[str, list[str]]:
    """Whether the recipe is still as it was, and its files whose time is after the entry was begun."""
    record = entry.record
    if recipe is None:
        return "not registered", []
    if record is None:
        return "not recorded", []
    try:
        if engine.source.is_unchanged(recipe, record):
            return "unchanged since", []
    except MetaError as error:
        return f"cannot be used: {error.message}", []
    after_s = utc_seconds(record.created_utc) + 1
    newer = [name for name in recipe_files(recipe.path) if (recipe.path / name).stat().st_mtime >= after_s]
    newer += engine.source.newer_files(recipe, record)
    if newer:
        return "changed since", newer
    return "changed since: a file was removed, or replaced by one with an older time", []


def _variations(entry: CacheEntry, details: EntryDetails) -> list[dict[str, str]]:
    rows = [{"name": str(row.get("name", "")), "reason": str(row.get("reason", ""))} for row in details.variations]
    if rows or entry.record is None:
        return rows or [{"name": tag[1:], "reason": "a tag of CM's"} for tag in entry.tags if tag.startswith("_")]
    return [{"name": name, "reason": ""} for name in entry.record.variations]


def _command(
    engine: Engine, entry: CacheEntry, recipe: Recipe | None, asked: Mapping[str, Any]
) -> tuple[str, bool, str]:
    """A command that asks for just this entry, whether a run of it would reuse the entry, and why or why not."""
    record = entry.record
    if recipe is None:
        return "", False, "its recipe is not registered, so no query reaches it"
    explicit = record.explicit if record else tuple(tag[1:] for tag in entry.tags if tag.startswith("_"))
    inputs: dict[str, Any] = dict(without_secrets(record.inputs)) if record else {}
    if record and record.extra_tags:
        inputs["extra_cache_tags"] = ",".join(record.extra_tags)
    inputs.update({name: str(asked[name]) for name in BOUND_KEYS if asked.get(name)})
    queries = [str(asked.get("tags") or ""), ",".join([*recipe.tags, *("_" + name for name in explicit)])]
    answers = [
        ({"tags": tags, **inputs}, *_reached(engine, entry, recipe, {"tags": tags, **inputs})) for tags in queries
    ]
    flags, reaches, note = next((answer for answer in answers if answer[1]), answers[-1])
    return command_line(["run", "script"], flags.items()).text, reaches, note


def _reached(engine: Engine, entry: CacheEntry, recipe: Recipe, inputs: Mapping[str, Any]) -> tuple[bool, str]:
    request = parse_request(inputs)
    try:
        found = candidates(request.query, "", engine.source.index)
        configured = engine.configure(recipe, request)
    except RecipeError as error:
        return False, f"no longer possible: {error.message.splitlines()[0]}"
    key = cache_key(configured, configured.env)
    reason = misfit(entry, key) or engine.store.problem(entry)
    if reason:
        hidden = recipe.extra_cache_tags_from_env and ", and its tags come from env values of dynamic dependencies too"
        return False, f"a run would not reuse it: {reason}{hidden or ''}"
    if len(found) > 1 and found[0].uid != recipe.id.uid:
        return False, f"several recipes match these tags. Select it by name: cm run script {recipe.id.alias}"
    best = next(iter(engine.store.find(key)), None)
    if best is None:
        return False, "a run would not reuse it: it was replaced"
    if best.uid != entry.uid:
        return False, f"matches, but a run prefers the entry {best.uid}"
    return True, "running this command reuses the entry"


def _entry_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """The explanation of one cache entry for a terminal."""
    yield from wrapped(*_fact_lines(row))
    yield f"  reached by: {row['command']}"  # in one line, so that it can be copied
    yield from wrapped(f"    {row['command_note']}")


def _fact_lines(row: Mapping[str, Any]) -> Iterator[str]:
    asked = row["request"]
    yield f"entry {row['uid']}: {row['recipe']}{' ' + row['version'] if row['version'] else ''}"
    yield f"  {row['path']}"
    yield f"  made {row['created_utc'] or 'by CM'}, requested as '{asked['tags']}'"
    if asked["chain"]:
        yield f"  chain: {' -> '.join(asked['chain'])}"
    yield from [f"  state: {row['state']}", f"  recipe: {row['recipe_state']}"]
    yield from (f"    newer than the entry: {name}" for name in row["recipe_files_newer"])
    yield from (f"  variation _{one['name']}: {one['reason'] or 'on'}" for one in row["variations"])
    yield from (f"  input --{name}={value}" for name, value in asked["inputs"].items())
    yield f"  tags: {', '.join(row['tags'])}"
    problems = [file["problem"] for file in row["files"] if file["problem"]]
    yield f"  files: {len(row['files'])} declared, {len(row['files']) - len(problems)} unchanged"
    yield from (f"    {problem}" for problem in problems)
    if row["depends_on"]:
        yield f"  depends on: {row['depends_on']}"
    yield f"  last use: {row['last_use_utc'] or 'not recorded'}{', in use now' if row['is_in_use'] else ''}"
    yield from (f"  needed by: {other['uid']} ({other['recipe']}): {other['by']}" for other in row["used_by"])
