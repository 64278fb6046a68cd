"""Hooks of calibrate-ml-model: give run.sh its arguments, and the calibration that it wrote to the recipes above.

The work is done by `python3 -m crowdperf.models.calibrate` in the benchmark's virtual environment.
"""

import hashlib
import json
from pathlib import Path

from crowdperf.call.values import first_text_of, text_of

CALIBRATION_FILE = "calibration.json"
FOLDER_KEY = "CM_TMP_CURRENT_PATH"
MODEL_KEYS = ("CM_MODEL_REQUEST_MODEL", "CM_MLPERF_MODEL")
"""Of a call by name the official name, else that of the recipe above."""
INFO_KEYS = ("CM_MODEL_REQUEST_INFO_FILE", "CM_ML_MODEL_INFO_FILE")
DATASET_KEYS = ("CM_DATASET_PATH",)
NEEDED = {
    "--model=NAME": MODEL_KEYS,
    "--model_info=model.json of the fp32 ONNX model": INFO_KEYS,
    "--dataset=FOLDER": DATASET_KEYS,
}
"""Option -> env keys, of which the first that has a value counts."""
OPTIONS = {
    "CM_DATASET_PATH": "dataset",
    "CM_DATASET_PREPROCESSED_PATH": "preprocessed",
    "CM_CALIBRATION_METHOD": "method",
    "CM_CALIBRATION_PERCENTILE": "percentile",
    "CM_CALIBRATION_LIST": "list",
    "CM_CALIBRATION_SAMPLE_LIST": "sample_list",
    "CM_CALIBRATION_SAMPLE_COUNT": "count",
    "CM_CALIBRATION_SEED": "seed",
}
"""Env key -> option of crowdperf.models.calibrate."""


def missing_inputs(env):
    """What must be given and is not, as options of the recipe."""
    return [option for option, keys in NEEDED.items() if not first_text_of(env, keys)]


def refusal(missing):
    """The answer of a hook that has not what it needs."""
    return {
        "return": 1,
        "error": f"calibrate-ml-model needs a model and a data set; missing: {', '.join(missing)}\n"
        "hint: give --model=NAME with --source=real, synthetic or tiny, or all three",
    }


def arguments(env):
    """The words for crowdperf.models.calibrate, one for each option that has a value."""
    options = [f"--{option}={text_of(env, key)}" for key, option in OPTIONS.items() if text_of(env, key)]
    return [f"--model={first_text_of(env, MODEL_KEYS)}", f"--model_info={first_text_of(env, INFO_KEYS)}", *options]


def preprocess(i):
    """CM hook: checks what the dependencies of the caller gave and writes the arguments, one in each line."""
    env = i["env"]
    missing = missing_inputs(env)
    if missing:
        return refusal(missing)
    words = [*arguments(env), f"--output={Path.cwd() / CALIBRATION_FILE}"]
    Path("arguments.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    info = Path(first_text_of(env, INFO_KEYS))
    try:
        env["CM_ML_MODEL_CALIBRATION_MODEL_SHA256"] = hashlib.sha256(info.read_bytes()).hexdigest()
    except OSError as error:
        return {"return": 1, "error": f"{info} cannot be read: {error.strerror}\nhint: rebuild the model"}
    env["CM_ML_MODEL_CALIBRATION_MODEL_FILE"] = str(info)
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the calibration and declares it to the cache."""
    env = i["env"]
    path = Path.cwd() / CALIBRATION_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        env["CM_ML_MODEL_CALIBRATION_METHOD"] = str(content["method"])
        made_with = content["provenance"]["calibration"]
        env["CM_ML_MODEL_CALIBRATION_LIST"] = str(made_with["name"])
        env["CM_ML_MODEL_CALIBRATION_IS_OFFICIAL"] = "yes" if made_with["is_official"] else "no"
        env["CM_ML_MODEL_CALIBRATION_SAMPLES"] = str(len(content["provenance"]["sample_ids"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"return": 1, "error": f"{path} cannot be used: {error!r}\nhint: run this again with --renew"}
    env["CM_ML_MODEL_CALIBRATION_FILE"] = str(path)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = env["CM_ML_MODEL_CALIBRATION_MODEL_FILE"]
    return {"return": 0, "files": [CALIBRATION_FILE]}
