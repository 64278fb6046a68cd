"""Assembles the parts of a run: model, data set, the networks in a layout, and the memory they need."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from crowdperf.harness.base.backend import (
    Backend,
    BackendModule,
    BackendRequest,
    DeviceBackend,
    ServedBackend,
    SharedBackend,
)
from crowdperf.harness.base.cores import at_cores, available_cores, physical_cores, share_out
from crowdperf.harness.base.dataset import Dataset
from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.model import Model, ModelModule
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.store import open_store
from crowdperf.harness.base.tensors import Infer, Samples, Tensors
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.qsl import Library, SampleMemory, Source
from crowdperf.harness.runner.server_layouts import ServedPlan, largest_request, resolve_serving, served_layouts
from crowdperf.harness.runner.shape_search import Layout, Search, cpu_layouts, gpu_layouts
from crowdperf.harness.runner.sut import Networks, Predict, Work
from crowdperf.harness.watch.nvml import near_gpus
from crowdperf.harness.watch.progress import Counts
from crowdperf.harness.watch.silence import FIRST_CALLS_S
from crowdperf.kit.records import Problem
from crowdperf.kit.whole_file import file_sha256
from crowdperf.logs.run_log import Json
from crowdperf.rules.backends import BACKENDS, misfit
from crowdperf.rules.benchmarks import model_of, record_of
from crowdperf.rules.names import ExecutionMode, Mode, Scenario
from crowdperf.rules.record import BackendRecord, Record
from crowdperf.rules.rounds import scenarios_of

_SEARCH_S = {ExecutionMode.TEST: 6.0, ExecutionMode.FAST: 15.0, ExecutionMode.VALID: 30.0}
"""How long the best shape is looked for."""

_HINT = "rebuild the model, or use the folder that its recipe built"


@dataclass(frozen=True, slots=True)
class RawSource:
    """Samples of a data set, preprocessed when they are loaded."""

    dataset: Dataset
    model: Model

    @property
    def count(self) -> int:
        return self.dataset.count

    def load(self, indices: Sequence[int]) -> Samples:
        return self.model.preprocess(self.dataset.load(indices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a run. can: the backend's abilities. digests: of the model's files by network name."""

    config: RunConfig
    backend: BackendModule
    can: BackendRecord
    rules: Record
    facts: ModelFacts
    model: Model
    dataset: Dataset
    source: Source
    digests: dict[str, str]


def checked_digests(facts: ModelFacts, names: Sequence[str]) -> dict[str, str]:
    """Return the digests of the model's files. Raises HarnessError for one that is missing or differs from
    model.json."""
    digests = {}
    for name in names:
        file = facts.files.get(name)
        if file is None:
            known = ", ".join(facts.files) or "none"
            raise HarnessError(f"the model has no file for its network {name}, only for: {known}", _HINT)
        try:
            digests[name] = file_sha256(file.path)
        except OSError as error:
            raise HarnessError(f"cannot read the model {file.path}: {error.strerror}", _HINT) from error
        if file.sha256 not in (None, digests[name]):
            raise HarnessError(
                f"{file.path} has sha256 {digests[name]}, but model.json describes {file.sha256}",
                "the file was changed or truncated: use the model.json that was written with it, or rebuild the model",
            )
    return digests


def require_fit(config: RunConfig) -> None:
    """Raise ConfigError if the backend cannot run the benchmark at all, and for Interactive if the benchmark has
    none."""
    if config.scenario is Scenario.INTERACTIVE and config.scenario not in (known := scenarios_of(config.model)):
        allowed = f"{', '.join(scenario.value for scenario in known)} ({config.model} has no limits for it)"
        raise ConfigError("the run", [Problem("scenario", config.scenario.value, allowed)])
    if why := misfit(config.backend, config.model, config.device):
        raise ConfigError("the run", [Problem("backend", repr(config.backend), f"another one: {why}")])
    if record_of(config.model).has_token_counts and config.scenario is not Scenario.OFFLINE:
        allowed = (
            "Offline only: in the other scenarios LoadGen requires first-token times, which the harness "
            f"does not report for {config.model}"
        )
        raise ConfigError("the run", [Problem("scenario", repr(config.scenario.value), allowed)])


