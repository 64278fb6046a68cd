"""The network of a benchmark as one TorchScript module for AWS Neuron: fixed sizes, int32 inputs, one output.

What README_Triton_Inferentia.md of mlcommons/inference_results_v2.0 (425a0d30) asks for: ResNet-50 compiled for fp32
images, BERT for int32 tokens with start and end logit side by side in one output (384, 2).
"""

import io
from typing import Any

import torch
from torch import nn

from crowdperf.harness.backends.neuron.layout import wire_network
from crowdperf.harness.backends.pytorch.backend import build_module
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.models.engines.task import Task
from crowdperf.rules.benchmarks import RECORDS, model_of, record_of

READS = "pytorch"


def suffix(task: Task) -> str:
    return ".pt"


class _Joined(nn.Module):
    """A network whose outputs are one tensor."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the only output, or all side by side in a last axis."""
        wide = [tensor.long() if tensor.dtype == torch.int32 else tensor for tensor in inputs]
        answers = self.module(*wide)
        if isinstance(answers, torch.Tensor):
            return answers
        return answers[0] if len(answers) == 1 else torch.stack(tuple(answers), dim=-1)


def require_precision(found: str, wanted: str) -> None:
    """Raise HarnessError for anything but fp32: NVIDIA ran both benchmarks so."""
    if (found, wanted) != ("fp32", "fp32"):
        raise HarnessError(f"Neuron is given fp32 networks, found {found}, requested {wanted}", "leave --precision")


def batch_of(task: Task) -> int:
    """Return the samples that are compiled for (the library splits batches of other sizes); raises HarnessError for a
    benchmark that is not offered."""
    usual = record_of(task.model).neuron_batch
    if usual is None:
        offered = ", ".join(one.name for one in RECORDS.values() if one.neuron_batch is not None)
        raise HarnessError(f"{task.model} is not compiled for Neuron", f"use one of {offered}")
    return task.largest_batch or usual


def sizes_of(task: Task) -> dict[str, int]:
    """Return the one value of each size that else changes from call to call: the largest."""
    bounds = {**record_of(task.model).size_bounds, **task.sizes}
    return {name: values[2] for name, values in bounds.items()}


def module_and_example(task: Task, spec: NetworkSpec) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the joined module in eval mode and example inputs of the compiled batch; raises HarnessError."""
    facts = read_model_facts(None, task.model_info)
    request = BackendRequest(
        network=spec, path=facts.files[spec.name].path, architecture=model_of(task.model), config=facts.config,
        precision="fp32", device="cpu", gpus=(), instances=1, threads=1, cores=(), is_spinning=False,
        largest_batch=batch_of(task),
    )  # fmt: skip
    wire = wire_network(spec, sizes_of(task))
    generator = torch.Generator().manual_seed(0)
    example = []
    for tensor in wire.inputs:
        shape, dtype = (batch_of(task), *tensor.fixed_shape), getattr(torch, tensor.dtype)
        is_float = dtype.is_floating_point
        example.append(torch.randn(shape, generator=generator) if is_float else torch.ones(shape, dtype=dtype))
    return _Joined(build_module(request)).eval(), tuple(example)


def content_of(module: Any) -> bytes:
    """Return a TorchScript module as the bytes of its file."""
    content = io.BytesIO()
    torch.jit.save(module, content)
    return content.getvalue()


def common_facts(task: Task) -> dict[str, Any]:
    """Return what model.json's `engine` says of every network compiled so."""
    return {
        "compiled_batch": batch_of(task),
        "is_dynamic": True,
        "sizes": sizes_of(task),
        "dtype": "fp32",
        "torch": str(torch.__version__),
    }
