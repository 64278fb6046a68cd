"""Hooks of get-mlperf-harness-lib: let the programs of other recipes run `python3 -m crowdperf.harness ...`.

The package lies in app-mlperf-inference, beside this recipe; recipes that make models and data sets use it too. One
that keeps a model's answers names the benchmark in CM_MLPERF_HARNESS_ANSWERS_OF and depends on this recipe dynamically,
so that the key is known before the cache is looked at.
"""

from pathlib import Path

HARNESS_RECIPE = "app-mlperf-inference"


def preprocess(i):
    """CM hook: puts the harness's folder on PYTHONPATH, and that of the package mlperf_results, which it needs."""
    env = i["env"]
    folder = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).resolve().parent / HARNESS_RECIPE
    if not (folder / "harness").is_dir():
        return {"return": 1, "error": f"{folder} holds no harness\nhint: take the whole repository crowdperf"}
    env["CM_MLPERF_HARNESS_PATH"] = str(folder)
    env["+PYTHONPATH"] = [str(folder), env["CM_MLPERF_RESULTS_LIB_PATH"]]
    if benchmark := env.get("CM_MLPERF_HARNESS_ANSWERS_OF"):
        from crowdperf.rules.benchmarks import record_of

        env["CM_MLPERF_HARNESS_ANSWERS_KEY"] = record_of(benchmark).generation.answers_key
    return {"return": 0}


plan = preprocess
