"""IGBH, the heterogeneous graph of papers that MLPerf's R-GAT classifies: nodes with features, edges by relation.

    full/processed/paper/node_feat.npy               float32[papers, 1024]; the same for five more kinds of nodes
    full/processed/paper/node_label_2K.npy           one label a paper, 0 to 2,982
    full/processed/paper__cites__paper/edge_index.npy  int64[edges, 2], from and to; the same for five more relations
    full/processed/val_idx.pt                        the requested papers, a torch tensor

The first folder is the size ("tiny" to "full"). Arrays of papers and authors of large and full are raw float32 without
a header, as the reference reads them. Source: graph/R-GAT of mlcommons/inference, b66003e1 of 2026-08-20.

Edges are used in both directions, and every paper cites itself once (augment_edges and build_graph there).
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.watch.machine import free_memory_bytes

Integers = npt.NDArray[np.int64]

KINDS = ("paper", "author", "institute", "fos", "journal", "conference")
FILES = (
    ("paper", "cites", "paper"),
    ("paper", "written_by", "author"),
    ("author", "affiliated_to", "institute"),
    ("paper", "topic", "fos"),
    ("paper", "published", "journal"),
    ("paper", "venue", "conference"),
)
"""The relations that have a file: kind of the first node, name, kind of the second."""
RELATIONS = (*FILES, *((last, f"rev_{name}", first) for first, name, last in FILES if first != last))
"""All relations, with those that go back."""
LABELS_FILE = "paper/node_label_2K.npy"
FEATURE_COUNT = 1024
"""Numbers that describe a node, where the file has no header that says it."""

_HINT = "rebuild the data set: cm run script --tags=get,dataset,igbh --renew"
_NUMPY_MAGIC = b"\x93NUMPY"
_EDGE_BYTES = 16


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The edges of one relation by the node they lead to: sources[starts[n] : starts[n + 1]] lead to node n."""

    starts: Integers
    sources: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """features: float array [nodes, numbers] by kind, read from disk where they are used. relations: by name."""

    features: Mapping[str, npt.NDArray[np.float32]]
    relations: Mapping[str, Neighbours]


@dataclass(frozen=True, slots=True, eq=False)
class Papers:
    """Raw samples: node numbers int64[n], and the graph that they are in."""

    graph: Graph
    nodes: Integers


@dataclass(frozen=True, slots=True, eq=False)
class IgbhDataset:
    """The requested papers. labels: int64, by sample index."""

    graph: Graph
    nodes: Integers
    labels: Integers
    files: tuple[Path, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.nodes)

    def load(self, indices: Sequence[int]) -> Papers:
        return Papers(self.graph, self.nodes[np.asarray(indices, dtype=np.int64)])


def read_indices(path: Path) -> Integers:
    """Return a torch tensor int64[n] that `torch.save` wrote; raises HarnessError. Torch is not needed, and no code in
    the file is run."""
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            names = archive.namelist()
            (data,) = (name for name in names if "/data/" in name)
            (description,) = (name for name in names if name.endswith("/data.pkl"))
            if b"LongStorage" not in archive.read(description):
                raise ValueError("its numbers are not int64")
            return np.frombuffer(archive.read(data), dtype="<i8").astype(np.int64)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise HarnessError(
            f"{path} contains no list of nodes: {error}", "run tools/split_seeds.py of graph/R-GAT"
        ) from error


