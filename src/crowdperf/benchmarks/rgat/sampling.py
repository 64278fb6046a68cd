"""Draws the neighbourhood of papers: up to so many neighbours of each relation, hop by hop, in numpy.

What is drawn for a paper follows from its node number alone, not from the batch it came in: the neighbours are chosen
by a hash of paper, node, relation and hop. So a paper has the same label in performance and accuracy runs, which TEST01
compares. As in the reference (PyGSampler in graph/R-GAT/dgl_utilities/pyg_sampler.py of mlcommons/inference), a node
that was reached before is not drawn for again, and all edges drawn so far serve every layer that can see them; unlike
there, the neighbourhoods of two papers of a batch are not merged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.datasets.igbh import KINDS, RELATIONS, Graph, Integers

_BITS = 40
"""Of a node number in a key; the full graph has 2^29 nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """What was drawn for a batch. Rows are nodes; the first ones are the requested papers.

    kinds, nodes: of each row, int64. edges: by hop, from 1, and relation: int64[edges, 2] of rows, from and to.
    """

    kinds: Integers
    nodes: Integers
    edges: Mapping[tuple[int, str], Integers]


def reachable(hops: int) -> tuple[tuple[int, str], ...]:
    """Return the hops and relations that can have edges, beginning at papers."""
    found = []
    known = {"paper"}
    for hop in range(1, hops + 1):
        here = [relation for relation in RELATIONS if relation[2] in known]
        found += [(hop, name) for _, name, _ in here]
        known |= {source for source, _, _ in here}
    return tuple(found)


_STEPS = np.arange(1, 65, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
"""Far apart, one for each place that is drawn."""


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return well mixed 64 bits of each value (the last steps of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def choose(degrees: Integers, most: int, seeds: npt.NDArray[np.uint64]) -> Integers:
    """Return int64[n, most]: different places below each of `degrees`, uniformly drawn, -1 where there are no more.

    Floyd's way: of the last `most` places of a range one after the other, a place up to it or, if that was taken, the
    last place itself.
    """
    chosen = np.full((len(degrees), most), -1, dtype=np.int64)
    for step in range(most):
        last = np.where(degrees > most, degrees - most + step, step)
        hashed = _mixed(seeds + _STEPS[step % len(_STEPS)])
        drawn = (hashed % (last + 1).astype(np.uint64)).astype(np.int64)
        is_taken = (chosen[:, :step] == drawn[:, None]).any(axis=1)
        place = np.where((degrees > most) & ~is_taken, drawn, last)
        chosen[:, step] = np.where(step < degrees, place, -1)
    return chosen


def _keys(owners: Integers, kinds: Integers | int, nodes: Integers) -> Integers:
    return ((owners * len(KINDS) + kinds) << _BITS) + nodes


def draw(graph: Graph, papers: Integers, fan_out: Sequence[int]) -> Neighbourhood:
    """Return the neighbourhood of the papers (one may come several times); fan_out: of the layers, the last one's
    neighbours are those of the papers themselves."""
    owners, kinds, nodes = np.arange(len(papers), dtype=np.int64), np.zeros(len(papers), dtype=np.int64), papers
    keys, order = _keys(owners, kinds, nodes), np.arange(len(papers), dtype=np.int64)  # sorted: by owner
    fresh = order
    edges: dict[tuple[int, str], Integers] = {}
    for hop, most in enumerate(reversed(fan_out), start=1):
        ends: dict[str, tuple[Integers, Integers]] = {}
        for number, (source, name, target) in enumerate(RELATIONS):
            rows = fresh[kinds[fresh] == KINDS.index(target)]
            if not len(rows):
                continue
            relation, wanted = graph.relations[name], nodes[rows]
            starts = relation.starts[wanted]
            seeds = _mixed(papers[owners[rows]].astype(np.uint64) * np.uint64(16) + np.uint64(hop))
            seeds = _mixed(seeds ^ (wanted.astype(np.uint64) * np.uint64(16) + np.uint64(number)))
            chosen = choose(relation.starts[wanted + 1] - starts, most, seeds)
            is_edge = chosen >= 0
            found = relation.sources[(starts[:, None] + chosen)[is_edge]]
            at = np.broadcast_to(rows[:, None], chosen.shape)[is_edge]
            ends[name] = _keys(owners[at], KINDS.index(source), found), at
        reached = np.unique(np.concatenate([key for key, _ in ends.values()])) if ends else keys[:0]
        new = np.setdiff1d(reached, keys, assume_unique=True)
        fresh = np.arange(len(nodes), len(nodes) + len(new), dtype=np.int64)
        parts = new >> _BITS
        owners = np.concatenate((owners, parts // len(KINDS)))
        kinds = np.concatenate((kinds, parts % len(KINDS)))
        nodes = np.concatenate((nodes, new & ((1 << _BITS) - 1)))
        keys, order = np.concatenate((keys, new)), np.concatenate((order, fresh))
        by_key = np.argsort(keys, kind="stable")
        keys, order = keys[by_key], order[by_key]
        for name, (key, at) in ends.items():
            edges[hop, name] = np.stack((order[np.searchsorted(keys, key)], at), axis=1)
    return Neighbourhood(kinds, nodes, edges)


def features_of(graph: Graph, drawn: Neighbourhood) -> npt.NDArray[np.float32]:
    """Return what the nodes are described by, float32[rows, numbers]."""
    width = graph.features["paper"].shape[1]
    features = np.empty((len(drawn.nodes), width), dtype=np.float32)
    for number, kind in enumerate(KINDS):
        rows = np.flatnonzero(drawn.kinds == number)
        if len(rows):
            features[rows] = graph.features[kind][drawn.nodes[rows]]
    return features
