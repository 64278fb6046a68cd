"""One run of a benchmark whose answers are texts, as a straight line: request, data set, engine, warm-up, settings,
LoadGen, logs, result.json."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

from crowdperf.harness.base.cores import available_cores, physical_cores
from crowdperf.harness.base.dataset import Dataset, require_answers
from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.datasets.parts import sample_folder
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.components import check_backend, checked_digests, require_fit
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.dialogues import Dialogues
from crowdperf.harness.runner.loadgen_run import (
    LoadGenRun,
    audited_values,
    available_memory_bytes,
    clear_folder,
    common_versions,
    from_everywhere,
    loadgen_test,
    provenance,
    raise_recorded,
    synthetic_parts,
    user_lines,
)
from crowdperf.harness.runner.query_memory import require_memory
from crowdperf.harness.runner.result import Facts, build_result
from crowdperf.harness.runner.settings import Circumstances, Settings, WarmUp
from crowdperf.harness.runner.text_settings import issued_once, limits_of, resolve_text
from crowdperf.harness.runner.text_sut import PromptLibrary, TextSut, TextWork
from crowdperf.harness.runner.text_warmup import Plan, warm_up
from crowdperf.harness.text.engine import EngineRequest, TextEngine
from crowdperf.harness.text.model import TextModel
from crowdperf.harness.text.phases import Phases
from crowdperf.harness.text.request import TextRequest
from crowdperf.harness.text.tally import Tally
from crowdperf.harness.text.timings import Timings
from crowdperf.harness.text.tokenizer import end_tokens
from crowdperf.harness.watch.energy import EnergyWatch
from crowdperf.harness.watch.server_watch import ServerWatch
from crowdperf.harness.watch.silence import SILENCE_S, silence_ends, silence_limit_s
from crowdperf.kit.records import Problem
from crowdperf.kit.text_documents import mapping, part
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, Latencies, LoadGenLog
from crowdperf.logs.text_metrics import with_problems
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.end_tokens import padding_token
from crowdperf.rules.names import ExecutionMode, Mode, Scenario
from crowdperf.rules.record import BackendRecord, Generation, Record, Sampling, TokenLimits

if TYPE_CHECKING:
    from crowdperf.harness.runner.loadgen import Test  # only a run needs LoadGen

_WARM_UP_S = {ExecutionMode.TEST: 6.0, ExecutionMode.FAST: 15.0, ExecutionMode.VALID: 30.0}
"""How long the engine is measured before the test, where its answers are not slower than that."""

_WARM_UP_SAMPLES = 64
"""Prompts in memory for that, from everywhere in the data set."""

_PROBES = 3

_TIMES_FROM = {
    "at once": "send", "after answers": "send", "trace": "trace", "one at a time": "issue", "poisson": "issue",
}  # fmt: skip
"""The start of the client's times of a request: its issue by LoadGen, its sending, or its time in the trace."""

_OWN_WORD_S = 30.0
"""Additional time for an engine that ends a request by itself, after the request's own limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextParts:
    """The parts of a run, before an engine is opened. digests: of the model's files by name. phases: the rates of
    answers that are made one at a time, None if several are in flight."""

    config: RunConfig
    can: BackendRecord
    rules: Record
    generation: Generation
    facts: ModelFacts
    model: TextModel
    dataset: Dataset
    digests: dict[str, str]
    phases: Phases | None

    @property
    def sampling(self) -> Sampling:
        """How the next token is chosen: a benchmark may have another way for accuracy runs."""
        is_accuracy = self.config.mode is Mode.ACCURACY
        return (self.generation.accuracy_sampling if is_accuracy else None) or self.generation.sampling

    @property
    def ends(self) -> tuple[int, ...]:
        """The token ids that end an answer: the model's, and the benchmark's own. Empty if answers continue after
        them."""
        if self.sampling.is_end_ignored:
            return ()
        return tuple(sorted({*end_tokens(self.facts.folder), *self.sampling.stop}))

    @property
    def needs_first(self) -> bool:
        """Whether LoadGen measures first tokens: not in Offline."""
        return self.generation.has_token_latencies and self.config.scenario is not Scenario.OFFLINE

    @property
    def is_streamed(self) -> bool:
        """Whether answers come as streams where LoadGen measures no first tokens, so that the client measures them:
        with prompts of the user and a fixed number in flight, a trace, or conversations."""
        is_given = self.request.max_in_flight is not None or bool(self.trace or self.conversations)
        return self.rules.recipes.is_own and is_given

    @property
    def trace(self) -> Mapping[str, Any] | None:
        """The facts of the trace whose arrivals are replayed, None without one."""
        found: Mapping[str, Any] | None = getattr(self.dataset, "trace", None)
        return found

    @property
    def conversations(self) -> Mapping[str, Any] | None:
        """The numbers of conversations and of their turns (requests), None without any."""
        found: Mapping[str, Any] | None = getattr(self.dataset, "conversations", None)
        return found

    @property
    def arrivals(self) -> str:
        """How requests arrive: all at once, one at a time or at random by LoadGen, or by the client, as in a trace or
        after the answer before."""
        if self.trace is not None:
            return "trace"
        if self.conversations is not None:
            return "after answers"
        scenario = self.config.scenario
        return "at once" if scenario is Scenario.OFFLINE else "one at a time" if scenario.is_stream else "poisson"

    @property
    def slo(self) -> TokenLimits | None:
        """The limits for goodput: the scenario's, or those that the user gave with the data. None without limits, and
        where first tokens are not measured."""
        return limits_of(self.config, self.generation) or getattr(self.dataset, "slo", None)

    @property
    def request(self) -> TextRequest:
        """The user's choices for the engine."""
        return self.config.text or TextRequest()


def open_text_parts(config: RunConfig) -> TextParts:
    """Return the parts of a run. Raises ConfigError and HarnessError."""
    require_fit(config)
    rules, can = record_of(config.model), BACKENDS[config.backend]
    facts = read_model_facts(config.model_path, config.model_info_path)
    check_backend(config, can, facts)
    if rules.generation is None:  # `require_fit` refuses it
        raise ConfigError("the run", [Problem("model", config.model, "a benchmark whose answers are texts")])
    dataset = registry.load_dataset_of(config.model).open_dataset(
        sample_folder(config.dataset_path, config.mode, config.compliance_test)
    )
    if config.mode is Mode.ACCURACY:
        require_answers(dataset, rules.recipes.dataset)
    return TextParts(
        config=config,
        can=can,
        rules=rules,
        generation=getattr(dataset, "generation", rules.generation),
        facts=facts,
        model=registry.load_text(config.model).open_text(facts),
        dataset=dataset,
        digests=checked_digests(facts, list(facts.files)) if can.framework is not None else {},
        phases=Phases() if config.scenario is Scenario.SINGLE_STREAM else None,
    )


def _open_engine(parts: TextParts, library: PromptLibrary) -> tuple[TextEngine, int]:
    """Return the opened engine and the threads that it may use."""
    config = parts.config
    cores = physical_cores(available_cores())
    threads = config.threads or len(cores)
    request = EngineRequest(
        facts=parts.facts,
        sampling=parts.sampling,
        text=parts.request,
        precision=config.precision,
        device=config.device,
        threads=threads,
        cores=tuple(core.processors[0] for core in cores[:threads]),
        longest_prompt=parts.generation.longest_prompt,
        folder=config.output_dir,
        probes=tuple(library.prompts.values())[:_PROBES],
        gpus=config.gpus,
        needs_first=parts.needs_first,
        is_server_believed=parts.rules.recipes.is_own,
        is_streamed=parts.is_streamed,
        is_one_at_a_time=config.scenario is Scenario.SINGLE_STREAM,
    )
    return registry.load_engine(config.backend).open_engine(request), threads


def _most_in_flight(engine: TextEngine) -> int | None:
    value = part(engine.record(), "max_in_flight", "value")
    return value if isinstance(value, int) and value > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedText:
    """A request with the engine open and every setting decided. Only LoadGen remains to be run."""

    parts: TextParts
    started: datetime
    work: TextWork
    measured: WarmUp
    settings: Settings

    def test(self) -> Test:
        return loadgen_test(self.parts.config, self.parts.rules, self.settings, self.parts.dataset.count)

    def facts(self) -> Facts:
        """Return the content of result.json besides settings and log."""
        parts = self.parts
        return Facts(
            command=tuple(sys.orig_argv),
            started_utc=self.started.isoformat(timespec="seconds"),
            versions={**common_versions(), **self.work.engine.versions()},
            model_sha256=parts.digests,
            calibration=parts.facts.calibration,
            is_official_model=parts.rules.is_official,
            is_synthetic=synthetic_parts(parts.facts, parts.dataset, parts.can),
            provenance=provenance(parts.config, parts.facts, parts.dataset),
            issue_shape="one request each, as many in flight as the engine accepts",
            warm_up=asdict(self.measured),
            kept_shape_utc=None,
            candidates=[],
        )


@contextlib.contextmanager
def prepared_text(config: RunConfig) -> Iterator[PreparedText]:
    """Yield the prepared request in a cleared output folder, and close the engine afterwards. Raises ConfigError,
    and HarnessError if it cannot run."""
    from crowdperf.harness.runner.loadgen import SINK  # only a run needs LoadGen

    started = datetime.now(timezone.utc)
    clear_folder(RunPaths(config.output_dir), config.user_conf)
    parts = open_text_parts(config)
    lines = user_lines(config, parts.rules)
    library = PromptLibrary(parts.dataset, parts.model.prompts)
    library.load(from_everywhere(library.count, _WARM_UP_SAMPLES))
    engine, threads = _open_engine(parts, library)
    with contextlib.closing(engine):
        work = TextWork(
            engine=engine, library=library, response_of=parts.model.response, sink=SINK, has_first=parts.needs_first,
            ends=parts.ends, padding=padding_token(parts.facts.folder) if parts.ends else None,
            is_paced=config.scenario is not Scenario.OFFLINE,
            replayed_s=None if parts.trace is None else parts.trace["duration_s"],
            dialogues=Dialogues(_most_in_flight(engine)) if parts.conversations is not None else None,
            tally=Tally(timings=Timings(parts.slo, parts.phases)),
        )  # fmt: skip
        plan = Plan(
            needs_rate=not config.scenario.is_stream,
            budget_s=_WARM_UP_S[config.execution_mode],
            most=_most_in_flight(engine),
            limit_s=parts.request.timeout_s or SILENCE_S,
        )
        measured = warm_up(work, plan)
        circumstances = Circumstances(
            rules=parts.rules,
            user_lines=lines,
            dataset_count=parts.dataset.count,
            audit_values=audited_values(config, parts.dataset.count),
        )
        if (once := parts.trace or parts.conversations) is not None:
            config = issued_once(config, once["requests"], once.get("duration_s", 0.0))
        settings = resolve_text(config, parts.generation, threads, circumstances, measured)
        yield PreparedText(parts=parts, started=started, work=work, measured=measured, settings=settings)


def _problems(prepared: PreparedText) -> tuple[str, ...]:
    """Return the problems of the answers and of the engine. LoadGen does not see all of them."""
    engines = prepared.work.engine.record().get("problems") or ()
    found = prepared.work.tally.problems(has_token_latencies=prepared.parts.generation.has_token_latencies)
    return (*found, *map(str, cast("list[Json]", engines)))


def _in_ms(latencies: Latencies | None) -> Json:
    if latencies is None:
        return None
    found = {"mean": latencies.mean_ns, "p50": latencies.p50_ns, "p90": latencies.p90_ns, "p99": latencies.p99_ns}
    return {name: value / 1e6 for name, value in found.items()}


def _text_record(prepared: PreparedText, log: LoadGenLog) -> dict[str, Json]:
    """Return the key `text` of result.json."""
    parts, limits = prepared.parts, limits_of(prepared.parts.config, prepared.parts.generation)
    tally = prepared.work.tally
    tokens, has_rate = log.tokens, log.metric is not None and log.metric.metric.higher_is_better
    return {
        "tokens_per_second": None if tokens is None else tokens.per_second,
        "samples_per_second": log.metric.value if has_rate and log.metric is not None else None,
        "ttft_ms": None if tokens is None else _in_ms(tokens.ttft),
        "tpot_ms": None if tokens is None else _in_ms(tokens.tpot),
        "model": dict(parts.facts.config) if parts.rules.recipes.is_own else {},
        "phases": [] if parts.phases is None else parts.phases.record(),
        "limits": None if limits is None else asdict(limits),
        "arrivals": parts.arrivals,
        "trace": None if parts.trace is None else dict(parts.trace),
        "conversations": None if parts.conversations is None else dict(parts.conversations),
        "client": tally.timings.record(times_from=_TIMES_FROM[parts.arrivals], has_failures=bool(tally.failed)),
        "problems": list(_problems(prepared)),
        "tally": tally.record(),
        "sampling": asdict(parts.sampling),
        "end_tokens": list(parts.ends),
        "engine": dict(prepared.work.engine.record()),
    }


def perform_text(config: RunConfig, energy: EnergyWatch) -> dict[str, Json]:
    """Run one LoadGen test and return the content of the result.json it writes. Raises as `prepared_text` does."""
    with prepared_text(config) as prepared:
        settings, work = prepared.settings, prepared.work
        require_memory(settings, available_memory_bytes())
        sut = TextSut(work)
        work.engine.start(sut)
        count = prepared.parts.dataset.count
        run = LoadGenRun(config=config, settings=settings, started=prepared.started, energy=energy, sample_count=count)
        limit_s = silence_limit_s(
            prepared.parts.request.timeout_s, (prepared.measured.query_latency_ms or 0.0) / 1000.0
        )
        is_measured = config.mode is Mode.PERFORMANCE
        limit_s += 0.0 if prepared.parts.trace is None else prepared.parts.trace["longest_gap_s"]
        with (
            ServerWatch(getattr(work.engine, "server", None) if is_measured else None) as server,
            silence_ends(work.counts, limit_s + _OWN_WORD_S, sut.broken),
        ):
            monitor = run.watch(prepared.test(), sut.issue, work)
        raise_recorded(work)
        log = with_problems(run.log(), _problems(prepared))
        result = build_result(config, settings, log, prepared.facts())
        result["run"] = {**mapping(result["run"]), "batch_size": None, "instances": None}
        result["text"] = {**_text_record(prepared, log), "server": server.record()}
    return run.write(result, monitor, log)
