"""The rooms of src/crowdperf: a room imports only rooms above it, and what other programs import of them is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "crowdperf"
ROOMS = (
    "kit", "rules", "logs", "compliance", "call", "machine", "data", "harness", "benchmarks", "models", "standins",
    "gate", "submission", "endpoints", "sweeps", "curves", "store", "web", "fronts",
)  # fmt: skip
"""From the ground up, as docs/explanation/architecture.md draws them."""

FLOORS = (
    "base", "watch", "metrics", "media", "datasets", "detection", "text", "backends", "runner", "find", "commands",
    "__main__",
)  # fmt: skip
"""Those of the harness, from the ground up."""

OTHER_PROGRAMS = ("benchmarks", "script", "tools", "tests/compat", "tests/fuzz")
_STANDARD_ONLY = ("kit", "call")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package by its dotted name below crowdperf, parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module of the package that a file imports, inside functions too, by its dotted name below crowdperf."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.removeprefix("crowdperf.") for one in node.names if one.name.startswith("crowdperf."))
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "crowdperf":
            below = str(node.module).removeprefix("crowdperf").strip(".")
            yield from (f"{below}.{one.name}".strip(".") for one in node.names)


def wrong_ways(order: tuple[str, ...], inside: str) -> list[str]:
    """The imports that go up, of the rooms below `inside`, which ends with a dot or is empty."""
    found = []
    for name, tree in modules():
        if not name.startswith(inside):
            continue
        room = name.removeprefix(inside).partition(".")[0]
        for other in imported(tree):
            if other.startswith(inside):
                target = other.removeprefix(inside).partition(".")[0]
                if order.index(target) > order.index(room):
                    found.append(f"{name} imports {other}")
    return found


def test_every_room_is_on_the_drawing() -> None:
    assert {name.partition(".")[0] for name, _ in modules()} == set(ROOMS)
    assert {name.split(".")[1] for name, _ in modules() if name.startswith("harness.")} == set(FLOORS)


@pytest.mark.parametrize(
    ("order", "inside"), [(ROOMS, ""), (FLOORS, "harness.")], ids=["rooms", "floors of the harness"]
)
def test_a_room_imports_only_rooms_above_it(order: tuple[str, ...], inside: str) -> None:
    assert wrong_ways(order, inside) == []


def has_name(module: str, name: str) -> bool:
    """Whether `from crowdperf.<module> import <name>` finds something, read from the files alone."""
    place = PACKAGE.joinpath(*module.split("."))
    if (place / f"{name}.py").is_file() or (place / name).is_dir():
        return True
    file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    names = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {one.id for target in targets if target for one in ast.walk(target) if isinstance(one, ast.Name)}
    return name in names


def test_what_other_programs_import_is_there() -> None:
    missing = []
    for path in (path for folder in OTHER_PROGRAMS for path in sorted((ROOT / folder).rglob("*.py"))):
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            module, _, last = name.rpartition(".")
            if module and not has_name(module, last):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []
