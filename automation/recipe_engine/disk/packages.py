"""The files of a repository's packages (``python: src`` in ``cmr.yaml``) that a recipe uses: what its Python files and
scripts import, followed from file to file, and what ``library`` in its metadata names, because code loads it by name.
Data beside a used module counts too.

What was found out is kept in two files for each repository (``TimedIndex``): a line for each recipe and set of declared
modules, so that a call whose files have the times they had looks at these times only; and what each file imports.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..rules.errors import MetaError
from ..rules.model import IGNORED_FOLDERS
from .digests import UNTRUSTED_NS, TimedIndex, Times, Used, own_files, recipe_stamp, time_of, trusted
from .files import read_regular

# --- what a file imports ---


def imports_of(text: str) -> list[str]:
    """The names that Python code imports, anywhere in it: ``a.b`` for ``import a.b``, ``a.b.c`` for ``from a.b import
    c``, with the dots of a relative import in front. A module that is run by name (``"-m", "a.b"``) counts too.
    """
    long, short = (
        "|".join(pattern.replace("@", quote) for quote in "\"'")
        for pattern in (r"@@@[^@\\]*(?:(?:\\.|@(?!@@))[^@\\]*)*@@@", r"@[^@\\\n]*(?:\\.[^@\\\n]*)*@")
    )
    code = re.sub(rf"(?s)#[^\n]*|{long}|{short}|\\\n", lambda found: " " if found[0] == "\\\n" else "", text)
    names = set(re.findall(r"""["']-m["'],\s*["']([A-Za-z_][\w.]*)["']""", text))
    names |= {f"{name}.__main__" for name in names}
    statement = r"(?m)(?:^|[;:])[ \t]*(?:import\b([^\n;]+)|from\b([\w. \t]+?)\bimport\b[ \t]*(\([^)]*\)|[^\n;]*))"
    for modules, place, wanted in re.findall(statement, code):
        place = "".join(place.split())
        start = place if place.endswith(".") else f"{place}."
        for item in (modules or wanted.strip("() \t")).split(","):
            name = "".join(re.split(r"\sas\s", item.strip())[0].split())
            if name:
                names.add(name if modules else place if name == "*" else start + name)
    return sorted(names)


