"""Asks a tritonserver: one connection for each caller, over gRPC, HTTP, or gRPC with the tensors in shared memory.

Messages are those of the KServe protocol, version 2, with Triton's extensions for binary tensors and shared memory
(triton-inference-server/server, docs/protocol). gRPC's come from tritonclient; HTTP needs only the standard library.
"""

import http.client
import json
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from crowdperf.harness.backends.triton.repository import DATA_TYPES
from crowdperf.harness.backends.triton.server import TritonServer
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.server_supervisor import SHARED_MEMORY
from crowdperf.harness.base.supervised_server import HOST
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec

_DTYPES = {name: np.dtype(dtype) for dtype, name in DATA_TYPES.items()}
_LARGEST_MESSAGE = 2**31 - 1
"""Bytes of a gRPC message: Triton's own limit (MAX_GRPC_MESSAGE_SIZE, INT32_MAX)."""


class Caller(Protocol):
    """One connection to the server, used by one thread at a time."""

    def ask(self, inputs: Tensors) -> dict[str, Array]:
        """Return the outputs of one request; raises HarnessError."""

    def close(self) -> None:
        """End the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is asked: a model of a server. largest_batch: the most samples of one request."""

    server: TritonServer
    model: str
    network: NetworkSpec
    largest_batch: int


def wire_shape(spec: TensorSpec, array: Array) -> tuple[int, ...]:
    """Return the shape that Triton is told: a tensor with one number for each sample has a size of 1 there."""
    return array.shape if spec.shape else (*array.shape, 1)


def _answers(network: NetworkSpec, found: Mapping[str, Array], count: int) -> dict[str, Array]:
    """Return the outputs in the shapes and types that the network declares; raises HarnessError for others."""
    answers = {}
    for spec in network.outputs:
        array = found.get(spec.name)
        if array is None:
            raise HarnessError(
                f"Triton answered without the output {spec.name}. Its outputs: {', '.join(found) or 'none'}"
            )
        if not spec.shape and array.shape == (count, 1):
            array = array.reshape(count)
        fits = len(array.shape) == len(spec.shape) + 1 and all(
            size == wanted for size, wanted in zip(array.shape[1:], spec.shape, strict=True) if isinstance(wanted, int)
        )
        if not fits or len(array) != count or array.dtype != spec.dtype:
            wanted_text = f"{spec.dtype}{[count, *spec.shape]}"
            raise HarnessError(
                f"Triton answered {array.dtype}{list(array.shape)} for the output {spec.name}, expected {wanted_text}",
                "use the model file that belongs to this model",
            )
        answers[spec.name] = array
    return answers


def _array(name: str, datatype: str, shape: Sequence[int], raw: bytes | memoryview) -> Array:
    """Return a tensor of an answer; raises HarnessError where its bytes are not those of its shape."""
    dtype = _DTYPES.get(datatype)
    expected = -1 if dtype is None else int(dtype.itemsize * np.prod(shape, dtype=np.int64))
    if len(raw) != expected:
        raise HarnessError(
            f"Triton answered {datatype}{list(shape)} for {name} with {len(raw)} bytes",
            "numpy in the server's environment must be below 2: cm run script --tags=get,triton,server --renew",
        )
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


