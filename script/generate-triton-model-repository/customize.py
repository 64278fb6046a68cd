"""Hooks of generate-triton-model-repository: give run.sh its arguments, and the repository to the caller.

The work is done by `python3 -m crowdperf.models.triton_repository` in the benchmark's virtual environment.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of

GIVEN_KEY = "CM_MODEL_REQUEST_INFO_FILE"
INFO_KEY = "CM_ML_MODEL_INFO_FILE"
MODEL_KEY = "CM_MODEL_REQUEST_MODEL"
KIND_KEY = "CM_TRITON_MODEL_KIND"
NEURON_OPTIONS = ("neuron_core_range", "threads_per_core")
NO_OPTIONS = ("model", "model_info", "simulate", "source")
"""Inputs that decide what runs; all others are options of crowdperf.models.triton_repository."""


def arguments(i: Mapping[str, Any], info_file: Path, folder: Path) -> list[str]:
    """The words for crowdperf.models.triton_repository, one for each option that has a value."""
    values = i["values"]
    options = {name: values.text(name) for name in values if name not in NO_OPTIONS and values.is_given(name)}
    options |= {"model": text_of(i["env"], MODEL_KEY), "model_info": info_file, "output_dir": folder}
    return [f"--{name}={value}" for name, value in options.items()]


def is_neuron(env: Mapping[str, Any]) -> bool:
    """Whether the repository is one for AWS Neuron."""
    return text_of(env, KIND_KEY) == "neuron"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses a benchmark that cannot be served; a run is planned first, so that nothing is installed for it then."""
    from crowdperf.rules.backends import BACKENDS, misfit
    from crowdperf.rules.names import UnknownName
    from crowdperf.rules.official_names import official_name

    env = i["env"]
    backend = "neuron" if is_neuron(env) else "triton"
    given = [name for name in (*NEURON_OPTIONS, "simulate") if i["values"].is_given(name)]
    if given and not is_neuron(env):
        return {"return": 1, "error": f"--{given[0]} is for AWS Neuron: add the variation _neuron"}
    try:
        model = official_name(text_of(env, "CM_MLPERF_MODEL")) if is_neuron(env) else text_of(env, MODEL_KEY)
    except UnknownName as error:
        return {"return": 1, "error": f"--model: {error}"}
    why = misfit(backend, model, BACKENDS[backend].devices[0])
    if why:
        return {"return": 1, "error": why}
    env[MODEL_KEY] = model
    return {"return": 0}


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
    lines = "".join(f"{word}\n" for word in arguments(i, info_file, Path.cwd()))
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
