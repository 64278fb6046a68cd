"""From a target, its variables and what is around the call to its recipe calls. Pure but for what `Around` looks at.

tables.yaml lists the calls of a target, and for each of what they are made: each configuration that RUN_ARGS ask for,
each part of a benchmark, each run that is kept, or once. Here are the values that these rows are filled with, and what
cannot be done. `make plan TARGET=T` prints the list that `make T` makes; there is no other way to a recipe call.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from crowdperf.fronts.nvidia.effective import EffectiveConfig
from crowdperf.fronts.nvidia.fields import FIELDS, NEURON
from crowdperf.fronts.nvidia.registry import UnknownConfig
from crowdperf.fronts.nvidia.sheets import DEFAULT, HIGH
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.tree import DIVISIONS, BesideTree
from crowdperf.machine import neuron, nvidia
from crowdperf.machine.probe import Machine
from crowdperf.rules.backends import BACKENDS, benchmarks_on, misfit, simulated
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.compliance import SAMPLED_TEST, TESTS, tests_needed
from crowdperf.rules.names import ExecutionMode, Scenario
from crowdperf.rules.official_names import official_name, parse_benchmark
from crowdperf.rules.rounds import ROUNDS, rounds_of

from . import run_args
from .context import Around, earlier_benchmarks, recipe_tags
from .request import MakeError, table
from .run_args import RunArgs
from .views import INNER, View

FACTS_NAMES = ("system_facts.yaml", "system_facts.json")
NO_INPUTS = ("tags", "views", "marks", "when", "settings")
"""The keys of a row of calls in tables.yaml that are no inputs."""
SETTINGS = ("model", "scenario", "device", "backend", "gpus", *(row.input for row in FIELDS.values() if row.input))
"""The inputs of run-mlperf-inference that a configuration may have."""


@dataclass(frozen=True, slots=True)
class RecipeCall:
    """One recipe call. is_answer: what it prints is the answer of make (stdout), not the story (stderr). log: a file
    that gets it, too. may_fail: the calls after it are made all the same, and make ends with an error.
    is_planned_first: what the plan shows to be impossible is not begun."""

    tags: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    is_answer: bool = True
    may_fail: bool = False
    is_planned_first: bool = False
    log: str = ""

    @property
    def line(self) -> str:
        """The call as a user could type it."""
        return shlex.join(
            ["cm", "run", "script", f"--tags={self.tags}", *(f"--{name}={text}" for name, text in self.inputs.items())]
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls of a target, what is said before them, and the configurations behind them. copies: views
    that are made before the calls."""

    calls: Sequence[RecipeCall] = ()
    remarks: tuple[str, ...] = ()
    configs: Sequence[EffectiveConfig] = ()
    copies: Sequence[View] = ()


Rows = tuple[Sequence[Mapping[str, str]], Sequence[str], Sequence[EffectiveConfig]]
"""What the calls of a target are filled with, one mapping for each time that they are made; remarks; configurations."""


def steps_of(target: str) -> tuple[str, list[str]]:
    """For each of what a target makes calls, and their names in tables.yaml."""
    each, *names = table("steps").get(target, ["once", *([target] if target in table("calls") else [])])
    return each, names


def plan_of(around: Around) -> Plan:
    """The plan of a target. Raises MakeError for what cannot be done."""
    request = around.request
    each, names = steps_of(request.work)
    rows, remarks, configs = _ROWS[each](around)
    if any(row.get("MODES") == "find" for row in rows) and "harness" in names:
        names = [*names[: names.index("harness")], "find"]
    found = merged(call for name in names for row in rows for call in listed(name, row))
    calls = [call for call in found if call.tags]
    if "harness" in names and not request.is_plan:
        there = [view.place for call in calls for view in call.views if view.kind == "run"]
        if there := [place for place in there if (request.folder / place).exists()]:
            raise MakeError(f"logs are there already: {', '.join(there)}", "--log_dir=FOLDER names another folder")
    copies = [view for call in found if not call.tags for view in call.views]
    return Plan(calls, (*request.remarks, *remarks), configs, copies)


