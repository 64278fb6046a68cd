"""Runs of the harness on a GPU that is the processor: `python pinned_runs.py run.json ...`, each in a process that is
forked from this one. Each prints what memory samples were given, and of how many values the buffers are that the device
copied through, as a line of JSON; the first that fails ends them."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from test_torch_device import FakeDevice

from crowdperf.harness.base import torch_cuda
from crowdperf.harness.runner.run import perform, read_config


class Linear(torch.nn.Module):
    """Ten numbers of an image of the digits."""

    def __init__(self) -> None:
        super().__init__()
        weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
        self.weights = torch.from_numpy(weights)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor]:
        return (image.flatten(1) @ self.weights,)


class Watched(FakeDevice):
    """Remembers how many values it was asked to pin."""

    sizes: ClassVar[set[int]] = set()

    def pinned(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        self.sizes.add(int(np.prod(shape)))
        return super().pinned(dtype, shape)


def main(path: Path) -> None:
    """Perform the run with the pytorch backend's doors to CUDA replaced."""
    given: list[tuple[int, list[int], str]] = []

    def memory(gpu: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        given.append((gpu, list(shape), dtype.name))
        return np.empty(shape, dtype)

    torch_cuda.sample_memory = memory
    torch_cuda.open_on_gpus = lambda request, build: torch_cuda.GpuBackend(
        {0: Linear()}, request, lambda gpu: Watched()
    )
    perform(read_config(path))
    print(json.dumps({"given": given, "buffers": sorted(Watched.sizes)}))


if __name__ == "__main__":
    for run_json in map(Path, sys.argv[1:]):
        child = os.fork()
        if child == 0:
            main(run_json)
            break
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{run_json} failed")
