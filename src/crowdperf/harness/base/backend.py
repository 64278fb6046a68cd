"""What a backend is: something that opens a network file on a device and answers batches. It knows no LoadGen, no data
set, no accuracy.

`<name>/backend.py` holds the members of BackendModule; see `null` for the smallest, docs/howto/add-backend.md for the
steps. What it can run stands in `<name>/record.py` (crowdperf/rules/record.py).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from crowdperf.harness.base.tensors import Infer, NetworkSpec, Tensors
from crowdperf.logs.run_log import Json
from crowdperf.rules.server_settings import Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRequest:
    """What to open. `path` is None only for a backend whose record names no framework.

    config: model.json's, for backends that build the network themselves. precision: "fp32", "tf32" (on GPUs),
    "fp16", "bf16", "int8".
    gpus: device indices, empty for device cpu. instances: how many callers infer at the same time; each has an
    instance of its own. threads: CPU threads of one call. cores: for each instance the cores it may use, or empty.
    is_spinning: whether a waiting CPU thread may keep its core busy (only where nobody else needs the core).
    largest_batch: the most samples of one call. architecture: the benchmark's folder, whose network.py builds it.
    engine: model.json's, what an engine was built with and for; empty for other files.
    folder: that of the run, where a backend may leave what it wrote. serving: how a server is to be set up; None for a
    backend that asks none.
    """

    network: NetworkSpec
    path: Path | None
    architecture: str
    config: Mapping[str, Any]
    precision: str
    device: str
    gpus: tuple[int, ...]
    instances: int
    threads: int
    cores: tuple[tuple[int, ...], ...]
    is_spinning: bool
    largest_batch: int
    engine: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    serving: Serving | None = None

    @property
    def file(self) -> Path:
        """The path, for backends that read a file: the runner refuses a run of theirs without one."""
        assert self.path is not None
        return self.path


def choose_tf32(precision: str) -> bool:
    """Return whether NVIDIA's libraries may multiply fp32 numbers in TensorFloat-32, which has ten bits of mantissa and
    is another precision, and tell them (cuBLAS, cuDNN and TensorRT read the variable when they start, and it overrules
    what a program sets): in "tf32" only, whatever the caller's environment says."""
    if precision == "tf32":
        os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
        return True
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    return False


class Backend(Protocol):
    """An opened network."""

    def instance(self, number: int) -> Infer:
        """Return the call for instance `number` (0 to `instances` - 1). Each is used by one thread at a time; different
        ones at once. It lets go of Python's global lock while the network runs. Outputs must stay unchanged until
        the instance's next call."""

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the libraries that answer, for result.json."""

    def close(self) -> None:
        """Free what was opened."""


DevicePost: TypeAlias = Callable[[Mapping[str, Infer], Tensors, Callable[[str, Any], Any]], Any]
"""A model's `device_post` (crowdperf/harness/base/model.py)."""


@runtime_checkable
class DeviceBackend(Backend, Protocol):
    """A backend that has its outputs as torch tensors on a device before it copies them to the host."""

    def responding(self, post: DevicePost, number: int) -> Callable[[Tensors], Any]:
        """Return the call of instance `number` from a batch of samples to the responses that `post` makes on the
        device: an array, or one for each sample. They stay unchanged until the instance's next call."""


@runtime_checkable
class SharedBackend(Backend, Protocol):
    """A backend whose instances can be added while it is open: layouts of more instances share its weights."""

    def keep(self, instances: int) -> None:
        """Free all but the first so many instances."""


@runtime_checkable
class ServedBackend(Backend, Protocol):
    """A backend whose answers come from a server that counts for itself."""

    def start_count(self) -> None:
        """Begin to count: the test comes next. Raises HarnessError."""

    def served(self, samples: int) -> Mapping[str, Json]:
        """Return the server's figures of the test, in which LoadGen got `samples` samples; raises HarnessError where
        the server did not compute them."""


class BackendModule(Protocol):
    """The members of a `backend.py`. One for GPUs may have `sample_memory(gpu, shape, dtype)` too, which returns an
    array in memory that all GPUs copy from directly; `gpu` is one of the run's. Its calls then take `Rows` of it."""

    def open_backend(self, request: BackendRequest) -> Backend:
        """Return the opened backend; raises HarnessError when the file or the device cannot be used as asked for."""