def listed(name: str, values: Mapping[str, str]) -> Iterator[RecipeCall]:
    """The calls that tables.yaml lists by a name, with these values in them."""
    known = defaultdict(str, values)

    def filled(text: str) -> str:
        return Template(text).substitute(known)

    for row in table("calls")[name]:
        if filled(row.get("when", "yes")):
            inputs = {one: known[one] for one in (SETTINGS if "settings" in row else ())}
            inputs |= {key: filled(text) for key, text in row.items() if key not in NO_INPUTS}
            rows = row.get("views", ())
            views = tuple(View(kind, filled(place), tuple(map(filled, source))) for kind, place, *source in rows)
            given = {key: text for key, text in inputs.items() if text}
            yield RecipeCall(filled(row.get("tags", "")), given, views, **row.get("marks", {}))


def merged(calls: Iterator[RecipeCall]) -> list[RecipeCall]:
    """Equal calls once, with the views of all."""
    found: dict[str, RecipeCall] = {}
    for call in calls:
        before = found.get(call.line)
        views = (*(before.views if before else ()), *call.views)
        found[call.line] = replace(call, views=tuple(dict.fromkeys(views)))
    return list(found.values())


def _once(around: Around) -> Rows:
    """The values of a target that is made once."""
    request = around.request
    if request.work == "build_inferentia":
        _require_neuron(around)
    elif request.is_on("USE_INFERENTIA") and "container" in table("targets")[request.work]:
        _require_neuron(around, "leave USE_INFERENTIA out")
    slices = request.values["MIG_CONF"]
    tree = _tree_values(around) if request.work in ("check_submission", "truncate_results") else {}
    values = {
        **request.values,
        "FOLDER": str(request.folder),
        "SCRATCH": request.values["MLPERF_SCRATCH_PATH"] or around.linked_scratch,
        "PREBUILD": "_attach" if request.is_on("NO_BUILD") else "_prebuild",
        "DETACH": "yes" if request.is_on("DOCKER_DETACH") else "",
        "SLICES": "" if slices.upper() == "OFF" else slices,
        "SIMULATED": "-simulated" if request.values["SIMULATE"] else "",
        "NEWEST": ROUNDS[-1],
        "SYNTHETIC": "" if around.source == "real" else "yes",
        **tree,
    }
    remarks = [table("no_counterpart")] if request.work == "build" else []
    if tree.get("HAS_RUNS") and not (around.folder / tree["FACTS"]).is_file():
        remarks.append("facts of the system that no program can find out are asked in system_facts.yaml in this folder")
    return [values], remarks, []


def _tree_values(around: Around) -> dict[str, str]:
    """What a tree for the checker is made of. Raises MakeError outside <division>/<submitter>, as in a container."""
    folder = around.folder
    division, submitter = folder.parts[-2:] if len(folder.parts) > 2 else ("", "")
    if division not in DIVISIONS:
        said = f"a workspace is in <division>/<submitter>, with division {', '.join(DIVISIONS)}, but this is {folder}"
        raise MakeError(said, f"make {around.request.work} outside the container, in the folder of the workspace")
    has_runs = any((folder / run["RUN"]).is_dir() for run in around.kept_runs())
    backup = BesideTree(folder.parent.parent).logs_folder  # of truncate_results
    facts = next((name for name in FACTS_NAMES if (folder / name).is_file()), FACTS_NAMES[0])
    return {
        "DIVISION": division,
        "SUBMITTER": around.request.values["SUBMITTER"] or submitter,
        "HAS_RUNS": "yes" if has_runs else "",
        "STAGED": "" if has_runs else "yes",
        "TREE": "build/submission" if has_runs else "build/staged",
        "FACTS": facts,
        "BACKUP": "build/submission_logs" if has_runs else str(backup) if backup.is_dir() else "",
    }


def _require_neuron(around: Around, hint: str = "") -> None:
    request = around.request
    if not (request.is_plan or request.values["SIMULATE"]) and (why := neuron.missing(Machine())):
        raise MakeError(why, hint or f"make {request.work} SIMULATE=neuron tests the path on the CPU", code=16)


