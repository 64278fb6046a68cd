"""get-mlperf-loadgen: one pin per round, the same in the recipe and in the check, and no other build passes."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from harness_libraries import need
from recipe_programs import program

RECIPE = Path(__file__).resolve().parents[2] / "script" / "get-mlperf-loadgen"
check_loadgen = program("get-mlperf-loadgen", "check_loadgen")


def recipe_variations() -> dict:
    return yaml.safe_load((RECIPE / "_cm.yaml").read_text(encoding="utf-8"))["variations"]


def test_the_recipe_and_the_check_pin_the_same_versions():
    pins = {name: block["ad"]["mlcommons-loadgen"]["version"] for name, block in recipe_variations().items()}
    assert pins == {name: build.version for name, build in check_loadgen.BUILD_OF_ROUND.items()}


def test_every_variation_is_a_round_of_one_group_and_one_is_the_default():
    variations = recipe_variations()
    assert {block["group"] for block in variations.values()} == {"round"}
    assert all(block["env"]["CM_MLPERF_LOADGEN_ROUND"] == name for name, block in variations.items())
    assert [name for name, block in variations.items() if "default" in block] == ["v6.1"]


def test_no_two_rounds_share_a_seed():
    builds = check_loadgen.BUILD_OF_ROUND.values()
    seeds = [seed for build in builds for seed in (build.qsl_seed, build.sample_index_seed, build.schedule_seed)]
    assert len(set(seeds)) == len(seeds) == 15


@pytest.mark.parametrize("round_name", sorted(check_loadgen.BUILD_OF_ROUND))
def test_only_the_rounds_own_build_passes(round_name):
    for other, build in check_loadgen.BUILD_OF_ROUND.items():
        assert bool(check_loadgen.problem_of(build, round_name)) == (other != round_name)


def test_the_right_version_with_other_seeds_is_refused():
    build = check_loadgen.BUILD_OF_ROUND["v6.1"]
    problem = check_loadgen.problem_of(replace(build, schedule_seed=1), "v6.1")
    assert "its seeds differ" in problem
    assert str(build.schedule_seed) in problem


def test_the_installed_loadgen_is_checked_for_real(tmp_path):
    need("mlperf_loadgen")
    assert check_loadgen.installed_build() == check_loadgen.BUILD_OF_ROUND["v6.1"]
    for round_name, is_right in {"v6.1": True, "v6.0": False}.items():
        env = {
            "PATH": "/usr/bin:/bin",
            "CM_PYTHON_BIN_WITH_PATH": sys.executable,
            "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPE),
            "CM_MLPERF_LOADGEN_ROUND": round_name,
        }
        script = f". '{RECIPE}/run.sh'"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, timeout=60)
        assert (done.returncode == 0) == is_right, done.stderr.decode()
        lines = (tmp_path / "tmp-run-env.out").read_text().split()
        assert lines == (["CM_MLPERF_LOADGEN_VERSION=6.0.17"] if is_right else [])


def test_a_python_without_loadgen_is_named(tmp_path):
    empty = tmp_path / "no-packages"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", str(RECIPE / "check_loadgen.py"), "--round", "v6.1"],
        capture_output=True, text=True, cwd=empty, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert sys.executable in done.stderr
    assert "cannot import LoadGen" in done.stderr
