"""A Triton backend, written in Python: runs the ONNX file of a model with onnxruntime on the CPU.

Triton starts a process of this file for each instance of a model whose config.pbtxt says `backend: "onnxruntime"`, with
the Python of the server's virtual environment (3.10 to 3.12). Requests that Triton's batcher hands over together run as
one batch. The parameter `intra_op_thread_count` is the one of Triton's own onnxruntime backend.
"""

import json
import os
import sys

import numpy
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One instance of a model."""

    def initialize(self, args):
        """Open the model's file; raises TritonModelException, which ends the loading of the model with its text."""
        if int(numpy.__version__.split(".")[0]) >= 2:
            # Seen with Triton 2.51.0: every output then arrives with its shape and without bytes.
            message = "numpy {} in the server's environment, but Triton's stub needs numpy below 2"
            raise pb_utils.TritonModelException(message.format(numpy.__version__))
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
        self._outputs = [output["name"] for output in config["output"]]
        self._is_batched = config["max_batch_size"] > 0
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(parameters.get("intra_op_thread_count", "1"))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        file = config.get("default_model_filename") or "model.onnx"
        path = os.path.join(args["model_repository"], args["model_version"], file)
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions share no base class of their own
            raise pb_utils.TritonModelException(f"onnxruntime cannot open {file}: {error}") from error
        facts = {
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "numpy": numpy.__version__,
            "onnxruntime": onnxruntime.__version__,
        }
        pb_utils.Logger.log_info("crowdperf onnxruntime instance " + json.dumps(facts, sort_keys=True))

    def execute(self, requests):
        """Return a response for each request: all of them run as one batch, or fail with the same error."""
        try:
            return self._answer(requests)
        except Exception as error:  # an exception that leaves here would end the process, and nobody would learn why
            failed = pb_utils.TritonError(f"{type(error).__name__}: {error}")
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]

    def _answer(self, requests):
        arrays = [{tensor.name(): tensor.as_numpy() for tensor in request.inputs()} for request in requests]
        inputs = arrays[0]
        if len(arrays) > 1:
            inputs = {name: numpy.concatenate([one[name] for one in arrays]) for name in inputs}
        answers = self._session.run(self._outputs, inputs)
        if not self._is_batched:
            return [_response(self._outputs, answers)]
        counts = [len(next(iter(one.values()))) for one in arrays]
        for name, answer in zip(self._outputs, answers, strict=True):
            if answer.shape[:1] != (sum(counts),):
                message = "output {} has the shape {} for {} samples"
                raise ValueError(message.format(name, list(answer.shape), sum(counts)))
        responses, start = [], 0
        for count in counts:
            responses.append(_response(self._outputs, [answer[start : start + count] for answer in answers]))
            start += count
        return responses


def _response(names, arrays):
    tensors = [pb_utils.Tensor(name, numpy.ascontiguousarray(array)) for name, array in zip(names, arrays, strict=True)]
    return pb_utils.InferenceResponse(output_tensors=tensors)
