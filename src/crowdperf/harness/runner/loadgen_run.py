"""What all runs have in common, whatever answers: the folder cleared before, user.conf read, one LoadGen test watched,
and what its logs say written down."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crowdperf.harness.base.dataset import Dataset, DatasetFacts
from crowdperf.harness.base.environment_errors import read_whole_logs
from crowdperf.harness.base.errors import ConfigError, HarnessError, hint_of
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.model_facts import ModelFacts, file_md5
from crowdperf.harness.runner import user_conf as userconf
from crowdperf.harness.runner.audit import clear_audit
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.effective import require_same_settings
from crowdperf.harness.runner.metadata_json import metadata as metadata_record
from crowdperf.harness.runner.settings import Origin, Settings
from crowdperf.harness.runner.sut import Issue
from crowdperf.harness.watch.energy import EnergyWatch, Sources
from crowdperf.harness.watch.localserver import place_of
from crowdperf.harness.watch.machine import free_memory_bytes, machine_facts
from crowdperf.harness.watch.monitor import LoadRecord, Monitor
from crowdperf.harness.watch.progress import Counts, Expectation, progress
from crowdperf.kit.records import Problem
from crowdperf.kit.text_documents import given_text
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.efficiency import Work, cost_of
from crowdperf.logs.interference import disturbances
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, LoadGenLog
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.compliance import audit_values
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, ExecutionMode, Mode, Scenario
from crowdperf.rules.provenance import (
    FETCHED,
    GIVEN,
    MADE,
    NO_MODEL,
    OWN,
    PROJECT,
    PUBLISHED,
    SERVER,
    UNCHECKED,
    Provenance,
)
from crowdperf.rules.query_counts import fewest_queries, length_note
from crowdperf.rules.record import BackendRecord, Record

if TYPE_CHECKING:
    from crowdperf.harness.runner.loadgen import Samples, Test  # only a run needs LoadGen

_MAX_CLOCK_STEP_S = 0.1
"""LoadGen's two moments are times of day. A clock that was set by more than this moves the time of the energy (this
project's choice)."""

_USABLE_MEMORY = 0.8
"""Part of the available memory that LoadGen's queries, or a model, may use."""


class SampleSet(Protocol):
    """The samples of a data set, some of which are in memory."""

    @property
    def count(self) -> int:
        """Samples of the whole data set."""

    def load(self, indices: Sequence[int]) -> None:
        """Load the samples of `indices` into memory and drop those loaded before."""

    def unload(self, indices: Sequence[int]) -> None:
        """Drop everything. LoadGen unloads whole sets only."""


class Answering(Protocol):
    """What answers in a test, as far as the test needs it."""

    @property
    def library(self) -> SampleSet:
        """The samples in memory."""

    @property
    def failures(self) -> Failures:
        """Where errors go."""

    @property
    def counts(self) -> Counts:
        """The samples answered."""


def available_memory_bytes() -> int | None:
    """Return the part of the free memory that a run may plan with, or None if the system does not report it."""
    free = free_memory_bytes()
    return None if free is None else int(free * _USABLE_MEMORY)


def user_lines(config: RunConfig, rules: Record) -> dict[str, float]:
    """Return the settings of the user's user.conf for the run. Raises ConfigError."""
    if config.user_conf is None:
        return {}
    try:
        text = given_text(config.user_conf)
    except (OSError, ValueError) as error:
        raise ConfigError("the run", [Problem("user_conf", str(error), "a readable file, or null")]) from error
    lines = userconf.parse(text, str(config.user_conf))
    if config.execution_mode is ExecutionMode.VALID:
        userconf.require_rules(lines, str(config.user_conf))
    return userconf.effective(lines, rules.loadgen_name_in(config.scenario), config.scenario.issued_as)


def audited_values(config: RunConfig, sample_count: int | None = None) -> dict[str, int] | None:
    """Return the settings of the run's compliance test, or None in an ordinary run. sample_count: of the data set,
    for tests that issue all of it."""
    if config.compliance_test is None:
        return None
    version = metadata.version("mlcommons-loadgen")
    return audit_values(config.compliance_test, config.model, version, sample_count)


def clear_folder(paths: RunPaths, user_conf: Path | None) -> None:
    """Create the output folder, and remove the files of an earlier run in it. It may contain the user's own
    user.conf."""
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        clear_audit(paths.folder)
        for path in paths.made_by_a_run:
            if user_conf is None or path.resolve() != user_conf.resolve():
                path.unlink(missing_ok=True)
    except OSError as error:
        message = f"cannot make the output folder {paths.folder} ready: {error}"
        raise HarnessError(message, "choose another output_dir, or remove the existing files") from error


