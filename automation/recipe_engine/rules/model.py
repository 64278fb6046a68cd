"""The types of the engine. All are frozen; sequences are tuples, mappings are never written to.

``env`` and ``state`` values are open by nature and stay plain mappings; everything else has a type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .conditions import NOTHING_UNKNOWN, Condition, Unknown
from .env import PREFIX, SUCCESSOR_PREFIX, Env, State, ValueRule
from .errors import RecipeError
from .frozen import Frozen
from .query import TagQuery, VersionRange


class RecipeId(Frozen):
    """The names of a recipe: ``alias`` for people, ``uid`` (16 hex digits) for machines."""

    alias: str
    uid: str

    @property
    def text(self) -> str:
        """``alias,uid``, as CM writes it."""
        return f"{self.alias},{self.uid}"


class CacheKey(Frozen):
    """What an entry must be to serve a request.

    ``required_tags`` and ``excluded_tags`` are CM's search; ``variations`` is the whole resolved set and must be equal
    for entries made by this engine; ``extra_tags`` were asked for besides the recipe's own; ``inputs`` are the mapped
    inputs given now: an entry that recorded another value for one of them does not fit.
    ``derived_tags`` come from env values.
    """

    recipe: RecipeId
    required_tags: tuple[str, ...]
    excluded_tags: tuple[str, ...]
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    version: VersionRange
    derived_tags: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """64 hex digits that are equal for two requests exactly when what either makes serves both; names the lock.

        Excluded tags do not count: what a recipe makes has none of them unless it adds them itself, and who waited for
        the lock looks again.
        """
        import hashlib  # here, because a request that is served from the cache never needs it

        facts = [
            self.recipe.uid,
            self.variations,
            sorted(self.extra_tags),
            sorted(self.derived_tags),
            sorted(self.inputs.items()),
            [self.version.exact, self.version.minimum, self.version.maximum],
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class FileRecord(Frozen):
    """A file that an entry declared: path inside the entry, size in bytes, time in ns, SHA-256 in hex."""

    path: str
    size_bytes: int
    mtime_ns: int
    sha256: str


class EntryDetails(Frozen):
    """What the ``entry.json`` of a finished entry records; all of it is empty for entries made by CM itself.

    ``dependencies`` are the uids of the entries that were used while this one was made, ``request`` is what was asked
    for, ``chain`` the labels of the steps that led to it, ``locked`` what a lock adds to the files.
    """

    files: tuple[FileRecord, ...] = ()
    state_sha256: str = ""
    dependencies: tuple[str, ...] = ()
    request: Mapping[str, Any] = {}
    variations: tuple[Mapping[str, Any], ...] = ()
    chain: tuple[str, ...] = ()
    locked: Mapping[str, Any] = {}


class EntryRecord(Frozen):
    """What this engine records in an entry in addition to CM's keys; none of it exists in entries made by CM itself.

    ``asked_version`` is the exact version that was asked for; the recipe may have reported a longer one.
    """

    fingerprint: str
    recipe_digest: str
    recipe_stamp: str
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    created_utc: str
    asked_version: str = ""
    replaces: tuple[str, ...] = ()
    """The uids of the entries that stop answering when this one is finished."""


class CacheEntry(Frozen):
    """One folder of the store as its ``_cm.json`` describes it.

    ``expires_s`` (since 1970) is when its time is over; ``retired`` says why a once finished entry is never used again.
    """

    uid: str
    path: Path
    tags: tuple[str, ...]
    version: str
    recipe: RecipeId
    dependent_path: str
    record: EntryRecord | None
    expires_s: float | None = None
    retired: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the entry may be used; CM marks an unfinished one, and this engine a retired one, with ``tmp``."""
        return "tmp" not in self.tags

    def is_expired(self, now_s: float) -> bool:
        """Whether the time that its recipe gave it (``cache_expiration``) is over."""
        return self.expires_s is not None and now_s >= self.expires_s

    def is_left_over_of(self, key: CacheKey) -> bool:
        """Whether an attempt to make an entry for ``key`` began this one and has not finished it."""
        is_unfinished = not self.is_complete and not self.retired
        return is_unfinished and self.record is not None and self.record.fingerprint == key.fingerprint


class Maker(Frozen):
    """The recipe that makes an entry: SHA-256 over its files, and their times and sizes as one short text."""

    digest: str
    stamp: str


class Outcome(Frozen):
    """What a recipe leaves in its entry in addition to its own files."""

    new_env: Mapping[str, Any]
    new_state: Mapping[str, Any]
    dependencies: Sequence[Mapping[str, Any]]
    version: str
    added_tags: tuple[str, ...]
    files: tuple[str, ...]
    dependent_path: str
    details: Mapping[str, Any]
    lifetime_s: float | None = None


Phase = Literal["deps", "prehook_deps", "posthook_deps", "post_deps"]
PHASES: tuple[Phase, ...] = ("deps", "prehook_deps", "posthook_deps", "post_deps")

SUCCESSOR_FILE = "meta.yaml"
"""The metadata file of recipes for CM's successor (mlcommons/mlperf-automations, 2025)."""

IGNORED_FOLDERS = ("__pycache__", "tests", "docs", "dockerfiles")
"""What in the folder of a recipe changes nothing about it."""

SUCCESSOR_TAG = "format-mlc"
"""Marks cache entries that such recipes made."""

Overrides = Mapping[str, Mapping[str, Any]]
"""Handle of a dependency (one of its ``names``) to the keys that are changed on it: CM's ``ad`` and ``adr``."""


class Dependency(Frozen):
    """One entry of a deps-like list. ``entry`` is the mapping as written; the other fields are read from it."""

    entry: Mapping[str, Any]
    tags_text: str
    names: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    is_dynamic: bool = False
    env: Env = {}
    const: Env = {}
    state: State = {}
    const_state: State = {}
    conditional: tuple[ConditionalLayer, ...] = ()
    update_tags_from_env: tuple[str, ...] = ()
    update_tags_from_env_with_prefix: Mapping[str, tuple[str, ...]] = {}
    update_tags_if_env: Mapping[str, tuple[Condition, ...]] = {}
    inherit_variation_tags: bool = False
    skip_inherit_variation_groups: tuple[str, ...] = ()
    force_env_keys: tuple[str, ...] = ()
    reuse_version: bool = False
    skip_if_fake_run: bool = False
    continue_on_error: bool = False
    inherit_cache_expiration: bool = False

    @property
    def label(self) -> str:
        """What to call this dependency in messages."""
        return self.tags_text or "/".join(self.names)


class ConditionalLayer(Frozen):
    """A block of ``update_meta_if_env``: ``layer`` counts while ``conditions`` hold."""

    conditions: tuple[Condition, ...]
    layer: Layer


class Layer(Frozen):
    """The block that a recipe, a variation, a version and ``update_meta_if_env`` all repeat."""

    default_env: Env = {}
    env: Env = {}
    const: Env = {}
    state: State = {}
    const_state: State = {}
    docker: State = {}
    deps: tuple[Dependency, ...] = ()
    prehook_deps: tuple[Dependency, ...] = ()
    posthook_deps: tuple[Dependency, ...] = ()
    post_deps: tuple[Dependency, ...] = ()
    overrides: Overrides = {}
    recursive_overrides: Overrides = {}
    input_mapping: Mapping[str, str] = {}
    new_env_keys: tuple[str, ...] = ()
    new_state_keys: tuple[str, ...] = ()
    conditional: tuple[ConditionalLayer, ...] = ()
    script_name: str = ""
    default_version: str = ""
    warnings: tuple[str, ...] = ()
    required_disk_space_mb: int = 0
    needs: Mapping[str, Any] = {}
    default_variations: Mapping[str, str] = {}
    cache_expiration: str = ""
    is_cached: bool | None = None

    def dependencies(self, phase: Phase) -> tuple[Dependency, ...]:
        """The dependencies that run in ``phase``."""
        found: tuple[Dependency, ...] = getattr(self, phase)
        return found


