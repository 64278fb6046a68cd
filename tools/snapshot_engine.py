"""What a checkout's engine answers: help, plans, refusals, and the settings of runs. Part of ``snapshot.py``.

The engine of the checkout is loaded into this process and asked as cmind's adapter asks it, so that errors become the
codes and texts that a user of ``cm`` gets. Nothing is run: a plan changes nothing, and the only hook that is called to
do something is the one that writes run.json, into a folder of its own.
"""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

APP, PIPELINE, TUTORIAL, MAKE = (
    "app-mlperf-inference",
    "run-mlperf-inference",
    "run-mlperf-inference-app",
    "run-mlperf-make",
)
LIBRARY = (
    r"get[-,](?:mlperf[-,])?(?:results|results-store|data|machine|nvidia[-,]library|harness|sweep|crowdperf)-lib\b"
)
"""Recipes that only put a folder on a path, by name or tags."""
MACHINE = "a100-sxm4x8"
OTHER_MACHINES = ("t4x1", "laptop", "azure-a100-sxm4-40gbx8")
ON_MACHINES = (
    "check-user-permissions", "detect-mlperf-system", "doctor", "get-cuda-devices", "get-docker", "manage-mig",
    "get-mlperf-benchmark-config", "get-nvidia-container-toolkit", "get-nvidia-driver", "get-scratch-disk", "get-slurm",
    "get-sys-utils-cm", "run-in-container", "tune-system", "add-mlperf-custom-system",
)  # fmt: skip
"""Recipes that say something else on each of ``OTHER_MACHINES``."""
DEVICES = {"tensorrt": "cuda", "onnxruntime_tensorrt": "cuda", "neuron": "inferentia"}
"""Of backends that do not run on the processor."""
ON_GPUS = ("resnet50", "bert-99", "llama2-70b-99")
"""Benchmarks whose every backend is planned on a GPU, too."""
DISK = (4_000 * 10**9, 1_000 * 10**9, 3_000 * 10**9)
"""Total, used and free bytes of every disk in a picture."""
CPUS = 8
SHORT = {"model": "digits", "scenario": "Offline"}
BASE: Mapping[str, Mapping[str, str]] = {
    APP: {"scenario": "Offline", "mode": "performance"},
    PIPELINE: SHORT,
    TUTORIAL: SHORT,
    MAKE: {"target": "plan", "of": "download_model", "source": "tiny", "benchmarks": "resnet50", "use_cpu": "yes"},
    "run-virtual-client-profile": {"device": "cpu", "source": "tiny", "scenarios": "inferencemodels-bert"},
}
"""What a call is given beside the input that is tried, so that it gets as far as that input, and no further."""
SAME = "as without it"
VALUES = {"empty": "", "wrong": "not!a-value", "negative": "-7"}
MAKE_LINES = (
    "help",
    "prebuild",
    "build",
    "info",
    "download_model",
    "run",
    "generate_engines",
    "calibrate",
    "no_such_target",
)
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    {"mode": "accuracy", "execution_mode": "valid"},
    {"batch_size": "4", "threads": "4", "instances": "2", "batch_timeout": "1500", "min_duration_ms": "500",
     "min_query_count": "7", "performance_sample_count": "64", "target_qps": "1e2", "target_latency": "12.5",
     "user_conf": "own.conf", "output_dir": "given"},
    {"batching": "server", "transport": "grpc", "instance_count": "2", "max_queue_delay_us": "100",
     "preferred_batch_size": "4,2", "max_batch_size": "8"},
    {"kv_cache_gb": "2.5", "max_in_flight": "3", "request_timeout_s": "60"},
    {"endpoint": "http://127.0.0.1:9/v1", "endpoint_model": "m", "endpoint_api": "completions"},
    {"find": "yes", "precision": "int8"},
    {"compliance_test": "TEST01", "precision": "float16"},
)  # fmt: skip
"""Settings of a run; a benchmark, scenario or backend that cannot have one refuses it, and that is in the picture."""
MADE = {
    "CM_DATASET_PATH": "/made/data",
    "CM_DATASET_PREPROCESSED_PATH": "/made/prepared",
    "CM_ML_MODEL_FILE_WITH_PATH": "/made/model.onnx",
    "CM_ML_MODEL_INFO_FILE": "/made/model.json",
    "CM_TRITON_SERVER_FILE": "/made/server.json",
}
"""What the dependencies of a run would give."""


