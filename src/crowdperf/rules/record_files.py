"""Finds and reads the records of benchmarks and backends: `record.py` in the folder of each, read without the room it
is in."""

import importlib.util
from pathlib import Path
from typing import TypeVar

RECORD_FILE = "record.py"
_HOME = Path(__file__).resolve().parents[1]
_FOLDERS = {"benchmarks": _HOME / "benchmarks", "backends": _HOME / "harness" / "backends"}
_AnyRecord = TypeVar("_AnyRecord")


def records_folder(kind: str) -> Path:
    """Return the folder of `benchmarks` or `backends`."""
    return _FOLDERS[kind]


def read_records(kind: str, expected: type[_AnyRecord]) -> dict[str, _AnyRecord]:
    """Return every record by its folder, sorted. Raises TypeError for a file whose RECORD is of another type."""
    return {path.parent.name: _read(path, expected) for path in sorted(records_folder(kind).glob(f"*/{RECORD_FILE}"))}


def _read(path: Path, expected: type[_AnyRecord]) -> _AnyRecord:
    spec = importlib.util.spec_from_file_location(f"crowdperf.records.{path.parent.name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    record = getattr(module, "RECORD", None)
    if not isinstance(record, expected):
        raise TypeError(f"RECORD of {path} is {type(record).__name__}; allowed: {expected.__name__}")
    return record
