"""Makes the texts that NVIDIA's harness prints of result rows: two banners up to v3, a tree in v4. Pure.

    ======================= Perf harness results: =======================

    T4x1_TRT-default-Offline:
        resnet50: Samples per second: 6035.57 and Result is : VALID

Source: NVIDIA's print_harness_result of the v0.7 results repository; the tree's lines are the summary_string of v4.1's
metadata.json. Labels and published results are lines of our own.
"""

from collections.abc import Mapping, Sequence

from crowdperf.kit.whole_file import read_object
from crowdperf.logs.result_rows import Row, compare
from crowdperf.logs.run_facts import RunFacts, Score, benchmark_behind
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS, TOKEN_KEYS, TOKEN_METRIC, Scenario
from crowdperf.rules.rounds import rounds_of, rules_in

PERFORMANCE_BANNER = "======================= Perf harness results: ======================="
ACCURACY_BANNER = "======================= Accuracy results: ======================="
TREE_BANNER = "======================== Result summaries: ========================"
NO_PERFORMANCE = "No performance results in AccuracyOnly mode."
NO_ACCURACY = "No accuracy results in PerformanceOnly mode."
NO_ACCURACY_LOG = "Cannot find accuracy JSON file."
NOT_SCORED = "The accuracy run is not scored yet: cm run script --tags=process,mlperf,accuracy --result_dir=FOLDER"
SCENARIO_KEYS = {
    Scenario.SINGLE_STREAM: "result_90.00_percentile_latency_ns",
    Scenario.MULTI_STREAM: "result_99.00_percentile_per_query_latency_ns",
    Scenario.OFFLINE: "result_samples_per_second",
    Scenario.SERVER: "result_completed_samples_per_sec",
    Scenario.INTERACTIVE: "result_completed_samples_per_sec",
}
"""What NVIDIA's v4.1 metadata.json calls a scenario's figure."""

Summary = Mapping[str, Mapping[str, str]]
"""`<system>-<config_ver>-<scenario>` to benchmark to text."""


def config_name(row: Row) -> str:
    """NVIDIA's name of a configuration: `high_accuracy` is the level 99.9, `triton` a backend behind Triton's server,
    `openvino` that library."""
    level = "high_accuracy" if row.model.endswith("-99.9") else ""
    return f"{row.system}-{'_'.join(filter(None, (level, _harness(row)))) or 'default'}-{row.scenario.value}"


def _harness(row: Row) -> str:
    """The part of a configuration's name that says what answered; empty where that is nothing special or unknown."""
    settings = [(facts.result or {}).get("run") for facts in row.runs]
    names = {(run.get("backend") or {}).get("value") for run in settings if isinstance(run, Mapping)}
    known = [BACKENDS[name] for name in names if isinstance(name, str) and name in BACKENDS]
    if any(backend.is_served for backend in known):
        return "triton"
    return "openvino" if "openvino" in names else ""


def verdict(facts: RunFacts) -> str:
    """LoadGen's verdict; a logged error makes it INVALID."""
    return "VALID" if facts.is_valid else "INVALID"


def performance_text(row: Row) -> str:
    """The line of LoadGen's summary with the figure, and the verdict; of the last run where there are several."""
    facts = row.shown
    if facts is None:
        return NO_PERFORMANCE
    line = "No value in the log" if facts.summary.figure is None else facts.summary.figure.text
    return f"{line} and Result is : {verdict(facts)}"


def _threshold_text(score: Score) -> str:
    word = "PASSED" if score.is_passed else "FAILED"
    limit = "" if score.upper_limit is None else f" to {score.upper_limit:.3f}"
    return f"Threshold = {score.target:.3f}{limit}, {score.name} {word}"


def _scores_text(scores: Sequence[Score]) -> str:
    """Each line of the scorer once, with the thresholds of its scores: a line may hold several (ROUGE)."""
    texts = []
    for line in dict.fromkeys(score.line for score in scores):
        limits = [_threshold_text(score) for score in scores if score.line == line and score.target is not None]
        texts.append(f"{line} ({', '.join(limits)})" if limits else line)
    return " | ".join(texts)


def accuracy_text(row: Row) -> str:
    """The official line of each metric with its verdict, where a target is known."""
    facts = row.scored
    if facts is None:
        return NO_ACCURACY
    if not facts.run.paths.accuracy_log.is_file():
        return NO_ACCURACY_LOG
    return _scores_text(facts.scores) or NOT_SCORED


def performance_summary(rows: Sequence[Row]) -> Summary:
    """The content of perf_harness_summary.json."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(config_name(row), {})[row.model] = performance_text(row)
    return found


def accuracy_summary(rows: Sequence[Row]) -> Summary:
    """The content of accuracy_summary.json."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(config_name(row), {})[row.model] = accuracy_text(row)
    return found


