"""Data sets that crowdperf makes, for tests: as the recipes' run.sh make them, in this process."""

import importlib
import json
from pathlib import Path
from typing import Any


def make_set(name: str, folder: Path, **options: object) -> dict[str, Any]:
    """Makes one in a folder, with the options of its program; gives what its dataset.json holds."""
    module = importlib.import_module(f"crowdperf.standins.datasets.{name}")
    words = [f"--{option}={value}" for option, value in {"output_dir": folder, **options}.items()]
    assert module.MADE.main("", words) == 0
    facts = folder / "dataset.json"
    return json.loads(facts.read_text(encoding="utf-8")) if facts.exists() else {}
