"""The inputs of the recipes that a call of run-mlperf-inference-app makes. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.rules.names import TARGETS, Scenario
from crowdperf.rules.run_settings import COUNTS, misplaced_inputs

from .request import Request

VENV_NAME = "mlperf-inference"
RUN_TAGS = "run-mlperf-inference"
CONFIG_TAGS = "get,mlperf,inference,sut,configs"
CONF_TAGS = "generate,mlperf,inference,user-conf"
COMPLIANCE_TAGS = "run,mlperf,compliance"
SUBMISSION_TAGS = "generate,inference,submission"


def python_of(passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """What the user says of the dependency `python`: for a name, that of the virtual environment of all runs."""
    found: dict[str, Any] = {}
    for key in ("add_deps_recursive", "adr"):
        given = passed_on.get(key) or {}
        found |= dict(given.get("python") or {}) if isinstance(given, Mapping) else {}
    return found


def venv_call(passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the virtual environment of the runs, or finds it."""
    python = python_of(passed_on)
    versions = {name: python[name] for name in ("version", "version_min", "version_max") if python.get(name)}
    return {"tags": "install,python-venv", "name": str(python.get("name") or VENV_NAME), **versions}


def library_call(dependency: Mapping[str, Any], passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """Installs the library of the backend into it, as app-mlperf-inference would."""
    own = {name: dependency[name] for name in ("tags", "version", "version_min", "version_max") if name in dependency}
    python = {"name": VENV_NAME, **python_of(passed_on)}
    return {**own, "adr": {**dict(passed_on.get("adr") or {}), "python": python}}


def config_call(request: Request, backend_version: str) -> dict[str, Any]:
    """Names the system and reads what was found on it."""
    inputs = {
        "tags": CONFIG_TAGS,
        "device": request.device,
        "backend": request.backend,
        "backend_version": backend_version,
        "hw_name": request.hw_name,
        "run_config": request.run_config,
    }
    return {name: value for name, value in inputs.items() if value}


def record_call(
    request: Request, sut: Mapping[str, str], scenario: Scenario, found: Mapping[str, Any], day: str
) -> dict[str, Any]:
    """Records what a search found for one scenario. `found`: the setting of find.json, and the figure that was seen."""
    name, setting = next(iter(found["settings"].items()))
    inputs = {
        "tags": CONFIG_TAGS,
        **{key: sut[key] for key in ("device", "backend", "backend_version", "hw_name", "run_config")},
        "model": request.model,
        "scenario": scenario.value,
        name: repr(float(setting["value"])),
        "origin": f"found {day}: {setting['origin']}".replace(";", ","),
    }
    return inputs | ({} if found["measured"] is None else {"measured": repr(float(found["measured"]))})


def mode_of(request: Request) -> str:
    """The modes of the call as one word."""
    return "all" if len(request.modes) > 1 else request.modes[0].value


def conf_call(request: Request, config_file: str, folder: Path, unused_in: str) -> dict[str, Any]:
    """Writes user.conf into ``folder`` and tells its lines and the expected durations. unused_in: the kind of runs that
    do not go by recorded targets; empty where they do."""
    return {
        **({"env": {"CM_TMP_MLPERF_RECORDED_UNUSED_IN": unused_in}} if unused_in else {}),
        "tags": CONF_TAGS,
        "model": request.model,
        "scenario": ",".join(scenario.value for scenario in request.scenarios),
        "mode": mode_of(request),
        "execution_mode": request.execution_mode.value,
        "sut_config_file": config_file,
        "output_dir": str(folder),
        **{name: request.options[name] for name in COUNTS if name in request.options},
        **request.targets,
    }


def own_target(scenario: Scenario) -> str:
    """The input of run-mlperf-inference that sets the target of one scenario alone: offline_target_qps."""
    return TARGETS[scenario][1]


def given_target(request: Request, scenario: Scenario) -> str | None:
    """The target that the user gives for a scenario."""
    return request.targets.get(own_target(scenario), request.targets.get(TARGETS[scenario][2]))


def run_call(
    request: Request, sut: str, scenarios: Sequence[Scenario], recorded: Mapping[Scenario, tuple[str, str]]
) -> dict[str, Any]:
    """Makes the runs of these scenarios. `recorded`: the target of a scenario that was found, and where it is from."""
    targets = {}
    for scenario in scenarios:
        given = given_target(request, scenario)
        if given is not None:
            targets[own_target(scenario)] = given
        elif scenario in recorded and not request.is_finding:
            targets[own_target(scenario)] = recorded[scenario][0]
    origins = [
        f"{scenario.value}: {recorded[scenario][1]}"
        for scenario in scenarios
        if scenario in recorded and given_target(request, scenario) is None and not request.is_finding
    ]
    left_out = misplaced_inputs(request.options, scenarios)
    return {
        "tags": RUN_TAGS,
        "model": request.model,
        "backend": request.backend,
        "device": request.device,
        "precision": request.precision,
        "source": request.source,
        "scenario": ",".join(scenario.value for scenario in scenarios),
        "mode": mode_of(request),
        "execution_mode": request.execution_mode.value,
        "results_dir": str(request.style_folder),
        "run_id": sut,
        "check": "no",
        **{name: value for name, value in request.options.items() if name not in left_out},
        **targets,
        **({"target_origin": "; ".join(origins)} if origins else {}),
        **({"find": "yes"} if request.is_finding else {}),
        **({"rerun": "yes"} if request.is_rerun else {}),
    }


def compliance_call(request: Request, folder: Path) -> dict[str, Any]:
    """Makes the compliance tests of the runs of one model."""
    return {
        "tags": COMPLIANCE_TAGS,
        "results_dir": str(folder),
        "division": request.division,
        "version": request.round_name,
        "source": request.source,
        **({"rerun": "yes"} if request.is_rerun else {}),
    }


def submission_call(request: Request) -> dict[str, Any]:
    """Makes the submission tree of all results of this length."""
    return {
        "tags": SUBMISSION_TAGS,
        "results_dir": str(request.style_folder),
        "division": request.division,
        "category": request.category.replace(",", "-"),
        "submission_version": request.round_name,
        "device": request.device,
        "run_style": request.execution_mode.value,
        **({"run_checker": "yes"} if request.is_checked else {}),
        **({"clean": "yes"} if request.is_clean else {}),
        **request.submission,
    }
