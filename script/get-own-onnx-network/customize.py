"""Hooks of get-own-onnx-network: read the tensors of the user's ONNX file, or refuse it before anything is installed.

As a dynamic dependency it runs before the cache is searched, so that another file, shape or set of inputs leads to
another entry.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from crowdperf.data.answers import env_hook
from crowdperf.data.copy_identity import NO_IDENTITY, identity, one_file
from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError
from crowdperf.data.given_arrays import WantedArray, array_headers, require_arrays
from crowdperf.data.onnx_graph import GraphTensor, OwnNetwork, own_network, parse_shapes, read_graph
from crowdperf.rules.app_names import PRECISION_ALIASES

EXAMPLE = "cm run script --tags=run,mlperf,inference --model_path=FILE.onnx"


def described(tensor: GraphTensor) -> dict:
    """The tensor as model.json has it."""
    if tensor.shape is None:
        raise DataError(
            f"the file does not give the number of axes of the output {tensor.name}", "export it with shapes"
        )
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def wanted(tensors: Iterable[GraphTensor]) -> list[WantedArray]:
    """The arrays that samples of these tensors are given as."""
    return [WantedArray(name=one.name, dtype=one.dtype, shape=one.shape or ()) for one in tensors]


def response_of(network: OwnNetwork, inputs: Path | None, expected: Path | None) -> str:
    """The output that is the response: the one with expected values, else the first. Raises DataError for inputs and
    expected values that cannot be used."""
    names = [one.name for one in network.outputs]
    tensors = wanted(network.inputs)
    form = f"give FILE.npz with {', '.join(one.name for one in tensors)}, samples first"
    count = 0
    if inputs is not None:
        count = require_arrays(
            "inputs", inputs, array_headers(inputs, [one.name for one in tensors], form), tensors, form
        )
    if expected is None:
        return names[0]
    if inputs is None:
        raise DataError("--expected: expected values need your own inputs", "add --inputs=FILE.npz")
    form = "give FILE.npz with the expected values of one output, samples first"
    found = array_headers(expected, names[:1], form)
    name = next(iter(found), "")
    if len(found) != 1 or name not in names:
        raise DataError(f"--expected: {expected} has {', '.join(found)}. The outputs are {', '.join(names)}", form)
    answers = require_arrays(
        "expected", expected, found, wanted(one for one in network.outputs if one.name == name), form
    )
    if answers != count:
        raise DataError(f"--expected: {expected} has {answers:,} samples, {inputs} has {count:,}", form)
    return name


def network_environment(values) -> dict[str, str]:
    """The env keys that describe the network. Raises DataError."""
    path, inputs, expected = values["model_path"], values["inputs"], values["expected"]
    if path is None:
        raise DataError("no model is given", EXAMPLE)
    graph = read_graph(one_file(path))
    network = own_network(graph, parse_shapes(values["shape"] or ""))
    precision = values["precision"] or "fp32"
    precision = PRECISION_ALIASES.get(precision, precision)
    if precision != graph.precision:
        message = f"the weights of {path} are {graph.precision}, {precision} was requested"
        raise DataError(message, f"add --precision={graph.precision}")
    config = {
        "inputs": [described(one) for one in network.inputs],
        "outputs": [described(one) for one in network.outputs],
        "has_batches": network.has_batches,
        "response": response_of(network, inputs, expected),
    }
    text = json.dumps(config, sort_keys=True)
    given = [NO_IDENTITY if one is None else identity(one) for one in (inputs, expected)]
    return {
        "CM_OWN_NETWORK_FILE": str(path),
        "CM_OWN_NETWORK_BESIDE": json.dumps([one.relative_to(path.parent).as_posix() for one in graph.beside]),
        "CM_OWN_NETWORK_CONFIG": text,
        "CM_OWN_NETWORK_PRECISION": precision,
        "CM_OWN_NETWORK_LARGEST_BATCH": str(network.largest_batch or ""),
        "CM_OWN_NETWORK_IDENTITY": short_identity(text, precision, *map(identity, (path, *graph.beside))),
        "CM_OWN_INPUTS_IDENTITY": short_identity(text, *given),
    }


plan = preprocess = env_hook(network_environment)
