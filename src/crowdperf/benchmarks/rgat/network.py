"""R-GAT: three layers of attention over the edges of eleven relations, then one label of 2,983 for each paper.

Source of structure and parameter names: RGAT_DGL in graph/R-GAT/dgl_utilities/components.py of mlcommons/inference
(b66003e1 of 2026-08-20), whose layers are DGL's GATConv, one for each relation, with their results added up; the
published checkpoint's tensors load by name.

The network takes the neighbourhood of all papers of a batch as one graph: `features` of its nodes, the papers first,
their `kinds`, and the edges of each relation by hop. The last node of the table is none: every list of edges has one
edge from it to itself, so that no list is empty. A layer uses the edges of the hops that it can see: the first all, the
last those of the first hop only. A node without edges of a relation gets that relation's bias, as in PyTorch Geometric.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.rgat.sampling import reachable
from crowdperf.harness.datasets.igbh import KINDS, RELATIONS

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {"feature_count": 1024, "width": 512, "heads": 4, "class_count": 2983, "fan_out": [5, 10, 15]},
    "tiny": {"feature_count": 32, "width": 64, "heads": 4, "class_count": 320, "fan_out": [3, 5]},
}
"""fan_out: neighbours of a node for each relation, by layer (backend_dgl.py); as many layers."""

_NEGATIVE_SLOPE = 0.2
_SMALLEST_EXPONENT = -60.0
"""Shares of attention below e^-60 of the greatest count as e^-60: no sum of them is zero."""


class _Relation(nn.Module):
    """DGL's GATConv."""

    def __init__(self, features: int, heads: int, width: int) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.fc = nn.Linear(features, heads * width, bias=False)
        self.attn_l = nn.Parameter(torch.zeros(1, heads, width))
        self.attn_r = nn.Parameter(torch.zeros(1, heads, width))
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return what reaches each node over `edges` int64[edges, 2]: float32[nodes, heads * width]."""
        sources, targets = edges[:, 0], edges[:, 1]
        sent = self.fc(x[sources]).reshape(-1, self.heads, self.width)
        heard = (self.fc.weight.reshape(self.heads, self.width, -1) * self.attn_r[0].unsqueeze(-1)).sum(1)
        scores = (sent * self.attn_l).sum(-1) + (x @ heard.t())[targets]
        scores = functional.leaky_relu(scores, _NEGATIVE_SLOPE)
        shares = (scores - scores.amax(0, keepdim=True)).clamp_min(_SMALLEST_EXPONENT).exp()
        weighted = (sent * shares.unsqueeze(-1)).reshape(-1, self.heads * self.width)
        total, summed = _sums(shares, targets, x), _sums(weighted, targets, x)
        spread = total.clamp_min(1e-37).unsqueeze(-1).expand(-1, -1, self.width).reshape(x.shape[0], -1)
        return summed / spread


def _sums(values: Tensor, targets: Tensor, x: Tensor) -> Tensor:
    """Return the sums of the rows of `values` that go to each node of `x`. (`index_add` loses rows in ONNX.)"""
    empty = torch.zeros(x.shape[0], values.shape[1], dtype=x.dtype, device=x.device)
    return empty.scatter_add(0, targets.unsqueeze(1).expand(-1, values.shape[1]), values)


class _Layer(nn.Module):
    def __init__(self, features: int, heads: int, width: int) -> None:
        super().__init__()
        self.mods = nn.ModuleDict({name: _Relation(features, heads, width // heads) for _, name, _ in RELATIONS})

    def forward(self, x: Tensor, kinds: Tensor, edges: Mapping[str, Tensor]) -> Tensor:
        biases = [torch.zeros_like(self._relation("cites").bias) for _ in KINDS]
        for _, name, target in RELATIONS:
            place = KINDS.index(target)
            biases[place] = biases[place] + self._relation(name).bias
        result = torch.stack(biases)[kinds]
        for name, pairs in edges.items():
            result = result + self._relation(name)(x, pairs)
        return result

    def _relation(self, name: str) -> _Relation:
        relation = self.mods[name]
        if not isinstance(relation, _Relation):
            raise TypeError(f"{name} is not a relation")
        return relation


class Rgat(nn.Module):
    """One graph (batch of 1) to the logits of its papers."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        hops = len(config["fan_out"])
        sizes = [config["feature_count"], *[config["width"]] * (hops - 1)]
        self.layers = nn.ModuleList(_Layer(size, config["heads"], config["width"]) for size in sizes)
        self.linear = nn.Linear(config["width"], config["class_count"])
        self._lists = reachable(hops)

    def forward(self, features: Tensor, kinds: Tensor, papers: Tensor, *edges: Tensor) -> tuple[Tensor]:
        """Return logits [1, papers, classes]; `papers` int64[1, papers] are their rows, `edges` the lists in the
        order of `reachable`."""
        x, kind = features[0], kinds[0]
        hops = len(self.layers)
        for number, layer in enumerate(self.layers):
            seen: dict[str, list[Tensor]] = {}
            for (hop, name), pairs in zip(self._lists, edges, strict=True):
                if hop <= hops - number:
                    seen.setdefault(name, []).append(pairs[0])
            x = layer(x, kind, {name: torch.cat(parts) for name, parts in seen.items()})
            if number < hops - 1:
                x = functional.leaky_relu(x)
        return (self.linear(x[papers[0]]).unsqueeze(0),)


def build(network: str, config: Mapping[str, Any]) -> Rgat:
    return Rgat(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return one graph with random features and edges, whatever `count` is."""
    nodes, papers = 24, 3
    kinds = torch.randint(0, len(KINDS), (1, nodes), generator=generator)
    features = torch.randn((1, nodes, config["feature_count"]), generator=generator)
    lists = [
        torch.randint(0, nodes, (1, 9 + number, 2), generator=generator)
        for number, _ in enumerate(reachable(len(config["fan_out"])))
    ]
    return features, kinds, torch.arange(papers).unsqueeze(0), *lists


def convert_checkpoint(network: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors by the names of this network: the checkpoint has the same in "model." (class RGAT)."""
    return {name.removeprefix("module.").removeprefix("model."): value for name, value in state.items()}
