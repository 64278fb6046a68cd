"""parse-mlperf-metadata: the right metrics beside VirtualClient's own, its files, and input that cannot be true."""

import csv
import io
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import metadata_builder as made
import pytest
from recipe_loader import exported, load_recipe, recipe_meta

from crowdperf.fronts.metrics import commandline, discovery, metricfiles, telemetry
from crowdperf.fronts.metrics.metadata import LARGEST_BYTES, MetadataError, parse_metadata
from crowdperf.fronts.metrics.metrics import Metric, metrics_of
from crowdperf.fronts.metrics.upstream import UpstreamFails, upstream_metrics
from crowdperf.rules.names import Mode

REQUIRED_FIELDS = (
    "appHost", "appName", "appVersion", "severityLevel", "timestamp", "clientId", "profileName", "experimentId",
    "metricName", "metricRelativity", "metricValue", "operatingSystemPlatform", "scenarioName", "scenarioStartTime",
    "scenarioEndTime", "toolName",
)  # fmt: skip
"""Of an object in a `.metrics` file, by the telemetry guide of microsoft/VirtualClient (53e432ad)."""

recipe = load_recipe("parse-mlperf-metadata")
META = recipe_meta("parse-mlperf-metadata")
PERFORMANCE, ACCURACY = Mode.PERFORMANCE, Mode.ACCURACY


def right(content: dict[str, Any]) -> dict[str, float]:
    return {metric.name: metric.value for metric in metrics_of(parse_metadata(json.dumps(content)))}


def remarks(content: dict[str, Any]) -> str:
    return " | ".join(parse_metadata(json.dumps(content)).remarks)


def upstreams(content: dict[str, Any], mode: Mode) -> dict[str, float]:
    return {metric.name: metric.value for metric in upstream_metrics(content, mode)}


@pytest.fixture
def call(preprocessed):
    """Parses a folder; the answer has what was printed as `text` and `said`."""

    return partial(preprocessed, recipe, META)


def rows_of(folder: Path, name: str = "metrics.csv") -> list[dict[str, str]]:
    with open(folder / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- the figures ---


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (made.performance("Server"), {"PerformanceMode_p99": 1.0, "samples_per_second_p99": 25405.6}),
        (made.performance("SingleStream", result_validity="INVALID"),
         {"PerformanceMode_p99": 0.0, "latency_ns_p99": 1924537.0}),
        (made.accuracy(), {"AccuracyMode_p99": 1.0, "ThresholdValue_p99": 89.96526,
                           "AccuracyValue_p99": 90.2147015680108,
                           "AccuracyThresholdRatio_p99": 90.2147015680108 / 89.96526}),
    ],
)  # fmt: skip
def test_upstreams_examples_give_the_same_figures_here_and_there(content, expected):
    mode = ACCURACY if "accuracy" in content else PERFORMANCE
    assert right(content) == upstreams(content, mode) == expected


def test_units_and_directions_are_set():
    (verdict, latency) = metrics_of(parse_metadata(json.dumps(made.performance("SingleStream"))))
    assert (verdict.unit, verdict.relativity) == ("VALID/INVALID", "HigherIsBetter")
    assert (latency.unit, latency.relativity) == ("nanoseconds", "LowerIsBetter")
    (_, rate) = metrics_of(parse_metadata(json.dumps(made.newer())))
    assert (rate.name, rate.value, rate.unit, rate.relativity) == (
        "tokens_per_second_p99", 542.476, "tokens/sec", "HigherIsBetter",
    )  # fmt: skip


HIGH = made.performance("Server", benchmark_full="bert-99.9")
CUT = {"summary_string": "result_completed_samples_per_sec: 25405.6", "result_completed_samples_per_sec": 25405.6}
ROUGE = {"name": "ROUGE1", "pass": True, "threshold": 42.5, "value": 43.0}
LONG = {"name": "GEN_LEN", "pass": False, "threshold": 3.6, "value": 9.0, "upper_limit": 5.0}
GPTJ = {"benchmark_full": "gptj-99", "benchmark_short": "gptj"}
NOT_TRUE = {"name": "F1", "pass": False, "threshold": 1.0, "value": 1.5}
DOCUMENTED = {"name": "DICE", "pass": True, "threshold": 0.853083, "value": 0.86112}


