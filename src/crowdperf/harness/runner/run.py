"""One run as a straight line: request, model, data set, networks in their best shape, settings, LoadGen, logs,
result.json."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.components import (
    OpenedWork,
    Parts,
    can_be_shared,
    open_parts,
    open_work,
    require_model_memory,
    sample_memory_of,
    search_of,
)
from crowdperf.harness.runner.config import KnownNames, RunConfig, parse_run_config
from crowdperf.harness.runner.loadgen_run import (
    LoadGenRun,
    audited_values,
    available_memory_bytes,
    clear_folder,
    common_versions,
    energy_watch,
    from_everywhere,
    loadgen_test,
    provenance,
    raise_recorded,
    synthetic_parts,
    user_lines,
)
from crowdperf.harness.runner.qsl import Library, make_library
from crowdperf.harness.runner.query_memory import require_memory
from crowdperf.harness.runner.result import Facts, build_result
from crowdperf.harness.runner.settings import Circumstances, Origin, Setting, Settings, Shape, resolve
from crowdperf.harness.runner.shape_search import BestShape, Layout, Search, find_shape
from crowdperf.harness.runner.shapes import KeptShape, purpose, read_shape, shape_file, write_shape
from crowdperf.harness.runner.sut import (
    INLINE_SERVER_LIMIT_MS,
    IssueShape,
    Work,
    chunked,
    multi_inline,
    queued,
    single_inline,
    split,
)
from crowdperf.harness.runner.warmup import without_loadgen
from crowdperf.harness.watch.energy import EnergyWatch
from crowdperf.harness.watch.silence import silence_ends, silence_limit_s
from crowdperf.kit.records import Problem
from crowdperf.kit.text_documents import given_text
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json
from crowdperf.logs.run_requests import usable_request
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

if TYPE_CHECKING:
    from crowdperf.harness.runner.loadgen import Test  # only a run needs LoadGen

_WARM_UP_SAMPLES = 8
"""Minimum number of samples in memory during the search for the shape. MultiStream requests eight at once."""


def read_config(path: Path) -> RunConfig:
    """Return the request in the run.json at `path`. Raises ConfigError."""
    try:
        text = given_text(path)
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), [Problem("the file", str(error), "a readable run.json")]) from error
    known = KnownNames(models=registry.known_names("models"), backends=registry.known_names("backends"))
    return parse_run_config(_with_usable_paths(text, path.parent), str(path), known)


def _with_usable_paths(text: str, folder: Path) -> str:
    """The text of a run.json with absolute paths. Text that is not a JSON object is unchanged and reported by the
    parser."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(usable_request(content, folder)) if isinstance(content, dict) else text


def _load_some(parts: Parts, library: Library) -> None:
    wanted = max(_WARM_UP_SAMPLES, parts.config.batch_size or parts.rules.batch_size)
    library.load(from_everywhere(parts.dataset.count, wanted))


class Opener:
    """Opens and closes the networks for the search, and remembers the open ones. Layouts on GPUs share them: a
    layout of more instances adds those to the open ones."""

    def __init__(self, parts: Parts, library: Library, largest_batch: int, silence_s: float) -> None:
        self._parts, self._library, self._largest_batch = parts, library, largest_batch
        self._silence_s = silence_s
        self._open: dict[int, OpenedWork] = {}

    def open(self, layout: Layout) -> Work:
        shared = next((one for one in self._open.values() if can_be_shared(self._parts, one)), None)
        opened = open_work(self._parts, self._library, layout, self._largest_batch, shared)
        with without_loadgen(opened.work, self._silence_s) as alone:
            alone.require_response_form(self._library.loaded[0])
        self._open[id(opened.work)] = opened
        return opened.work

    def close(self, work: Work) -> None:
        raise_recorded(work)
        closed = self._open.pop(id(work))
        users = [len(one.work.networks) for one in self._open.values() if one.backends is closed.backends]
        closed.close(max(users, default=0))

    def opened(self, work: Work) -> OpenedWork:
        return self._open[id(work)]


def _shape(config: RunConfig, search: Search, found: BestShape, kept: KeptShape | None) -> Shape:
    """Return the shape of the run with the origin of each part."""

    def origin(given: object, is_searched: bool) -> Origin:
        if given is not None:
            return Origin.USER
        return Origin.DEFAULT if not is_searched else Origin.ESTIMATE if kept is None else Origin.KEPT

    several = len(search.layouts) > 1
    return Shape(
        batch_size=Setting(found.batch_size, origin(config.batch_size, search.has_batch_search)),
        instances=Setting(found.layout.instances, origin(config.instances, several)),
        threads=Setting(found.layout.threads, origin(config.threads, several)),
        is_spinning=found.layout.is_spinning,
        wait_s=(config.batch_timeout_us or 0) / 1e6,
    )


def _find_or_keep(parts: Parts, search: Search, opener: Opener) -> tuple[BestShape, KeptShape | None]:
    """Return the shape that an earlier run of this folder found, measured again, or the best one, which is then kept
    for later runs."""
    path = shape_file(parts.config)
    wanted = purpose(parts.config, parts.digests, available_cores(), search.limit_ms)
    kept = None if path is None else read_shape(path, wanted)
    if kept is not None and kept.is_of_any and not search.allows(kept.batch_size):
        kept = None
    if kept is not None:
        size = kept.batch_size
        only = replace(
            search, layouts=(kept.layout,), batch_size=size, smallest_batch_size=size, largest_batch_size=size
        )
        return replace(find_shape(only, opener.open, opener.close), batch_size=kept.batch_size), kept
    found = find_shape(search, opener.open, opener.close)
    if path is not None and parts.config.compliance_test is None and not found.work.failures.is_set:
        write_shape(path, wanted, found)
    return found, None


def _issue_shape(scenario: Scenario, found: BestShape, wait_s: float) -> IssueShape:
    work = found.work
    if scenario is Scenario.SINGLE_STREAM:
        return single_inline(work)
    if scenario is Scenario.MULTI_STREAM:
        return multi_inline(work) if found.layout.instances == 1 else split(work)
    if scenario is Scenario.OFFLINE:
        return chunked(work, found.batch_size)
    if (found.warm_up.query_latency_ms or 0.0) < INLINE_SERVER_LIMIT_MS:
        return single_inline(work)
    return queued(work, found.batch_size, wait_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request with the networks open in their best shape and every setting decided. Only LoadGen remains to be
    run."""

    config: RunConfig
    parts: Parts
    started: datetime
    found: BestShape
    opened: OpenedWork
    settings: Settings
    kept: KeptShape | None

    def issue_shape(self, work: Work) -> IssueShape:
        """Return the way in which `work` answers. Its threads live until it is closed."""
        return _issue_shape(self.config.scenario, replace(self.found, work=work), self.settings.shape.wait_s)

    @property
    def silence_s(self) -> float:
        """The time without an answer after which the test fails."""
        found = self.found
        rate = found.warm_up.samples_per_second
        batch_s = 0.0 if not rate else found.batch_size * found.layout.instances / rate
        return silence_limit_s(self.config.silence_s, max(batch_s, (found.warm_up.query_latency_ms or 0.0) / 1000.0))

    def test(self) -> Test:
        return loadgen_test(self.config, self.parts.rules, self.settings)

    def facts(self, shape_name: str) -> Facts:
        """Return the content of result.json besides settings and log."""
        parts, found, opened, kept = self.parts, self.found, self.opened, self.kept
        return Facts(
            command=tuple(sys.orig_argv),
            started_utc=self.started.isoformat(timespec="seconds"),
            versions={**common_versions(), **opened.versions()},
            model_sha256=parts.digests,
            calibration=parts.facts.calibration,
            is_official_model=parts.rules.is_official,
            is_synthetic=synthetic_parts(parts.facts, parts.dataset, parts.can),
            provenance=provenance(self.config, parts.facts, parts.dataset),
            issue_shape=shape_name,
            warm_up=asdict(found.warm_up),
            kept_shape_utc=None if kept is None else kept.found_utc,
            candidates=[asdict(candidate) for candidate in found.candidates],
            serving=None if opened.serving is None else opened.serving.record(),
        )


def prepare(config: RunConfig) -> Prepared:
    """Return the prepared request in a cleared output folder. Raises ConfigError, and HarnessError if it cannot run.
    Results of an earlier run in the same folder are removed first, so that they cannot be mistaken for this one's."""
    started = datetime.now(timezone.utc)
    clear_folder(RunPaths(config.output_dir), config.user_conf)
    parts = open_parts(config)
    lines = user_lines(config, parts.rules)
    require_model_memory(parts, available_memory_bytes())
    search = search_of(parts, config.target_latency_ms or lines.get("target_latency"))
    library = make_library(parts.source, parts.model, sample_memory_of(parts))
    _load_some(parts, library)
    at_once = MULTI_STREAM_SAMPLES_PER_QUERY if config.scenario is Scenario.MULTI_STREAM else 1
    is_alone = config.scenario.is_stream and config.serving is None  # no batch but the query itself
    largest = at_once if is_alone else max(search.largest_batch_size, at_once)
    opener = Opener(parts, library, largest, search.silence_s)
    found, kept = _find_or_keep(parts, search, opener)
    raise_recorded(found.work)
    circumstances = Circumstances(
        rules=parts.rules,
        user_lines=lines,
        dataset_count=parts.dataset.count,
        audit_values=audited_values(config),
    )
    settings = resolve(config, _shape(config, search, found, kept), circumstances, found.warm_up)
    return Prepared(
        config=config, parts=parts, started=started, found=found, opened=opener.opened(found.work), settings=settings,
        kept=kept,
    )  # fmt: skip


def perform(config: RunConfig) -> dict[str, Json]:
    """Run one LoadGen test and return the content of the result.json it writes. Raises as `prepare` does."""
    with energy_watch(config) as energy:
        if BACKENDS[config.backend].is_text:
            from crowdperf.harness.runner.text_run import perform_text

            return perform_text(config, energy)
        return _perform_batches(config, energy)


def _perform_batches(config: RunConfig, energy: EnergyWatch) -> dict[str, Json]:
    """Run the test of a backend that answers in batches."""
    prepared = prepare(config)
    settings, work = prepared.settings, prepared.found.work
    require_memory(settings, available_memory_bytes())
    issue_shape = prepared.issue_shape(work)
    prepared.opened.start_count()
    run = LoadGenRun(config=config, settings=settings, started=prepared.started, energy=energy)
    with silence_ends(work.counts, prepared.silence_s, work.failures.record):
        monitor = run.watch(prepared.test(), issue_shape.issue, work)
    raise_recorded(work)  # before `close`: a failed worker may never end
    issue_shape.close()
    raise_recorded(work)  # a worker may fail while it ends
    served = prepared.opened.served()
    log = run.log()
    result = build_result(config, settings, log, prepared.facts(issue_shape.name))
    prepared.opened.close()
    if served:
        result["served"] = served
    return run.write(result, monitor, log)
