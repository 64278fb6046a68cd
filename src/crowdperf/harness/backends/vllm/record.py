"""The backend vllm: vLLM's server, started for the run, answers by OpenAI's HTTP API. On GPUs not run on hardware."""

from crowdperf.harness.backends.endpoint.record import CLIENT_PACKAGES
from crowdperf.rules.record import BackendRecord

RECORD = BackendRecord(
    framework="huggingface",
    model_files="huggingface",
    devices=("cpu", "cuda"),
    precisions=("fp32", "bf16"),
    gpu_precisions=("fp16",),
    # The client alone: the server has a virtual environment of its own (get-vllm-server), with some 150 packages.
    packages=CLIENT_PACKAGES,
    short_name="vLLM",
    recipes=("get,vllm,server",),
    gpu_recipes=("get,vllm,server,_cuda",),
    is_text=True,
    tokenizes=True,
)
