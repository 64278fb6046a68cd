"""The cut of the engine: who may import whom, who may touch the world, and how big things may get."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import recipe_engine

ENGINE = Path(recipe_engine.__file__).parent
MODULES = {f"{path.parent.name}.{path.stem}": path for path in sorted(ENGINE.glob("*/*.py")) if path.stem != "__init__"}
"""Every module by ``package.module``."""

MODULE_LINES = 500
"""A reader meets an idea once, in one file: one module of this length rather than three that call each other."""
FUNCTION_LINES = 60
ARGUMENTS = 5

TOO_LONG_MODULES: dict[str, str] = {"rules.model": "the types of the engine stand in one place; they hold no rules"}
"""Module to the reason why it may be longer than MODULE_LINES."""
TOO_LONG_FUNCTIONS: dict[str, str] = {}
"""``module.function`` to the reason why it may be longer than FUNCTION_LINES."""
TOO_MANY_ARGUMENTS: dict[str, str] = {}
"""``module.function`` to the reason why it may take more than ARGUMENTS."""

EFFECTS = frozenset(
    [
        "asyncio",
        "builtins",
        "cmind",
        "ctypes",
        "datetime",
        "fcntl",
        "glob",
        "http",
        "importlib",
        "logging",
        "multiprocessing",
        "os",
        "platform",
        "random",
        "requests",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
    ]
)
"""Modules through which files, processes, the clock, chance, the network or the process itself are reached."""

PATH_EFFECTS = frozenset(
    [
        "absolute",
        "chmod",
        "cwd",
        "exists",
        "expanduser",
        "glob",
        "home",
        "is_dir",
        "is_file",
        "is_symlink",
        "iterdir",
        "lstat",
        "mkdir",
        "open",
        "read_bytes",
        "read_text",
        "readlink",
        "rename",
        "resolve",
        "rglob",
        "rmdir",
        "samefile",
        "stat",
        "symlink_to",
        "touch",
        "unlink",
        "write_bytes",
        "write_text",
    ]
)
"""Methods of a ``Path`` that look at the disk or change it."""
PROCESS_CALL = re.compile(r"system$|popen$|fork|exec|spawn|posix_spawn")
EFFECT_CALLS = frozenset(["eval", "exec", "input", "open", "print"])


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Every module, parsed."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def listed_packages() -> dict[str, bool]:
    """The packages in order, and whether each is pure, as the docstring of the engine lists them."""
    rows = re.findall(r"^- (pure|with effects): (.+)$", recipe_engine.__doc__ or "", re.MULTILINE)
    return {name: kind == "pure" for kind, names in rows for name in names.split(", ")}


PACKAGES = listed_packages()


def listed_modules() -> dict[str, tuple[int, int]]:
    """Module to the place of its package and its own place there, as the docstrings of the packages list them."""
    places: dict[str, tuple[int, int]] = {}
    for number, package in enumerate(PACKAGES):
        text = ast.get_docstring(ast.parse((ENGINE / package / "__init__.py").read_text(encoding="utf-8"))) or ""
        for place, name in enumerate(re.split(r",\s+", text.rpartition(":\n\n")[2].rstrip("."))):
            assert f"{package}.{name}" not in places, f"{package}.{name} is listed twice"
            places[f"{package}.{name}"] = (number, place)
    return places


LAYERS = listed_modules()
PURE_IN_MIXED_PACKAGES = (
    *("planning.plan", "planning.plan_text", "explaining.origins", "provenance.lockfile"),
    *("auditing.findings", "auditing.recipes", "auditing.metadata", "auditing.code"),
)
PURE = sorted(name for name in LAYERS if PACKAGES[name.partition(".")[0]] or name in PURE_IN_MIXED_PACKAGES)


def engine_imports(tree: ast.Module, package: str) -> Iterator[tuple[str, int]]:
    """The modules of the engine that a module of a package imports, anywhere in it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level in (1, 2):
            above = package if node.level == 1 else ""
            path = ".".join(part for part in (above, node.module) if part)
            names = [path] if "." in path else [f"{path}.{alias.name}" for alias in node.names]
            yield from ((name, node.lineno) for name in names)


def outside_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The top-level names of the other modules that a module imports, anywhere in it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level not in (1, 2):
            yield ("." * node.level + (node.module or "").partition(".")[0], node.lineno)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function and method, named as ``function``, ``Class.method`` or ``outer.inner``."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[str, Any]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            name = f"{prefix}{child.name}" if named else prefix  # type: ignore[attr-defined]
            if named and not isinstance(child, ast.ClassDef):
                yield name, child
            yield from below(child, f"{name}." if named else prefix)

    return below(tree, "")


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function with its docstring, without its decorators."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def argument_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a caller gives, ``self`` not counted."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([argument for argument in given if argument.arg not in ("self", "cls")])


