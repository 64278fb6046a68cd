"""The paths that a user gives a recipe. A relative one is relative to the folder in which the command was given."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def users_folder(env: Mapping[str, Any]) -> Path:
    """Return the user's current folder (hooks run in another one)."""
    return Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())


def given_path(env: Mapping[str, Any], key: str) -> Path | None:
    """Return the path in `env`, or None if it is unset."""
    text = str(env.get(key) or "").strip()
    return users_folder(env) / Path(text).expanduser() if text else None


def filled(command: str, env: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """Return a command whose words in capitals are replaced by the user's values, so that it can be pasted.

    places: the key of `env` by the word, {"TREE": "CM_MLPERF_INFERENCE_SUBMISSION_DIR"}.
    """
    for word, key in places.items():
        if text := str(env.get(key) or "").strip():
            written = f"={shlex.quote(text)}".replace("\\", "\\\\")  # a pattern of re, where it stands for itself
            command = re.sub(rf"={word}\b", written, command)
    return command
