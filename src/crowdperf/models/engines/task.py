"""What to build an engine from, and for what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec

Bounds = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to build. precision: what the networks compute in, "" for the file's own.

    For TensorRT only: largest_batch: None for the largest that the harness tries. sizes: smallest, tuned for and
    largest value of named sizes, where those of the benchmark's record do not suit or are missing. timing_cache: read
    and written back. compute_capability: of the GPU to build for ("SM89"), where the library can name one; else this
    machine's.
    """

    model: str
    model_info: Path
    output_dir: Path
    library: str = "tensorrt"
    precision: str = ""
    largest_batch: int | None = None
    sizes: Mapping[str, Bounds] = field(default_factory=dict)
    workspace_mb: int | None = None
    timing_cache: Path | None = None
    compute_capability: str | None = None


class Maker(Protocol):
    """The members of a `with_<library>.py`."""

    READS: str
    """The `framework` of the model.json that it builds from."""

    FRAMEWORK: str
    """What model.json names, and a backend's record."""

    def suffix(self, task: Task) -> str:
        """Return the end of the files' names."""

    def require_precision(self, found: str, wanted: str) -> None:
        """Raise HarnessError where files in the precision `found` make no engine in the precision `wanted`."""

    def build_network(self, task: Task, spec: NetworkSpec, file: Path, precision: str) -> bytes:
        """Return the engine of one network that computes in `precision`; raises HarnessError."""

    def facts(self, task: Task) -> dict[str, Any]:
        """Return what model.json's `engine` says of how and for what the engines were built."""


def parse_sizes(texts: Sequence[str]) -> dict[str, Bounds]:
    """Return the bounds in words such as "tokens=1:384:384"; raises HarnessError."""
    sizes = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        try:
            smallest, tuned, largest = (int(number) for number in numbers.split(":"))
        except ValueError:
            smallest = tuned = largest = 0
        if not name or not 1 <= smallest <= tuned <= largest:
            raise HarnessError(f"--sizes {text!r}; allowed: NAME=SMALLEST:TUNED_FOR:LARGEST, rising, from 1")
        sizes[name] = (smallest, tuned, largest)
    return sizes
