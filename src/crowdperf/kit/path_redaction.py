"""Removes the paths of one machine from texts and values: `<result>`, `<cache>`, `<home>`, and `<path>/NAME` elsewhere.

    /data/CM/cache/a69d89d93790d5b5/digits.onnx    ->  <cache>/digits.onnx
    /mnt/models/llama                              ->  <path>/llama

An entry of the cache is recognized by its name, 16 hex digits, which is removed because it differs between machines.
The engine writes records with the same three signs (`portable` in provenance/lockfile.py). Pure.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RESULT, CACHE, HOME, ELSEWHERE = "<result>", "<cache>", "<home>", "<path>"

_ABSOLUTE = re.compile(r"/(?<![\w:/.<>~)\]+-]/)(?:[^\s/'\"`<>|;,:=()\[\]{}]+/)+[^\s/'\"`<>|;,:=()\[\]{}]*")
"""At least two parts, and not after a letter, digit or sign that makes it the rest of another word ("samples/s")."""

_ENTRY = re.compile(r"[0-9a-f]{16}")
_NO_FILES = re.compile(r"/(?:v1|v2|api|dev(?!/shm/)|proc|sys)/")
"""The begin of paths that do not identify a machine: those of servers' interfaces, and of the kernel's own files. Users
keep files of their own in /dev/shm."""


@dataclass(frozen=True, slots=True)
class KnownFolders:
    """The folders of one machine by their signs. If two match, the longer one is used."""

    folders: Mapping[str, str]

    def ordered(self) -> list[tuple[str, str]]:
        """Folder and sign, the longest folder first. Folders that do not identify a machine ("/") are omitted."""
        pairs = [(folder.rstrip("/"), sign) for sign, folder in self.folders.items()]
        return sorted((pair for pair in pairs if pair[0]), key=lambda pair: (-len(pair[0]), pair[1]))


NO_PLACES = KnownFolders({})


def _is_file(path: str) -> bool:
    return not _NO_FILES.match(path)


def honest_text(text: str, places: KnownFolders = NO_PLACES) -> str:
    """Return a text without absolute paths."""
    for folder, sign in places.ordered() if "/" in text else ():
        if folder in text:
            text = re.sub(rf"(?<![\w./-]){re.escape(folder)}(?![\w-])", sign, text)

    return _ABSOLUTE.sub(_replaced, text) if "/" in text else text


def _replaced(found: re.Match[str]) -> str:
    if not _is_file(found[0]):
        return found[0]
    parts = found[0].rstrip("/").split("/")
    entry = next((number for number, part in enumerate(parts) if _ENTRY.fullmatch(part)), None)
    return f"{ELSEWHERE}/{parts[-1]}" if entry is None else "/".join([CACHE, *parts[entry + 1 :]])


def honest(value: Any, places: KnownFolders = NO_PLACES) -> Any:
    """Return a JSON value without absolute paths in its texts and field names."""
    if isinstance(value, str):
        return honest_text(value, places)
    if isinstance(value, Mapping):
        return {honest_text(str(name), places): honest(one, places) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [honest(one, places) for one in value]
    return value


def absolute_paths(text: str) -> Iterator[re.Match[str]]:
    """Yield the absolute paths in a text, in its order."""
    return (found for found in _ABSOLUTE.finditer(text) if _is_file(found[0]))