def read_array(path: Path, width: int) -> npt.NDArray[np.float32]:
    """Return a file with or without a header as an array that is read where it is used; `width` numbers a row, 0: one
    number. Raises HarnessError."""
    try:
        with path.open("rb") as file:
            has_header = file.read(len(_NUMPY_MAGIC)) == _NUMPY_MAGIC
        if has_header:
            found: npt.NDArray[np.float32] = np.load(path, mmap_mode="r")
            return found
        raw = np.memmap(path, dtype=np.float32, mode="r")
        return raw.reshape(-1, width) if width else raw
    except (OSError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error


def _processed(folder: Path) -> Path:
    """Return the folder of the only size that is there."""
    found = sorted(path for path in folder.glob("*/processed") if path.is_dir())
    if len(found) != 1:
        names = ", ".join(path.parent.name for path in found) or "none"
        raise HarnessError(f"{folder} should contain one size, such as full/processed; found: {names}", _HINT)
    return found[0]


def _needed(place: Path) -> tuple[Path, ...]:
    """Return all files that are read; raises HarnessError naming those that are missing."""
    names = [f"{kind}/node_feat.npy" for kind in KINDS]
    names += [f"{'__'.join(relation)}/edge_index.npy" for relation in FILES]
    names += [LABELS_FILE, "val_idx.pt"]
    missing = [name for name in names if not (place / name).is_file()]
    if missing:
        raise HarnessError(f"{place} is missing {', '.join(missing)}", _HINT)
    return tuple(place / name for name in names)


def _require_memory(place: Path) -> None:
    """Raise HarnessError when the edges, in both directions, do not fit into the free memory."""
    on_disk = sum((place / "__".join(relation) / "edge_index.npy").stat().st_size for relation in FILES)
    needed, free = 2 * on_disk + _EDGE_BYTES, free_memory_bytes()
    if free is not None and needed > free:
        raise HarnessError(
            f"the edges of {place} need about {needed / 2**30:.0f} GiB of memory, but {free / 2**30:.1f} GiB are free",
            "use a machine with more memory, or a synthetic graph: --source=synthetic",
        )


def _by_target(sources: Integers, targets: Integers, count: int) -> Neighbours:
    order = np.argsort(targets, kind="stable")
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(targets, minlength=count), out=starts[1:])
    return Neighbours(starts, sources[order])


def _edges(place: Path, relation: tuple[str, str, str], counts: Mapping[str, int]) -> tuple[Integers, Integers]:
    path = place / "__".join(relation) / "edge_index.npy"
    try:
        pairs: npt.NDArray[np.int64] = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise HarnessError(f"{path} has the shape {pairs.shape}, expected two columns", _HINT)
    ends = tuple(np.asarray(pairs[:, column], dtype=np.int64) for column in (0, 1))
    for nodes, kind in zip(ends, (relation[0], relation[2]), strict=True):
        if len(nodes) and not 0 <= int(nodes.min()) <= int(nodes.max()) < counts[kind]:
            raise HarnessError(f"{path} contains a {kind} outside 0 to {counts[kind] - 1}", _HINT)
    return ends[0], ends[1]


def _relations(place: Path, counts: Mapping[str, int]) -> Mapping[str, Neighbours]:
    found = {}
    for first, name, last in FILES:
        sources, targets = _edges(place, (first, name, last), counts)
        if first == last:
            is_other = sources != targets
            one, other, own = sources[is_other], targets[is_other], np.arange(counts[first], dtype=np.int64)
            both = np.concatenate((one, other, own)), np.concatenate((other, one, own))
            found[name] = _by_target(*both, counts[last])
        else:
            found[name] = _by_target(sources, targets, counts[last])
            found[f"rev_{name}"] = _by_target(targets, sources, counts[first])
    return found


def open_dataset(folder: Path) -> IgbhDataset:
    """Return the data set; raises HarnessError for missing or damaged files, and for too little memory."""
    place = _processed(folder)
    files = _needed(place)
    _require_memory(place)
    features = {kind: read_array(place / kind / "node_feat.npy", FEATURE_COUNT) for kind in KINDS}
    counts = {kind: len(array) for kind, array in features.items()}
    labels, nodes = read_array(place / LABELS_FILE, 0), read_indices(place / "val_idx.pt")
    if not len(nodes) or not 0 <= int(nodes.min()) <= int(nodes.max()) < min(counts["paper"], len(labels)):
        raise HarnessError(f"{place / 'val_idx.pt'} contains papers that are not in the graph", _HINT)
    graph = Graph(features, _relations(place, counts))
    return IgbhDataset(graph, nodes, np.asarray(labels[nodes]).astype(np.int64), files, read_facts(folder))
