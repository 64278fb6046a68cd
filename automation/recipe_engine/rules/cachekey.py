"""What identifies a result in the cache, whether and how long an entry serves, and which version of it a run requires.

The tags are CM's, so that entries stay readable by CM. On top of them an entry made here records the whole resolved set
of variations, the tags and the inputs that were asked for: with it a query without a variation never takes the entry of
another variation, which tags alone allow.

An *artifact* is what a recipe makes for one set of variations, tags and inputs: two steps that ask for it must get the
same version, because each hands it on in the same env keys. When a later step requires something else than was chosen,
the run starts over with the bounds of both (``Backtrack``); when nothing suits both, ``VersionConflict`` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from .env import Env, EnvValue, expand_text
from .errors import RecipeError, RequestError
from .frozen import Frozen
from .model import PHASES, SUCCESSOR_TAG, CacheEntry, CacheKey, Configured, EntryRecord, Maker
from .query import ANY_VERSION, VersionRange, intersection, split_words
from .schema import lifetime_s
from .secrets import is_secret, stored


def tags_from_env(configured: Configured, env: Mapping[str, EnvValue]) -> tuple[str, ...]:
    """The ``deps-<prefix><value>`` tags that the recipe derives from env values."""
    words = []
    for key, prefix in configured.recipe.extra_cache_tags_from_env:
        value = env.get(key, "")
        items = value if isinstance(value, list) else split_words(str(value))
        words += [f"deps-{prefix}{item}" for item in items]
    return tuple(words)


def asked_tags(configured: Configured, env: Mapping[str, EnvValue]) -> tuple[str, ...]:
    """The cache tags that the request adds: extra_cache_tags, and ``name-<name>`` when it gives a name."""
    words = [str(expand_text(tag, env)) for tag in configured.request.extra_cache_tags]
    words += split_words(str(expand_text(str(env.get("CM_EXTRA_CACHE_TAGS", "") or ""), env)))
    name = str(env.get("CM_NAME", "") or "").strip().lower()
    if name:
        words.append("name-" + name)
    return tuple(dict.fromkeys(words))


def cache_key(configured: Configured, env: Mapping[str, EnvValue]) -> CacheKey:
    """The key of the recipe in ``env`` (with the results of dynamic dependencies when there are any).

    It goes into files, so it holds no secret: addresses that differ only in the login mean the same entry.
    """
    recipe, query = configured.recipe, configured.request.query
    extra = asked_tags(configured, env)
    kept = tuple(tag for tag in (*query.all_of, *extra) if not tag.startswith("-") and tag not in recipe.tags)
    excluded = tuple(tag[1:] for tag in extra if tag.startswith("-"))
    if recipe.is_successor:  # most such recipes have the uid and the tags of one of CM's, and give other env keys
        kept = (*kept, SUCCESSOR_TAG)
    else:
        excluded = (*excluded, SUCCESSOR_TAG)
    derived = tags_from_env(configured, env)
    version = (f"version-{configured.version.exact}",) if configured.version.exact else ()
    required = dict.fromkeys(
        (*query.all_of, *recipe.tags, *("_" + name for name in configured.explicit), *version, *kept, *derived)
    )
    key = CacheKey(
        recipe=recipe.id,
        required_tags=(*required, f"script-artifact-{recipe.id.uid}"),
        excluded_tags=(*query.none_of, *("_" + name for name in query.excluded_variations), *excluded),
        explicit=configured.explicit,
        variations=configured.variations,
        extra_tags=tuple(dict.fromkeys(kept)),
        inputs=entry_inputs(configured),
        version=configured.version,
        derived_tags=derived,
    )
    without: CacheKey = stored(key)
    return without


def visible_inputs(configured: Configured) -> dict[str, str]:
    """The inputs given now that the recipe maps to env keys, as texts; secrets are left out."""
    inputs = configured.request.inputs
    mapping = configured.layer.input_mapping
    names = [name for name in sorted(mapping) if not (is_secret(name) or is_secret(mapping[name]))]
    return {name: str(inputs[name]) for name in names if inputs.get(name) is not None}


def entry_inputs(configured: Configured) -> dict[str, str]:
    """The inputs that an entry is made with.

    One that decides whether a dynamic dependency runs (``--pull`` of get-git-repo) is not one of them: such a
    dependency runs on reuse too, so the input is a request to an entry that may exist already.
    """
    layer = configured.layer
    dynamic = [dependency for phase in PHASES for dependency in layer.dependencies(phase) if dependency.is_dynamic]
    deciding = {key for dependency in dynamic for block in dependency.conditions for key, _ in block.wanted}
    inputs = visible_inputs(configured)
    return {name: value for name, value in inputs.items() if layer.input_mapping[name] not in deciding}


def applied_tags(configured: Configured) -> tuple[str, ...]:
    """The variations that were applied as tags, defaults too, as only CM's successor writes them into an entry."""
    return tuple("_" + applied.name for applied in configured.applied if configured.recipe.is_successor)


