"""The pytorch backend: builds the network of a benchmark's network.py, loads its weights from a safetensors file
and runs it on the processor or on NVIDIA GPUs (`torch_cuda.py`).

On the processor every instance shares the module (a forward pass changes nothing in it) and has its own OpenMP team,
which stays on the cores of the thread that calls first. Networks of convolutions and fixed shapes are traced and fused,
which made resnet50 1.4 times as fast (13.4 against 9.4 samples/s on one thread, November 2026). int8 is not offered:
quantised files are ONNX files.
"""

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, TensorSpec
from crowdperf.harness.watch.processor import has_bf16_matmul

_PROFILED_CALLS = 3
"""TorchScript looks at the first calls and optimises in the next."""
_TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class ProcessorBackend:
    """A module on the processor."""

    def __init__(self, module: nn.Module, request: BackendRequest) -> None:
        self._is_fused = request.precision == "fp32"
        self._module: nn.Module | None = fused(module, request.network) if self._is_fused else module
        self._is_fused = self._module is not module
        self._request = request

    def instance(self, number: int) -> Infer:
        """Return the call; torch releases Python's global lock inside its operators."""
        module, network, threads = self._module, self._request.network, self._request.threads
        assert module is not None
        dtype = _TYPES[self._request.precision]
        form = memory_format_of(module)
        teams: set[int] = set()  # one element once this instance's thread has its own number of OpenMP threads

        def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            if not teams:
                torch.set_num_threads(threads)  # OpenMP keeps the number for each calling thread
                teams.add(threads)
            with torch.inference_mode():
                tensors = [to_tensor(inputs[spec.name], dtype, form) for spec in network.inputs]
                return by_name(network, module(*tensors))

        return infer

    def versions(self) -> Mapping[str, str]:
        return {"torch": str(torch.__version__), "torch graph": "fused" if self._is_fused else "eager"}

    def close(self) -> None:
        self._module = None


def to_tensor(value: Any, dtype: torch.dtype, form: torch.memory_format) -> torch.Tensor:
    """Return an array as a tensor, floats as `dtype`; states of an earlier call are tensors already, perhaps of a
    network that computes in another type."""
    if not isinstance(value, np.ndarray):
        tensor: torch.Tensor = value
        return tensor.to(dtype) if tensor.is_floating_point() else tensor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # samples may be mapped from a file and read-only; nothing writes to them
        tensor = torch.from_numpy(np.ascontiguousarray(value))
    if tensor.is_floating_point():
        tensor = tensor.to(dtype)
    return tensor.contiguous(memory_format=form) if tensor.dim() == 4 else tensor


def to_array(spec: TensorSpec, tensor: torch.Tensor) -> Any:
    """Return an output of the network in the type of its specification; a state stays a tensor."""
    if spec.is_state:
        return tensor
    dtype: torch.dtype = getattr(torch, spec.dtype)
    return tensor.to(dtype).contiguous().numpy()


def by_name(network: NetworkSpec, answers: Any) -> dict[str, Any]:
    pairs = zip(network.outputs, _as_tuple(answers), strict=True)
    return {spec.name: to_array(spec, answer) for spec, answer in pairs}


def memory_format_of(module: nn.Module) -> torch.memory_format:
    """Return how images lie in memory: oneDNN and cuDNN convolve fastest with the channels last."""
    has_images = any(isinstance(part, nn.Conv2d | nn.ConvTranspose2d) for part in module.modules())
    return torch.channels_last if has_images else torch.contiguous_format


def fused(module: nn.Module, network: NetworkSpec) -> nn.Module:
    """Return the module traced, frozen and fused by TorchScript; itself where that does not pay or does not hold.

    A trace is of one batch size, so its answers for another one are compared with the module's own.
    """
    tensors = (*network.inputs, *network.outputs)
    is_fixed = all(tensor.is_fixed and not tensor.is_state for tensor in tensors)
    if not is_fixed or memory_format_of(module) is not torch.channels_last:
        return module
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # tracing tells of every Python number in a shape
        try:
            traced: Any = torch.jit.trace(module, _samples_of(network, 2), check_trace=False)  # type: ignore[no-untyped-call]
            made: nn.Module = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
            inputs = _samples_of(network, 3)
            for _ in range(_PROFILED_CALLS):
                found, wanted = made(*inputs), module(*inputs)
        except RuntimeError:
            return module
    pairs = zip(_as_tuple(found), _as_tuple(wanted), strict=True)
    holds = all(torch.allclose(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max())) for one, other in pairs)
    return made if holds else module