@pytest.mark.parametrize(
    ("fault", "content", "mode", "name", "theirs", "name_here", "ours"),
    [
        ("the suffix is looked for in scenario", HIGH, PERFORMANCE,
         "samples_per_second_p99", 25405.6, "samples_per_second_p99_9", 25405.6),
        ("the last character of a word is cut", made.performance(**CUT), PERFORMANCE,
         "samples_per_second_p99", 25405.0, "samples_per_second_p99", 25405.6),
        ("one score of several counts", made.accuracy(ROUGE, LONG, **GPTJ, accuracy_pass=False), ACCURACY,
         "AccuracyMode_p99", 1.0, "AccuracyMode_p99", 0.0),
        ("a verdict is believed against the figures", made.accuracy(NOT_TRUE), ACCURACY,
         "AccuracyMode_p99", 0.0, "AccuracyMode_p99", 1.0),
        ("LoadGen's VALID is kept for a short run", made.performance(effective_min_duration_ms=60000), PERFORMANCE,
         "PerformanceMode_p99", 1.0, "PerformanceMode_p99", 0.0),
        ("tokens are called samples",
         made.newer(summary_string="result_tokens_per_second: 542.476, Result is VALID, ..."), PERFORMANCE,
         "samples_per_second_p99", 542.476, "tokens_per_second_p99", 542.476),
        ("the documented ratio of 0.86112 to 0.853083 is 1.00832", made.accuracy(DOCUMENTED), ACCURACY,
         "AccuracyThresholdRatio_p99", 0.86112 / 0.853083, "AccuracyThresholdRatio_p99", 0.86112 / 0.853083),
    ],
)  # fmt: skip
def test_a_fault_of_upstreams_beside_the_right_figure(fault, content, mode, name, theirs, name_here, ours):
    assert upstreams(content, mode)[name] == theirs, fault
    assert right(content)[name_here] == ours, fault


def test_the_documented_ratio_is_neither_theirs_nor_ours():
    assert f"{right(made.accuracy(DOCUMENTED))['AccuracyThresholdRatio_p99']:.5f}" == "1.00942"


def test_a_percentile_of_latency_is_not_the_level_of_accuracy():
    (_, theirs) = upstream_metrics(made.performance("SingleStream"), PERFORMANCE)
    (_, ours) = metrics_of(parse_metadata(json.dumps(made.performance("SingleStream"))))
    assert theirs.name == ours.name == "latency_ns_p99"
    assert "percentile" not in theirs.metadata
    assert ours.metadata["percentile"] == "90"


@pytest.mark.parametrize(
    ("content", "mode", "exception"),
    [
        (made.newer(), PERFORMANCE, "NullReferenceException: summary_string"),
        (made.performance(summary_string="Result is VALID, x: 1"), PERFORMANCE, "FormatException: 'i'"),
        (made.performance(summary_string="VALID"), PERFORMANCE, "IndexOutOfRangeException"),
        (made.performance(), ACCURACY, "NullReferenceException: accuracy"),  # a stale file of the other mode
        (made.accuracy(accuracy=[]), ACCURACY, "ArgumentOutOfRangeException"),
    ],
)
def test_where_upstream_ends_with_an_exception_it_is_named(content, mode, exception):
    with pytest.raises(UpstreamFails, match=exception):
        upstream_metrics(content, mode)


def test_several_scores_each_have_their_metrics_and_the_upper_limit_counts():
    found_here = right(made.accuracy(ROUGE, LONG, **GPTJ, accuracy_pass=False))
    assert sorted(found_here) == [
        "AccuracyMode_p99", "AccuracyThresholdRatio_GEN_LEN_p99", "AccuracyThresholdRatio_ROUGE1_p99",
        "AccuracyValue_GEN_LEN_p99", "AccuracyValue_ROUGE1_p99", "ThresholdValue_GEN_LEN_p99",
        "ThresholdValue_ROUGE1_p99",
    ]  # fmt: skip
    assert right(made.accuracy(ROUGE, {**LONG, "value": 4.0, "pass": True}, **GPTJ))["AccuracyMode_p99"] == 1.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (made.accuracy(NOT_TRUE), "contradictory verdict: F1 1.5 against 1, pass is false"),
        (
            made.accuracy({**NOT_TRUE, "value": 0.5}, accuracy_pass=True),
            "accuracy_pass is true, the values show the opp",
        ),
        (made.performance(effective_min_duration_ms=2000), "short run: 2000 ms requested, the rules require 600000"),
        (made.newer(audit_test="TEST06", audit_success=True), "audit run TEST06: passed"),
        (made.newer(true_result_value=1.0), "contradictory values: result_tokens_per_second is 542.476"),
        (made.newer(benchmark_full="llama2-70b-99", workload_setting_code="cp999"), "contradictory accuracy levels"),
        (made.performance(summary_string="result_completed_samples_per_sec: 1, x"), "summary_string says 1"),
        (made.performance(scenario_key=""), "the value is read from summary_string"),
        (
            made.performance(scenario_key="result_of_another"),
            "result_of_another (from scenario_key) is missing: the value is read from summary_string",
        ),
        (made.performance(result_completed_samples_per_sec=None, summary_string=""), "the run has no result"),
        (made.accuracy(accuracy=[]), "not scored yet"),
    ],
)
def test_what_must_be_known_beside_the_figures_is_said(content, words):
    assert words in remarks(content)
    assert all(words in metric.metadata["remarks"] for metric in metrics_of(parse_metadata(json.dumps(content))))


