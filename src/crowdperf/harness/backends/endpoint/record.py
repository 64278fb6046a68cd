"""The backend endpoint: a server behind a URL answers, by OpenAI's HTTP API."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework=None,
    devices=("cpu",),  # of this machine, which only asks
    precisions=("fp32", "fp16", "bf16", "int8"),
    packages=(Package(name="tokenizers", tags="_package.tokenizers", version_min="0.15.0"),),
    library="tokenizers",
    short_name="Endpoint",
    is_text=True,
    is_remote=True,
)
