"""Hooks of get-preprocessed-dataset-kits19: hand on the store that the harness wrote."""

import json
from pathlib import Path

from mlperf_data import answers

STORE = "preprocessed"
WINDOW_FILE = "window.json"


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def preprocess(i):
    """CM hook: says for which window the volumes are made, in the form of a model.json without files."""
    config = {"window": int(i["env"]["CM_DATASET_KITS19_WINDOW"])}
    Path(WINDOW_FILE).write_text(json.dumps({"format": 1, "files": {}, "config": config}), encoding="utf-8")
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store and declares what describes it."""
    folder = Path.cwd() / STORE
    descriptions = sorted(str(path) for path in folder.glob("*.json"))
    if not descriptions:
        return answers.failure(
            f"{folder} holds no store", "cm run script --tags=get,dataset,preprocessed,kits19 --renew"
        )
    i["env"]["CM_DATASET_PREPROCESSED_PATH"] = str(folder)
    return {"return": 0, "files": descriptions}
