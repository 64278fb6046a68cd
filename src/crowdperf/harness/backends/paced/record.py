"""The backend paced: a stand-in."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnx",
    model_files="onnx",
    devices=("cpu",),
    precisions=("fp32",),
    batch_size=8,  # what a batch takes is its samples' time, so no other is better; MultiStream asks for eight
    packages=(Package(name="onnxruntime", tags="_package.onnxruntime", version_min="1.17.0"),),
    library="onnxruntime",
    stand_in="the paced backend waits before it answers: its results reflect a clock, not a computation",
)
