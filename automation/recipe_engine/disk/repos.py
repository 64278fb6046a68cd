"""The recipes of all registered repositories; a start reads only those that changed.

What is known of them is in one file for each repository, in four parts, of which a start reads the first three: the
paths and times of all metadata files, so that comparing 10,000 unchanged folders costs their ``stat`` calls and little
else; a row for each folder of ``script/`` with what selection needs; the rows in which a tag or a name is; and the
metadata of all recipes. Where the file cannot be written, what was read serves this process.

What was written within a tick of the clock before it was read may be written again without getting another time. So it
is read again when the tick is over; what is too fresh all the same is kept as untrusted, and counts as changed at the
next look. A file whose time lies in the future is trusted: later writes get other times.
"""

from __future__ import annotations

import json
import logging
import os
import time
from binascii import crc32  # loaded with yaml, unlike zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..rules.env import ValueRule
from ..rules.errors import MetaError, VariationError
from ..rules.frozen import Frozen
from ..rules.inputs import dependency_names
from ..rules.model import EntryRecord, Maker, Recipe
from ..rules.query import IndexEntry, RecipeIndex, declared_as
from ..rules.schema import parse_recipe
from .digests import (
    TICK_NS,
    UNTRUSTED_NS,
    TimedIndex,
    Times,
    Used,
    declared_modules,
    is_same,
    recipe_digest,
    recipe_stamp,
    time_of,
    trusted,
)
from .files import not_waiting, sha256_of, utc_seconds

if TYPE_CHECKING:
    from .metadata import RecipeRow
    from .packages import Library

logger = logging.getLogger(__name__)

ENGINE = Path(__file__).resolve().parents[1]
AUTOMATION = ENGINE.parent
CHECKOUT = AUTOMATION.parent

FORMAT = 8
ROOT = "."
"""The path of ``script/`` itself: its time tells whether folders came or went."""
MANY = 1000
"""From this many changed recipes on, a start that reads them says so."""
AT_ONCE_BYTES = 1 << 20
"""Metadata up to this size is read as a whole at its first use: most calls need several recipes."""


class RepoInfo(Frozen):
    """One registered CM repository; ``path`` is the folder that holds ``script/``.

    ``values`` is how its recipes' native scripts see env values, ``has_strict_inputs`` whether an input that a recipe
    does not declare is an error: what its ``cmr.yaml`` says, or CM's rule. ``python`` is what it says there of the
    folder with the packages of its recipes, whatever that is.
    """

    path: Path
    alias: str
    uid: str
    values: ValueRule = "cm"
    has_strict_inputs: bool = False
    python: object = None

    @property
    def packages(self) -> str:
        """The folder that ``python`` names, empty for none; raises MetaError for what is no folder inside ``path``."""
        if self.python is None:
            return ""
        name = Path(self.python if isinstance(self.python, str) else "")
        folder = os.path.join(self.path, name)
        is_below = bool(name.parts) and not name.is_absolute() and ".." not in name.parts and os.path.isdir(folder)
        if is_below and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(self.path)):
            return folder
        raise MetaError(
            f"{self.path / 'cmr.yaml'}: python: expected a folder inside the repository, found {self.python!r}",
            hint="set the folder of the packages of its recipes, relative to cmr.yaml: python: src",
        )


class Folder(Frozen):
    """One folder of ``script/``: what it is, and the times of the files, or else its own, that tell when it changes."""

    row: RecipeRow
    times_ns: Times


class MetaPlace(Frozen):
    """Where the metadata of a recipe is in the last part of the file: offset and size in bytes, and its CRC-32.

    ``file_name`` is the file of the recipe that it was read from.
    """

    offset: int
    size_bytes: int
    checksum: int
    file_name: str


# --- one repository ---


