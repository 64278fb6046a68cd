"""One step, as a straight line: choose, configure, look up, lock, make, commit. Read this file first.

A step that runs goes through CM's order: dependencies, preprocess, prehook dependencies, native script, posthook
dependencies, postprocess, post dependencies. Of one that the cache serves only dependencies marked dynamic run.
Dependencies are whole requests again. A run and a plan go through the same lines, with other effects (effects.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..disk.entries import ALL_ENV_FILE, ENV_FILE, EntryPaths
from ..rules.cachekey import cache_key, tags_from_env, with_derived_tags
from ..rules.configure import in_container
from ..rules.deps import replacement_request, should_run
from ..rules.env import PREFIX, merge_state
from ..rules.errors import CacheMiss, CycleError, RecipeError
from ..rules.inputs import with_own_names
from ..rules.model import CacheEntry, CacheKey, Configured, Phase, Request, StepEvent, StepResult
from .context import StepContext, remarks, with_own_places
from .engine import Engine, check_inputs, dependent_path, may_matter, usable_entry

MAX_DEPTH = 100
"""Recipes below each other; the deepest chains of the CM community have about ten."""
MAX_REPEATS = 2
"""Equal requests below each other before the next one is a circle: its hooks may have changed the machine."""
MIN_SHOWN_S = 0.1
"""Steps that end sooner are shown with ``-v`` only, unless it was printed that they started."""


def run_request(engine: Engine, request: Request) -> StepResult:
    """Runs one request with everything it needs.

    Raises RecipeError; its ``trace`` then names the chain of recipes down to the one that failed. An input that the
    recipe of a call does not read is refused before anything runs; those of dependencies are their author's business.
    """
    if len(request.trace) >= MAX_DEPTH:
        raise CycleError.endless(request.trace)
    recipe = engine.source.recipe(engine.choose(request).entry)
    request = with_own_names(recipe, request)
    _refuse_circle(request)
    if request.asked_by is None:
        check_inputs(recipe, request, engine)
    with engine.tracing(recipe, request) as trace:
        started_s = time.perf_counter()
        configured = engine.configure(recipe, with_own_places(recipe, request, engine.top_folder))
        engine.emit(StepEvent("start", trace, configured))
        result = _run_configured(engine, configured)._replace(duration_s=time.perf_counter() - started_s)
        engine.emit(StepEvent("done", trace, configured, result))
        return result


def _refuse_circle(request: Request) -> None:
    """Raises CycleError for a request that is above itself MAX_REPEATS times already, with nothing changed."""
    above, count = request.parent, 0
    while above and count < MAX_REPEATS:
        count += above.query == request.query and _asked(above) == _asked(request)
        above = above.parent
    if count == MAX_REPEATS:
        raise CycleError.endless(request.trace)


def _asked(request: Request) -> tuple[Any, ...]:
    """All of a request that can make its run another one, but for its query."""
    given = (request.alias, request.inputs, request.version, request.extra_cache_tags)
    return (*given, request.env, request.local_env, request.const, request.state, request.const_state)


def _run_configured(engine: Engine, asked: Configured) -> StepResult:
    """Decides whether the cache may serve the step, or it runs where the user is."""
    configured = in_container(asked)
    if configured is None:
        engine.effects.tell(asked, "-", f"{asked.label}: skipped inside a container (docker.run: false)")
        return engine.step(asked, Path.cwd(), None).result("skipped", {}, {})
    recipe, options = configured.recipe, configured.request.options
    step = engine.step(configured, Path.cwd(), None)
    engine.effects.remove_outputs(step)
    is_forced = recipe.can_force_cache and options.force_cache
    if (is_forced or (configured.is_cached and not options.skip_cache)) and not options.fake_run:
        result = _run_cached(engine, step)
    else:
        if _is_announced(step):
            engine.effects.tell(configured, "*", f"{configured.label}: running")
        engine.store.watch_child_uses()
        result = make(engine, step, None)
    if options.save_env and result.status != "skipped":
        state = merge_state(configured.request.state, result.new_state)
        engine.effects.write_env_file(step, ENV_FILE, result.new_env, state.get("script_prefix") or ())
    return result


def _is_announced(step: StepContext) -> bool:
    """Whether an uncached step prints that it starts: the requested one, and those with a native script."""
    from .shell import find_script  # here, because a call that reuses everything runs no script

    configured = step.configured
    recipe = configured.recipe
    return bool(not configured.request.trace or find_script(recipe.path, "run", configured.env, recipe.prefix))


def _run_cached(engine: Engine, step: StepContext) -> StepResult:
    """Reuses an entry, or makes one; the version comes after all that is required of the same artifact in this run."""
    key = cache_key(step.configured, step.env)
    if step.has_open_tags:
        if not may_matter(engine, step.configured, key):
            key, result = _run_with_key(engine, step, key)
            engine.narrowed_version(step, key)
            engine.note_choice(step, key, result)
            return result
        run_dynamic_dependencies(engine, step)
        key = cache_key(step.configured, step.env)
    version = engine.narrowed_version(step, key)
    if version != key.version:
        configured = step.configured
        bound = engine.configure(configured.recipe, configured.request._replace(version=version))
        key = cache_key(bound, step.env)
        step = engine.step(bound, Path.cwd(), None)
    key, result = _run_with_key(engine, step, key)
    engine.note_choice(step, key, result)
    return result


def _run_with_key(engine: Engine, step: StepContext, key: CacheKey) -> tuple[CacheKey, StepResult]:
    """The result and its key, which is complete only once the dependencies ran.

    An entry is made while holding its lock; a process that waited for the lock looks again first.
    """
    configured, options = step.configured, step.configured.request.options
    if not (options.new or options.renew):
        found = usable_entry(engine, key, step, run_dynamic_dependencies)
        if found:
            return key, _reuse(engine, step, found)
    if options.only_from_cache or (engine.guard and engine.guard.is_cache_only):
        raise CacheMiss(f"{configured.label} is not in the cache", hint="run it once without --only_execute_from_cache")
    with engine.store.lock(key, configured.label, options.lock_timeout_s):
        if step.has_open_tags and may_matter(engine, configured, key, refresh=True):
            run_dynamic_dependencies(engine, step)
            complete = cache_key(configured, step.env)
            if complete.fingerprint != key.fingerprint:
                return _run_with_key(engine, step, complete)
        found = None if options.new else usable_entry(engine, key, step, run_dynamic_dependencies, refresh=True)
        if found and not options.renew:
            return key, _reuse(engine, step, found)
        return _make_entry(engine, configured, key, found)


def _reuse(engine: Engine, step: StepContext, entry: CacheEntry) -> StepResult:
    """What a finished entry gives; only dynamic dependencies run."""
    configured, record, note = step.configured, entry.record, ""
    if record and not engine.source.is_unchanged(step.recipe, record):
        newer = engine.source.newer_files(step.recipe, record)
        why = f" ({newer[0]} is newer{f', with {len(newer) - 1} more' if newer[1:] else ''})" if newer else ""
        note = f", built by another version of this recipe{why}, --renew rebuilds it"
    version = f" {entry.version}" if entry.version else ""
    text = f"{configured.label}{version}: reused from the cache ({entry.uid}){note}"
    engine.tell_once(configured, "=", text, entry.uid)
    engine.store.note_use(entry)
    run_dynamic_dependencies(engine, step)
    _run_dependencies(engine, step, "prehook_deps", only_dynamic=True)
    step.take_entry(entry, *engine.store.load(entry))
    _run_dependencies(engine, step, "posthook_deps", only_dynamic=True)
    _run_dependencies(engine, step, "post_deps", only_dynamic=True)
    return step.result("reused", *step.results(), entry)


def _make_entry(
    engine: Engine, configured: Configured, key: CacheKey, replaced: CacheEntry | None
) -> tuple[CacheKey, StepResult]:
    """Runs the recipe inside a new entry and finishes the entry, which then answers in place of ``replaced``."""
    store, effects = engine.store, engine.effects
    entry = store.start(key, effects.maker(configured.recipe, key.variations), replaced)
    store.watch_child_uses()
    log_path = EntryPaths(entry.path).log
    effects.tell(configured, "*", f"{configured.label}: running in {entry.path}")
    if replaced:
        renewing = {prefix + "RENEW_CACHE_ENTRY": "yes" for prefix in (PREFIX, configured.recipe.prefix)}
        configured = configured._replace(env={**configured.env, **renewing})
    step = engine.step(configured, entry.path, log_path)
    step.locked = engine.guard.facts(key) if engine.guard else {}
    with effects.inside(entry.path):
        try:
            result = make(engine, step, entry)
        except RecipeError as error:
            error.log_path = error.log_path or (str(log_path) if log_path.exists() else "")
            raise
        if result.status == "skipped":
            store.remove(entry)
            return key, result
        effects.write_env_file(step, ENV_FILE, result.new_env)
        effects.write_env_file(step, ALL_ENV_FILE, step.env)
    if entry.record and any(dependency.is_dynamic for dependency in step.lists["deps"]):
        key = with_derived_tags(key, step.derived_tags)
        entry = entry._replace(record=entry.record._replace(fingerprint=key.fingerprint))
    outcome = step.outcome(key, result, dependent_path(step.env, entry.path))
    return key, result._replace(entry=store.commit(entry, key, outcome), version=outcome.version)


def make(engine: Engine, step: StepContext, entry: CacheEntry | None) -> StepResult:
    """Runs a recipe's phases, in the folder of ``entry`` or where the user is."""
    started_s = time.perf_counter()
    effects, options = engine.effects, step.configured.request.options
    step.apply_default_version()
    configured = step.configured
    engine.emit(StepEvent("run", step.trace, configured))
    for line in (*configured.layer.warnings, *remarks(configured)):
        effects.tell(configured, "!", f"{configured.label}: {line}")
    if not options.fake_run:
        effects.hook(step, "predeps")
    _run_dependencies(engine, step, "deps")
    step.derived_tags = tags_from_env(configured, step.env)
    step.set_own_keys(TMP_PIP_VERSION_STRING=configured.version.pip_text)
    step.enforce_const()
    with effects.workplace(step, entry):
        instead = _run_phases(engine, step)
    if instead:
        return instead
    new_env, new_state = step.results()
    took_s = time.perf_counter() - started_s
    is_detail = took_s < MIN_SHOWN_S and not (entry or _is_announced(step))
    effects.tell(configured, "+", f"{configured.label}: done in {took_s:.2f} s", is_detail=is_detail)
    return step.result("faked" if options.fake_run else "ran", new_env, new_state, entry)


