"""Hooks of get-preprocessed-dataset-imagenet: have the harness write the preprocessed images, and hand the store on."""

from crowdperf.call.answers import runs_to_its_end
from crowdperf.data import stores

plan = runs_to_its_end


def preprocess(i):
    """CM hook: says how images are prepared."""
    env = i["env"]
    side = int(env["CM_DATASET_IMAGENET_SIDE"])
    stores.write_config({"preprocessing": env["CM_DATASET_IMAGENET_PREPROCESSING"], "side": side})
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store."""
    return stores.store_answer(i["env"], "imagenet")