class Variation(Frozen):
    """A named modifier of a recipe, selected with the tag ``_name``; ``name.#`` takes a value.

    ``source`` is its block as written: it becomes a ``Layer`` only when the variation is applied, because a value for
    ``#`` has to be filled in first and big recipes have hundreds of blocks that a run never looks at.
    """

    name: str
    source: Mapping[str, Any]
    group: str = ""
    is_default: bool = False
    base: tuple[str, ...] = ()
    default_variations: Mapping[str, str] = {}
    alias: str = ""
    library: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of a combined variation ``a,b``; just the name otherwise."""
        return tuple(part.strip() for part in self.name.split(","))


class InputDescription(Frozen):
    """What a recipe says about one of its inputs; ``kind`` is its type (input_types.py), empty for any text.

    ``refused``: values that people may expect among the choices, with what to do instead. ``env_key`` gets the value.
    ``minimum``, ``maximum`` and ``above`` bound a number and are empty for none. ``only_with``: inputs, ``NAME`` or
    ``NAME=VALUE``, of which one must hold; ``together_with``: inputs that are given with it or not at all. ``aliases``:
    other names under which it may be given. ``may_be_empty``: an empty value is allowed, and counts as not given.
    """

    description: str = ""
    kind: str = ""
    choices: tuple[str, ...] = ()
    refused: Mapping[str, str] = {}
    default: str = ""
    env_key: str = ""
    unit: str = ""
    minimum: str = ""
    maximum: str = ""
    above: str = ""
    only_with: tuple[str, ...] = ()
    together_with: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    may_be_empty: bool = False

    @property
    def is_path(self) -> bool:
        """Whether a relative value counts from the folder where the command was given."""
        return self.kind in ("path", "list of path")


class Recipe(Frozen):
    """One parsed ``_cm.yaml``/``_cm.json`` (or ``meta.yaml``) with the folder it came from.

    ``versions`` maps a version to its block as written; ``meta`` is the whole file, called ``file_name``. ``packages``
    is the folder with the Python packages of its repository, empty for none; ``library`` are the modules in it that its
    code loads by name.
    """

    id: RecipeId
    path: Path
    repo_path: Path
    layer: Layer
    tags: tuple[str, ...] = ()
    variations: Mapping[str, Variation] = {}
    versions: Mapping[str, Mapping[str, Any]] = {}
    inputs: Mapping[str, InputDescription] = {}
    refused_inputs: Mapping[str, str] = {}
    unused_inputs: Mapping[str, str] = {}
    version: VersionRange = VersionRange()
    default_variation: str = ""
    valid_combinations: tuple[tuple[str, ...], ...] = ()
    invalid_combinations: tuple[tuple[str, ...], ...] = ()
    is_cached: bool = False
    can_force_cache: bool = False
    local_env_keys: tuple[str, ...] = ()
    post_deps_clean_env_keys: tuple[str, ...] = ()
    extra_cache_tags_from_env: tuple[tuple[str, str], ...] = ()
    env_key_mappings: Mapping[str, str] = {}
    clean_files: tuple[str, ...] = ()
    clean_output_files: tuple[str, ...] = ()
    print_files_if_script_error: tuple[str, ...] = ()
    print_env_at_the_end: Mapping[str, str] = {}
    library: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}
    file_name: str = "_cm.yaml"
    min_cm_version: str = ""
    has_predeps: bool = True
    values: ValueRule = "cm"
    has_strict_inputs: bool = False
    packages: str = ""

    @property
    def meta_path(self) -> Path:
        """The metadata file, for messages."""
        return self.path / self.file_name

    @property
    def is_successor(self) -> bool:
        """Whether the recipe is written for CM's successor: ``meta.yaml``, env keys that start with ``MLC_``."""
        return self.file_name == SUCCESSOR_FILE

    @property
    def prefix(self) -> str:
        """What the env keys that this recipe shares with the engine start with."""
        return SUCCESSOR_PREFIX if self.is_successor else PREFIX


class RunOptions(Frozen):
    """The flags of ``cm run script`` that steer the engine rather than the recipe."""

    new: bool = False
    renew: bool = False
    skip_cache: bool = False
    force_cache: bool = False
    only_from_cache: bool = False
    quiet: bool = False
    silent: bool = False
    steps_hidden: bool = False
    verbose: bool = False
    fake_run: bool = False
    fake_deps: bool = False
    dirty: bool = False
    save_env: bool = False
    ignore_script_error: bool = False
    mixed_versions: bool = False
    lock_timeout_s: float | None = None


