"""R-GAT on IGBH: the field of a paper, one label of 2,983.

Timed: drawing the neighbours, reading their features, the network (rules of MLPerf: neighbour sampling is a part of the
inference). A sample is a node number. Source: graph/R-GAT of mlcommons/inference.

A response is the label as int64. The reference's is one byte (main.py, run_one_item), in which labels from 256 on wrap
around, so that it cannot score beyond them; give `--dtype int64` to the official accuracy_igbh.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from crowdperf.benchmarks.rgat import sampling
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.datasets.igbh import Graph, IgbhDataset, Integers, Papers
from crowdperf.harness.metrics import top1

_FULL = {"feature_count": 1024, "class_count": 2983, "fan_out": [5, 10, 15]}
_LABEL_BYTES = 8


def edges_name(hop: int, relation: str) -> str:
    """Return the network's name of a list of edges."""
    return f"{relation}_{hop}"


def _network(config: Mapping[str, Any]) -> NetworkSpec:
    lists = [edges_name(hop, relation) for hop, relation in sampling.reachable(len(config["fan_out"]))]
    return NetworkSpec(
        name="model",
        inputs=(
            TensorSpec(name="features", dtype="float32", shape=("nodes", int(config["feature_count"]))),
            TensorSpec(name="kinds", dtype="int64", shape=("nodes",)),
            TensorSpec(name="papers", dtype="int64", shape=("papers",)),
            *(TensorSpec(name=name, dtype="int64", shape=(f"edges_{name}", 2)) for name in lists),
        ),
        outputs=(TensorSpec(name="logits", dtype="float32", shape=("papers", int(config["class_count"]))),),
    )


def network_inputs(graph: Graph, papers: Integers, fan_out: list[int]) -> Tensors:
    """Return the neighbourhood of papers as the network takes it: a batch of one graph."""
    drawn = sampling.draw(graph, papers, fan_out)
    features, none = sampling.features_of(graph, drawn), len(drawn.nodes)
    inputs: dict[str, Array] = {
        "features": np.concatenate((features, np.zeros_like(features[:1])))[None],
        "kinds": np.append(drawn.kinds, 0)[None],
        "papers": np.arange(len(papers), dtype=np.int64)[None],
    }
    for hop, relation in sampling.reachable(len(fan_out)):
        pairs = drawn.edges.get((hop, relation), np.zeros((0, 2), dtype=np.int64))
        inputs[edges_name(hop, relation)] = np.concatenate((pairs, np.full((1, 2), none, dtype=np.int64)))[None]
    return inputs


class Rgat:
    """The graph comes with the samples: `preprocess` keeps it for `predict`."""

    response = TensorSpec(name="label", dtype="int64", shape=())
    is_ragged = False
    is_storable = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.networks = (_network(config),)
        self._fan_out = [int(count) for count in config["fan_out"]]
        self._feature_count = int(config["feature_count"])
        self._graph: Graph | None = None

    def preprocess(self, raw: Papers) -> Tensors:
        """Return `paper` int64[batch], node numbers; raises HarnessError when the graph is described otherwise."""
        found = raw.graph.features["paper"].shape[1]
        if found != self._feature_count:
            raise HarnessError(
                f"the nodes of the data set have {found} numbers each, but the model expects {self._feature_count}",
                "use a data set and a model of the same source: both _tiny, both _synthetic or both real",
            )
        self._graph = raw.graph
        return {"paper": raw.nodes}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the labels, int64[batch]."""
        if self._graph is None:
            raise HarnessError("no paper was loaded before the first query", "report this with the run's log")
        papers = np.asarray(inputs["paper"], dtype=np.int64)
        logits: Array = networks["model"](network_inputs(self._graph, papers, self._fan_out))["logits"]
        return np.asarray(logits)[0].argmax(axis=1).astype(np.int64)

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: IgbhDataset) -> Score:
        """Return "acc", the share of right labels in percent."""
        return top1.score(
            responses,
            dataset.labels,
            response_bytes=_LABEL_BYTES,
            label_of=lambda data: int(np.frombuffer(data, np.int64)[0]),
        )


def open_model(facts: ModelFacts) -> Rgat:
    return Rgat(required_config(facts, _FULL, "rgat", _FULL))
