"""Reads one found run into figures, each with the file, the line and the SHA-256 of the log that it stands in.

The detail log is the source; a run whose detail log is in the form of v0.7 is read from its summary. What the harness
wrote beside the logs (result.json, accuracy.json, load.json) adds labels, targets and the load; it may be absent.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.records import number_of
from crowdperf.logs.found_runs import FoundRun, RunFiles, files_of
from crowdperf.logs.run_log import LoadGenLog, LogError, checked_by_summary, latency_keys, parse_detail_log
from crowdperf.logs.score_lines import parse_scores
from crowdperf.logs.seeds import SEEDS
from crowdperf.logs.summary_log import SummaryLog, parse_summary
from crowdperf.logs.text_metrics import with_recorded_problems
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import METRIC_OF_SCENARIO, Mode
from crowdperf.rules.official_names import benchmark_of, canonical_name
from crowdperf.rules.rounds import ROUNDS, rounds_of, targets_of

_NANOSECONDS_PER_MS = 1e6
PERCENTS = (("min", 0.0), ("50.00", 50.0), ("90.00", 90.0), ("95.00", 95.0), ("97.00", 97.0), ("99.00", 99.0),
            ("99.90", 99.9), ("max", 100.0))  # fmt: skip
"""Which answers LoadGen gives latencies of."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a figure stands; `file` is relative to the folder that was searched, `line` counts from 1."""

    file: str
    line: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of a run; `name` with the words of METRIC_OF_SCENARIO where it is a scenario's own."""

    name: str
    value: float
    unit: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An accuracy; value and target are None where only the line itself is known."""

    name: str
    value: float | None
    target: float | None
    upper_limit: float | None
    is_passed: bool | None
    line: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All that the files of a run say. log: None where only the summary could be read.

    is_valid: LoadGen's verdict without a logged error; None where there is none, as in an accuracy run of v0.7.
    problem: why the detail log could not be read, "" where it could. started: in the machine's own time, "" where the
    log does not say. result, load: the harness's own files, or None.
    """

    run: FoundRun
    round_name: str
    log: LoadGenLog | None
    summary: SummaryLog
    problem: str
    is_valid: bool | None
    reasons: tuple[str, ...]
    figure: Figure | None
    latencies: tuple[Figure, ...]
    scores: tuple[Score, ...]
    detail_sha256: str
    started: str
    result: Mapping[str, Any] | None
    load: Mapping[str, Any] | None


class _Source:
    """A log file with what is needed to point into it."""

    def __init__(self, run: FoundRun, name: str, contents: Mapping[str, bytes]) -> None:
        self.file = (run.relative / name).as_posix()
        self.sha256 = hashlib.sha256(contents[name]).hexdigest() if name in contents else ""

    def at(self, line: int) -> Evidence:
        return Evidence(self.file, line, self.sha256)


def _detail_figures(run: FoundRun, log: LoadGenLog, source: _Source) -> tuple[Figure | None, tuple[Figure, ...]]:
    published, figure = log.published, None
    if published is not None:
        metric = published.metric
        at = source.at(log.lines.get(published.key, 0))
        figure = Figure(name=metric.name, value=published.value, unit=metric.unit, evidence=at)
    if log.latencies is None:
        return figure, ()
    bound, percentile = latency_keys(run.scenario)
    keys = ((bound if words in ("min", "max") else percentile).format(words) for words, _ in PERCENTS)
    found = log.latencies
    values = (found.min_ns, found.p50_ns, found.p90_ns, found.p95_ns, found.p97_ns, found.p99_ns, found.p99_9_ns,
              found.max_ns)  # fmt: skip
    return figure, tuple(
        Figure(
            name=f"{percent:g}", value=value / _NANOSECONDS_PER_MS, unit="ms", evidence=source.at(log.lines.get(key, 0))
        )
        for (_, percent), key, value in zip(PERCENTS, keys, values, strict=True)
    )


def _summary_figures(run: FoundRun, summary: SummaryLog, source: _Source) -> tuple[Figure | None, tuple[Figure, ...]]:
    line = summary.figure
    if line is None:
        return None, ()
    try:
        value = float(line.value)
    except ValueError:
        return None, ()
    unit = METRIC_OF_SCENARIO[run.scenario].unit
    if "latency (ns)" in line.name:
        figure = Figure(
            name=line.name.replace(" (ns)", ""), value=value / 1e6, unit="ms", evidence=source.at(line.number)
        )
    else:
        unit = "samples" if line.name == "Samples per query" else unit
        figure = Figure(name=line.name.lower(), value=value, unit=unit, evidence=source.at(line.number))
    latencies = []
    for words, percent in PERCENTS:
        name = f"{words.capitalize()} latency (ns)" if words in ("min", "max") else f"{words} percentile latency (ns)"
        found = next((other for other in summary.lines if other.name == name and other.value.isdigit()), None)
        if found is not None:
            at = source.at(found.number)
            latencies.append(Figure(name=f"{percent:g}", value=int(found.value) / 1e6, unit="ms", evidence=at))
    return figure, tuple(latencies)


def _line_only(line: str, at: Evidence) -> Score:
    return Score(name="", value=None, target=None, upper_limit=None, is_passed=None, line=line, evidence=at)


