"""The paths that a user gives a recipe. A relative one is relative to the folder in which the command was given."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def users_folder(env: Mapping[str, Any]) -> Path:
    """Return the user's current folder (hooks run in another one)."""
    return Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())


def home_folder() -> Path:
    """Return the user's home folder: $HOME, or that of the account. "/" if there is neither, as in some containers."""
    text = os.path.expanduser("~")
    return Path("/" if text == "~" else text)


def expanded(text: str | Path) -> Path:
    """Return a path with a home folder for `~` and `~name`. That of an unknown name stays."""
    path = Path(os.path.expanduser(text))
    return home_folder().joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def unusual_path(path: str | Path) -> str:
    """Return the problem of a folder whose name LoadGen and the pages of a result cannot write, else an empty text: the
    bytes of a name that is not UTF-8, or that the locale writes in another encoding."""
    try:
        is_utf8 = os.fsencode(path) == str(path).encode("utf-8")
    except UnicodeError:
        is_utf8 = False
    return "" if is_utf8 else f"found {str(path)!a}, allowed: a path that is valid UTF-8, under a locale of UTF-8"


def given_path(env: Mapping[str, Any], key: str) -> Path | None:
    """Return the path in `env`, or None if it is unset."""
    text = str(env.get(key) or "").strip()
    return users_folder(env) / expanded(text) if text else None


def filled(command: str, env: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """Return a command whose words in capitals are replaced by the user's values, so that it can be pasted.

    places: the key of `env` by the word, {"TREE": "CM_MLPERF_INFERENCE_SUBMISSION_DIR"}.
    """
    for word, key in places.items():
        if text := str(env.get(key) or "").strip():
            written = f"={shlex.quote(text)}".replace("\\", "\\\\")  # a pattern of re, where it stands for itself
            command = re.sub(rf"={word}\b", written, command)
    return command
