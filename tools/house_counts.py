"""Counts how the house is built: roots on a path, glue, repetitions, inputs, directions of imports, lines.

    .venv-test/bin/python tools/house_counts.py [--checkout=FOLDER] [--json] [--input=NAME]    with limits, met or not
    .venv-test/bin/python tools/house_counts.py --files [--above=300]    each file, with the kinds of its lines and its
                                                          purpose, then the sums of each room

Works on packages that lie in recipe folders and on one package ``src/crowdperf``. Only files are read; what is counted
stands beside each figure. Lines are all lines of a file.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from reader import exit_code
from snapshot_engine import LIBRARY
from snapshot_trees import package_roots
from syntax import walk

YES_AND_NO = {"yes", "no", "true", "false", "on", "off"}
SHORT_WORDS = {"y", "n", "t", "f", "1", "0", "", "none", "never", "always"}
READS = {"text", "texts", "number", "whole", "whole_number", "integer", "flag", "truth", "positive_number", "one_of"}
"""Names of methods that read one value of a document or of a call."""
ONE_IDEA = ("parse_detail_log", "text_of", "_text", "failure", "write_json")
SETTINGS = ("batch_timeout_us", "max_queue_delay_us", "instance_count", "max_batch_size")
"""Settings of a run whose names are looked for unless ``--input`` names others."""
LIMITS = {
    "roots on a path (folders that contain a package)": 1,
    "*-lib recipes": 1,
    "sys.path edits in tests": 0,
    "guards against CM's engine in customize.py": 1,
    "tables of words for yes and no": 1,
    **{f"functions {name}": 1 for name in ONE_IDEA if not name.startswith("_")},
    "classes that read single values (of JSON, YAML, inputs)": 1,
    "inputs without a type": 0,
    "env keys that inputs describe with several types": 0,
    "default_env entries for a key of another recipe's default_env": 0,
    "pairs of rooms of harness that import each other": 0,
    "pairs of rooms of crowdperf that import each other": 0,
    "lines of Python in script and src": 92_000,
    "lines of _cm.yaml": 10_500,
    "lines of Python in tests": 86_000,
    "lines of Python in automation": 20_500,
}
"""The most that a count may be. Counts without a limit are for information."""
FILES_OF_A_NAME = 5
"""The most files in which the name of an input may be: its description, its use, and what carries it."""
HOOKS = {"preprocess", "postprocess", "plan", "plan_reuse", "predeps", "detect_version", "main"}
LEFT_OUT = {"__pycache__", "node_modules", "build"}


class House:
    """The files of a checkout that are counted."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout

    def python(self, *folders: str) -> list[Path]:
        """The Python files below folders."""
        found = (path for folder in folders for path in (self.checkout / folder).rglob("*.py"))
        return sorted(path for path in found if LEFT_OUT.isdisjoint(path.parts))

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        """The code of recipes and packages, parsed."""
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in self.python("script", "src")}

    @cached_property
    def metas(self) -> dict[Path, dict[str, Any]]:
        """The metadata of recipes."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        files = sorted(self.checkout.glob("script/*/_cm.yaml"))
        return {path: yaml.load(path.read_text(encoding="utf-8"), loader) for path in files}

    # --- roots and glue ---

    def glue(self) -> dict[str, Any]:
        """What only makes packages importable."""
        tags = [tags for meta in self.metas.values() for tags in _dependency_tags(meta)]
        edits = re.compile(r"sys\.path(?:\.(?:append|insert|extend|remove)\(|\[[^\]]*\] *=| *\+=)|syspath_prepend\(")
        tests = [path.read_text(encoding="utf-8") for path in self.python("tests")]
        guard = re.compile(r"^if __name__ == [\"']customize[\"']:", re.MULTILINE)
        hooks = self.checkout.glob("script/*/customize.py")
        own = (self.checkout / "pyproject.toml").read_text(encoding="utf-8")
        path = re.search(r"^mypy_path = \"(.*)\"", own, re.MULTILINE)
        roots = [str(root.relative_to(self.checkout)) for root in package_roots(self.checkout)]
        return {
            "roots on a path (folders that contain a package)": len(roots),
            "roots of mypy_path": len(path[1].split(":")) if path else 0,
            "*-lib recipes": sum(bool(re.fullmatch(LIBRARY, file.parent.name)) for file in self.metas),
            "dependency entries of *-lib recipes": sum(bool(re.fullmatch(LIBRARY, one)) for one in tags),
            "sys.path edits in tests": sum(len(edits.findall(text)) for text in tests),
            "guards against CM's engine in customize.py": sum(
                bool(guard.search(hook.read_text(encoding="utf-8"))) for hook in hooks
            ),
        }

    # --- repetitions ---

    def repetitions(self) -> dict[str, Any]:
        """Ideas that stand in more than one place."""
        functions: dict[str, list[str]] = {}
        readers, parsing, tables = [], [], []
        for path, tree in self.trees.items():
            place = str(path.relative_to(self.checkout))
            for node in tree.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in HOOKS:
                    functions.setdefault(node.name, []).append(place)
            tables += [f"{place}:{line}" for line in _yes_no_tables(tree)]
            readers += [f"{place} {name}" for name in _reader_classes(tree)]
            if re.search(r"\bjson\.loads?\(|\byaml\.(?:safe_)?load\(", path.read_text(encoding="utf-8")):
                parsing.append(place)
        public = {name: places for name, places in functions.items() if not name.startswith("_") and len(places) > 1}
        return {
            "tables of words for yes and no": len(tables),
            "public functions of one name in several modules": len(public),
            **{f"functions {name}": len(functions.get(name, ())) for name in ONE_IDEA},
            "classes that read single values (of JSON, YAML, inputs)": len(readers),
            "modules that parse JSON or YAML": len(parsing),
            "where": {"tables": tables, "readers": readers, "parse_detail_log": functions.get("parse_detail_log", [])},
        }

    # --- inputs ---

    def inputs(self, *names: str) -> dict[str, Any]:
        """What recipes declare of their inputs, and in how many files a name stands."""
        rows = [row for meta in self.metas.values() for row in self._described(meta).values()]
        files = [*self.python("script", "src", "automation"), *self.checkout.glob("script/*/*.yaml")]
        texts = [path.read_text(encoding="utf-8") for path in files]
        tests = [path.read_text(encoding="utf-8") for path in self.python("tests")]
        mapped = sum(len(meta.get("input_mapping") or {}) for meta in self.metas.values())
        found: dict[str, Any] = {
            "inputs": len(rows),
            "inputs with a type": sum("type" in row for row in rows),
            "inputs without a type": sum("type" not in row for row in rows),
            "inputs in input_mapping": mapped,
        }
        types: dict[str, set[str]] = {}
        for row in rows:
            if row.get("env"):
                types.setdefault(row["env"], set()).add(str(row.get("type")))
        mixed = {key: sorted(kinds) for key, kinds in sorted(types.items()) if len(kinds) > 1}
        found["env keys that inputs describe with several types"] = len(mixed)
        homes: dict[str, set[str]] = {}
        for path, meta in self.metas.items():
            for key in _default_keys(meta):
                homes.setdefault(key, set()).add(path.parent.name)
        shared = {key: sorted(recipes) for key, recipes in sorted(homes.items()) if len(recipes) > 1}
        found["default_env entries for a key of another recipe's default_env"] = sum(map(len, shared.values())) - len(
            shared
        )
        found["where"] = {"env keys of several types": mixed, "keys of several default_env": shared}
        for name in names:
            word = re.compile(rf"\b{name}\b")
            found[f"files that name {name}"] = sum(bool(word.search(text)) for text in texts)
            found[f"files of tests that name {name}"] = sum(bool(word.search(text)) for text in tests)
        return found

    def _described(self, meta: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The inputs that a recipe describes, each with what its base says of it."""
        base = str(meta.get("_base", "")).rpartition("::")[2]
        shared = self.metas.get(self.checkout / "script" / base / "_cm.yaml", {}).get("input_description") or {}
        own = meta.get("input_description") or {}
        return {name: {**(shared.get(name) or {}), **(row or {})} for name, row in own.items()}

    # --- rooms ---

    def rooms(self) -> dict[str, Any]:
        """Imports between the rooms of the harness, and between those of src/crowdperf."""
        found: dict[str, Any] = {}
        for name in ("src/crowdperf/harness", "src/crowdperf/harness", "src/crowdperf"):
            folder = self.checkout / name
            if not folder.is_dir():
                continue
            counts = Counter(self._imports_between(folder))
            both = sorted({tuple(sorted(pair)) for pair in counts if pair[::-1] in counts})
            found[f"pairs of rooms of {folder.name} that import each other"] = len(both)
            found.setdefault("where", {})[folder.name] = {
                f"{one} <-> {other}": [counts[one, other], counts[other, one]] for one, other in both
            }
        return found

    def _imports_between(self, folder: Path) -> Iterator[tuple[str, str]]:
        """The room of an importing module and the room imported; "core" are the modules at the top."""
        rooms = {path.name for path in folder.iterdir() if path.is_dir()}
        for path, tree in self.trees.items():
            if not path.is_relative_to(folder):
                continue
            inside = path.relative_to(folder).parts[:-1]
            own = inside[0] if inside else "core"
            for target in _imported(tree, folder.name, inside):
                other = target[0] if target and target[0] in rooms else "core"
                if other != own:
                    yield own, other

    # --- size ---

    def lines(self) -> dict[str, Any]:
        """Lines of code and metadata."""
        return {
            "lines of Python in script and src": _lines(self.trees),
            "lines of _cm.yaml": _lines(self.metas),
            "lines of Python in tests": _lines(self.python("tests")),
            "lines of Python in automation": _lines(self.python("automation")),
        }

    def counts(self, *names: str) -> dict[str, Any]:
        """All of it; ``where`` tells the places of what should be one."""
        parts = [self.glue(), self.repetitions(), self.inputs(*names), self.rooms(), self.lines()]
        where = {name: places for part in parts for name, places in part.pop("where", {}).items()}
        return {key: value for part in parts for key, value in part.items()} | {"where": where}


