"""The rooms of src/crowdperf and the floors of its harness from the ground up, and what each imports.

The one place of their order: tests/test_rooms.py holds the imports to it, tools/make_architecture_page.py draws it.
Only files are read.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from syntax import import_statements

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "crowdperf"

ROOMS = (
    "kit", "rules", "logs", "compliance", "call", "machine", "data", "harness", "benchmarks", "models", "standins",
    "gate", "submission", "endpoints", "sweeps", "curves", "store", "web", "fronts",
)  # fmt: skip
"""A room imports only rooms before it. What it is stands in the docstring of its __init__.py."""

FLOORS = (
    "base", "watch", "metrics", "media", "datasets", "detection", "text", "backends", "runner", "find", "commands",
    "__main__",
)  # fmt: skip
"""Those of the harness; a floor imports only floors before it."""

HARNESS = "harness."


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name below crowdperf, parsed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if name := ".".join(parts[:-1] if parts[-1] == "__init__" else parts):
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def all_imported(tree: ast.AST) -> Iterator[str]:
    """Every module that a file imports, inside functions too; relative ones begin with dots."""
    for node in import_statements(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        else:
            base = "." * node.level + (node.module or "")
            yield from (f"{base}.{one.name}" if base.strip(".") else f"{base}{one.name}" for one in node.names)


def imported(tree: ast.AST) -> Iterator[str]:
    """Those of them that are the package's, by their dotted names below crowdperf."""
    return (name.removeprefix("crowdperf.") for name in all_imported(tree) if name.startswith("crowdperf."))


def crossings(inside: str = "") -> Iterator[tuple[str, str]]:
    """Every import of one room in another: the module, and the name that it imports, both without `inside`, which is
    HARNESS for the floors of the harness."""
    for name, tree in modules().items():
        own = name.removeprefix(inside)
        for target in imported(tree) if name.startswith(inside) else ():
            other = target.removeprefix(inside)
            if target.startswith(inside) and room_of(own) != room_of(other):
                yield own, other


def room_of(name: str) -> str:
    """The room of a name of crossings, or of a module."""
    return name.partition(".")[0]


def imports_between(inside: str = "") -> Counter[tuple[str, str]]:
    """How many names each room imports of each other one: (importing, imported)."""
    return Counter((room_of(own), room_of(other)) for own, other in crossings(inside))


def imports_of_folder(folder: str) -> Counter[str]:
    """How many names the programs below a folder of the checkout, such as script, import of each room."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / folder).rglob("*.py")))
    return Counter(room_of(one) for tree in trees for one in imported(tree))


def outside_packages(room: str) -> list[str]:
    """The packages that a room imports, inside functions too, beside the standard library and crowdperf."""
    names = set()
    for name, tree in modules().items():
        if room_of(name) == room:
            for node in import_statements(tree):
                if isinstance(node, ast.Import):
                    names |= {one.name.partition(".")[0] for one in node.names}
                elif not node.level:
                    names.add(str(node.module).partition(".")[0])
    return sorted(names - set(sys.stdlib_module_names) - {"crowdperf"})


def sentence_of(room: str) -> str:
    """What a room is and what it may not do: the first paragraph of its docstring, on one line."""
    return " ".join((ast.get_docstring(modules()[room]) or "").partition("\n\n")[0].split())
