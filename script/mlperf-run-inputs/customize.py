"""Hooks of mlperf-run-inputs, which only holds metadata: nothing to run."""


def plan(i):
    error = "mlperf-run-inputs only contains the shared inputs of recipes that run a benchmark. Run one of them, "
    return {"return": 1, "error": error + "for example with --tags=run,mlperf,inference"}


preprocess = plan