def label_lines(rows: Sequence[Row]) -> list[str]:
    """What is said of results that are no MLPerf results, each once, with whose they are where not all have it."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.label:
            found.setdefault(row.label, []).append(f"{config_name(row)} {row.model}")
    return [label if len(names) == len(rows) else f"{label}: {', '.join(names)}" for label, names in found.items()]


def banner_lines(banner: str, summary: Summary) -> list[str]:
    """One banner with all its configurations."""
    lines = ["", banner, ""]
    for name, benchmarks in summary.items():
        lines += [f"{name}:", *(f"    {benchmark}: {text}" for benchmark, text in benchmarks.items()), ""]
    return lines


def _own_summary(facts: RunFacts) -> str:
    """The summary_string of the run's metadata.json; empty where there is none."""
    text = (read_object(facts.run.paths.metadata_json) or {}).get("summary_string")
    return text if isinstance(text, str) else ""


def _tree_performance(row: Row, facts: RunFacts) -> str:
    if facts.figure is None:
        return f"no value, Result is {verdict(facts)}"
    is_tokens = facts.figure.unit == TOKEN_METRIC.unit
    key = next(iter(TOKEN_KEYS[row.scenario])) if is_tokens else SCENARIO_KEYS[row.scenario]
    wanted = {Scenario.SINGLE_STREAM: "90", Scenario.MULTI_STREAM: "99"}.get(row.scenario)
    value = next((round(f.value * 1e6) for f in facts.latencies if f.name == wanted), facts.figure.value)
    asked_ms = facts.summary.number("min_duration (ms)") or 0
    return (
        f"{key}: {value}, Result is {verdict(facts)}, "
        f"10-min runtime requirement met: {asked_ms >= FULL_RULES_MIN_DURATION_MS}"
    )


def _server_lines(row: Row, facts: RunFacts, rows: Sequence[Row]) -> list[str]:
    """What v4.1 says of Server: latency beside the limit, rate beside Offline's."""
    lines = []
    benchmark = benchmark_behind(row.model, facts.round_name)
    limit_ms = None
    if benchmark is not None and facts.round_name in rounds_of(benchmark):
        limit_ms = rules_in(benchmark, facts.round_name).server_target_latency_ms
    latency_ms = next((found.value for found in facts.latencies if found.name == "99"), None)
    if limit_ms and latency_ms is not None:
        lines.append(f"p99 latency: {latency_ms:.4g} ms, {latency_ms / limit_ms:.3f} of the {limit_ms:g} ms allowed")
    offline = next(
        (other.shown.figure for other in rows
         if (other.group, other.system, other.model) == (row.group, row.system, row.model)
         and other.scenario is Scenario.OFFLINE and other.shown is not None),
        None,
    )  # fmt: skip
    if offline is not None and offline.value and facts.figure is not None:
        lines.append(f"server/offline: {facts.figure.value / offline.value:.3f}")
    return lines


def _published_lines(row: Row) -> list[str]:
    found = compare(row)
    if not found.anchors:
        return [f"published: none ({found.reason})"]
    return [
        f"published: {ratio:.3f} times as fast as {anchor.value:,g} {anchor.unit} ({anchor.metric}, {anchor.source})"
        for anchor, ratio in found.anchors
    ]


def _tree_scores(facts: RunFacts) -> str:
    texts = []
    for score in facts.scores:
        if score.value is None or score.target is None:
            texts += [] if score.line in texts else [score.line]
        else:
            texts.append(f"[{'PASSED' if score.is_passed else 'FAILED'}] {score.name}: {score.value:.3f} "
                         f"(Threshold={score.target:.3f})")  # fmt: skip
    return " | ".join(texts) or NOT_SCORED


def tree_lines(rows: Sequence[Row]) -> list[str]:
    """The newer form: each configuration, below it its benchmarks, below them everything that is known."""
    lines, last = ["", TREE_BANNER, ""], ""
    for row in rows:
        if config_name(row) != last:
            last = config_name(row)
            lines.append(f" {last}:")
        lines.append(f"   {row.model}:")
        found = []
        if row.scored is not None:
            found.append(f"accuracy: {_tree_scores(row.scored)}")
        facts = row.shown
        if facts is not None:
            found.append(f"performance: {_own_summary(facts) or _tree_performance(row, facts)}")
            found += [f"invalid: {reason}" for reason in facts.reasons]
            found += _server_lines(row, facts, rows) if row.scenario.is_server else []
            found += _published_lines(row)
        if row.label:
            found.append(f"label: {row.label}")
        lines += [f"     {text}" for text in found]
    return [*lines, ""]
