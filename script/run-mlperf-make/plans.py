"""From a target, its variables and what is around the call to its recipe calls. Pure but for what `Around` looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlperf_configs.effective import EffectiveConfig
from mlperf_configs.registry import UnknownConfig
from mlperf_results.backends import BACKENDS, benchmarks_on, misfit, simulated
from mlperf_results.names import Scenario
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.rounds import ROUNDS

from . import calls, run_args
from .around import Around
from .calls import Job, MakeError, RecipeCall, View
from .request import Request
from .run_args import ArgsError, RunArgs, Wanted
from .tables import table

CONFIG_VERSIONS = {"run_cpu_harness": "openvino", "run_inferentia_harness": "triton"}
"""Of targets that have one when RUN_ARGS name none (README_Triton_CPU.md and README_Triton_Inferentia.md of v2.0)."""
NEURON = "neuron"


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of a target, what is said before them, and the configurations behind them. copies: views
    that are made before the calls."""

    calls: Sequence[RecipeCall] = ()
    remarks: tuple[str, ...] = ()
    configs: Sequence[EffectiveConfig] = ()
    copies: Sequence[View] = ()


def plan_of(request: Request, around: Around) -> Plan:
    """The plan of a target. Raises MakeError for what cannot be done."""
    try:
        plan = _PLANS.get(request.work, _simple)(request, around)
    except ArgsError as error:
        raise MakeError(str(error), "make help; docs/howto/from-nvidia.md shows the flags") from error
    return replace(plan, remarks=(*request.remarks, *plan.remarks))


def job_of(request: Request, around: Around) -> tuple[Job, tuple[str, ...]]:
    """What RUN_ARGS ask for, and what is said of it. Raises ArgsError and MakeError."""
    args = run_args.read(request.text("RUN_ARGS"), around.fields)
    if request.work in CONFIG_VERSIONS and not args.config_versions:
        args = replace(args, config_versions=(CONFIG_VERSIONS[request.work],))
    is_neuron = request.work == "run_inferentia_harness"
    if is_neuron and not args.benchmarks:
        args = replace(args, benchmarks=[Wanted(name) for name in benchmarks_on(NEURON)])
    configs, left_out = _configs(args, around)
    if is_neuron:
        configs = [on_neuron(config, request.text("SIMULATE")) for config in configs]
    if not (request.is_plan and request.text("MACHINE")):
        for config in configs:
            _require(config, around)
    told = [f"{config.benchmark} {config.scenario.value}: {line}" for config in configs for line in config.told]
    job = Job(
        args=args,
        configs=configs,
        source=around.source,
        stamp=around.stamp,
        made_by=around.made_by,
        model_tags=around.recipe_tags("model"),
    )
    return job, (*args.remarks, *(f"left out: {line}" for line in left_out), *dict.fromkeys(told))


def on_neuron(config: EffectiveConfig, simulate: str) -> EffectiveConfig:
    """A configuration on AWS Inferentia, or on what stands in for it: of its settings the targets alone."""
    backend, device = simulated(simulate, NEURON, BACKENDS[NEURON].devices[0])
    targets = {name: value for name, value in config.values.items() if "expected" in name or "latency" in name}
    return replace(config, backend=backend, device=device, values=targets)


def _configs(args: RunArgs, around: Around) -> tuple[list[EffectiveConfig], list[str]]:
    """The configurations asked for, and what there is none for. Raises MakeError where none is left."""
    found: dict[tuple[str, Scenario, str], EffectiveConfig] = {}
    left_out: list[str] = []
    benchmarks = args.benchmarks or [Wanted(name) for name in around.recipe_tags("model")]
    for wanted, scenario, name in _combinations(args, benchmarks, around):
        try:
            config = around.config(wanted.name, scenario, name, args.user)
            found[config.benchmark, scenario, config.config_ver] = config
        except UnknownConfig as error:
            left_out.append(str(error))
        except ValueError as error:  # a setting in RUN_ARGS that the field cannot have
            raise MakeError(str(error)) from error
    if not found:
        raise MakeError("nothing is left to do:\n  " + "\n  ".join(left_out))
    return list(found.values()), left_out


