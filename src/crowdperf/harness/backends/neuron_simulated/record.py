"""The backend neuron_simulated: a stand-in for neuron on the processor."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="neuron_simulated",
    model_files="pytorch",
    engine="neuron_simulated",
    engine_suffix="pt",
    devices=("cpu",),
    precisions=("fp32",),
    packages=(Package(name="tritonclient", tags="_package.tritonclient[grpc]", version_min="2.60.0"),),
    library="tritonclient",
    recipes=("get,triton,server,_neuron-simulated",),
    is_served=True,
    only_with="neuron_batch",
    server="triton",
    stand_in="SIMULATED Neuron: computed on the CPU, not on AWS Inferentia, and does not reflect its speed or compiler",
    simulates="neuron",
)
