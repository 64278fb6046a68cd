"""What a call of run-mlperf-inference comes to: its inputs as one `Config`, and the LoadGen runs that follow from it.

Pure: values and known names come in as arguments. Everything that is wrong is collected and shown at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crowdperf.data.errors import DataError
from crowdperf.data.language_models import LanguageModel, backends_for, chosen_precision, misfits, read_language_model
from crowdperf.kit.user_paths import unusual_path
from crowdperf.rules.app_names import PRECISION_ALIASES, AppNames, run_tags
from crowdperf.rules.backends import BACKENDS, default_backend, default_precision, misfit, simulated
from crowdperf.rules.benchmarks import RECORDS, model_of, record_of
from crowdperf.rules.names import TARGETS, ExecutionMode, Mode, RequestError, Scenario, counted
from crowdperf.rules.prompt_settings import PROMPT_INPUTS, URL, PromptSettings
from crowdperf.rules.query_counts import LONGEST_TEST_S, fewest_queries
from crowdperf.rules.record import OwnModel
from crowdperf.rules.rounds import chosen_scenarios
from crowdperf.rules.run_settings import (
    EFFICIENCY,
    NUMBERS,
    OWN_TEXTS,
    PATHS,
    SERVING,
    TARGET_INPUTS,
    gpus_problem,
    misplaced_inputs,
)

from . import loads
from .reading import (
    ALL,
    Problems,
    folder_name,
    modes_of,
    one_model,
    origins,
    resume_rule,
    with_config_ver,
)

DEFAULT_SOURCE = "real"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is measured. `source` says which model and data set: "real", "synthetic" or "tiny". `options` are further
    inputs of app-mlperf-inference; where nothing is given the harness decides."""

    model: str
    backend: str
    device: str
    precision: str
    source: str
    execution_mode: ExecutionMode
    options: Mapping[str, str]

    def as_texts(self) -> dict[str, str]:
        """What files say of it, but for the options."""
        texts = {name: getattr(self, name) for name in ("model", "backend", "device", "precision", "source")}
        return {**texts, "execution_mode": self.execution_mode.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Workload):
    """A checked call. `targets` holds the given target inputs by name.

    `resume` is one of RESUME_VALUES, or empty for a call that starts anew. `run_id` names a folder that several calls
    share (resume.py); empty: one of this call alone. `target_origin`: where targets come from when not from the user.
    `is_finding`: the runs, all in performance mode, look for their target and are no results. `is_checked`: what does
    not pass ends the call with an error.
    """

    scenarios: tuple[Scenario, ...]
    modes: tuple[Mode, ...]
    results_folder: Path
    targets: Mapping[str, float]
    resume: str = ""
    run_id: str = ""
    is_rerun: bool = False
    target_origin: Mapping[Scenario, str] = field(default_factory=dict)
    is_finding: bool = False
    is_checked: bool = True

    @property
    def is_part(self) -> bool:
        """Whether the call is a repeat or a try of another one, which prints what came out."""
        return re.fullmatch(r"(repeat|try)-\d+", self.run_id) is not None

    @property
    def is_load_search(self) -> bool:
        """Whether the call searches for the highest rate or concurrency of a backend that answers prompts."""
        return self.is_finding and BACKENDS[self.backend].is_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec(Workload):
    """One LoadGen run. The targets are None where the harness decides, or where the scenario has no such target."""

    scenario: Scenario
    mode: Mode
    target_qps: float | None
    target_latency_ms: float | None

    @property
    def tags(self) -> str:
        """The query of the recipe app-mlperf-inference with the variations of this run."""
        return run_tags({**self.as_texts(), "scenario": self.scenario.value, "mode": self.mode.value}, self.source)

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs of app-mlperf-inference for this run, but for the folder that it writes to."""
        given = {
            "execution_mode": self.execution_mode.value,
            **self.options,
            "target_qps": self.target_qps,
            "target_latency_ms": self.target_latency_ms,
        }
        return {name: str(value) for name, value in given.items() if value is not None}

    @property
    def is_search(self) -> bool:
        """Whether LoadGen runs several times to find the target, for a time that only the harness can tell."""
        return self.options.get("find") == "yes"

    @property
    def is_issued_once(self) -> bool:
        """Whether each request of a trace or of conversations is issued once, for a time that the data decide."""
        return "trace" in self.options or self.options.get("conversations") == "yes"

    @property
    def min_duration_s(self) -> float:
        """Shortest time that LoadGen measures; 0 for an accuracy run, which ends with the last sample, and for requests
        that are issued once. Where the rate is known before, it is long enough for the queries that early stopping
        needs."""
        if self.mode is Mode.ACCURACY or self.is_issued_once:
            return 0.0
        asked_s = int(self.options.get("min_duration_ms", self.execution_mode.min_duration_ms)) / 1000.0
        if (not self.target_qps and not self.target_latency_ms) or self.scenario is Scenario.OFFLINE:
            return asked_s
        if self.scenario.is_stream:
            queries_s = self.min_queries * (self.target_latency_ms or 0.0) / 1000.0
        else:
            queries_s = self.min_queries / self.target_qps if self.target_qps else 0.0
        is_test = self.execution_mode is ExecutionMode.TEST and "min_query_count" not in self.options
        return max(asked_s, min(queries_s, LONGEST_TEST_S) if is_test else queries_s)

    @property
    def min_queries(self) -> int:
        """The queries that a run makes at least; not of Offline."""
        return int(self.options.get("min_query_count") or fewest_queries(self.scenario, record_of(self.model)))


def _unused_targets(targets: Mapping[str, float], scenarios: tuple[Scenario, ...]) -> list[str]:
    """A problem for each given target that no wanted scenario takes: it would be ignored without a word."""
    used = {name for scenario in scenarios for name in TARGETS[scenario][1:]}
    wanted = ", ".join(scenario.value for scenario in scenarios)
    problems = []
    for name in sorted(set(targets) - used):
        takers = ", ".join(scenario.value for scenario, names in TARGETS.items() if name in names[1:])
        own = ", ".join(f"--{TARGETS[scenario][1]}" for scenario in scenarios)
        problems.append(f"--{name}: only {takers} has this target; requested: {wanted}, whose target is {own}")
    return problems


def _wanted_scenarios(words: tuple[str, ...], model: str, problems: Problems) -> tuple[Scenario, ...]:
    wanted, why = chosen_scenarios(words, model)
    if why:
        problems.note("scenario", why)
    return wanted


def _options(values: Any, device: str, problems: Problems) -> dict[str, str]:
    options = {one.name: str(values[one.name]) for one in NUMBERS if values[one.name] is not None}
    options |= {name: values.text(name) for name in (*(one.name for one in SERVING), *PROMPT_INPUTS)}
    if gpus := values["gpus"]:
        options["gpus"] = ",".join(map(str, gpus))
        if why := gpus_problem(gpus, device, "give --device=cuda"):
            problems.note("gpus", f"found {values.text('gpus')!r}: {why}")
    options |= {name: str(values[name]) for name in PATHS if values[name]}
    options |= {name: values.text(name) for name in ("machine", *OWN_TEXTS, *EFFICIENCY)}
    return {name: text for name, text in options.items() if text}


def _misfits(config: Config, prompts: PromptSettings, known: AppNames) -> list[str]:
    """A problem for everything that is right by itself and wrong together."""
    chosen = {config.model, config.backend, config.device, config.precision, config.source}
    problems = [f"{' and '.join(sorted(names))} cannot be combined" for names in known.forbidden if names <= chosen]
    if why := misfit(config.backend, config.model, config.device, config.precision):
        problems.append(why)
    if not BACKENDS[config.backend].is_served:
        problems += [
            f"--{one.name}: backend {config.backend} does not use a server"
            for one in SERVING
            if one.name in config.options
        ]
    problems += [f"--{name}: {why}" for name, why in prompts.problems(config.backend).items()]
    own = record_of(config.model).recipes.own
    if config.is_load_search and (own is None or not own.chosen_by):
        others = "an --endpoint without --model"
        problems.append(f"--find: of backends that answer prompts, only for {others}. Set --server_target_qps")
    if config.run_id and config.resume not in ("", "all"):  # "all" is what `cm resume script` gives
        problems.append(
            f"--resume: found {config.resume!r}, but runs with --run_id resume automatically, as with --resume=all: "
            "omit --resume"
        )
    for name, is_given in (("rerun", config.is_rerun), ("target_origin", bool(config.target_origin))):
        if is_given and not config.run_id:
            problems.append(f"--{name}: only allowed with --run_id")
    problems += _efficiency_problems(config)
    recipes = record_of(config.model).recipes
    problems += _foreign_inputs(config, own) + (_own_model_problems(config, own) if own else [])
    for name in () if recipes.is_own else ("dataset_path", "model_path"):
        is_fixed = recipes.is_fixed
        if name in config.options and (config.source != DEFAULT_SOURCE or is_fixed):
            made = config.model if is_fixed else f"--source={config.source}"
            way = OWN_MODEL if is_fixed else "your own copy requires --source=real"
            found = Path(config.options[name]).name
            problems.append(f"--{name}: found {found!r}, but {made} generates its own data and model: {way}")
    problems += [f"--{name}: {why}" for name, why in misplaced_inputs(config.options, config.scenarios).items()]
    return problems + _unused_targets(config.targets, config.scenarios)


def _efficiency_problems(config: Config) -> list[str]:
    """A problem for each input of energy and cost that no run of the call has."""
    given = [name for name in EFFICIENCY if name in config.options]
    if config.is_finding:
        return [f"--{name}: not supported with --find, which does not measure a result" for name in given]
    if Mode.PERFORMANCE not in config.modes:
        return [f"--{name}: only performance runs have it. Omit it, or add performance to --mode" for name in given]
    return []


OWN_MODELS = tuple((record, record.recipes.own) for record in RECORDS.values() if record.recipes.own)
"""What users bring: each record with how it is chosen and what it needs."""

OWN_PATHS = ", ".join([own.needs for _, own in OWN_MODELS if own.suffix] + ["model_path=FOLDER (Hugging Face)"])
OWN_MODEL = (
    "your own copy is only supported for a benchmark such as resnet50. Your own model runs without --model: "
    f"{OWN_PATHS.replace('model_path', '--model_path')}"
)


def _foreign_inputs(config: Config, chosen: OwnModel | None) -> list[str]:
    """A problem for each input that only other models of the user have."""
    names = {name: None for _, own in OWN_MODELS for name in own.inputs}
    problems = []
    for name in names:
        if name in config.options and (chosen is None or name not in chosen.inputs):
            takers = [f"{one.title} (--{own.needs} without --model)" for one, own in OWN_MODELS if name in own.inputs]
            problems.append(f"--{name}: only supported for {'; or '.join(takers)}")
    return problems


def _own_model_problems(config: Config, own: OwnModel) -> list[str]:
    """A problem for each input that a model of the user cannot have."""
    problems = []
    needed = own.needs.partition("=")[0]
    if needed in PATHS and needed not in config.options:
        problems.append(f"--model={config.model}: an input is missing, add --{own.needs}")
    if "dataset_path" in config.options:
        problems.append("--dataset_path: your own model gets its samples with --inputs or --prompts")
    if config.source != DEFAULT_SOURCE:
        problems.append(f"--source={config.source}: your own model has no synthetic one. Omit it")
    if Mode.ACCURACY in config.modes and "expected" not in config.options:
        problems.append("--mode: an accuracy run needs --inputs=FILE.npz and --expected=FILE.npz (ONNX files only)")
    return problems


def _stand_in(values: Any, backend: str, problems: Problems) -> tuple[str, str]:
    """The backend and the device that run: with `--simulate` a stand-in on the CPU."""
    try:
        return simulated(values["simulate"] or "", backend, values["device"])
    except ValueError as error:
        problems.note("simulate", str(error))
        return backend, values["device"]


def _model_of(values: Any, known: AppNames, problems: Problems) -> str:
    """The benchmark. Without one, the user's model or prompts decide."""
    if values.is_given("model"):
        return one_model(values, known, problems)
    path = values["model_path"]
    for record, own in OWN_MODELS:
        if path is not None and own.is_chosen_by(path):
            return record.name
    if path is not None:
        wrong = "" if path.exists() else " (it does not exist)"
        problems.note("model_path", f"found {path}{wrong}. Without --model, allowed: {OWN_PATHS}")
    for record, own in OWN_MODELS:
        if any(values[name] is not None for name in own.chosen_by):
            return record.name
    return one_model(values, known, problems)