def _lines(paths: Any) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def _dependency_tags(meta: Any) -> Iterator[str]:
    """The tags of every dependency entry anywhere in metadata."""
    if isinstance(meta, dict):
        for key, value in meta.items():
            if key.endswith("deps") and isinstance(value, list):
                yield from (str(row.get("tags", "")) for row in value if isinstance(row, dict))
            yield from _dependency_tags(value)
    elif isinstance(meta, list):
        for one in meta:
            yield from _dependency_tags(one)


def _default_keys(meta: Any) -> Iterator[str]:
    """The keys of every ``default_env`` anywhere in metadata."""
    if isinstance(meta, dict):
        for key, value in meta.items():
            yield from value if key == "default_env" and isinstance(value, dict) else _default_keys(value)
    elif isinstance(meta, list):
        for one in meta:
            yield from _default_keys(one)


def _yes_no_tables(tree: ast.Module) -> Iterator[int]:
    """The lines of collections of at least three words that mean yes or no."""
    for node in walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts: list[ast.expr | None] = list(node.elts)
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        else:
            continue
        words = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        lower = {word.lower() for word in words}
        if len(parts) == len(words) >= 3 and len(lower & YES_AND_NO) >= 2 and lower <= YES_AND_NO | SHORT_WORDS:
            yield node.lineno