def _run_phases(engine: Engine, step: StepContext) -> StepResult | None:
    """From preprocess to post dependencies; a result when preprocess ended the recipe or put another in its place."""
    effects, options = engine.effects, step.configured.request.options
    if not options.fake_run:
        before = effects.hook(step, "preprocess")
        step.env = dict(step.env)
        step.enforce_const()
        if before.skip:
            return _end_early(engine, step, before.replacement)
    _run_dependencies(engine, step, "prehook_deps")
    if options.fake_run:
        return None
    effects.run_script(step)
    step.enforce_const()
    _run_dependencies(engine, step, "posthook_deps")
    effects.hook(step, "postprocess")
    step.enforce_const()
    _run_dependencies(engine, step, "post_deps")
    return None


def _end_early(engine: Engine, step: StepContext, replacement: Mapping[str, Any] | None) -> StepResult:
    """The result of a recipe that ended early: nothing, or what the recipe named in its place gives."""
    if replacement is None:
        engine.effects.tell(step.configured, "-", f"{step.configured.label}: stopped early by its preprocess")
        return step.result("skipped", {}, {})
    request = replacement_request(replacement, step)
    inner = engine.run(engine, request._replace(pending=step.pending))
    result = step.result("skipped", step.let_out(inner.new_env), inner.new_state)
    return result._replace(label=inner.label, unknown=inner.unknown)


def run_dynamic_dependencies(engine: Engine, step: StepContext) -> None:
    """Runs the dynamic dependencies of a cached recipe, which it needs before its entry is looked at, once."""
    if not step.has_run_dynamic:
        step.has_run_dynamic = True
        _run_dependencies(engine, step, "deps", only_dynamic=True)


def _run_dependencies(engine: Engine, step: StepContext, phase: Phase, *, only_dynamic: bool = False) -> None:
    """Runs the dependencies of one phase in order, each seeing what the earlier ones gave."""
    options = step.configured.request.options
    for dependency in step.lists[phase]:
        known = step.unknown.outside(step.env)
        verdict = should_run(dependency, step.env, known, only_dynamic=only_dynamic, is_fake=options.fake_run)
        if verdict.answer == "no":
            engine.emit(StepEvent("skip", (*step.trace, dependency.label), reason=verdict.reason))
            continue
        step.note_dependency(dependency)
        if options.fake_deps:
            continue
        try:
            engine.run_dependency(step, dependency, phase, verdict)
        except RecipeError as error:
            if not dependency.continue_on_error:
                raise
            text = f"continuing without {dependency.label}: {error.message}"
            engine.effects.tell(step.configured, "!", text)
