"""The backend endpoint: a server behind a URL answers, by OpenAI's HTTP API."""

from crowdperf.rules.record import BackendRecord, Package

CLIENT_PACKAGES = (
    Package(name="tokenizers", tags="_package.tokenizers", version_min="0.15.0"),
    Package(name="uvloop", tags="_package.uvloop", is_optional=True),
    Package(name="orjson", tags="_package.orjson", is_optional=True),
)
RECORD = BackendRecord(
    framework=None,
    devices=("cpu",),  # of this machine, which only asks
    precisions=("fp32", "fp16", "bf16", "int8"),
    packages=CLIENT_PACKAGES,
    library="tokenizers",
    short_name="Endpoint",
    is_text=True,
    is_remote=True,
)
