"""The shape of the engine: who imports whom, which modules are pure, and how long things may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

AUTOMATION = Path(__file__).resolve().parents[2] / "automation"
ENGINE = AUTOMATION / "recipe_engine"
MODULES = sorted(path.stem for path in ENGINE.glob("*.py") if path.stem != "__init__")
TREES = {name: ast.parse((ENGINE / f"{name}.py").read_text(encoding="utf-8")) for name in [*MODULES, "__init__"]}
LAYERS = [
    line.partition(".")[2].replace(" ", "").split(",")
    for line in (ast.get_docstring(TREES["__init__"]) or "").splitlines()
    if re.match(r"\d\. ", line)
]
RANK = {name: (layer, at) for layer, names in enumerate(LAYERS) for at, name in enumerate(names)}

PURE_IMPORTS = {
    "__future__",
    "collections",
    "copy",
    "difflib",
    "fnmatch",
    "functools",
    "hashlib",
    "json",
    "re",
    "typing",
}
PATH_AS_VALUE = {"index", "model", "schema"}
"""Pure modules that hold a ``pathlib.Path`` as a value and never ask the disk about it."""
DISK_METHODS = {
    "exists",
    "is_file",
    "is_dir",
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "resolve",
    "cwd",
    "glob",
}

MODULE_LINES, FUNCTION_LINES, ARGUMENTS = 350, 60, 5
EXCEPTIONS: dict[str, str] = {}
"""``module`` or ``module.function`` that may be larger, and why."""


def imports(name: str) -> Iterator[tuple[str, bool]]:
    """Every module imported anywhere in a module of the engine, and whether it is one of the engine's own."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield from ((node.module or alias.name, True) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", False


def test_the_package_lists_every_module_once_in_its_layer() -> None:
    assert len(LAYERS) == 4
    assert sorted(name for names in LAYERS for name in names) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_is_listed_before_it(name: str) -> None:
    own = {module.partition(".")[0] for module, is_own in imports(name) if is_own}
    assert [module for module in sorted(own) if RANK[module] >= RANK[name]] == []


@pytest.mark.parametrize("name", [*MODULES, "__init__"])
def test_the_engine_does_not_know_cmind_and_names_itself_only_relatively(name: str) -> None:
    roots = {module.partition(".")[0] for module, is_own in imports(name) if not is_own}
    assert roots.isdisjoint({"cmind", "recipe_engine", "automation"})


@pytest.mark.parametrize("name", [name for names in LAYERS[:2] for name in names])
def test_the_lower_layers_touch_no_file_no_process_and_no_clock(name: str) -> None:
    allowed = PURE_IMPORTS | ({"pathlib"} if name in PATH_AS_VALUE else set())
    roots = {module.partition(".")[0] for module, is_own in imports(name) if not is_own}
    assert roots <= allowed
    calls = [node.func for node in ast.walk(TREES[name]) if isinstance(node, ast.Call)]
    assert "open" not in {call.id for call in calls if isinstance(call, ast.Name)}
    assert DISK_METHODS.isdisjoint(call.attr for call in calls if isinstance(call, ast.Attribute))


@pytest.mark.parametrize("name", MODULES)
def test_modules_functions_and_argument_lists_are_short(name: str) -> None:
    large = []
    lines = len((ENGINE / f"{name}.py").read_text(encoding="utf-8").splitlines())
    if lines > MODULE_LINES:
        large.append((name, f"{lines} lines"))
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in arguments)
            if length > FUNCTION_LINES or count > ARGUMENTS:
                large.append((f"{name}.{node.name}", f"{length} lines, {count} arguments"))
    assert [item for item in large if item[0] not in EXCEPTIONS] == []


def test_every_adapter_loads_the_engine_with_the_same_lines() -> None:
    blocks = {}
    for path in sorted(AUTOMATION.glob("*/module.py")):
        text = path.read_text(encoding="utf-8")
        start, end = text.index("# --- the same lines"), text.index("# --- end of the same lines")
        blocks[path.parent.name] = text[start:end]
    assert {"cache", "script"} <= set(blocks)
    assert len(set(blocks.values())) == 1
