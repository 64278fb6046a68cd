"""Hooks of get-mlperf-endpoints-checker: find the two programs beside the Python that has their packages."""

from pathlib import Path

PROGRAMS = (
    ("CM_MLPERF_ENDPOINTS_CHECKER", "endpoints-submission-cli", "CM_PYTHONLIB_ENDPOINTS_SUBMISSION_CLI_VERSION"),
    ("CM_MLPERF_ENDPOINTS_VIEWER", "mlperf-viz", "CM_PYTHONLIB_MLPERF_VIZ_VERSION"),
)


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def preprocess(i):
    """CM hook: sets the path and the version of each program; a cache entry is renewed when the first is gone."""
    env = i["env"]
    folder = Path(env["CM_PYTHON_BIN_WITH_PATH"]).parent
    for key, program, version in PROGRAMS:
        path = folder / program
        if not path.is_file():
            return {"return": 1, "error": f"{program} is not next to {env['CM_PYTHON_BIN_WITH_PATH']}"}
        env[f"{key}_BIN_WITH_PATH"] = str(path)
        env[f"{key}_VERSION"] = env[version]
    env["CM_GET_DEPENDENT_CACHED_PATH"] = env["CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH"]
    return {"return": 0, "version": env["CM_MLPERF_ENDPOINTS_CHECKER_VERSION"]}
