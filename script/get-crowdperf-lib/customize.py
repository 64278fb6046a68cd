"""Hooks of get-crowdperf-lib: the package crowdperf for recipes of other repositories.

The recipes of this repository need no such dependency: `python: src` in cmr.yaml puts the package on their path.
A recipe that keeps a model's answers names the benchmark in CM_MLPERF_HARNESS_ANSWERS_OF and depends on this recipe
dynamically, so that the key is known before the cache is looked at.
"""

from pathlib import Path

from crowdperf.rules.benchmarks import record_of


def preprocess(i):
    """CM hook: puts the folder of the package on PYTHONPATH; the engine has put it on sys.path for this hook."""
    env = i["env"]
    folder = str(Path(__file__).resolve().parents[2] / "src")
    env["CM_CROWDPERF_LIB_PATH"] = folder
    env["+PYTHONPATH"] = [folder]
    if benchmark := env.get("CM_MLPERF_HARNESS_ANSWERS_OF"):
        env["CM_MLPERF_HARNESS_ANSWERS_KEY"] = record_of(benchmark).generation.answers_key
    return {"return": 0}


plan = preprocess
