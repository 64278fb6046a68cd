"""A store of preprocessed samples on disk: written chunk by chunk by `preprocess`, read by a run.

    preprocessed.json       what the store holds and which data set it was made from (`identity.py`); written last, so a
                            folder without it is not complete
    chunk.00000.json        the files of a chunk with size and SHA-256; written after them
    <tensor>.00000.npy      dense: the tensor's rows of the chunk. Ragged: the values of all its samples, one flat array
    <tensor>.00000.shapes.npy   ragged only: int64[samples, axes], the shape of each sample
    sample_map.txt          the name of each sample in index order, where the data set gives names

Samples keep their index; a chunk holds `chunk_samples` of them, the last one the rest.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdperf.harness.base.dataset import Dataset
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.identity import DatasetIdentity, content_sha256, stamp_of
from crowdperf.harness.base.tensors import Array, Samples, Tensors
from crowdperf.kit.whole_file import write_bytes_whole, write_json

FORMAT = 2
INDEX_FILE = "preprocessed.json"
_HINT = "preprocess the data set again: cm run script --tags=get,dataset,preprocessed,... --renew"


def _command(model: str, dataset: Path, folder: Path) -> str:
    """Return the hint with the command that makes a store of this data set."""
    return (
        f"rebuild it with its recipe (cm run script --tags=get,dataset,preprocessed,... --renew), or with "
        f"python3 -m crowdperf.harness preprocess --model={model} --dataset={dataset} --output={folder}"
    )


def chunk_name(number: int) -> str:
    """Return the name of the file that describes a chunk."""
    return f"chunk.{number:05d}.json"


def _write_array(path: Path, array: Array) -> dict[str, Any]:
    """Write an array in one step and return its size and digest."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    content = buffer.getvalue()
    write_bytes_whole(path, content)
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


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
    write_json(folder / chunk_name(number), content, indent=1)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """What preprocessed.json says."""

    model: str
    count: int
    chunks: int
    chunk_samples: int
    is_ragged: bool
    tensors: tuple[str, ...]
    dataset_folder: str
    made_from: DatasetIdentity


def _read_index(path: Path) -> _Index:
    """Return what a store says about itself; raises HarnessError when it is not complete or of another format."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise HarnessError(f"{path} has format {content['format']}, but this harness reads format {FORMAT}", _HINT)
        return _Index(
            model=str(content["model"]),
            count=int(content["count"]),
            chunks=int(content["chunks"]),
            chunk_samples=int(content["chunk_samples"]),
            is_ragged=bool(content["is_ragged"]),
            tensors=tuple(content["tensors"]),
            dataset_folder=str(content["dataset"]["folder"]),
            made_from=DatasetIdentity(
                sha256=str(content["dataset"]["sha256"]),
                stamp=str(content["dataset"]["stamp"]),
                is_synthetic=bool(content["dataset"]["is_synthetic"]),
            ),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(
            f"{path.parent} is not a complete store of preprocessed samples: {error!r}", _HINT
        ) from error


def _require_made_from(index: _Index, store: Path, dataset_folder: Path, dataset: Dataset) -> None:
    """Raise HarnessError unless the store was made from this very data set.

    Equal stamps settle it. Else the files were copied or changed, and their contents are read to tell which.
    """
    made_from = index.made_from
    kind = "synthetic data" if made_from.is_synthetic else f"{index.count:,} samples"
    made = f"{store} was made from {kind} in {index.dataset_folder} (sha256 {made_from.sha256[:12]})"
    hint = _command(index.model, dataset_folder, store)
    if made_from.is_synthetic and not dataset.facts.is_synthetic:
        raise HarnessError(f"{made}, but {dataset_folder} is not marked as synthetic (dataset.json)", hint)
    if index.count != dataset.count:
        raise HarnessError(f"{made}, but the run has {dataset.count:,} samples in {dataset_folder}", hint)
    if stamp_of(dataset_folder, dataset) == made_from.stamp:
        return
    found = content_sha256(dataset_folder, dataset)
    if found != made_from.sha256:
        raise HarnessError(
            f"{made}, but the run has {dataset.count:,} samples in {dataset_folder} with other contents "
            f"(sha256 {found[:12]})",
            hint,
        )


def open_store(folder: Path, model: str, dataset_folder: Path, dataset: Dataset) -> Store:
    """Return the store in `folder`; raises HarnessError when it is not whole, or of another model or data set.

    model: the folder in crowdperf/benchmarks that it must have been made for. dataset: what the run opened in
    `dataset_folder`; names, sizes and contents of its files must be those that the store was made from.
    """
    path = folder / INDEX_FILE
    index = _read_index(path)
    if index.model != model:
        raise HarnessError(f"{path} was built for model {index.model}, but the run's model is {model}", _HINT)
    _require_made_from(index, folder, dataset_folder, dataset)
    broken = [chunk_name(number) for number in range(index.chunks) if read_chunk_index(folder, number) is None]
    if broken:
        shown = ", ".join(broken[:5]) + (", ..." if len(broken) > 5 else "")
        raise HarnessError(f"{folder} has missing files, or files of another size, for {shown}", _HINT)
    return Store(folder, index.count, index.chunk_samples, index.is_ragged, index.tensors)