def _parts(around: Around) -> Rows:
    """One part of benchmarks, linked into the scratch space; they may share it.

    Links to made data have names of their own, so that nobody puts published files into them.
    """
    request, source = around.request, around.source
    part = {"download_model": "model", "download_data": "dataset", "preprocess_data": "preprocessed"}[request.work]
    tags = recipe_tags(part)
    asked = run_args.members(request.values["BENCHMARKS"], run_args.benchmark_in)
    given, remarks = _meant(asked, around)
    names = dict.fromkeys(parse_benchmark(name)[0] for name in given) or tags
    sized = {one.name for one in RECORDS.values() if one.is_official}
    needed = ",".join(name for name in names if name in sized) if source == "real" else ""
    rows = []
    for name in filter(tags.get, names):
        place = table("folders").get(name, {}).get(part, name)  # of the rounds whose scripts are not read: our name
        shown = place if source == "real" else f"{place}.{source}"
        rows.append({**request.values, "TAGS": tags[name], "MADE": made(source), "NAME": shown, "NEEDED": needed})
    without = ", ".join(name for name in names if not tags.get(name))
    return rows, [*remarks, *([f"{without}: nothing to do for this target"] if without else [])], []


def _meant(names: Sequence[str], around: Around) -> tuple[tuple[str, ...], list[str]]:
    """The benchmarks that names mean here, and what is said of those that mean another one."""
    found = {name: around.benchmark(name) for name in names}
    remarks = [f"{name} is {one} here" for name, one in found.items() if one != name]
    for name in () if around.request.values["ROUND"] else found:
        for other, last in earlier_benchmarks(official_name(name)).items() if found[name] == name else ():
            remarks.append(f"{name} is that of rounds after {last}. ROUND={last} means {parse_benchmark(other)[0]}")
    return tuple(found.values()), remarks


def made(source: str) -> str:
    """The variation of a recipe for a source."""
    return "" if source == "real" else f",_{source}"


def _kept_runs(around: Around) -> Rows:
    """The newest run of each system, benchmark and scenario that a compliance test can be of."""
    work, text = around.request.work, around.request.values["RUN_ARGS"]
    test = {"run_audit_harness": "all"}.get(work, work.removeprefix("run_audit_").upper())
    args, request_round, needs_accuracy = (
        run_args.read(text),
        around.request.values["ROUND"],
        test in ("all", SAMPLED_TEST),
    )
    modes = ("performance", "accuracy") if needs_accuracy else ("performance",)
    logs = [str(RunPaths(Path(INNER[mode])).summary_log) for mode in modes]
    meant, remarks = _meant(args.benchmarks, around)
    names = {parse_benchmark(name)[0] for name in meant}
    rows = [
        {**run, "ROUND": _audited_round(run["benchmark"], request_round), "TEST": test}
        for run in around.kept_runs(*logs)
        if not names or parse_benchmark(run["benchmark"])[0] in names
        if not args.scenarios or Scenario(run["scenario"]) in args.scenarios
    ]
    if not rows:
        what = "a performance run and its accuracy run" if needs_accuracy else "a performance run"
        said = f"the test is of {what}, and build/runs has none of these benchmarks and scenarios"
        raise MakeError(said, again("run", [text], around))
    return rows, [*args.remarks, *remarks], []


def _audited_round(benchmark: str, asked: str) -> str:
    """The round whose compliance tests a benchmark gets: the one asked for, if it has the benchmark and only tests that
    are made here; else the newest that has it."""
    rounds = rounds_of(benchmark)
    is_made = asked in rounds and set(tests_needed(benchmark, asked, "closed")) <= {*TESTS}
    return asked if is_made else rounds[-1]


def _tested_runs(around: Around) -> Rows:
    """Of each compliance test the newest run of each system, benchmark and scenario that it was made of."""
    rows = [{**run, "TEST": test} for test in TESTS for run in around.kept_runs(f"{test}/compliance.json")]
    return rows, [] if rows else ["no run in build/runs has a compliance test. make run_audit_harness makes them"], []