class RepoIndex:
    """The index of one repository, brought up to date."""

    def __init__(self, repo: RepoInfo, file: Path, reader: Callable[[Path], RecipeRow], maker: str) -> None:
        self.repo = repo
        self._rows = self._words = b""
        self._root = os.path.join(repo.path, "script")
        self._file = file
        self._index = TimedIndex(file, maker, self._root)
        self._reader = reader
        self._metas_at = 0
        self._metas: bytes | None = None
        known = self._load()
        if not known[0] or not is_same(self._root, zip(*known, strict=True)):
            self._update(zip(*known, strict=True))

    def _load(self) -> tuple[list[str], list[int]]:
        """Takes over what the file holds; all paths, and their times, none when it is of no use."""
        paths, times_ns, body, self._metas_at = self._index.load()
        self._rows, _, self._words = body.partition(b"\0")
        return paths, times_ns

    def _update(self, rest: Iterator[tuple[str, int]]) -> None:
        """Reads the folders that changed, and writes what was found when it differs from what the file holds."""
        self._metas = self._read_metas(0, -1)
        whole_before = dict(islice(rest, 1))
        before = dict(self._folders(rest))
        whole, names = self._listed()
        folders = self._read_changes(names, before)
        if folders == before and whole == whole_before:
            return
        rows = [folder.row for folder in folders.values()]
        metas = [row.meta.encode() for row in rows]
        places = [
            MetaPlace(at, len(meta), crc32(meta), row.file_name)
            for at, meta, row in zip(_offsets(metas), metas, rows, strict=False)
        ]
        texts = [_row_text(*item, place) for item, place in zip(folders.items(), places, strict=True)]
        self._rows, self._words, self._metas = b"".join(texts), _words_text(rows, _offsets(texts)), b"".join(metas)
        times_ns = [*whole.items(), *(pair for folder in folders.values() for pair in folder.times_ns.items())]
        metas_at = self._index.save(times_ns, self._rows + b"\0" + self._words, self._metas)
        if metas_at:
            self._metas_at, self._metas = metas_at, None

    def _folders(self, times_ns: Iterator[tuple[str, int]]) -> Iterator[tuple[str, Folder]]:
        """The folders that the file holds, with their names; ``times_ns`` are those of all, in the same order."""
        from .metadata import RecipeRow  # here, because most starts find no change

        for text in self._rows.splitlines():
            error, name, n_paths, (alias, uid, tags, variations, sort, is_cached), place = json.loads(text)
            meta = self.meta(MetaPlace(*place))
            row = RecipeRow((), error, alias, uid, tuple(tags), tuple(variations), sort, is_cached, meta, place[-1])
            own = dict(islice(times_ns, n_paths))
            yield name, Folder(row, own if meta or not uid else dict.fromkeys(own, UNTRUSTED_NS))

    def _listed(self) -> tuple[Times, list[str]]:
        """The time of ``script/`` and the names in it; listed again after a tick when something just came or went."""
        for is_last in (False, True):
            began_ns = time.time_ns()
            whole = trusted({ROOT: time_of(self._root, ROOT)}, began_ns)
            try:
                names = sorted(os.listdir(self._root))
            except (FileNotFoundError, NotADirectoryError, PermissionError):  # a failing disk is not an empty folder
                names = []
            if is_last or whole[ROOT] != UNTRUSTED_NS:
                break
            time.sleep(TICK_NS / 1e9)
        return whole, names

    def _read_changes(self, names: Sequence[str], before: Mapping[str, Folder]) -> dict[str, Folder]:
        """Every folder as it is now; what is fresh is read again after a tick."""
        from .metadata import RecipeRow

        folders = {name: before.get(name) or Folder(RecipeRow(), {name: UNTRUSTED_NS}) for name in names}
        changed = [name for name, folder in folders.items() if not is_same(self._root, folder.times_ns.items())]
        if len(changed) >= MANY:
            logger.info("reading %d recipes of %s ...", len(changed), self._root)
        for is_second in (False, True):
            if is_second and changed:
                time.sleep(TICK_NS / 1e9)
            for name in changed:
                began_ns = time.time_ns()
                row = self._reader(Path(self._root, name))
                paths = [os.path.relpath(file, self._root) for file in row.files] or [name]
                times_ns = trusted({path: time_of(self._root, path) for path in paths}, began_ns)
                if not row.is_certain:
                    times_ns = dict.fromkeys(times_ns, UNTRUSTED_NS)
                error = row.error.encode("utf-8", "backslashreplace").decode()
                folders[name] = Folder(row._replace(files=(), error=error, is_certain=True), times_ns)
            changed = [name for name in changed if UNTRUSTED_NS in folders[name].times_ns.values()]
        return folders

    def rows_with(self, words: Iterable[bytes]) -> Iterator[bytes]:
        """The rows of all recipes that have the rarest of these tags or names; without words, all rows.

        A word is as the file has it, with what stands before and behind it (``_needle``).
        """
        found = []
        for needle in words:
            start = self._words.find(needle)
            found.append(self._words[start + len(needle) : self._words.find(b"\n", start + 1)] if start >= 0 else b"")
        if not found:
            yield from self._rows.splitlines()
        for start in map(int, min(found, key=len, default=b"").split()):
            yield self._rows[start : self._rows.find(b"\n", start)]

    def meta(self, place: MetaPlace) -> str:
        """The metadata of a recipe as JSON; empty when another process has just replaced the file."""
        if self._metas is None:
            content = self._read_metas(place.offset, place.size_bytes)
        else:
            content = self._metas[place.offset : place.offset + place.size_bytes]
        return content.decode("ascii") if crc32(content) == place.checksum else ""

    def _read_metas(self, offset: int, size_bytes: int) -> bytes:
        """A part of the metadata, or all from ``offset`` on for -1; what is small is read as a whole and kept."""
        try:
            with open(self._file, "rb", opener=not_waiting) as file:
                if os.fstat(file.fileno()).st_size - self._metas_at <= AT_ONCE_BYTES:
                    file.seek(self._metas_at)
                    self._metas = file.read()
                    return self._metas[offset : offset + size_bytes if size_bytes >= 0 else None]
                file.seek(self._metas_at + offset)
                return file.read(size_bytes)
        except OSError:
            return b""


