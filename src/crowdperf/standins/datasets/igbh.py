"""Makes a graph of papers in the files of IGBH.

The folder has the layout that crowdperf/harness/datasets/igbh.py describes, with `count` papers to be asked for, and
ten times as many others. A paper's field shows in its own features, weakly, and in those of the papers that it cites,
of its authors and of its journal: a network that looks at neighbours is right more often than one that does not. There
are more than 256 fields, so that labels of one byte would be wrong. dataset.json says that the graph is synthetic.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from crowdperf.harness.datasets.igbh import FILES, KINDS, LABELS_FILE
from crowdperf.standins.dataset_program import Given, MadeSet

OTHERS = 10
"""Papers that are not asked for, for each one that is."""
OWN_SIGNAL, NEIGHBOUR_SIGNAL = 0.5, 0.9
SAME_FIELD = 0.7
"""Share of edges that join nodes of one field."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Sizes of a graph: features of a node, fields, and nodes of the other kinds for each field."""

    feature_count: int
    class_count: int
    authors: int
    journals: int


KINDS_OF_GRAPHS = {
    "tiny": Kind(feature_count=32, class_count=320, authors=3, journals=1),
    "full": Kind(feature_count=1024, class_count=2983, authors=3, journals=1),
}
EDGES = {"cites": 3, "written_by": 2, "topic": 1, "published": 1, "venue": 1, "affiliated_to": 1}
"""Edges of each node that they begin at."""


def _targets(random: np.random.Generator, fields: np.ndarray, others: np.ndarray, class_count: int) -> np.ndarray:
    """Return a node of `others` (fields by node) for each of `fields`, mostly of the same field."""
    order = np.argsort(others, kind="stable")
    starts = np.searchsorted(others[order], np.arange(class_count + 1))
    wanted = np.where(random.random(len(fields)) < SAME_FIELD, fields, random.integers(class_count, size=len(fields)))
    sizes = starts[wanted + 1] - starts[wanted]
    within = order[np.minimum(starts[wanted] + (random.random(len(fields)) * sizes).astype(np.int64), len(order) - 1)]
    return np.where(sizes > 0, within, random.integers(len(others), size=len(fields)))


def make(given: Given) -> Mapping[str, Any]:
    kind, count, place = KINDS_OF_GRAPHS[given.kind], given.count, given.output_dir / given.kind / "processed"
    random = np.random.default_rng(given.seed)
    papers = count * (1 + OTHERS)
    fields = {
        "paper": np.arange(papers) % kind.class_count,
        "author": np.arange(kind.class_count * kind.authors) % kind.class_count,
        **{name: np.arange(kind.class_count * kind.journals) % kind.class_count for name in KINDS[2:]},
    }
    marks = random.standard_normal((kind.class_count, kind.feature_count)).astype(np.float32)
    for name in KINDS:
        (place / name).mkdir(parents=True, exist_ok=True)
        signal = np.float32(OWN_SIGNAL if name == "paper" else NEIGHBOUR_SIGNAL)
        noise = random.standard_normal((len(fields[name]), kind.feature_count), dtype=np.float32)
        np.save(place / name / "node_feat.npy", signal * marks[fields[name]] + noise)
    np.save(place / LABELS_FILE, fields["paper"].astype(np.float32))
    for first, name, last in FILES:
        sources = np.repeat(np.arange(len(fields[first])), EDGES[name])
        targets = _targets(random, fields[first][sources], fields[last], kind.class_count)
        folder = place / f"{first}__{name}__{last}"
        folder.mkdir(exist_ok=True)
        np.save(folder / "edge_index.npy", np.stack((sources, targets), axis=1))
    shuffled = torch.from_numpy(random.permutation(papers))
    torch.save(shuffled[count:].clone(), place / "train_idx.pt")
    torch.save(shuffled[:count].clone(), place / "val_idx.pt")
    return {"kind": given.kind, "license": "Apache-2.0"}


MADE = MadeSet(
    name="igbh",
    what="requested papers",
    make=make,
    options={"--kind": {"required": True, "choices": sorted(KINDS_OF_GRAPHS)}},
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
