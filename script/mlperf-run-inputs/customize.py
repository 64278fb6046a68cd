"""Hooks of mlperf-run-inputs, which only holds metadata: nothing to run."""


def plan(i):
    error = "mlperf-run-inputs only holds what the recipes that run a benchmark share; run one of them, for example "
    return {"return": 1, "error": error + "with --tags=run,mlperf,inference"}


preprocess = plan