def check_backend(config: RunConfig, can: BackendRecord, facts: ModelFacts) -> None:
    """Raise ConfigError and HarnessError for requests that the backend does not support."""
    if can.is_served != (config.serving is not None):
        allowed = "an object with the server's files" if can.is_served else "no such key"
        found = "nothing" if config.serving is None else "an object"
        raise ConfigError("the run", [Problem("serving", found, f"{allowed} (backend {config.backend})")])
    if can.is_text != (config.text is not None):
        allowed = "an object with the engine's settings" if can.is_text else "no such key"
        found = "nothing" if config.text is None else "an object"
        raise ConfigError("the run", [Problem("text", found, f"{allowed} (backend {config.backend})")])
    for key, found, known in (
        ("device", config.device, can.devices),
        ("precision", config.precision, can.precisions_on(config.device)),
    ):
        if found not in known:
            problem = Problem(key, repr(found), f"{', '.join(known)} (backend {config.backend})")
            raise ConfigError("the run", [problem])
    if can.framework is None:
        return
    if not facts.files:
        allowed = f"a model file: backend {config.backend} reads one"
        raise ConfigError("the run", [Problem("model_path", "null", allowed)])
    is_as_it_lies = facts.framework not in (
        None,
        "pytorch",
        "huggingface",
    )  # torch turns weights into another type as it loads them
    if is_as_it_lies and facts.precision != can.file_precision(config.precision):
        raise HarnessError(
            f"the model's files are {facts.precision}, but the run requests {config.precision}",
            f"use the variation _{facts.precision}, or the model in {can.file_precision(config.precision)}",
        )
    if facts.framework not in (None, can.framework):
        raise HarnessError(
            f"the model's files are for {facts.framework}, but backend {config.backend} reads {can.framework}",
            f"use the model with the variation _{can.framework}",
        )
    if facts.is_for_tensorrt_only and can.framework == "onnx":
        raise HarnessError(
            f"the model's files are int8 between fp16 layers: onnxruntime ({config.backend}) answers them wrongly",
            "use backend tensorrt, or create them with cm run script --tags=quantize,ml-model,_int8,_static,_tensorrt",
        )


def require_scores(config: RunConfig, dataset: Dataset) -> None:
    """Raise ConfigError for an accuracy run on samples that cannot be scored (`why_unscored` of a data set)."""
    if config.mode is Mode.ACCURACY and (why := getattr(dataset, "why_unscored", "")):
        allowed = f"performance: {why} (--mode=performance measures them)"
        raise ConfigError("the run", [Problem("mode", config.mode.value, allowed)])


def open_parts(config: RunConfig) -> Parts:
    """Return the parts of a run without opening large files. Raises ConfigError and HarnessError."""
    require_fit(config)
    module: ModelModule = registry.load_model(config.model)
    rules = record_of(config.model)
    backend, can = registry.load_backend(config.backend), BACKENDS[config.backend]
    facts = read_model_facts(config.model_path, config.model_info_path)
    check_backend(config, can, facts)
    model = module.open_model(facts)
    digests = checked_digests(facts, [one.name for one in model.networks]) if can.framework is not None else {}
    dataset = registry.load_dataset_of(config.model).open_dataset(config.dataset_path)
    require_scores(config, dataset)
    if rules.is_official and (why := dataset.facts.difference) and not dataset.facts.is_synthetic:
        print(f"harness: {config.dataset_path} is not the benchmark's data: {why}", file=sys.stderr, flush=True)
    source: Source = RawSource(dataset, model)
    if config.preprocessed_path is not None:
        source = open_store(config.preprocessed_path, model_of(config.model), config.dataset_path, dataset)
    return Parts(
        config=config, backend=backend, can=can, rules=rules, facts=facts, model=model, dataset=dataset, source=source,
        digests=digests,
    )  # fmt: skip