def words_of(script: str) -> list[str]:
    """The words of a shell script that may be names of modules: dotted ones, and what ``-m`` runs."""
    ran = set(re.findall(r"""-m[ \t]+["']?([A-Za-z_][\w.]*)""", script))
    dotted = re.findall(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", script)
    return sorted({*ran, *dotted, *(f"{name}.__main__" for name in ran)})


# --- the files that a recipe uses ---


Facts = tuple[int, str, list[str]]
"""What is known of a file: its time (``st_ctime_ns``, which no program can set), SHA-256, and what it imports."""


class Library:
    """The packages of one repository, in ``folder`` (absolute); lives for one call.

    ``file`` (``.txt``) and one beside it keep what was found out, when it was made by the same ``maker``, which changes
    with this code.
    """

    def __init__(self, repo_path: Path, folder: str, file: Path | None = None, maker: str = "") -> None:
        self._repo = str(repo_path)
        self._root = os.path.relpath(folder, repo_path)
        self._index, self._facts_index = (
            TimedIndex(file and file.with_suffix(end), maker, self._repo, self._root) for end in (".txt", ".facts")
        )
        self._began_ns = time.time_ns()
        self._paths, self._times_ns, self._lines, _ = self._index.load()
        self._same: dict[int, bool] = {}
        self._facts: dict[str, Facts] | None = None
        self._listed: dict[str, tuple[int, frozenset[str]]] = {}
        self._used: dict[str, Used] = {}

    def used(self, folder: Path, modules: Sequence[str] = ()) -> Used:
        """What the recipe in ``folder`` uses that declares these modules; raises MetaError when one is missing."""
        key = json.dumps([os.path.relpath(folder, self._repo), *modules])
        if key not in self._used:
            stamp = recipe_stamp(folder)
            digest, paths = self._known(key, stamp) or self._look(key, stamp, folder, modules)
            self._used[key] = Used(digest, paths, f"{stamp}{digest[:8]}")
        return self._used[key]

    def check(self, module: str) -> None:
        """Raises MetaError, with the nearest names as its hint, for a module that is not there."""
        for name in self._meant(module, {}):
            list(self._declared(name, {}))

    def _load_facts(self) -> dict[str, Facts]:
        paths, times_ns, text, _ = self._facts_index.load()
        rows = zip(paths, times_ns, json.loads(text or "[]"), strict=True)
        return {path: (time_ns, sha256, names) for path, time_ns, (sha256, names) in rows}

    def _known(self, key: str, stamp: str) -> tuple[str, tuple[str, ...]] | None:
        """What the file has for a key, if no path that decided it has another time now."""
        start = self._lines.find(f"\n{key}\t".encode())
        if start < 0:
            return None
        line = self._lines[start + 1 : self._lines.find(b"\n", start + 1)].partition(b"\t")[2]
        digest, known_stamp, n_used, numbers = json.loads(line)
        if known_stamp != stamp or not all(map(self._is_same, numbers)):
            return None
        return digest, tuple(self._paths[number] for number in numbers[:n_used])

    def _is_same(self, number: int) -> bool:
        """Whether the path of this number still has its time."""
        if number not in self._same:
            self._same[number] = time_of(self._repo, self._paths[number]) == self._times_ns[number]
        return self._same[number]

    def _look(self, key: str, stamp: str, folder: Path, modules: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Follows the imports, and notes what was found."""
        import hashlib

        facts = self._load_facts() if self._facts is None else self._facts
        own = [os.path.relpath(path, self._repo) for path in own_files(str(folder)) if path.endswith((".py", ".sh"))]
        watched: dict[str, int] = {path: time_of(self._repo, path) for path in own}
        waiting = [name for path in own for name in self._facts_of(path, facts)[2] if not name.startswith(".")]
        used: dict[str, str] = {}
        meant = [one for name in modules for one in self._meant(name, watched)]
        new = [path for name in meant for path in self._declared(name, watched)]
        seen = set(waiting)
        while waiting or new:
            new += self._found(waiting.pop(), watched)[0] if waiting else ()
            for path in (path for path in new if path not in used):
                watched.setdefault(path, time_of(self._repo, path))
                used[path] = self._facts_of(path, facts)[1]
                names = {_absolute(name, os.path.dirname(path)[len(self._root) + 1 :]) for name in facts[path][2]}
                waiting += names - seen
                seen |= names
            new = []
        digest = hashlib.sha256(json.dumps(sorted(used.items())).encode()).hexdigest() if used else ""
        paths = tuple(sorted(used))
        times_ns = trusted({path: watched.pop(path) for path in paths} | watched, self._began_ns)
        self._facts = {path: row for path, row in facts.items() if times_ns.get(path) != UNTRUSTED_NS}
        self._write(key, [digest, stamp, len(paths)], times_ns)
        return digest, paths

    def _facts_of(self, path: str, facts: dict[str, Facts]) -> Facts:
        """What a file imports and its SHA-256; read when ``facts`` has it with another time, or not at all."""
        time_ns = time_of(self._repo, path)
        if path not in facts or facts[path][0] != time_ns:
            import hashlib

            content = read_regular(f"{self._repo}/{path}")
            reader = {".py": imports_of, ".sh": words_of}.get(os.path.splitext(path)[1])
            names = reader(content.decode("utf-8", "replace").replace("\r\n", "\n")) if reader else []
            facts[path] = (time_ns, hashlib.sha256(content).hexdigest(), names)
        return facts[path]

    def _names_in(self, place: str, watched: dict[str, int]) -> frozenset[str]:
        """The names in a folder, none where it is not one."""
        if place not in self._listed:
            time_ns = time_of(self._repo, place)
            try:
                self._listed[place] = time_ns, frozenset(os.listdir(f"{self._repo}/{place}"))
            except OSError:
                self._listed[place] = time_ns, frozenset()
        watched[place], names = self._listed[place]
        return names

    def _found(self, name: str, watched: dict[str, int]) -> tuple[list[str], str]:
        """The files that importing a name reads, and the part of the name that is no module."""
        place, parts = self._root, name.split(".")
        paths: list[str] = []
        while parts:
            names, inner = self._names_in(place, watched), f"{place}/{parts[0]}"
            is_package = parts[0] in names and "__init__.py" in self._names_in(inner, watched)
            if f"{parts[0]}.py" in names and not is_package:
                return [*paths, f"{inner}.py", *self._data(place, watched)], ".".join(parts[1:])
            if parts[0] not in names or not self._names_in(inner, watched):
                return paths, ".".join(parts)
            place = inner
            paths += [f"{inner}/__init__.py"] if is_package else []
            del parts[0]
        return [*paths, *self._data(place, watched)], ""

    def _data(self, place: str, watched: dict[str, int]) -> Iterator[str]:
        """The files beside a module that are no code, also in folders that hold no code."""
        for name in sorted(self._names_in(place, watched)):
            path = f"{place}/{name}"
            if name.endswith((".py", ".pyc", ".md")) or name.startswith(".") or name in IGNORED_FOLDERS:
                continue
            if os.path.isfile(f"{self._repo}/{path}"):
                yield path
            elif not any(inner.endswith(".py") for inner in self._names_in(path, watched)):
                yield from self._data(path, watched)

    def _meant(self, name: str, watched: dict[str, int]) -> list[str]:
        """The modules that a name of ``library`` means: ``a.*.b`` is that of everything in ``a`` that has ``b``."""
        start, star, rest = name.partition(".*.")
        items = sorted(self._names_in(self._place(start), watched)) if star else []
        names = (f"{start}.{item}.{rest}" for item in items if item.isidentifier() and item[0] != "_")
        return [one for one in names if not self._found(one, watched)[1]] or [name]

    def _declared(self, name: str, watched: dict[str, int]) -> Iterator[str]:
        """The files of a module that ``library`` names, of a package all; raises MetaError when there is none."""
        paths, rest = self._found(name, watched)
        if rest or not all(name.split(".")):
            from ..rules.query import nearest_hint

            known = name.removesuffix(rest).rstrip(".") if rest else ""
            near = {item.removesuffix(".py") for item in self._names_in(self._place(known), watched)}
            names = sorted(f"{known}.{item}".strip(".") for item in near if item.isidentifier() and item[0] != "_")
            hint = nearest_hint(name, names, otherwise=f"known are: {', '.join(names) or 'none'}")
            raise MetaError(f"library: {self._root} has no module {name!r}", hint=hint)
        yield from paths
        folder = f"{self._repo}/{self._place(name)}"
        if os.path.isdir(folder):
            for path in own_files(folder):
                self._names_in(os.path.relpath(os.path.dirname(path), self._repo), watched)
                yield os.path.relpath(path, self._repo)

    def _place(self, name: str) -> str:
        return "/".join([self._root, *filter(None, name.split("."))])

    def _write(self, key: str, found: list[object], times_ns: Times) -> None:
        """Puts a line into the file as it is now, without those of recipes that are gone, and of other times."""
        paths, known_ns, lines, _ = self._index.load()
        table, rows = dict(zip(paths, known_ns, strict=True)), {}
        changed = {path for path, time_ns in times_ns.items() if table.get(path, time_ns) != time_ns}
        for line in filter(None, lines.splitlines()):
            name, _, text = line.decode().partition("\t")
            *row, numbers = json.loads(text)
            own = [paths[number] for number in numbers]
            if changed.isdisjoint(own) and os.path.isdir(f"{self._repo}/{json.loads(name)[0]}"):
                rows[name] = row, own
        rows[key] = found, list(times_ns)
        table = {path: times_ns.get(path, table.get(path, 0)) for _, own in rows.values() for path in own}
        places = {path: number for number, path in enumerate(table)}
        kept = [f"{name}\t{json.dumps([*row, [places[path] for path in own]])}" for name, (row, own) in rows.items()]
        self._paths, self._times_ns, self._same = list(table), list(table.values()), {}
        self._lines = "\n".join(["", *kept, ""]).encode()
        self._index.save(table.items(), self._lines)
        facts = self._facts or {}
        texts = json.dumps([row[1:] for row in facts.values()]).encode()
        self._facts_index.save(((path, time_ns) for path, (time_ns, *_) in facts.items()), texts)


def _absolute(name: str, place: str) -> str:
    """What a name means in a module of the folder ``place`` of the packages; empty when it leads out of them."""
    wanted = name.lstrip(".")
    level = len(name) - len(wanted)
    parts = place.split("/") if place else []
    if not level or level > len(parts):
        return "" if level else name
    return ".".join([*parts[: len(parts) - level + 1], *([wanted] if wanted else [])])
