"""Reads recipe folders: their metadata, what it inherits, and their code as text.

The metadata is in ``_cm.yaml`` and ``_cm.json``, else ``meta.yaml``. ``_base: "script::other-recipe"`` (or just
``other-recipe``) takes over the metadata of another artifact: mappings are merged, lists appended, anything else is the
recipe's own (cmind 4.2.0, ``process_meta_for_inheritance``). A start that finds no change (repos.py) reads none of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..rules.env import merge_state
from ..rules.errors import MetaError
from ..rules.frozen import Frozen
from ..rules.model import IGNORED_FOLDERS, SUCCESSOR_FILE
from ..rules.schema import parse_recipe, with_described_keys

CM_NAMES = ("_cm.yaml", "_cm.json")
MAX_BASES = 10
"""Recipes that inherit from each other, one below the other (cmind 4.2.0)."""
MAX_META_BYTES = 1024 * 1024
"""Size of one file with its anchors expanded; the largest of 665 community recipes has 62 kB (November 2026)."""


class MetaFile(Frozen):
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
        return MetaFile(with_described_keys(values), name, files)
    where = f"{files[0]}: _base"
    if depth >= MAX_BASES:
        raise MetaError(f"{where}: more than {MAX_BASES} recipes inherit from each other")
    own_root = folder.parent.parent
    asked: list[Path] = []
    for place in _folders_of(str(wanted), [own_root, *(root for root in roots if root != own_root)]):
        asked.append(place)
        if meta_files(place) and place != folder:
            break
    else:
        raise MissingBase(
            f"{where}: '{wanted}' is not in any registered repository",
            hint="write it as AUTOMATION::ALIAS, for example script::detect-os",
            files=(*files, *(place / other for place in asked for other in (*CM_NAMES, SUCCESSOR_FILE))),
        )
    base = read_meta(asked[-1], roots, depth + 1)
    inherited = {key: value for key, value in base.values.items() if key not in ("uid", "alias")}
    return MetaFile(with_described_keys(merge_state(inherited, values)), name, (*files, *base.files))


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
        reason = " ".join(str(error).split()).replace('in "<unicode string>",', "at")
        raise MetaError(f"{path}: not valid YAML: {reason}") from None


def _parse_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MetaError(f"{path}: not valid JSON: {error}") from None


SCRIPT_AUTOMATION = "script"
SCRIPT_AUTOMATION_UID = "5b4e0237da074764"


def as_json(value: Any) -> Any:
    """A value of YAML as JSON holds it: dates, as keys too, become their text, and a number as a key becomes one."""
    if isinstance(value, dict):
        return {_as_key(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [as_json(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _as_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key) if key is None or isinstance(key, int | float) else str(key)


def belongs_to_recipes(meta: Mapping[str, Any]) -> bool:
    """Whether metadata in ``script/`` is a recipe's, or means to be: that of another automation names it."""
    is_own = str(meta.get("automation_uid", SCRIPT_AUTOMATION_UID)) == SCRIPT_AUTOMATION_UID
    return is_own or str(meta.get("automation_alias", SCRIPT_AUTOMATION)) == SCRIPT_AUTOMATION


def check_automation(meta: Mapping[str, Any], path: Path | str) -> None:
    """Raises MetaError when a recipe has the UID of another automation, so that CM would pass it over."""
    found = str(meta.get("automation_uid", SCRIPT_AUTOMATION_UID))
    if found != SCRIPT_AUTOMATION_UID:
        raise MetaError(f"{path}: automation_uid: expected {SCRIPT_AUTOMATION_UID}, found {found!r}")


class RecipeRow(Frozen):
    """What one folder of ``script/`` turned out to be.

    ``files`` are those that were read or looked for, absolute; they tell when it changes. ``error`` is why it cannot be
    used; without one, an empty ``uid`` means that it is not a recipe. ``meta`` is the whole metadata as JSON in ASCII,
    ``file_name`` that of the file which messages name.
    Without ``is_certain``, because the disk failed, the folder is read again at the next start.
    """

    files: tuple[str, ...] = ()
    error: str = ""
    alias: str = ""
    uid: str = ""
    tags: tuple[str, ...] = ()
    variations: tuple[str, ...] = ()
    sort: int = 0
    is_cached: bool = False
    meta: str = ""
    file_name: str = ""
    is_certain: bool = True


def read_row(folder: Path, roots: Sequence[Path]) -> RecipeRow:
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
        if not belongs_to_recipes(meta):
            return RecipeRow(files)
        check_automation(meta, folder / found.name)
        recipe = parse_recipe(meta, folder, folder.parent.parent, found.name)
    except MissingBase as error:
        return RecipeRow(tuple(dict.fromkeys((*own, *(str(path) for path in error.files)))), error=str(error))
    except OSError as error:
        return RecipeRow(files, error=str(error), is_certain=False)
    except (MetaError, ValueError) as error:
        return RecipeRow(files, error=str(error))
    except RecursionError:
        return RecipeRow(files, error=f"{files[0]}: blocks are nested too deeply, or contain themselves")
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
        file_name=found.name,
    )


CODE = (".py", ".sh")
TEXT_LIMIT_BYTES = 1 << 20
"""Larger files are data, whatever they are called."""


def recipe_texts(folder: Path, endings: tuple[str, ...] = CODE, *, is_deep: bool = False) -> dict[str, str]:
    """The text of each file with one of these endings in a recipe's folder (and below it), by its path there.

    Line ends stay as they are; bytes that are not UTF-8 are replaced.
    """
    texts: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED_FOLDERS and not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names) if name.endswith(endings)):
            if path.is_file() and path.stat().st_size <= TEXT_LIMIT_BYTES:
                texts[path.relative_to(folder).as_posix()] = file_text(path)
        if not is_deep:
            break
    return texts


def file_text(path: Path) -> str:
    """The text of a file with its own line ends; a byte order mark stays where bash would see it."""
    encoding = "utf-8-sig" if path.suffix == ".py" else "utf-8"  # Python skips a byte order mark, bash does not
    return path.read_bytes().decode(encoding, "replace")  # not read_text: it would hide Windows line ends