def with_derived_tags(key: CacheKey, derived: tuple[str, ...]) -> CacheKey:
    """The key with other tags derived from env values."""
    old = set(key.derived_tags) - set(key.extra_tags)
    kept = [tag for tag in key.required_tags if tag not in old]
    return key._replace(required_tags=tuple(dict.fromkeys((*kept, *derived))), derived_tags=derived)


def misfit(entry: CacheEntry, key: CacheKey) -> str:
    """Why ``entry`` cannot serve ``key``, in words; empty when it can, as far as ``_cm.json`` says."""
    return next((text for _, text in misfits(entry, key)), "")


Part = Literal["unfinished", "tags", "version", "variations", "inputs"]


def misfits(entry: CacheEntry, key: CacheKey) -> Iterator[tuple[Part, str]]:
    """Everything that keeps ``entry`` from serving ``key``, most important first."""
    if not entry.is_complete:
        yield "unfinished", "it was never finished"
    tags = set(entry.tags)
    missing = [tag for tag in key.required_tags if tag not in tags]
    if entry.record:  # its whole set of variations is compared below; it may have one as a default that is asked for
        settled = {"_" + name for name in key.explicit}
        if key.version.exact and key.version.exact == entry.record.asked_version:
            settled.add(f"version-{key.version.exact}")
        missing = [tag for tag in missing if tag not in settled]
    if missing:
        yield "tags", f"it has no tag '{missing[0]}'"
    unwanted = [tag for tag in key.excluded_tags if tag in tags]
    if unwanted:
        yield "tags", f"it has the excluded tag '{unwanted[0]}'"
    if not key.version.admits(entry.version):
        yield "version", f"its version {entry.version} is not within {key.version.text}"
    if entry.record is None:
        own = sorted(tag[1:] for tag in tags if tag.startswith("_"))
        if own != sorted(key.explicit):
            yield "variations", f"CM made it for the variations {own}, but requested are {list(key.explicit)}"
        return
    if entry.record.variations != key.variations:
        made, asked = list(entry.record.variations), list(key.variations)
        yield "variations", f"it was built with the variations {made}, but requested are {asked}"
    for name, value in key.inputs.items():
        recorded = entry.record.inputs.get(name)
        if recorded != value:
            text = f"with --{name}={recorded}" if recorded is not None else f"without --{name}"
            yield "inputs", f"it was made {text}, requested is --{name}={value}"


def preference(entry: CacheEntry, key: CacheKey) -> tuple[int, int, tuple[str, ...], str]:
    """Sort key among entries that fit: least extra tags beyond those asked, least other inputs, tags, uid."""
    record = entry.record
    extra = len(set(record.extra_tags) - set(key.extra_tags)) if record else 0
    inputs = len(set(record.inputs) - set(key.inputs)) if record else 0
    return (extra, inputs, tuple(sorted(entry.tags)), entry.uid)