class Engine:
    """A checkout's engine in an empty CM home, on a recorded machine."""

    def __init__(self, checkout: Path, machines: Path, scratch: Path) -> None:
        self.checkout, self.machines, self.scratch = checkout, machines, scratch
        folder = checkout / "automation" / "recipe_engine"
        spec = importlib.util.spec_from_file_location(
            "recipe_engine", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["recipe_engine"])
        from recipe_engine.actions.adapter import Home
        from recipe_engine.disk.repos import RepoInfo

        repo = RepoInfo(checkout, "crowdperf", "0123456789abcdef", "literal", True)
        if folder := yaml.safe_load((checkout / "cmr.yaml").read_text(encoding="utf-8")).get("python"):
            repo = repo._replace(python=folder)  # engines of checkouts without one do not know the name
        place = scratch / "home"
        place.mkdir(parents=True)
        self.home = Home([repo], place, place / "repos" / "local")
        self.work = scratch / "work"
        self.work.mkdir()
        os.chdir(self.work)
        shutil.disk_usage = lambda path: shutil._ntuple_diskusage(*DISK)  # type: ignore[attr-defined,assignment]
        os.cpu_count = lambda: CPUS
        os.sched_getaffinity = lambda pid: set(range(CPUS))  # type: ignore[assignment]

    def recipes(self) -> list[str]:
        """The names of all recipes."""
        return sorted(path.parent.name for path in self.checkout.glob("script/*/_cm.yaml"))

    def ask(self, action: str, function: str, inputs: Mapping[str, Any], *facts: Any) -> dict[str, Any]:
        """What an action of ``cm ... script`` answers; ``printed`` is what it wrote on standard output."""
        from recipe_engine.actions.adapter import answer_cm, loaded

        i = {"action": action, "automation": "script", "quiet": True, **inputs}
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(io.StringIO()):
            answer = answer_cm(lambda i: loaded(function)(i, self.home, *facts), i, None)
        os.chdir(self.work)
        return {**answer, "printed": told.getvalue()}

    def plan(self, inputs: Mapping[str, Any], machine: str = MACHINE) -> dict[str, Any]:
        """What ``cm plan script`` answers, planned for a recorded machine."""
        env = {"CM_RECORDED_MACHINE": str(self.machines / machine)} if machine else {}
        return self.ask("plan", "planning.plan_action.plan_action", {"env": env, **inputs})

    def help(self, recipe: str) -> dict[str, Any]:
        """What ``cm help script`` says of a recipe."""
        answer = self.ask("help", "help.help_action", {"artifact": recipe}, type(None))
        found: dict[str, Any] = answer["recipe"] if answer["return"] == 0 else answer
        return found

    def choices(self, group: str) -> list[str]:
        """The variations of a group of the recipe that runs benchmarks, without further names; none without it."""
        variations = self.help(APP)["variations"] if APP in self.recipes() else {}
        return [row["name"] for row in variations.get(group, ()) if not row["alias"]]


Items = Iterator[tuple[str, Any]]


# --- help ---


def help_items(engine: Engine) -> Items:
    """``cm help`` of every recipe, and of the actions."""
    for recipe in engine.recipes():
        yield recipe, lambda recipe=recipe: engine.help(recipe)
    yield "actions", lambda: _action_help()


def _action_help() -> dict[str, str]:
    from recipe_engine.actions.action_help import ACTION_HELP

    return {" ".join(name): text for name, text in ACTION_HELP.items()}


# --- plans ---


