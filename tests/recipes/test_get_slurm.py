"""get-slurm: what Slurm's commands say, and what to do without them. The recorded answers are of Slurm 22.05.8."""

from pathlib import Path
from typing import Any

import pytest
from machine_builder import build
from recipe_loader import exported, load_module, load_recipe

facts = load_module("get-slurm", "facts")
recipe = load_recipe("get-slurm")

FILES = {f"/usr/bin/{name}": "" for name in ("sbatch", "squeue", "scontrol", "scancel", "sinfo")}
CONFIG = """Configuration data as of 2026-11-23T10:44:57
AccountingStorageType   = accounting_storage/none
KillWait                = 5 sec
MaxArraySize            = 1001
MaxJobCount             = 10000

Slurmctld(primary) at host is UP
"""
SINFO = """bench*|up|infinite|2|idle|4|4000|(null)|(null)
gpu|down|1-00:00:00|3|mixed|64|512000|a100,ib|gpu:a100:8
"""
SILENT = {"code": 1, "stderr": "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)\n"}
COMMANDS = {
    "sinfo --version": {"stdout": "slurm-wlm 22.05.8\n"},
    " ".join(facts.CONFIG): {"stdout": CONFIG},
    " ".join(facts.SINFO): {"stdout": SINFO},
}


def run(hook_input: Any, machine: Any, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(env, machine=machine)
    return recipe.plan(call), call


def test_what_a_controller_says(tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer, call = run(hook_input, build(tmp_path, FILES, commands=COMMANDS))
    assert answer == {"return": 0, "version": "22.05.8"}
    assert exported("get-slurm", call["env"]) == {
        "CM_SLURM_DEFAULT_PARTITION": "bench",
        "CM_SLURM_FEATURES": "a100,ib",
        "CM_SLURM_HAS_ACCOUNTING": "no",
        "CM_SLURM_IS_REACHABLE": "yes",
        "CM_SLURM_MAX_ARRAY_SIZE": "1001",
        "CM_SLURM_MAX_JOB_COUNT": "10000",
        "CM_SLURM_PARTITIONS": "bench,gpu",
        "CM_SLURM_TROUBLE": "",
        "CM_SLURM_VERSION": "22.05.8",
    }
    assert call["state"]["slurm"]["partitions"][1]["gres"] == ("gpu:a100:8",)
    told = capsys.readouterr().out
    assert "bench (default): 2 nodes idle, 4 cpus, 4000 MB, limit infinite" in told
    assert "gpu: 3 nodes mixed, not up, 64 cpus" in told
    assert "sacct knows no ended job" in told


def test_no_slurm_and_a_silent_one(tmp_path: Path, hook_input: Any) -> None:
    answer, _ = run(hook_input, build(tmp_path / "none"))
    assert answer["return"] == 16
    assert "--executor=local" in answer["error"]
    assert run(hook_input, build(tmp_path / "none"), CM_SLURM_ACTION="look")[0] == {"return": 0}
    silent = build(tmp_path / "silent", FILES, commands={**COMMANDS, " ".join(facts.CONFIG): SILENT})
    answer, call = run(hook_input, silent)
    assert answer["return"] == 1
    assert "Unable to contact slurm controller" in answer["error"]
    assert call["env"]["CM_SLURM_IS_REACHABLE"] == "no"
    assert run(hook_input, silent, CM_SLURM_ACTION="look")[0]["return"] == 0


@pytest.mark.parametrize(("least", "code"), [("20.11", 0), ("23.02", 16)])
def test_another_version_is_an_error(tmp_path: Path, hook_input: Any, least: str, code: int) -> None:
    answer, _ = run(hook_input, build(tmp_path, FILES, commands=COMMANDS), CM_VERSION_MIN=least)
    assert answer["return"] == code


@pytest.mark.parametrize(("exact", "code"), [("22.05", 0), ("22.05.9", 16)])
def test_the_exact_version_asked_for_counts(tmp_path: Path, hook_input: Any, exact: str, code: int) -> None:
    answer, _ = run(hook_input, build(tmp_path, FILES, commands=COMMANDS), CM_VERSION=exact)
    assert answer["return"] == code