def _recorded_scores(content: Mapping[str, Any], line: str, at: Evidence) -> tuple[Score, ...]:
    """The scores in accuracy.json, which has the target of this very data set beside each; whatever else it holds."""
    return tuple(
        Score(
            name=str(metric.get("name")),
            value=number_of(metric.get("value")),
            target=number_of(metric.get("target")),
            upper_limit=number_of(metric.get("upper_limit")),
            is_passed=passed if isinstance(passed := metric.get("passed"), bool) else None,
            line=line,
            evidence=at,
        )
        for metric in content["metrics"]
        if isinstance(metric, Mapping)
    )


def benchmark_behind(model: str, round_name: str) -> str | None:
    """This project's name of the benchmark that a folder's name stands for in a round; None where there is none."""
    return model if model in BENCHMARKS else benchmark_of(canonical_name(model, round_name), round_name)


def _printed_scores(run: FoundRun, text: str, source: _Source, round_name: str) -> tuple[Score, ...]:
    """The scores of the official lines, with the targets of the closed division where the run lies in it."""
    benchmark = benchmark_behind(run.model, round_name)
    if benchmark is None or round_name not in rounds_of(benchmark):
        return ()
    is_closed = run.group.split("/")[0] == "closed"
    lines, found = text.split("\n"), []
    for target in targets_of(benchmark, round_name):
        for score in parse_scores(target.metric, text)[:1]:
            is_enough = score.value >= target.target and score.value <= (target.upper_limit or score.value)
            found.append(
                Score(
                    name=target.metric,
                    value=score.value,
                    target=target.target if is_closed else None,
                    upper_limit=target.upper_limit if is_closed else None,
                    is_passed=is_enough if is_closed else None,
                    line=lines[score.line - 1].strip(),
                    evidence=source.at(score.line),
                )
            )
    return tuple(found)


def _scores(run: FoundRun, contents: RunFiles, round_name: str) -> tuple[Score, ...]:
    """The scores of an accuracy run: of accuracy.json, else of accuracy.txt, its first line where neither is known."""
    name = run.paths.accuracy_text.name
    text = contents.get(name, b"").decode("utf-8", "replace")
    number, line = next(((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()), (0, ""))
    if number == 0:
        return ()
    source = _Source(run, name, contents)
    content = contents.object(run.paths.accuracy_json.name)
    if content is not None and isinstance(content.get("metrics"), list):
        return _recorded_scores(content, line.strip(), source.at(number))
    return _printed_scores(run, text, source, round_name) or (_line_only(line.strip(), source.at(number)),)


def round_of(log: LoadGenLog | None, summary: SummaryLog) -> str:
    """The round whose seeds a run had; the newest one where no round has them."""
    texts = [str(log.seeds.qsl)] if log is not None else []
    texts += [line.value for line in summary.lines if line.name == "qsl_rng_seed"]
    return next((name for name, seeds in SEEDS.items() if str(seeds.qsl) in texts), ROUNDS[-1])


def _log_of(
    run: FoundRun, contents: Mapping[str, bytes], log: LoadGenLog | None = None
) -> tuple[LoadGenLog | None, str]:
    """What both logs say together, or why the detail log is not used."""
    paths = run.paths
    if paths.detail_log.name not in contents:
        return None, f"cannot read {run.relative / paths.detail_log.name}: it is missing"
    try:
        log = log or parse_detail_log(contents[paths.detail_log.name].decode("utf-8"))
        return checked_by_summary(paths, log, contents[paths.summary_log.name].decode("utf-8")), ""
    except (LogError, UnicodeDecodeError) as error:
        return None, str(error).replace(str(paths.folder), run.relative.as_posix())


def facts_of(run: FoundRun, contents: RunFiles, log: LoadGenLog | None = None) -> RunFacts:
    """Return what the files of ``run`` say, which are given by their names; reads none. Raises LogError where not even
    the summary is there. log: what the detail log says, where it has been read.
    """
    paths = run.paths
    if paths.summary_log.name not in contents:
        raise LogError(f"cannot read {run.relative / paths.summary_log.name}: it is missing")
    summary = parse_summary(contents[paths.summary_log.name].decode("utf-8", "replace"))
    detail = _Source(run, paths.detail_log.name, contents)
    started, reasons = "", tuple[str, ...]()
    is_valid: bool | None
    log, problem = _log_of(run, contents, log)
    result = contents.object(paths.result_json.name)
    if log is not None:
        log = with_recorded_problems(log, result)
        figure, latencies = _detail_figures(run, log, detail)
        started, is_valid, reasons = log.started, log.is_valid, log.invalid_reasons
    else:
        source = _Source(run, paths.summary_log.name, contents)
        figure, latencies = _summary_figures(run, summary, source)
        is_valid = summary.is_valid
    round_name = round_of(log, summary)
    return RunFacts(
        run=run,
        round_name=round_name,
        log=log,
        summary=summary,
        problem=problem,
        is_valid=is_valid,
        reasons=reasons,
        figure=figure,
        latencies=latencies,
        scores=_scores(run, contents, round_name) if run.mode is Mode.ACCURACY else (),
        detail_sha256=detail.sha256,
        started=started,
        result=result,
        load=contents.object(paths.load_json.name),
    )


def read_run(run: FoundRun) -> RunFacts:
    """Return what the files of ``run`` say. Raises LogError where not even its summary can be read."""
    paths = run.paths
    wanted = (paths.summary_log, paths.detail_log, paths.result_json, paths.load_json)
    scores = (paths.accuracy_text, paths.accuracy_json) if run.mode is Mode.ACCURACY else ()
    return facts_of(run, files_of(run, [path.name for path in (*wanted, *scores)]))
