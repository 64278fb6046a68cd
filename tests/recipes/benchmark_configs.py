"""Writes small registries and machines."""

import textwrap
from pathlib import Path

from recipe_loader import load_recipe

CONFIG = load_recipe("get-mlperf-benchmark-config")
ADD = load_recipe("add-mlperf-custom-system")
BASE = """
sources:
  s: {text: a paper, date: 2026-11-23}
base:
  source: s
  precision: fp32
systems:
"""


def write_sheet(folder: Path, systems: str, *, base: str = BASE, name: str = "bert/Offline") -> Path:
    """Writes one file of a registry below `folder`; `systems` is indented text below `systems:`."""
    path = folder / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(base.lstrip("\n") + textwrap.indent(textwrap.dedent(systems).lstrip("\n"), "  "), encoding="utf-8")
    return path
