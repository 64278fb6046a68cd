"""A lockfile: which recipes, versions, files, packages and commits a run used, so that another run uses the same. Pure.

It is JSON (``format`` 1), sorted and without times, so that equal runs give equal lockfiles. Paths differ between
machines: a path of the cache, or a hash of a path in a tag, is written as ``<...>``, and files that hold such a path
are left out.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..rules.cachekey import Artifact, artifact_of
from ..rules.conditions import has_symbol
from ..rules.errors import RequestError
from ..rules.model import CacheKey, RecipeId

FORMAT = 1
_HEX_ID = re.compile(r"[0-9a-f]{8,}")
"""A part of a cache tag that names a path: recipes hash the path of an environment into one."""


class LockMismatch(RequestError):
    """A recipe or an artifact is not what the lockfile says; the message names it."""


class LockedFile(NamedTuple):
    """A file of a cache entry; ``sha256`` in hex."""

    size_bytes: int
    sha256: str


class LockedArtifact(NamedTuple):
    """What a recipe made for one portable artifact.

    ``facts`` are what the recipe's hooks answered under ``locked`` (for example ``python_packages``), and ``git``:
    folder inside the entry to the commit that is checked out there. ``is_made`` is False when nothing in the cache
    answered the request: then only the recipe and its variations are known.
    """

    recipe: RecipeId
    artifact: Artifact
    version: str = ""
    files: Mapping[str, LockedFile] = {}
    facts: Mapping[str, Any] = {}
    is_made: bool = False

    @property
    def label(self) -> str:
        """The recipe and what it was asked for, for messages."""
        return ",".join([self.recipe.alias, *("_" + name for name in self.artifact.variations)])

    @property
    def content(self) -> dict[tuple[str, str], Any]:
        """All that is known of it, by ``("version", "")``, ``("file", path)`` or kind and name of a fact."""
        found: dict[tuple[str, str], Any] = {("version", ""): self.version} if self.version else {}
        found.update({("file", path): file.sha256 for path, file in sorted(self.files.items())})
        for kind, fact in sorted(self.facts.items()):
            rows = sorted(fact.items()) if isinstance(fact, Mapping) else [("", fact)]
            found.update({(kind, name): value for name, value in rows})
        return found


class Lockfile(NamedTuple):
    """A whole lockfile. ``recipes`` maps ``alias,uid`` to the digest of the recipe's files, ``library`` each file of
    their repositories' packages that they use (``repository:path``) to its SHA-256; older lockfiles have none of these.
    """

    command: str
    host: Mapping[str, str]
    recipes: Mapping[str, str]
    artifacts: tuple[LockedArtifact, ...]
    library: Mapping[str, str] = {}

    def find(self, artifact: Artifact) -> list[LockedArtifact]:
        """All that was locked for a portable artifact; for one that a plan does not know whole, all that it may be."""
        return [locked for locked in self.artifacts if _may_be(artifact, locked.artifact)]


def _may_be(artifact: Artifact, locked: Artifact) -> bool:
    """Whether the known parts of an artifact are those of a locked one; an unknown tag may be several."""
    return all(
        mine == other or (has_symbol(mine) and {part for part in mine if not has_symbol(part)} <= set(other))
        for mine, other in zip(artifact, locked, strict=True)
    )


def portable_artifact(key: CacheKey, places: Sequence[tuple[str, str]]) -> Artifact:
    """The artifact of a key without the paths of one machine; ``places`` maps the start of paths to a name for it."""
    uid, variations, tags, inputs = artifact_of(key)
    return Artifact(
        uid,
        tuple(portable(name, places) for name in variations),
        tuple(sorted({_HEX_ID.sub("<id>", portable(tag, places)) for tag in tags})),
        tuple((name, portable(value, places)) for name, value in inputs),
    )


def portable(text: str, places: Sequence[tuple[str, str]]) -> str:
    """A text with the start of known paths, and the name of a cache entry after it, written as ``<...>``."""
    for start, name in places:
        if start in text and start not in ("", "/"):  # the home of a user in a container may be /
            text = re.sub(re.escape(start) + r"(?:/[0-9a-f]{16})?(?=/|$|[\s:,;])", name, text)
    return text


def differences(locked: LockedArtifact, now: LockedArtifact) -> list[str]:
    """What of an artifact as it is now is not what was locked; versions and files that only it has do not count."""
    wanted, present = locked.content, now.content
    found = [
        f"its {' '.join(key).strip()} is {exact_text(present.get(key), 'missing')}, locked is {exact_text(value)}"
        for key, value in wanted.items()
        if present.get(key) != value
    ]
    more = [key for key in present if key[0] in locked.facts and key not in wanted]
    return found or [f"its {' '.join(key).strip()} is not in the lockfile" for key in more]


def exact_text(value: Any, missing: str = "-") -> str:
    """A value in full: a text as it is, anything else as JSON."""
    return missing if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def lockfile_json(lock: Lockfile) -> dict[str, Any]:
    """A lockfile as JSON; ``parse_lockfile`` reads it back."""
    return {
        "format": FORMAT,
        "command": lock.command,
        "host": dict(lock.host),
        "recipes": dict(sorted(lock.recipes.items())),
        **({"library": dict(sorted(lock.library.items()))} if lock.library else {}),
        "things": [_row(locked) for locked in sorted(lock.artifacts, key=lambda one: (one.label, one.artifact))],
    }


def _row(locked: LockedArtifact) -> dict[str, Any]:
    row = {
        "recipe": locked.recipe.text,
        "variations": list(locked.artifact.variations),
        "tags": list(locked.artifact.tags),
        "inputs": dict(locked.artifact.inputs),
        "is_made": locked.is_made,
        "version": locked.version,
        "files": {path: file._asdict() for path, file in sorted(locked.files.items())},
        "facts": dict(sorted(locked.facts.items())),
    }
    return {name: value for name, value in row.items() if value or name not in ("version", "files", "facts")}


def parse_lockfile(text: str, where: str) -> Lockfile:
    """The content of a lockfile; raises RequestError when it is not a valid one."""
    hint = "create one with: cm lock script --tags=... > crowdperf.lock"
    try:
        row = json.loads(text)
        if row["format"] != FORMAT:
            raise RequestError(
                f"{where} has the lockfile format {row['format']}, but this engine reads format {FORMAT}", hint=hint
            )
        return lockfile_of(row)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"{where} is not a valid lockfile ({why})", hint=hint) from None


def lockfile_of(row: Mapping[str, Any]) -> Lockfile:
    """What ``lockfile_json`` wrote; raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    return Lockfile(
        command=str(row["command"]),
        host={str(key): str(item) for key, item in row["host"].items()},
        recipes={str(key): str(item) for key, item in row["recipes"].items()},
        artifacts=tuple(map(_artifact, row["things"])),
        library={str(key): str(item) for key, item in row.get("library", {}).items()},
    )


def _artifact(row: Mapping[str, Any]) -> LockedArtifact:
    alias, _, uid = row["recipe"].partition(",")
    files = row.get("files") or {}
    inputs = tuple(sorted((str(name), str(value)) for name, value in row["inputs"].items()))
    return LockedArtifact(
        recipe=RecipeId(alias, uid),
        artifact=Artifact(uid, tuple(map(str, row["variations"])), tuple(map(str, row["tags"])), inputs),
        version=str(row.get("version", "")),
        files={path: LockedFile(int(file["size_bytes"]), str(file["sha256"])) for path, file in files.items()},
        facts=dict(row.get("facts") or {}),
        is_made=bool(row["is_made"]),
    )
