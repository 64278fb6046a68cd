"""The programs of recipes find the packages that they import: a recipe that is run alone from an empty cache installs
them itself, whatever other recipes put into the same environment on this machine before."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT
from recipe_loader import RECIPES, recipe_meta

SOURCE = CHECKOUT / "src"
MODULES = {
    "opencv-python-headless": "cv2", "openvino-genai": "openvino_genai", "pillow": "PIL", "protobuf": "google",
    "pyyaml": "yaml", "rouge-score": "rouge_score",
}  # fmt: skip
"""Of packages whose modules have other names."""
SERVER = (RECIPES / "get-mlperf-results-server" / "requirements.txt").read_text(encoding="utf-8")
OTHER_TAGS = {
    "_torch_cpu": {"torch"},
    "loadgen": {"mlperf_loadgen"},
    "results-server": set(re.findall(r"(?m)^(\w+)==", SERVER)),
}
"""What further tags of a dependency bring."""
BRINGS = {"gguf": {"numpy"}, "onnx": {"google", "numpy"}, "onnxruntime": {"numpy"}, "rouge-score": {"numpy"}}
"""What a package requires itself, as modules (metadata of the wheels, November 2026)."""


def loaded_by(path: Path) -> Iterator[str]:
    """The names that a file imports when it is loaded: outside functions, and not for type checkers only."""
    statements: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (one.name for one in statement.names)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            yield from (f"{statement.module}.{one.name}" for one in statement.names)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            statements += getattr(statement, "body", [])


def files_of(name: str) -> Iterator[Path]:
    """The files below src/ that an import of a dotted name loads."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        place = SOURCE.joinpath(*parts[:end])
        yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())


@cache
def packages_of(path: Path) -> frozenset[str]:
    """The modules outside crowdperf and the standard library that a program loads before it begins."""
    todo, seen, found = [path], {path}, set()
    while todo:
        for name in loaded_by(todo.pop()):
            top = name.partition(".")[0]
            if top == "crowdperf":
                new = set(files_of(name)) - seen
                todo += new
                seen |= new
            elif top not in sys.stdlib_module_names and not path.with_name(f"{top}.py").is_file():
                found.add(top)
    return frozenset(found)


def programs_of(recipe: Path) -> Iterator[Path]:
    """The Python programs that the script of a recipe starts with the Python of its environment."""
    for script in sorted(recipe.glob("*.sh")):
        text = script.read_text(encoding="utf-8")
        for module in re.findall(r"-m (crowdperf[\w.]*)", text):
            place = SOURCE.joinpath(*module.split("."))
            yield place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
        for name in re.findall(r"CM_TMP_CURRENT_SCRIPT_PATH\}/(\w+\.py)", text):
            yield recipe / name


def tags_of(value: Any) -> Iterator[str]:
    """The tags of every dependency, of variations too."""
    if isinstance(value, list):
        for one in value:
            yield from tags_of(one)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key == "tags" and isinstance(one, str):
                yield one
            else:
                yield from tags_of(one)


def installed_by(recipe: str) -> set[str]:
    """The modules that the dependencies of a recipe install, whatever the variation."""
    found: set[str] = set()
    for tags in tags_of(recipe_meta(recipe)):
        for word in tags.split(","):
            package = word.removeprefix("_package.")
            if package != word:
                found |= {MODULES.get(package, package.replace("-", "_")), *BRINGS.get(package, ())}
            found |= OTHER_TAGS.get(word, set())
    return found


@pytest.mark.parametrize("recipe", sorted(path.name for path in RECIPES.iterdir() if any(programs_of(path))))
def test_a_recipe_depends_on_what_its_programs_import(recipe: str) -> None:
    missing = {
        program.relative_to(CHECKOUT).as_posix(): lacking
        for program in programs_of(RECIPES / recipe)
        if (lacking := packages_of(program) - installed_by(recipe))
    }
    assert missing == {}
