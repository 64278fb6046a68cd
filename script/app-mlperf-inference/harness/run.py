"""One run as a straight line: request, model, data set, backend, warm-up, settings, LoadGen, logs, result.json. And
its scoring."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from mlperf_results.layout import RunPaths
from mlperf_results.logs import Json, LogError, read_run_logs
from mlperf_results.names import Mode, Scenario

from harness import accuracy, registry, userconf, warmup
from harness.backends.base import Backend, BackendModule, BackendRequest, require_device
from harness.config import KnownNames, RunConfig, parse_run_config
from harness.datasets.base import Dataset
from harness.errors import ConfigError, HarnessError, Problem
from harness.failures import Failures
from harness.models.base import ModelModule
from harness.progress import progress
from harness.qsl import SampleLibrary
from harness.result import Facts, build_result, require_same_settings, write_json
from harness.settings import Circumstances, Settings, Shape, WarmUp, choose_shape, require_memory, resolve
from harness.sut import INLINE_SERVER_LIMIT_MS, IssueShape, Work, chunked, multi_inline, queued, single_inline

_USABLE_MEMORY = 0.8
"""Part of the available memory that LoadGen's queries may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a run is put together from."""

    model: ModelModule
    dataset: Dataset
    backend: Backend
    circumstances: Circumstances
    shape: Shape
    model_sha256: str | None


def read_config(path: Path) -> RunConfig:
    """Return the request in the run.json at `path`; raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), [Problem("the file", str(error), "a readable run.json")]) from error
    known = KnownNames(models=registry.known_names("models"), backends=registry.known_names("backends"))
    return parse_run_config(text, str(path), known)


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory_bytes() -> int | None:
    """Return how much of the free memory a run may plan with; None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(int(value.split()[0]) * 1024 * _USABLE_MEMORY)
    return None


def _user_lines(config: RunConfig, loadgen_name: str) -> dict[str, float]:
    if config.user_conf is None:
        return {}
    try:
        text = config.user_conf.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the run", [Problem("user_conf", str(error), "a readable file, or null")]) from error
    return userconf.effective(userconf.parse(text, str(config.user_conf)), loadgen_name, config.scenario)


