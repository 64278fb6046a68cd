"""What a call asks for: its env as one frozen `Request`, with every problem collected. Pure.

The rules of the round decide the scenarios. Values that only the runs need (targets, batch sizes, counts) are handed on
as they are; run-mlperf-inference checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.inputs import Inputs
from crowdperf.call.text_inputs import TEXT_KEYS, URL
from crowdperf.rules.app_names import PRECISION_ALIASES, AppNames, default_run_config
from crowdperf.rules.backends import default_backend
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import (
    ExecutionMode,
    Mode,
    Scenario,
    UnknownName,
    parse_execution_mode,
    parse_modes,
    with_problems,
)
from crowdperf.rules.names import parse_scenario as scenario_named
from crowdperf.rules.rounds import ROUNDS, rounds_of, rules_in, scenarios_of
from crowdperf.rules.run_settings import BY_INPUT, PATHS, TARGET_INPUTS

from .known import Known, LoadGenRounds

IMPLEMENTATIONS = (
    "reference", "mlcommons-python", "mlcommons-cpp", "nvidia", "nvidia-original", "intel", "intel-original",
    "qualcomm", "ctuning-cpp-tflite", "crowdperf",
)  # fmt: skip
"""Implementations of the community's recipe of this name; what runs is always crowdperf's."""
DIVISIONS = ("open", "closed", "network")
CATEGORIES = ("edge", "datacenter", "datacenter,edge")
RUN_INPUTS = (*sorted((*BY_INPUT, *PATHS, "gpus")), *TEXT_KEYS)
"""Inputs that go to every run as they are."""
SUBMISSION_INPUTS = (
    "allow_synthetic", "hw_notes_extra", "submission_dir", "submitter", "sw_notes_extra", "system_facts",
)  # fmt: skip
"""Inputs that go to the recipe of the submission tree as they are."""
SWITCHES = ("clean", "find_performance", "readme", "rerun", "skip_submission_generation")
"""Inputs that are off where nothing is said."""
DEVICE_NAMES = {"gpu": "cuda"}


class RequestError(Exception):
    """The inputs ask for something that cannot be done; `problems` holds one text for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(with_problems("cannot do what was asked for", problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked call.

    `options`, `targets` and `submission` are inputs for the recipes below, by name. `loadgen_variation`: that of the
    package with the seeds of the round, where it is not the usual one. `remarks`: lines that the user is
    told first. `results_folder`: the folder given, which gets one folder for each execution mode.
    """

    model: str
    backend: str
    device: str
    precision: str
    source: str
    round_name: str
    division: str
    category: str
    scenarios: tuple[Scenario, ...]
    modes: tuple[Mode, ...]
    execution_mode: ExecutionMode
    results_folder: Path
    options: Mapping[str, str]
    targets: Mapping[str, str]
    submission: Mapping[str, Any]
    remarks: tuple[str, ...]
    hw_name: str = ""
    run_config: str = ""
    is_finding: bool = False
    is_rerun: bool = False
    is_clean: bool = False
    has_readmes: bool = False
    has_compliance: bool = False
    makes_submission: bool = False
    is_checked: bool = True
    loadgen_variation: str = ""

    @property
    def style_folder(self) -> Path:
        """The folder of all results of this length; searches have one of their own, for they are no results."""
        return self.results_folder / ("find_results" if self.is_finding else f"{self.execution_mode.value}_results")


class _Reader(Inputs):
    """The inputs of a call. chosen: what variations set, by env keys. remarks: lines that the user is told first."""

    def __init__(self, env: Mapping[str, Any], here: Path, keys: Mapping[str, str]) -> None:
        super().__init__(env, here, keys)
        self.chosen = Inputs(env, here)
        self.remarks: list[str] = []


def _backend(reader: _Reader, model: str, names: AppNames) -> str:
    """The backend that is named, else the one that asks the given server, else the benchmark's usual one."""
    if reader.text("backend"):
        return reader.one_of("backend", names.backends)
    return default_backend(model, asks_server=bool(reader.text(URL)))


def read(
    env: Mapping[str, Any], inputs: Mapping[str, Any], mapping: Mapping[str, str], known: Known, folder: Path
) -> Request:
    """The checked call; relative folders start at ``folder``. Raises RequestError with every problem."""
    reader = _Reader(env, folder, mapping)
    names = known.names
    model = reader.one_of("model", names.models, names.aliases)
    device = reader.one_of("device", names.devices, DEVICE_NAMES)
    backend, device = reader.simulated("simulate", _backend(reader, model, names), device)
    precision = reader.one_of("precision", names.precisions, PRECISION_ALIASES)
    source = reader.one_of("source", names.sources)
    _implementation(reader)
    round_name = _round(reader, model)
    category = _category(reader, model, round_name)
    division = _division(reader)
    execution_mode = reader.parsed("execution_mode", parse_execution_mode, ExecutionMode.TEST)
    modes = _modes(reader)
    is_on = {name: reader.truth(name) for name in SWITCHES}
    is_checked = reader.truth("run_checker", otherwise=True)
    makes_submission = reader.chosen.truth("CM_MLPERF_SUBMISSION_RUN")
    compliance = _has_compliance(reader, division, otherwise=makes_submission)
    if is_on["find_performance"] and modes != (Mode.PERFORMANCE,):
        reader.problems.append("find-performance makes performance runs only; leave --mode and other variations out")
    scenarios = _scenarios(reader, model, round_name, category, needs_all=makes_submission and division != "open")
    if reader.problems:
        raise RequestError(reader.problems)
    loadgen = _loadgen(reader, round_name, known.rounds)
    return Request(
        model=model,
        backend=backend,
        device=device,
        precision=precision,
        source=source,
        round_name=round_name,
        division=division,
        category=category,
        scenarios=scenarios,
        modes=modes,
        execution_mode=execution_mode,
        results_folder=reader.path("results_dir") or folder,
        options=reader.given(RUN_INPUTS),
        targets=reader.given(TARGET_INPUTS),
        submission={
            **reader.given(SUBMISSION_INPUTS),
            **({"system": inputs["system"]} if inputs.get("system") else {}),
        },
        remarks=tuple(reader.remarks),
        hw_name=reader.text("hw_name"),
        run_config=reader.text("run_config") or default_run_config(source, precision),
        is_finding=is_on["find_performance"],
        is_rerun=is_on["rerun"] or is_on["clean"],
        is_clean=is_on["clean"],
        has_readmes=is_on["readme"],
        has_compliance=compliance,
        makes_submission=makes_submission and not is_on["skip_submission_generation"],
        is_checked=is_checked,
        loadgen_variation=loadgen,
    )


def _implementation(reader: _Reader) -> None:
    name = reader.text("implementation")
    if name not in IMPLEMENTATIONS:
        reader.wrong("implementation", f"found {name!r}; known: {', '.join(IMPLEMENTATIONS)}")
    elif name != "crowdperf":
        reader.remarks.append(
            f"--implementation={name}: what runs is crowdperf's own harness, and results say crowdperf"
        )


def _has_compliance(reader: _Reader, division: str, *, otherwise: bool) -> bool:
    wanted = reader.truth("compliance", otherwise=otherwise and division != "open")
    if wanted and division == "open":
        reader.remarks.append(
            "--compliance has no effect: the open division has no compliance tests (--division=closed)"
        )
    return wanted and division != "open"


def _division(reader: _Reader) -> str:
    division = reader.text("division") or "open"
    if division not in DIVISIONS:
        reader.not_allowed("division", ", ".join(DIVISIONS))
    elif reader.chosen.text("CM_MLPERF_SUBMISSION_GENERATION_STYLE") == "short" and division != "open":
        reader.wrong("division", f"found {division!r}; _short is for the open division, take _full")
    return division


def _modes(reader: _Reader) -> tuple[Mode, ...]:
    everything = reader.chosen.truth("CM_MLPERF_LOADGEN_ALL_MODES")
    text = reader.text("mode") or reader.chosen.text("CM_MLPERF_RUN_MODES")
    try:
        return parse_modes("all" if everything else text)
    except UnknownName as error:
        reader.wrong("mode", str(error))
        return tuple(Mode)


def _round(reader: _Reader, model: str) -> str:
    """The round whose rules hold: the one of the variation, else the newest that has the benchmark."""
    text = reader.chosen.text("CM_MLPERF_INFERENCE_VERSION").removesuffix("-dev")
    allowed = rounds_of(model) if model in BENCHMARKS else ROUNDS
    name = f"v{text}" if text else allowed[-1]
    if name not in allowed:
        reader.problems.append(f"_r{text}: {model} is not in round {name}; it is in {', '.join(allowed)}")
        return allowed[-1]
    return name


def _loadgen(reader: _Reader, round_name: str, rounds: LoadGenRounds) -> str:
    """The variation of get-mlperf-loadgen for the round asked for; empty for the usual one."""
    if not reader.chosen.text("CM_MLPERF_INFERENCE_VERSION") or round_name == rounds.usual:
        return ""
    if round_name in rounds.there:
        return f"_{round_name}"
    there = ", ".join(rounds.there)
    words = f"no LoadGen package has the seeds of {round_name} (there are {there}); {rounds.usual}'s are used"
    reader.remarks.append(words)
    return ""


def _category(reader: _Reader, model: str, round_name: str) -> str:
    """The category: the one given, else edge, or datacenter for a benchmark that edge does not have."""
    text = reader.text("category").replace(" ", "")
    text = "datacenter,edge" if text in ("edge,datacenter", "datacenter-edge", "edge-datacenter") else text
    if text and text not in CATEGORIES:
        reader.not_allowed("category", ", ".join(CATEGORIES))
    if text or model not in BENCHMARKS:
        return text if text in CATEGORIES else "edge"
    return "edge" if rules_in(model, round_name).edge else "datacenter"


def valid_scenarios(model: str, round_name: str, category: str) -> tuple[Scenario, ...]:
    """The scenarios of a benchmark in a category; those that suit it for one that MLPerf does not know."""
    if model not in BENCHMARKS:
        return scenarios_of(model)
    rules = rules_in(model, round_name)
    return {"edge": rules.edge, "datacenter": rules.datacenter}.get(category, rules.both)


def _scenarios(reader: _Reader, model: str, round_name: str, category: str, *, needs_all: bool) -> tuple[Scenario, ...]:
    allowed = valid_scenarios(model, round_name, category)
    names = [scenario.value for scenario in allowed]
    if not allowed:
        reader.wrong("category", f"{model} has no scenario in category {category} in round {round_name}")
        return ()
    known = "" if model in BENCHMARKS else f" ({model} is not an MLPerf benchmark: every scenario can be run)"
    text = reader.text("scenario")
    if reader.chosen.truth("CM_MLPERF_LOADGEN_ALL_SCENARIOS") or text.lower() == "all" or needs_all:
        if text and text.lower() != "all":
            reader.remarks.append(f"--scenario={text} has no effect: all scenarios are made")
        reader.remarks.append(f"Valid Scenarios for {model} in {category} category are :{names}{known}")
        return allowed
    try:
        wanted = {scenario_named(word) for word in reader.words("scenario") or ("Offline",)}
    except UnknownName as error:
        reader.wrong("scenario", f"{error}, all")
        return ()
    missing = sorted(scenario.value for scenario in wanted if scenario not in allowed)
    if missing:
        what = f"{model} has no {', '.join(missing)} in category {category} in round {round_name}"
        reader.wrong("scenario", f"{what}; it has {', '.join(names)}")
    return tuple(scenario for scenario in Scenario if scenario in wanted)
