"""Reads what MLCommons' Endpoints client writes: config.yaml, result_summary.json, accuracy_results.json.

A report folder of the client has the summary in performance/ and the scores in accuracy/, with events.jsonl beside
them; in a submission tree all three lie flat. Format: src/inference_endpoint/metrics/report.py,
commands/benchmark/accuracy.py and config/schema.py of mlcommons/endpoints ea332753 (2026-08-21), client 0.1.0. Times
are nanoseconds. Numbers that the client could not compute are null there and None here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.fields import Source, checked, read_fields
from crowdperf.kit.records import FINITE, Record, found_text, number_of

CONFIG, SUMMARY, SCORES = "config.yaml", "result_summary.json", "accuracy_results.json"
EVENTS = "events.jsonl"
_FOLDERS = {SUMMARY: "performance", SCORES: "accuracy"}

_NS_PER_MS = 1e6
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One measured quantity: nanoseconds for ttft, tpot and latency, tokens for lengths of texts.

    percentiles: by the number (90.0), each an element of the sample.
    """

    total: float | None = None
    least: float | None = None
    greatest: float | None = None
    median: float | None = None
    mean: float | None = None
    percentiles: Mapping[float, float]

    def percentile(self, percent: float) -> float | None:
        """Return a measured percentile, None where the file has none."""
        return self.percentiles.get(percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """result_summary.json: the figures of a performance run. started_at: by the client's own clock, 0 when unknown."""

    version: str
    git_sha: str | None
    started_at: int
    issued: int
    completed: int
    failed: int
    duration_ns: int
    state: str
    is_complete: bool
    ttft: Distribution
    tpot: Distribution
    latency: Distribution
    input_tokens: Distribution
    output_tokens: Distribution
    qps: float | None
    tps: float | None

    @property
    def duration_s(self) -> float:
        """Seconds from the first sample that may be issued to the last that came back."""
        return self.duration_ns / _NS_PER_S

    @property
    def system_tps(self) -> float | None:
        """Output tokens a second, the rules' y axis; None without tokens (no tokenizer) or duration."""
        total = self.output_tokens.total
        return None if total is None or self.duration_ns <= 0 else total / self.duration_s

    @property
    def tps_per_user(self) -> float | None:
        """1000 / TPOT p90 in ms, the rules' x axis; None where that percentile is missing or not above 0."""
        p90 = self.tpot.percentile(90.0)
        return None if p90 is None or p90 <= 0 else _NS_PER_S / p90

    @property
    def ttft_p90_ms(self) -> float | None:
        """The 90th percentile of the time to the first token."""
        p90 = self.ttft.percentile(90.0)
        return None if p90 is None else p90 / _NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One entry of accuracy_results.json. values: the score under "", or each metric's by its name.

    is_inline: scored on the performance run itself, which counts for no region.
    """

    dataset: str
    values: Mapping[str, float]
    unit_samples: int
    repeats: int
    total_samples: int
    is_complete: bool
    is_inline: bool
    issued: int | None
    scored: int | None
    empty: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """accuracy_results.json. average: the client's mean of the scores that are numbers, None where there is none."""

    average: float | None
    scores: tuple[Score, ...]

    @property
    def runs(self) -> tuple[Score, ...]:
        """The results of accuracy runs: all but the one scored on the performance run."""
        return tuple(one for one in self.scores if not one.is_inline)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredDataset:
    """One data set of config.yaml. path is the machine's own and is masked before it is shared."""

    name: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """config.yaml: what the client was asked for, with its defaults filled in. kind: `online` or `offline`.

    concurrency is 0 where the load pattern has none (max_throughput, poisson).
    """

    name: str
    kind: str
    model: str
    tokenizer: str
    streaming: str
    datasets: tuple[ConfiguredDataset, ...]
    load_pattern: str
    concurrency: int
    samples: int | None
    min_duration_ms: int
    scheduler_seed: int | None
    sample_seed: int | None
    stream_all_chunks: bool
    endpoints: tuple[str, ...]

    @property
    def performance_dataset(self) -> ConfiguredDataset | None:
        """The data set of the performance run."""
        return next((one for one in self.datasets if one.kind == "performance"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A report folder of the client, or a point of a tree. events: the file, if it is there."""

    folder: Path
    config: ClientConfig
    summary: Summary
    accuracy: Accuracy | None
    events: Path | None


def _percentiles(fields: Record) -> Mapping[float, float]:
    found: dict[float, float] = {}
    for name in fields.values:
        value = fields.number(name)
        try:
            percent = float(name)
        except ValueError:
            fields.note(name, "a name", "the number of a percentile")
            continue
        if value is not None and found.setdefault(percent, value) != value:
            fields.note(name, f"two values, {found[percent]} and {value}", "one")
    return found


def _distribution(fields: Record, key: str) -> Distribution:
    inner = fields.within(key)
    return Distribution(
        total=inner.number("total"),
        least=inner.number("min"),
        greatest=inner.number("max"),
        median=inner.number("median"),
        mean=inner.number("avg"),
        percentiles=_percentiles(inner.within("percentiles")),
    )


def read_summary(path: Source) -> Summary:
    """Return what result_summary.json holds; raises ClientFileError."""
    fields = read_fields(path)
    summary = Summary(
        version=fields.text("version"),
        git_sha=fields.text("git_sha") or None,
        started_at=fields.whole("test_started_at") or 0,
        issued=fields.count("n_samples_issued"),
        completed=fields.count("n_samples_completed"),
        failed=fields.count("n_samples_failed"),
        duration_ns=int(fields.number("duration_ns") or 0),
        state=fields.text("state"),
        is_complete=fields.flag("complete") is not False,
        ttft=_distribution(fields, "ttft"),
        tpot=_distribution(fields, "tpot"),
        latency=_distribution(fields, "latency"),
        input_tokens=_distribution(fields, "input_sequence_lengths"),
        output_tokens=_distribution(fields, "output_sequence_lengths"),
        qps=fields.number("qps"),
        tps=fields.number("tps"),
    )
    return checked(fields, path, summary)


def _score_values(fields: Record) -> Mapping[str, float]:
    score = fields.values.get("score")
    if not isinstance(score, dict):
        value = fields.number("score")
        return {} if value is None else {"": value}
    found: dict[str, float] = {}
    for name, one in score.items():  # some scorers write numbers as texts ("38.7287")
        try:
            number = number_of(float(one)) if isinstance(one, str) else number_of(one)
        except ValueError:
            number = None
        if number is not None:
            found[name] = float(number)
        elif one is not None:
            fields.note(f"score.{name}", found_text(one), FINITE.allowed)
    return found


def _score(fields: Record) -> Score:
    counts = fields.within("response_counts")
    kind = fields.text("dataset_type")
    name = fields.needed("dataset_name")
    return Score(
        dataset=name,
        values=_score_values(fields),
        unit_samples=fields.whole("unit_samples") or 0,
        repeats=fields.whole("num_repeats") or 1,
        total_samples=fields.whole("total_samples") or 0,
        is_complete=fields.flag("complete") is not False,
        is_inline=kind == "performance" or (not kind and name == "performance"),
        issued=counts.whole("issued"),
        scored=counts.whole("scored"),
        empty=counts.whole("empty") or 0,
        missing=counts.whole("missing") or 0,
    )


def read_accuracy(path: Source) -> Accuracy:
    """Return what accuracy_results.json holds; raises ClientFileError."""
    fields = read_fields(path)
    if "accuracy_scores" not in fields.values:
        fields.note("accuracy_scores", "nothing", "a list of objects")
    accuracy = Accuracy(
        average=fields.number("average_accuracy"),
        scores=tuple(_score(one) for one in fields.each("accuracy_scores")),
    )
    return checked(fields, path, accuracy)


def _streaming(model: Record) -> str:
    value = model.values.get("streaming")
    if isinstance(value, bool):  # what YAML makes of a bare `on` or `off`
        return "on" if value else "off"
    return model.text("streaming", "auto")


def read_config(path: Source) -> ClientConfig:
    """Return what config.yaml holds; raises ClientFileError."""
    fields = read_fields(path)
    settings, model = fields.within("settings"), fields.within("model_params")
    runtime, pattern = settings.within("runtime"), settings.within("load_pattern")
    config = ClientConfig(
        name=fields.text("name"),
        kind=fields.text("type"),
        model=model.needed("name"),
        tokenizer=model.text("tokenizer_name"),
        streaming=_streaming(model),
        datasets=tuple(
            ConfiguredDataset(name=one.text("name"), kind=one.text("type", "performance"), path=one.text("path"))
            for one in fields.each("datasets")
        ),
        load_pattern=pattern.needed("type"),
        concurrency=pattern.whole("target_concurrency") or 0,
        samples=runtime.whole("n_samples_to_issue"),
        min_duration_ms=int(runtime.number("min_duration_ms") or 0),
        scheduler_seed=runtime.whole("scheduler_random_seed"),
        sample_seed=runtime.whole("dataloader_random_seed"),
        stream_all_chunks=settings.within("client").flag("stream_all_chunks") is not False,
        endpoints=fields.within("endpoint_config").texts("endpoints") or (),
    )
    return checked(fields, path, config)


def in_folder(folder: Path, name: str) -> Path:
    """Return where a file is: in its part of a report folder, or flat as in a tree."""
    nested = folder / _FOLDERS.get(name, ".") / name
    return nested if nested.is_file() else folder / name


def read_run(folder: Path) -> RecordedRun:
    """Return a report folder or a point of a tree; raises ClientFileError for the first file that is none."""
    scores, events, packed = in_folder(folder, SCORES), folder / EVENTS, folder / f"{EVENTS}.gz"
    return RecordedRun(
        folder=folder,
        config=read_config(folder / CONFIG),
        summary=read_summary(in_folder(folder, SUMMARY)),
        accuracy=read_accuracy(scores) if scores.is_file() else None,
        events=events if events.is_file() else packed if packed.is_file() else None,
    )