def test_a_passed_audit_run_is_valid_though_its_configuration_asks_for_no_time():
    passed = made.newer(audit_test="TEST06", audit_success=True, effective_min_duration_ms=0)
    for content, value, remark in (
        (passed, 1.0, "audit run TEST06: passed"),
        ({**passed, "audit_test": ""}, 0.0, "short run: 0 ms requested, the rules require 600000 ms"),
    ):
        assert right(content)["PerformanceMode_p99"] == value
        assert remarks(content) == remark


def test_a_score_that_the_rules_do_not_name_stands_in_the_metadata_and_still_counts():
    exact = {"name": "exact_match", "pass": False, "threshold": 92.0, "value": 90.0}
    f1 = made.accuracy()["accuracy"][0]
    found_here = metrics_of(parse_metadata(json.dumps(made.accuracy(f1, exact, accuracy_pass=False))))
    assert [metric.name for metric in found_here] == [
        "AccuracyMode_p99", "ThresholdValue_p99", "AccuracyValue_p99", "AccuracyThresholdRatio_p99",
    ]  # fmt: skip
    assert (found_here[0].value, found_here[0].metadata["other_scores"]) == (0.0, "exact_match 90")


def test_without_a_figure_under_its_key_the_others_are_taken_in_order():
    assert right(made.newer(result_tokens_per_second=None))["tokens_per_second_p99"] == 542.476
    assert right(made.performance(result_completed_samples_per_sec=None))["samples_per_second_p99"] == 25405.6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(made.performance())[:200], "cut off or no JSON"),
        ("[]", "does not contain a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1e999}', "1e999 is too large"),
        ('{"scenario": "a", "scenario": "b"}', "'scenario' occurs twice"),
        (json.dumps({"T4x1_TRT-default-Offline": {"resnet50": "Samples per second: 1 and Result is : VALID"}}),
         "benchmark_full, scenario, test_mode missing. metadata.json of v4.1 and v5.x"),
        (json.dumps(made.performance(test_mode="Both")), 'found "Both"; allowed: PerformanceOnly or AccuracyOnly'),
        (json.dumps(made.performance(result_completed_samples_per_sec="25405.6")), '_per_sec: found "25405.6"'),
        (json.dumps(made.accuracy(accuracy={"name": "F1"})), "accuracy: found .*; allowed: a list"),
        (json.dumps(made.accuracy({"name": "F1", "pass": "yes", "value": 1, "threshold": 1})), r"\[0\]\.pass: found"),
        (json.dumps(made.accuracy({"name": "F1"})), r"accuracy\[0\]\.value: found nothing"),
        (json.dumps(made.performance(scenario_key=None, summary_string=None)), "the only source of it"),
        ("{" + ",".join(f'"{n}": 1' for n in range(300_000)) + ', "5": 1}', "the key '5' occurs twice"),
        (" " * (LARGEST_BYTES + 1), "so it is not a metadata.json"),
    ],
)  # fmt: skip
def test_what_is_no_metadata_json_is_refused(text, words):
    with pytest.raises(MetadataError, match=words):
        parse_metadata(text)


# --- the recipe and its files ---


