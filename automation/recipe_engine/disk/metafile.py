"""Reads the metadata of a recipe folder: ``_cm.yaml`` and ``_cm.json``, else ``meta.yaml``, and what it inherits.

``_base: "script::other-recipe"`` (or just ``other-recipe``) takes over the metadata of another artifact: mappings are
merged, lists appended, anything else is the recipe's own (cmind 4.2.0, ``process_meta_for_inheritance``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.env import merge_state
from ..rules.errors import MetaError
from ..rules.model import SUCCESSOR_FILE

CM_NAMES = ("_cm.yaml", "_cm.json")
MAX_BASES = 10
"""Recipes that inherit from each other, one below the other (cmind 4.2.0)."""
MAX_META_BYTES = 1024 * 1024
"""Size of one file with its anchors expanded; the largest of 665 community recipes has 62 kB (November 2026)."""


class MetaFile(NamedTuple):
    """What a folder's metadata says. ``files`` are all that decide about it, looked for or read."""

    values: dict[str, Any]
    name: str
    files: tuple[Path, ...]


def meta_files(folder: Path) -> tuple[Path, ...]:
    """The metadata files of a folder, the later one over the earlier; none when it is not an artifact."""
    found = tuple(path for path in (folder / name for name in CM_NAMES) if path.is_file())
    if found:
        return found
    return (folder / SUCCESSOR_FILE,) if (folder / SUCCESSOR_FILE).is_file() else ()


def read_meta(folder: Path, roots: Sequence[Path] = (), depth: int = 0) -> MetaFile:
    """The metadata of a recipe folder; the keys of ``_cm.json`` replace those of ``_cm.yaml``.

    Bases are looked for in the folder's own repository, then in those at ``roots``. Raises MetaError when a file is no
    mapping or does not parse, or when a base is missing or inherits without end.
    """
    files = meta_files(folder)
    values: dict[str, Any] = {}
    for path in files:
        values.update(read_mapping(path))
    name = files[0].name if files else CM_NAMES[0]
    wanted = values.pop("_base", None)
    if not wanted:
        return MetaFile(values, name, files)
    where = f"{files[0]}: _base"
    if depth >= MAX_BASES:
        raise MetaError(f"{where}: more than {MAX_BASES} recipes inherit from each other")
    own_root = folder.parent.parent
    asked = list(_folders_of(str(wanted), [own_root, *(root for root in roots if root != own_root)]))
    base_folder = next((place for place in asked if meta_files(place) and place != folder), None)
    if base_folder is None:
        raise MissingBase(
            f"{where}: there is no '{wanted}' in the registered repositories",
            hint="write it as AUTOMATION::ALIAS, for example script::detect-os",
            files=(*files, *(place / other for place in asked for other in (*CM_NAMES, SUCCESSOR_FILE))),
        )
    base = read_meta(base_folder, roots, depth + 1)
    inherited = {key: value for key, value in base.values.items() if key not in ("uid", "alias")}
    return MetaFile(merge_state(inherited, values), name, (*files, *base.files))


class MissingBase(MetaError):
    """A ``_base`` that no repository has; ``files`` are those that would change that."""

    def __init__(self, message: str, *, hint: str, files: tuple[Path, ...]) -> None:
        super().__init__(message, hint=hint)
        self.files = files


def _folders_of(wanted: str, roots: Sequence[Path]) -> Iterator[Path]:
    """Where an artifact ``[automation::]name`` may be; by folder name first, then by alias or uid in its file."""
    automation, _, name = wanted.rpartition("::")
    kind = automation.partition(",")[0].rpartition(":")[2] or "script"
    names = name.rpartition(":")[2].split(",")
    for root in roots:
        yield root / kind / names[0]
    for root in roots:
        for folder in sorted((root / kind).glob("*")):
            for path in meta_files(folder):
                meta = read_mapping(path)
                if str(meta.get("uid", "")) in names or str(meta.get("alias", "")) in names:
                    yield folder


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in one YAML or JSON file; raises MetaError when it is none, does not parse or is too large."""
    _check_size(path, path.stat().st_size)
    text = path.read_text(encoding="utf-8")
    value = _parse_json(text, path) if path.suffix == ".json" else _parse_yaml(text, path)
    if not isinstance(value, dict):
        raise MetaError(f"{path}: expected a mapping, found {type(value).__name__}")
    _check_size(path, _expanded_bytes(value, {}))
    return value


def _check_size(path: Path, size_bytes: int) -> None:
    if size_bytes > MAX_META_BYTES:
        raise MetaError(f"{path}: {size_bytes} bytes with its anchors expanded, the limit is {MAX_META_BYTES}")


def _expanded_bytes(value: Any, known: dict[int, int]) -> int:
    """About the size of a value as JSON; what several anchors share is looked at once (``known``, by identity)."""
    if not isinstance(value, dict | list | tuple):
        return len(value) + 3 if isinstance(value, str) else 8
    if id(value) not in known:
        known[id(value)] = 0  # what holds itself is found when the index is written
        pairs = (part for pair in value.items() for part in pair) if isinstance(value, dict) else value
        known[id(value)] = 2 + sum(_expanded_bytes(part, known) for part in pairs)
    return known[id(value)]


def _parse_yaml(text: str, path: Path) -> Any:
    import yaml  # here, because a start that finds its index fresh never needs it

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Counts what merge keys (``<<``) copy, which happens before there is a value to measure."""

        def flatten_mapping(self, node: Any) -> None:
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                    for part in merged:
                        if isinstance(part, yaml.MappingNode):
                            self.flatten_mapping(part)
                    _check_size(path, 8 * sum(len(part.value) for part in merged))
            super().flatten_mapping(node)

    try:
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise MetaError(f"{path}: no YAML: {' '.join(str(error).split())}") from None


def _parse_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MetaError(f"{path}: no JSON: {error}") from None
