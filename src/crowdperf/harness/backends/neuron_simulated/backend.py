"""The neuron_simulated backend: all that neuron does but the compiler and the NeuronCores. The processor computes a
TorchScript module, served by the same program, with the same layout and the same split of the cores.

A stand-in: its figures are no machine's. Results say that a stand-in made them, and no submission takes them.
"""

from crowdperf.harness.backends.neuron.backend import NeuronBackend, open_compiled
from crowdperf.harness.base.backend import BackendRequest

CORES = 4
"""As many as inf1.xlarge and inf1.2xlarge have (AWS Neuron documentation, Inf1 Architecture, read 2026-11-23)."""


def open_backend(request: BackendRequest) -> NeuronBackend:
    """Start a server as if this machine had CORES NeuronCores; raises as neuron's does."""
    return open_compiled(request, CORES)
