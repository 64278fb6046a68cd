"""Reads and writes model.json, by which a model's recipe describes its files to the harness.

The keys are those of crowdperf/harness/base/model_facts.py; this side adds none that the harness must know.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.data.errors import DataError
from crowdperf.kit.whole_file import file_sha256, write_json

MODEL_INFO_FILE = "model.json"
FORMAT = 1
_HINT = "correct the file (docs/howto/run-a-benchmark.md shows one), or rebuild the model with --renew"
OWN_MODEL_HINT = (
    "for your own model, use a folder with the file and a model.json that describes it: "
    "docs/howto/run-a-benchmark.md, 'Use your own data and models'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealModel:
    """A model that was not made here. source: its address, or the name of what was
    given (its place differs between machines). facts: further keys of model.json. beside: files with more weights of
    its only network.
    origin: "published" where its digest was compared with the published one or it was fetched from its publisher, else
    "unchecked" (crowdperf/rules/provenance.py)."""

    name: str
    framework: str
    files: Mapping[str, Path]
    source: str
    license: str
    beside: tuple[Path, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, float] | None = None
    precision: str = "fp32"
    facts: Mapping[str, Any] = field(default_factory=dict)
    origin: str = "unchecked"


def write_model_info(folder: Path, model: RealModel) -> Path:
    """Write `folder`/model.json and return its path; files outside `folder` are named by their absolute paths."""
    files = {network: _row(folder, path) for network, path in model.files.items()}
    if model.beside:
        (main,) = files.values()
        main["beside"] = [_row(folder, path) for path in model.beside]
    info = {
        **model.facts,
        "format": FORMAT,
        "name": model.name,
        "framework": model.framework,
        "precision": model.precision,
        "is_synthetic": False,
        "source": model.source,
        "license": model.license,
        "config": dict(model.config),
        "files": files,
        "origin": {"weights": model.origin, "files": {network: row["sha256"] for network, row in files.items()}},
        "reference": None if model.reference is None else dict(model.reference),
    }
    target = folder / MODEL_INFO_FILE
    write_json(target, info)
    return target


def _row(folder: Path, path: Path) -> dict[str, Any]:
    is_inside = path.is_absolute() and path.is_relative_to(folder)
    name = path.relative_to(folder).as_posix() if is_inside else str(path.absolute())
    return {"file": name, "sha256": file_sha256(path), "size_bytes": path.stat().st_size}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model.json that was read. values: all of it. main: each network's file. beside: files with more weights.
    checksums: the SHA-256 of files, where model.json has it."""

    values: Mapping[str, Any]
    main: Mapping[str, Path]
    beside: tuple[Path, ...]
    checksums: Mapping[Path, str]

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the model but model.json."""
        return (*self.main.values(), *self.beside)


def _rows(entry: Any) -> tuple[Any, ...]:
    """The rows of a network's entry that name files: itself, and those of files with more weights."""
    beside = entry.get("beside", []) if isinstance(entry, dict) else []
    return (entry, *(beside if isinstance(beside, list) else [beside]))


def _entries(values: Any) -> dict[str, dict[str, Any]]:
    """The entry of each network in the content of a model.json. Raises ValueError with what is wrong."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(f'it must be a JSON object with "format": {FORMAT}')
    entries = values.get("files")
    is_right = isinstance(entries, dict) and all(
        isinstance(row, dict) and isinstance(row.get("file"), str) for entry in entries.values() for row in _rows(entry)
    )
    if not isinstance(entries, dict) or not entries or not is_right:
        raise ValueError('files must be like {"model": {"file": "NAME", "sha256": "..."}}')
    return entries


def read_model_info(folder: Path) -> ModelInfo:
    """Return what `folder`/model.json says, all its files being there with their checksums. Raises DataError."""
    path = folder / MODEL_INFO_FILE
    try:
        values = json.loads(path.read_bytes().decode("utf-8"))
        entries = _entries(values)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path} cannot be used: {reason}", _HINT) from error
    main = {network: folder / entry["file"] for network, entry in entries.items()}
    checksums = [(folder / row["file"], row.get("sha256")) for entry in entries.values() for row in _rows(entry)]
    problems = [problem for file, checksum in checksums if (problem := _problem(file, checksum))]
    if problems:
        text = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"{path} describes other files than there are:\n{text}", "rebuild the model with --renew")
    names = set(main.values())
    beside = tuple(file for file, _ in checksums if file not in names)
    return ModelInfo(values, main, beside, {file: sha256 for file, sha256 in checksums if sha256})


def _problem(path: Path, sha256: str | None) -> str:
    try:
        if not path.is_file():
            return f"{path} is missing"
        found = file_sha256(path) if sha256 else None
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if found == sha256 else f"{path} has the SHA-256 {found}, not {sha256}"
