"""Hooks of published-detector, which only holds metadata: nothing to run."""


def plan(i):
    error = (
        "published-detector only contains the shared metadata of the object detectors. Run one of them, for example "
    )
    return {"return": 1, "error": error + "with --tags=get,ml-model,retinanet"}


preprocess = plan
