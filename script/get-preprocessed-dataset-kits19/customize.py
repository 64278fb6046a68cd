"""Hooks of get-preprocessed-dataset-kits19: hand on the store that the harness wrote."""

from crowdperf.call.answers import runs_to_its_end
from crowdperf.data import stores

plan = runs_to_its_end


def preprocess(i):
    """CM hook: says for which window the volumes are made."""
    stores.write_config({"window": int(i["env"]["CM_DATASET_KITS19_WINDOW"])}, "window.json")
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store."""
    return stores.store_answer(i["env"], "kits19")
