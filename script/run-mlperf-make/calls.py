"""What a target calls: recipe calls, each with what is shown of its answer in the workspace. Pure.

`make plan TARGET=T` prints the list that `make T` makes; there is no other way to a recipe call.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mlperf_configs.effective import EffectiveConfig
from mlperf_results.backends import BACKENDS
from mlperf_results.names import ExecutionMode, Mode, Scenario
from mlperf_results.rounds import rounds_of

from .run_args import RunArgs
from .tables import table

RUNS = "build/runs"
"""Where runs are kept, below the workspace; build/logs shows them by NVIDIA's names."""
MODEL_KEYS = ("CM_ML_MODEL_FILE_WITH_PATH", "CM_ML_MODEL_INFO_FILE")


class MakeError(Exception):
    """A target cannot be made; the text says why, `hint` what to try. code: 16 where the machine lacks something."""

    def __init__(self, message: str, hint: str = "make help lists the targets and variables", *, code: int = 1) -> None:
        super().__init__(message)
        self.hint, self.code = hint, code


@dataclass(frozen=True, slots=True)
class View:
    """What is shown at `place`, below the workspace, of an answer or of a folder.

    link, folder: a link to the file, or to its folder, that the first of `keys` in new_env names. run: the files of
    `source`, a run in the folder of its scenario. tests: the compliance tests of `source` that passed. stage: what a
    submission holds of the workspace.
    """

    kind: Literal["link", "folder", "run", "tests", "stage"]
    place: str
    keys: tuple[str, ...] = ()
    source: str = ""
    modes: tuple[Mode, ...] = ()


@dataclass(frozen=True, slots=True)
class RecipeCall:
    """One recipe call. is_answer: what it prints is the answer of make (stdout), not the story (stderr). log: a file
    that gets it, too. may_fail: the calls after it are made all the same, and make ends with an error."""

    tags: str
    inputs: Mapping[str, str | bool] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    is_answer: bool = False
    may_fail: bool = False
    log: str = ""

    @property
    def line(self) -> str:
        """The call as a user could type it."""
        words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in self.inputs.items()]
        return shlex.join(["cm", "run", "script", f"--tags={self.tags}", *words])


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What RUN_ARGS and the variables ask for. stamp: the time of the call, as NVIDIA names folders of logs. made_by:
    the line of the call behind a link of the workspace. model_tags: by benchmark the tags of its model's recipe."""

    args: RunArgs
    configs: Sequence[EffectiveConfig]
    source: str
    stamp: str
    made_by: Callable[[str], str]
    model_tags: Mapping[str, str]

    @property
    def length(self) -> ExecutionMode:
        """How long runs are: as the rules say, unless a flag or made data says otherwise."""
        return self.args.length or (ExecutionMode.VALID if self.source == "real" else ExecutionMode.TEST)


@dataclass(frozen=True, slots=True)
class NewestRun:
    """The newest performance run of a benchmark in a scenario; `folder` is below the workspace."""

    benchmark: str
    scenario: Scenario
    folder: str
    system: str


def base_name(benchmark: str) -> str:
    """A benchmark without its level, as the folders of engines are called."""
    return benchmark.removesuffix("-99.9").removesuffix("-99")


def made(source: str) -> str:
    """The variation of a recipe for a source."""
    return "" if source == "real" else f",_{source}"


def simple(target: str, values: Mapping[str, str]) -> list[RecipeCall]:
    """The calls of a target that tables.yaml lists, with the values of variables in them."""
    found = []
    for row in table("calls")[target]:
        inputs = {name: values.get(text[1:], "") if text.startswith("$") else text for name, text in row.items()}
        tags = inputs.pop("tags")
        found.append(RecipeCall(tags, {name: text for name, text in inputs.items() if text}, is_answer=True))
    return found


def merged(calls: Sequence[RecipeCall]) -> list[RecipeCall]:
    """Equal calls once, with the views of all."""
    found: dict[str, RecipeCall] = {}
    for call in calls:
        before = found.get(call.line)
        found[call.line] = replace(call, views=(*before.views, *call.views)) if before else call
    return list(found.values())


def engine_place(config: EffectiveConfig) -> str:
    """Where the link to an engine is: NVIDIA's names of folders and files."""
    inputs, base, scenario = config.inputs(), base_name(config.benchmark), config.scenario.value
    device = "gpu" if config.device == "cuda" else "cpu"
    record = BACKENDS[config.backend]
    precision = inputs.get("precision", "fp32") if record.engine else "fp32"  # else it is the model's own file
    size = f"b{inputs.get('batch_size', '1')}-{precision}"
    folder = f"build/engines/{config.system}/{base}/{scenario}"
    return (
        f"{folder}/{base}-{scenario}-{device}-{size}.{config.config_ver}.{record.engine_suffix or record.model_files}"
    )


def engine(config: EffectiveConfig, job: Job) -> RecipeCall:
    """Makes the engine of a configuration: the file that its backend runs."""
    base, inputs, record = base_name(config.benchmark), config.inputs(), BACKENDS[config.backend]
    view = View("link", engine_place(config), MODEL_KEYS)
    if not record.engine:
        return RecipeCall(f"{job.model_tags[base]},_{record.model_files}{made(job.source)}", {}, (view,))
    given = {"model": base, "source": job.source, "precision": inputs.get("precision", "fp32")}
    if record.has_largest_batch and "batch_size" in inputs:
        given["largest_batch"] = inputs["batch_size"]
    return RecipeCall(f"generate,engine,_{record.engine}", given, (view,))


