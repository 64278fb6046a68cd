"""Hooks of mlperf-serving-inputs, which only holds metadata: nothing to run."""


def plan(i):
    error = "mlperf-serving-inputs only holds what the recipes that serve a model share; run one of them, for example "
    return {"return": 1, "error": error + "with --tags=serve,mlperf,model"}


preprocess = plan
