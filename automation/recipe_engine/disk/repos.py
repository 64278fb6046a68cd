"""Reads recipe folders of registered repositories.

What every ``_cm.yaml`` says is kept in the CM home (recipe_index.py), so that a start costs one directory scan and not
the parsing of hundreds of YAML files.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..rules.errors import MetaError
from ..rules.index import IndexEntry
from ..rules.index import RepoInfo as RepoInfo  # most who need it know it from here
from ..rules.model import SUCCESSOR_FILE, Recipe
from ..rules.schema import parse_recipe
from .checkout import ENGINE
from .metafile import CM_NAMES, MissingBase, meta_files, read_meta
from .recipe_index import FORMAT, RecipeRow, StoredIndex

SCRIPT_AUTOMATION_UID = "5b4e0237da074764"


class RecipeSource:
    """The recipes of all registered repositories; lives for one process."""

    def __init__(self, repos: Sequence[RepoInfo], index_folder: Path) -> None:
        self._roots = [repo.path for repo in repos]
        self._values = {str(repo.path): repo.values for repo in repos}
        self._recipes: dict[str, Recipe] = {}
        self._digests: dict[str, str] = {}
        self.index = StoredIndex(
            repos, index_folder / index_name(), lambda folder: _read_row(folder, self._roots), _maker()
        )

    def recipe(self, entry: IndexEntry) -> Recipe:
        """The parsed recipe behind an index entry; the same object each time.

        Raises MetaError when it changed since, and cannot be read any more.
        """
        key = str(entry.path)
        if key not in self._recipes:
            text = self.index.meta(entry)
            meta = json.loads(text) if text else as_json(read_meta(entry.path, self._roots).values)
            files = meta_files(entry.path)
            name = files[0].name if files else CM_NAMES[0]
            recipe = parse_recipe(meta, entry.path, entry.repo_path, name)
            self._recipes[key] = recipe._replace(values=self._values.get(str(entry.repo_path), recipe.values))
        return self._recipes[key]

    def digest(self, recipe: Recipe) -> str:
        """The SHA-256 over the files of a recipe that can change what it does."""
        key = str(recipe.path)
        if key not in self._digests:
            self._digests[key] = recipe_digest(recipe.path)
        return self._digests[key]

    def is_unchanged(self, recipe: Recipe, digest: str, stamp: str) -> bool:
        """Whether a recipe is still the one that had this digest; the stamp answers without reading its files."""
        return recipe_stamp(recipe.path) == stamp or self.digest(recipe) == digest


MAKER_PACKAGES = ("rules", "disk")
"""The packages of the engine whose modules decide what a row says."""


def index_name() -> str:
    """What index files are called: apart for each checkout, so that two with one CM home do not rebuild it in turns."""
    return f"recipes-{FORMAT}-{zlib.crc32(os.fsencode(ENGINE)):08x}"


def _maker() -> str:
    """Changes with the code that makes rows: an engine that was updated reads all recipes again."""
    rows = []
    for package in MAKER_PACKAGES:
        with os.scandir(ENGINE / package) as items:
            found = [(item.name, item.stat()) for item in items if item.name.endswith(".py")]
        rows += [(package, name, status.st_mtime_ns, status.st_size) for name, status in found]
    return f"{zlib.crc32(repr(sorted(rows)).encode()):08x}"


def _read_row(folder: Path, roots: Sequence[Path]) -> RecipeRow:
    """What a folder of ``script/`` is; never raises because of the content of its files."""
    if not meta_files(folder):
        return RecipeRow()
    files = own = tuple(str(folder / name) for name in CM_NAMES)
    if not any(os.path.exists(file) for file in own):
        files = own = (*own, str(folder / SUCCESSOR_FILE))
    try:
        found = read_meta(folder, roots)
        files = tuple(dict.fromkeys((*own, *(str(path) for path in found.files))))
        meta = as_json(found.values)
        if str(meta.get("automation_uid", SCRIPT_AUTOMATION_UID)) != SCRIPT_AUTOMATION_UID:
            return RecipeRow(files)
        recipe = parse_recipe(meta, folder, folder.parent.parent, found.name)
    except MissingBase as error:
        return RecipeRow(tuple(dict.fromkeys((*own, *(str(path) for path in error.files)))), error=str(error))
    except OSError as error:
        return RecipeRow(files, error=str(error), is_certain=False)
    except (MetaError, ValueError) as error:
        return RecipeRow(files, error=str(error))
    except RecursionError:
        return RecipeRow(files, error=f"{files[0]}: blocks too deep inside each other, or inside themselves")
    sort = meta.get("sort", 0)
    return RecipeRow(
        files=files,
        uid=recipe.id.uid,
        alias=recipe.id.alias,
        tags=recipe.tags,
        variations=tuple(recipe.variations),
        sort=sort if isinstance(sort, int) else 0,
        is_cached=recipe.is_cached,
        meta=json.dumps(meta),
    )


def as_json(value: Any) -> Any:
    """A value of YAML as JSON holds it: dates, as keys too, become their text, and a number as a key becomes one."""
    if isinstance(value, dict):
        return {_as_key(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [as_json(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _as_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key) if key is None or isinstance(key, int | float) else str(key)


IGNORED_IN_DIGEST = ("__pycache__", "tests", "docs", "dockerfiles")


def recipe_digest(folder: Path) -> str:
    """The SHA-256 over names and contents of a recipe's files, documentation and compiled files left out."""
    import hashlib  # here, because an entry made by the recipe as it is now never needs it

    digest = hashlib.sha256()
    for path in sorted(_digest_files(str(folder))):
        digest.update(os.path.relpath(path, folder).encode() + b"\0")
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def recipe_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that ``recipe_digest`` covers, by its path in the recipe."""
    from .files import sha256_of  # here, because only records of results ask

    return {os.path.relpath(path, folder): sha256_of(Path(path)) for path in sorted(_digest_files(str(folder)))}


def recipe_stamp(folder: Path) -> str:
    """Times and sizes of a recipe's files in one text: equal means unchanged, different means look closer."""
    rows = []
    for path in sorted(_digest_files(str(folder))):
        status = os.stat(path)
        rows.append((path, status.st_mtime_ns, status.st_size))
    return f"{zlib.crc32(repr(rows).encode()):08x}"


def _digest_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as items:
        for item in items:
            if item.is_dir(follow_symlinks=False):
                if item.name not in IGNORED_IN_DIGEST and not item.name.startswith("."):
                    yield from _digest_files(item.path)
            elif item.is_file() and not item.name.endswith((".md", ".pyc")) and not item.name.startswith("tmp-"):
                yield item.path
