"""Hooks of serve-mlperf-results: check the call before anything is installed; run.sh starts the server."""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

from pathlib import Path
from typing import Any

from .results_web.settings import SettingsError, settings_of

PREFIX = "CM_MLPERF_COLLECTOR_"
NAMES = (
    "db", "path", "host", "port", "name", "token", "read_only", "open_uploads", "hold_new", "behind_proxy", "origin",
    "max_body_bytes", "bundles_per_hour",
)  # fmt: skip


def given_of(env: dict[str, Any]) -> dict[str, str]:
    """The inputs of the call by name, those that were given."""
    found = {name: str(env.get(f"{PREFIX}{name.upper()}", "") or "").strip() for name in NAMES}
    return {name: value for name, value in found.items() if value}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be; a run is planned first, so that nothing is installed for it then."""
    env = i["env"]
    try:
        settings_of(given_of(env), Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd()))
    except SettingsError as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: the words for the server."""
    env = i["env"]
    refused = plan(i)
    if refused["return"]:
        return refused
    folder = Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())
    words = [f"--{name}={value}" for name, value in given_of(env).items()]
    if any("\n" in word for word in words):
        return {"return": 1, "error": "an input of serve-mlperf-results holds a line break\nhint: give it on one line"}
    env["CM_TMP_COLLECTOR_WORDS"] = "\n".join([f"--folder={folder}", *words])
    return {"return": 0}