def _language_model(values: Any, model: str, problems: Problems) -> LanguageModel | None:
    """What is known of the user's language model, None for any other run, and with a problem for one that cannot be
    measured."""
    known = RECORDS.get(model_of(model))
    if known is None or known.generation is None or not known.recipes.is_own or values["model_path"] is None:
        return None
    try:
        return read_language_model(values["model_path"])
    except DataError as error:
        problems.note("model_path", str(error))
        return None


def _modes(values: Any, model: str, problems: Problems, *, is_finding: bool) -> tuple[Mode, ...]:
    """The runs of each scenario. Without expected values, `all` means the performance runs."""
    record = RECORDS.get(model_of(model))
    is_own = record is not None and record.recipes.is_own
    is_unscored = is_own and not values["expected"] and ALL in values["mode"]
    return modes_of(("performance",) if is_unscored else values["mode"], problems, is_finding=is_finding)


def parse_config(values: Any, known: AppNames) -> Config:
    """The checked call. values: the typed inputs of a hook.

    Raises RequestError with every problem.
    """
    problems, prompts = Problems(), PromptSettings.of(values)
    model = _model_of(values, known, problems)
    own = _language_model(values, model, problems)
    if why := unusual_path(values["results_dir"]):
        problems.note("results_dir", why)
    usual = "" if own is None or prompts.endpoint else backends_for(own)[0]
    backend = values["backend"] or usual or default_backend(model, asks_server=prompts.endpoint is not None)
    model, backend = with_config_ver(values["config_ver"] or "", model, backend, known, problems)
    backend, device = _stand_in(values, backend, problems)
    prompts = prompts.with_default_server(backend)
    precision = values["precision"] or (default_precision(backend) if own is None else chosen_precision(own, backend))
    is_finding = loads.searched(values) is not None
    has_prompts = any(record.name == model and own.chosen_by for record, own in OWN_MODELS)
    load = loads.read_load(values, has_prompts=has_prompts, problems=problems)
    if prompts.endpoint:
        loads.note_connections(values, problems)
    config = Config(
        model=model,
        backend=backend,
        device=device,
        precision=PRECISION_ALIASES.get(precision, precision),
        source=values["source"],
        scenarios=load.scenarios or _wanted_scenarios(values["scenario"], model, problems),
        modes=_modes(values, model, problems, is_finding=is_finding),
        execution_mode=ExecutionMode.FAST if values["fast"] else ExecutionMode(values["execution_mode"]),
        results_folder=values["results_dir"],
        options={
            **_options(values, device, problems),
            **({URL: prompts.endpoint} if prompts.endpoint else {}),
            **load.options,
        },
        targets={**{name: values[name] for name in TARGET_INPUTS if values[name] is not None}, **load.targets},
        resume=resume_rule(values["resume"]),
        run_id=folder_name("run_id", values["run_id"], problems),
        is_rerun=values["rerun"] is True,
        target_origin=origins("target_origin", values["target_origin"], problems),
        is_finding=is_finding,
        is_checked=values["check"],
    )
    of_own = [] if own is None else misfits(own, config.backend, config.precision)
    if found := problems or of_own or _misfits(config, prompts, known):
        raise RequestError(found)
    return config


