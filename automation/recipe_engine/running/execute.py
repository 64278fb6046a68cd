"""Carries a request out: select, configure, reuse from the cache or make, step by step, dependencies first.

A recipe that runs goes through its phases (phases.py). From the cache only dependencies marked dynamic run.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..disk.entryfile import EntryPaths
from ..disk.store import Outcome
from ..rules.cachekey import cache_key, tags_from_env
from ..rules.cachemodel import CacheEntry, CacheKey
from ..rules.configure import entry_lifetime_s
from ..rules.demands import Restart, VersionConflict
from ..rules.env import PREFIX, SUCCESSOR_PREFIX
from ..rules.errors import CacheMiss, CycleError, Interrupted, RecipeError
from ..rules.events import StepEvent
from ..rules.model import Configured, Recipe, Request, StepResult
from ..rules.schema import is_yes
from .choose import Engine, choose
from .frame import VALIDATE_SCRIPT, Frame
from .phases import make, run_dependencies, step_result
from .shell import find_script

MAX_DEPTH = 100
"""Recipes below each other; the deepest chains of the CM community have about ten."""

MAX_ATTEMPTS = 50
"""Each new attempt narrows the version of one thing; nothing sensible narrows that often."""

logger = logging.getLogger(__name__)

_running: list[str] = []


def running_trace() -> tuple[str, ...]:
    """The labels of the recipes that run right now in this process, outermost first.

    A recipe that calls ``cm.access`` itself starts a new request; its chain goes on from here.
    """
    return tuple(_running)


def run_consistently(engine: Engine, request: Request) -> StepResult:
    """Runs one request; starts over with tighter bounds when a later step needs another version than was chosen.

    What was made meanwhile is in the cache; recipes that do not use it run again. Raises RecipeError.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            return engine.run(engine, request)
        except Restart as again:
            logger.info("starting over: %s", again.text)
            engine.demands.start_over()
    raise VersionConflict(f"no choice of versions suits all recipes after {MAX_ATTEMPTS} attempts")


def run_request(engine: Engine, request: Request) -> StepResult:
    """Runs one request with everything it needs.

    Raises RecipeError; its ``trace`` then names the chain of recipes down to the one that failed.
    """
    if len(request.trace) >= MAX_DEPTH:
        raise CycleError.endless(request.trace)
    recipe = engine.source.recipe(choose(engine, request))
    label = ",".join([recipe.id.alias, *("_" + name for name in request.query.variations)])
    trace = (*request.trace, label)
    started_s = time.perf_counter()
    _running.append(label)
    try:
        configured = engine.configure(recipe, with_absolute_paths(recipe, request, engine.top_folder))
        engine.emit(StepEvent("start", trace, configured))
        result = _run_configured(engine, configured)._replace(duration_s=time.perf_counter() - started_s)
        engine.emit(StepEvent("done", trace, configured, result))
    except RecipeError as error:
        if not error.trace:
            from .failure import complete  # here, because only failures need it

            complete(error, engine.source.index, request, recipe, trace)
        engine.emit(StepEvent("fail", trace, error=error))
        raise
    except Interrupted as stop:
        stop.trace = stop.trace or trace
        raise
    except Restart as again:
        engine.emit(StepEvent("again", trace, reason=again.text))
        raise
    finally:
        _running.pop()
    return result


def with_absolute_paths(recipe: Recipe, request: Request, top_folder: str) -> Request:
    """The request with its relative ``is_path`` inputs counted from the folder where the command was given."""
    given = {name: request.inputs.get(name) for name, described in recipe.inputs.items() if described.is_path}
    paths = {name: path for name, path in given.items() if isinstance(path, str) and path and "<<<" not in path}
    absolute = {name: os.path.abspath(os.path.join(top_folder, os.path.expanduser(paths[name]))) for name in paths}
    return request._replace(inputs={**request.inputs, **absolute}) if absolute else request


