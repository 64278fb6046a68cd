"""What every recipe of this repository has in common."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from recipe_loader import RECIPES

HOOKS = sorted(RECIPES.glob("*/customize.py"))


def imports_its_neighbours(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.ImportFrom) and node.level for node in tree.body)


@pytest.mark.parametrize("path", list(filter(imports_its_neighbours, HOOKS)), ids=lambda path: path.parent.name)
def test_under_cms_own_engine_a_recipe_names_the_mend_before_anything_else(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("customize", path)  # as cmind 4.2.0 loads it
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match="put it first with: cm use crowdperf:script"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