def _offsets(texts: Iterable[bytes]) -> Iterator[int]:
    """Where each text begins when they are joined, and where the last one ends."""
    return accumulate(map(len, texts), initial=0)


def _row_text(name: str, folder: Folder, place: MetaPlace) -> bytes:
    row = folder.row
    fields = (row.alias, row.uid, row.tags, row.variations, row.sort, row.is_cached)
    return json.dumps([row.error, name, len(folder.times_ns), fields, list(vars(place).values())]).encode() + b"\n"


def _words_text(rows: Iterable[RecipeRow], offsets: Iterable[int]) -> bytes:
    """A line for each tag and name, with the offsets of the rows that have it; a newline before and after each."""
    found: dict[str, list[str]] = {}
    for row, offset in zip(rows, offsets, strict=False):
        for word in {row.alias, row.uid, *row.tags} if row.uid else ():
            found.setdefault(word, []).append(str(offset))
    return b"".join(_needle(word) + " ".join(starts).encode() for word, starts in found.items()) + b"\n"


def _needle(word: str) -> bytes:
    """How the line of a tag or name begins, with the end of the line before."""
    return f"\n{json.dumps(word)} ".encode()


# --- all repositories ---


class StoredIndex(RecipeIndex):
    """The index of the registered repositories on top of the files, as they were at the start."""

    def __init__(self, repos: Iterable[RepoInfo], file: Path, reader: Callable[[Path], RecipeRow], maker: str) -> None:
        """Brings the files up to date; their names begin with that of ``file``.

        ``maker`` identifies the code that made the rows: rows of another one are read again.
        """
        self._repos = {
            path: RepoIndex(repo, file.with_name(f"{file.name}-{crc32(path):08x}.txt"), reader, maker)
            for path, repo in {os.fsencode(repo.path): repo for repo in repos}.items()
        }
        self._places: dict[Path, MetaPlace] = {}

    def holding(self, words: Iterable[str]) -> Iterator[IndexEntry]:
        """At least the recipes that have each of ``words`` as a tag or a name; only their rows are parsed."""
        needles = [_needle(word) for word in words]
        for index in self._repos.values():
            for text in index.rows_with(needles):
                _, name, _, (alias, uid, tags, variations, sort, is_cached), place = json.loads(text)
                if uid:
                    path = index.repo.path / "script" / name
                    self._places[path] = MetaPlace(*place)
                    repo, kinds = index.repo, (frozenset(tags), frozenset(variations))
                    yield IndexEntry(alias, uid, path, repo.path, repo.alias, *kinds, sort, is_cached)

    @cached_property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All recipes; parses every row."""
        return super().entries

    @cached_property
    def broken(self) -> Mapping[str, str]:
        """The folders that could not be read, with the reason."""
        found = [(index.repo.path, text) for index in self._repos.values() for text in index.rows_with(())]
        rows = [(path / "script", json.loads(text)) for path, text in found if not text.startswith(b'["",')]
        return {str(folder / name): error for folder, (error, name, *_) in rows}

    def meta(self, entry: IndexEntry) -> tuple[str, str]:
        """The metadata of a recipe as JSON, empty when the index was replaced since, and the name of its file."""
        place = self._places.get(entry.path)
        return (self._repos[os.fsencode(entry.repo_path)].meta(place), place.file_name) if place else ("", "")


# --- their recipes ---


class RecipeSource:
    """The recipes of all registered repositories; lives for one process."""

    def __init__(self, repos: Sequence[RepoInfo], index_folder: Path) -> None:
        self._roots = [repo.path for repo in repos]
        self._repos = {str(repo.path): repo for repo in repos}
        self._recipes: dict[str, Recipe] = {}
        self._packages: dict[str, str] = {}
        self._libraries: dict[str, Library] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._file_digests: dict[Path, str] = {}
        self._index_folder = index_folder
        self._maker = _maker()
        self.index = StoredIndex(repos, index_folder / index_name(), self._read, self._maker)

    def _read(self, folder: Path) -> RecipeRow:
        from .metadata import read_row

        return read_row(folder, self._roots)

    def recipe(self, entry: IndexEntry) -> Recipe:
        """The parsed recipe behind an index entry; the same object each time.

        Raises MetaError when it changed since, and cannot be read any more.
        """
        key = str(entry.path)
        if key not in self._recipes:
            meta, name = self.meta(entry)
            recipe = parse_recipe(meta, entry.path, entry.repo_path, name)
            root = str(entry.repo_path)
            repo = self._repos.get(root)
            if repo:
                rules = {"values": repo.values, "has_strict_inputs": repo.has_strict_inputs}
                if root not in self._packages:
                    self._packages[root] = repo.packages
                recipe = recipe._replace(packages=self._packages[root], **rules)
            self._recipes[key] = recipe
        return self._recipes[key]

    def meta(self, entry: IndexEntry) -> tuple[dict[str, Any], str]:
        """The metadata of a recipe and the name of its file. Raises MetaError as ``recipe`` does."""
        text, name = self.index.meta(entry)
        if text:
            return json.loads(text), name
        from .metadata import as_json, read_meta

        found = read_meta(entry.path, self._roots)
        return as_json(found.values), found.name

    @cached_property
    def dependency_names(self) -> frozenset[str]:
        """The names of all dependencies of all recipes; reads every recipe's metadata."""
        metas = [self.index.meta(entry)[0] for entry in self.index.entries]
        return frozenset(name for meta in metas if meta for name in dependency_names(json.loads(meta)))

    def used(self, recipe: Recipe, variations: Sequence[str]) -> Used:
        """What a recipe uses of its repository's packages with these variations.

        Raises MetaError when a module that it declares is missing.
        """
        modules = declared_modules(recipe, variations)
        if not recipe.packages:
            if modules:
                raise MetaError(f"{recipe.meta_path}: library: {recipe.repo_path / 'cmr.yaml'} has no 'python' folder")
            return Used("", (), recipe_stamp(recipe.path))
        root = str(recipe.repo_path)
        if root not in self._libraries:
            from .packages import Library  # here, because most repositories have no packages

            name = index_name().replace("recipes", "library") + f"-{crc32(os.fsencode(root)):08x}.txt"
            self._libraries[root] = Library(recipe.repo_path, recipe.packages, self._index_folder / name, self._maker)
        try:
            return self._libraries[root].used(recipe.path, modules)
        except MetaError as error:
            raise MetaError(f"{recipe.meta_path}: {error.message}", hint=error.hint) from None

    def used_by(self, name: str, path: Path, variations: Sequence[str]) -> str:
        """The digest of what the recipe in a folder, called ``alias,uid``, uses; empty when there is no such recipe."""
        found = (entry for entry in self.index.by_name(name.partition(",")[2]) if entry.path == path)
        try:
            return next((self.used(self.recipe(entry), variations).digest for entry in found), "")
        except VariationError:
            return ""

    def used_files(self, recipe: Recipe, variations: Sequence[str]) -> dict[str, str]:
        """The SHA-256 of each file that a recipe uses of its repository's packages, by ``repository:path``."""
        repo = self._repos.get(str(recipe.repo_path))
        paths = {path: recipe.repo_path / path for path in self.used(recipe, variations).paths}
        for file in paths.values():
            if file not in self._file_digests:
                self._file_digests[file] = sha256_of(file)
        return {f"{repo.alias if repo else ''}:{path}": self._file_digests[file] for path, file in paths.items()}

    def file_of(self, name: str) -> Path | None:
        """The file that ``used_files`` calls so; None where no registered repository has it."""
        alias, _, path = name.partition(":")
        roots = (repo.path for repo in self._repos.values() if repo.alias == alias)
        is_below = not os.path.isabs(path) and ".." not in Path(path).parts
        return next((root / path for root in roots if is_below and (root / path).is_file()), None)

    def digest(self, recipe: Recipe, used: str = "") -> str:
        """The SHA-256 over the files of a recipe that can change what it does, and over what it ``used``."""
        key = str(recipe.path), used
        if key not in self._digests:
            self._digests[key] = recipe_digest(recipe.path, used)
        return self._digests[key]

    def maker(self, recipe: Recipe, variations: Sequence[str]) -> Maker:
        """What a cache entry records of a recipe that makes it with these variations."""
        used = self.used(recipe, variations)
        return Maker(self.digest(recipe, used.digest), used.stamp)

    def is_unchanged(self, recipe: Recipe, record: EntryRecord) -> bool:
        """Whether a recipe is still the one that made an entry; the stamp answers without reading its files."""
        try:
            used = self.used(recipe, record.variations)
        except VariationError:
            return False
        return used.stamp == record.recipe_stamp or self.digest(recipe, used.digest) == record.recipe_digest

    def newer_files(self, recipe: Recipe, record: EntryRecord) -> list[str]:
        """The files of the repository's packages that the recipe uses and whose time is after the entry was begun."""
        try:
            paths = self.used(recipe, record.variations).paths
            after_s = utc_seconds(record.created_utc) + 1
        except (VariationError, ValueError):  # the latter: an entry that this engine did not make
            return []
        return [path for path in paths if os.stat(recipe.repo_path / path).st_mtime >= after_s]


