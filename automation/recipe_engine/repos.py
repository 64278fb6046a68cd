"""Reads recipe folders of registered repositories, and remembers what it read.

For each repository one JSON file in the CM home holds what every ``_cm.yaml`` says, with the times and sizes of the
files it came from; a start then costs one directory scan instead of parsing hundreds of YAML files. An edited, new or
removed recipe is noticed at once.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .errors import MetaError
from .files import read_json, write_json
from .index import IndexEntry, RecipeIndex, build_index
from .model import Recipe
from .schema import parse_recipe

FORMAT = 2
META_NAMES = ("_cm.yaml", "_cm.json")
SCRIPT_AUTOMATION_UID = "5b4e0237da074764"


class RepoInfo(NamedTuple):
    """One registered CM repository; ``path`` is the folder that holds ``script/``."""

    path: Path
    alias: str
    uid: str


Signature = list[list[Any]]
"""``[name, mtime in ns, size in bytes]`` of each meta file of a recipe."""


class RecipeSource:
    """The recipes of all registered repositories; lives for one process."""

    def __init__(self, repos: Sequence[RepoInfo], index_folder: Path) -> None:
        self._metas: dict[str, str] = {}
        self._recipes: dict[str, Recipe] = {}
        self._digests: dict[str, str] = {}
        entries: list[IndexEntry] = []
        broken: dict[str, str] = {}
        for repo in repos:
            for row in _rows(repo, index_folder):
                if row["error"]:
                    broken[row["path"]] = row["error"]
                elif row["uid"]:
                    self._metas[row["path"]] = row["meta"]
                    entries.append(_entry(row, repo))
        self.index: RecipeIndex = build_index(entries, broken)

    def recipe(self, entry: IndexEntry) -> Recipe:
        """The parsed recipe behind an index entry; the same object each time."""
        key = str(entry.path)
        if key not in self._recipes:
            self._recipes[key] = parse_recipe(json.loads(self._metas[key]), entry.path, entry.repo_path)
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


def _rows(repo: RepoInfo, index_folder: Path) -> list[dict[str, Any]]:
    """What is known of each recipe of a repository, read anew where a file changed."""
    name = "".join(letter if letter.isalnum() else "-" for letter in str(repo.path))[-200:] + ".json"
    stored = read_json(index_folder / name)
    known: dict[str, dict[str, Any]] = {}
    if isinstance(stored, dict) and stored.get("format") == FORMAT and isinstance(stored.get("rows"), list):
        known = {row["path"]: row for row in stored["rows"]}
    rows, has_changed = [], False
    for folder, signature in _recipe_folders(repo.path / "script"):
        row = known.get(str(folder))
        if row is None or row["files"] != signature:
            row = _read_row(folder, signature)
            has_changed = True
        rows.append(row)
    if has_changed or len(rows) != len(known):
        try:
            index_folder.mkdir(parents=True, exist_ok=True)
            write_json(index_folder / name, {"format": FORMAT, "rows": rows}, indent=None)
        except OSError:
            pass  # a read-only home only costs time
    return rows


def _recipe_folders(root: Path) -> Iterator[tuple[Path, Signature]]:
    if not root.is_dir():
        return
    for name in sorted(os.listdir(root)):
        signature: Signature = []
        for meta_name in META_NAMES:
            try:
                status = os.stat(os.path.join(root, name, meta_name))
            except OSError:
                continue
            signature.append([meta_name, status.st_mtime_ns, status.st_size])
        if signature:
            yield root / name, signature


def _read_row(folder: Path, signature: Signature) -> dict[str, Any]:
    row: dict[str, Any] = {"path": str(folder), "files": signature, "error": "", "uid": "", "meta": ""}
    try:
        meta = read_meta(folder)
        if str(meta.get("automation_uid", SCRIPT_AUTOMATION_UID)) != SCRIPT_AUTOMATION_UID:
            return row
        recipe = parse_recipe(meta, folder, folder.parent.parent)
    except (MetaError, OSError, ValueError) as error:
        row["error"] = str(error)
        return row
    sort = meta.get("sort", 0)
    row.update(
        uid=recipe.id.uid,
        alias=recipe.id.alias,
        tags=list(recipe.tags),
        variations=list(recipe.variations),
        sort=sort if isinstance(sort, int) else 0,
        cache=recipe.is_cached,
        meta=json.dumps(meta, default=str),
    )
    return row


def read_meta(folder: Path) -> dict[str, Any]:
    """The metadata of a recipe folder: ``_cm.yaml``, with the top-level keys of ``_cm.json`` over it.

    Raises MetaError when a file is no mapping or does not parse.
    """
    meta: dict[str, Any] = {}
    for name in META_NAMES:
        path = folder / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            value = _parse_yaml(text, path) if name.endswith(".yaml") else _parse_json(text, path)
            if not isinstance(value, dict):
                raise MetaError(f"{path}: expected a mapping, found {type(value).__name__}")
            meta.update(value)
    return meta


def _parse_yaml(text: str, path: Path) -> Any:
    import yaml  # here, because a start that finds its index fresh never needs it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise MetaError(f"{path}: no YAML: {' '.join(str(error).split())}") from None


def _parse_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MetaError(f"{path}: no JSON: {error}") from None


def _entry(row: dict[str, Any], repo: RepoInfo) -> IndexEntry:
    return IndexEntry(
        alias=row["alias"],
        uid=row["uid"],
        path=Path(row["path"]),
        repo_path=repo.path,
        repo_alias=repo.alias,
        tags=frozenset(row["tags"]),
        variations=frozenset(row["variations"]),
        sort=row["sort"],
        is_cached=row["cache"],
    )


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