def require_model_memory(parts: Parts, available_bytes: int | None) -> None:
    """Raise HarnessError when the model says (`memory_bytes` of its file) that it needs more than is available."""
    module: Any = registry.load_model(parts.config.model)
    reckon = getattr(module, "memory_bytes", None)
    if reckon is None or available_bytes is None or parts.can.framework is None:
        return
    needed = int(reckon(parts.facts))
    if needed > available_bytes:
        raise HarnessError(
            f"{parts.config.model} needs about {needed / 1e9:.1f} GB of memory for its weights and tables, "
            f"but {available_bytes / 1e9:.1f} GB can be used",
            "use a machine with more memory, or the model's variation _tiny to try the pipeline",
        )


def sample_memory_of(parts: Parts) -> SampleMemory | None:
    """Return the allocator of memory from which the run's GPUs copy directly, or None if any memory will do."""
    give = getattr(parts.backend, "sample_memory", None)
    if parts.config.device != "cuda" or give is None:
        return None
    return partial(give, (parts.config.gpus or (0,))[0])


def search_of(parts: Parts, target_latency_ms: float | None) -> Search:
    """Return the settings to search for: those that the request and the backend leave open. On GPUs the search for a
    batch begins at the largest one, because a small one leaves most of a GPU idle. `target_latency_ms`: as the user
    gave it. Raises ConfigError if it is required."""
    config, rules = parts.config, parts.rules
    limit_ms = target_latency_ms or rules.server_target_latency_ms
    if config.scenario.is_server and limit_ms is None:
        allowed = f"a number of milliseconds: no round has Server for {config.model}, so that the rules have no limit"
        raise ConfigError("the run", [Problem("target_latency_ms", "null", allowed)])
    fixed = config.batch_size or parts.can.batch_size
    first, largest = rules.batch_size, fixed or rules.largest_batch_size
    is_known = fixed is not None or first == largest
    built_for = parts.facts.engine.get("largest_batch")
    if fixed is None and isinstance(built_for, int):
        largest = min(largest, built_for)
    if config.serving is not None:
        count = len(physical_cores(available_cores()))
        layouts = served_layouts(config.serving, config.scenario, count, config.instances, config.threads)
        fixed = 1 if config.serving.is_batched_by_server else fixed
        if (request := largest_request(parts.model.networks[0], config.scenario, largest)) > largest:
            first = largest = request  # each layout costs a start of the server: there is little time for more
        largest = fixed or config.serving.largest_batch(largest)
        is_known = is_known or fixed is not None or first >= largest
    elif config.device == "cpu":
        cores = physical_cores(available_cores())
        layouts = cpu_layouts(config.scenario, cores, config.instances, config.threads)
    else:
        layouts = gpu_layouts(len(config.gpus), config.instances)
    batch_size = fixed or (largest if config.device == "cuda" else min(first, largest))
    return Search(
        scenario=config.scenario,
        layouts=layouts,
        batch_size=batch_size,
        smallest_batch_size=batch_size if is_known else 1,
        largest_batch_size=largest,
        limit_ms=limit_ms,
        budget_s=_SEARCH_S[config.execution_mode],
        is_cold_at_first=config.device == "cuda",
        silence_s=config.silence_s or FIRST_CALLS_S,
    )


@dataclass(frozen=True, slots=True)
class OpenedWork:
    """The networks opened in a layout, and the work that answers with them."""

    work: Work
    backends: tuple[Backend, ...]
    serving: ServedPlan | None = None

    def close(self, kept_instances: int = 0) -> None:
        """Close all open work, or with `kept_instances` all but that many instances, which other work still uses."""
        free(self.backends, kept_instances)

    def start_count(self) -> None:
        for backend in self.backends:
            if isinstance(backend, ServedBackend):
                backend.start_count()

    def served(self) -> dict[str, Json]:
        """Return the server's counts during the test, empty without a server. Raises HarnessError if they do not
        match."""
        found = [one.served(self.work.counts.done) for one in self.backends if isinstance(one, ServedBackend)]
        return dict(found[0]) if found else {}

    def versions(self) -> dict[str, str]:
        return {name: version for backend in self.backends for name, version in backend.versions().items()}


def can_be_shared(parts: Parts, opened: OpenedWork) -> bool:
    """Whether a layout of another number of instances can have the networks that are open: on GPUs, where an instance
    is a stream."""
    return parts.config.device == "cuda" and all(isinstance(one, SharedBackend) for one in opened.backends)


