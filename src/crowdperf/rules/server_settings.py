"""What run.json asks of a backend that asks a server (triton), and what becomes of it. Pure.

    "serving": {"server": "server.json", "batching": "server", "transport": "grpc", "instance_count": 2,
                "max_queue_delay_us": 2000, "preferred_batch_size": [8], "max_batch_size": null}

The key is there for such backends only; null in it means that the harness decides (`runner/server_layouts.py`).
batching "client": the harness makes the batches, one request each. "server": each sample is a request of its own, many
are in flight, and the server's batcher joins those that wait.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from crowdperf.kit.records import COUNT, Kind, list_of, one_of, whole
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

BATCHING = ("client", "server")
TRANSPORTS = ("grpc", "http", "shm")


def _batch_sizes(value: object) -> tuple[int, ...] | None:
    """Return batch sizes, smallest first."""
    return tuple(sorted(set(list_of(COUNT, "").convert(value) or ()))) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """How a server runs a model. instance_count: processes, with Python-based backends of Triton. The server's batcher
    makes batches of at most max_batch_size, does not wait beyond a preferred_batch_size, and waits max_queue_delay_us.
    """

    batching: str = "client"
    instance_count: int = 1
    max_queue_delay_us: int = 0
    preferred_batch_size: tuple[int, ...] = ()
    max_batch_size: int

    @property
    def is_batched_by_server(self) -> bool:
        """Whether the server makes the batches."""
        return self.batching == "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(ServedModel):
    """How a server is set up for a run."""

    server: Path
    transport: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRequest:
    """`serving` of run.json; None where the harness decides. server: the server.json of get-triton-server."""

    server: Path
    batching: Annotated[str, one_of(BATCHING)] | None
    transport: Annotated[str, one_of(TRANSPORTS)] | None
    instance_count: Annotated[int, COUNT] | None
    max_queue_delay_us: Annotated[int, whole(0, 2**63 - 1)] | None
    preferred_batch_size: Annotated[tuple[int, ...], Kind("a list of whole numbers from 1", _batch_sizes)] | None
    max_batch_size: Annotated[int, COUNT] | None

    @property
    def is_batched_by_server(self) -> bool:
        """Whether the server makes the batches."""
        return self.batching == "server"

    def given(self) -> dict[str, Any]:
        """Return what the request decides, as JSON; where the server lies is no part of it."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "server"}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def largest_batch(self, largest: int) -> int:
        """Return the largest batch of one request. largest: the benchmark's."""
        return min(largest, self.max_batch_size or largest)

    def model(self, largest: int) -> ServedModel:
        """Return how the server runs the model, with defaults. largest: the benchmark's largest batch."""
        return ServedModel(**{"max_batch_size": max(largest, *(self.preferred_batch_size or (1,))), **self._of_model()})

    def serving(self, largest: int, processes: int, delay_us: int | None) -> Serving:
        """Return how the server is set up. largest, processes: where the request has none. delay_us: also where it has
        one, which may not apply."""
        defaults = {"max_batch_size": largest, "instance_count": processes}
        decided = {**defaults, **self._of_model(), "max_queue_delay_us": delay_us or 0}
        return Serving(server=self.server, transport=self.transport or TRANSPORTS[0], **decided)

    def _of_model(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(ServedModel)}
        return {name: value for name, value in values.items() if value is not None}


INPUTS = tuple(one.name for one in fields(ServingRequest) if one.name != "server")
"""The inputs with these settings, in the order of run.json."""


def check_serving(request: ServingRequest, scenario: Scenario, note: Callable[[str, str, str], None]) -> None:
    """Note (key, value found, values allowed) for what does not go together."""
    if not request.is_batched_by_server:
        for name in ("max_queue_delay_us", "preferred_batch_size"):
            if request.given()[name] is not None:
                note(
                    f"serving.{name}", str(request.given()[name]), 'null: only the server\'s batcher ("server") has it'
                )
    largest = request.max_batch_size
    if largest is not None and any(size > largest for size in request.preferred_batch_size or ()):
        found = str(list(request.preferred_batch_size or ()))
        note("serving.preferred_batch_size", found, f"sizes up to max_batch_size ({largest})")
    needed = MULTI_STREAM_SAMPLES_PER_QUERY
    if scenario is Scenario.MULTI_STREAM and not request.is_batched_by_server and (largest or needed) < needed:
        note("serving.max_batch_size", str(largest), f"at least {needed}: a MultiStream query is one batch")
