"""Small data of MLPerf's language models, made by the recipes' own programs, and a tiny model with a tokenizer."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from harness_support import SCRIPTS, request
from made_sets import make_set
from recipe_programs import program

RECIPE = SCRIPTS / "get-dataset-mlperf-text"
BENCHMARKS = ("llama3.1-8b", "llama3.1-8b-edge", "llama2-70b-99.9", "deepseek-r1", "gpt-oss-120b")
COUNT = 20


@cache
def module(name: str) -> ModuleType:
    """A program of the data set's recipe."""
    return program(RECIPE.name, name)


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """What reading a table gives, whatever its file."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def write_data(benchmark: str, folder: Path, count: int = COUNT) -> Path:
    """Write the made samples of a benchmark as its recipe does, without the tables in between."""
    name = benchmark.removesuffix("-99.9")
    tables: dict[str, list[dict[str, Any]]] = {}
    convert = module("convert")
    write = "crowdperf.standins.datasets.mlperf_text._write_table"
    with patch(write, lambda rows, path: tables.update({path.name: rows})):
        make_set("mlperf_text", folder, benchmark=name, count=count, lengths="small")
    for part in module("sources").SETS[name].parts:
        (found,) = [rows for file, rows in tables.items() if Path(file).match(part.file)]
        rows = convert.rows_of(columns(found), part, folder)
        convert.write_rows(rows, folder / part.name / convert.SAMPLES_FILE)
    facts = {"format": 1, "name": name, "is_synthetic": True}
    (folder / "dataset.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def make_model(folder: Path) -> Path:
    """Write a tiny Llama; returns its model.json."""
    from crowdperf.standins import tiny_llama

    return tiny_llama.make(folder, vocab=512, hidden=64, layers=2, heads=4, kv_heads=2, seed=1)


def text_request(root: Path, benchmark: str, **changes: object) -> dict[str, object]:
    """The run.json of a run with known answers; the model and data of write_data and make_model are in `root`."""
    text: Mapping[str, object] = {
        "endpoint": None, "max_in_flight": None, "kv_cache_bytes": None, "timeout_s": 20.0, "server": None
    }  # fmt: skip
    test = changes.get("compliance_test") or ""
    name = f"{benchmark}-{changes.get('scenario', 'Offline')}-{changes.get('mode', 'performance')}{test}"
    values = {
        "model": benchmark, "backend": "scripted", "dataset_path": str(root / benchmark),
        "model_info_path": str(root / "model" / "model.json"), "output_dir": str(root / name), **changes,
    }  # fmt: skip
    return {**request(**values), "text": text}
