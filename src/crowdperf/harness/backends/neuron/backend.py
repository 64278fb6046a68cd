"""The neuron backend: a tritonserver of this machine answers, with a network that AWS's compiler made for NeuronCores.

Not run on hardware: `neuron_simulated` proves everything but the calls of AWS's library (triton_model.py). What
the network was compiled with is in model.json's `engine` (crowdperf/models/engines/with_neuron.py).
"""

from collections.abc import Mapping
from pathlib import Path

from crowdperf.harness.backends.neuron import layout
from crowdperf.harness.backends.triton import repository
from crowdperf.harness.backends.triton.backend import Served, TritonBackend, require_server, start_served
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Infer, NetworkSpec, Tensors
from crowdperf.logs.run_log import Json

IMPORT_S = 4.0
"""How long each process may take to import torch: 3 s of processor time (torch 2.13.0 for processors, 2026-11)."""


class NeuronBackend(TritonBackend):
    """Translates between the tensors of the benchmark's network and those of the compiled one."""

    def __init__(self, served: Served, network: NetworkSpec, settings: layout.NeuronSettings) -> None:
        super().__init__(served)
        self._network, self._wire, self._settings = network, served.network, settings

    def instance(self, number: int) -> Infer:
        """Return the call; batches are padded to the one size that the network was compiled for."""
        ask, network, wire = super().instance(number), self._network, self._wire

        def infer(inputs: Tensors) -> Tensors:
            return layout.from_wire(network, inputs, ask(layout.to_wire(network, wire, inputs)))

        return infer

    def served(self, samples: int) -> Mapping[str, Json]:
        """Return Triton's figures, and which NeuronCores each instance had."""
        return {
            **super().served(samples),
            "served_by": f"python backend, {self._settings.library}",
            "neuron_cores": list(layout.core_ranges(self._settings)),
        }


def cores_of_machine() -> int:
    """Return how many NeuronCores there are; raises HarnessError where a program can use none."""
    from crowdperf.machine import neuron  # the stand-in does not need it
    from crowdperf.machine.probe import Machine

    machine = Machine()
    if why := neuron.missing(machine):
        raise HarnessError(why, "--simulate=neuron runs the same path on the CPU")
    return neuron.core_count(machine)


def open_compiled(request: BackendRequest, cores: int) -> NeuronBackend:
    """Start a server with the compiled network on `cores` NeuronCores; raises HarnessError with the server's reason."""
    serving, path = require_server(request)
    network = repository.require_servable(request.architecture, [request.network])
    layout.require_client_batches(serving.batching)
    sizes = {str(name): int(size) for name, size in dict(request.engine.get("sizes") or {}).items()}
    wire = layout.wire_network(network, sizes)
    settings = layout.NeuronSettings(
        served=serving,
        cores=cores,
        threads_per_core=layout.THREADS_PER_CORE,
        library=str(request.engine.get("runs_with")),
    )
    text = layout.config_text(request.architecture, path.name, wire, settings)

    def write(folder: Path, _: Path) -> None:
        layout.write_repository(folder, request.architecture, path, text)

    return NeuronBackend(start_served(request, wire, text, write, IMPORT_S), network, settings)


def open_backend(request: BackendRequest) -> NeuronBackend:
    """Start a server on all NeuronCores of this machine; raises HarnessError without a Neuron device."""
    return open_compiled(request, cores_of_machine())
