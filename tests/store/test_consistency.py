"""A single edit of what was sent contradicts the rest of it; a log that is scaled as a whole does not."""

import contextlib
import json
import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from shared_results import MULTI_STREAM, OFFLINE, SERVER, SINGLE_STREAM, recorded

from crowdperf.logs.found_runs import RunFiles
from crowdperf.store import facts
from crowdperf.store.bundle import BundleFile, Manifest, ReadBundle
from crowdperf.store.consistency import results_of_bundle
from crowdperf.store.derivations import check_run
from crowdperf.store.model import Problem, Signer
from crowdperf.store.refusal import BundleRefused

Files = dict[str, bytes]
ACCURACY = "digits/Offline/accuracy"
DETAIL, SUMMARY, RESULT, RECORD = "mlperf_log_detail.txt", "mlperf_log_summary.txt", "result.json", "record.json"


def _run(folder: str) -> Files:
    start = f"{folder}/"
    return {name[len(start) :]: content for name, content in recorded().items() if name.startswith(start)}


def _read(files: Files) -> ReadBundle:
    rows = tuple(BundleFile(name=name, sha256="", size_bytes=0, masked=()) for name in files)
    manifest = Manifest(run_id="x", made_utc="", recipes_sha256="", public_key=b"", alias="", files=rows, digests={})
    signer = Signer(key_id="", public_key=b"", alias="")
    return ReadBundle(manifest=manifest, signer=signer, digest="", files=RunFiles(files))


def _problems(files: Files) -> tuple[Problem, ...]:
    """Why a bundle of these files is refused."""
    try:
        results_of_bundle(_read(files))
    except BundleRefused as refused:
        return refused.problems
    return ()


def _of_run(files: Files, folder: str) -> tuple[Problem, ...]:
    return check_run(RunFiles(files), folder).problems


def test_recorded_runs_fit() -> None:
    for folder in (OFFLINE, SERVER, SINGLE_STREAM, MULTI_STREAM, ACCURACY):
        assert _of_run(_run(folder), folder) == ()
    assert _problems(recorded()) == ()


def test_a_number_that_python_cannot_compare_is_a_problem_and_no_crash() -> None:
    files = _run(ACCURACY)
    _field("accuracy.json", 10**400, "metrics", 0, "value")(files)
    (found,) = _of_run(files, ACCURACY)
    assert (found.rule, found.file) == ("FORM", ACCURACY) and "too large" in found.found


def test_a_seal_of_a_masked_part_says_nothing() -> None:
    files = _run(OFFLINE)
    _field(RECORD, "2026-11-23T10:30:00.000Z, masked", "made_utc")(files)
    assert check_run(RunFiles(files), OFFLINE, {RECORD: ("made_utc",)}).problems == ()
    assert [one.rule for one in _of_run(files, OFFLINE)] == ["V13"]


def _value(key: str, new: object) -> Callable[[Files], None]:
    """An edit of the value of a key of the detail log."""

    def edit(files: Files) -> None:
        before = files[DETAIL].decode()
        pattern = rf'("key": "{re.escape(key)}", "value": )("[^"]*"|[^,]*)(, )'
        after = re.sub(pattern, lambda match: match[1] + json.dumps(new) + match[3], before, count=1)
        assert after != before
        files[DETAIL] = after.encode()

    return edit


def _text(name: str, old: str, new: str) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        assert old.encode() in files[name]
        files[name] = files[name].replace(old.encode(), new.encode(), 1)

    return edit


def _everywhere(old: str, new: str) -> Callable[[Files], None]:
    """The same edit in every file of the run, as a forger does who knows that they are compared."""

    def edit(files: Files) -> None:
        assert old.encode() in files[DETAIL]
        for name in files:
            files[name] = files[name].replace(old.encode(), new.encode())

    return edit


