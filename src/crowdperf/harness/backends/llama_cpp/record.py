"""The backend llama_cpp: llama.cpp's own server, from the wheels of xllamacpp, started for the run, answers by HTTP."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="gguf",
    model_files="gguf",
    devices=("cpu",),
    precisions=("int4", "int8", "fp16", "bf16", "fp32"),
    packages=(
        Package(name="tokenizers", tags="_package.tokenizers", version_min="0.15.0"),
        # llama-cpp-python has no wheels: it takes a C++ compiler and many minutes.
        Package(name="xllamacpp", tags="_package.xllamacpp", version_min="2026.10.11549"),
    ),
    library="xllamacpp",
    short_name="llama.cpp",
    is_text=True,
    tokenizes=True,
)
