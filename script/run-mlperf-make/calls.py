"""What a target calls: recipe calls, each with what is shown of its answer in the workspace. Pure.

`make plan TARGET=T` prints the list that `make T` makes; there is no other way to a recipe call.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Template
from typing import Literal

from mlperf_configs.effective import EffectiveConfig
from mlperf_results.backends import BACKENDS
from mlperf_results.names import ExecutionMode, Mode

from .around import Around
from .run_args import RunArgs
from .tables import table

RUNS = "build/runs"
"""Where runs are kept, below the workspace; build/logs shows them by NVIDIA's names."""
MODEL_KEYS = ("CM_ML_MODEL_FILE_WITH_PATH", "CM_ML_MODEL_INFO_FILE")


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
    inputs: Mapping[str, str] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    is_answer: bool = False
    may_fail: bool = False
    log: str = ""

    @property
    def line(self) -> str:
        """The call as a user could type it."""
        return shlex.join(
            ["cm", "run", "script", f"--tags={self.tags}", *(f"--{name}={text}" for name, text in self.inputs.items())]
        )


@dataclass(frozen=True, slots=True)
class Job:
    """What RUN_ARGS and the variables ask for."""

    args: RunArgs
    configs: Sequence[EffectiveConfig]
    around: Around

    @property
    def length(self) -> ExecutionMode:
        """How long runs are: as the rules say, unless a flag or made data says otherwise."""
        return self.args.length or (ExecutionMode.VALID if self.around.source == "real" else ExecutionMode.TEST)


def base_name(benchmark: str) -> str:
    """A benchmark without its level, as the folders of engines are called."""
    return benchmark.removesuffix("-99.9").removesuffix("-99")


def made(source: str) -> str:
    """The variation of a recipe for a source."""
    return "" if source == "real" else f",_{source}"


def listed(name: str, values: Mapping[str, str]) -> list[RecipeCall]:
    """The calls that tables.yaml lists by a name, with these values in them."""
    known = defaultdict(str, values)
    found = []
    for row in table("calls")[name]:
        texts = {key: Template(text).substitute(known) for key, text in row.items() if key not in ("views", "marks")}
        views = (
            View(kind, Template(place).substitute(known), tuple(keys)) for kind, place, *keys in row.get("views", ())
        )
        inputs = {key: text for key, text in texts.items() if text and key != "tags"}
        found.append(RecipeCall(texts["tags"], inputs, tuple(views), **{"is_answer": True, **row.get("marks", {})}))
    return found


def merged(calls: Sequence[RecipeCall]) -> list[RecipeCall]:
    """Equal calls once, with the views of all."""
    found: dict[str, RecipeCall] = {}
    for call in calls:
        before = found.get(call.line)
        views = (*(before.views if before else ()), *call.views)
        found[call.line] = replace(call, views=tuple(dict.fromkeys(views)))
    return list(found.values())


def system_name(config: EffectiveConfig) -> str:
    """A system with its software, as folders of logs, results and measurements are called: ND_H100_v5_TRT."""
    return f"{config.system}_{BACKENDS[config.backend].short_name or config.backend.replace('_', '-')}"


def engine_place(config: EffectiveConfig) -> str:
    """Where the link to an engine is: NVIDIA's names of folders and files."""
    inputs, base, scenario = config.inputs(), base_name(config.benchmark), config.scenario.value
    device, record = "gpu" if config.device == "cuda" else "cpu", BACKENDS[config.backend]
    precision = inputs.get("precision", "fp32") if record.engine else "fp32"  # else it is the model's own file
    name = f"{base}-{scenario}-{device}-b{inputs.get('batch_size', '1')}-{precision}.{config.config_ver}"
    return f"build/engines/{config.system}/{base}/{scenario}/{name}.{record.engine_suffix or record.model_files}"


def engine(config: EffectiveConfig, around: Around) -> RecipeCall:
    """Makes the engine of a configuration: the file that its backend runs."""
    base, inputs, record = base_name(config.benchmark), config.inputs(), BACKENDS[config.backend]
    view = View("link", engine_place(config), MODEL_KEYS)
    if not record.engine:
        tags = around.recipe_tags("model")[base]
        return RecipeCall(f"{tags},_{record.model_files}{made(around.source)}", {}, (view,))
    given = {"model": base, "source": around.source, "precision": inputs.get("precision", "fp32")}
    if record.has_largest_batch and "batch_size" in inputs:
        given["largest_batch"] = inputs["batch_size"]
    return RecipeCall(f"generate,engine,_{record.engine}", given, (view,))


def engines(job: Job) -> list[RecipeCall]:
    """The engines of all configurations, `default` first."""
    rows = sorted(job.configs, key=lambda config: config.config_ver != "default")
    return merged([engine(config, job.around) for config in rows])


def missing_engines(job: Job) -> list[EffectiveConfig]:
    """The configurations whose engine is not there, or was made by another call than it would be now."""
    made_by = job.around.made_by
    return [config for config in job.configs if made_by(engine_place(config)) != engine(config, job.around).line]


def run_args_of(configs: Sequence[EffectiveConfig]) -> str:
    """RUN_ARGS for these configurations."""
    lists = {
        "benchmarks": [base_name(one.benchmark) for one in configs],
        "scenarios": [one.scenario.value for one in configs],
        "config_ver": [one.config_ver for one in configs],
    }
    return " ".join(f"--{name}={','.join(dict.fromkeys(values))}" for name, values in lists.items())


def harness(job: Job) -> list[RecipeCall]:
    """The runs of all configurations, and NVIDIA's two banners of them at the end; or the searches."""
    flags, mode, around = job.args.flags, job.args.mode, job.around
    if mode == "find":
        return of_each("find", job)
    top = flags.get("log_dir") or f"build/logs/{around.stamp}"
    modes = tuple(Mode) if mode == "all" else (Mode(mode),)
    common = {"source": around.source, "mode": mode, "execution_mode": job.length.value}
    counts = {"min_query_count": "min_query_count", "min_duration": "min_duration_ms"}
    common |= {name: flags[flag] for flag, name in counts.items() if flag in flags}
    found = []
    for config in job.configs:
        plain = config.config_ver in ("default", "high_accuracy")  # whose benchmarks have names of their own
        run_id = around.stamp if plain else f"{around.stamp}-{config.config_ver}"
        place = f"{config.benchmark}/{config.scenario.value}"
        inputs = {**config.inputs(), **common, "results_dir": RUNS, "run_id": run_id, "check": "no"}
        source = f"{RUNS}/{run_id}/{place}"
        view = View("run", f"{top}/{system_name(config)}/{place}", source=source, modes=modes)
        found.append(RecipeCall("run-mlperf-inference", inputs, (view,), may_fail=True))
    return [*found, RecipeCall("print,mlperf,results", {"input": top, "form": "banners"}, is_answer=True)]


def of_each(name: str, job: Job) -> list[RecipeCall]:
    """The calls that tables.yaml lists by a name, of each configuration."""
    common = {"SOURCE": job.around.source, "LENGTH": job.length.value, **job.args.flags}
    found = []
    for config in job.configs:
        own = {"BASE": base_name(config.benchmark), "SYSTEM": system_name(config)}
        found += listed(name, {**common, **config.inputs(), **own})
    return merged(found)