class Request(Frozen):
    """One request to run a recipe, from the command line, from a dependency entry, or from a recipe's own call.

    ``inputs`` are all keys given, ``env``, ``state``, ``const`` and ``const_state`` what the caller hands over,
    ``local_env`` what only this recipe sees, ``trace`` the labels of the recipes that led here, outermost first.
    ``phase`` is the list of its parent that holds the dependency. Only a plan fills ``unknown`` (env keys that
    earlier steps may set) and ``pending`` (what must turn out true for this to be run at all). ``asked_by`` is the
    recipe whose ``dependency`` this is, ``parent`` the request for that recipe; None on the command line. Only
    ``cm explain`` gives ``origins``, which records who decides what.
    """

    query: TagQuery
    alias: str = ""
    inputs: Mapping[str, Any] = {}
    env: Env = {}
    state: State = {}
    const: Env = {}
    const_state: State = {}
    local_env: Env = {}
    overrides: Overrides = {}
    recursive_overrides: Overrides = {}
    version: VersionRange = VersionRange()
    extra_cache_tags: tuple[str, ...] = ()
    new_env_keys: tuple[str, ...] | None = None
    new_state_keys: tuple[str, ...] | None = None
    options: RunOptions = RunOptions()
    trace: tuple[str, ...] = ()
    phase: Phase | Literal[""] = ""
    unknown: Unknown = NOTHING_UNKNOWN
    pending: tuple[str, ...] = ()
    asked_by: Recipe | None = None
    dependency: Dependency | None = None
    parent: Request | None = None
    origins: Witness | None = None


class Witness:
    """Sees what each block offers while a recipe is configured, and what a plan of it changes; this one ignores it.

    ``StepTrace`` (origins.py) records it, and says what each method sees.
    """

    def _ignored(self, *_: Any, **__: Any) -> None:
        """A run, and a plan that nobody asks to explain, keep nothing of it."""

    begins = enters = sees = sees_conditional = sees_dependencies = settles = _ignored
    restarts = gives = copies = changed = _ignored


class AppliedVariation(Frozen):
    """A variation that is switched on, and why (asked for, alias of, base of, default of group ...)."""

    name: str
    reason: str


class Configured(Frozen):
    """A recipe with everything decided that can be decided before its dependencies run.

    ``undecided`` are the env keys on which a part of its metadata depends and which are not known yet; only a plan has
    such keys.
    """

    recipe: Recipe
    request: Request
    explicit: tuple[str, ...]
    applied: tuple[AppliedVariation, ...]
    env: Env
    state: State
    const: Env
    const_state: State
    layer: Layer
    recursive_overrides: Overrides
    version: VersionRange
    undecided: tuple[str, ...] = ()

    @property
    def cache_expiration(self) -> str:
        """How long an entry made now may be used: as asked for, else as variation or recipe say; empty is for ever."""
        asked = self.request.inputs.get("cache_expiration")
        return self.layer.cache_expiration if asked in (None, "") else str(asked)

    @property
    def is_cached(self) -> bool:
        """Whether the recipe keeps its result in the cache by itself; a variation may decide it."""
        return self.recipe.is_cached if self.layer.is_cached is None else self.layer.is_cached

    @property
    def variations(self) -> tuple[str, ...]:
        """The names of all variations, sorted."""
        return tuple(sorted({*self.explicit, *(variation.name for variation in self.applied)}))

    @property
    def label(self) -> str:
        """The recipe with its explicit variations, for messages: ``get-cuda,_dev``."""
        return ",".join([self.recipe.id.alias, *("_" + name for name in self.explicit)])


class HookResult(Frozen):
    """What a function of ``customize.py`` decided, after its answer was checked."""

    skip: bool = False
    replacement: Mapping[str, Any] | None = None
    version: str = ""
    extra_cache_tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    locked: Mapping[str, Any] = {}


StepStatus = Literal["ran", "reused", "skipped", "faked"]


class StepResult(Frozen):
    """What one recipe gave to its caller."""

    label: str
    status: StepStatus
    new_env: Env
    new_state: State
    version: str = ""
    entry: CacheEntry | None = None
    dependency_tags: tuple[str, ...] = ()
    duration_s: float = 0.0
    unknown: tuple[tuple[str, str], ...] = ()


EventKind = Literal["start", "run", "done", "skip", "fail", "again"]


class StepEvent(Frozen):
    """What happened to a step.

    ``start``: its recipe is chosen and configured; ``run``: it is not served by the cache and begins; ``done``: it gave
    ``result`` (whose status says whether it ran or was reused); ``skip``: a dependency that ``reason`` keeps from
    running; ``fail``: it ended with ``error``; ``again``: it is broken off, because the whole run starts over for
    ``reason``. ``trace`` are the labels from the outermost recipe down to this one.
    """

    kind: EventKind
    trace: tuple[str, ...]
    configured: Configured | None = None
    result: StepResult | None = None
    error: RecipeError | None = None
    reason: str = ""

    @property
    def label(self) -> str:
        """The step itself."""
        return self.trace[-1]