def engines(job: Job) -> list[RecipeCall]:
    """The engines of all configurations, `default` first."""
    rows = sorted(job.configs, key=lambda config: config.config_ver != "default")
    return merged([engine(config, job) for config in rows])


def missing_engines(job: Job) -> list[EffectiveConfig]:
    """The configurations whose engine is not there, or was made by another call than it would be now."""
    return [config for config in job.configs if job.made_by(engine_place(config)) != engine(config, job).line]


def run_args_of(configs: Sequence[EffectiveConfig]) -> str:
    """RUN_ARGS for these configurations."""
    lists = {
        "benchmarks": [base_name(one.benchmark) for one in configs],
        "scenarios": [one.scenario.value for one in configs],
        "config_ver": [one.config_ver for one in configs],
    }
    return " ".join(f"--{name}={','.join(dict.fromkeys(values))}" for name, values in lists.items())


def harness(job: Job) -> list[RecipeCall]:
    """The runs of all configurations, and NVIDIA's two banners of them at the end."""
    args = job.args
    top = args.log_dir or f"build/logs/{job.stamp}"
    modes = tuple(Mode) if args.mode == "all" else (Mode(args.mode),)
    common = {"source": job.source, "mode": args.mode, "execution_mode": job.length.value}
    counts = {"min_query_count": args.min_query_count, "min_duration_ms": args.min_duration_ms}
    common |= {name: text for name, text in counts.items() if text}
    if args.is_finding:
        return [search(config, job.source) for config in job.configs]
    found = []
    for config in job.configs:
        plain = config.config_ver in ("default", "high_accuracy")  # whose benchmarks have names of their own
        run_id = job.stamp if plain else f"{job.stamp}-{config.config_ver}"
        place = f"{config.benchmark}/{config.scenario.value}"
        software = BACKENDS[config.backend].short_name or config.backend.replace("_", "-")  # as ND_H100_v5_TRT
        system = f"{config.system}_{software}"
        inputs = {**config.inputs(), **common, "results_dir": RUNS, "run_id": run_id, "check": "no"}
        view = View("run", f"{top}/{system}/{place}", source=f"{RUNS}/{run_id}/{place}", modes=modes)
        found.append(RecipeCall("run-mlperf-inference", inputs, (view,), may_fail=True))
    return [*found, RecipeCall("print,mlperf,results", {"input": top, "form": "banners"}, is_answer=True)]


def search(config: EffectiveConfig, source: str) -> RecipeCall:
    """Finds the best target of a configuration and records it, so that later runs begin with it."""
    names = ("model", "scenario", "device", "backend", "gpus", "precision")
    inputs = {name: text for name, text in config.inputs().items() if name in names}
    inputs |= {"category": "datacenter,edge", "source": source, "results_dir": RUNS}
    return RecipeCall("generate-run-cmds,inference,_find-performance", inputs, is_answer=True, may_fail=True)


def calibrations(job: Job) -> list[RecipeCall]:
    """The calibration of each benchmark."""
    again: dict[str, str | bool] = {"force_calibration": True} if job.args.is_calibrated_again else {}
    found = []
    for name in dict.fromkeys(base_name(config.benchmark) for config in job.configs):
        view = View("link", f"build/calibration/{name}/calibration.json", ("CM_ML_MODEL_CALIBRATION_FILE",))
        found.append(RecipeCall("calibrate,ml-model", {"model": name, "source": job.source, **again}, (view,)))
    return found


def conf_files(job: Job) -> list[RecipeCall]:
    """user.conf of each configuration in measurements/."""
    found = []
    for config in job.configs:
        targets = {name: text for name, text in config.inputs().items() if "_target_" in name}
        name = config.scenario.value
        inputs = {"model": config.benchmark, "scenario": name, "execution_mode": job.length.value}
        inputs |= {"device": config.device, "backend": config.backend, **targets}
        inputs |= {"output_dir": f"measurements/{config.system}/{config.benchmark}/{name}"}
        found.append(RecipeCall("generate,mlperf,inference,user-conf,_conf-only", inputs))
    return found


def audits(runs: Sequence[NewestRun], test: str) -> list[RecipeCall]:
    """The compliance tests of runs; `test` is all or one, such as TEST01."""
    found = []
    for run in runs:
        inputs = {
            "results_dir": run.folder,
            "version": rounds_of(run.benchmark)[-1],
            "division": "closed",
            "test": test,
        }
        found.append(RecipeCall("run,mlperf,compliance", inputs, may_fail=True))
    return found


def data_calls(part: str, tags: Mapping[str, str], source: str) -> list[RecipeCall]:
    """What fetches or makes one part (model, data, preprocessed) of benchmarks, linked into the scratch space.

    tags: by benchmark those of the recipe. Links to made data have names of their own, so that nobody puts published
    files into them. Benchmarks may share a data set.
    """
    folder, keys = {
        "model": ("models", MODEL_KEYS[::-1]),
        "data": ("data", ("CM_DATASET_PATH",)),
        "preprocessed": ("preprocessed_data", ("CM_DATASET_PREPROCESSED_PATH",)),
    }[part]
    suffix = "" if source == "real" else f".{source}"
    framework = ",_onnx" if part == "model" else ""
    found = []
    for base, words in tags.items():
        name = table("folders").get(base, {}).get(part, base)  # of the rounds whose scripts are not read: our name
        view = View("folder", f"build/{folder}/{name}{suffix}", keys)
        found.append(RecipeCall(f"{words}{framework}{made(source)}", {}, (view,), may_fail=True))
    return merged(found)