def test_a_folder_becomes_rows_objects_and_a_summary_and_stays_as_it_is(inside, call):
    made.write(inside / "build/logs/a", made.performance("Server"))
    path = made.write(inside / "build/logs/b", {**made.accuracy(), "label": 'a "label"; too'})
    before = path.read_bytes()
    answer = call(log_dir="out", system="Demo", metadata="Owner=me,,,Note=a;b")
    assert answer["return"] == 0, answer
    assert path.read_bytes() == before
    rows = rows_of(inside / "out")
    assert list(rows[0]) == list(telemetry.COLUMNS)
    assert len(telemetry.COLUMNS) == 29
    assert [row["MetricName"] for row in rows] == [
        "PerformanceMode_p99", "samples_per_second_p99", "AccuracyMode_p99", "ThresholdValue_p99", "AccuracyValue_p99",
        "AccuracyThresholdRatio_p99",
    ]  # fmt: skip
    assert {row["ToolName"] for row in rows} == {"MLPerf"}
    assert {row["ScenarioName"] for row in rows} == {"bert"}
    assert {row["ExecutionSystem"] for row in rows} == {"Demo"}
    assert (rows[0]["MetricValue"], rows[1]["MetricValue"]) == ("1", "25405.6")
    assert "scenario=Server" in rows[0]["Metadata"]
    assert "Owner=me;Note=a,b" in rows[0]["Metadata"]
    assert 'label=a "label", too' in rows[-1]["Metadata"]
    raw = (inside / "out/metrics.csv").read_text()
    assert all(line.startswith('"') and line.endswith('"') for line in raw.splitlines())
    objects = [json.loads(text) for text in (inside / "out/crowdperf.metrics").read_text().split("-----\n")]
    assert len(objects) == 6
    assert all(one[field] not in ("", None) for one in objects for field in REQUIRED_FIELDS)
    assert objects[1]["metricValue"] == 25405.6
    assert "samples_per_second_p99" in (inside / "out/summary.txt").read_text()
    assert "samples_per_second_p99" in answer["text"]
    assert len(answer["state"]["mlperf_metrics"]["metrics"]) == 6
    assert sorted(exported("parse-mlperf-metadata", answer["env"])) == [
        "CM_MLPERF_METRICS_CSV", "CM_MLPERF_METRICS_FILE",
    ]  # fmt: skip


def test_parsing_the_same_files_again_adds_nothing(inside, call):
    made.write(inside / "logs", made.performance())
    first = call(input="logs", log_dir="out")
    before = (inside / "out/metrics.csv").read_bytes()
    second = call(input="logs", log_dir="out")
    assert (first["return"], second["return"]) == (0, 0)
    assert "already in" in second["said"]
    assert (inside / "out/metrics.csv").read_bytes() == before


def test_upstreams_figures_on_request(inside, call):
    made.write(inside / "logs", made.performance(**CUT))
    call("strict-upstream", input="logs", log_dir="out")
    assert rows_of(inside / "out")[1]["MetricValue"] == "25405"
    made.write(inside / "logs", made.newer())
    answer = call("strict-upstream", input="logs", log_dir="other")
    assert "VirtualClient ends here with NullReferenceException: summary_string is missing" in answer["error"]


@pytest.mark.parametrize("damage", ["cut", "older", "utf16", "none"])
def test_a_bad_file_is_named_and_nothing_is_left(inside, call, damage):
    path = made.write(inside / "logs/b", made.performance())
    if damage == "none":
        path.unlink()
    else:
        made.write(inside / "logs/a", made.performance())
        text = {"cut": path.read_text()[:99], "older": '{"a": 1}', "utf16": ""}[damage]
        path.write_bytes("x".encode("utf-16") if damage == "utf16" else text.encode())
    answer = call(input="logs", log_dir="out")
    assert answer["return"] == 1
    assert "hint:" in answer["error"]
    assert ("no metadata.json was found" if damage == "none" else "b/metadata.json") in answer["error"]
    assert not (inside / "out").exists()


def test_times_are_those_of_each_run(inside):
    path = made.write(inside / "a", made.performance())
    (inside / "a/result.json").write_text('{"started_utc": "2026-11-23T01:02:03+00:00", "took_s": 61.5}')
    source = discovery.MetadataFile.read(path).source
    assert telemetry.utc_text(source.started) == "2026-11-23T01:02:03.000Z"
    assert telemetry.utc_text(source.ended) == "2026-11-23T01:03:04.500Z"
    (inside / "a/result.json").write_text("[]")
    os.utime(path, (0, 1_000_000_000))
    assert telemetry.utc_text(discovery.MetadataFile.read(path).source.started) == "2001-09-09T01:46:40.000Z"


def test_links_that_lead_in_circles_end_and_a_first_attempt_does_not_count(inside):
    made.write(inside / "a", made.performance())
    made.write(inside / "a" / "first_attempt", made.performance())
    (inside / "a/loop").symlink_to(inside)
    assert [path.name for path in discovery.find(inside)] == ["metadata.json"]


