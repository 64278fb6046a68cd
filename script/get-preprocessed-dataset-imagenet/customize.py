"""Hooks of get-preprocessed-dataset-imagenet: have the harness write the preprocessed images, and hand the store on."""

import json
from pathlib import Path

from mlperf_data import answers

STORE = "preprocessed"
INDEX_FILE = "preprocessed.json"
MODEL_INFO_FILE = "model.json"


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def preprocess(i):
    """CM hook: says how images are prepared, in the form of a model.json without files."""
    env = i["env"]
    config = {
        "preprocessing": env["CM_DATASET_IMAGENET_PREPROCESSING"],
        "side": int(env["CM_DATASET_IMAGENET_SIDE"]),
    }
    Path(MODEL_INFO_FILE).write_text(json.dumps({"format": 1, "files": {}, "config": config}), encoding="utf-8")
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store and declares what describes it."""
    folder = Path.cwd() / STORE
    if not (folder / INDEX_FILE).is_file():
        hint = "cm run script --tags=get,dataset,preprocessed,imagenet --renew"
        return answers.failure(f"{folder} holds no {INDEX_FILE}", hint)
    i["env"]["CM_DATASET_PREPROCESSED_PATH"] = str(folder)
    return {"return": 0, "files": sorted(str(path) for path in folder.glob("*.json"))}
