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

from ..disk.content import keeps_identity
from ..disk.entryfile import EntryPaths
from ..disk.os_errors import explained
from ..rules.cachekey import applied_tags, cache_key, misfit, tags_from_env, with_derived_tags
from ..rules.cachemodel import CacheEntry, CacheKey, Outcome
from ..rules.configure import entry_lifetime_s
from ..rules.demands import Restart, VersionConflict
from ..rules.env import DEPENDENT_PATH_KEYS, PREFIX, fill_env, merge_state
from ..rules.errors import CacheMiss, CycleError, Interrupted, RecipeError
from ..rules.events import StepEvent
from ..rules.model import Configured, Recipe, Request, StepResult
from ..rules.schema import is_yes
from .choose import Engine
from .frame import VALIDATE_SCRIPT, Frame
from .phases import make, run_dependencies, step_result
from .shell import ALL_ENV_FILE, ENV_FILE, find_script

MAX_DEPTH = 100
"""Recipes below each other; the deepest chains of the CM community have about ten."""

MAX_ATTEMPTS = 20
"""Each new attempt narrows the version of one artifact (demands.py); nothing sensible narrows that often."""

USER_FOLDER_KEY = "MLC_USER_RUN_DIR"
"""Where the user called, for recipes of CM's successor."""

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
    recipe = engine.source.recipe(engine.choose(request).entry)
    label = ",".join([recipe.id.alias, *("_" + name for name in request.query.variations)])
    trace = (*request.trace, label)
    started_s = time.perf_counter()
    _running.append(label)
    try:
        with explained():
            request = with_absolute_paths(recipe, request, engine.top_folder)
            if recipe.is_successor:
                request = request._replace(env=fill_env(request.env, {USER_FOLDER_KEY: engine.top_folder}))
            configured = engine.configure(recipe, request)
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
    is_forced = recipe.can_force_cache and options.force_cache
    if (is_forced or (configured.is_cached and not options.skip_cache)) and not options.fake_run:
        result = _run_cached(engine, frame)
    else:
        if not configured.request.trace or find_script(recipe.path, "run", configured.env, recipe.prefix):
            engine.tell(configured, "*", f"{configured.label}: running")
        engine.store.watch_child_uses()
        result = make(engine, frame, None)
    if options.save_env and result.status != "skipped":
        state = merge_state(configured.request.state, result.new_state)
        frame.write_env_file(ENV_FILE, result.new_env, state.get("script_prefix") or ())
    return result


def _run_cached(engine: Engine, probe: Frame) -> StepResult:
    """Reuses an entry, or makes one while holding its lock; who waited for the lock looks again first."""
    configured = probe.configured
    key = cache_key(configured, probe.env)
    if _tags_are_open(probe):
        if not _may_matter(engine, configured, key):
            key, result = _run_with_key(engine, probe, key)
            engine.narrowed_version(probe, key)
            engine.note_choice(probe, key, result)
            return result
        _run_dynamic(engine, probe)
        key = cache_key(configured, probe.env)
    version = engine.narrowed_version(probe, key)
    if version != key.version:
        bound = engine.configure(configured.recipe, configured.request._replace(version=version))
        key = cache_key(bound, probe.env)
        probe = engine.frame(bound, Path.cwd(), None)
    key, result = _run_with_key(engine, probe, key)
    engine.note_choice(probe, key, result)
    return result


def _tags_are_open(probe: Frame) -> bool:
    """Whether dynamic dependencies that have not run yet may decide on tags of the entry."""
    is_derived = bool(probe.recipe.extra_cache_tags_from_env) and not probe.has_run_dynamic
    return is_derived and any(dependency.is_dynamic for dependency in probe.lists["deps"])


def _may_matter(engine: Engine, configured: Configured, key: CacheKey, *, refresh: bool = False) -> bool:
    """Whether the tags that dynamic dependencies decide on make a difference: to which entry is reused, or to versions.

    Where they do not, the entry is made and all its dependencies run in their order, once.
    """
    if engine.guard or engine.demands.knows(key):
        return True
    any_tags = with_derived_tags(key, ())
    entries = engine.store.entries_of(configured.recipe.id.uid, refresh=refresh)
    return not configured.request.options.new and any(not misfit(entry, any_tags) for entry in entries)


