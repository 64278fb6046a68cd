"""A stand-in for the digits model and data set, for machines on which the recipes have not run: right shapes, no
meaning.

The network has the layers of the digits model (3x3 convolution with 192 filters, Relu, 2x2 max pooling, Gemm), so it
costs as much per image, but random weights.
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

FILTERS = 192
SAMPLES = 500


def write_model(path: Path) -> None:
    """Write the stand-in network: `image` float32[batch, 1, 8, 8] to `logits` float32[batch, 10]."""
    random = np.random.default_rng(0)
    weights = {
        "filters": random.normal(size=(FILTERS, 1, 3, 3)),
        "filter_bias": random.normal(size=FILTERS),
        "dense": random.normal(size=(FILTERS * 16, 10)) / 30,
        "dense_bias": np.zeros(10),
    }
    nodes = [
        helper.make_node("Conv", ["image", "filters", "filter_bias"], ["convolved"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["convolved"], ["positive"]),
        helper.make_node("MaxPool", ["positive"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "dense", "dense_bias"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "digits-stand-in",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    save(model, path)


def write_dataset(folder: Path) -> None:
    """Write random images and labels in the form of the digits data set."""
    random = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "validation_images.npy", random.integers(0, 17, (SAMPLES, 8, 8), dtype=np.uint8))
    np.save(folder / "validation_labels.npy", random.integers(0, 10, SAMPLES, dtype=np.uint8))
