"""Carries a request out on paper: the same executor, with an engine, a store and frames that change nothing.

What a hook or a native script would set becomes a symbol (symbols.py), judged from the recipe's text (written.py); what
a finished cache entry holds is known. A dependency whose condition rests on a symbol is planned as *not known yet*, and
what it gives counts as unknown. So a plan never decides what it cannot know, and what it decides a run does likewise.

A recipe may help with a function ``plan(i)`` in its ``customize.py``: called instead of ``preprocess``, it must change
nothing outside ``i['env']``. The keys it sets there are known, other keys that preprocess names are not;
``{'return': 0, 'runs': [...]}`` lists inputs of further runs that the recipe will start itself; an error means that a
run would end with that error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ..disk.store import Maker, Store
from ..documents.written import ANY, NotedEnv, Written, written_by
from ..rules.cachemodel import CacheEntry, CacheKey
from ..rules.conditions import Verdict
from ..rules.configure import configure
from ..rules.deps import dependency_request
from ..rules.env import PREFIX, SUCCESSOR_PREFIX, Env, State, expand_env, key_matcher, merge_env, merge_state
from ..rules.errors import Ambiguous, NotFound, RecipeError, VariationNotFound
from ..rules.events import StepEvent
from ..rules.model import Configured, Dependency, HookResult, Phase, Recipe, Request, StepResult
from ..rules.symbols import has_symbol, is_glob, overlap, sources, symbol
from ..rules.version import VersionRange
from ..running.choose import Engine
from ..running.frame import VALIDATE_SCRIPT, Frame
from ..running.hooks import call_hook
from ..running.host import foreseen_os_env
from ..running.shell import find_script
from .planned_store import PlannedStore
from .planned_tree import TreeBuilder

PLAN_HOOK = "plan"
OWN_PLACES = (f"{PREFIX}TMP_CURRENT_", f"{SUCCESSOR_PREFIX}TMP_CURRENT_")
"""What the keys start with that the engine sets for each step, whatever hooks do."""
OS_TAGS = frozenset({"detect", "os"})
TEXT_LIMIT_BYTES = 1 << 20
"""Longer files of a recipe are data, not code."""


class RecipeTexts:
    """The code of recipes as text, and what it may change; read once."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        self._written: dict[str, Written] = {}

    def of(self, recipe: Recipe) -> tuple[dict[str, str], dict[str, str]]:
        """File name to text of the recipe's Python files and of its native scripts."""
        key = str(recipe.path)
        if key not in self._texts:
            found: tuple[dict[str, str], dict[str, str]] = ({}, {})
            for name in sorted(os.listdir(recipe.path)):
                kind = 0 if name.endswith(".py") else 1 if name.endswith(".sh") else None
                path = recipe.path / name
                if kind is not None and path.is_file() and path.stat().st_size <= TEXT_LIMIT_BYTES:
                    found[kind][name] = path.read_text(encoding="utf-8", errors="replace")
            self._texts[key] = found
        return self._texts[key]

    def written(self, recipe: Recipe) -> Written:
        """What the recipe's code may change."""
        key = str(recipe.path)
        if key not in self._written:
            python, scripts = self.of(recipe)
            hooks = python if "customize.py" in python else {}
            native = {name: text for name, text in scripts.items() if name != VALIDATE_SCRIPT}
            self._written[key] = written_by(hooks, native.values())
        return self._written[key]

    def has_plan_hook(self, recipe: Recipe) -> bool:
        """Whether customize.py defines ``plan``; only then is it ever loaded for a plan."""
        return f"\ndef {PLAN_HOOK}(" in "\n" + self.of(recipe)[0].get("customize.py", "")


