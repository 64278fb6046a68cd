"""The backend PyTorch."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="pytorch",
    model_files="pytorch",
    devices=("cpu", "cuda"),
    precisions=("fp32", "fp16", "bf16"),
    gpu_precisions=("tf32",),
    packages=(
        Package(name="safetensors", tags="_package.safetensors"),
        Package(name="torch", tags="_torch_cpu", device="cpu"),
        Package(name="torch", tags="_torch_cuda", version_min="2.4.0", device="cuda"),
    ),
    library="torch",
)
