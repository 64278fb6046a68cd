"""Hooks of get-mlperf-loadgen: name the cache entry after the version that run.sh found in the virtual environment."""


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: the version goes to the cache entry; run.sh has already compared it with the round's pin."""
    return {"return": 0, "version": i["env"]["CM_MLPERF_LOADGEN_VERSION"]}
