"""The onnxruntime backend: runs an ONNX file with the CPU or the CUDA execution provider.

The CUDA path selects and checks its provider, but was not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnxruntime

from harness.backends.base import BackendRequest
from harness.errors import HarnessError
from harness.tensors import Array, Tensors, TensorSpec

_PROVIDER_OF_DEVICE = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
DEVICES = tuple(_PROVIDER_OF_DEVICE)
NEEDS_MODEL_FILE = True
BATCH_SIZE: int | None = None


class OnnxRuntimeBackend:
    """An open inference session. `infer` releases Python's global lock while the network runs."""

    def __init__(self, session: onnxruntime.InferenceSession, outputs: tuple[TensorSpec, ...]) -> None:
        self._run = session.run
        self._names = [spec.name for spec in outputs]

    def infer(self, inputs: Tensors) -> Tensors:
        """Return the network's outputs by name."""
        answers: list[Array] = self._run(self._names, inputs)
        return dict(zip(self._names, answers, strict=True))

    def versions(self) -> Mapping[str, str]:
        """Return the onnxruntime version."""
        return {"onnxruntime": str(onnxruntime.__version__)}

    def close(self) -> None:
        """Drop the session; onnxruntime frees it with the last reference."""
        del self._run


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """Return the options of every session: `threads` for one operator, none between operators, no busy waiting.

    Spinning threads would take the cores that LoadGen and the Python side need.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def open_backend(request: BackendRequest) -> OnnxRuntimeBackend:
    """Return an open session.

    Raises HarnessError when the file is no usable model, lacks a tensor of the request, or when onnxruntime would
    answer with another execution provider than the device asks for (it falls back to the CPU without an error).
    """
    provider = _PROVIDER_OF_DEVICE[request.device]
    available = onnxruntime.get_available_providers()
    if provider not in available:
        raise HarnessError(
            f"device {request.device} needs onnxruntime's {provider}; this build has: {', '.join(available)}",
            "install onnxruntime-gpu into this environment, or use device cpu",
        )
    try:
        session = onnxruntime.InferenceSession(
            str(request.model_path), session_options(request.threads), providers=[provider]
        )
    except Exception as error:  # onnxruntime's exceptions share no base class of their own
        raise HarnessError(f"onnxruntime cannot open {request.model_path}: {error}", "check the model file") from error
    if session.get_providers()[0] != provider:
        raise HarnessError(
            f"onnxruntime fell back to {session.get_providers()[0]} where {provider} was asked for",
            "look for the library it could not load in the lines above, or use device cpu",
        )
    _require_tensors("input", {tensor.name for tensor in session.get_inputs()}, request.inputs)
    _require_tensors("output", {tensor.name for tensor in session.get_outputs()}, request.outputs)
    return OnnxRuntimeBackend(session, request.outputs)


def _require_tensors(kind: str, found: set[str], wanted: tuple[TensorSpec, ...]) -> None:
    missing = [spec.name for spec in wanted if spec.name not in found]
    if missing:
        raise HarnessError(
            f"the ONNX file has no {kind} {', '.join(missing)}; it has: {', '.join(sorted(found))}",
            "use the file that the model's recipe makes",
        )