def _in_container(configured: Configured) -> Configured | None:
    """What a recipe is inside a container: None when its ``docker.run`` says no, faked when ``real_run`` does."""
    docker = configured.layer.docker
    if not is_yes(configured.env.get(configured.recipe.prefix + "RUN_STATE_DOCKER")) or not docker:
        return configured
    if not is_yes(docker.get("run", True)):
        return None
    if is_yes(docker.get("real_run", True)):
        return configured
    request = configured.request._replace(options=configured.request.options._replace(fake_run=True))
    return configured._replace(request=request, env={**configured.env, "CM_TMP_FAKE_RUN": "yes"})


def _run_configured(engine: Engine, asked: Configured) -> StepResult:
    configured = _in_container(asked)
    if configured is None:
        engine.tell(asked, "-", f"{asked.label}: left out inside a container (docker.run: false)")
        return step_result(engine.frame(asked, Path.cwd(), None), "skipped", {}, {}, None)
    recipe, options = configured.recipe, configured.request.options
    frame = engine.frame(configured, Path.cwd(), None)
    frame.remove_outputs()
    wants_cache = configured.is_cached or (recipe.can_force_cache and options.force_cache)
    if wants_cache and not options.skip_cache and not options.fake_run:
        return _run_cached(engine, frame)
    if not configured.request.trace or find_script(recipe.path, "run", configured.env, recipe.prefix):
        engine.tell(configured, "*", f"{configured.label}: running")
    return make(engine, frame, None)


def _run_cached(engine: Engine, probe: Frame) -> StepResult:
    """Reuses an entry, or makes one while holding its lock; who waited for the lock looks again first."""
    configured = probe.configured
    if configured.recipe.extra_cache_tags_from_env:
        _run_dynamic(engine, probe)
    key = cache_key(configured, probe.env)
    version = engine.narrowed_version(probe, key)
    if version != key.version:
        bound = engine.configure(configured.recipe, configured.request._replace(version=version))
        key = cache_key(bound, probe.env)
        probe = engine.frame(bound, Path.cwd(), None)
    result = _run_with_key(engine, probe, key)
    engine.note_choice(probe, key, result)
    return result


def _run_with_key(engine: Engine, probe: Frame, key: CacheKey) -> StepResult:
    configured, options = probe.configured, probe.configured.request.options
    if not (options.new or options.renew):
        found = _usable(engine, key, probe)
        if found:
            return _reuse(engine, probe, found)
    if options.only_from_cache:
        raise CacheMiss(f"{configured.label} is not in the cache", hint="run it once without --only_execute_from_cache")
    with engine.store.lock(key, configured.label, options.lock_timeout_s):
        found = None if options.new else _usable(engine, key, probe, refresh=True)
        if found and not options.renew:
            return _reuse(engine, probe, found)
        if found is None:
            return _make_entry(engine, configured, key, None)
        with engine.store.held(found, key) as is_free:  # else somebody works in it for another request
            return _make_entry(engine, configured, key, found if is_free else None)


def _run_dynamic(engine: Engine, probe: Frame) -> None:
    """Runs the dynamic dependencies of a cached recipe, which it needs before its entry is looked at, once."""
    if not probe.has_run_dynamic:
        probe.has_run_dynamic = True
        run_dependencies(engine, probe, "deps", only_dynamic=True)


def _usable(engine: Engine, key: CacheKey, probe: Frame, *, refresh: bool = False) -> CacheEntry | None:
    """The first entry that fits and is whole; the others are named with what is wrong."""
    is_renewal = probe.configured.request.options.renew
    for entry in engine.demands.preferred(key, engine.store.find(key, refresh=refresh)):
        if is_renewal and not engine.store.keeps_identity(entry, key):
            continue
        trouble = engine.store.problem(entry)
        if not trouble and (probe.recipe.path / VALIDATE_SCRIPT).is_file():
            _run_dynamic(engine, probe)
            trouble = probe.validation_problem(engine.store.load(entry)[0])
        if not trouble:
            return entry
        text = f"{probe.configured.label}: not reusing {entry.path}: {trouble}"
        if text not in engine.told:
            engine.told.add(text)
            engine.tell(probe.configured, "!", text)
        if refresh and not trouble.endswith("meanwhile"):
            with engine.store.held(entry, key) as is_free:
                if is_free:
                    engine.store.retire(entry)
    return None


