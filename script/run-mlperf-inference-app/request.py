"""What a call asks for: its inputs as one frozen `Request`, with every problem collected. Pure.

The rules of the round decide the scenarios. Values that only the runs need (targets, batch sizes, counts) are handed on
as they are; run-mlperf-inference checks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.call.values import is_yes
from crowdperf.kit.user_paths import expanded
from crowdperf.rules.app_names import PRECISION_ALIASES, default_run_config
from crowdperf.rules.backends import default_backend, simulated
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import ExecutionMode, Mode, RequestError, Scenario, UnknownName, parse_modes
from crowdperf.rules.prompt_settings import PROMPT_INPUTS, URL
from crowdperf.rules.rounds import ROUNDS, rounds_of, rules_in, scenarios_of
from crowdperf.rules.run_settings import BY_INPUT, PATHS, TARGET_INPUTS

from .known import Known, LoadGenRounds

RUN_INPUTS = (*sorted((*BY_INPUT, *PATHS, "gpus")), *PROMPT_INPUTS)
"""Inputs that go to every run as they are."""
SUBMISSION_INPUTS = (
    "allow_synthetic", "hw_notes_extra", "submission_dir", "submitter", "sw_notes_extra", "system_facts",
)  # fmt: skip
"""Inputs that go to the recipe of the submission tree as they are."""
DEVICE_NAMES = {"gpu": "cuda"}


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


@dataclass(slots=True)
class _Call:
    """A call while it is read. problems, remarks: lines that end it, or that the user is told first."""

    values: Any
    env: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def given(self, names: tuple[str, ...]) -> dict[str, str]:
        """Those of some inputs that are given."""
        return {name: self.values.text(name) for name in names if self.values.is_given(name)}

    def chosen(self, key: str) -> str:
        """What variations set."""
        return str(self.env.get(key) or "")


def read(env: Mapping[str, Any], values: Any, system: Any, known: Known, folder: Path) -> Request:
    """The checked call; relative folders start at ``folder``. env: what variations set. values: the typed inputs.
    system: the input with facts of the system. Raises RequestError with every problem."""
    call, names = _Call(values, env), known.names
    model = names.aliases.get(values["model"], values["model"])
    backend, device = _stand_in(call, values["backend"] or default_backend(model, asks_server=values.is_given(URL)))
    precision = PRECISION_ALIASES.get(values["precision"], values["precision"])
    if (name := values["implementation"]) != "crowdperf":
        call.remarks.append(
            f"--implementation={name}: the runs use crowdperf's own harness, and results record crowdperf"
        )
    round_name = _round(call, model)
    category = _category(values["category"] or "", model, round_name)
    division = values["division"]
    if call.chosen("CM_MLPERF_SUBMISSION_GENERATION_STYLE") == "short" and division != "open":
        call.problems.append(f"--division: found {division!r}, but _short is for the open division, use _full")
    modes = _modes(call)
    is_finding = values["find_performance"] is True
    makes_submission = is_yes(env.get("CM_MLPERF_SUBMISSION_RUN"))
    compliance = _has_compliance(call, division, otherwise=makes_submission)
    if is_finding and modes != (Mode.PERFORMANCE,):
        call.problems.append("find-performance makes performance runs only, so leave --mode and other variations out")
    scenarios = _scenarios(call, model, round_name, category, needs_all=makes_submission and division != "open")
    if call.problems:
        raise RequestError(call.problems)
    loadgen = _loadgen(call, round_name, known.rounds)
    return Request(
        model=model,
        backend=backend,
        device=device,
        precision=precision,
        source=values["source"],
        round_name=round_name,
        division=division,
        category=category,
        scenarios=scenarios,
        modes=modes,
        execution_mode=ExecutionMode(values["execution_mode"]),
        results_folder=folder / expanded(values["results_dir"] or ""),
        options=call.given(RUN_INPUTS),
        targets=call.given(TARGET_INPUTS),
        submission={**call.given(SUBMISSION_INPUTS), **({"system": system} if system else {})},
        remarks=tuple(call.remarks),
        hw_name=values.text("hw_name"),
        run_config=values["run_config"] or default_run_config(values["source"], precision),
        is_finding=is_finding,
        is_rerun=bool(values["rerun"] or values["clean"]),
        is_clean=values["clean"] is True,
        has_readmes=values["readme"] is True,
        has_compliance=compliance,
        makes_submission=makes_submission and not values["skip_submission_generation"],
        is_checked=values["run_checker"],
        loadgen_variation=loadgen,
    )


def _stand_in(call: _Call, backend: str) -> tuple[str, str]:
    """The backend and the device that run: with `--simulate` a stand-in on the CPU."""
    device = DEVICE_NAMES.get(call.values["device"], call.values["device"])
    try:
        return simulated(call.values["simulate"] or "", backend, device)
    except ValueError as error:
        call.problems.append(f"--simulate: {error}")
        return backend, device


def _has_compliance(call: _Call, division: str, *, otherwise: bool) -> bool:
    said = call.values["compliance"]
    wanted = otherwise and division != "open" if said is None else said
    if wanted and division == "open":
        call.remarks.append("--compliance has no effect: the open division has no compliance tests (--division=closed)")
    return bool(wanted and division != "open")


def _modes(call: _Call) -> tuple[Mode, ...]:
    everything = is_yes(call.chosen("CM_MLPERF_LOADGEN_ALL_MODES"))
    text = ",".join(call.values["mode"] or ()) or call.chosen("CM_MLPERF_RUN_MODES")
    try:
        return parse_modes("all" if everything else text)
    except UnknownName as error:
        call.problems.append(f"--mode: {error}")
        return tuple(Mode)


def _round(call: _Call, model: str) -> str:
    """The round whose rules hold: the one of the variation, else the newest that has the benchmark."""
    text = call.chosen("CM_MLPERF_INFERENCE_VERSION").removesuffix("-dev")
    allowed = rounds_of(model) if model in BENCHMARKS else ROUNDS
    name = f"v{text}" if text else allowed[-1]
    if name not in allowed:
        call.problems.append(f"_r{text}: {model} is not in round {name}, only in {', '.join(allowed)}")
        return allowed[-1]
    return name


def _loadgen(call: _Call, round_name: str, rounds: LoadGenRounds) -> str:
    """The variation of get-mlperf-loadgen for the round asked for; empty for the usual one."""
    if not call.chosen("CM_MLPERF_INFERENCE_VERSION") or round_name == rounds.usual:
        return ""
    if round_name in rounds.there:
        return f"_{round_name}"
    there = ", ".join(rounds.there)
    words = f"no LoadGen package has the seeds of {round_name} (there are {there}), so {rounds.usual}'s are used"
    call.remarks.append(words)
    return ""


def _category(given: str, model: str, round_name: str) -> str:
    """The category: the one given, else edge, or datacenter for a benchmark that edge does not have."""
    if given or model not in BENCHMARKS:
        return {"": "edge", "edge-datacenter": "datacenter,edge"}.get(given, given)
    return "edge" if rules_in(model, round_name).edge else "datacenter"


def valid_scenarios(model: str, round_name: str, category: str) -> tuple[Scenario, ...]:
    """The scenarios of a benchmark in a category; those that suit it for one that MLPerf does not know."""
    if model not in BENCHMARKS:
        return scenarios_of(model)
    rules = rules_in(model, round_name)
    return {"edge": rules.edge, "datacenter": rules.datacenter}.get(category, rules.both)


def _scenarios(call: _Call, model: str, round_name: str, category: str, *, needs_all: bool) -> tuple[Scenario, ...]:
    allowed = valid_scenarios(model, round_name, category)
    names = [scenario.value for scenario in allowed]
    if not allowed:
        call.problems.append(f"--category: {model} has no scenario in category {category} in round {round_name}")
        return ()
    known = "" if model in BENCHMARKS else f" ({model} is not an MLPerf benchmark: every scenario can be run)"
    words, text = call.values["scenario"], call.values.text("scenario")
    if is_yes(call.chosen("CM_MLPERF_LOADGEN_ALL_SCENARIOS")) or "all" in words or needs_all:
        if text and "all" not in words:
            call.remarks.append(f"--scenario={text} has no effect: all scenarios are made")
        call.remarks.append(f"Valid Scenarios for {model} in {category} category are :{names}{known}")
        return allowed
    wanted = {Scenario(word) for word in words}
    missing = sorted(scenario.value for scenario in wanted if scenario not in allowed)
    if missing:
        what = f"{model} has no {', '.join(missing)} in category {category} in round {round_name}"
        call.problems.append(f"--scenario: {what}, only {', '.join(names)}")
    return tuple(scenario for scenario in Scenario if scenario in wanted)