def _reader_classes(tree: ast.Module) -> Iterator[str]:
    """Classes with at least two methods that read single values."""
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {one.name.strip("_") for one in node.body if isinstance(one, ast.FunctionDef)}
            if len(methods & READS) >= 2:
                yield node.name


def _imported(tree: ast.Module, package: str, inside: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What a module imports of its own package, as parts below the package; ``inside`` is the folder it lies in."""
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                if node.level - 1 > len(inside):
                    continue  # above the package
                yield from _targets((*inside[: len(inside) - node.level + 1], *module), node)
            elif package in module:
                yield from _targets(module[module.index(package) + 1 :], node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                if package in parts:
                    yield parts[parts.index(package) + 1 :]


def _targets(base: tuple[str, ...], node: ast.ImportFrom) -> Iterator[tuple[str, ...]]:
    """``from . import name`` names a module or a room; any other import its base."""
    if base:
        yield base
    else:
        yield from ((alias.name,) for alias in node.names)


KINDS = ("blank", "docs", "import", "heads", "tables", "raise")
"""Kinds of lines, each counted without those before it: blank ones outside docstrings, docstrings, imports, heads of
functions and classes with their decorators, tables (assignments outside functions over several lines, and tables of
cases), statements that raise. What is left is code."""


def file_rows(house: House, above: int) -> Iterator[str]:
    """A line for each Python file of more than ``above`` lines, by folder, then one for each room with all its files:
    all lines, those of each kind, the rest, and the first line of the file's docstring, which is what would be lost.
    """
    yield " ".join(f"{name:>6}" for name in ("lines", *KINDS, "code")) + "  file: purpose"
    rooms: dict[str, Counter[str]] = {}
    for path in house.python("script", "src", "automation", "tests"):
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(house.checkout)
        counts = _kinds(tree, path.read_text(encoding="utf-8").splitlines())
        rooms.setdefault(_room(place), Counter()).update(counts | {"files": 1})
        if counts["lines"] > above:
            yield f"{_figures(counts)}  {place}: {(ast.get_docstring(tree) or '').partition(chr(10))[0]}"
    yield ""
    for room, counts in rooms.items():
        yield f"{_figures(counts)}  {room}: {counts['files']} files"


def _figures(counts: Counter[str]) -> str:
    return " ".join(f"{counts[name]:>6}" for name in ("lines", *KINDS, "code"))


def _room(place: Path) -> str:
    """``script``, ``tests/engine``, ``src/crowdperf/kit``: the folder whose files are summed up."""
    depth = {"script": 1, "tests": 2}.get(place.parts[0], 3)
    return "/".join(place.parts[: min(depth, len(place.parts) - 1)])


def _kinds(tree: ast.Module, lines: list[str]) -> Counter[str]:
    """How many lines of a file are of each kind (``KINDS``), and how many there are."""
    places: dict[str, set[int]] = {name: set() for name in KINDS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            places["import"] |= _line_numbers(node)
        elif isinstance(node, ast.Raise):
            places["raise"] |= _line_numbers(node)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                places["tables" if "parametrize" in ast.unparse(decorator) else "heads"] |= _line_numbers(decorator)
            places["heads"] |= set(range(node.lineno, max(node.body[0].lineno, node.lineno + 1)))
        if isinstance(node, ast.Module | ast.ClassDef):
            assigned = (it for it in node.body if isinstance(it, ast.Assign | ast.AnnAssign))
            places["tables"] |= {line for it in assigned if it.end_lineno != it.lineno for line in _line_numbers(it)}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            places["docs"] |= _line_numbers(node.body[0])
    blank = {number for number, line in enumerate(lines, start=1) if not line.strip()}
    places["blank"] = blank - places["docs"]
    left = set(range(1, len(lines) + 1))
    counts = Counter({"lines": len(lines)})
    for name in KINDS:
        counts[name] = len(left & places[name])
        left -= places[name]
    counts["code"] = len(left)
    return counts


def _line_numbers(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def counts_items(checkout: Path, scratch: Path) -> Iterator[tuple[str, Any]]:
    """The part ``counts`` of a picture."""
    for name, value in House(checkout).counts(*SETTINGS).items():
        yield name, lambda value=value: value


def judged(name: str, count: int) -> str:
    """The limit of a count, and whether it is met; empty where there is none."""
    limit = FILES_OF_A_NAME if name.startswith("files that name ") else LIMITS.get(name)
    return "" if limit is None else f"  at most {limit:>6}  {'met' if count <= limit else 'NOT MET'}"


def main(words: list[str]) -> int:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--checkout", type=lambda text: Path(text).resolve(), default=Path(__file__).resolve().parents[1]
    )
    parser.add_argument("--input", action="append", help="an input whose name is looked for, may be repeated")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--files", action="store_true", help="each file with its lines and its purpose, each room")
    parser.add_argument("--above", type=int, default=0, metavar="LINES", help="with --files: only larger files")
    given = parser.parse_args(words)
    if given.files:
        print("\n".join(file_rows(House(given.checkout), given.above)))
        return 0
    found = House(given.checkout).counts(*(given.input or SETTINGS))
    if given.json:
        print(json.dumps(found, indent=1))
        return 0
    where = found.pop("where")
    width = max(map(len, found))
    print("\n".join(f"{name:<{width}}  {value:>7}{judged(name, value)}" for name, value in found.items()))
    for name, places in where.items():
        print(f"\n{name}:")
        rows = places.items() if isinstance(places, dict) else ((place, "") for place in places)
        print("\n".join(f"  {place} {figures or ''}".rstrip() for place, figures in rows))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main, sys.argv[1:]))
