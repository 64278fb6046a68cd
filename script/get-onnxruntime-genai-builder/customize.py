"""Hooks of get-onnxruntime-genai-builder: hand on the Python of the environment that run.sh filled."""

from pathlib import Path
from typing import Any

PYTHON_KEY = "CM_ONNXRUNTIME_GENAI_BUILDER_PYTHON"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the environment it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the interpreter that has the builder, and the builder's version."""
    env = i["env"]
    version = Path("version.txt").read_text(encoding="utf-8").split()[-1]
    env[PYTHON_KEY] = env["CM_GET_DEPENDENT_CACHED_PATH"] = str(env["CM_PYTHON_BIN_WITH_PATH"])
    env["CM_ONNXRUNTIME_GENAI_BUILDER_VERSION"] = version
    return {"return": 0, "version": version, "files": ["version.txt"]}
