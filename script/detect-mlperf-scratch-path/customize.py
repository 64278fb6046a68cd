"""Hooks of the recipe detect-mlperf-scratch-path: which folder is asked for, as env and as a tag for the cache.

The cache knows inputs, not the process environment: this recipe makes a tag of whatever counts, so that a scratch space
in the cache is reused only for the folder that is asked for now.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

KEYS = ("CM_MLPERF_SCRATCH_PATH", "MLPERF_SCRATCH_PATH")
DEFAULT_KEY = "CM_MLPERF_SCRATCH_DEFAULT_PATH"
DEFAULT_TAG = "scratch-default"


class PathError(Exception):
    """The path cannot be used; the text says why and what to do."""


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the folder that is asked for (empty: the default) and its tag."""
    try:
        path = asked_path(i["env"], i.get("process_env", os.environ))
    except PathError as error:
        return {"return": 1, "error": str(error)}
    i["env"].update(keys_of(path))
    return {"return": 0}


plan = preprocess


def keys_of(path: str) -> dict[str, str]:
    """CM's keys for a path."""
    return {"CM_MLPERF_SCRATCH_ASKED_PATH": path, "CM_MLPERF_SCRATCH_CACHE_TAGS": cache_tag(path)}


def asked_path(env: Mapping[str, Any], process_env: Mapping[str, str]) -> str:
    """The absolute path that the input or CM's env names, else MLPERF_SCRATCH_PATH of the shell; empty for the default.

    Raises PathError for a relative one: the steps of a run have different current folders.
    """
    texts = (*(str(env.get(key, "") or "") for key in KEYS), process_env.get("MLPERF_SCRATCH_PATH", ""))
    text = next((one.strip() for one in texts if one.strip()), "")
    if not text or text == env.get(DEFAULT_KEY):
        return ""
    path = os.path.expanduser(text)
    if not os.path.isabs(path):
        raise PathError(
            f"the scratch space {text!r} is a relative path\n"
            "  allowed: an absolute path in MLPERF_SCRATCH_PATH (--path=... may be relative)\n"
            '  hint: export MLPERF_SCRATCH_PATH="$PWD/scratch"'
        )
    if any(ord(sign) < 32 for sign in path):
        raise PathError(f"the scratch space {text!r} has a line end or control sign in its name\n  hint: --path=FOLDER")
    return os.path.normpath(path)


def cache_tag(path: str) -> str:
    """The tag that tells a scratch space in the cache from those at other paths."""
    return f"scratch-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}" if path else DEFAULT_TAG