def used_digests(repo_path: Path, asked: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The digests of what recipes of a repository use of its packages: by folder, with the variations asked for.

    For hooks, which know no index: only these recipes are read. Variations that a recipe lacks are left out, and all
    where they cannot be combined.
    """
    from ..rules.configure import resolve_variations
    from .metadata import as_json, read_mapping, read_meta
    from .packages import Library

    repo = RepoInfo(repo_path, "", "", python=read_mapping(repo_path / "cmr.yaml").get("python"))
    if not repo.packages:
        return dict.fromkeys(asked, "")
    library, found = Library(repo_path, repo.packages), {}
    for name, variations in asked.items():
        meta = read_meta(repo_path / "script" / name, [repo_path])
        recipe = parse_recipe(as_json(meta.values), repo_path / "script" / name, repo_path, meta.name)
        known = [one for one in variations if declared_as(one, recipe.variations)]
        try:
            applied = [one.name for one in resolve_variations(recipe, known, [])]
        except VariationError:
            applied = []
        found[name] = library.used(recipe.path, declared_modules(recipe, applied)).digest
    return found


MAKER_PACKAGES = ("rules", "disk")
"""The packages of the engine whose modules decide what a row says."""


def index_name() -> str:
    """What index files are called: apart for each checkout, so that two with one CM home do not rebuild it in turns."""
    return f"recipes-{FORMAT}-{crc32(os.fsencode(ENGINE)):08x}"


def _maker() -> str:
    """Changes with the code that makes rows: an engine that was updated reads all recipes again."""
    rows = []
    for package in MAKER_PACKAGES:
        with os.scandir(ENGINE / package) as items:
            found = [(item.name, item.stat()) for item in items if item.name.endswith(".py")]
        rows += [(package, name, status.st_mtime_ns, status.st_size) for name, status in found]
    return f"{crc32(repr(sorted(rows)).encode()):08x}"