def _options_of(config: Config, scenario: Scenario) -> dict[str, str]:
    """The further inputs of a scenario's runs: those that it has not are left out."""
    left_out = misplaced_inputs(config.options, (scenario,))
    options = {name: value for name, value in config.options.items() if name not in left_out}
    return {**options, "find": "yes"} if config.is_finding else options


def matrix(config: Config) -> tuple[RunSpec, ...]:
    """The runs of a call, scenario by scenario, the performance run first."""
    specs, shared = [], {each.name: getattr(config, each.name) for each in fields(Workload)}
    for scenario in config.scenarios:
        target, own_name, shared_name = TARGETS[scenario]
        value = config.targets.get(own_name, config.targets.get(shared_name))
        for mode in config.modes:
            specs.append(
                RunSpec(
                    **{**shared, "options": _options_of(config, scenario)},
                    scenario=scenario,
                    mode=mode,
                    target_qps=value if target == "target_qps" else None,
                    target_latency_ms=value if target == "target_latency_ms" else None,
                )
            )
    return tuple(specs)


def _seconds(seconds: float) -> str:
    """A duration in seconds: whole ones from 10 on."""
    return f"{round(seconds) if seconds >= 10 else seconds:g} s"


def describe(specs: tuple[RunSpec, ...]) -> str:
    """The list of runs that a user sees before the first one starts."""
    if not specs:
        return "no LoadGen runs left"
    if all(spec.is_search for spec in specs):
        searches = [f"{spec.model} {spec.backend} {spec.device} {spec.scenario.value}" for spec in specs]
        return "\n".join([f"{counted(len(specs), 'search', 'searches')} for a target:",
                          *(f"  {number}. {what}" for number, what in enumerate(searches, start=1))])  # fmt: skip
    total_s = sum(spec.min_duration_s for spec in specs)
    measured = f", at least {_seconds(total_s)} of measuring in all" if total_s else ""
    lines = [f"{counted(len(specs), 'LoadGen run')}{measured}:"]
    for number, spec in enumerate(specs, start=1):
        length = f"at least {_seconds(spec.min_duration_s)}"
        if spec.mode is Mode.ACCURACY or spec.is_issued_once:
            length = f"every {'sample' if spec.mode is Mode.ACCURACY else 'request'} once"
        if spec.mode is Mode.PERFORMANCE and spec.scenario.is_server and spec.target_qps:
            length += f" ({spec.min_queries:,} queries, {spec.target_qps:,g} a second)"
        if spec.mode is Mode.PERFORMANCE and spec.scenario.is_stream and spec.target_latency_ms:
            length += f" ({spec.min_queries:,} queries of {spec.target_latency_ms:,g} ms)"
        what = f"{spec.model} {spec.backend} {spec.device} {spec.scenario.value} {spec.mode.value}"
        lines.append(f"  {number}. {what}: {length}")
    return "\n".join(lines)
