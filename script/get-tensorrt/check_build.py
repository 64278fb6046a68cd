"""Runs in the environment that the wheels were installed into: builds a small engine and prints one JSON line.

    python -I check_build.py tensorrt_rtx

{"version": "1.7.1.116", "library": "/.../libtensorrt_rtx.so.1", "engine_bytes": 12345, "error": ""}

TensorRT-RTX builds engines without a GPU; TensorRT itself does not, and neither runs one without. A missing GPU is told
in ``error``, with ``version`` set: the package is whole then.
"""

import importlib
import json
import sys


def loaded_library(name):
    """The path of the main library that this process has loaded, an empty text for none (Linux)."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split(None, 5)[5].strip() for line in file if len(line.split(None, 5)) == 6}
    wanted = "libtensorrt_rtx.so" if name == "tensorrt_rtx" else "libnvinfer.so"
    return next((path for path in sorted(paths) if path.rpartition("/")[2].startswith(wanted)), "")


def build(trt):
    """The size in bytes of an engine of one ReLU over float32[1, 8]."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    tensor = network.add_input("x", trt.float32, (1, 8))
    layer = network.add_activation(tensor, trt.ActivationType.RELU)
    network.mark_output(layer.get_output(0))
    engine = builder.build_serialized_network(network, builder.create_builder_config())
    if engine is None:
        raise RuntimeError("the builder gave no engine")
    return engine.nbytes


def main():
    answer = {"version": "", "library": "", "engine_bytes": 0, "error": ""}
    try:
        trt = importlib.import_module(sys.argv[1])
        answer["version"] = str(trt.__version__)
        answer["library"] = loaded_library(sys.argv[1])
        answer["engine_bytes"] = int(build(trt))
    except Exception as error:  # anything that a foreign package may raise is the answer
        answer["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
