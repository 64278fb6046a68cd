"""Hooks of get-mlperf-inference-sut-configs: name the system, find its file, record a value where one is given.

Names are made in `sutname.py`, the file is read and written by `crowdperf.logs.recorded_targets`.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of
from crowdperf.kit.numbers import positive_number
from crowdperf.kit.user_paths import given_path, home_folder, users_folder
from crowdperf.logs import recorded_targets
from crowdperf.machine import nvidia
from crowdperf.machine.probe import Machine
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import TARGETS, UnknownName, parse_scenario

from . import sutname

FOLDER_NAME = "mlperf-inference-sut-configs"
HINT = (
    "hint: cm run script --tags=get,mlperf,inference,sut,configs --model=resnet50 --scenario=Offline --target_qps=100"
)


class BadInput(Exception):
    """The call asks for something that cannot be recorded."""


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the names; nothing is recorded."""
    return _answer(i, is_planned=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: sets the names, records the value that is given, and gives the content of the file as state."""
    return _answer(i, is_planned=False)


def _answer(i: dict[str, Any], *, is_planned: bool) -> dict[str, Any]:
    env, state = i["env"], i["state"]
    cmind = getattr(i.get("automation"), "cmind", None)  # a plan has none
    home = Path(cmind.repos_path) if cmind else Path(os.environ.get("CM_REPOS") or home_folder() / "CM")
    folder = given_path(env, "CM_SUT_CONFIGS_PATH") or users_folder(env) / home / FOLDER_NAME
    try:
        sut = sut_of(env, i.get("machine") or Machine(), folder)
        path = folder / sut.config_file
        entry = entry_of(env)
        content = recorded_targets.read(path) if entry is None or is_planned else recorded_targets.record(path, entry)
    except (sutname.BadName, recorded_targets.BadFile, BadInput) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if entry is not None and not is_planned:
        what = f"SUT: {sut.name}, model: {entry.model}, scenario: {entry.scenario.value}, {entry.scenario.target_key}"
        print(f"{what} updated as {entry.value:g}\nNew config stored in {path}", flush=True)
    env["CM_HW_NAME"] = sut.hw_name
    env["CM_SUT_NAME"] = sut.name
    env["CM_SUT_CONFIG_FILE"] = str(path)
    env["CM_SUT_CONFIGS_PATH"] = str(folder)
    env["CM_MLPERF_INFERENCE_SUT_RUN_CONFIG"] = sut.run_config
    state["CM_SUT_CONFIG"] = {sut.name: content}
    state["CM_SUT_CONFIG_PATH"] = {sut.name: str(path)}
    state["CM_SUT_RECORD"] = sut.record
    return {"return": 0}


def sut_of(env: dict[str, Any], machine: Machine, folder: Path) -> sutname.Sut:
    """The system under test that is meant. Raises sutname.BadName."""
    device = sutname.checked_part(text_of(env, "CM_MLPERF_DEVICE"), "--device")
    gpus = [gpu.name for gpu in nvidia.look(machine).gpus] if device == "cuda" else []
    hw_name = text_of(env, "CM_HW_NAME") or sutname.hardware_name(
        text_of(env, "CM_HOST_CPU_MODEL_NAME"),
        int(text_of(env, "CM_HOST_CPU_SOCKETS") or 1),
        int(text_of(env, "CM_HOST_CPU_TOTAL_PHYSICAL_CORES") or 1),
        gpus,
    )
    run_config = text_of(env, "CM_MLPERF_SUT_NAME_RUN_CONFIG_SUFFIX") or sutname.DEFAULT_RUN_CONFIG
    sut = sutname.Sut(
        hw_name=sutname.checked_part(hw_name, "--hw_name"),
        device=device,
        backend=sutname.checked_part(text_of(env, "CM_MLPERF_BACKEND"), "--backend"),
        backend_version=text_of(env, "CM_MLPERF_BACKEND_VERSION").removeprefix("v") or sutname.NO_VERSION,
        run_config=sutname.checked_part(run_config, "--run_config"),
    )
    sutname.checked_part(sut.backend_version, "--backend_version")
    if not text_of(env, "CM_MLPERF_BACKEND_VERSION"):
        return newest_version(sut, folder)
    return sut


def newest_version(sut: sutname.Sut, folder: Path) -> sutname.Sut:
    """The same system with the newest version of its backend that has a file, if there is one."""
    prefix = "framework-version-v"
    places = (folder / sut.backend_folder).glob(f"{prefix}*/{sut.run_config}-config.yaml")
    versions = [place.parent.name.removeprefix(prefix) for place in places]

    def order(version: str) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", version)]

    version = max(versions, key=order, default=sutname.NO_VERSION)
    return dataclasses.replace(sut, backend_version=version)


def entry_of(env: dict[str, Any]) -> recorded_targets.Entry | None:
    """The value to record; None when none is given. Raises BadInput."""
    model = text_of(env, "CM_SUT_CONFIG_MODEL")
    try:
        if model:
            record_of(model)
    except UnknownName as error:
        raise BadInput(f"--model: {error}") from error
    given = {key: text_of(env, f"CM_SUT_CONFIG_{key.upper()}") for key in ("target_qps", "target_latency")}
    given = {key: text for key, text in given.items() if text}
    if not given:
        return None
    try:
        scenario = parse_scenario(text_of(env, "CM_SUT_CONFIG_SCENARIO"))
    except UnknownName as error:
        raise BadInput(f"--scenario: {error}") from error
    wanted, name = scenario.target_key, TARGETS[scenario][2]
    if not model or list(given) != [wanted]:
        raise BadInput(f"to record a value of {scenario.value}, give --model and --{name}, and no other target")
    seen = text_of(env, "CM_SUT_CONFIG_MEASURED")
    return recorded_targets.Entry(
        model=model,
        scenario=scenario,
        value=_positive(given[wanted], name),
        origin=text_of(env, "CM_SUT_CONFIG_ORIGIN") or "given by the user",
        measured=_positive(seen, "measured") if seen else None,
    )


def _positive(text: str, name: str) -> float:
    value = positive_number(text)
    if value is None:
        raise BadInput(f"--{name}: found {text!r}; allowed: a number above 0")
    return value
