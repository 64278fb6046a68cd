"""How a network is served by processes of a server: the layouts to try, and every setting of the server with its
origin. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.harness.runner.settings import Origin
from crowdperf.harness.runner.shape_search import Layout
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario
from crowdperf.rules.server_settings import Serving, ServingRequest

IN_FLIGHT = 32
"""Default number of requests that wait for the server's batcher in Offline and Server: this project's choice, two
full batches of SERVER_BATCH."""
SERVER_BATCH = 16
"""Default of the largest batch of the server's batcher: this project's choice."""
REQUEST_BYTES, REQUEST_SAMPLES = 2**20, 512
"""A request costs about 1 ms, whatever its size (Triton 2.51.0, 2026-11), so where samples are small, Offline and
Server look for the best batch from so many bytes or samples of a request downwards: this project's choice."""
_FEW_CORES = 8
"""From so many cores on, a process of the model gets four: each process has the weights in memory."""


@dataclass(frozen=True, slots=True)
class ServedPlan:
    """How a server is set up, and where each value comes from."""

    serving: Serving
    origins: Mapping[str, Origin]

    def record(self) -> dict[str, Any]:
        values = {name: getattr(self.serving, name) for name in self.origins}
        return {
            name: {"value": list(value) if isinstance(value, tuple) else value, "origin": self.origins[name].value}
            for name, value in values.items()
        }


def _processes(scenario: Scenario, cores: int) -> int:
    """Return the number of processes of a model that share `cores`: one if only one sample is requested at a time."""
    if scenario is Scenario.SINGLE_STREAM:
        return 1
    return cores if cores < _FEW_CORES else cores // 4


def largest_request(network: NetworkSpec, scenario: Scenario, largest: int) -> int:
    """Return the maximum samples of a request if the harness makes the batches. `largest`: that of the benchmark."""
    tensors = (*network.inputs, *network.outputs)
    if scenario.is_stream or not all(spec.is_fixed for spec in tensors):
        return largest
    return max(largest, min(REQUEST_SAMPLES, REQUEST_BYTES // sum(spec.size_bytes for spec in tensors)))


def _in_flight(scenario: Scenario) -> int:
    if scenario.is_stream:
        return 1 if scenario is Scenario.SINGLE_STREAM else MULTI_STREAM_SAMPLES_PER_QUERY
    return IN_FLIGHT


def served_layouts(
    request: ServingRequest, scenario: Scenario, cores: int, instances: int | None, threads: int | None
) -> tuple[Layout, ...]:
    """Return the layouts to try. Each requires a start of the server. `instances`: requests in flight. `threads`: of
    all processes of the model (a layout's are those of one). Given values are kept."""
    total = threads or cores
    if request.is_batched_by_server:
        count = request.instance_count or _processes(scenario, total)
        return (Layout(instances or _in_flight(scenario), max(1, total // count)),)
    given = request.instance_count or instances
    if given is not None:
        return (Layout(instances or given, max(1, total // given)),)
    alone = Layout(1, total)
    if scenario.is_stream or total == 1:
        return (alone,)
    several = _processes(scenario, total)
    return (Layout(several, total // several), alone)


def resolve_serving(
    request: ServingRequest, scenario: Scenario, layout: Layout, total_threads: int, largest_batch: int
) -> ServedPlan:
    """Return the server's settings in a layout. largest_batch: the most samples of one request."""
    given = request.given()
    origins = {name: Origin.DEFAULT if value is None else Origin.USER for name, value in given.items()}
    delay_us, preferred = request.max_queue_delay_us, request.preferred_batch_size or ()
    if scenario is Scenario.SINGLE_STREAM:  # one sample at a time: whoever waits, waits for nobody
        delay_us, origins["max_queue_delay_us"] = 0, Origin.RULE
    by_server = request.is_batched_by_server
    processes = max(1, total_threads // layout.threads) if by_server else layout.instances
    largest = max(SERVER_BATCH, *preferred, largest_batch) if by_server else largest_batch
    serving = request.serving(largest, processes, delay_us)
    return ServedPlan(serving, origins)
