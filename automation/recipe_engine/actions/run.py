"""``cm run script``: the straight line from CM's input to CM's answer.

engine  = Engine(recipes, effects, ...)      what there is
request = parse_request(i)                   what was asked for
result  = engine.run_consistently(request)   choose, configure, reuse or make; dependencies first (running/step.py)
answer  = to_cm(result, i)

The input ``i`` is read at the two ends only; hooks see it as ``i['input']``, which is ``request.inputs``.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..disk.store import Store
from ..rules.deps import SILENT_KEY
from ..rules.env import Env, with_lists
from ..rules.errors import RequestError
from ..rules.inputs import EXTRA_FLAGS, FLAGS, FLAGS_AS_ENV, renamed_line, request_from_inputs
from ..rules.model import Recipe, Request, RunOptions, StepEvent, StepResult
from ..rules.query import BOUND_KEYS, TagQuery, candidates, further_words, parse_query, split_words
from ..rules.schema import is_yes
from ..rules.secrets import known_from
from ..rules.spelling import meant
from ..running.context import passed_on_env
from ..running.effects import RealEffects
from ..running.engine import Engine, Guard, guard_in_progress, running_trace
from ..running.step import run_request
from .adapter import Home, loaded, to_cm

if TYPE_CHECKING:
    from ..running.journal import Journal

logger = logging.getLogger(__name__)

RECURSION_LIMIT = 5000
"""Enough for recipes as deep below each other as ``Engine`` allows, also where they call ``cm.access`` themselves."""


def new_engine(home: Home, cmind: Any, effects: type[RealEffects] = RealEffects) -> Engine:
    """What all steps of one call share: recipes, store, the folder of the call."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    source, store = home.source(), Store.current(home.store_path)
    engine = Engine(source, effects(source, store, cmind), os.getcwd(), run_request)
    engine.names_below = lambda request: loaded("planning.plan_action.names_below")(engine, request)
    return engine


