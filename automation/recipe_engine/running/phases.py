"""What a step does once it is decided that it runs: hooks, native script and dependencies, in CM's order.

Order inside one recipe, kept from CM: dependencies, preprocess, prehook dependencies, native script, posthook
dependencies, postprocess, post dependencies. Dependencies are whole requests again; the engine runs them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..rules.cachekey import tags_from_env
from ..rules.cachemodel import CacheEntry
from ..rules.configure import apply_default_version
from ..rules.deps import dependency_tags, request_from_inputs, should_run
from ..rules.env import Env, State, select_keys
from ..rules.errors import RecipeError
from ..rules.events import StepEvent
from ..rules.model import Phase, StepResult
from ..rules.schema import is_yes
from ..rules.tags import parse_query
from .choose import Engine
from .frame import Frame


def make(engine: Engine, frame: Frame, entry: CacheEntry | None) -> StepResult:
    """Runs a recipe's phases in the current folder."""
    started_s = time.perf_counter()
    options = frame.configured.request.options
    configured = apply_default_version(frame.configured)
    if configured is not frame.configured:
        frame.configured = configured
        frame.env = {**configured.env, **select_keys(frame.env, ("*_TMP_CURRENT_*",))}
        frame.lists = {phase: configured.layer.dependencies(phase) for phase in frame.lists}
    engine.emit(StepEvent("run", frame.trace, configured))
    for line in configured.layer.warnings:
        engine.tell(configured, "!", f"{configured.label}: {line}")
    for line in frame.check_host():
        engine.tell(configured, "!", f"{configured.label}: {line}")
    if frame.has_predeps and not options.fake_run:
        frame.hook("predeps")
    run_dependencies(engine, frame, "deps")
    frame.derived_tags = tags_from_env(configured, frame.env)
    frame.tell_hooks(TMP_PIP_VERSION_STRING=configured.version.pip_text)
    frame.enforce_const()
    with ExitStack() as stack:
        stack.enter_context(frame.inside(frame.output_folder()))
        folder = Path.cwd()
        with_scratch = entry is not None or (frame.has_scripts and not options.fake_run)
        if with_scratch and entry is None:
            stack.enter_context(frame.alone_in(folder))
        frame.clean_up(folder, with_scratch=with_scratch)
        replaced = _run_body(engine, frame)
        if entry is None and not options.dirty:
            frame.clean_up(folder, with_scratch=with_scratch)
    if replaced:
        return replaced
    new_env, new_state = frame.results()
    engine.tell(configured, "+", f"{configured.label}: done in {time.perf_counter() - started_s:.2f} s")
    return step_result(frame, "faked" if options.fake_run else "ran", new_env, new_state, entry)


def _run_body(engine: Engine, frame: Frame) -> StepResult | None:
    """From preprocess to post dependencies; a result when preprocess ended the recipe or put another in its place."""
    options = frame.configured.request.options
    if not options.fake_run:
        before = frame.hook("preprocess")
        frame.env = dict(frame.env)
        frame.enforce_const()
        if before.skip:
            return _skipped(engine, frame, before.replacement)
    run_dependencies(engine, frame, "prehook_deps")
    if options.fake_run:
        return None
    frame.run_script()
    frame.enforce_const()
    run_dependencies(engine, frame, "posthook_deps")
    frame.hook("postprocess")
    frame.enforce_const()
    run_dependencies(engine, frame, "post_deps")
    return None


def _skipped(engine: Engine, frame: Frame, replacement: Mapping[str, Any] | None) -> StepResult:
    """The result of a recipe that ended early: nothing, or what the recipe named in its place gives."""
    if replacement is None:
        engine.tell(frame.configured, "-", f"{frame.configured.label}: ended early by its preprocess")
        return step_result(frame, "skipped", {}, {}, None)
    request = request_from_inputs(replacement, options=frame.configured.request.options)
    request = request._replace(
        query=parse_query(replacement.get("tags", "")),
        alias=str(replacement.get("artifact", "") or ""),
        env=frame.env,
        state=frame.state,
        const=frame.const,
        const_state=frame.const_state,
        trace=frame.trace,
        unknown=frame.unknown,
        pending=frame.pending,
    )
    inner = engine.run(engine, request)
    result = step_result(frame, "skipped", frame.let_out(inner.new_env), inner.new_state, None)
    return result._replace(label=inner.label, unknown=inner.unknown)


def run_dependencies(engine: Engine, frame: Frame, phase: Phase, *, only_dynamic: bool = False) -> None:
    """Runs the dependencies of one phase in order, each seeing what the earlier ones gave."""
    for dependency in frame.lists[phase]:
        options = frame.configured.request.options
        verdict = should_run(
            dependency, frame.env, frame.unknown.outside(frame.env), only_dynamic=only_dynamic, is_fake=options.fake_run
        )
        if verdict.answer == "no":
            engine.emit(StepEvent("skip", (*frame.trace, dependency.label), reason=verdict.reason))
            continue
        frame.dependency_tags.append(",".join(dependency_tags(dependency, frame.as_parent())))
        if options.fake_deps:
            continue
        try:
            engine.run_dependency(frame, dependency, phase, verdict)
        except RecipeError as error:
            if not is_yes(dependency.entry.get("continue_on_error")):
                raise
            engine.tell(frame.configured, "!", f"going on without {dependency.label}: {error.message}")


def step_result(frame: Frame, status: Any, new_env: Env, new_state: State, entry: CacheEntry | None) -> StepResult:
    return StepResult(
        label=frame.configured.label,
        status=status,
        new_env=new_env,
        new_state=new_state,
        version=(entry.version if entry else "") or frame.version,
        entry=entry,
        dependency_tags=tuple(frame.dependency_tags),
        unknown=frame.exported,
    )