def _check_model_file(config: RunConfig, backend: BackendModule) -> str | None:
    """Return the sha256 of the model file; raises when it is missing, or another one than model.json describes."""
    if config.model_path is None:
        if backend.NEEDS_MODEL_FILE:
            allowed = f"a model file: backend {config.backend} reads one"
            raise ConfigError("the run", [Problem("model_path", "null", allowed)])
        return None
    try:
        with config.model_path.open("rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        message = f"cannot read the model {config.model_path}: {error.strerror}"
        raise HarnessError(message, "make the model again") from error
    info = accuracy.read_model_info(config.model_info_path)
    if info is not None and info.sha256 not in (None, digest):
        raise HarnessError(
            f"{config.model_path} has sha256 {digest}, but {config.model_info_path} describes {info.sha256}",
            "give the model.json that was made with the model, or make the model again",
        )
    return digest


def _open_parts(config: RunConfig) -> _Parts:
    model = registry.load_model(config.model)
    backend_module = registry.load_backend(config.backend)
    require_device(config.backend, config.device, backend_module.DEVICES)
    user_lines = _user_lines(config, model.RULES.loadgen_name)
    digest = _check_model_file(config, backend_module)
    dataset = registry.load_dataset(model.RULES.dataset).open_dataset(config.dataset_path)
    circumstances = Circumstances(
        rules=model.RULES,
        user_lines=user_lines,
        dataset_count=dataset.count,
        backend_batch_size=backend_module.BATCH_SIZE,
        core_count=_core_count(),
    )
    shape = choose_shape(config, circumstances)
    request = BackendRequest(
        model_path=config.model_path,
        device=config.device,
        threads=1 if config.scenario is Scenario.OFFLINE else shape.threads.value,  # Offline: one worker per thread
        inputs=model.INPUTS,
        outputs=model.OUTPUTS,
    )
    backend = backend_module.open_backend(request)
    return _Parts(
        model=model, dataset=dataset, backend=backend, circumstances=circumstances, shape=shape, model_sha256=digest
    )


def _make_work(parts: _Parts) -> Work:
    from harness.loadgen import DOOR  # only a run needs LoadGen; a wrong request is refused and a log scored without it

    return Work(
        library=SampleLibrary(parts.dataset, parts.model.preprocess),
        infer=parts.backend.infer,
        postprocess=parts.model.postprocess,
        response=parts.model.RESPONSE,
        failures=Failures(),
        door=DOOR,
    )


def _issue_shape(scenario: Scenario, work: Work, shape: Shape, warm_up: WarmUp) -> IssueShape:
    if scenario is Scenario.SINGLE_STREAM:
        return single_inline(work)
    if scenario is Scenario.MULTI_STREAM:
        return multi_inline(work)
    if scenario is Scenario.OFFLINE:
        return chunked(work, shape.batch_size.value, shape.threads.value)
    if shape.batch_size.value == 1 or (warm_up.query_latency_ms or 0.0) < INLINE_SERVER_LIMIT_MS:
        return single_inline(work)
    return queued(work, shape.batch_size.value)


def _raise_recorded(failures: Failures) -> None:
    failures.settle()
    if failures.first is not None:
        raise HarnessError(f"inference failed during the run: {failures.first}") from failures.first


def _warm_up(config: RunConfig, parts: _Parts, work: Work) -> WarmUp:
    count = min(parts.dataset.count, max(parts.shape.batch_size.value, 8))
    work.library.load(range(count))
    work.require_response_form(0)
    measured = warmup.measure(work, config.scenario, parts.shape.batch_size.value, parts.shape.threads.value)
    _raise_recorded(work.failures)
    return measured


def _start_test(config: RunConfig, settings: Settings, work: Work, issue_shape: IssueShape) -> None:
    from harness.loadgen import Samples, Test, run_test

    def load(indices: Sequence[int]) -> None:
        try:
            work.library.load(indices)
        except Exception as error:  # must not reach LoadGen
            work.failures.record(error)

    samples = Samples(count=work.library.count, load=load, unload=work.library.unload)
    test = Test(
        model=registry.load_model(config.model).RULES.loadgen_name,
        scenario=config.scenario,
        mode=config.mode,
        conf_values=settings.conf_values,
        performance_sample_count=settings.performance_sample_count.value,
    )
    at_least_s = settings.min_duration_ms.value / 1000.0 if config.mode is Mode.PERFORMANCE else 0.0
    title = f"{config.model} {config.backend} {config.scenario.value} {config.mode.value}"
    with progress(title, at_least_s):
        run_test(test, issue_shape.issue, samples, RunPaths(config.output_dir))
    _raise_recorded(work.failures)  # before `close`: a failed worker may never end
    issue_shape.close()


def _versions(backend: Backend) -> dict[str, str]:
    found = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    return {**found, "loadgen": metadata.version("mlcommons-loadgen"), **backend.versions()}


def _clear_folder(paths: RunPaths, user_conf: Path | None) -> None:
    """Make the output folder, and remove what an earlier run left in it; the user's own user.conf may lie there."""
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        for path in paths.made_by_a_run:
            if user_conf is None or path.resolve() != user_conf.resolve():
                path.unlink(missing_ok=True)
    except OSError as error:
        message = f"cannot make the output folder {paths.folder} ready: {error}"
        raise HarnessError(message, "give another output_dir, or remove what is in the way") from error


def perform(config: RunConfig) -> dict[str, Json]:
    """Run one LoadGen test and return the content of the result.json it writes.

    Raises ConfigError for a request that cannot be run, HarnessError for a run that failed. Results of an earlier
    run in the same folder are removed first, so that none can be taken for this one's.
    """
    started = datetime.now(timezone.utc)
    paths = RunPaths(config.output_dir)
    _clear_folder(paths, config.user_conf)
    parts = _open_parts(config)
    work = _make_work(parts)
    warm_up = _warm_up(config, parts, work)
    settings = resolve(config, parts.shape, parts.circumstances, warm_up)
    require_memory(settings, available_memory_bytes())
    issue_shape = _issue_shape(config.scenario, work, parts.shape, warm_up)
    _start_test(config, settings, work, issue_shape)
    try:
        log = read_run_logs(paths)
    except LogError as error:
        raise HarnessError(f"LoadGen left no complete result: {error}", "look for its message above") from error
    require_same_settings(settings, log)
    facts = Facts(
        command=tuple(sys.orig_argv),
        started_utc=started.isoformat(timespec="seconds"),
        versions=_versions(parts.backend),
        model_sha256=parts.model_sha256,
        is_official_model=parts.model.RULES.is_official,
        issue_shape=issue_shape.name,
        warm_up=asdict(warm_up),
    )
    parts.backend.close()
    result = build_result(config, settings, log, facts)
    write_json(paths.result_json, result)
    return result


def score(config: RunConfig) -> dict[str, Json]:
    """Score the accuracy log in the request's output folder; writes accuracy.txt and accuracy.json and returns the
    latter."""
    if config.mode is not Mode.ACCURACY:
        problem = Problem("mode", config.mode.value, "accuracy: a performance run logs no responses")
        raise ConfigError("the run", [problem])
    paths = RunPaths(config.output_dir)
    model = registry.load_model(config.model)
    dataset = registry.load_dataset(model.RULES.dataset).open_dataset(config.dataset_path)
    source = str(paths.accuracy_log)
    try:
        text = paths.accuracy_log.read_text(encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"cannot read {source}: {error.strerror}", "run the accuracy run first") from error
    responses = accuracy.parse_responses(text, source)
    accuracy.require_all(responses, dataset.count, source)
    scored = model.score(responses.by_index, dataset.labels)
    verdict = accuracy.judge(scored, accuracy.read_model_info(config.model_info_path), model.RULES.target_of_reference)
    content: dict[str, Json] = {
        "format": 1,
        "accuracy_percent": scored.accuracy_percent,
        "good_count": scored.good_count,
        "total_count": scored.total_count,
        "duplicate_count": responses.duplicate_count,
        "reference_accuracy_percent": verdict.reference_percent,
        "target_accuracy_percent": verdict.target_percent,
        "target_of_reference": model.RULES.target_of_reference,
        "passed": verdict.is_passed,
        "log_sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
    }
    paths.accuracy_text.write_text(accuracy.accuracy_line(scored), encoding="utf-8")
    write_json(paths.accuracy_json, content)
    return content