def run_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm run script``; raises RecipeError."""
    with known_from(os.environ, i), Store.opened(home.store_path):
        if EXTRA_FLAGS.isdisjoint(i):
            engine = new_engine(home, cmind)
            with recorded(engine, i, home.path):
                return _run(i, engine)
        from .run_extras import WatchedEffects, run_with_extras  # here, because few calls have such a flag

        engine = new_engine(home, cmind, WatchedEffects)
        with recorded(engine, i, home.path):
            return run_with_extras(i, engine, _run)


@contextmanager
def recorded(engine: Engine, inputs: Mapping[str, Any], home: Path) -> Iterator[None]:
    """What ``engine`` does inside the block goes to the journal of the run, which a user started with ``inputs``.

    The journal begins with the first step that the cache does not serve, and has what runs of its recipes do, too.
    """
    started_s = time.time()
    waiting: list[tuple[float, StepEvent]] = []
    journals: list[Journal] = []

    def take(event: StepEvent) -> None:
        waiting.append((time.time(), event))
        if event.kind == "run" and not journals:
            from ..running.journal import RUNS_FOLDER, Journal  # here, because a run that only reuses has none

            journals.append(Journal(home / RUNS_FOLDER, inputs, engine, started_s))
            journals[0].start()
        for journal in journals:
            while waiting:
                journal.take(*waiting.pop(0))

    error: BaseException | None = None
    with engine.in_progress() as is_outermost:
        if is_outermost:
            engine.observers.append(take)
        try:
            yield
        except BaseException as caught:
            error = caught
            raise
        finally:
            for journal in journals:
                journal.end(error)


def guard_for(i: Mapping[str, Any], engine: Engine) -> Guard | None:
    """What ``--frozen`` or ``--locked`` hold a run or a plan to; else what the run in progress is held to.

    Raises RequestError for a lockfile that cannot be read.
    """
    if not (i.get("frozen") or i.get("locked")):
        return guard_in_progress()
    guard: Guard = loaded("provenance.lock.read_guard")(i, engine.source, engine.store)
    return guard


def _run(i: Mapping[str, Any], engine: Engine) -> dict[str, Any]:
    """From CM's input to CM's answer; what happens in between knows the request alone."""
    engine.guard = guard_for(i, engine)
    recipe, result = carried_out(parse_request(i), engine)
    answer = to_cm(result, i)
    if i.get("out"):
        _show_env(recipe, result)
    if is_yes(i.get("print_deps")):
        prefix = str(i.get("script_call_prefix") or "cm run script").strip()
        answer["new_state"] = {**answer["new_state"], "print_deps": _show_dependencies(result, prefix)}
    return answer


def carried_out(request: Request, engine: Engine) -> tuple[Recipe, StepResult]:
    """The recipe that was chosen, and what it gives; raises RecipeError."""
    if not (engine.guard or request.trace or request.options.fake_run) and is_planned_first(engine, request):
        loaded("planning.plan_action.refuse_impossible")(engine, request)
    begun: list[Recipe] = []
    engine.observers.append(lambda event: _note_recipe(begun, event))
    result = engine.run_consistently(request)
    return begun[0], result


def is_planned_first(engine: Engine, request: Request) -> bool:
    """Whether a recipe that fits says ``plan_first``: what the plan shows to be impossible is not begun."""
    found = candidates(request.query, request.alias, engine.source.index)
    return any(engine.source.recipe(entry).meta.get("plan_first") for entry in found)


def split_artifact(i: Mapping[str, Any]) -> tuple[list[str], str]:
    """The tag words and the name that ``--tags`` and the artifact words of the command line ask for.

    A first word with a blank in it is a list of tags and takes the place of ``--tags``; further words with a blank or a
    comma are added to it. Any other first word is an alias or a uid (or ``alias,uid``), maybe behind ``repo:``.
    Raises RequestError for further words that are no lists, and for a list of tags in the place of a name.
    """
    artifact = str(i.get("artifact") or "").strip()
    tags = i.get("tags") or ""
    if not isinstance(tags, str | list | tuple):
        raise RequestError(f"--tags must contain tags, found {tags!r}", hint="write --tags=get,python3")
    words = list(split_words(tags))
    extras = further_words(i)
    plain = [extra for extra in extras if " " not in extra and "," not in extra]
    _, comma, uid = artifact.partition(",")
    has_tags = bool(comma) and " " not in artifact and re.fullmatch("[0-9a-f]{16}", uid) is None
    if (plain or has_tags) and i.get("out"):  # cmind hands in both words of cm cp and cm mv
        if words:
            found = " ".join([artifact, *plain])
            raise RequestError(
                f"a recipe has one name, found next to --tags: {found}",
                hint="an input and its value are one word: --INPUT=VALUE",
            )
        joined = ",".join([*words, *artifact.replace(" ", ",").split(","), *plain])
        asked = {**i, "tags": joined, "artifact": "", "artifacts": ()}
        raise RequestError(
            f"a recipe name is one word: pass tags with --tags, found: {' '.join([artifact, *plain])}",
            hint=renamed_line(asked, {}, str(i.get("action") or "run")),
        )
    if " " in artifact:
        words = list(split_words(artifact.replace(" ", ",")))
        artifact = ""
    for extra in (extra for extra in extras if extra not in plain):
        words += split_words(extra.replace(" ", ","))
    return words, artifact.rpartition(":")[2].rpartition(",")[2]


def parse_query_input(i: Mapping[str, Any]) -> tuple[TagQuery, str]:
    """The query and the recipe name that were asked for; see ``split_artifact``."""
    words, name = split_artifact(i)
    return parse_query(words), name


STEPS_ONLY = "steps"
"""``--silent=steps``: for a recipe that makes the same calls again and again; what their scripts write is shown."""


_SWITCHES: Mapping[str, tuple[str, ...]] = {
    "quiet": ("quiet", "q"),
    "silent": ("silent", "s"),
    "verbose": ("verbose", "v"),
    "fake_run": ("fake_run", "prepare"),
    **{name: (name,) for name in ("dirty", "fake_deps", "mixed_versions", "save_env")},
}
"""Options and the flags that switch each on; those that a dependency entry has too are in rules/inputs.py."""


def parse_options(i: Mapping[str, Any]) -> RunOptions:
    """The flags of the engine that hold for the whole tree; raises RequestError for a value that makes no sense."""
    timeout = i.get("lock_timeout")
    try:
        timeout_s = None if timeout is None else float(timeout)
    except (TypeError, ValueError):
        timeout_s = -1.0
    if timeout_s is not None and not timeout_s >= 0:  # nor is nan
        raise RequestError(f"--lock_timeout must be a number of seconds >= 0, got {timeout!r}")
    given = {option: True for option, names in _SWITCHES.items() if any(is_yes(i.get(name)) for name in names)}
    return RunOptions(**given, steps_hidden=i.get("silent") == STEPS_ONLY, lock_timeout_s=timeout_s)


def parse_request(i: Mapping[str, Any]) -> Request:
    """CM's input dict as a Request; raises RequestError or MetaError for what cannot be used."""
    options = parse_options(i)
    query, alias = parse_query_input(i)
    _check_words(i, is_empty=not (query.all_of or alias))
    repo = str(i.get("artifact") or "").strip().rpartition(":")[0]
    env = with_lists({**passed_on_env(), **mapping_of(i, "env")})
    if token := env.pop("GH_TOKEN", None):
        env.setdefault("CM_GH_TOKEN", token)
    env.update(_flags_as_env(options, i))
    request = request_from_inputs(_inputs_of(i), options=options)
    if request.options.new and request.options.renew:
        raise RequestError("--new and --renew contradict each other", hint="--renew rebuilds an entry, --new adds one")
    return request._replace(
        query=query,
        alias=f"{repo}:{alias}" if repo and alias else alias,
        env=env,
        state=mapping_of(i, "state"),
        const=mapping_of(i, "const"),
        const_state=mapping_of(i, "const_state"),
        trace=running_trace(),
    )