def begun_entry(
    key: CacheKey, maker: Maker, path: Path, created_utc: str, replaced: Sequence[CacheEntry] = ()
) -> CacheEntry:
    """A new unfinished entry in ``path``; it keeps what the first of those that it replaces was known by."""
    old = replaced[0].record if replaced else None
    record = EntryRecord(
        fingerprint=key.fingerprint,
        recipe_digest=maker.digest,
        recipe_stamp=maker.stamp,
        explicit=old.explicit if old else key.explicit,
        variations=key.variations,
        extra_tags=old.extra_tags if old else key.extra_tags,
        inputs=dict(key.inputs),
        created_utc=created_utc,
        asked_version=key.version.exact,
        replaces=tuple(entry.uid for entry in replaced),
    )
    required = (tag for tag in key.required_tags if not tag.startswith("-"))
    tags = tuple(dict.fromkeys(("tmp", *required, *(replaced[0].tags if replaced else ()))))
    return CacheEntry(
        uid=path.name, path=path, tags=tags, version="", recipe=key.recipe, dependent_path="", record=record
    )


def entry_tags(key: CacheKey, version: str, added: tuple[str, ...], known_by: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The tags of a finished entry: those required, those the recipe added, its version instead of any other, and those
    that it was known by before it was finished. None of them is ``tmp``, which marks unfinished ones.
    """
    words = [*key.required_tags, *added]
    if version:
        words = [word for word in words if not word.startswith("version-")] + [f"version-{version}"]
    words += [tag for tag in known_by if not tag.startswith("version-")]
    return tuple(dict.fromkeys(word for word in words if word != "tmp" and not word.startswith("-")))


def entry_lifetime_s(configured: Configured, env: Env) -> int | None:
    """How many seconds an entry made now may be used; None is for ever.

    Raises RequestError for a ``cache_expiration`` that is not one.
    """
    text = str(expand_text(configured.cache_expiration, env))
    if not text:
        return None
    seconds = lifetime_s(text)
    if seconds is None:
        raise RequestError(
            f"{configured.label}: cache_expiration={text!r} is not a lifetime",
            hint="write 90m, 2h, 3d, or 0 for an entry that is never used again",
        )
    return seconds


def replacements(entries: Iterable[CacheEntry]) -> dict[str, str]:
    """The uids of the entries that were replaced, each with that of the entry that answers in its place."""
    renewals = [entry for entry in entries if entry.record and (entry.is_complete or entry.retired)]
    return {old: entry.uid for entry in renewals if entry.record for old in entry.record.replaces}


def match_tags(entries: Iterable[CacheEntry], words: Sequence[str]) -> Iterator[CacheEntry]:
    """The entries that have all plain ``words`` as tags and none of those written ``-word``, in order of their tags."""
    need = {word for word in words if not word.startswith("-")}
    avoid = {word[1:] for word in words if word.startswith("-")}
    fitting = [entry for entry in entries if need <= set(entry.tags) and avoid.isdisjoint(entry.tags)]
    return iter(sorted(fitting, key=lambda entry: sorted(entry.tags)))


COMMAND_LINE = "the command line"


class Artifact(NamedTuple):
    """What a CacheKey stands for when its version is left aside."""

    recipe_uid: str
    variations: tuple[str, ...]
    tags: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]


def artifact_of(key: CacheKey) -> Artifact:
    """The artifact that a key asks for."""
    tags = tuple(sorted({*key.extra_tags, *key.derived_tags}))
    return Artifact(key.recipe.uid, key.variations, tags, tuple(sorted(key.inputs.items())))


class Requirement(Frozen):
    """What one step requires; ``trace`` are the labels from the outermost recipe down to the artifact."""

    version: VersionRange
    trace: tuple[str, ...]

    @property
    def text(self) -> str:
        """The requirement and where it comes from."""
        return f"{self.version.text} for {' -> '.join(self.trace[:-1]) or COMMAND_LINE}"


class Backtrack(Exception):
    """Not an error: the run has to start over, because a choice made earlier does not suit a later requirement."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class VersionConflict(RecipeError):
    """No version satisfies all steps that need one artifact."""


class Selected(Frozen):
    """What a step got: the version that was reported, the exact one that was asked for, and the cache entry."""

    version: str
    asked: str
    entry_uid: str

    def satisfies(self, wanted: VersionRange) -> bool:
        """Whether ``wanted`` allows the version reported, or is the very request that led to it."""
        return (bool(wanted.exact) and wanted.exact == self.asked) or wanted.holds(self.version)


class Requirements:
    """The requirements of one run, and the bounds that earlier attempts at it ended with."""

    def __init__(self) -> None:
        self._bounds: dict[Artifact, Requirement] = {}
        self._requirements: dict[Artifact, list[Requirement]] = {}
        self._chosen: dict[Artifact, Selected] = {}

    def start_over(self) -> None:
        """Forgets all but the bounds."""
        self._requirements.clear()
        self._chosen.clear()

    def knows(self, key: CacheKey) -> bool:
        """Whether the recipe was asked for with these variations before, whatever its tags and inputs were."""
        asked = (key.recipe.uid, key.variations)
        return any(artifact[:2] == asked for artifact in (*self._bounds, *self._chosen))

    def narrowed(self, key: CacheKey, trace: tuple[str, ...], given: Requirement | None = None) -> VersionRange:
        """The version that the step at the end of ``trace`` has to ask for: what suits it and all others known so far.

        ``given`` is the version of a lock. An exact request may be reported in full (12.2 as 12.2.140), so it stays as
        it is, and the lock is compared with what comes of it. A recipe that reports a version outside the bounds it was
        asked for is not asked again: each attempt must narrow a bound, so the search ends.

        Raises VersionConflict when nothing suits all, and Backtrack when a tighter bound may.
        """
        artifact = artifact_of(key)
        bound = self._bounds.get(artifact) or (None if key.version.exact else given)
        requirements = self._requirements.setdefault(artifact, [bound] if bound else [])
        requirement = Requirement(key.version, trace)
        if all(known.version != requirement.version for known in requirements):
            requirements.append(requirement)
        choice = self._chosen.get(artifact)
        if choice is None or not choice.satisfies(key.version):
            common: VersionRange | None = ANY_VERSION
            for known in requirements:
                common = intersection(common, known.version) if common is not None else None
            if common is None:
                raise _conflict(trace[-1], requirements)
            if choice and (bound is None or common != bound.version):
                self._bounds[artifact] = Requirement(common, trace)
                raise Backtrack(
                    f"{trace[-1]} {choice.version} was already selected, but a later step requires {requirement.text}"
                )
        return intersection(key.version, bound.version) or key.version if bound else key.version

    def note(self, key: CacheKey, version: str, entry: CacheEntry | None) -> None:
        """Remembers what a step got; an empty ``version`` is an unknown one."""
        asked = key.version.exact or (entry.record.asked_version if entry and entry.record else "")
        self._chosen.setdefault(artifact_of(key), Selected(version, asked, entry.uid if entry else ""))

    def preferred(self, key: CacheKey, entries: Iterable[CacheEntry]) -> list[CacheEntry]:
        """The entries with the one first that this run took before."""
        choice = self._chosen.get(artifact_of(key))
        return sorted(entries, key=lambda entry: choice is None or entry.uid != choice.entry_uid)


def _conflict(label: str, requirements: list[Requirement]) -> VersionConflict:
    lines = [
        f"no version of {label} satisfies all steps that need it:",
        *(f"  {requirement.text}" for requirement in requirements),
    ]
    return VersionConflict(
        "\n".join(lines),
        hint="change one of them (--version, --adr.NAME.version), or let each have its own: --mixed_versions",
    )
