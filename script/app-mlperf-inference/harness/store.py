"""A store of preprocessed samples on disk: written chunk by chunk by `preprocess`, read by a run.

    preprocessed.json       what the store holds; written last, so a folder without it is not complete
    chunk.00000.json        the files of a chunk with size and SHA-256; written after them
    <tensor>.00000.npy      dense: the tensor's rows of the chunk. Ragged: the values of all its samples, one flat array
    <tensor>.00000.shapes.npy   ragged only: int64[samples, axes], the shape of each sample
    sample_map.txt          the name of each sample in index order, where the data set gives names

Samples keep their index; a chunk holds `chunk_samples` of them, the last one the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import HarnessError
from harness.tensors import Array, Samples, Tensors

FORMAT = 1
INDEX_FILE = "preprocessed.json"
_HINT = "preprocess the data set again"


def chunk_name(number: int) -> str:
    """Return the name of the file that describes a chunk."""
    return f"chunk.{number:05d}.json"


def _write_array(path: Path, array: Array) -> dict[str, Any]:
    """Write an array in one step and return its size and digest."""
    beside = path.with_name(f".{path.name}.tmp")
    with beside.open("wb") as file:
        np.save(file, array, allow_pickle=False)
    content = beside.read_bytes()
    os.replace(beside, path)
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _flat_files(number: int, samples: Sequence[Tensors]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name in samples[0]:
        parts = [np.asarray(sample[name]) for sample in samples]
        arrays[f"{name}.{number:05d}.npy"] = np.concatenate([part.reshape(-1) for part in parts])
        arrays[f"{name}.{number:05d}.shapes.npy"] = np.array([part.shape for part in parts], dtype=np.int64)
    return arrays


def write_chunk(folder: Path, number: int, samples: Samples) -> None:
    """Write one chunk; a reader sees it only when it is whole."""
    if isinstance(samples, Mapping):
        arrays = {f"{name}.{number:05d}.npy": np.asarray(array) for name, array in samples.items()}
        names, is_ragged = list(samples), False
    else:
        arrays, names, is_ragged = _flat_files(number, samples), list(samples[0]), True
    files = {name: _write_array(folder / name, array) for name, array in arrays.items()}
    content = {"tensors": names, "is_ragged": is_ragged, "files": files}
    write_text(folder / chunk_name(number), json.dumps(content, indent=1) + "\n")


def read_chunk_index(folder: Path, number: int) -> dict[str, Any] | None:
    """Return what a chunk's file says when its files are there in their full size, else None."""
    try:
        content = json.loads((folder / chunk_name(number)).read_text(encoding="utf-8"))
        sizes = {name: entry["bytes"] for name, entry in content["files"].items()}
        is_whole = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return content if is_whole else None


@dataclass(frozen=True, slots=True)
class Store:
    """An opened store; arrays are mapped, so that only what is asked for is read."""

    folder: Path
    count: int
    chunk_samples: int
    is_ragged: bool
    tensors: tuple[str, ...]

    def _open(self, name: str) -> Array:
        try:
            array: Array = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise HarnessError(f"cannot read {self.folder / name}: {error}", _HINT) from error
        return array

    def load(self, indices: Sequence[int]) -> Samples:
        """Return the samples of `indices`, in that order."""
        by_chunk: dict[int, list[tuple[int, int]]] = {}
        for position, index in enumerate(indices):
            chunk, row = divmod(index, self.chunk_samples)
            by_chunk.setdefault(chunk, []).append((position, row))
        return self._load_ragged(by_chunk, len(indices)) if self.is_ragged else self._load_dense(by_chunk, len(indices))

    def _load_dense(self, by_chunk: Mapping[int, list[tuple[int, int]]], count: int) -> Tensors:
        loaded: dict[str, Array] = {}
        for name in self.tensors:
            for chunk, places in by_chunk.items():
                rows = self._open(f"{name}.{chunk:05d}.npy")
                if name not in loaded:
                    loaded[name] = np.empty((count, *rows.shape[1:]), dtype=rows.dtype)
                positions, wanted = np.array(places).T
                loaded[name][positions] = rows[wanted]
        return loaded

    def _load_ragged(self, by_chunk: Mapping[int, list[tuple[int, int]]], count: int) -> list[Tensors]:
        loaded: list[dict[str, Array]] = [{} for _ in range(count)]
        for name in self.tensors:
            for chunk, places in by_chunk.items():
                values = self._open(f"{name}.{chunk:05d}.npy")
                shapes = np.asarray(self._open(f"{name}.{chunk:05d}.shapes.npy"), dtype=np.int64)
                ends = np.cumsum(np.prod(shapes, axis=1))
                for position, row in places:
                    start = 0 if row == 0 else int(ends[row - 1])
                    loaded[position][name] = np.array(values[start : int(ends[row])]).reshape(shapes[row])
        return list(loaded)


def open_store(folder: Path, model: str, count: int) -> Store:
    """Return the store in `folder`; raises HarnessError when it is not whole, or of another model or data set.

    model: the folder in harness/benchmarks that it must have been made for. count: the samples of the data set.
    """
    path = folder / INDEX_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = (content["format"], content["model"], content["count"])
        chunks, chunk_samples = int(content["chunks"]), int(content["chunk_samples"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"{folder} is no whole store of preprocessed samples: {error!r}", _HINT) from error
    if found != (FORMAT, model, count):
        raise HarnessError(
            f"{path} describes format {found[0]}, model {found[1]}, {found[2]} samples; "
            f"wanted: format {FORMAT}, model {model}, {count} samples",
            _HINT,
        )
    broken = [chunk_name(number) for number in range(chunks) if read_chunk_index(folder, number) is None]
    if broken:
        shown = ", ".join(broken[:5]) + (", ..." if len(broken) > 5 else "")
        raise HarnessError(f"{folder} lacks files, or has files of another size, of {shown}", _HINT)
    return Store(folder, count, chunk_samples, bool(content["is_ragged"]), tuple(content["tensors"]))