class GrpcCaller:
    """Tensors in the messages of a gRPC channel of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        options = [
            ("grpc.use_local_subchannel_pool", 1),  # else all channels to one address share a connection
            ("grpc.max_send_message_length", _LARGEST_MESSAGE),
            ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
        ]
        self._channel = grpc.insecure_channel(f"{HOST}:{target.server.grpc_port}", options=options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    def ask(self, inputs: Tensors) -> dict[str, Array]:
        """Return the outputs of one request; raises HarnessError."""
        request, count = self._request(inputs)
        request.raw_input_contents.extend(inputs[spec.name].tobytes() for spec in self._target.network.inputs)
        answer = self._send(lambda: self._stub.ModelInfer(request))
        raws = answer.raw_output_contents
        if len(raws) != len(answer.outputs):
            raise HarnessError(f"Triton answered {len(answer.outputs)} outputs with {len(raws)} contents")
        found = {
            output.name: _array(output.name, output.datatype, output.shape, raw)
            for output, raw in zip(answer.outputs, raws, strict=True)
        }
        return _answers(self._target.network, found, count)

    def close(self) -> None:
        self._channel.close()

    def _request(self, inputs: Tensors) -> tuple[Any, int]:
        request = service_pb2.ModelInferRequest(model_name=self._target.model)
        count = 0
        for spec in self._target.network.inputs:
            array = inputs[spec.name]
            count = len(array)
            request.inputs.add(
                name=spec.name, datatype=DATA_TYPES[array.dtype.name], shape=wire_shape(spec, array)
            )  # fmt: skip
        return request, count

    def _send(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except grpc.RpcError as error:
            raise failed(self._target.server, f"{error.code().name}: {error.details()}") from error


def failed(server: TritonServer, told: str) -> HarnessError:
    """Return the error of a request that was not answered."""
    state = "" if server.is_alive else " (the server has ended)"
    return HarnessError(f"Triton did not answer a request{state}: {told}", f"its log: {server.log}")


class SharedMemoryCaller(GrpcCaller):
    """Tensors in a region of /dev/shm that the server maps, too; the messages hold only where."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._places: dict[str, tuple[int, int]] = {}
        size = 0
        for spec in (*target.network.inputs, *target.network.outputs):
            length = target.largest_batch * spec.size_bytes
            self._places[spec.name] = (size, length)
            size += -(-length // 64) * 64  # each tensor at a multiple of a cache line
        self._region = f"{target.server.prefix}client_{id(self):x}"
        self._path = SHARED_MEMORY / self._region
        self._memory = _shared_memory(self._path, size)
        register = service_pb2.SystemSharedMemoryRegisterRequest(
            name=self._region, key=f"/{self._region}", offset=0, byte_size=size
        )
        self._send(lambda: self._stub.SystemSharedMemoryRegister(register))

    def ask(self, inputs: Tensors) -> dict[str, Array]:
        """Return the outputs of one request, as views of the region: the next call overwrites them."""
        request, count = self._request(inputs)
        for tensor in request.inputs:
            start, _ = self._places[tensor.name]
            raw = np.ascontiguousarray(inputs[tensor.name])
            self._memory[start : start + raw.nbytes] = raw.tobytes()
            self._place(tensor.parameters, tensor.name, raw.nbytes)
        for spec in self._target.network.outputs:
            output = request.outputs.add(name=spec.name)
            self._place(output.parameters, spec.name, self._places[spec.name][1])
        answer = self._send(lambda: self._stub.ModelInfer(request))
        found = {}
        for output in answer.outputs:
            start, length = self._places.get(output.name, (0, 0))
            found[output.name] = _view(self._memory, start, length, output)
        return _answers(self._target.network, found, count)

    def _place(self, parameters: Any, name: str, size: int) -> None:
        parameters["shared_memory_region"].string_param = self._region
        parameters["shared_memory_offset"].int64_param = self._places[name][0]
        parameters["shared_memory_byte_size"].int64_param = size

    def close(self) -> None:
        """Close the channel and remove the region; views of it that are still held keep their memory."""
        super().close()
        self._path.unlink(missing_ok=True)


def _view(memory: mmap.mmap, start: int, length: int, output: Any) -> Array:
    dtype, count = _DTYPES.get(output.datatype), int(np.prod(output.shape, dtype=np.int64))
    if dtype is None or count * dtype.itemsize > length:
        raise HarnessError(f"Triton answered {output.datatype}{list(output.shape)} for {output.name}: over its place")
    return np.frombuffer(memory, dtype=dtype, count=count, offset=start).reshape(tuple(output.shape))


def _shared_memory(path: Path, size: int) -> mmap.mmap:
    """Return a new region of /dev/shm, all of it taken; raises HarnessError where there is no room."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # without it a full /dev/shm shows as a SIGBUS in the run
            return mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise HarnessError(
            f"{size / 1e6:.1f} MB of shared memory in {SHARED_MEMORY} are not available: {error.strerror}",
            "--transport=grpc needs no shared memory. In a container, set a larger --shm-size",
        ) from error


class HttpCaller:
    """Tensors as binary data behind the JSON of an HTTP request, on a connection that stays open."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = http.client.HTTPConnection(HOST, target.server.http_port)
        self._path = f"/v2/models/{target.model}/infer"
        self._outputs = [{"name": spec.name, "parameters": {"binary_data": True}} for spec in target.network.outputs]

    def ask(self, inputs: Tensors) -> dict[str, Array]:
        """Return the outputs of one request; raises HarnessError."""
        tensors, raws, count = [], [], 0
        for spec in self._target.network.inputs:
            array = inputs[spec.name]
            raw, count = array.tobytes(), len(array)
            shape, parameters = list(wire_shape(spec, array)), {"binary_data_size": len(raw)}
            datatype = DATA_TYPES[array.dtype.name]
            tensors.append({"name": spec.name, "datatype": datatype, "shape": shape, "parameters": parameters})
            raws.append(raw)
        head = json.dumps({"inputs": tensors, "outputs": self._outputs}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        try:
            self._connection.request("POST", self._path, body=b"".join([head, *raws]), headers=headers)
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise failed(self._target.server, repr(error)) from error
        if response.status != 200:
            raise failed(self._target.server, f"status {response.status}: {body[:400].decode(errors='replace')}")
        length = int(response.headers.get("Inference-Header-Content-Length", len(body)))
        found, start, view = {}, length, memoryview(body)
        for output in json.loads(body[:length])["outputs"]:
            end = start + output.get("parameters", {}).get("binary_data_size", 0)
            found[output["name"]] = _array(output["name"], output["datatype"], output["shape"], view[start:end])
            start = end
        return _answers(self._target.network, found, count)

    def close(self) -> None:
        self._connection.close()


CALLERS: Mapping[str, Callable[[Target], Caller]] = {
    "grpc": GrpcCaller, "http": HttpCaller, "shm": SharedMemoryCaller
}  # fmt: skip
