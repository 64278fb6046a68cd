"""Compiles networks for AWS Inferentia with AWS's library: torch_neuron for Inf1, torch_neuronx for Inf2.

torch_neuron.trace and torch_neuronx.trace as AWS documents them (archive/torch-neuron/api-compilation-python-api.rst
and api-torch-neuronx-trace.rst of aws-neuron/aws-neuron-sdk, read 2026-11-23). Not run: the packages come from AWS's
own index, and no Neuron device was at hand.
"""

import importlib
import importlib.util
from typing import Any

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.models.engines import torchscript
from crowdperf.models.engines.task import Task
from crowdperf.models.engines.torchscript import READS, require_precision, suffix
from crowdperf.models.model_json import versions

__all__ = ["FRAMEWORK", "READS", "build_network", "facts", "require_precision", "suffix"]

FRAMEWORK = "neuron"
_PACKAGES = {"torch_neuron": ("torch-neuron", "neuron-cc"), "torch_neuronx": ("torch-neuronx", "neuronx-cc")}


def library() -> str:
    """Return the library that this Python has; raises HarnessError where it has none."""
    for name in _PACKAGES:
        if importlib.util.find_spec(name) is not None:
            return name
    raise HarnessError(
        "this Python does not have torch_neuron (Inf1) or torch_neuronx (Inf2)",
        "cm run script --tags=get,triton,server,_neuron, on an EC2 instance inf1 or inf2",
    )


def build_network(task: Task, spec: NetworkSpec, file: Any, precision: str) -> bytes:
    """Return the compiled network; raises HarnessError with what the compiler said."""
    name = library()
    compiler: Any = importlib.import_module(name)
    module, example = torchscript.module_and_example(task, spec)
    options = {"dynamic_batch_size": True} if name == "torch_neuron" else {}
    try:
        return torchscript.content_of(compiler.trace(module, example, **options))
    except Exception as error:  # AWS documents no base class of what its compilers raise
        raise HarnessError(
            f"{name} cannot compile {task.model} ({file}): {error}", "see the compiler's lines"
        ) from error


def facts(task: Task) -> dict[str, Any]:
    name = library()
    return {**torchscript.common_facts(task), "runs_with": name, "compiler": versions(*_PACKAGES[name])}
