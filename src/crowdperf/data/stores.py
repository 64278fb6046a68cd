"""Stores of preprocessed samples: what the hooks of the recipes that have the harness write one have in common."""

import json
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from crowdperf.call.answers import Answer, failure

STORE = "preprocessed"
INDEX_FILE = "preprocessed.json"
"""Written last by `harness preprocess`: a folder without it holds no complete store."""


def write_config(config: Mapping[str, Any], name: str = "model.json") -> None:
    """Write into the current folder how samples are prepared, in the form of a model.json without files."""
    Path(name).write_text(json.dumps({"format": 1, "files": {}, "config": dict(config)}), encoding="utf-8")


def store_answer(env: MutableMapping[str, Any], dataset: str) -> Answer:
    """Export the store in the current folder as CM_DATASET_PREPROCESSED_PATH and declare what describes it."""
    folder = Path.cwd() / STORE
    if not (folder / INDEX_FILE).is_file():
        hint = f"cm run script --tags=get,dataset,preprocessed,{dataset} --renew"
        return failure(f"{folder} contains no {INDEX_FILE}", f"hint: {hint}")
    env["CM_DATASET_PREPROCESSED_PATH"] = str(folder)
    return {"return": 0, "files": sorted(str(path) for path in folder.glob("*.json"))}
