"""DLRM-DCNv2: sums of embeddings, a perceptron for the counts, low-rank cross layers, and a perceptron on top.

Structure and parameter names are those of DLRM_DCN in torchrec (torchrec/models/dlrm.py, torchrec/modules/crossnet.py),
with the sizes of the reference (mlcommons/inference, recommendation/dlrm_v2/pytorch/python/backend_pytorch_native.py
and main.py). 104 GB at full size, nearly all of it embeddings.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from crowdperf.harness.datasets.criteo import DENSE_COUNT, MULTI_HOT, TABLE_ROWS_V2

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "table_rows": TABLE_ROWS_V2,
        "hot_counts": MULTI_HOT,
        "embedding_width": 128,
        "dense_layers": (512, 256, 128),
        "over_layers": (1024, 1024, 512, 256, 1),
        "cross_layers": 3,
        "cross_rank": 512,
    },
    "tiny": {
        "table_rows": tuple(min(rows, 100) for rows in TABLE_ROWS_V2),
        "hot_counts": MULTI_HOT,
        "embedding_width": 8,
        "dense_layers": (32, 8),
        "over_layers": (32, 16, 1),
        "cross_layers": 2,
        "cross_rank": 16,
    },
}


def summed_embeddings(table: nn.EmbeddingBag, values: torch.Tensor) -> torch.Tensor:
    """Return the sum of the embeddings of int32[rows, k]: float32[rows, width].

    ONNX has no operator for it: an export gets Gather and ReduceSum, which runtimes know well. With one value there is
    nothing to sum.
    """
    if values.shape[1] == 1:
        return functional.embedding(values.squeeze(1), table.weight)
    if torch.onnx.is_in_onnx_export():
        return functional.embedding(values, table.weight).sum(dim=1)
    return functional.embedding_bag(values, table.weight, mode="sum")


def _layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(OrderedDict(_linear=nn.Linear(inputs, outputs), relu=nn.ReLU()))


class _Perceptron(nn.Module):
    """Linear layers, each followed by ReLU."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self._mlp = nn.Sequential(*(_layer(inputs, outputs) for inputs, outputs in pairwise(sizes)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self._mlp(values)


class _CrossNet(nn.Module):
    """Layers x <- x0 * (W V x + b) + x, with V to a lower rank and W back."""

    def __init__(self, width: int, layers: int, rank: int) -> None:
        super().__init__()
        self.W_kernels = nn.ParameterList(nn.Parameter(torch.empty(width, rank)) for _ in range(layers))
        self.V_kernels = nn.ParameterList(nn.Parameter(torch.empty(rank, width)) for _ in range(layers))
        self.bias = nn.ParameterList(nn.Parameter(torch.empty(width)) for _ in range(layers))

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        values = first
        for back, low, bias in zip(self.W_kernels, self.V_kernels, self.bias, strict=True):
            values = first * (functional.linear(functional.linear(values, low), back) + bias) + values
        return values


class _Sparse(nn.Module):
    def __init__(self, table_rows: Sequence[int], width: int, hot_counts: Sequence[int]) -> None:
        super().__init__()
        self._hot_counts = list(hot_counts)
        tables = (nn.EmbeddingBag(rows, width, mode="sum") for rows in table_rows)
        bags = nn.ModuleDict({f"t_cat_{number}": table for number, table in enumerate(tables)})
        self.embedding_bag_collection = nn.ModuleDict({"embedding_bags": bags})

    def forward(self, values: torch.Tensor) -> list[torch.Tensor]:
        parts = torch.split(values, self._hot_counts, dim=1)
        tables = self.embedding_bag_collection["embedding_bags"].children()
        return [summed_embeddings(table, part) for table, part in zip(tables, parts, strict=True)]  # type: ignore[arg-type]


class DlrmDcn(nn.Module):
    """float32[rows, 13] and int32[rows, 214] to the probability of a click, float32[rows]."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = int(config["embedding_width"])
        joined = (len(config["table_rows"]) + 1) * width
        self.sparse_arch = _Sparse(config["table_rows"], width, config["hot_counts"])
        over = (joined, *config["over_layers"])
        self.dense_arch = nn.ModuleDict({"model": _Perceptron((DENSE_COUNT, *config["dense_layers"]))})
        cross = _CrossNet(joined, int(config["cross_layers"]), int(config["cross_rank"]))
        self.inter_arch = nn.ModuleDict({"crossnet": cross})
        self.over_arch = nn.ModuleDict({"model": nn.Sequential(_Perceptron(over[:-1]), nn.Linear(*over[-2:]))})

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> tuple[torch.Tensor]:
        joined = torch.cat((self.dense_arch["model"](dense), *self.sparse_arch(sparse)), dim=1)
        crossed = self.inter_arch["crossnet"](joined)
        return (torch.sigmoid(self.over_arch["model"](crossed)).squeeze(1),)


def convert_checkpoint(network: str, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the state without the name of the training wrapper (DLRMTrain), in which the published weights lie."""
    return {name.removeprefix("model."): value for name, value in state.items()}


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return counts between 0 and 5, about their logarithms' range, and values that every table has."""
    dense = torch.rand((count, DENSE_COUNT), generator=generator) * 5.0
    values = torch.randint(0, min(config["table_rows"]), (count, sum(config["hot_counts"])), generator=generator)
    return dense, values.to(torch.int32)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return DlrmDcn(config).eval()