def _run_with_key(engine: Engine, probe: Frame, key: CacheKey) -> tuple[CacheKey, StepResult]:
    """The result and its key, which is complete only once the dependencies ran."""
    configured, options = probe.configured, probe.configured.request.options
    if not (options.new or options.renew):
        found = _usable(engine, key, probe)
        if found:
            return key, _reuse(engine, probe, found)
    if options.only_from_cache:
        raise CacheMiss(f"{configured.label} is not in the cache", hint="run it once without --only_execute_from_cache")
    with engine.store.lock(key, configured.label, options.lock_timeout_s):
        if _tags_are_open(probe) and _may_matter(engine, configured, key, refresh=True):
            _run_dynamic(engine, probe)
            complete = cache_key(configured, probe.env)
            if complete.fingerprint != key.fingerprint:
                return _run_with_key(engine, probe, complete)
        found = None if options.new else _usable(engine, key, probe, refresh=True)
        if found and not options.renew:
            return key, _reuse(engine, probe, found)
        return _make_entry(engine, configured, key, found)


def _run_dynamic(engine: Engine, probe: Frame) -> None:
    """Runs the dynamic dependencies of a cached recipe, which it needs before its entry is looked at, once."""
    if not probe.has_run_dynamic:
        probe.has_run_dynamic = True
        run_dependencies(engine, probe, "deps", only_dynamic=True)


def _usable(engine: Engine, key: CacheKey, probe: Frame, *, refresh: bool = False) -> CacheEntry | None:
    """The first entry that fits and is whole, in use from now on unless it is to be renewed.

    The others are reported with what is wrong.
    """
    is_renewal = probe.configured.request.options.renew
    for entry in engine.demands.preferred(key, engine.store.find(key, refresh=refresh)):
        if is_renewal and not keeps_identity(entry, key):
            continue
        trouble = engine.store.problem(entry) or ("" if is_renewal else engine.store.claim(entry))
        if not trouble and (probe.recipe.path / VALIDATE_SCRIPT).is_file():
            _run_dynamic(engine, probe)
            trouble = probe.validation_problem(engine.store.load(entry)[0], entry.version)
        if not trouble:
            return entry
        text = f"{probe.configured.label}: not reusing {entry.path}: {trouble}"
        if text not in engine.told:
            engine.told.add(text)
            engine.tell(probe.configured, "!", text)
        if refresh and entry.is_expired(time.time()):
            engine.store.put_away(entry, trouble, key)
        elif refresh:
            with engine.store.held(entry, key) as is_free:
                if is_free:
                    engine.store.retire(entry, trouble)
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
    engine.store.note_use(entry)
    _run_dynamic(engine, probe)
    run_dependencies(engine, probe, "prehook_deps", only_dynamic=True)
    probe.take_entry(engine.store, entry)
    run_dependencies(engine, probe, "posthook_deps", only_dynamic=True)
    run_dependencies(engine, probe, "post_deps", only_dynamic=True)
    result_env, result_state = probe.results()
    return step_result(probe, "reused", result_env, result_state, entry)


def _make_entry(
    engine: Engine, configured: Configured, key: CacheKey, replaced: CacheEntry | None
) -> tuple[CacheKey, StepResult]:
    """Runs the recipe inside a new entry and finishes the entry, which then answers in place of ``replaced``."""
    store = engine.store
    entry = store.start(key, engine.maker(configured.recipe), replaced)
    store.watch_child_uses()
    paths = EntryPaths(entry.path)
    engine.tell(configured, "*", f"{configured.label}: running in {entry.path}")
    if replaced:
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
            store.remove(entry)
            return key, result
        frame.write_env_file(ENV_FILE, result.new_env)
        frame.write_env_file(ALL_ENV_FILE, frame.env)
    configured = frame.configured
    if entry.record and any(dependency.is_dynamic for dependency in frame.lists["deps"]):
        key = with_derived_tags(key, frame.derived_tags)
        entry = entry._replace(record=entry.record._replace(fingerprint=key.fingerprint))
    outcome = Outcome(
        new_env=result.new_env,
        new_state=result.new_state,
        dependencies=[dict(dependency.entry) for dependency in frame.lists["deps"]],
        version=frame.version or configured.version.exact,
        added_tags=(*applied_tags(configured), *tags_from_env(configured, frame.env), *frame.added_tags),
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
    return key, result._replace(entry=finished, version=outcome.version)


def _dependent_path(env: Mapping[str, Any], folder: Path) -> str:
    """The path outside the entry on which it depends, when the recipe named one that exists."""
    path = next((str(env[key]) for key in DEPENDENT_PATH_KEYS if env.get(key)), "")
    return path if path and os.path.exists(path) and not Path(path).is_relative_to(folder) else ""
