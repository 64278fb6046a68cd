"""Hooks of get-mlperf-model-request: read the benchmark, source and precision of a call by name.

The recipes that make something of a model (generate-engine, calibrate-ml-model) depend on this one first, so that a
wrong name ends the call before anything is installed. What is read here decides which of the recipe's own
dependencies, one model and one data set for each benchmark, are needed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of

MODEL_KEY = "CM_MLPERF_MODEL"
LIBRARY_KEY = "CM_ENGINE_LIBRARY"
GIVEN_KEY = "CM_MODEL_REQUEST_INFO_FILE"
DATASET_KEY = "CM_DATASET_PATH"
DATA_KEY = "CM_MODEL_REQUEST_WITH_DATA"
"""Whether the data set is wanted, too; the recipe above says so, and int8 needs it to calibrate."""
SEVERAL = "cm run script --tags=run,mlperf,make --target=generate_engines --run_args=--benchmarks="
HINT = "hint: give --model=NAME with --source=real, synthetic or tiny, or --model_info=model.json of an ONNX model"


class RequestError(Exception):
    """The call asks for something that is not there; the text says what is."""


def wanted_name(env: Mapping[str, Any]) -> str:
    """Return the one benchmark that --model or --benchmarks names. Raises RequestError."""
    model = text_of(env, MODEL_KEY)
    if "," in model:
        raise RequestError(f"{model}: one benchmark at a time here\nhint: for several: {SEVERAL}{model}")
    if not model:
        raise RequestError(f"no model is given\n{HINT}")
    return model


def require_given(env: Mapping[str, Any]) -> None:
    """Raise RequestError where a file or folder that is given is not there, or the data set that is wanted with it."""
    for option, key in (("--model_info", GIVEN_KEY), ("--dataset", DATASET_KEY)):
        path = text_of(env, key)
        if path and not Path(path).exists():
            raise RequestError(f"{option}={path} does not exist\n{HINT}")
    if text_of(env, DATA_KEY) and not text_of(env, DATASET_KEY):
        raise RequestError("--model_info also requires the data set: --dataset=FOLDER is missing")


def request_of(env: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the env keys that say what is asked for, in official names; CM_MODEL_REQUEST_NAME, without the accuracy
    level, where the model is to be found. Raises RequestError."""
    from crowdperf.rules.app_names import PRECISION_ALIASES
    from crowdperf.rules.backends import BACKENDS
    from crowdperf.rules.benchmarks import record_of
    from crowdperf.rules.names import UnknownName, unknown_text
    from crowdperf.rules.official_names import official_name, parse_benchmark

    try:
        name, official = parse_benchmark(wanted_name(env))[0], official_name(wanted_name(env))
    except UnknownName as error:
        raise RequestError(str(error)) from error
    record, source = record_of(name), values["source"]
    if record.generation is not None:
        raise RequestError(f"{official} is a language model: engines and calibrations are not supported for it")
    precision = values["precision"] or text_of(env, "CM_MLPERF_CONFIG_PRECISION")
    precision = PRECISION_ALIASES.get(precision, precision)
    library = text_of(env, LIBRARY_KEY).removesuffix("_rtx")
    backend = next((one for one in BACKENDS.values() if library and one.engine == library), None)
    if backend is not None and precision and precision not in backend.precisions:
        raise RequestError(f"--precision: {unknown_text('precision', precision, backend.precisions)}")
    if text_of(env, GIVEN_KEY):
        require_given(env)
        return {
            "CM_MODEL_REQUEST_MODEL": official,
            "CM_MODEL_REQUEST_NAME": "",
            "CM_MODEL_REQUEST_PRECISION": precision,
        }
    if record.recipes.is_fixed and source != "real":
        raise RequestError(f"--source={source}: {name} has one model and one data set, made here\nhint: leave --source")
    return {
        "CM_MODEL_REQUEST_MODEL": official,
        "CM_MODEL_REQUEST_NAME": name,
        "CM_MODEL_REQUEST_PRECISION": precision or "fp32",
        "CM_MODEL_REQUEST_BATCH_SIZE": text_of(env, "CM_MLPERF_CONFIG_BATCH_SIZE"),
        DATA_KEY: "yes" if precision == "int8" else text_of(env, DATA_KEY),
    }


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: sets what is asked for."""
    try:
        i["env"].update(request_of(i["env"], i["values"]))
    except RequestError as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0}


plan = preprocess