def _samples_of(network: NetworkSpec, count: int) -> tuple[torch.Tensor, ...]:
    """Return seeded noise as a network's inputs, ones where whole numbers are wanted."""
    generator = torch.Generator().manual_seed(count)
    rows = []
    for spec in network.inputs:
        dtype: torch.dtype = getattr(torch, spec.dtype)
        shape = (count, *spec.fixed_shape)
        is_float = dtype.is_floating_point
        rows.append(torch.randn(shape, generator=generator) * 50 if is_float else torch.ones(shape, dtype=dtype))
    form = torch.channels_last
    return tuple(row.contiguous(memory_format=form) if row.dim() == 4 else row for row in rows)


def _as_tuple(answers: Any) -> tuple[torch.Tensor, ...]:
    return answers if isinstance(answers, tuple) else (answers,)


@contextlib.contextmanager
def _without_weights() -> Iterator[None]:
    """Let modules that are built in this block have no memory for their parameters; tables that no file has are made.

    torch's device "meta" would drop those tables too.
    """
    register = nn.Module.register_parameter

    def register_empty(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        register(module, name, parameter)
        if parameter is not None:
            module._parameters[name] = nn.Parameter(parameter.to("meta"), requires_grad=False)

    owner: Any = nn.Module
    owner.register_parameter = register_empty
    try:
        yield
    finally:
        owner.register_parameter = register


def build_module(request: BackendRequest, device: torch.device | None = None) -> nn.Module:
    """Return the network with its weights, in eval mode; raises HarnessError for files that do not fit it.

    device: where the weights are read to, without a copy of them on the host; None: the processor's memory.
    """
    from safetensors.torch import load_file

    from crowdperf.harness.base.architecture import architecture_of

    if not request.config:
        raise HarnessError(
            "model.json has no config to build the network with", "use the model's recipe with the variation _pytorch"
        )
    with contextlib.nullcontext() if device is None else _without_weights():
        module = architecture_of(request.architecture).build(request.network.name, request.config).eval()
    try:
        state = load_file(request.file, device="cpu" if device is None else str(device))
    except Exception as error:  # safetensors' own error has no public base class
        raise HarnessError(f"cannot read the weights {request.path}: {error}", "rebuild the model") from error
    try:
        module.load_state_dict(state, assign=device is not None)
    except RuntimeError as error:
        message = f"{request.path} does not match benchmarks/{request.architecture}/network.py: {error}"
        raise HarnessError(message, "rebuild the model") from error
    module = module.requires_grad_(False).to(device=device, dtype=_TYPES[request.precision])
    form = memory_format_of(module)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 4:
                parameter.data = parameter.data.contiguous(memory_format=form)
    return module


def open_backend(request: BackendRequest) -> Any:
    """Return the opened network; raises HarnessError when device, precision or file cannot be used as asked for."""
    if request.device == "cuda":
        from crowdperf.harness.base.torch_cuda import open_on_gpus

        return open_on_gpus(request, lambda device: build_module(request, device))
    if request.precision == "fp16":
        raise HarnessError(
            "backend pytorch does not support fp16 on the CPU (torch has no fast kernels for it); supported: "
            "fp32, bf16",
            "use fp32, or device cuda",
        )
    if request.precision == "bf16" and not has_bf16_matmul():
        print("pytorch: this CPU has no AMX, so bf16 is slower than fp32 here", file=sys.stderr)
    return ProcessorBackend(build_module(request), request)


def sample_memory(gpu: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    from crowdperf.harness.base.torch_cuda import sample_memory as pinned

    return pinned(gpu, shape, dtype)
