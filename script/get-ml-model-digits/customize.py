"""Hooks of get-ml-model-digits: give the model that fit_model.py wrote to the recipes above.

The fit runs in the benchmark's virtual environment (numpy and onnxruntime live there); here only the facts
in its `model.json` are read.
"""

import json
from pathlib import Path

MODEL_FILE = "digits.onnx"
MODEL_INFO_FILE = "model.json"


def model_environment(folder: Path) -> dict[str, str]:
    """The env keys that describe the model in `folder`, from its model.json.

    Raises OSError, ValueError or KeyError when model.json is missing, broken or incomplete.
    """
    info = json.loads((folder / MODEL_INFO_FILE).read_text(encoding="utf-8"))
    return {
        "CM_ML_MODEL_FILE": MODEL_FILE,
        "CM_ML_MODEL_FILE_WITH_PATH": str(folder / MODEL_FILE),
        "CM_ML_MODEL_PATH": str(folder),
        "CM_ML_MODEL_INFO_FILE": str(folder / MODEL_INFO_FILE),
        "CM_ML_MODEL_NAME": info["name"],
        "CM_ML_MODEL_REFERENCE_ACCURACY": str(info["reference"]["acc"]),
    }


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the model's paths and accuracy and declares its files to the cache."""
    folder = Path.cwd()
    try:
        i["env"].update(model_environment(folder))
    except (OSError, ValueError, KeyError) as error:
        return {
            "return": 1,
            "error": f"{folder / MODEL_INFO_FILE} cannot be used: {error!r}\n"
            "hint: cm run script --tags=get,ml-model,digits --new",
        }
    return {"return": 0, "files": [MODEL_FILE, MODEL_INFO_FILE]}