def test_every_package_and_module_is_listed_and_nothing_else_is() -> None:
    assert [path.name for path in ENGINE.glob("*.py")] == ["__init__.py"]
    assert set(PACKAGES) == {path.parent.name for path in ENGINE.glob("*/__init__.py")}
    assert set(LAYERS) == set(MODULES)


def test_a_module_imports_only_lower_packages_and_modules_listed_before_it() -> None:
    breaches = [
        f"{module}:{line} imports {other}, which is not below it"
        for module, tree in trees().items()
        for other, line in engine_imports(tree, module.partition(".")[0])
        if LAYERS[other] >= LAYERS[module]
    ]
    assert breaches == []


def imports_of(modules: Iterable[str], is_wrong: Callable[[str], bool]) -> list[str]:
    """The wrong imports from outside the engine that these modules have, in words."""
    return [
        f"{module}:{line} imports {other}"
        for module in modules
        for other, line in outside_imports(trees()[module])
        if is_wrong(other)
    ]


def test_no_module_imports_cmind_or_reaches_out_of_the_package() -> None:
    assert imports_of(MODULES, lambda other: other in ("cmind", "recipe_engine") or other.startswith(".")) == []


def test_the_word_cmind_is_imported_nowhere_even_as_text() -> None:
    word = re.compile(r"\bimport cmind|\bfrom cmind|import_module\(.cmind")
    assert [module for module, path in MODULES.items() if word.search(path.read_text(encoding="utf-8"))] == []


def test_a_pure_module_imports_nothing_that_reaches_the_world() -> None:
    assert imports_of(PURE, EFFECTS.__contains__) == []


def test_a_pure_module_uses_paths_without_looking_at_the_disk() -> None:
    breaches = []
    for module in PURE:
        for node in ast.walk(trees()[module]):
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Attribute) and called.attr in PATH_EFFECTS:
                    breaches.append(f"{module}:{node.lineno} calls .{called.attr}()")
                elif isinstance(called, ast.Name) and called.id in EFFECT_CALLS:
                    breaches.append(f"{module}:{node.lineno} calls {called.id}()")
    assert breaches == []


def test_only_one_module_starts_processes() -> None:
    others = sorted(set(MODULES) - {"running.process"})
    starters = imports_of(others, ("subprocess", "multiprocessing", "asyncio", "pty").__contains__)
    for module in others:
        for node in ast.walk(trees()[module]):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os" and PROCESS_CALL.match(node.attr):
                starters.append(f"{module}:{node.lineno} uses os.{node.attr}")
    assert starters == []


def beyond(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Those with a larger count."""
    return {name: count for name, count in counts.items() if count > most}


def test_a_module_is_short_enough_to_read_and_a_function_is_short_and_takes_few_arguments() -> None:
    """Every exception still needs to be one, and has a reason."""
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert beyond(lines, MODULE_LINES).keys() == TOO_LONG_MODULES.keys()
    found = {f"{module}.{name}": node for module, tree in trees().items() for name, node in functions(tree)}
    lengths = {name: length(node) for name, node in found.items()}
    assert beyond(lengths, FUNCTION_LINES).keys() == TOO_LONG_FUNCTIONS.keys()
    counts = {name: argument_count(node) for name, node in found.items()}
    assert beyond(counts, ARGUMENTS).keys() == TOO_MANY_ARGUMENTS.keys()
    assert all((*TOO_LONG_MODULES.values(), *TOO_LONG_FUNCTIONS.values(), *TOO_MANY_ARGUMENTS.values()))


# --- the checks themselves notice what they are for ---


def test_the_checks_see_imports_wherever_they_stand() -> None:
    tree = ast.parse(
        "import os.path\ndef f():\n    from .store import Store\n    from . import run\nfrom ...x import y\n"
        "from ..rules.env import z\nfrom ..rules import tags\n"
    )
    found = sorted(engine_imports(tree, "disk"), key=lambda row: row[1])
    assert found == [("disk.store", 3), ("disk.run", 4), ("rules.env", 6), ("rules.tags", 7)]
    assert sorted(name for name, _ in outside_imports(tree)) == ["...x", "os"]


def test_the_checks_see_methods_and_inner_functions() -> None:
    tree = ast.parse("class A:\n    def f(self, a, *, b):\n        def g(c):\n            return c\n        return g\n")
    found = dict(functions(tree))
    assert list(found) == ["A.f", "A.f.g"]
    assert (argument_count(found["A.f"]), length(found["A.f"])) == (2, 4)


@pytest.mark.parametrize(("module", "is_frozen"), [("cmind.cli", True), ("cmind", False)])
def test_only_the_cm_command_keeps_what_it_loaded_out_of_the_garbage_collector(module: str, is_frozen: bool) -> None:
    count = "gc.get_freeze_count()"  # Python 3.12 begins with some
    program = f"import gc, sys; sys.modules[{module!r}] = sys; n = {count}; import recipe_engine; print({count} > n)"
    environment = {"PYTHONPATH": str(ENGINE.parent)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{is_frozen}\n"
