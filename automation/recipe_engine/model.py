"""The types of the engine. All are frozen; sequences are tuples, mappings are never written to.

``env`` and ``state`` values are open by nature and stay plain mappings; everything else has a type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .conditions import Condition
from .env import Env, State
from .tags import TagQuery
from .version import VersionRange

Phase = Literal["deps", "prehook_deps", "posthook_deps", "post_deps"]
PHASES: tuple[Phase, ...] = ("deps", "prehook_deps", "posthook_deps", "post_deps")

Overrides = Mapping[str, Mapping[str, Any]]
"""Handle of a dependency (one of its ``names``) to the keys that are changed on it: CM's ``ad`` and ``adr``."""


@dataclass(frozen=True, slots=True)
class RecipeId:
    """The names of a recipe: ``alias`` for people, ``uid`` (16 hex digits) for machines."""

    alias: str
    uid: str

    @property
    def text(self) -> str:
        """``alias,uid``, as CM writes it."""
        return f"{self.alias},{self.uid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One entry of a deps-like list. ``entry`` is the mapping as written; the other fields are read from it."""

    entry: Mapping[str, Any]
    tags_text: str
    names: tuple[str, ...]
    conditions: tuple[Condition, ...]
    is_dynamic: bool

    @property
    def label(self) -> str:
        """What to call this dependency in messages."""
        return self.tags_text or "/".join(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalLayer:
    """A block of ``update_meta_if_env``: ``layer`` counts while ``conditions`` hold."""

    conditions: tuple[Condition, ...]
    layer: Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The block that a recipe, a variation, a version and ``update_meta_if_env`` all repeat."""

    default_env: Env = field(default_factory=dict)
    env: Env = field(default_factory=dict)
    const: Env = field(default_factory=dict)
    state: State = field(default_factory=dict)
    const_state: State = field(default_factory=dict)
    docker: State = field(default_factory=dict)
    deps: tuple[Dependency, ...] = ()
    prehook_deps: tuple[Dependency, ...] = ()
    posthook_deps: tuple[Dependency, ...] = ()
    post_deps: tuple[Dependency, ...] = ()
    overrides: Overrides = field(default_factory=dict)
    recursive_overrides: Overrides = field(default_factory=dict)
    input_mapping: Mapping[str, str] = field(default_factory=dict)
    new_env_keys: tuple[str, ...] = ()
    new_state_keys: tuple[str, ...] = ()
    conditional: tuple[ConditionalLayer, ...] = ()
    script_name: str = ""
    default_version: str = ""
    warnings: tuple[str, ...] = ()
    required_disk_space_mb: int = 0

    def dependencies(self, phase: Phase) -> tuple[Dependency, ...]:
        """The dependencies that run in ``phase``."""
        found: tuple[Dependency, ...] = getattr(self, phase)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A named modifier of a recipe, selected with the tag ``_name``; ``name.#`` takes a value.

    ``source`` is its block as written: it becomes a ``Layer`` only when the variation is applied, because a value for
    ``#`` has to be filled in first and big recipes have hundreds of blocks that a run never looks at.
    """

    name: str
    source: Mapping[str, Any]
    group: str = ""
    is_default: bool = False
    base: tuple[str, ...] = ()
    default_variations: Mapping[str, str] = field(default_factory=dict)
    alias: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of a combined variation ``a,b``; just the name otherwise."""
        return tuple(part.strip() for part in self.name.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDescription:
    """What a recipe tells about one of its inputs; ``choices`` empty means any value."""

    description: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One parsed ``_cm.yaml``/``_cm.json`` with the folder it came from.

    ``versions`` maps a version to its block as written; ``meta`` is the whole file.
    """

    id: RecipeId
    path: Path
    repo_path: Path
    tags: tuple[str, ...]
    layer: Layer
    variations: Mapping[str, Variation] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: Mapping[str, InputDescription] = field(default_factory=dict)
    version: VersionRange = field(default_factory=VersionRange)
    default_variation: str = ""
    valid_combinations: tuple[tuple[str, ...], ...] = ()
    invalid_combinations: tuple[tuple[str, ...], ...] = ()
    is_cached: bool = False
    can_force_cache: bool = False
    local_env_keys: tuple[str, ...] = ()
    post_deps_clean_env_keys: tuple[str, ...] = ()
    extra_cache_tags_from_env: tuple[tuple[str, str], ...] = ()
    env_key_mappings: Mapping[str, str] = field(default_factory=dict)
    clean_files: tuple[str, ...] = ()
    clean_output_files: tuple[str, ...] = ()
    print_files_if_script_error: tuple[str, ...] = ()
    print_env_at_the_end: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The flags of ``cm run script`` that steer the engine rather than the recipe."""

    new: bool = False
    renew: bool = False
    skip_cache: bool = False
    force_cache: bool = False
    only_from_cache: bool = False
    quiet: bool = False
    silent: bool = False
    verbose: bool = False
    fake_run: bool = False
    fake_deps: bool = False
    dirty: bool = False
    save_env: bool = False
    show_time: bool = False
    ignore_script_error: bool = False
    lock_timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One wish to run a recipe, from the command line, from a dependency entry, or from a recipe's own call.

    ``inputs`` are all keys given, ``env``, ``state``, ``const`` and ``const_state`` what the caller hands over,
    ``local_env`` what only this recipe sees, ``trace`` the labels of the recipes that led here, outermost first.
    """

    query: TagQuery
    alias: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    env: Env = field(default_factory=dict)
    state: State = field(default_factory=dict)
    const: Env = field(default_factory=dict)
    const_state: State = field(default_factory=dict)
    local_env: Env = field(default_factory=dict)
    overrides: Overrides = field(default_factory=dict)
    recursive_overrides: Overrides = field(default_factory=dict)
    version: VersionRange = field(default_factory=VersionRange)
    extra_cache_tags: tuple[str, ...] = ()
    new_env_keys: tuple[str, ...] | None = None
    new_state_keys: tuple[str, ...] | None = None
    options: RunOptions = field(default_factory=RunOptions)
    trace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppliedVariation:
    """A variation that is switched on, and why (asked for, alias of, base of, default of group ...)."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A recipe with everything decided that can be decided before its dependencies run."""

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

    @property
    def label(self) -> str:
        """The recipe with its explicit variations, for messages: ``get-cuda,_dev``."""
        return ",".join([self.recipe.id.alias, *("_" + name for name in self.explicit)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKey:
    """What an entry must be to serve a request.

    ``required_tags`` and ``excluded_tags`` are CM's search; ``variations`` is the whole resolved set and must be equal
    for entries made by this engine; ``extra_tags`` were asked for besides the recipe's own; ``inputs`` are the mapped
    inputs given now: an entry that recorded another value for one of them does not fit.
    """

    recipe: RecipeId
    required_tags: tuple[str, ...]
    excluded_tags: tuple[str, ...]
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    version: VersionRange
    fingerprint: str


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file that an entry declared: path inside the entry, size in bytes, time in ns, SHA-256 in hex."""

    path: str
    size_bytes: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """What this engine notes in an entry beside CM's keys; None of it exists in entries made by CM itself."""

    fingerprint: str
    recipe_digest: str
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    created_utc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One folder of the store as its ``_cm.json`` describes it."""

    uid: str
    path: Path
    tags: tuple[str, ...]
    version: str
    recipe: RecipeId
    dependent_path: str
    record: EntryRecord | None

    @property
    def is_complete(self) -> bool:
        """Whether the recipe that made this entry finished; CM marks an unfinished one with the tag ``tmp``."""
        return "tmp" not in self.tags


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """What a function of ``customize.py`` decided, after its answer was checked."""

    skip: bool = False
    replacement: Mapping[str, Any] | None = None
    version: str = ""
    extra_cache_tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What one recipe gave to its caller."""

    label: str
    status: Literal["ran", "reused", "skipped", "faked"]
    new_env: Env
    new_state: State
    env: Env
    state: State
    version: str = ""
    entry: CacheEntry | None = None
    dependency_tags: tuple[str, ...] = ()
    duration_s: float = 0.0
