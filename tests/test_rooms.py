"""The rooms of src/crowdperf: a room imports only rooms above it, and what other programs import of them is there."""

import ast
from functools import cache

import pytest
from rooms import FLOORS, HARNESS, ROOMS, ROOT, crossings, imported, modules, outside_packages, room_of
from without_room import ROOMS as OPTIONAL

OTHER_PROGRAMS = ("benchmarks", "script", "tools", "tests/compat", "tests/fuzz")
ALONE = ("kit", "rules", "logs", "compliance", "call", "machine", "data", "gate", "submission")
"""Rooms that need the standard library only; PyYAML, where there is any, is imported by the function that needs it."""


def wrong_ways(order: tuple[str, ...], inside: str) -> list[str]:
    """The imports that go up, of the rooms below `inside`, which ends with a dot or is empty."""
    return [
        f"{inside}{own} imports {inside}{other}"
        for own, other in crossings(inside)
        if order.index(room_of(other)) > order.index(room_of(own))
    ]


def test_every_room_is_on_the_drawing() -> None:
    assert set(ROOMS) - set(OPTIONAL) <= {room_of(name) for name in modules()} <= set(ROOMS)
    assert {name.split(".")[1] for name in modules() if name.startswith(HARNESS)} == set(FLOORS)


@pytest.mark.parametrize(("order", "inside"), [(ROOMS, ""), (FLOORS, HARNESS)], ids=["rooms", "floors of the harness"])
def test_a_room_imports_only_rooms_above_it(order: tuple[str, ...], inside: str) -> None:
    assert wrong_ways(order, inside) == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_neither_cmind_nor_the_engine(room: str) -> None:
    assert {"cmind", "recipe_engine"}.isdisjoint(outside_packages(room))


@pytest.mark.parametrize("room", ALONE)
def test_a_room_that_needs_the_standard_library_only(room: str) -> None:
    assert set(outside_packages(room)) <= {"yaml"}
    for name, tree in modules().items():
        if room_of(name) == room:
            first = {one.name for node in tree.body if isinstance(node, ast.Import) for one in node.names}
            assert "yaml" not in first, name


@cache
def names_in(module: str) -> frozenset[str]:
    """What can be imported from a module by name, read from its file alone."""
    names = {name.rpartition(".")[2] for name in modules() if name.rpartition(".")[0] == module}
    for node in modules()[module].body if module in modules() else ():
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {one.id for target in targets if target for one in ast.walk(target) if isinstance(one, ast.Name)}
    return frozenset(names)


def test_what_other_programs_import_is_there() -> None:
    missing = []
    for path in (path for folder in OTHER_PROGRAMS for path in sorted((ROOT / folder).rglob("*.py"))):
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            module, _, last = name.rpartition(".")
            if module and last not in names_in(module):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []
