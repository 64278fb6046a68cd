"""The backend torch_llm: this project's own Llama in torch, the reference of correctness."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="huggingface",
    model_files="huggingface",
    devices=("cpu", "cuda"),
    precisions=("fp32", "bf16"),
    packages=(
        Package(name="safetensors", tags="_package.safetensors"),
        Package(name="tokenizers", tags="_package.tokenizers", version_min="0.15.0"),
        Package(name="torch", tags="_torch_cpu", device="cpu"),
        Package(name="torch", tags="_torch_cuda", version_min="2.4.0", device="cuda"),
    ),
    library="torch",
    is_default=True,
    is_text=True,
    model_values={
        "model_type": ("llama",),
        "hidden_act": ("silu",),
        "attention_bias": (False, None),
        "mlp_bias": (False, None),
        "rope_type": ("default", "llama3"),
        "quantization_config": (None,),
    },
)
