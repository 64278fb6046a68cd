"""Hooks of generate-engine: give run.sh its arguments, and the engines in place of the ONNX model.

The work is done by `python3 -m crowdperf.models.engines` in the benchmark's virtual environment.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import first_text_of, text_of

MODEL_KEYS = ("CM_MODEL_REQUEST_MODEL", "CM_MLPERF_MODEL")
PRECISION_KEYS = ("CM_MODEL_REQUEST_PRECISION", "CM_MLPERF_MODEL_PRECISION")
"""Of a call by name in official names, else of the recipe above."""
BATCH_KEYS = ("CM_ENGINE_LARGEST_BATCH", "CM_MODEL_REQUEST_BATCH_SIZE")
OPTIONS = {
    "CM_ENGINE_LIBRARY": "library",
    "CM_ENGINE_WORKSPACE_MB": "workspace_mb",
    "CM_ENGINE_TIMING_CACHE": "timing_cache",
    "CM_ENGINE_COMPUTE_CAPABILITY": "compute_capability",
}
"""Env key -> option of crowdperf.models.engines."""


def arguments(env: Mapping[str, Any], info_file: Path, folder: Path) -> list[str]:
    """The words for crowdperf.models.engines, one for each option that has a value."""
    values = {option: text_of(env, key) for key, option in OPTIONS.items()}
    values |= {"model": first_text_of(env, MODEL_KEYS), "precision": first_text_of(env, PRECISION_KEYS)}
    values["largest_batch"] = first_text_of(env, BATCH_KEYS)
    words = [f"--{option}={value}" for option, value in sorted(values.items()) if value]
    words += [f"--model_info={info_file}", f"--output_dir={folder}"]
    sizes = [size.strip() for size in text_of(env, "CM_ENGINE_SIZES").split(",") if size.strip()]
    return [*words, *(["--sizes", *sizes] if sizes else [])]


class ModelError(Exception):
    """There is no model to build from; the text says why and what to give."""


def model_info(env: Mapping[str, Any]) -> Path:
    """The model.json to build from. Raises ModelError when it, or the name of the model, is not given or not there."""
    given = text_of(env, "CM_MODEL_REQUEST_INFO_FILE") or text_of(env, "CM_ML_MODEL_INFO_FILE")
    if not given or not first_text_of(env, MODEL_KEYS):
        raise ModelError(
            "generate-engine needs a model\nhint: give --model=NAME with --source=real, synthetic or tiny, or "
            "--model_info=model.json of an ONNX model"
        )
    if not Path(given).is_file():
        raise ModelError(f"{given} is not a file\nhint: --model_info=model.json of an ONNX model")
    return Path(given)


def missing_gpu(env: Mapping[str, Any]) -> str:
    """Why TensorRT cannot build here; empty where it can, or for TensorRT-RTX, which needs no GPU to build."""
    if env.get("CM_ENGINE_LIBRARY") != "tensorrt" or env.get("CM_RECORDED_MACHINE"):
        return ""
    from crowdperf.machine import nvidia
    from crowdperf.machine.probe import Machine

    return nvidia.missing_gpu(Machine())


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses a missing GPU; what is wrong with the model that is asked for get-mlperf-model-request says.

    A run is planned first, so that nothing is installed for it then.
    """
    env = i["env"]
    if why := missing_gpu(env):
        hint = "hint: _tensorrt_rtx builds without a GPU: cm run script --tags=generate,engine,_tensorrt_rtx ..."
        return {"return": 1, "error": f"TensorRT builds engines on a GPU only, and {why}\n{hint}"}
    return {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: checks what is given and writes the arguments, one in each line."""
    env = i["env"]
    try:
        info_file = model_info(env)
        env["CM_ML_MODEL_ENGINE_FROM_SHA256"] = hashlib.sha256(info_file.read_bytes()).hexdigest()
    except ModelError as error:
        return {"return": 1, "error": str(error)}
    except OSError as error:
        return {"return": 1, "error": f"{info_file} cannot be read: {error.strerror}\nhint: rebuild the model"}
    env["CM_ML_MODEL_ENGINE_FROM"] = str(info_file)
    if str(env.get("CM_ENGINE_LIBRARY", "")).startswith("neuron"):  # compiled by the torch that will run it
        env["CM_TMP_ENGINE_PYTHON"] = env["CM_TRITON_SERVER_PYTHON"]
    lines = "".join(f"{word}\n" for word in arguments(env, info_file, Path.cwd()))
    Path("arguments.txt").write_text(lines, encoding="utf-8")
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports the engines, in place of the model they were built from."""
    from crowdperf.data.answers import model_answer

    answer: dict[str, Any] = model_answer(i["env"], Path.cwd())
    if answer["return"] == 0:
        bind_to_here(i["env"], Path("model.json"))
    return answer


def bind_to_here(env: dict[str, Any], info_file: Path) -> None:
    """Records what validate_cache.sh looks at: the model, the library's version (its metadata file, whose path has the
    version), and the processor's instruction sets where the engines are bound to them."""
    info = json.loads(info_file.read_text(encoding="utf-8"))
    env["CM_GET_DEPENDENT_CACHED_PATH"] = env["CM_ML_MODEL_ENGINE_FROM"]
    package = text_of(env, "CM_ENGINE_LIBRARY").upper()
    env["CM_ML_MODEL_ENGINE_LIBRARY_FILE"] = text_of(env, f"CM_PYTHONLIB_{package}_METADATA_PATH")
    names = (info["engine"].get("built_for") or {}).get("instruction_sets") or []
    env["CM_ML_MODEL_ENGINE_INSTRUCTION_SETS"] = " ".join(names)
