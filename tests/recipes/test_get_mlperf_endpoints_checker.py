"""get-mlperf-endpoints-checker: the programs of the environment, in the versions that our curves were tried with."""

import re
from pathlib import Path

import yaml
from recipe_loader import RECIPES, load_recipe

RECIPE = load_recipe("get-mlperf-endpoints-checker")
KEYS = {"CM_PYTHONLIB_ENDPOINTS_SUBMISSION_CLI_VERSION": "1.5.3.0", "CM_PYTHONLIB_MLPERF_VIZ_VERSION": "2.0.0"}


def env_of(folder: Path) -> dict[str, str]:
    return {"CM_PYTHON_BIN_WITH_PATH": str(folder / "python"), **KEYS}


def test_both_programs_are_found_beside_their_python(tmp_path: Path):
    for name in ("endpoints-submission-cli", "mlperf-viz"):
        (tmp_path / name).touch()
    env = env_of(tmp_path)
    assert RECIPE.preprocess({"env": env}) == {"return": 0, "version": "1.5.3.0"}
    assert env["CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH"] == str(tmp_path / "endpoints-submission-cli")
    assert env["CM_MLPERF_ENDPOINTS_VIEWER_BIN_WITH_PATH"] == str(tmp_path / "mlperf-viz")
    assert env["CM_MLPERF_ENDPOINTS_VIEWER_VERSION"] == "2.0.0"


def test_a_program_that_is_missing_is_named(tmp_path: Path):
    answer = RECIPE.preprocess({"env": env_of(tmp_path)})
    assert answer["return"] == 1 and answer["error"].startswith("endpoints-submission-cli is not next to")


def test_the_recipe_pins_the_versions_that_the_rules_were_tried_with():
    pins = yaml.safe_load((RECIPES / "get-mlperf-endpoints-checker" / "_cm.yaml").read_text())["adr"]
    source = (RECIPES.parent / "src" / "crowdperf" / "curves" / "official.py").read_text()
    found = dict(re.findall(r'^(CHECKER|VIEWER)_VERSION = "(.+)"$', source, re.M))
    assert found == {"CHECKER": pins["endpoints-submission-cli"]["version"], "VIEWER": pins["mlperf-viz"]["version"]}
