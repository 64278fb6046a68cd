"""Finds the user's own copy of a data set or model: the one given, one in the scratch space, or one registered before.

A step that ends with a copy given by `--path` leaves `own-copy.json` in its cache entry, which registers the copy:

    {"copy_of": "imagenet 50000", "identity": "0123456789abcdef", "path": "/data/imagenet", "registered_utc": "..."}

Copies of made data are not registered and not looked for in the scratch space: they never stand in for real ones.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from crowdperf.data.copy_identity import GivenError, identity
from crowdperf.data.errors import DataError
from crowdperf.kit.whole_file import write_json

REGISTRATION_FILE = "own-copy.json"
OWN_SOURCES = ("checkpoint", "download", "given", "published", "real", "zenodo")
"""What the recipes call the sources in whose place a copy of one's own may stand."""
_DESCRIPTIONS = ("dataset.json", "model.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCopy:
    """A registered copy. copy_of: what it is a copy of, in words. entry: the uid of the cache entry."""

    copy_of: str
    path: Path
    identity: str
    registered_utc: str
    entry: str

    @property
    def day(self) -> str:
        """The day on which it was registered."""
        return self.registered_utc[:10]


@dataclass(frozen=True, slots=True)
class CopyChoice:
    """The copy to use, None when there is none, and what to say about the choice."""

    path: Path | None
    note: str = ""


def register(folder: Path, copy_of: str, path: Path) -> None:
    """Write the registration of the copy at `path` into the cache entry `folder`; not when the data was made."""
    if _is_made(path):
        return
    content = {
        "copy_of": copy_of,
        "identity": identity(path),
        "path": str(path),
        "registered_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    write_json(folder / REGISTRATION_FILE, content)


def registered(cache: Path) -> list[OwnCopy]:
    """Return the copies that finished entries of the cache register, newest first, each path once for what it is."""
    found: dict[tuple[str, Path], OwnCopy] = {}
    for file in cache.glob(f"*/{REGISTRATION_FILE}"):
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            tags = json.loads((file.parent / "_cm.json").read_text(encoding="utf-8"))["tags"]
            copy = OwnCopy(
                copy_of=str(content["copy_of"]),
                path=Path(content["path"]),
                identity=str(content["identity"]),
                registered_utc=str(content["registered_utc"]),
                entry=file.parent.name,
            )
        except (OSError, ValueError, KeyError, TypeError):  # an entry that is being removed
            continue
        known = found.get((copy.copy_of, copy.path))
        if "tmp" not in tags and (known is None or known.registered_utc < copy.registered_utc):
            found[copy.copy_of, copy.path] = copy
    return sorted(found.values(), key=lambda copy: (copy.registered_utc, str(copy.path)), reverse=True)


def in_scratch_space(scratch: Path, places: str, copy_of: str) -> Path | None:
    """Return the first of `places` that is there, or None.

    `places` are relative paths, separated by commas; "models/bert/x.onnx for onnx fp32" counts where `copy_of` has
    these words. An empty folder, and one with data that was made, is passed over.
    """
    words = set(copy_of.split())
    for place in places.split(","):
        name, _, condition = place.strip().partition(" for ")
        path = scratch / name
        is_there = name and (path.is_file() or (path.is_dir() and any(path.iterdir())))
        if is_there and set(condition.split()) <= words and not _is_made(path):
            return path
    return None


def choose(copy_of: str, copies: Sequence[OwnCopy]) -> CopyChoice:
    """Return the registered copy to use: the newest that is unchanged, else the newest that is there.

    Raises DataError when copies were registered and all of them are gone.
    """
    fitting = [copy for copy in copies if copy.copy_of == copy_of]
    others = [copy for copy in copies if copy.copy_of.split()[:1] == copy_of.split()[:1] and copy.copy_of != copy_of]
    there = [copy for copy in fitting if copy.path.exists()]
    if fitting and not there:
        gone = fitting[0]
        raise DataError(
            f"{gone.path}, registered on {gone.day} as your own copy of {copy_of}, is gone",
            f"--path=FOLDER sets its new place, and cm rm cache {gone.entry} removes the registration",
        )
    if not there:
        return CopyChoice(None, _others_text(copy_of, others))
    unchanged = [copy for copy in there if _is_unchanged(copy)]
    chosen = (unchanged or there)[0]
    state = "" if unchanged else ", changed since and therefore checked again"
    rest = [f"{copy.path} ({copy.day})" for copy in there if copy != chosen]
    more = f" (also registered: {', '.join(rest)}. --path=FOLDER selects another)" if rest else ""
    return CopyChoice(chosen.path, f"{copy_of}: your own copy {chosen.path}, registered on {chosen.day}{state}{more}")


def _others_text(copy_of: str, others: Iterable[OwnCopy]) -> str:
    rows = [f"{copy.path} (as {copy.copy_of})" for copy in others]
    return f"no own copy of {copy_of} is registered, but {', '.join(rows)}" if rows else ""


def _is_unchanged(copy: OwnCopy) -> bool:
    try:
        return identity(copy.path) == copy.identity
    except GivenError:
        return False


def _is_made(path: Path) -> bool:
    """Whether a folder's description says that its data or weights were made, not published."""
    for name in _DESCRIPTIONS if path.is_dir() else ():
        try:
            facts = json.loads((path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(facts, Mapping) and facts.get("is_synthetic"):
            return True
    return False


def scratch_folder(*values: object) -> Path | None:
    """Return the first of `values` that is an absolute path, with "~" for the home folder; None when none is."""
    texts = (os.path.expanduser(str(value or "").strip()) for value in values)
    return next((Path(text) for text in texts if os.path.isabs(text)), None)
