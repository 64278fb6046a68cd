"""Writes a fitted digits network as an ONNX graph and asks onnxruntime what it answers.

The graph: Conv, Relu, MaxPool, Flatten, Gemm; input `image` float32[batch, 1, 8, 8], output `logits`
float32[batch, 10].
"""

import numpy as np
import onnxruntime
from network import PADDING, PATCH_SIZE, POOL_SIZE, Network
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

# Operator set 13 and file format 8 are read by every onnxruntime from 1.10 on (table "Backwards compatibility" of
# https://onnxruntime.ai/docs/reference/compatibility.html, read 2026-11-21); the graph needs nothing newer.
OPERATOR_SET = 13
FILE_FORMAT = 8


def build_model(network: Network) -> ModelProto:
    """The checked ONNX model with a free batch size."""
    nodes = [
        helper.make_node(
            "Conv",
            ["image", "filters", "filter_bias"],
            ["maps"],
            kernel_shape=[PATCH_SIZE, PATCH_SIZE],
            pads=[PADDING] * 4,
        ),
        helper.make_node("Relu", ["maps"], ["positive_maps"]),
        helper.make_node(
            "MaxPool", ["positive_maps"], ["pooled"], kernel_shape=[POOL_SIZE] * 2, strides=[POOL_SIZE] * 2
        ),
        helper.make_node("Flatten", ["pooled"], ["features"], axis=1),
        helper.make_node("Gemm", ["features", "head", "head_bias"], ["logits"]),
    ]
    weights = ("filters", "filter_bias", "head", "head_bias")
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(getattr(network, name), name) for name in weights],
    )
    model = helper.make_model(
        graph,
        producer_name="crowdperf get-ml-model-digits",
        opset_imports=[helper.make_opsetid("", OPERATOR_SET)],
        ir_version=FILE_FORMAT,
    )
    checker.check_model(model, full_check=True)
    return model


def predict(model_bytes: bytes, inputs: np.ndarray) -> np.ndarray:
    """The digit `int64[n]` that onnxruntime on one CPU thread reads in each of `inputs float32[n, 1, 8, 8]`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": inputs})
    return np.argmax(logits, axis=1)
