"""``cm load_cfg|select_cfg utils``: configuration files in the ``cfg/`` folders of registered repositories.

A folder ``cfg/<name>`` with a ``_cm.json`` or ``_cm.yaml`` is an artifact; each other JSON or YAML file in it is one
configuration, which may take over another file with ``_base: file.yaml`` or ``_base: "artifact:file.yaml"``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.metafile import meta_files, read_mapping, read_meta
from ..rules.env import merge_state
from ..rules.errors import MetaError, RecipeError
from ..rules.tags import split_words
from ..running.prompts import pick
from .run import Home, split_artifact

logger = logging.getLogger(__name__)

ENDINGS = (".json", ".yaml")
JOINED_KEYS = ("tags", "name")
"""Texts of a configuration that are put behind those of its base instead of in their place."""
MAX_BASES = 10
DEFAULT_TAGS = "basic,docker,configurations"
"""What ``select_cfg`` looks among when no tags are given (reference engine, cm4mlops e1d5c7cf0)."""


class CfgMissing(RecipeError):
    """No configuration fits; CM's code for it is 16."""

    code = 16


class CfgArtifact(NamedTuple):
    """A folder of configurations, as recipes expect an artifact to look."""

    path: str
    meta: dict[str, Any]


def load_cfg(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """The configurations of the artifacts that ``tags`` or ``artifact`` ask for, as ``selection``; ``lst`` are these.

    ``key`` and ``key_end`` choose files by how their names begin and end, ``prune`` by what stands in them;
    ``skip_files`` gives the metadata of the artifacts instead.
    """
    artifacts = find_artifacts(i, home)
    prune: Mapping[str, Any] = i.get("prune") or {}
    if i.get("skip_files"):
        selection = [
            {**found.meta, "full_path": found.path}
            for found in artifacts
            if _has(found.meta, prune.get("key"), prune.get("key_uid"))
        ]
        return {"return": 0, "lst": artifacts, "selection": selection}
    roots = _roots(home)
    selection = []
    for found in artifacts:
        if _has(found.meta, prune.get("meta_key"), prune.get("meta_key_uid")):
            for path in _files(found, str(i.get("key") or ""), tuple(i.get("key_end") or ())):
                meta = _with_base(path, roots, 0)
                if _is_kept(meta, prune):
                    selection.append(_described(meta, path, found))
    return {"return": 0, "lst": artifacts, "selection": selection}


def find_artifacts(i: Mapping[str, Any], home: Home) -> list[CfgArtifact]:
    """The folders of configurations that the tags and the name in the input ask for, in order of their paths."""
    words, name = split_artifact(i)
    found = []
    for folder in (folder for root in _roots(home) for folder in sorted(root.glob("*")) if meta_files(folder)):
        meta = read_meta(folder).values
        is_named = not name or name in (meta.get("alias"), meta.get("uid"), folder.name)
        if is_named and set(words) <= set(meta.get("tags") or ()):
            found.append(CfgArtifact(str(folder), meta))
    return found


def _roots(home: Home) -> list[Path]:
    return [repo.path / "cfg" for repo in home.repos]


def _has(meta: Mapping[str, Any], key: Any, uid: Any) -> bool:
    """Whether the list ``key`` of an artifact holds ``uid``; true when either was not asked for."""
    return not (key and uid) or uid in (meta.get(key) or ())


def _files(found: CfgArtifact, start: str, ends: tuple[str, ...]) -> Iterator[Path]:
    for path in sorted(Path(found.path).iterdir()):
        if path.name.startswith("_") or not path.name.endswith(ENDINGS) or not path.is_file():
            continue
        if path.name.startswith(start) and (not ends or path.name.endswith(ends)):
            yield path


def _with_base(path: Path, roots: Sequence[Path], depth: int) -> dict[str, Any]:
    """A configuration with what its bases say below it; raises MetaError for a base that cannot be used."""
    meta = read_mapping(path)
    base = str(meta.pop("_base", "") or "")
    if not base:
        return meta
    artifact, _, name = base.rpartition(":")
    folders = [root / artifact for root in roots] if artifact else [path.parent]
    base_path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if base_path is None or not name.endswith(ENDINGS) or depth >= MAX_BASES:
        trouble = "does not exist as a .yaml or .json file" if depth < MAX_BASES else "has bases without end"
        raise MetaError(f"{path}: _base: '{base}' {trouble}")
    below = _with_base(base_path, roots, depth + 1)
    joined = {
        key: below[key] + meta[key]
        for key in JOINED_KEYS
        if isinstance(below.get(key), str) and isinstance(meta.get(key), str)
    }
    return {**merge_state(below, meta), **joined}


def _is_kept(meta: Mapping[str, Any], prune: Mapping[str, Any]) -> bool:
    uid = meta.get("uid")
    if prune.get("uid") and uid != prune["uid"]:
        return False
    if prune.get("list") and uid not in prune["list"]:
        return False
    return not (prune.get("key") and prune.get("key_uid")) or meta.get(prune["key"]) == prune["key_uid"]


def _described(meta: dict[str, Any], path: Path, found: CfgArtifact) -> dict[str, Any]:
    tags = split_words(meta.get("tags") or "")
    name = str(meta.get("name") or " ".join(tags)).strip()
    own = list(tags) or name.lower().split()
    all_tags = [*(found.meta.get("tags") or ()), *own]
    return {**meta, "name": name, "full_path": str(path), "all_tags": all_tags, "main_meta": found.meta}


def select_cfg(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """One configuration by ``alias`` (its file's name) or ``uid``, as ``selection``; asks when several fit.

    Raises CfgMissing when none fits, Ambiguous when several do and none is picked.
    """
    asked = i if i.get("tags") or i.get("artifact") else {**i, "tags": DEFAULT_TAGS}
    rows: list[dict[str, Any]] = []
    for found in find_artifacts(asked, home):
        for path in _files(found, "", ()):
            if str(i.get("alias") or path.stem) == path.stem:
                meta = read_mapping(path)
                if not i.get("uid") or meta.get("uid") == i["uid"]:
                    rows.append({"path": str(path), "alias": path.stem, "meta": meta})
    if not rows:
        raise CfgMissing("no configuration fits", hint="check --tags, --alias and --uid")
    rows.sort(key=lambda row: str(row["meta"].get("name", "")))
    number = 0 if len(rows) == 1 else _ask(str(i.get("title") or ""), rows)
    return {"return": 0, "selection": rows[number]}


def _ask(title: str, rows: Sequence[Mapping[str, Any]]) -> int:
    lines = [f"{row['meta'].get('name', row['alias'])} ({row['path']})" for row in rows]
    words = f"several {title + ' ' if title else ''}configurations match:"
    return pick(words, lines, hint="name one with --alias=NAME or --uid=UID")