def _check_words(i: Mapping[str, Any], *, is_empty: bool) -> None:
    """Raises RequestError for a version without a value, and for a misspelt ``--tags`` when no recipe is named."""
    for name in BOUND_KEYS:
        if i.get(name) is True or (i.get(name) == "" and i.get("out")):
            raise RequestError(f"--{name} has no value", hint=f"add one, such as --{name}=1.2.3, or omit the option")
    wrong = [str(name) for name in i if name not in FLAGS and meant(str(name), ("tags",))] if is_empty else []
    if wrong:
        raise RequestError(
            f"unknown flag --{wrong[0]}, did you mean --tags?",
            hint=renamed_line(i, {wrong[0]: "tags"}, str(i.get("action") or "run")),
        )


def _inputs_of(i: Mapping[str, Any]) -> dict[str, Any]:
    """What hooks see as ``i['input']``.

    ``cmd``, the words of the command line, is also that of the recipe which hands on its own ``input``, as in CM.
    """
    inputs = {key: value for key, value in i.items() if key not in ("parsed_automation", "parsed_artifact")}
    handed_on = i.get("input")
    if not inputs.get("cmd") and isinstance(handed_on, Mapping) and "cmd" in handed_on:
        inputs["cmd"] = handed_on["cmd"]
    return inputs


def _flags_as_env(options: RunOptions, i: Mapping[str, Any]) -> Env:
    """The flags that recipes read from the env (reference engine, cm4mlops e1d5c7cf0)."""
    flags = {
        "CM_QUIET": options.quiet,
        SILENT_KEY: options.silent,
        "CM_VERBOSE": options.verbose,
        "CM_TMP_FAKE_RUN": options.fake_run,
    }
    flags.update({key: is_yes(i.get(name)) for name, key in FLAGS_AS_ENV.items()})
    env: Env = {key: "yes" for key, is_on in flags.items() if is_on}
    return {**env, "CM_TMP_DEBUG_UID": str(i["debug_uid"])} if i.get("debug_uid") else env


def mapping_of(i: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An input that holds values by name; raises RequestError for any other."""
    value = i.get(key)
    if value is None or value is False:
        return {}
    if not isinstance(value, Mapping):
        raise RequestError(f"--{key} needs a key, found {value!r}", hint=f"write --{key}.NAME=VALUE")
    return {str(name): item for name, item in value.items()}  # a caller in Python may use a number


def _note_recipe(begun: list[Recipe], event: StepEvent) -> None:
    if event.kind == "start" and event.configured:
        begun.append(event.configured.recipe)


def _show_dependencies(result: StepResult, prefix: str) -> list[str]:
    """The command for each direct dependency of the recipe, as it was resolved; printed too."""
    commands = [f"{prefix} --tags={tags}" for tags in result.dependency_tags]
    for command in commands:
        logger.info("  %s", command)
    return commands


def _show_env(recipe: Recipe, result: StepResult) -> None:
    for key, label in recipe.print_env_at_the_end.items():
        if key in result.new_env:
            logger.info("  %s: %s", label or key, result.new_env[key])