def _combinations(
    args: RunArgs, benchmarks: Sequence[Wanted], around: Around
) -> Iterator[tuple[Wanted, Scenario, str]]:
    """Benchmark, scenario and config_ver of all that is asked for; "all" means all that there are."""
    registry = around.registry
    for wanted in benchmarks:
        for scenario in args.scenarios or registry.scenarios(wanted.base):
            names: Sequence[str] = args.config_versions or ("default",)
            if names == ("all",) and scenario in registry.scenarios(wanted.base):
                names = registry.config_versions(wanted.base, scenario, around.system)
            yield from ((wanted, scenario, name) for name in names)


def _require(config: EffectiveConfig, around: Around) -> None:
    """Raises MakeError for a configuration that cannot run here."""
    what = f"{config.benchmark} {config.scenario.value} on {config.system} (config_ver={config.config_ver})"
    why = around.missing_hardware() if config.device == "cuda" else ""
    if why:
        hint = "USE_CPU=1 runs on the processor; make plan TARGET=run MACHINE=... plans for a recorded machine"
        raise MakeError(f"{what} needs a GPU: {why}", hint)
    if why := misfit(config.backend, config.benchmark, config.device):
        raise MakeError(f"{what}: {why}", "USE_CPU=1 runs on the processor")
    if config.backend not in around.backends:
        raise MakeError(f"{what} needs the backend {config.backend}; there are {', '.join(around.backends)}")


def _engines(request: Request, around: Around) -> Plan:
    job, remarks = job_of(request, around)
    return Plan(calls.engines(job), remarks, job.configs)


def _harness(request: Request, around: Around) -> Plan:
    job, remarks = job_of(request, around)
    missing = [] if request.is_plan or request.work == "run" else calls.missing_engines(job)
    if missing:
        names = "\n  ".join(map(calls.engine_place, missing))
        again = f'make generate_engines RUN_ARGS="{calls.run_args_of(missing)}"'
        text = f"engines that are not there, or were made for other settings: {len(missing)}\n  {names}"
        again += f" SOURCE={job.source}" if job.source != "real" else ""
        raise MakeError(text, f"{again} USE_CPU=1" if around.is_cpu else again)
    said = []
    if not job.args.has_mode:
        said.append("no --test_mode: performance and accuracy runs; --test_mode=PerformanceOnly makes the first only")
    if job.source != "real" and job.args.length is None:
        said.append(f"SOURCE={job.source}: made data, so runs of 2 s; --fast makes runs of 60 s")
    made = calls.harness(job)
    there = [view.place for call in made for view in call.views if (request.folder / view.place).exists()]
    if there and not request.is_plan:
        raise MakeError(f"logs are there already: {', '.join(there)}", "--log_dir=FOLDER names another folder")
    engines = calls.engines(job) if request.work == "run" else []
    return Plan([*engines, *made], (*remarks, *said), job.configs)


def _calibrate(request: Request, around: Around) -> Plan:
    job, remarks = job_of(request, around)
    return Plan(calls.calibrations(job), remarks, job.configs)


def _conf_files(request: Request, around: Around) -> Plan:
    job, remarks = job_of(request, around)
    return Plan(calls.conf_files(job), remarks, job.configs)


def _audit(request: Request, around: Around) -> Plan:
    test = request.work.removeprefix("run_audit_").replace("harness", "all").upper()
    args = run_args.read(request.text("RUN_ARGS"), around.fields)
    needs_accuracy = test in ("ALL", "TEST01")
    names = {wanted.base for wanted in args.benchmarks}
    runs = [
        run for run in around.newest_runs(with_accuracy=needs_accuracy)
        if not args.benchmarks or parse_benchmark(run.benchmark)[0] in names
        if not args.scenarios or run.scenario in args.scenarios
    ]  # fmt: skip
    if not runs:
        what = "a performance run and its accuracy run" if needs_accuracy else "a performance run"
        text = f"the test is of {what}, and build/runs has none of these benchmarks and scenarios"
        raise MakeError(text, f"make run RUN_ARGS='{request.text('RUN_ARGS')}'")
    return Plan(calls.audits(runs, test.lower() if test == "ALL" else test), args.remarks)