# --- files ---


SESSION = telemetry.Session(experiment_id="e", client_id="c", profile="p", app_host="h")


def source_of(identity: str) -> telemetry.Source:
    moment = discovery.datetime(2026, 11, 23, tzinfo=discovery.timezone.utc)
    return telemetry.Source(tool="t", scenario="s", started=moment, ended=moment, identity=identity)


def test_a_record_that_a_kill_cut_off_is_removed_and_written_again(tmp_path):
    metrics = [Metric(name="a", value=1.0), Metric(name="b", value=2.5)]
    assert metricfiles.append(tmp_path, metrics, SESSION, source_of("1"))
    whole = {name: (tmp_path / name).read_bytes() for name in ("metrics.csv", "crowdperf.metrics")}
    assert metricfiles.append(tmp_path, metrics, SESSION, source_of("2"))
    both = {name: (tmp_path / name).read_bytes() for name in whole}
    for cut in (0, 1, 40, 300, 500, 700, 900, 1200):  # an operation id that is cut off is not there
        for name, content in whole.items():
            (tmp_path / name).write_bytes(content + both[name][len(content) :][:cut])
        metricfiles.append(tmp_path, metrics, SESSION, source_of("2"))
        rows = rows_of(tmp_path)
        assert [row["MetricName"] for row in rows] == ["a", "b", "a", "b"]
        assert all(None not in row and len(row) == 29 for row in rows)
        texts = (tmp_path / "crowdperf.metrics").read_text().split("-----\n")
        assert [json.loads(text)["metricName"] for text in texts] == ["a", "b", "a", "b"]


def test_after_the_limit_the_next_file_begins_with_the_columns(tmp_path):
    for number in range(3):
        metricfiles.append(tmp_path, [Metric(name="a", value=1.0)], SESSION, source_of(str(number)), limit_bytes=600)
    assert [path.name for path in metricfiles.csv_files(tmp_path)] == ["metrics.csv", "metrics_1.csv", "metrics_2.csv"]
    assert all(len(rows_of(tmp_path, path.name)) == 1 for path in metricfiles.csv_files(tmp_path))
    assert not metricfiles.append(tmp_path, [Metric(name="a", value=1.0)], SESSION, source_of("0"), limit_bytes=600)


def test_a_foreign_text_stays_in_its_field():
    metric = Metric(name='x","y', value=0.1, metadata={"k": 'a\nb;c"d'})
    text = telemetry.csv_text(metric, SESSION, source_of("1"))
    (row,) = csv.reader(io.StringIO(text))
    assert len(row) == 29
    assert row[10] == 'x","y'
    assert row[25] == 'k=a b,c"d'


def test_half_of_a_character_does_no_harm(tmp_path):
    metricfiles.append(tmp_path, [Metric(name="a", value=1.0, metadata={"k": "\ud800"})], SESSION, source_of("1"))
    assert len(rows_of(tmp_path)) == 1


def test_cleaning_removes_the_files_of_metrics_and_no_other(tmp_path):
    metricfiles.append(tmp_path, [Metric(name="a", value=1.0)], SESSION, source_of("1"))
    (tmp_path / "mine.csv").write_text("mine")
    assert metricfiles.remove_logs(tmp_path) == ["metrics.csv", "crowdperf.metrics"]
    assert (tmp_path / "mine.csv").is_file()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=1,2;b=2", {"a": "1,2", "b": "2"}),
        ("a=1;2,,,b=x=y", {"a": "1;2", "b": "x=y"}),
        ("a='q'", {"a": "q"}),
        ("", {}),
    ],
)
def test_pairs_are_split_as_upstream_splits_them(text, expected):
    assert commandline.parse_pairs(text, "--metadata") == expected


@pytest.mark.parametrize("text", ["a", "=1", "a=1,A=2"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(commandline.CommandLineError, match="--metadata"):
        commandline.parse_pairs(text, "--metadata")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("01:00:00", 3600), ("01.00:30:00", 88200), ("00:00:01.5", 1.5), ("25:00:00", None), ("1440", None), ("", None)],
)
def test_timespans_are_those_of_csharp(text, seconds):
    found_here = commandline.parse_timespan(text)
    assert (found_here.total_seconds() if found_here else None) == seconds


def test_planning_changes_nothing(hook_input):
    assert recipe.plan(hook_input({})) == {"return": 0}