def raise_recorded(work: Answering) -> None:
    """Raise the first error of a callback as a HarnessError, after LoadGen has ended."""
    work.failures.settle()
    if work.failures.first is not None:
        message = f"inference failed during the run: {work.failures.first}"
        raise HarnessError(message, hint_of(work.failures.first)) from work.failures.first


def from_everywhere(count: int, wanted: int) -> list[int]:
    """Return up to `wanted` indices spread over a data set of `count` samples, sorted: their lengths are then those of
    the whole."""
    wanted = min(count, wanted)
    return sorted({number * count // wanted for number in range(wanted)})


def common_versions() -> dict[str, str]:
    """Return the versions of what every run uses."""
    packages = {"numpy": "numpy", "loadgen": "mlcommons-loadgen"}
    return {"python": platform.python_version(), **{key: metadata.version(name) for key, name in packages.items()}}


def synthetic_parts(facts: ModelFacts, dataset: Dataset, can: BackendRecord) -> dict[str, bool]:
    """Return the synthetic parts of a run: no result with one of them is an MLPerf result. A server has its own
    weights, independent of the model's folder here."""
    return {
        "model": facts.is_synthetic and not can.is_remote,
        "dataset": dataset.facts.is_synthetic,
        "backend": bool(can.stand_in),
    }


def provenance(config: RunConfig, facts: ModelFacts, dataset: Dataset) -> Provenance:
    """Return the origin of the weights and the samples of a run. A compliance test may have its own size of the data
    set."""
    rules, is_accuracy = record_of(config.model), config.mode is Mode.ACCURACY
    whole = (rules.accuracy_sample_count if is_accuracy else None) or rules.dataset_count
    is_counted = rules.is_official and config.compliance_test is None
    return Provenance(
        model=_model_origin(facts, rules, BACKENDS[config.backend]),
        dataset=_dataset_origin(dataset.facts, rules),
        sample_count=dataset.count,
        benchmark_sample_count=whole if is_counted else None,
    )


def _dataset_origin(facts: DatasetFacts, rules: Record) -> str:
    if facts.is_synthetic:
        return MADE
    if rules.recipes.is_own:
        return OWN
    if facts.is_described or not rules.is_official:
        return FETCHED
    return OWN if facts.difference else GIVEN


def _model_origin(facts: ModelFacts, rules: Record, can: BackendRecord) -> str:
    if can.is_remote:
        return SERVER
    if can.framework is None:
        return NO_MODEL
    if facts.is_synthetic:
        return MADE
    if rules.recipes.is_own:
        return OWN
    if not rules.is_official:
        return PROJECT
    if facts.origin:
        return facts.origin
    if not rules.published_md5:
        return UNCHECKED
    is_published = all(file_md5(file.path) in rules.published_md5 for file in facts.files.values())
    return PUBLISHED if is_published else OWN


def loadgen_test(config: RunConfig, rules: Record, settings: Settings, sample_count: int | None = None) -> Test:
    """Return the LoadGen test of a run whose settings are decided. sample_count: as for `audited_values`."""
    from crowdperf.harness.runner.loadgen import Test

    return Test(
        model=rules.loadgen_name_in(config.scenario),
        scenario=config.scenario,
        mode=config.mode,
        conf_values=settings.conf_values,
        performance_sample_count=settings.performance_sample_count.value,
        audit_values=audited_values(config, sample_count),
    )


def samples_of(work: Answering) -> Samples:
    """Return the data set as LoadGen sees it. An error in it ends the run."""
    from crowdperf.harness.runner.loadgen import Samples

    library, guarded = work.library, work.failures.guarded
    return Samples(count=library.count, load=guarded(library.load), unload=guarded(library.unload))


def _expectation(config: RunConfig, settings: Settings, count: int) -> Expectation:
    is_measured = config.mode is Mode.PERFORMANCE
    samples_per_query = MULTI_STREAM_SAMPLES_PER_QUERY if config.scenario is Scenario.MULTI_STREAM else 1
    return Expectation(
        title=f"{config.model} {config.backend} {config.scenario.value} {config.mode.value}",
        at_least_s=settings.min_duration_ms.value / 1000.0 if is_measured else 0.0,
        at_least_samples=settings.min_query_count.value * samples_per_query if is_measured else count,
    )


def _length_note(config: RunConfig, settings: Settings) -> str:
    """Return the duration of a performance run if its queries decide that, or an empty text."""
    if config.mode is Mode.ACCURACY or config.scenario is Scenario.OFFLINE:
        return ""
    rate, latency = settings.target_qps, settings.target_latency_ms
    if config.scenario.is_stream:
        query_s = latency.value / 1000.0 if latency is not None else 0.0
    else:
        query_s = 1.0 / rate.value if rate is not None and rate.value > 0 else 0.0
    queries = settings.min_query_count
    fewest = fewest_queries(config.scenario, record_of(config.model))
    needed = fewest if queries.origin is Origin.ESTIMATE else queries.value  # fewer by choice are the user's own
    return length_note(queries.value, needed, query_s, settings.min_duration_ms.value / 1000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGenRun:
    """One LoadGen test of a request, from its start to its output files. sample_count: of the data set, if a
    compliance test requires it. energy: the meters that are read meanwhile."""

    config: RunConfig
    settings: Settings
    started: datetime
    energy: EnergyWatch
    sample_count: int | None = None

    def watch(self, test: Test, issue: Issue, work: Answering) -> Monitor:
        """Run the test to its end and return the measurements of the machine. Errors of `work` are raised by itself."""
        from crowdperf.harness.runner.loadgen import Calls, run_test

        config = self.config
        if config.mode is Mode.ACCURACY:
            work.counts.expected = work.library.count
            work.failures.log = RunPaths(config.output_dir).accuracy_log
        endpoint = config.text.endpoint if config.text is not None else None
        server = None if endpoint is None else place_of(endpoint.url)
        if note := _length_note(config, self.settings):
            print(f"harness: {note}", file=sys.stderr, flush=True)
        monitor = Monitor(gpus=config.gpus, counts=work.counts, server=server)
        with monitor, progress(_expectation(config, self.settings, work.library.count), work.counts):
            run_test(test, Calls(issue, work.counts.flush), samples_of(work), RunPaths(config.output_dir))
        return monitor

    def log(self) -> LoadGenLog:
        """Return the content of LoadGen's logs. Raises HarnessError if they are incomplete, or if LoadGen used other
        settings than these."""
        paths = RunPaths(self.config.output_dir)
        log = read_whole_logs(paths, self.config.mode)
        require_same_settings(self.settings, audited_values(self.config, self.sample_count), log.settings)
        return log

    def write(self, result: dict[str, Json], monitor: Monitor, log: LoadGenLog) -> dict[str, Json]:
        """Write the files of the run and return the content of result.json: `result`, and the measurements of the
        machine."""
        paths, load = RunPaths(self.config.output_dir), monitor.record()
        result = {**result, "load": load.summary(), "machine": machine_facts(monitor.gpus)}
        if self.config.mode is Mode.PERFORMANCE:
            result |= self._efficiency(Work.of(result), load, monitor, log)
        result["disturbances"] = [str(found) for found in disturbances(result)]
        result["took_s"] = round((datetime.now(timezone.utc) - self.started).total_seconds(), 1)
        write_json(paths.load_json, load.content())
        write_json(paths.metadata_json, metadata_record(result))
        write_json(paths.result_json, result)  # the last file: it is what says that a run is done
        return result

    def _efficiency(self, work: Work, load: LoadRecord, monitor: Monitor, log: LoadGenLog) -> dict[str, Json]:
        """Return the keys `energy` and `cost` of result.json, None if nothing is known."""
        self.energy.stop()
        begin_s, step_s, price = log.began_local_s - monitor.wall_clock_s, load.clock_step_s, self.config.price_per_hour
        is_set = abs(step_s) > _MAX_CLOCK_STEP_S
        problem = f"the clock of the machine was set by {step_s:g} s during the run" if is_set else ""
        energy = self.energy.part(begin_s, begin_s + log.duration_s, work, problem=problem)
        return {"energy": energy, "cost": None if price is None else cost_of(price, log.duration_s, work)}


def energy_watch(config: RunConfig) -> EnergyWatch:
    """Return the meters of a run: none of an accuracy run, a compliance test, or a search. The counters of this machine
    do not count for a server of another machine."""
    if config.mode is not Mode.PERFORMANCE or config.compliance_test is not None or config.find:
        return EnergyWatch(Sources(is_local=False))
    endpoint = config.text.endpoint if config.text is not None else None
    is_local = endpoint is None or place_of(endpoint.url) is not None
    return EnergyWatch(Sources(is_local=is_local, gpus=config.gpus, command=config.power_command or ()))
