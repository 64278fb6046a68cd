"""From a target, its variables and what is around the call to its recipe calls. Pure but for what `Around` looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlperf_configs.effective import EffectiveConfig
from mlperf_configs.fields import FIELDS
from mlperf_configs.registry import UnknownConfig
from mlperf_results.backends import BACKENDS, benchmarks_on, misfit, simulated
from mlperf_results.names import Scenario
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.rounds import ROUNDS, rounds_of

from . import calls, run_args
from .around import Around
from .calls import Job, RecipeCall, View
from .request import MakeError, Request
from .run_args import RunArgs, Wanted
from .tables import table

CONFIG_VERSIONS = {"run_cpu_harness": ("openvino",), "run_inferentia_harness": ("triton",)}
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
    plan = _PLANS.get(request.work, _listed)(request, around)
    return replace(plan, remarks=(*request.remarks, *plan.remarks))


def _of_configs(request: Request, around: Around) -> Plan:
    """A target that makes something for each configuration."""
    job, remarks = _job(request, around)
    made = calls.engines(job) if request.work == "generate_engines" else calls.of_each(request.work, job)
    return Plan(made, remarks, job.configs)


def _job(request: Request, around: Around) -> tuple[Job, tuple[str, ...]]:
    """What RUN_ARGS ask for, and what is said of it. Raises MakeError."""
    args, is_neuron = run_args.read(request.text("RUN_ARGS"), around.fields), request.work == "run_inferentia_harness"
    args = replace(args, config_versions=args.config_versions or CONFIG_VERSIONS.get(request.work, ()))
    if is_neuron and not args.benchmarks:
        args = replace(args, benchmarks=tuple(Wanted(name, name) for name in benchmarks_on(NEURON)))
    configs, left_out = _configs(args, around)
    if is_neuron:
        configs = [_on_neuron(config, request.text("SIMULATE")) for config in configs]
    if not (request.is_plan and request.text("MACHINE")):
        for config in configs:
            _require(config, around)
    told = [f"{config.benchmark} {config.scenario.value}: {line}" for config in configs for line in config.told]
    remarks = (*args.remarks, *(f"left out: {line}" for line in left_out), *dict.fromkeys(told))
    return Job(args, configs, around), remarks


def _on_neuron(config: EffectiveConfig, simulate: str) -> EffectiveConfig:
    """A configuration on AWS Inferentia, or on what stands in for it: of its settings the targets, and its own."""
    backend, device = simulated(simulate, NEURON, BACKENDS[NEURON].devices[0])
    kept = {
        name: value
        for name, value in config.values.items()
        if "expected" in name or "latency" in name or backend in FIELDS[name].backends
    }
    own = [line for line in config.told if line.partition(":")[0].partition(" ")[0] not in kept]
    return replace(config, backend=backend, device=device, values=kept, notes=tuple(own))


def _configs(args: RunArgs, around: Around) -> tuple[list[EffectiveConfig], list[str]]:
    """The configurations asked for, and what there is none for. Raises MakeError where none is left."""
    found: dict[tuple[str, Scenario, str], EffectiveConfig] = {}
    left_out: list[str] = []
    for name, scenario, version in _combinations(args, around):
        try:
            config = around.config(name, scenario, version, args.user)
            found[config.benchmark, scenario, config.config_ver] = config
        except UnknownConfig as error:
            left_out.append(str(error))
        except ValueError as error:  # a setting in RUN_ARGS that the field cannot have
            raise MakeError(str(error)) from error
    if not found:
        raise MakeError("nothing is left to do:\n  " + "\n  ".join(left_out))
    return list(found.values()), left_out


def _combinations(args: RunArgs, around: Around) -> Iterator[tuple[str, Scenario, str]]:
    """Benchmark, scenario and config_ver of all that is asked for; "all" means all that there are."""
    registry = around.registry
    for base, name in args.benchmarks or [Wanted(name, name) for name in around.recipe_tags("model")]:
        for scenario in args.scenarios or registry.scenarios(base):
            versions: Sequence[str] = args.config_versions or ("default",)
            if versions == ("all",) and scenario in registry.scenarios(base):
                versions = registry.config_versions(base, scenario, around.system)
            yield from ((name, scenario, version) for version in versions)


def _require(config: EffectiveConfig, around: Around) -> None:
    """Raises MakeError for a configuration that cannot run here."""
    what = f"{config.benchmark} {config.scenario.value} on {config.system} (config_ver={config.config_ver})"
    if config.device == "cuda" and (why := around.missing("cuda")):
        hint = "USE_CPU=1 runs on the processor; make plan TARGET=run MACHINE=... plans for a recorded machine"
        raise MakeError(f"{what} needs a GPU: {why}", hint)
    if why := misfit(config.backend, config.benchmark, config.device):
        raise MakeError(f"{what}: {why}", "USE_CPU=1 runs on the processor")
    if config.backend not in around.backends:
        raise MakeError(f"{what} needs the backend {config.backend}; there are {', '.join(around.backends)}")


def _harness(request: Request, around: Around) -> Plan:
    """The runs; with `run` their engines first. On Inferentia models are compiled as the runs need them."""
    job, remarks = _job(request, around)
    if request.work == "run_inferentia_harness":
        _require_neuron(request, around)
    elif request.work != "run" and not request.is_plan:
        _require_engines(job)
    said = []
    if "test_mode" not in job.args.flags:
        said.append("no --test_mode: performance and accuracy runs; --test_mode=PerformanceOnly makes the first only")
    if around.source != "real" and job.args.length is None:
        said.append(f"SOURCE={around.source}: made data, so runs of 2 s; --fast makes runs of 60 s")
    made = calls.harness(job)
    there = [view.place for call in made for view in call.views if (request.folder / view.place).exists()]
    if there and not request.is_plan:
        raise MakeError(f"logs are there already: {', '.join(there)}", "--log_dir=FOLDER names another folder")
    engines = calls.engines(job) if request.work == "run" else []
    return Plan([*engines, *made], (*remarks, *said), job.configs)


def _require_engines(job: Job) -> None:
    """Raises MakeError where engines are missing, with the call that makes them."""
    if missing := calls.missing_engines(job):
        names = "\n  ".join(map(calls.engine_place, missing))
        around, text = job.around, "engines that are not there, or were made for other settings"
        again = [f'make generate_engines RUN_ARGS="{calls.run_args_of(missing)}"']
        again += [f"SOURCE={around.source}"] if around.source != "real" else []
        again += ["USE_CPU=1"] if around.is_cpu else []
        raise MakeError(f"{text}: {len(missing)}\n  {names}", " ".join(again))


def _require_neuron(request: Request, around: Around) -> None:
    if not (request.is_plan or request.text("SIMULATE")) and (why := around.missing("inferentia")):
        raise MakeError(why, f"make {request.work} SIMULATE=neuron proves the path on the processor", code=16)


def _audit(request: Request, around: Around) -> Plan:
    test = request.work.removeprefix("run_audit_").replace("harness", "all")
    args = run_args.read(request.text("RUN_ARGS"), around.fields)
    needs_accuracy = test in ("all", "test01")
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
    given = {"TEST": test if test == "all" else test.upper()}
    rows = [{**given, "RUN": run.folder, "ROUND": rounds_of(run.benchmark)[-1]} for run in runs]
    return Plan([call for row in rows for call in calls.listed("audit", row)], args.remarks)


def _update_compliance(request: Request, around: Around) -> Plan:
    runs = around.newest_runs(with_accuracy=False)
    places = {f"compliance/{run.system}/{run.benchmark}/{run.scenario.value}": run.folder for run in runs}
    return Plan(copies=[View("tests", place, source=folder) for place, folder in places.items()])


def _data(request: Request, around: Around) -> Plan:
    """One part of benchmarks, linked into the scratch space; they may share it.

    Links to made data have names of their own, so that nobody puts published files into them.
    """
    part = {"download_model": "model", "download_data": "data", "preprocess_data": "preprocessed"}[request.work]
    tags, is_real = around.recipe_tags(part), around.source == "real"
    names = {one.base: tags.get(one.base) for one in run_args.benchmarks_in(request.text("BENCHMARKS"))} or tags
    found = calls.listed("link_dirs", request.values)
    for base in filter(tags.get, names):
        name = table("folders").get(base, {}).get(part, base)  # of the rounds whose scripts are not read: our name
        place = name if is_real else f"{name}.{around.source}"
        values = {"TAGS": tags[base], "MADE": calls.made(around.source), "NAME": place}
        found += calls.listed(request.work, values)
    without = ", ".join(name for name in names if not tags.get(name))
    return Plan(calls.merged(found), (f"{without}: nothing to do for this target",) if without else ())


def _listed(request: Request, around: Around) -> Plan:
    """A target whose calls tables.yaml lists, or one without any."""
    if request.work not in table("calls"):
        return Plan()
    remarks = (table("no_counterpart"),) if request.work == "build" else ()
    return Plan(calls.listed(request.work, request.values), remarks)


def _check_submission(request: Request, around: Around) -> Plan:
    """The checker, of a copy of what a submission holds."""
    root, tree = request.folder.parent.parent, "/".join(request.folder.parts[-2:])
    backup = Path(f"{root}_logs")  # of make truncate_results
    values = {**request.values, "ROUND": ROUNDS[-1], "BACKUP": str(backup) if backup.is_dir() else ""}
    (call,) = calls.listed(request.work, values)
    staged = View("stage", f"build/submission/{tree}")
    return Plan([replace(call, log="results/submission_checker.log")], copies=[staged])


def _container(request: Request, around: Around) -> Plan:
    """One call of run-in-container; with a MIG profile the slices are planned before and after it."""
    if request.is_on("USE_INFERENTIA") and not request.is_plan and (why := around.missing("inferentia")):
        raise MakeError(why, "leave USE_INFERENTIA out", code=16)
    is_built = request.work == "prebuild" and request.is_on("NO_BUILD")
    values = {
        **request.values,
        "FOLDER": str(request.folder),
        "DETACH": "yes" if request.is_on("DOCKER_DETACH") else "",
    }
    found = calls.listed("attach_docker" if is_built else request.work, values)
    if request.text("MIG_CONF").upper() not in ("", "OFF"):
        found = [*calls.listed("configure_mig", values), *found, *calls.listed("teardown_mig", values)]
    return Plan(found)


def _build_inferentia(request: Request, around: Around) -> Plan:
    _require_neuron(request, around)
    kind = "neuron-simulated" if request.text("SIMULATE") else NEURON
    return Plan(calls.listed(request.work, {"NEURON": kind}))


_PLANS: Mapping[str, Callable[[Request, Around], Plan]] = {
    "update_compliance": _update_compliance,
    "check_submission": _check_submission,
    "build_inferentia": _build_inferentia,
    **dict.fromkeys(("generate_engines", "calibrate", "generate_conf_files"), _of_configs),
    **dict.fromkeys(("run_harness", "run_cpu_harness", "run_inferentia_harness", "run"), _harness),
    **dict.fromkeys(("run_audit_harness", "run_audit_test01", "run_audit_test04", "run_audit_test05"), _audit),
    **dict.fromkeys(("download_model", "download_data", "preprocess_data"), _data),
    **dict.fromkeys(("prebuild", "build_docker", "docker_add_user", "attach_docker", "launch_docker"), _container),
}
