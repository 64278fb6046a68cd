"""Hooks of mlperf-serving-inputs, which only holds metadata: nothing to run."""


def plan(i):
    error = "mlperf-serving-inputs only contains the shared inputs of recipes that serve a model. Run one of them, "
    return {"return": 1, "error": error + "for example with --tags=serve,mlperf,model"}


preprocess = plan
