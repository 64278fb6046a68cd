"""Hooks of published-model, which only holds metadata: nothing to run."""


def plan(i):
    error = "published-model only contains the shared metadata of published models. Run one of them, for example "
    return {"return": 1, "error": error + "with --tags=get,ml-model,whisper"}


preprocess = plan