def _field(name: str, new: object, *place: str | int, is_same_allowed: bool = False) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        row = json.loads(files[name])
        inner = row
        for part in place[:-1]:
            inner = inner[part]
        assert is_same_allowed or inner[place[-1]] != new
        inner[place[-1]] = new
        files[name] = json.dumps(row).encode()

    return edit


FORGERIES: tuple[tuple[str, str, Callable[[Files], None]], ...] = (
    ("V1", OFFLINE, _text(SUMMARY, "Samples per second: 179951", "Samples per second: 279951")),
    ("V1", SERVER, _text(SUMMARY, "Result is : VALID", "Result is : INVALID")),
    (
        "V1",
        SERVER,
        _text(SUMMARY, "99.00 percentile latency (ns)   : 979662", "99.00 percentile latency (ns)   : 97966"),
    ),
    ("V1", SINGLE_STREAM, _text(SUMMARY, "qsl_rng_seed : 2085463073848966840", "qsl_rng_seed : 1")),
    ("V1", SINGLE_STREAM, _text(SUMMARY, "min_query_count : 100", "min_query_count : 50000")),
    ("V1", OFFLINE, _text(SUMMARY, "2 warnings encountered", "No warnings encountered")),
    ("V2", SERVER, _everywhere("979662", "279662")),
    ("V2", SINGLE_STREAM, _everywhere("68425", "38425")),
    ("V2", OFFLINE, _everywhere("101477908", "4990000000")),
    ("V2", SERVER, _everywhere("162676", "1976540")),
    ("V3", OFFLINE, _value("generated_query_count", 2)),
    ("V4", OFFLINE, _everywhere("179951", "359902")),
    ("V4", OFFLINE, _everywhere("4689720155", "4689820155")),
    ("V4", OFFLINE, _value("power_end", "11-23-2026 10:30:16.000")),
    ("V5", SINGLE_STREAM, _everywhere("22449", "21449")),
    ("V5", SINGLE_STREAM, _value("result_qps_without_loadgen_overhead", 94545.4)),
    ("V5", SINGLE_STREAM, _value("result_qps_with_loadgen_overhead", 61576.9)),
    ("V5", SINGLE_STREAM, _everywhere("83155", "93155")),
    ("V6", MULTI_STREAM, _value("result_max_latency_ns", 903861)),
    ("V5", MULTI_STREAM, _everywhere("58540", "158540")),
    ("V7", SERVER, _everywhere("1855.57", "3855.57")),
    ("V7", SERVER, _value("result_scheduled_samples_per_sec", 2855.68)),
    ("V7", SERVER, _value("result_overlatency_query_count", 300)),
    ("V7", SERVER, _value("effective_target_latency_ns", 500000)),
    ("V7", SERVER, _value("result_perf_constraints_met", False)),
    ("V8", SINGLE_STREAM, _everywhere("28144", "18144")),
    ("V8", SINGLE_STREAM, _text(DETAIL, "Would discard 8113", "Would discard 9113")),
    ("V8", MULTI_STREAM, _everywhere("119264", "999264")),
    ("V8", SERVER, _value("early_stopping_met", False)),
    ("V9", OFFLINE, _text(DETAIL, '"time_ms": ', '"time_ms": 9999')),
    ("V9", OFFLINE, _text(DETAIL, ":::MLLOG", "x :::MLLOG")),
    ("V9", OFFLINE, lambda files: files.update({DETAIL: files[DETAIL][: len(files[DETAIL]) // 2]})),
    ("V10", OFFLINE, _everywhere("2085463073848966840", "2085463073848966841")),
    ("V11", OFFLINE, _everywhere("6.0.17 @ d6147c7eb7", "9.0.17 @ d6147c7eb7")),
    ("V11", OFFLINE, _text(DETAIL, "86bc3765857092b9d1f380604b101c771679842a", "0" * 40)),
    ("V12", OFFLINE, _field(RESULT, "full-length run, not submitted to MLPerf", "label")),
    ("V12", OFFLINE, _field(RESULT, True, "is_synthetic", "model")),
    ("V12", OFFLINE, _field(RESULT, "paced", "run", "backend", "value")),
    ("V12", OFFLINE, _field(RESULT, "valid", "run", "execution_mode", "value")),
    ("V13", OFFLINE, _field(RESULT, 999999.0, "metric", "value")),
    ("V13", OFFLINE, _field(RESULT, "samples/h", "metric", "unit")),
    ("V13", OFFLINE, _value("qsl_reported_total_count", 60000)),
    ("V13", SERVER, _field(RESULT, False, "valid")),
    ("V13", SERVER, _field(RESULT, 5, "latency", "p99_ns")),
    ("V13", SERVER, _field(RESULT, "Offline", "run", "scenario", "value")),
    ("V13", OFFLINE, _field(RECORD, "cm run script --tags=other", "command")),
    ("V13", OFFLINE, _field(RECORD, "0" * 64, "files", SUMMARY)),
    ("V13", OFFLINE, _field(RECORD, 1.0, "outcome", "within", "throughput", "value")),
    ("V13", ACCURACY, _field("accuracy.json", 99.9, "metrics", 0, "value")),
    ("V13", ACCURACY, _field("accuracy.json", 99.9, "metrics", 0, "target")),
    ("V13", ACCURACY, _text("accuracy.txt", "accuracy=99.332%", "accuracy=99.999%")),
)


@pytest.mark.parametrize(("group", "folder", "forge"), FORGERIES)
def test_one_edit_is_found(group: str, folder: str, forge: Callable[[Files], None]) -> None:
    files = _run(folder)
    forge(files)
    if group != "V13":
        del files[RECORD]  # which has a digest of each log: the logs must give themselves away
    found = _of_run(files, folder)
    assert group in {one.rule.partition(" ")[0] for one in found}, found
    assert all(one.file.startswith(folder) and one.found and one.expected for one in found)


def test_a_full_run_has_as_many_samples_as_the_benchmark_asks_for() -> None:
    files = _run(OFFLINE)
    del files[RECORD]
    for edit in (
        _field(RESULT, "resnet50", "run", "model", "value"),
        _field(RESULT, "valid", "run", "execution_mode", "value"),
    ):
        edit(files)
    found = [one.found for one in _of_run(files, OFFLINE)]
    assert found == ["execution_mode = valid, requested duration 2000 ms"]  # 843,920 samples are enough
    _value("generated_samples_per_query", 100)(files)
    assert "execution_mode = valid, 100 samples" in [one.found for one in _of_run(files, OFFLINE)]


def test_every_group_has_a_forgery() -> None:
    assert {group for group, _, _ in FORGERIES} == {f"V{number}" for number in range(1, 14)}
    assert len(FORGERIES) >= 40


@pytest.mark.parametrize(
    ("forge", "rule"),
    [
        (_field("results.json", "full-length run, not submitted to MLPerf", "label"), "V12"),
        (_field("results.json", 1.0, "scenarios", 2, "performance", "metric", "value"), "V13"),
        (_field("results.json", False, "scenarios", 2, "accuracy", "valid"), "V13"),
        (_field("results.json", "digits/Other", "scenarios", 2, "performance", "folder"), "V13"),
        (_field("results.json", 100.0, "scenarios", 2, "accuracy", "metrics", 0, "value"), "V13"),
        (lambda files: files.pop("results.json"), "V13"),
        (lambda files: files.pop(f"{OFFLINE}/{RESULT}"), "V13"),
        (lambda files: files.pop(f"{OFFLINE}/{SUMMARY}"), "V13"),
    ],
)
def test_an_edit_of_the_call_is_found(forge: Callable[[Files], None], rule: str) -> None:
    files = {name: content for name, content in recorded().items() if OFFLINE in name or ACCURACY in name}
    files = {"results.json": recorded()["results.json"], **files}
    row = json.loads(files["results.json"])
    row["scenarios"] = [one if one["scenario"] == "Offline" else {} for one in row["scenarios"]]
    files["results.json"] = json.dumps(row).encode()
    assert _problems(files) == ()
    forge(files)
    found = _problems(files)
    assert rule in {one.rule.partition(" ")[0] for one in found}, found


@pytest.mark.parametrize("metrics", [[{}], [{"name": "acc", "value": 99.332}], [{"value": {}}], [None], 7, "x", [[]]])
def test_scores_of_any_shape_are_kept_or_refused(metrics: object) -> None:
    files = {name: content for name, content in recorded().items() if name.endswith("results.json") or ACCURACY in name}
    files |= {name: content for name, content in recorded().items() if name.startswith(f"{OFFLINE}/")}
    row, score = json.loads(files["results.json"]), f"{ACCURACY}/accuracy.json"
    row["scenarios"] = [one for one in row["scenarios"] if one["scenario"] == "Offline"]
    row["scenarios"][0]["accuracy"]["metrics"] = metrics
    files["results.json"] = json.dumps(row).encode()
    files[score] = json.dumps(json.loads(files[score]) | {"metrics": metrics}).encode()
    assert {one.file for one in _problems(files)} <= {score}


@pytest.mark.parametrize("value", [7, -1.5, True, "x", [1], {"a": 1}, None])
@pytest.mark.parametrize("place", [("text",), ("text", "problems"), ("machine", "gpus"), ("run", "gpus"), ("find",)])
def test_a_result_of_any_shape_is_kept_or_refused(place: tuple[str, ...], value: object) -> None:
    files = {name: content for name, content in recorded().items() if name == "results.json" or OFFLINE in name}
    row = json.loads(files["results.json"])
    row["scenarios"] = [{**one, "accuracy": None} for one in row["scenarios"] if one["scenario"] == "Offline"]
    result = json.loads(files[f"{OFFLINE}/{RESULT}"])
    result["run"]["device"]["value"] = "cuda"
    (result if len(place) == 1 else result.setdefault(place[0], {}))[place[-1]] = value
    files["results.json"], files[f"{OFFLINE}/{RESULT}"] = json.dumps(row).encode(), json.dumps(result).encode()
    assert {one.file for one in _problems(files)} <= {f"{OFFLINE}/{RESULT}"}


def test_a_log_scaled_as_a_whole_is_accepted_and_therefore_never_called_verified() -> None:
    files = _run(OFFLINE)
    del files[RECORD]
    result = json.loads(files[RESULT])
    detail, summary = files[DETAIL].decode(), files[SUMMARY].decode()
    for key, value in result["latency"].items():
        result["latency"][key] = value // 2
        detail, summary = detail.replace(str(value), str(value // 2)), summary.replace(str(value), str(value // 2))
    detail, summary = detail.replace("179951", "359902"), summary.replace("179951", "359902")
    ended = re.search(r'"power_end", "value": "([^"]+)"', detail)
    begun = re.search(r'"power_begin", "value": "([^"]+)"', detail)
    assert ended and begun
    form = "%m-%d-%Y %H:%M:%S.%f"
    window = datetime.strptime(ended[1], form) - datetime.strptime(begun[1], form)
    end = datetime.strptime(begun[1], form) + timedelta(milliseconds=window / timedelta(milliseconds=2))
    detail = detail.replace(ended[1], end.strftime(form)[:-3])
    result["metric"]["value"] = 359902.0
    result["duration_s"] = float(f"{(end - datetime.strptime(begun[1], form)).total_seconds():.3f}")
    files |= {DETAIL: detail.encode(), SUMMARY: summary.encode(), RESULT: json.dumps(result).encode()}
    assert _of_run(files, OFFLINE) == ()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b":::MLLOG " + b"[" * 100_000, b":::MLLOG {}\n", b"x" * 100_000])
def test_no_log_ends_the_check(content: bytes) -> None:
    assert _of_run({**_run(OFFLINE), DETAIL: content}, OFFLINE)


def test_the_results_of_a_bundle_are_those_of_its_logs_and_labelled() -> None:
    bundle = _read(recorded())
    found = {result.configuration.scenario: result for result in results_of_bundle(bundle)}
    assert {name: (one.value, one.unit) for name, one in found.items()} == {
        "SingleStream": (0.028144, "ms"),
        "MultiStream": (0.119264, "ms"),
        "Offline": (179951.0, "samples/s"),
        "Server": (1855.57, "queries/s"),
    }
    one = found["Offline"]
    assert (one.kind, one.verification, one.labels) == (
        "crowd",
        "logs consistent",
        ("unofficial", "test run", "origin not recorded"),
    )
    assert (one.configuration.benchmark, one.configuration.device, one.valid) == ("digits", "cpu", True)
    assert [(score.name, score.value, score.basis) for score in one.accuracy] == [("acc", 99.332, "claimed")]
    names = [file.name for file in one.files]
    assert f"{OFFLINE}/{DETAIL}" in names and "results.json" in names and f"{SERVER}/{DETAIL}" not in names


@pytest.mark.parametrize(
    ("folder", "message"),
    [("digits/Offline/other", "not the folder of a run"), ("digits/X/accuracy", "not the folder")],
)
def test_runs_elsewhere_are_refused(folder: str, message: str) -> None:
    files = {f"{folder}/{name}": content for name, content in _run(ACCURACY).items() if name != RECORD}
    call = json.dumps({"scenarios": []}).encode()
    with pytest.raises(BundleRefused, match=message):
        results_of_bundle(_read({"results.json": call, **files}))


def test_a_bundle_without_a_figure_is_refused() -> None:
    files = {f"{ACCURACY}/{name}": content for name, content in _run(ACCURACY).items() if name != RECORD}
    label = json.loads(files[f"{ACCURACY}/{RESULT}"])["label"]
    call = json.dumps({"scenarios": [], "label": label}).encode()
    with pytest.raises(BundleRefused, match="no performance run"):
        results_of_bundle(_read({"results.json": call, **files}))


def _places(value: object, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place] if place else []
    for name, one in inner:
        found += _places(one, (*place, name))
    return found


ODD: tuple[object, ...] = (None, True, -1, 1e308, 10**400, "", "x\x00<b>", [], {}, [[]], [5], {"a": []}, "9" * 400)


def _refused_or_read(files: Files) -> None:
    with contextlib.suppress(BundleRefused):
        results_of_bundle(_read(files))


def test_no_odd_value_ends_a_check_with_anything_but_a_refusal() -> None:
    chance = random.Random(20261123)
    kept = {
        name: content for name, content in recorded().items() if OFFLINE in name or ACCURACY in name or "/" not in name
    }
    call = json.loads(kept["results.json"])
    call["scenarios"] = [row for row in call["scenarios"] if row["scenario"] == "Offline"]
    kept["results.json"] = json.dumps(call).encode()
    assert results_of_bundle(_read(kept))
    for name in [name for name in kept if name.endswith(".json")]:
        content = json.loads(kept[name])
        places = [place for place in _places(content) if "lock" not in place and "recipes" not in place]
        for place in chance.sample(places, min(12, len(places))):
            files = dict(kept)
            _field(name, chance.choice([odd for odd in ODD if odd != content]), *place, is_same_allowed=True)(files)
            _refused_or_read(files)


def test_no_odd_line_of_a_log_ends_a_check_with_anything_but_a_refusal() -> None:
    chance = random.Random(20261123)
    kept = {name: content for name, content in recorded().items() if SERVER in name}
    kept["results.json"] = json.dumps({"scenarios": [], "label": "test run, not a valid MLPerf result"}).encode()
    for name in (f"{SERVER}/{DETAIL}", f"{SERVER}/{SUMMARY}"):
        lines = kept[name].decode().split("\n")
        for _ in range(300):
            number = chance.randrange(len(lines))
            odd = json.dumps(chance.choice(ODD))
            line = re.sub(
                r"(: )[^,{}]+", lambda match, odd=odd: match[1] + odd, lines[number], count=chance.choice((1, 2))
            )
            changed = [*lines[:number], chance.choice((line, line[::-1], "", line * 2)), *lines[number + 1 :]]
            _refused_or_read({**kept, name: "\n".join(changed).encode()})


PUBLISHED = {"model": "published", "dataset": "given", "sample_count": 50_000, "benchmark_sample_count": 50_000}
OWN_LABEL = "own model (not the published file)"


@pytest.mark.parametrize(
    ("said", "label", "expected"),
    [
        ({"model": "own"}, "", "a label with"),
        ({"model": "unchecked"}, OWN_LABEL, "a label with"),
        ({"benchmark_sample_count": 60_000}, "1,797 of 60,000 samples", ""),
        ({"model": "own", "benchmark_sample_count": None}, OWN_LABEL, ""),
        ({"sample_count": -1}, "", "as crowdperf writes them"),
        ({"model": "made"}, "", "not made"),
    ],
)
def test_where_weights_came_from_fits_the_label(said: dict[str, object], label: str, expected: str) -> None:
    files = _run(OFFLINE)
    content = json.loads(files[RESULT])
    whole = {**PUBLISHED, "sample_count": 1_797, "benchmark_sample_count": 1_797, **said}
    content["provenance"], content["label"] = whole, "; ".join(filter(None, (content["label"], label)))
    content["is_synthetic"] = {"model": False, "dataset": False, "backend": False}
    files[RESULT] = json.dumps(content).encode()
    found = [one.expected for one in _of_run(files, OFFLINE) if one.rule == "V12"]
    assert (expected in found[0]) if expected else found == []


@pytest.mark.parametrize(
    ("said", "benchmark", "labels"),
    [
        ({"model": "own"}, "own model (digits harness)", {"own model"}),
        ({"dataset": "own"}, "own data (digits harness)", {"own data"}),
        ({"sample_count": 50}, "50 of 50,000 samples (digits harness)", {"50 of 50,000 samples"}),
        ({"model": "unchecked"}, "digits", {"weights not checked"}),
        ({"model": "server"}, "digits", {"weights of a server"}),
        ({}, "digits", set()),
        (None, "digits", {"origin not recorded"}),
    ],
)
def test_no_own_model_stands_under_the_benchmarks_name(
    said: dict[str, object] | None, benchmark: str, labels: set[str]
) -> None:
    place = facts.RunPlace(benchmark="digits", scenario="Offline", run_class="valid")
    result = {"versions": {}} if said is None else {"provenance": {**PUBLISHED, **said}}
    documents = facts.Documents(result=result)
    configuration = facts.configuration_of(place, documents)
    found, rest = facts.labels_of("", configuration, documents)
    assert (configuration.benchmark, set(found) - {"unofficial"}, rest) == (benchmark, labels, "")


def test_a_missed_accuracy_is_a_label() -> None:
    files, path = recorded(), f"{ACCURACY}/accuracy.json"
    score, call = json.loads(files[path]), json.loads(files["results.json"])
    score["metrics"][0] |= {"target": 99.9, "passed": False}
    score["passed"] = False
    for row in call["scenarios"]:
        if row["scenario"] == "Offline":
            row["accuracy"]["metrics"] = score["metrics"]
    changed = {**files, path: json.dumps(score).encode(), "results.json": json.dumps(call).encode()}
    found = {one.configuration.scenario: one.labels for one in results_of_bundle(_read(changed))}
    assert "accuracy below target" in found["Offline"] and "accuracy below target" not in found["Server"]
