"""Writes model.json (`harness/base/model_facts.py` reads it) and brings along what lies beside a model's networks.

Needs no library, so that files can be quantised and compiled without torch.
"""

import platform
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import FORMAT, sealed_origin
from crowdperf.kit.whole_file import file_sha256, write_json

MODEL_INFO_FILE = "model.json"
OF_THE_FILES = ("format", "sha256", "size_bytes", "beside", "origin")
"""Keys of a model.json that would be wrong of files made from those it describes."""
BESIDE = ("tokenizer.json", "vocab.json", "merges.txt")
"""What a model may read beside its networks: a tokenizer (text/tokenizer.py)."""


def describe_files(files: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """Return model.json's `files`; the first file of a network is its file, others (weights) lie beside it."""
    described: dict[str, Any] = {}
    for network, paths in files.items():
        rows = [{"file": path.name, "sha256": file_sha256(path), "size_bytes": path.stat().st_size} for path in paths]
        described[network] = {**rows[0], **({"beside": rows[1:]} if rows[1:] else {})}
    return described


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of those of `packages` that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_model_info(folder: Path, info: Mapping[str, Any]) -> Path:
    """Write model.json whole or not at all; return its path. `origin`, where it is said, is one of
    provenance.MODEL_ORIGINS, and is sealed with the digests of the files."""
    path = folder / MODEL_INFO_FILE
    origin = {"origin": sealed_origin(info["origin"], info["files"])} if info.get("origin") else {}
    try:
        write_json(path, {"format": FORMAT, **info, **origin})
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}", "free space, or use another folder") from error
    return path


def copy_beside(source: Path, target: Path) -> list[str]:
    """Bring along what a model reads beside its networks; return the names."""
    names = [name for name in BESIDE if (source / name).is_file()]
    for name in names:
        shutil.copyfile(source / name, target / name)
    return names
