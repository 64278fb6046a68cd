"""DLRM, the first version: embeddings, a perceptron for the counts, dot products of all pairs, a perceptron on top.

Structure and parameter names are those of DLRM_Net in facebookresearch/dlrm (dlrm_s_pytorch.py), with the sizes of the
reference (mlcommons/inference at tag v3.0, recommendation/dlrm/pytorch/python/main.py, max_ind_range 40,000,000; its
checkpoint's key is `state_dict`). 96 GB at full size.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from crowdperf.harness.datasets.criteo import DENSE_COUNT, TABLE_ROWS_V1

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "table_rows": TABLE_ROWS_V1,
        "embedding_width": 128,
        "bottom_layers": (512, 256, 128),
        "top_layers": (1024, 1024, 512, 256, 1),
    },
    "tiny": {
        "table_rows": tuple(min(rows, 100) for rows in TABLE_ROWS_V1),
        "embedding_width": 8,
        "bottom_layers": (32, 8),
        "top_layers": (32, 16, 1),
    },
}


def _perceptron(sizes: Sequence[int], last: nn.Module) -> nn.Sequential:
    """Return linear layers at the even places; ReLU between them and `last` at the end."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*parts[:-1], last)


class Dlrm(nn.Module):
    """float32[rows, 13] and int32[rows, 26] to the probability of a click, float32[rows]."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = int(config["embedding_width"])
        vectors = len(config["table_rows"]) + 1
        self.emb_l = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for rows in config["table_rows"])
        self.bot_l = _perceptron((DENSE_COUNT, *config["bottom_layers"]), nn.ReLU())
        top = (width + vectors * (vectors - 1) // 2, *config["top_layers"])
        self.top_l = _perceptron(top, nn.Sigmoid())
        pairs = [first * vectors + second for first in range(vectors) for second in range(first)]
        self.register_buffer("_pairs", torch.tensor(pairs), persistent=False)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> tuple[torch.Tensor]:
        counts = self.bot_l(dense)
        weights = [table.get_parameter("weight") for table in self.emb_l]
        looked_up = [functional.embedding(sparse[:, number], weight) for number, weight in enumerate(weights)]
        vectors = torch.stack((counts, *looked_up), dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        joined = torch.cat((counts, products.index_select(1, self._pairs)), dim=1)  # type: ignore[arg-type]
        return (self.top_l(joined).squeeze(1),)


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return counts between 0 and 5, about their logarithms' range, and values that every table has."""
    dense = torch.rand((count, DENSE_COUNT), generator=generator) * 5.0
    values = torch.randint(0, min(config["table_rows"]), (count, len(config["table_rows"])), generator=generator)
    return dense, values.to(torch.int32)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return Dlrm(config).eval()
