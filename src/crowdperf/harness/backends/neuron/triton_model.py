"""A Triton model, written in Python: runs a compiled TorchScript file on NeuronCores, or simulated on the processor.

Triton's Python backend starts a process of this file for each instance. config.pbtxt names the compiled file and the
NeuronCores of all instances (crowdperf/harness/backends/neuron/layout.py); each instance takes its part of them, as
NVIDIA's inferentia/scripts/gen_triton_model.py does (triton-inference-server/python_backend, 140f1cbb). Tensors are
called <name>__<n> in the order of the module's arguments. Requests that come together are worked on one after the
other.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch
import triton_python_backend_utils as pb_utils


def cores_of_instance(first: int, last: int, count: int, index: int) -> tuple[int, int]:
    """Return the first NeuronCore of an instance and how many it has."""
    each = (last - first + 1) // count
    if each < 1:
        message = "{} instances cannot share the NeuronCores {}-{}"
        raise pb_utils.TritonModelException(message.format(count, first, last))
    return first + index * each, each


def open_module(library: str, path: str, cores: int, threads: int) -> Any:
    """Return the call that runs the compiled file on `cores` NeuronCores of this process."""
    load: Any = torch.jit.load
    if library == "simulated":
        torch.set_num_threads(1)
        return load(path)
    if library == "torch_neuron":
        import torch.neuron as neuron  # Inf1: registers the operators of the compiled file
    else:
        import torch_neuronx as neuron
    parallel = neuron.DataParallel(load(path), device_ids=list(range(cores)))
    parallel.num_workers = cores * threads
    return parallel


class TritonPythonModel:
    """One instance of a model."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Open the compiled file; raises TritonModelException, which ends the loading of the model with its text."""
        config = json.loads(args["model_config"])
        given = {name: value["string_value"] for name, value in config["parameters"].items()}
        library = given["NEURON_LIBRARY"]
        count = config["instance_group"][0]["count"]
        index = int(args["model_instance_name"].rpartition("_")[2]) if count > 1 else 0
        bounds = int(given["NEURON_CORE_START_INDEX"]), int(given["NEURON_CORE_END_INDEX"])
        first, cores = cores_of_instance(*bounds, count, index)
        os.environ["NEURON_RT_VISIBLE_CORES"] = f"{first}-{first + cores - 1}"
        folder = os.path.join(args["model_repository"], args["model_version"])
        path = os.path.join(folder, given["COMPILED_MODEL"])
        self._inputs = sorted((tensor["name"] for tensor in config["input"]), key=_place)
        self._outputs = sorted(
            ((tensor["name"], pb_utils.triton_string_to_numpy(tensor["data_type"])) for tensor in config["output"]),
            key=lambda pair: _place(pair[0]),
        )
        try:
            self._module = open_module(library, path, cores, int(given["NUM_THREADS_PER_CORE"]))
        except Exception as error:  # torch and AWS's libraries share no base class
            raise pb_utils.TritonModelException(f"{library} cannot open {path}: {error}") from error
        facts = {"library": library, "cores": os.environ["NEURON_RT_VISIBLE_CORES"], "torch": torch.__version__}
        facts["python"] = ".".join(str(part) for part in sys.version_info[:3])
        pb_utils.Logger.log_info("crowdperf neuron instance " + json.dumps(facts, sort_keys=True))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        try:
            arrays = [pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs]
            with torch.no_grad():
                found = self._module(*(torch.as_tensor(array) for array in arrays))
            found = found if isinstance(found, (tuple, list)) else (found,)
            tensors = [
                pb_utils.Tensor(name, numpy.ascontiguousarray(tensor.numpy().astype(dtype)))
                for (name, dtype), tensor in zip(self._outputs, found, strict=True)
            ]
        except Exception as error:  # an exception that leaves here would end the process, and nobody would learn why
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"{type(error).__name__}: {error}"))
        return pb_utils.InferenceResponse(output_tensors=tensors)


def _place(name: str) -> int:
    """Return the number behind the two underscores of a tensor's name."""
    stem, _, number = name.rpartition("__")
    if not stem or not number.isdigit():
        raise pb_utils.TritonModelException(f"tensors are called <name>__<number>, found {name}")
    return int(number)
