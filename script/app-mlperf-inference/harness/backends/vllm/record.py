"""The backend vllm: vLLM's server for processors, started for the run, answers by OpenAI's HTTP API."""

from mlperf_results.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="huggingface",
    model_files="huggingface",
    devices=("cpu",),
    precisions=("fp32", "bf16"),
    # The client alone: the server has a virtual environment of its own (get-vllm-server), with some 150 packages.
    packages=(
        Package(name="aiohttp", tags="_package.aiohttp", version_min="3.9.0"),
        Package(name="tokenizers", tags="_package.tokenizers", version_min="0.15.0"),
    ),
    short_name="vLLM",
    recipes=("get,vllm,server",),
    is_text=True,
)