def _open_backends(parts: Parts, request: BackendRequest) -> Iterator[Backend]:
    """Yield each network of the model opened as `request` says, which is of any of them."""
    for network in parts.model.networks:
        file = parts.facts.files.get(network.name)
        yield parts.backend.open_backend(
            replace(
                request,
                network=network,
                path=None if file is None else file.path,
                precision=network.precision_in(parts.config.precision),
            )
        )


def open_work(
    parts: Parts, library: Library, layout: Layout, largest_batch: int, shared: OpenedWork | None = None
) -> OpenedWork:
    """Open the networks in `layout`. Raises HarnessError if the backend cannot, and leaves no network open then.

    shared: work in another layout, to whose networks instances are added (`can_be_shared`).
    """
    config = parts.config
    machine = physical_cores(available_cores()) if config.device == "cpu" else ()
    serving = None
    if config.serving is not None:  # its processes compute, not the threads here
        total = config.threads or len(machine)
        serving = resolve_serving(config.serving, config.scenario, layout, total, largest_batch)
        machine = ()
    cores = share_out(machine, layout.instances, layout.threads)
    request = BackendRequest(
        network=parts.model.networks[0],
        path=None,
        architecture=model_of(config.model),
        config=parts.facts.config,
        precision=config.precision,
        device=config.device,
        gpus=config.gpus,
        instances=layout.instances,
        threads=layout.threads,
        cores=cores,
        is_spinning=layout.is_spinning,
        largest_batch=largest_batch,
        engine=parts.facts.engine,
        folder=config.output_dir,
        serving=None if serving is None else serving.serving,
    )
    near = near_gpus(config.gpus, layout.instances) if config.device == "cuda" else cores
    backends: list[Backend] = [] if shared is None else list(shared.backends)
    try:
        backends += [] if shared is not None else _open_backends(parts, request)
        predict, calls = _calls(parts, backends, layout, near)
    except BaseException:
        free(backends, 0 if shared is None else len(shared.work.networks))
        raise
    return OpenedWork(
        _work(parts, library, predict, calls, near), shared.backends if shared else tuple(backends), serving
    )


def free(backends: Sequence[Backend], kept_instances: int) -> None:
    """Close backends, or free all but so many instances of them."""
    for backend in backends:
        if not kept_instances:
            backend.close()
        elif isinstance(backend, SharedBackend):
            backend.keep(kept_instances)


def _calls(
    parts: Parts, backends: Sequence[Backend], layout: Layout, near: Sequence[tuple[int, ...]]
) -> tuple[Predict, list[dict[str, Infer]]]:
    """Return what answers a batch, and the networks of each instance."""
    names = [network.name for network in parts.model.networks]
    makers: dict[str, Callable[[int], Infer]] = {name: one.instance for name, one in zip(names, backends, strict=True)}
    predict, post = parts.model.predict, getattr(parts.model, "device_post", None)
    if post is not None and len(backends) == 1 and isinstance(backends[0], DeviceBackend):
        makers, predict = {names[0]: partial(backends[0].responding, post)}, _responses
    calls: list[dict[str, Infer]] = []
    for number in range(layout.instances):
        with at_cores(near[number] if near else ()):  # who touches memory first decides which node it lies on
            calls.append({name: make(number) for name, make in makers.items()})
    return predict, calls


def _responses(networks: Networks, inputs: Tensors) -> Any:
    """Answer a batch by the network's call, which ends in the model's `device_post`."""
    (respond,) = networks.values()
    return respond(inputs)


def _work(
    parts: Parts,
    library: Library,
    predict: Predict,
    calls: Sequence[dict[str, Infer]],
    near: Sequence[tuple[int, ...]],
) -> Work:
    from crowdperf.harness.runner.loadgen import (
        SINK,  # only a run needs LoadGen; a wrong request is refused and a log scored without it
    )

    return Work(
        library=library,
        predict=predict,
        networks=calls,
        response=parts.model.response,
        failures=Failures(),
        sink=SINK,
        counts=Counts(len(calls)),
        at_core=lambda number: at_cores(near[number] if near else ()),
    )