def _reuse(engine: Engine, probe: Frame, entry: CacheEntry) -> StepResult:
    """What a finished entry gives; only dynamic dependencies run."""
    note = ""
    record = entry.record
    if record and not engine.source.is_unchanged(probe.recipe, record.recipe_digest, record.recipe_stamp):
        note = "; made by another version of this recipe, --renew makes it again"
    if entry.uid not in engine.told:
        engine.told.add(entry.uid)
        version = f" {entry.version}" if entry.version else ""
        engine.tell(
            probe.configured, "=", f"{probe.configured.label}{version}: reused from the cache ({entry.uid}){note}"
        )
    engine.before_reuse(probe, entry)
    _run_dynamic(engine, probe)
    run_dependencies(engine, probe, "prehook_deps", only_dynamic=True)
    engine.store.note_use(entry)
    probe.take_entry(engine.store, entry)
    run_dependencies(engine, probe, "posthook_deps", only_dynamic=True)
    run_dependencies(engine, probe, "post_deps", only_dynamic=True)
    result_env, result_state = probe.results()
    return step_result(probe, "reused", result_env, result_state, entry)


def _make_entry(engine: Engine, configured: Configured, key: CacheKey, found: CacheEntry | None) -> StepResult:
    """Runs the recipe inside a new entry (or, to renew it, inside the found one) and finishes the entry."""
    store = engine.store
    maker = engine.maker(configured.recipe)
    entry = store.reopen(found, key, maker) if found else store.start(key, maker)
    paths = EntryPaths(entry.path)
    engine.tell(configured, "*", f"{configured.label}: running in {entry.path}")
    if found:
        renewing = {prefix + "RENEW_CACHE_ENTRY": "yes" for prefix in (PREFIX, configured.recipe.prefix)}
        configured = configured._replace(env={**configured.env, **renewing})
    frame = engine.frame(configured, entry.path, paths.log)
    frame.locked = engine.guard.facts(key) if engine.guard else {}
    with frame.inside(entry.path):
        try:
            result = make(engine, frame, entry)
        except RecipeError as error:
            error.log_path = error.log_path or (str(paths.log) if paths.log.exists() else "")
            raise
        if result.status == "skipped":
            if found:
                store.reinstate(found)
            else:
                store.remove(entry)
            return result
        frame.write_env_files(result.new_env)
    configured = frame.configured
    outcome = Outcome(
        new_env=result.new_env,
        new_state=result.new_state,
        dependencies=[dict(dependency.entry) for dependency in frame.lists["deps"]],
        version=frame.version or configured.version.exact,
        added_tags=(*tags_from_env(configured, frame.env), *frame.added_tags),
        files=frame.files,
        dependent_path=_dependent_path(frame.env, entry.path),
        lifetime_s=entry_lifetime_s(configured, frame.env),
        details={
            "request": {"tags": configured.request.query.text, "inputs": dict(key.inputs)},
            "recipe": configured.recipe.id.text,
            "variations": [{"name": applied.name, "reason": applied.reason} for applied in configured.applied],
            "chain": list(frame.trace),
            **({"locked": dict(frame.facts)} if frame.facts else {}),
        },
    )
    finished = store.commit(entry, key, outcome)
    return result._replace(entry=finished, version=outcome.version)


def _dependent_path(env: Mapping[str, Any], folder: Path) -> str:
    """The path outside the entry on which it depends, when the recipe named one that exists."""
    keys = (prefix + "GET_DEPENDENT_CACHED_PATH" for prefix in (PREFIX, SUCCESSOR_PREFIX))
    path = next((str(env[key]) for key in keys if env.get(key)), "")
    return path if path and os.path.exists(path) and not Path(path).is_relative_to(folder) else ""
