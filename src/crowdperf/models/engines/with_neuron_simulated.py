"""Traces networks in the form that AWS's compiler takes, without it: what the backend `neuron_simulated` runs."""

import warnings
from typing import Any

import torch

from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.models.engines import torchscript
from crowdperf.models.engines.task import Task
from crowdperf.models.engines.torchscript import READS, require_precision, suffix

__all__ = ["FRAMEWORK", "READS", "build_network", "facts", "require_precision", "suffix"]

FRAMEWORK = "neuron_simulated"


def build_network(task: Task, spec: NetworkSpec, file: Any, precision: str) -> bytes:
    """Return the network as a frozen TorchScript module for the processor."""
    module, example = torchscript.module_and_example(task, spec)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # tracing tells of every Python number in a shape
        traced: Any = torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
        return torchscript.content_of(torch.jit.freeze(traced))


def facts(task: Task) -> dict[str, Any]:
    """Return what the networks were traced with; "SIMULATED" stands where a compiler would."""
    return {**torchscript.common_facts(task), "runs_with": "simulated", "compiler": "SIMULATED"}
