"""A lock: which recipes, versions, files, packages and commits a run used, so that another run uses the same or stops.

The file is JSON (``format`` 1), sorted and without times, so that equal runs give equal locks. Places differ between
machines: what stands for one (a path of the cache, a hash of a path in a tag) is written as ``<...>``, and files that
hold such a path are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..rules.cachemodel import CacheKey, RecipeId
from ..rules.demands import Artifact, artifact_of
from ..rules.errors import RequestError
from ..rules.symbols import has_symbol

FORMAT = 1
_HEX_ID = re.compile(r"[0-9a-f]{8,}")
"""A part of a cache tag that names a place: recipes hash the path of an environment into one."""


class LockMismatch(RequestError):
    """Something is not what the lock says; the message names it."""


class LockedFile(NamedTuple):
    """A file of an entry; ``sha256`` in hex."""

    size_bytes: int
    sha256: str


class LockedArtifact(NamedTuple):
    """What a recipe made for one set of variations, tags and inputs.

    ``facts`` are what the recipe's hooks answered under ``locked`` (for example ``python_packages``), and ``git``:
    folder inside the entry to the commit that is checked out there. ``is_made`` is False when nothing in the cache
    answered the request: then only the recipe and its variations are known.
    """

    recipe: RecipeId
    variations: tuple[str, ...]
    tags: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]
    version: str = ""
    files: Mapping[str, LockedFile] = {}
    facts: Mapping[str, Any] = {}
    is_made: bool = False

    @property
    def artifact(self) -> Artifact:
        """What it is asked for by."""
        return Artifact(self.recipe.uid, self.variations, self.tags, self.inputs)

    @property
    def label(self) -> str:
        """The recipe and what it was asked for, for messages."""
        return ",".join([self.recipe.alias, *("_" + name for name in self.variations)])


class Lock(NamedTuple):
    """A whole lock. ``recipes`` maps ``alias,uid`` to the digest of the recipe's files."""

    command: str
    host: Mapping[str, str]
    recipes: Mapping[str, str]
    artifacts: tuple[LockedArtifact, ...]

    def find(self, artifact: Artifact) -> list[LockedArtifact]:
        """All that was locked for a portable artifact; for one that a plan does not know whole, all that it may be."""
        return [locked for locked in self.artifacts if _may_be(artifact, locked.artifact)]


def _may_be(artifact: Artifact, locked: Artifact) -> bool:
    """Whether the known parts of an artifact are those of a locked one; an unknown tag may stand for several."""
    return all(
        mine == other or (has_symbol(mine) and {part for part in mine if not has_symbol(part)} <= set(other))
        for mine, other in zip(artifact, locked, strict=True)
    )


def portable_artifact(key: CacheKey, places: Iterable[tuple[str, str]]) -> Artifact:
    """The artifact of a key without the places of one machine; ``places`` maps the start of paths to a name for it."""
    artifact = artifact_of(key)
    tags = tuple(sorted({_HEX_ID.sub("<id>", portable(tag, places)) for tag in artifact.tags}))
    variations = tuple(portable(name, places) for name in artifact.variations)
    return Artifact(
        artifact.recipe_uid, variations, tags, tuple((name, portable(value, places)) for name, value in artifact.inputs)
    )


def portable(text: str, places: Iterable[tuple[str, str]]) -> str:
    """A text with the start of known paths, and the name of a cache entry behind one, put as ``<...>``."""
    for start, name in places:
        text = re.sub(re.escape(start) + r"(?:/[0-9a-f]{16})?(?=/|$|[\s:,;])", name, text)
    return text


def differences(locked: LockedArtifact, now: LockedArtifact) -> list[str]:
    """What of an artifact as it is now is not what was locked; files that only one side knows do not count."""
    found = []
    if locked.version and now.version != locked.version:
        found.append(f"its version is {now.version or 'unknown'}, locked is {locked.version}")
    for path, file in sorted(locked.files.items()):
        present = now.files.get(path)
        if present is None:
            found.append(f"its file {path} is not there")
        elif present.sha256 != file.sha256:
            found.append(f"its file {path} has the SHA-256 {present.sha256}, locked is {file.sha256}")
    for kind, wanted in sorted(locked.facts.items()):
        found += _fact_differences(kind, wanted, now.facts.get(kind))
    return found


def _fact_differences(kind: str, wanted: Any, present: Any) -> list[str]:
    if wanted == present:
        return []
    if isinstance(wanted, Mapping) and isinstance(present, Mapping):
        rows = [
            f"{kind}: {name} is {_short(present.get(name))}, locked is {_short(value)}"
            for name, value in sorted(wanted.items())
            if present.get(name) != value
        ]
        return rows or [f"{kind}: {name} is not in the lock" for name in sorted(set(present) - set(wanted))]
    return [f"{kind} is {_short(present)}, locked is {_short(wanted)}"]


def _short(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, sort_keys=True)


def lock_json(lock: Lock) -> dict[str, Any]:
    """A lock as JSON; ``parse_lock`` reads it back."""
    return {
        "format": FORMAT,
        "command": lock.command,
        "host": dict(lock.host),
        "recipes": dict(sorted(lock.recipes.items())),
        "things": [
            _artifact_row(artifact) for artifact in sorted(lock.artifacts, key=lambda one: (one.label, one.artifact))
        ],
    }


def _artifact_row(artifact: LockedArtifact) -> dict[str, Any]:
    row: dict[str, Any] = {
        "recipe": artifact.recipe.text,
        "variations": list(artifact.variations),
        "tags": list(artifact.tags),
        "inputs": dict(artifact.inputs),
        "is_made": artifact.is_made,
    }
    if artifact.version:
        row["version"] = artifact.version
    if artifact.files:
        row["files"] = {path: file._asdict() for path, file in sorted(artifact.files.items())}
    if artifact.facts:
        row["facts"] = dict(sorted(artifact.facts.items()))
    return row


def parse_lock(text: str, where: str) -> Lock:
    """The lock in a file; raises RequestError when it is none."""
    hint = "make one with: cm lock script --tags=... > crowdperf.lock"
    try:
        value = json.loads(text)
        if value["format"] != FORMAT:
            raise RequestError(f"{where} is a lock of format {value['format']}, known is {FORMAT}", hint=hint)
        return Lock(
            command=str(value["command"]),
            host={str(key): str(item) for key, item in value["host"].items()},
            recipes={str(key): str(item) for key, item in value["recipes"].items()},
            artifacts=tuple(_parse_artifact(row) for row in value["things"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(f"{where} is no lock ({type(error).__name__}: {error})", hint=hint) from None


def _parse_artifact(row: Mapping[str, Any]) -> LockedArtifact:
    alias, _, uid = row["recipe"].partition(",")
    files = row.get("files") or {}
    return LockedArtifact(
        recipe=RecipeId(alias, uid),
        variations=tuple(row["variations"]),
        tags=tuple(row["tags"]),
        inputs=tuple(sorted((str(name), str(value)) for name, value in row["inputs"].items())),
        version=str(row.get("version", "")),
        files={path: LockedFile(int(file["size_bytes"]), str(file["sha256"])) for path, file in files.items()},
        facts=dict(row.get("facts") or {}),
        is_made=bool(row["is_made"]),
    )
