"""The backend neuron: AWS Inferentia behind Triton's Python backend, as in NVIDIA's submission to v2.0. Not run on
hardware."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="neuron",
    model_files="pytorch",
    engine="neuron",
    engine_suffix="pt",
    devices=("inferentia",),
    precisions=("fp32",),
    packages=(Package(name="tritonclient", tags="_package.tritonclient[grpc]", version_min="2.60.0"),),
    library="tritonclient",
    short_name="Triton_Inferentia",
    transformation="compiled for NeuronCores by AWS's neuron-cc or neuronx-cc",
    recipes=("get,triton,server,_neuron",),
    is_served=True,
    only_with="neuron_batch",
    server="triton",
    unfit={
        "cpu": "requires AWS Inferentia (--simulate=neuron runs the same path on the CPU)",
        "cuda": "it runs on AWS Inferentia",
    },
)