def planned(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of ``cm plan``, a line a step."""
    plan = answer.get("plan")
    row: dict[str, Any] = {"return": answer["return"], "error": answer.get("error", "")}
    if answer["printed"]:
        row["printed"] = answer["printed"].splitlines()
    if plan:
        row |= {"errors": plan["errors"], "disk_need_mb": plan["disk_need_mb"], "needs": plan["needs"]}
        row["steps"] = list(_step_lines(plan["steps"], ""))
    return row


def _step_lines(step: Mapping[str, Any], indent: str) -> Iterator[str]:
    told = {key: value for key, value in step.items() if key not in ("label", "action", "children", "recipe", "error")}
    yield f"{indent}{step['action']} {step['label']} {json.dumps(told, sort_keys=True)}"
    for child in step.get("children", ()):
        yield from _step_lines(child, indent + "  ")


def plan_items(engine: Engine) -> Items:
    """Plans: of every recipe as it is, of benchmark runs, of the front doors, and on other machines."""
    calls: dict[str, tuple[Mapping[str, Any], str]] = {}
    for recipe in engine.recipes():
        calls[recipe] = ({"tags": recipe}, MACHINE)
    for recipe, machine in itertools.product(ON_MACHINES, OTHER_MACHINES):
        calls[f"{recipe} on {machine}"] = ({"tags": recipe}, machine)
    models, scenarios = engine.choices("model"), engine.choices("scenario")
    for model in models:
        for scenario in scenarios:
            calls |= _app_call(model, scenario, "performance")
        calls |= _app_call(model, "offline", "accuracy", *_tiny(model))
    for model, backend in itertools.product(_one_a_family(models), engine.choices("backend")):
        for device in dict.fromkeys((DEVICES.get(backend, "cpu"), *(("cuda",) if model in ON_GPUS else ()))):
            calls |= _app_call(model, "offline", "performance", backend, device, *_tiny(model))
    for recipe, model in itertools.product((PIPELINE, TUTORIAL), _one_a_family(models)):
        for source in ("real", "tiny") if recipe == PIPELINE else ("tiny",):
            name = f"{recipe} --model={model} --source={source}"
            calls[name] = ({"tags": recipe, "model": model, "source": source}, MACHINE)
    for target in MAKE_LINES:
        calls[f"make {target}"] = ({"tags": MAKE, **BASE[MAKE], "of": target}, MACHINE)
    for name, (inputs, machine) in calls.items():
        yield name, lambda inputs=inputs, machine=machine: planned(engine.plan(inputs, machine))


def _one_a_family(models: Iterable[str]) -> list[str]:
    """Benchmarks without their twins of the higher accuracy, which have the same recipes."""
    return [model for model in models if not model.endswith("-99.9")]


def _tiny(model: str) -> tuple[str, ...]:
    """The variation for small made inputs, where a benchmark has one."""
    return () if model in ("digits", "smollm2") else ("tiny",)


def _app_call(*variations: str) -> dict[str, tuple[Mapping[str, Any], str]]:
    tags = ",".join([APP, *(f"_{name}" for name in variations)])
    return {f"{APP} {' '.join(variations)}": ({"tags": tags}, MACHINE)}


# --- refusals ---


def refusal_items(engine: Engine) -> Items:
    """Of every recipe: what each input answers to an empty, a wrong and a negative value, and to a misspelt name."""
    for recipe in engine.recipes():
        yield recipe, lambda recipe=recipe: _refusals(engine, recipe)


def _refusals(engine: Engine, recipe: str) -> dict[str, Any]:
    given = {"tags": recipe, **BASE.get(recipe, {})}
    usual = _problems(engine.plan(given))
    found: dict[str, Any] = {"": usual}
    inputs = engine.help(recipe)["inputs"]
    others = [row["name"] for row in inputs if row["name"] != "machine" and row["name"] not in given]
    same = set(unaffected(others, lambda names: _problems(engine.plan({**given, **names})) == usual))
    for row in inputs:
        name, machine = row["name"], "" if row["name"] == "machine" else MACHINE
        for kind, value in VALUES.items():
            if value == "" and name in same:
                found[f"{name} {kind}"] = SAME
                continue
            problems = _beside(usual, _problems(engine.plan({**given, name: value}, machine)))
            found[f"{name} {kind}"] = problems
            if kind == "wrong" and (problems == SAME or row["choices"]):
                break  # any text will do, or only some: nothing that a number could show
    for row in inputs[:1]:
        found[f"{row['name']} misspelt"] = _beside(usual, _problems(engine.plan({**given, row["name"] + "x": "1"})))
    return found


def unaffected(names: Sequence[str], is_usual: Callable[[Mapping[str, str]], bool]) -> Iterator[str]:
    """The inputs for which an empty value changes nothing; asked for all at once, and for halves where one does."""
    if is_usual(dict.fromkeys(names, "")):
        yield from names
    elif len(names) > 1:
        yield from unaffected(names[: len(names) // 2], is_usual)
        yield from unaffected(names[len(names) // 2 :], is_usual)


def _problems(answer: Mapping[str, Any]) -> list[Any]:
    """The code, and every error of a plan."""
    errors = (answer.get("plan") or {}).get("errors") or [answer[key] for key in ("error",) if answer.get(key)]
    return [answer["return"], *errors]


def _beside(usual: list[Any], found: list[Any]) -> list[Any] | str:
    """What is new in a call's problems; a text when nothing is."""
    if found == usual:
        return SAME
    return [found[0], *(error for error in found[1:] if error not in usual)]


# --- the settings of runs ---


def run_items(engine: Engine) -> Items:
    """run.json of the runs of benchmarks, by benchmark, scenario, backend and settings; else the refusal."""
    models, scenarios, backends = (engine.choices(group) for group in ("model", "scenario", "backend"))
    engine.plan({"tags": APP, **BASE[APP]})  # until now the libraries are put on the path by recipes that it depends on
    for model, backend in itertools.product(models, backends):
        pairs = itertools.product(scenarios, range(len(SETTINGS)))
        few = [(scenario, number) for scenario, number in pairs if number < 3 or scenario == "offline"]
        yield f"{model} {backend}", lambda few=few, names=(model, backend): _runs(engine, names, few)


def _runs(engine: Engine, names: tuple[str, str], cells: Iterable[tuple[str, int]]) -> dict[str, Any]:
    device = "inferentia" if names[1] == "neuron" else "cpu"
    tags = f"{APP},_{device},_{names[0]},_{names[1]}"
    found: dict[str, Any] = {}
    for scenario, number in cells:
        inputs: dict[str, Any] = {"tags": f"{tags},_{scenario}", "mode": "performance", **SETTINGS[number]}
        if device == "inferentia":
            inputs["simulate"] = "neuron"
        found[f"{scenario} {' '.join(f'{key}={value}' for key, value in SETTINGS[number].items())}".strip()] = run_json(
            engine, inputs
        )
    return found


def run_json(engine: Engine, inputs: Mapping[str, Any]) -> Any:
    """What the hook before a run writes for the harness, or the text of its refusal."""
    from recipe_engine.actions.run import new_engine, parse_request
    from recipe_engine.rules import inputs as input_rules
    from recipe_engine.rules.errors import RecipeError
    from recipe_engine.running.context import StepContext
    from recipe_engine.running.hooks import call_hook, hook_input

    work = engine.work
    asked = {"action": "run", "automation": "script", "quiet": True, "env": dict(MADE), **inputs}
    try:
        one = new_engine(engine.home, None)
        request = parse_request(asked)
        recipe = one.source.recipe(one.choose(request).entry)
        if hasattr(input_rules, "with_own_names"):  # inputs of an older checkout have no aliases
            request = input_rules.with_own_names(recipe, request)
        step = StepContext(one.configure(recipe, request), folder=work, log_path=None, top_folder=str(work))
        step.env.update(MADE)
        i = hook_input(step, step.meta(), SimpleNamespace())
        answered = call_hook(recipe, "preprocess", i)
    except RecipeError as error:
        return error.describe()
    if answered is not None and (answered.skip or answered.replacement):
        return {"calls": dict(answered.replacement or {})}
    file = Path(i["env"]["CM_MLPERF_RUN_JSON"])
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    finally:
        for place in (work / "results", work / "given"):
            shutil.rmtree(place, ignore_errors=True)


# --- what is not the same twice ---


def mask(text: str, places: Mapping[str, str]) -> str:
    """A text without the paths of this machine, times, digests and amounts of memory."""
    for path, word in places.items():
        text = text.replace(path, word)
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


_MASKS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\b\d{4}[-.]?\d\d[-.]?\d\d[T _-]\d\d[:.]?\d\d[:.]?\d\d(?:\.\d+)?(?:Z|\+00:00)?", "<time>"),
        (
            r"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{32}\b|\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,16}\b",
            "<hex>",
        ),
        (r"\(\d+ GB can be had\)", "(<n> GB available)"),  # words: ok P21
    )
)