class PlannedEngine(Engine):
    """An engine whose steps are only thought through; ``tree`` is the plan that comes out.

    ``parse`` turns the input of a run that a recipe starts itself into a request.
    """

    def __init__(self, engine: Engine, parse: Callable[[Mapping[str, Any]], Request]) -> None:
        super().__init__(
            source=engine.source, store=engine.store, cmind=None, top_folder=engine.top_folder, run=engine.run
        )
        self.parse = parse
        self.guard = engine.guard
        self.texts = RecipeTexts()
        self.tree = TreeBuilder(engine.source, self.texts.of)
        self.planned_store = PlannedStore(engine.store, self.tree.pending_now)
        self.store: Store = self.planned_store

    def frame(self, configured: Configured, folder: Path, log_path: Path | None) -> Frame:
        """A frame that runs nothing."""
        uncertain = self.planned_store.is_open_for(folder)
        self.tree.explain(self.planned_store.take_reason(), uncertain)
        return self.new_frame(configured, folder, uncertain)

    def new_frame(self, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> PlannedFrame:
        """The frame itself; ``is_open`` tells what could make the step a reuse."""
        return PlannedFrame(self, configured, folder, is_open)

    def configure(self, recipe: Recipe, request: Request) -> Configured:
        """As the engine does, but a default counts as unknown where an earlier step may have set the key."""
        if request.unknown.rules:
            maybe = request.unknown.outside(request.env)
            names = {key for source in _default_envs(recipe) for key in source if key in maybe}
            filled = {key: symbol(key, request.unknown.source(key)) for key in sorted(names)}
            request = request._replace(env={**request.env, **filled})
        return configure(recipe, request)

    def narrowed_version(self, frame: Frame, key: CacheKey) -> VersionRange:
        """A step that may not happen, or whose wish is not known yet, puts no bounds on others."""
        return key.version if _is_open(frame, key) else super().narrowed_version(frame, key)

    def note_choice(self, frame: Frame, key: CacheKey, result: StepResult) -> None:
        """What may not happen decides nothing; a version that is not known yet counts as unknown."""
        if not _is_open(frame, key):
            version = "" if has_symbol(result.version) else result.version
            is_planned = result.entry is None or self.planned_store.is_planned(result.entry)
            self.demands.note(key, version, result.entry.uid if result.entry else "")
            if self.guard and result.entry and not is_planned:
                self.guard.verify(key, result.entry, frame.configured.label)

    def maker(self, recipe: Recipe) -> Maker:
        """Nobody: nothing is made."""
        return Maker("", "")

    def tell(self, configured: Configured, symbol: str, text: str) -> None:
        """Keeps what needs attention as a note of the step."""
        if symbol == "!":
            self.tree.note(text)

    def emit(self, event: StepEvent) -> None:
        """Grows the plan, and shows at which step the lock would stop the run."""
        self.tree.take(event)
        if self.guard:
            self.guard.take(event)

    def run_dependency(self, frame: Frame, dependency: Dependency, phase: Phase, verdict: Verdict) -> None:
        """Plans a dependency; what is not known for sure is marked, and an error stays where it is."""
        assert isinstance(frame, PlannedFrame)
        request = dependency_request(dependency, frame.as_parent(), phase)
        waits = [f"{key} from {frame.source_of(key)}" for key in verdict.waiting_for]
        words = (*request.query.all_of, *request.query.variations)
        waits += sources([word for word in words if has_symbol(word)])
        self.plan_request(frame, dependency.label, _without_symbols(request), (*frame.pending, *waits))

    def plan_request(self, frame: PlannedFrame, label: str, request: Request, pending: tuple[str, ...]) -> None:
        """Plans one request below ``frame`` and hands on what it gives."""
        request = request._replace(pending=tuple(dict.fromkeys(pending)))
        count = self.tree.count
        try:
            result = self.run(self, request)
        except RecipeError as error:
            error.trace = error.trace or frame.trace
            if self.tree.count == count:  # it did not get as far as a step of its own
                self.tree.add_failure((*frame.trace, label), request, error)
            if request.pending and isinstance(error, NotFound | Ambiguous | VariationNotFound):
                frame.set_unknown([ANY], label)
            return
        if request.phase:
            frame.take_planned(result, is_certain=not request.pending)


def _is_open(frame: Frame, key: CacheKey) -> bool:
    return isinstance(frame, PlannedFrame) and bool(frame.pending or has_symbol(key.version.text))


def _default_envs(recipe: Recipe) -> Iterable[Mapping[str, Any]]:
    yield recipe.layer.default_env
    for variation in recipe.variations.values():
        yield variation.source.get("default_env") or {}
    for block in recipe.versions.values():
        yield block.get("default_env") or {}


def _without_symbols(request: Request) -> Request:
    """The request with only those tags and variations that are known."""
    query = request.query
    return request._replace(
        query=query._replace(
            all_of=tuple(word for word in query.all_of if not has_symbol(word)),
            variations=tuple(word for word in query.variations if not has_symbol(word)),
        )
    )


class PlannedFrame(Frame):
    """One step on paper.

    ``pending`` must turn out true for it to happen; ``is_open`` tells what could make it a reuse instead of a run.
    """

    def __init__(self, engine: PlannedEngine, configured: Configured, folder: Path, is_open: tuple[str, ...]) -> None:
        super().__init__(configured, folder=folder, log_path=None, top_folder=engine.top_folder, cmind=None)
        self.engine = engine
        self.written = engine.texts.written(self.recipe)
        self.is_open = is_open
        self.pending: tuple[str, ...] = (*configured.request.pending, *is_open)
        self._own_pending: tuple[str, ...] = ()

    def source_of(self, key: str) -> str:
        """The step that gives the key, as far as that is known."""
        waiting = sources(self.env.get(key, ""))
        return waiting[0].partition(" from ")[2] if waiting else self.unknown.source(key)

    def set_unknown(self, patterns: Iterable[str], source: str) -> None:
        """Notes that keys may be changed: those that are there become symbols, the others are remembered."""
        for pattern in patterns:
            matches = key_matcher((pattern,)).match
            keys = [key for key in self.env if matches(key)] if is_glob(pattern) else [pattern]
            self.env.update({key: symbol(key, source) for key in keys if not key.startswith(OWN_PLACES)})
            self.unknown = self.unknown.with_rules([(pattern, source)])
        self.enforce_const()

    def hook(self, name: str) -> HookResult:
        """What is known of a hook without calling it; ``plan`` is called in place of preprocess."""
        written, label = self.written, self.recipe.id.alias
        if name == "postprocess":
            self.set_unknown(written.after, label)
            if set(self.recipe.tags) >= OS_TAGS:  # the one recipe whose answer most others wait for
                prefix = self.recipe.prefix
                self.env.update({prefix + key[len(PREFIX) :]: value for key, value in foreseen_os_env().items()})
        if name == "predeps":  # its keys are not told apart from those of preprocess
            self.set_unknown(written.before, label)
        if name != "preprocess":
            return HookResult()
        if self.engine.texts.has_plan_hook(self.recipe):
            known = self._call_plan_hook()
            told = known.touched if isinstance(known, NotedEnv) else set(known)
            self.set_unknown([key for key in written.before if not is_glob(key) and key not in told], label)
            self.env.update({key: known[key] for key in told if key in known})
            self.enforce_const()
        else:
            self.set_unknown(written.before, label)
            self._note_what_a_hook_hides(written)
        return HookResult()

    def _call_plan_hook(self) -> Env:
        meta = self._meta()
        extra = self._common_input(meta)
        i = {"env": NotedEnv(self.env), "state": self.state, "meta": meta, "customize": {}, "artifact": None, **extra}
        result = call_hook(self.recipe, PLAN_HOOK, i) or HookResult()
        self.version = result.version
        self.added_tags = result.extra_cache_tags
        for inputs in result.runs:
            request = self.engine.parse(inputs)._replace(trace=self.trace)
            self.engine.plan_request(self, request.query.text or request.alias, request, self.pending)
        known: Env = i["env"]
        return known

    def _note_what_a_hook_hides(self, written: Written) -> None:
        label = self.recipe.id.alias
        if written.runs_recipes:
            self.engine.tree.note("its customize.py runs further recipes that a plan cannot see")
        if written.may_end_early:
            self._own_pending += (f"whether preprocess of {label} ends it early",)
        if written.may_change_lists:
            self._own_pending += (f"whether preprocess of {label} changes its dependencies",)
        self.pending = (*self.pending, *self._own_pending)

    def run_script(self) -> None:
        """Marks what the native script may set."""
        for old, new in self.recipe.env_key_mappings.items():
            self.env.update({new + key[len(old) :]: value for key, value in self.env.items() if key.startswith(old)})
        if find_script(self.recipe.path, self.script_name, self.env, self.recipe.prefix):
            self.set_unknown(self.written.after, self.recipe.id.alias)

    def take_planned(self, result: StepResult, *, is_certain: bool) -> None:
        """Adds what a planned dependency gives; when it may not happen, its keys are unknown afterwards."""
        new_env = result.new_env
        if not is_certain:
            same = {key for key, value in new_env.items() if self.env.get(key) == value}
            new_env = {key: value if key in same else symbol(key, result.label) for key, value in new_env.items()}
        self.env = expand_env(merge_env(self.env, new_env))
        if is_certain:
            self.state = merge_state(self.state, result.new_state)
        for pattern, source in result.unknown:
            self.set_unknown([pattern], source)
        self.enforce_const()

    def take_entry(self, store: Store, entry: CacheEntry) -> None:
        """Adds what an entry holds, be it on disk or planned."""
        super().take_entry(store, entry)
        self.unknown = self.unknown.with_rules(self.engine.planned_store.rules_of(entry))

    def results(self) -> tuple[Env, State]:
        """What would leave the step; keys that only an entry or a run would tell are symbols."""
        new_env, new_state = super().results()
        layer, request = self.configured.layer, self.configured.request
        allowed = layer.new_env_keys if request.new_env_keys is None else request.new_env_keys
        source = self.recipe.id.alias
        rules = {rule: self.unknown.source(rule) or source for rule in overlap(self._patterns(), allowed)}
        missing = [key for key in rules if key in allowed and key not in self.env]
        new_env.update({key: symbol(key, rules[key]) for key in missing})
        if self.is_open:
            new_env = {key: symbol(key, source) for key in new_env}
        self.exported = tuple((rule, origin) for rule, origin in rules.items() if rule not in new_env)
        self.engine.planned_store.keep_rules(self.folder, self.exported)
        return new_env, new_state

    def _patterns(self) -> list[str]:
        return [pattern for pattern, _ in self.unknown.rules]

    def inside(self, folder: Path) -> AbstractContextManager[None]:
        """The folder of an entry that is never made."""
        return nullcontext()

    def alone_in(self, folder: Path) -> AbstractContextManager[None]:
        """Nothing is run, so nobody is disturbed."""
        return nullcontext()

    def remove_outputs(self) -> None:
        """Nothing is removed."""

    def output_folder(self) -> Path:
        """The folder is not made."""
        return Path.cwd()

    def clean_up(self, folder: Path, *, with_scratch: bool) -> None:
        """Nothing is removed."""

    def write_env_files(self, new_env: Env) -> None:
        """Nothing is written."""

    def validation_problem(self, new_env: Env) -> str:
        """The recipe's own check is a script, so it is not run."""
        text = f"the {VALIDATE_SCRIPT} of {self.recipe.id.alias} has the last word when it is run"
        if text not in self.engine.told:  # once is enough for all its entries
            self.engine.told.add(text)
            self.engine.tree.note(text)
        return ""
