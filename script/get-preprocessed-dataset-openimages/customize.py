"""Hooks of get-preprocessed-dataset-openimages: hand on the store that the harness wrote."""

from crowdperf.data import stores


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store."""
    return stores.store_answer(i["env"], "openimages")
