"""crowdperf: everything that its recipes run, in rooms; docs/explanation/architecture.md shows them.

A room imports only rooms below it in the picture there.
"""

import os

__version__ = "0.1.0"
"""The version, here alone: pyproject.toml, `--version`, results and telemetry read it."""

_NO_TELEMETRY = {
    "ORT_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
"""Switches off what libraries report to their makers. onnxruntime reads its variable when it is imported: since 1.29
its packages on PyPI keep a device id in the user's home and report models' names and digests (Privacy.md of 1.32,
November 2026). The others: vllm/envs.py of vLLM 0.32, environment variables of huggingface_hub 1.0."""

for _name, _value in _NO_TELEMETRY.items():  # every program that opens a library imports this package first
    os.environ.setdefault(_name, _value)