def _update_compliance(request: Request, around: Around) -> Plan:
    found = []
    for run in around.newest_runs(with_accuracy=False):
        place = f"compliance/{run.system}/{run.benchmark}/{run.scenario.value}"
        found.append(View("tests", place, source=run.folder))
    return Plan(copies=found)


def _data(request: Request, around: Around) -> Plan:
    part = {"download_model": "model", "download_data": "data", "preprocess_data": "preprocessed"}[request.work]
    tags = around.recipe_tags(part)
    wanted = run_args.benchmarks_in(request.text("BENCHMARKS"))
    names = list(dict.fromkeys(one.base for one in wanted)) or list(tags)
    rows = {name: tags.get(name, "") for name in names}
    without = [name for name, words in rows.items() if not words]
    remarks = (f"{', '.join(without)}: nothing to do for this target",) if without else ()
    made = calls.data_calls(part, {name: words for name, words in rows.items() if words}, around.source)
    return Plan([*calls.simple("link_dirs", request.values), *made], remarks)


def _simple(request: Request, around: Around) -> Plan:
    """A target whose calls tables.yaml lists, or one without any."""
    if request.work not in table("calls"):
        return Plan()
    found = calls.simple(request.work, {**request.values, "FOLDER": str(request.folder), "ROUND": ROUNDS[-1]})
    if request.work != "check_submission":
        return Plan(found, (table("no_counterpart"),) if request.work == "build" else ())
    root, tree = request.folder.parent.parent, "/".join(request.folder.parts[-2:])
    backup = {"backup_dir": f"{root}_logs"} if around.has_backup(root) else {}
    (call,) = found
    call = replace(call, inputs={**call.inputs, **backup}, log="results/submission_checker.log")
    return Plan([call], copies=[View("stage", f"build/submission/{tree}")])


def _container(request: Request, around: Around) -> Plan:
    """One call of run-in-container; with a MIG profile the slices are planned before and after it."""
    action = table("container_actions")[request.work]
    if action == "_prebuild" and request.is_on("NO_BUILD"):
        action = "_attach"
    if request.is_on("USE_INFERENTIA") and not request.is_plan and (why := around.missing_neuron()):
        raise MakeError(why, "leave USE_INFERENTIA out", code=16)
    detach = "yes" if request.is_on("DOCKER_DETACH") and action != "_build" else ""
    values = {**request.values, "FOLDER": str(request.folder), "DOCKER_DETACH": detach}
    (call,) = calls.simple(request.work, values)
    found = [replace(call, tags=call.tags.replace("_prebuild", action))]
    if request.text("MIG_CONF").upper() not in ("", "OFF"):
        found = [*calls.simple("configure_mig", values), *found, *calls.simple("teardown_mig", values)]
    return Plan(found)


def _build_inferentia(request: Request, around: Around) -> Plan:
    _require_neuron(request, around)
    kind = "neuron-simulated" if request.text("SIMULATE") else "neuron"
    return Plan([RecipeCall(f"get,triton,server,_{kind}", {}, is_answer=True)])


def _inferentia_harness(request: Request, around: Around) -> Plan:
    """Runs without a step for engines: they are compiled as the runs need them."""
    job, remarks = job_of(request, around)
    _require_neuron(request, around)
    return Plan(calls.harness(job), remarks, job.configs)


def _require_neuron(request: Request, around: Around) -> None:
    why = "" if request.is_plan or request.text("SIMULATE") else around.missing_neuron()
    if why:
        raise MakeError(why, f"make {request.work} SIMULATE=neuron proves the path on the processor", code=16)


_PLANS: Mapping[str, Callable[[Request, Around], Plan]] = {
    "generate_engines": _engines,
    "calibrate": _calibrate,
    "generate_conf_files": _conf_files,
    "update_compliance": _update_compliance,
    "build_inferentia": _build_inferentia,
    "run_inferentia_harness": _inferentia_harness,
    **dict.fromkeys(("run_harness", "run_cpu_harness", "run"), _harness),
    **dict.fromkeys(("run_audit_harness", "run_audit_test01", "run_audit_test04", "run_audit_test05"), _audit),
    **dict.fromkeys(("download_model", "download_data", "preprocess_data"), _data),
    **dict.fromkeys(("prebuild", "build_docker", "docker_add_user", "attach_docker", "launch_docker"), _container),
}
