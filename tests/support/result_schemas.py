"""The published JSON Schemas of result files, for tests that make such files."""

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas"


@functools.cache
def schema_for(name: str) -> Draft202012Validator:
    """The schema of files of this name, such as result.json."""
    text = (SCHEMAS / f"{name.removesuffix('.json')}.schema.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


def problems_of(name: str, content: Any) -> list[str]:
    """What the schema says against the content of such a file."""
    return [f"{name} {error.json_path}: {error.message}" for error in schema_for(name).iter_errors(content)]


def problems_below(folder: Path, expected: Iterable[str]) -> list[str]:
    """What the schemas say against the JSON files below a folder; a kind that is expected and not there is one, too."""
    files = [path for path in sorted(folder.rglob("*.json")) if not path.name.startswith("mlperf_log_")]
    found = [
        f"{path.relative_to(folder)}: {problem}"
        for path in files
        if (SCHEMAS / f"{path.stem}.schema.json").is_file()
        for problem in problems_of(path.name, json.loads(path.read_text(encoding="utf-8")))
    ]
    return found + [f"no {name}" for name in expected if name not in {path.name for path in files}]
