"""A toy model of two networks for the tests of backends and of makemodel: an image network with batch normalisation,
and a text network with a size that changes from call to call."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = """
import numpy as np
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec


class Toy:
    networks = (
        NetworkSpec(
            name="image",
            inputs=(TensorSpec(name="image", dtype="float32", shape=(3, 16, 16)),),
            outputs=(TensorSpec(name="logits", dtype="float32", shape=(10,)),),
        ),
        NetworkSpec(
            name="text",
            inputs=(
                TensorSpec(name="ids", dtype="int64", shape=("tokens",)),
                TensorSpec(name="state", dtype="float32", shape=(12,), is_state=True),
            ),
            outputs=(
                TensorSpec(name="scores", dtype="float32", shape=("tokens", 5)),
                TensorSpec(name="new_state", dtype="float32", shape=(12,), is_state=True),
            ),
        ),
    )
    response = None
    is_ragged = False


def rules(name):
    raise NotImplementedError


def open_model(facts):
    return Toy()
"""

ARCHITECTURE = """
import torch
from torch import nn

CONFIGS = {"full": {"width": 32}, "tiny": {"width": 8}}


class Image(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, image):
        x = torch.relu(self.bn1(self.conv1(image)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return (self.fc(x.mean(dim=(2, 3))),)


class Text(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.norm = nn.LayerNorm(12)
        self.fc = nn.Linear(12, 5)

    def forward(self, ids, state):
        x = self.norm(self.embedding(ids) * 50 + state.unsqueeze(1))
        return self.fc(x), x.mean(dim=1)


def build(network, config):
    return {"image": Image, "text": Text}[network](config["width"]).eval()


def example_inputs(network, config, count, generator):
    if network == "image":
        return (torch.randn(count, 3, 16, 16, generator=generator) * 60 + 20,)
    return torch.randint(0, 50, (count, 7), generator=generator), torch.zeros(count, 12)
"""


@contextmanager
def toy_on_path(folder: Path) -> Iterator[None]:
    """Let the benchmark folder `toy` be found in `folder`."""
    (folder / "toy").mkdir(parents=True)
    for name, text in (("model", MODEL), ("network", ARCHITECTURE)):
        (folder / "toy" / f"{name}.py").write_text(text)
    path = importlib.import_module("crowdperf.benchmarks").__path__
    path.append(str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        path.remove(str(folder))
        for name in ("toy", "toy.model", "toy.network"):
            sys.modules.pop(f"crowdperf.benchmarks.{name}", None)


def backend_request(network: str, path: Path | None, **changes: object):
    """Return a BackendRequest for one of the toy's networks, tiny configuration, on one thread of the processor."""
    from crowdperf.harness.base.backend import BackendRequest

    models = importlib.import_module("crowdperf.benchmarks.toy.model")
    specs = {spec.name: spec for spec in models.Toy.networks}
    values = {
        "network": specs[network],
        "path": path,
        "architecture": "toy",
        "config": {"width": 8},
        "precision": "fp32",
        "device": "cpu",
        "gpus": (),
        "instances": 1,
        "threads": 1,
        "cores": (),
        "is_spinning": False,
        "largest_batch": 8,
    }
    return BackendRequest(**{**values, **changes})
