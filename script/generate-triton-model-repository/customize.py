"""Hooks of generate-triton-model-repository: give run.sh its arguments, and the repository to the caller.

The work is done by `python3 -m harness.making.triton_repository` in the benchmark's virtual environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GIVEN_KEY = "CM_MODEL_REQUEST_INFO_FILE"
INFO_KEY = "CM_ML_MODEL_INFO_FILE"
MODEL_KEY = "CM_MODEL_REQUEST_MODEL"
OPTIONS = {
    MODEL_KEY: "model",
    "CM_MLPERF_TRITON_BATCHING": "batching",
    "CM_MLPERF_TRITON_INSTANCE_COUNT": "instance_count",
    "CM_MLPERF_TRITON_MAX_BATCH_SIZE": "max_batch_size",
    "CM_MLPERF_TRITON_MAX_QUEUE_DELAY_US": "max_queue_delay_us",
    "CM_MLPERF_TRITON_PREFERRED_BATCH_SIZE": "preferred_batch_size",
    "CM_TRITON_MODEL_DEVICE": "device",
    "CM_TRITON_MODEL_THREADS": "threads",
}
"""Env key -> option of harness.making.triton_repository."""


def text_of(env: Mapping[str, Any], key: str) -> str:
    """The value of an env key as a text without blanks around it."""
    return str(env.get(key, "") or "").strip()


def arguments(env: Mapping[str, Any], info_file: Path, folder: Path) -> list[str]:
    """The words for harness.making.triton_repository, one for each option that has a value."""
    words = [f"--{option}={text_of(env, key)}" for key, option in OPTIONS.items() if text_of(env, key)]
    return [*words, f"--model_info={info_file}", f"--output_dir={folder}"]


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses a benchmark that cannot be served; a run is planned first, so that nothing is installed for it then."""
    from mlperf_results.backends import misfit

    why = misfit("triton", text_of(i["env"], MODEL_KEY), "cpu")
    return {"return": 1, "error": why} if why else {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: checks what is given and writes the arguments, one in each line."""
    env = i["env"]
    refused = plan(i)
    if refused["return"]:
        return refused
    info_file = Path(text_of(env, GIVEN_KEY) or text_of(env, INFO_KEY))
    try:
        env["CM_TRITON_MODEL_FROM_SHA256"] = hashlib.sha256(info_file.read_bytes()).hexdigest()
    except OSError as error:
        message = f"the model.json {info_file} cannot be read: {error.strerror}"
        return {"return": 1, "error": f"{message}\nhint: --model_info=model.json of an ONNX model"}
    env["CM_TRITON_MODEL_FROM"] = str(info_file)
    lines = "".join(f"{word}\n" for word in arguments(env, info_file, Path.cwd()))
    Path("arguments.txt").write_text(lines, encoding="utf-8")
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the repository and declares its files to the cache."""
    env = i["env"]
    try:
        about = json.loads(Path("repository.json").read_text(encoding="utf-8"))
        env["CM_TRITON_MODEL_NAME"] = str(about["name"])
    except (OSError, ValueError, KeyError) as error:
        return {"return": 1, "error": f"{Path('repository.json').absolute()} cannot be used: {error!r}"}
    env["CM_TRITON_MODEL_REPOSITORY"] = str(Path("repository").absolute())
    env["CM_GET_DEPENDENT_CACHED_PATH"] = env["CM_TRITON_MODEL_FROM"]
    files = sorted(str(path) for path in Path("repository").rglob("*") if path.is_file())
    return {"return": 0, "files": ["repository.json", *files]}