def _configs(around: Around) -> Rows:
    """The configurations that RUN_ARGS ask for. Raises MakeError where none is left, and for what cannot run here."""
    request, args = around.request, run_args.read(around.request.values["RUN_ARGS"])
    meant, renamed = _meant(args.benchmarks, around)
    args = replace(args, benchmarks=meant, remarks=(*args.remarks, *renamed))
    names = steps_of(request.work)[1]
    found: dict[tuple[str, Scenario, str], EffectiveConfig] = {}
    left_out: list[str] = []
    for name, scenario, version in _combinations(args, around):
        try:
            config = around.config(
                name, scenario, version, args.user, is_test=_length(args, around) is ExecutionMode.TEST
            )
        except UnknownConfig as error:
            left_out.append(str(error))
            continue
        except ValueError as error:  # a setting in RUN_ARGS that the field cannot have
            raise MakeError(str(error)) from error
        config = _on_neuron(config, request.values["SIMULATE"]) if around.is_neuron else config
        found[config.benchmark, scenario, config.config_ver] = config
    if not found:
        raise MakeError("nothing to do:\n  " + "\n  ".join(left_out))
    configs = sorted(found.values(), key=lambda config: config.config_ver != DEFAULT)
    for config in configs:
        _require(config, around)
    rows = [_values(config, args, around) for config in configs]
    remarks = [*args.remarks, *(f"left out: {line}" for line in left_out)]
    remarks += dict.fromkeys(f"{one.benchmark} {one.scenario.value}: {line}" for one in configs for line in one.told)
    if "harness" in names:
        remarks += _harness_remarks(args, around)
        if around.is_neuron:
            _require_neuron(around)
        elif "engine" not in names and not request.is_plan:
            _require_engines(rows, args, around)
    return rows, remarks, configs


def _length(args: RunArgs, around: Around) -> ExecutionMode:
    return args.length or (ExecutionMode.VALID if around.source == "real" else ExecutionMode.TEST)


def _harness_remarks(args: RunArgs, around: Around) -> Iterator[str]:
    if "test_mode" not in args.flags:
        yield "no --test_mode: performance and accuracy runs. --test_mode=PerformanceOnly makes the first only"
    if around.source != "real" and args.length is None:
        yield f"SOURCE={around.source}: synthetic data, so runs of 2 s. --fast makes runs of 60 s"


def _combinations(args: RunArgs, around: Around) -> Iterator[tuple[str, Scenario, str]]:
    """Benchmark, scenario and config_ver of all that is asked for; "all" means all that there are."""
    registry = around.registry
    for name in args.benchmarks or (benchmarks_on(NEURON) if around.is_neuron else recipe_tags("model")):
        for scenario in args.scenarios or registry.scenarios(name):
            versions: Sequence[str] = args.config_versions or (_usual(around),)
            if "all" in versions and scenario in registry.scenarios(name):
                versions = registry.config_versions(name, scenario, around.system)
            yield from ((name, scenario, version) for version in versions)


def _on_neuron(config: EffectiveConfig, simulate: str) -> EffectiveConfig:
    """A configuration on AWS Inferentia, or on what stands in for it: of its settings the targets, and its own."""
    backend, device = simulated(simulate, NEURON, BACKENDS[NEURON].devices[0])
    kept = {
        name: value
        for name, value in config.values.items()
        if config.backend == NEURON or FIELDS[name].is_target or backend in FIELDS[name].backends
    }
    own = [line for line in config.told if line.partition(":")[0].partition(" ")[0] not in kept]
    return replace(config, backend=backend, device=device, values=kept, notes=tuple(own))


def _require(config: EffectiveConfig, around: Around) -> None:
    """Raises MakeError for a configuration that cannot run here; a recorded machine has the backends of this one."""
    what = f"{config.benchmark} {config.scenario.value} on {config.system} (config_ver={config.config_ver})"
    if config.backend not in BACKENDS:
        raise MakeError(f"{what} needs the backend {config.backend}, allowed: {', '.join(BACKENDS)}")
    if around.machine:
        return
    if config.device == "cuda" and (why := nvidia.missing_gpu(Machine())):
        hint = "USE_CPU=1 runs on the CPU, make plan TARGET=run MACHINE=... plans for a recorded machine"
        raise MakeError(f"{what} needs a GPU: {why}", hint)
    if why := misfit(config.backend, config.benchmark, config.device):
        raise MakeError(f"{what}: {why}", "USE_CPU=1 runs on the CPU")


def _values(config: EffectiveConfig, args: RunArgs, around: Around) -> dict[str, str]:
    """The values of a configuration: inputs of its runs and flags by their names, and what is made of them."""
    inputs, record, scenario = config.inputs(), BACKENDS[config.backend], config.scenario.value
    base, source, modes = parse_benchmark(config.benchmark)[0], around.source, args.modes
    precision = inputs.get("precision", "fp32") if record.engine else "fp32"  # else it is the model's own file
    device, batch = "gpu" if config.device == "cuda" else "cpu", inputs.get("batch_size", "")
    suffix = record.engine_suffix or record.model_files
    engine = f"{base}-{scenario}-{device}-b{batch or '1'}-{precision}.{config.config_ver}.{suffix}"
    is_plain = config.config_ver in (DEFAULT, HIGH)  # whose benchmarks have names of their own
    return {
        **around.request.values,
        **args.flags,
        **inputs,
        "BASE": base,
        "SYSTEM": _described(config, around),
        "PLACE": f"build/engines/{config.system}/{base}/{scenario}/{engine}",
        "ENGINE": record.engine,
        "FILES": "" if record.engine else record.model_files,
        "TAGS": recipe_tags("model")[base],
        "PRECISION": precision,
        "LARGEST": batch if record.has_largest_batch else "",
        "SOURCE": source,
        "MADE": made(source),
        "LENGTH": _length(args, around).value,
        "MODES": modes,
        "MODE": "all" if "," in modes else modes,
        "LOGS": args.flags.get("log_dir") or f"build/logs/{around.stamp}",
        "RUN_ID": "-".join([around.stamp, config.benchmark, scenario, *([] if is_plain else [config.config_ver])]),
    }


def again(target: str, run_args_words: Sequence[str], around: Around) -> str:
    """The command that makes another target of the same things."""
    text = " ".join(filter(None, run_args_words))
    words = ["make", target, *([f"RUN_ARGS={shlex.quote(text)}"] if text else [])]
    words += [f"SOURCE={around.source}"] if around.source != "real" else []
    return " ".join([*words, *(["USE_CPU=1"] if around.is_cpu else [])])


def _described(config: EffectiveConfig, around: Around) -> str:
    """The name of a system in a tree: ND_H100_v5_TRT, Triton_Inferentia_INF1_6XLARGEx1."""
    row, record = around.registry.known.get(config.system), BACKENDS[config.backend]
    if row is not None and row.kind == NEURON:
        return row.described_as
    return f"{config.system}_{record.short_name or config.backend.replace('_', '-')}"


def _require_engines(rows: Sequence[Mapping[str, str]], args: RunArgs, around: Around) -> None:
    """Raises MakeError where an engine is not there, or was made by another call than it would be now."""
    calls = [call for row in rows for call in listed("engine", row)]
    places = [call.views[0].place for call in calls if around.made_by(call.views[0].place) != call.line]
    if places:
        version = [] if args.config_versions else [f"--config_ver={_usual(around)}"]
        hint = again("generate_engines", [around.request.values["RUN_ARGS"], *version], around)
        text = f"engines that are not there, or were made for other settings: {len(places)}"
        raise MakeError("\n  ".join([text, *places]), hint)


def _usual(around: Around) -> str:
    """The config_ver of a target without one in RUN_ARGS."""
    name: str = table("config_versions").get(around.request.work, DEFAULT)
    return name


_ROWS: Mapping[str, Callable[[Around], Rows]] = {
    "once": _once,
    "part": _parts,
    "kept run": _kept_runs,
    "tested run": _tested_runs,
    "config": _configs,
}
