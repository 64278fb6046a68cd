"""crowdperf.harness.runner.config and crowdperf.harness.runner.user_conf: what a request may hold, and that every
problem of it is told at once."""

import json
from pathlib import Path

import pytest
from harness_support import request

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.user_conf import effective, parse, render, require_rules
from crowdperf.rules.compliance import TESTS as COMPLIANCE_TESTS
from crowdperf.rules.names import ExecutionMode, Mode, Scenario

KNOWN = KnownNames(models=("digits",), backends=("null", "onnxruntime"))


def read(content: object):
    return parse_run_config(json.dumps(content), "run.json", KNOWN)


def test_a_whole_request_becomes_typed_values() -> None:
    config = read(request(scenario="server", target_qps=100, min_duration_ms=200, user_conf="my.conf"))
    assert (config.scenario, config.mode, config.execution_mode) == (
        Scenario.SERVER, Mode.PERFORMANCE, ExecutionMode.TEST
    )  # fmt: skip
    assert (config.target_qps, config.min_duration_ms, config.user_conf) == (100.0, 200, Path("my.conf"))
    assert config.batch_size is None


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("format", 2, "3"),
        ("format", True, "3"),
        ("compliance_test", "TEST02", f"{', '.join(COMPLIANCE_TESTS)}, or null"),
        ("find", None, "true or false"),
        ("model", "resnet", "digits"),
        ("backend", "cuda", "null, onnxruntime"),
        ("device", "", "the name of a device"),
        ("scenario", "Batch", "SingleStream, MultiStream, Offline, Server, Interactive"),
        ("mode", "speed", "performance, accuracy"),
        ("execution_mode", "quick", "test, fast, valid"),
        ("dataset_path", None, "a path"),
        ("model_path", 7, "a path, or null"),
        ("batch_size", 0, "a whole number from 1, or null"),
        ("instances", 0, "a whole number from 1, or null"),
        ("precision", "fp8", "fp32, tf32, fp16, bf16, int8, int4"),
        ("gpus", [], "a list of GPU numbers, none twice, or null"),
        ("gpus", [0, 0], "a list of GPU numbers, none twice, or null"),
        ("gpus", [-1], "a list of GPU numbers, none twice, or null"),
        ("gpus", [0], "null: device cpu has none"),
        ("batch_timeout_us", 100, "null: only Server batches wait to fill"),
        ("target_qps", -1, "a number above 0, or null"),
        ("target_latency_ms", 5, "null: Offline has no latency target"),
        ("min_query_count", -3, "a whole number from 1, or null"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_found_and_what_is_allowed(key: str, value: object, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(request(**{key: value}))
    (problem,) = caught.value.problems
    assert (problem.key, problem.allowed) == (key, allowed)
    assert problem.found in (json.dumps(value), str(float(value)) if isinstance(value, int) else "")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("changes", "key", "allowed"),
    [
        ({"mode": "accuracy", "compliance_test": "TEST01"}, "compliance_test", "it is a run in performance mode"),
        ({"output_dir": "/lat\udce9"}, "output_dir", "a path that is valid UTF-8"),
        ({"mode": "accuracy", "find": True}, "find", "targets are looked for in performance mode"),
        ({"find": True, "compliance_test": "TEST01"}, "find", "a compliance test has the targets of the run"),
    ],
)
def test_a_run_has_one_purpose(changes: dict[str, object], key: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(request(**changes))
    (problem,) = caught.value.problems
    assert problem.key == key and allowed in problem.allowed


def test_a_rate_for_a_stream_scenario_is_refused() -> None:
    with pytest.raises(ConfigError, match="SingleStream has no target rate"):
        read(request(scenario="SingleStream", target_qps=10))


def test_all_problems_are_told_at_once() -> None:
    content = request(backend="x", mode="y", threads=-1)
    del content["device"]
    content["colour"] = "blue"
    with pytest.raises(ConfigError) as caught:
        read(content)
    assert [problem.key for problem in caught.value.problems] == ["backend", "device", "mode", "threads", "colour"]
    assert "5 problems" in str(caught.value)


_NO_OBJECTS = {"empty": "", "cut off": "{", "list": "[]", "number": "7", "deep": "[" * 100_000}


@pytest.mark.parametrize("text", _NO_OBJECTS.values(), ids=_NO_OBJECTS)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="one JSON object"):
        parse_run_config(text, "run.json", KNOWN)


def test_a_number_beyond_every_float_is_refused() -> None:
    with pytest.raises(ConfigError, match="target_qps"):
        read(request(target_qps=10**400))


def test_a_user_conf_is_read_with_loadgens_precedence() -> None:
    lines = parse(
        "# mine\n*.*.min_duration = 1000\n*.Offline.target_qps = 5  # slow\ndigits.*.target_qps = 6\n"
        "digits.Offline.target_qps = 7\nother.Offline.target_qps = 8\n*.Server.target_qps = 9\n",
        "my.conf",
    )
    assert (lines[0].row.key, lines[0].value, lines[0].row.number) == ("min_duration", 1000.0, 2)
    assert effective(lines, "digits", Scenario.OFFLINE) == {"min_duration": 1000.0, "target_qps": 7.0}
    assert effective(lines, "unknown", Scenario.OFFLINE) == {"min_duration": 1000.0, "target_qps": 5.0}
    assert effective(lines, "digits", Scenario.SERVER) == {"min_duration": 1000.0, "target_qps": 9.0}


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("*.Offline.target_qps=5", "spaces around ="),  # LoadGen drops such a line without a word
        ("Offline.target_qps = 5", "model.scenario.key"),
        ("*.Batch.target_qps = 5", "Offline"),
        ("*.Offline.target_qqs = 5", "target_qps"),
        ("*.Offline.qsl_rng_seed = 5", "target_qps"),
        ("*.Offline.target_qps = fast", "a number"),
        ("*.Offline.target_qps = nan", "a number"),
        ("*.Server.target_latency_percentile = 0.5", "99 for p99"),  # LoadGen would take 0.5 %
    ],
)
def test_a_line_that_loadgen_would_ignore_is_refused(line: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"\n{line}\n", "my.conf")
    assert caught.value.problems[0].key.startswith("line 2")
    assert allowed in caught.value.problems[0].allowed


def test_what_is_written_can_be_read_again() -> None:
    values = {"target_qps": 0.125, "min_duration": 600000.0}
    assert effective(parse(render("m", Scenario.SERVER, values), "x"), "m", Scenario.SERVER) == values


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("coalesce_queries", "one sample"),
        ("performance_issue_same", "--compliance_test"),
        ("schedule_rng_seed", "round"),
        ("samples_per_query", "rules"),
    ],
)
def test_what_no_run_may_change_is_refused_with_the_reason(key: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"*.Server.{key} = 1\n", "my.conf")
    assert key in caught.value.problems[0].found
    assert reason in caught.value.problems[0].found


def test_a_run_of_the_full_rules_takes_no_line_that_changes_what_is_measured() -> None:
    text = "*.*.min_duration = 700000\n*.Server.max_async_queries = 9\n*.Server.target_latency_percentile = 50\n"
    lines = parse(text, "my.conf")
    assert effective(lines, "m", Scenario.SERVER)["max_async_queries"] == 9
    with pytest.raises(ConfigError) as caught:
        require_rules(lines, "my.conf")
    assert [problem.key for problem in caught.value.problems] == ["line 2, key", "line 3, key"]
    assert "max_async_queries" in caught.value.problems[0].found
    assert "min_duration" in caught.value.problems[0].allowed
    assert "test or fast" in caught.value.hint
    require_rules(lines[:1], "my.conf")


def test_keys_that_loadgen_does_not_read_in_a_scenario_are_left_out() -> None:
    lines = parse("*.*.max_async_queries = 1\n*.*.target_latency_percentile = 90\n", "my.conf")
    assert effective(lines, "m", Scenario.OFFLINE) == {}
    assert effective(lines, "m", Scenario.MULTI_STREAM) == {"target_latency_percentile": 90.0}


def test_whole_numbers_are_written_without_a_point() -> None:
    assert "m.Server.max_query_count = 900\n" in render("m", Scenario.SERVER, {"max_query_count": 900.0})


TEXT = {"endpoint": None, "max_in_flight": 8, "kv_cache_bytes": None, "timeout_s": 2, "server": None}
ENDPOINT = {"url": "http://127.0.0.1:8000/v1", "model": None, "api": "chat", "key_variable": None}


def test_the_settings_of_an_engine_that_answers_prompts_are_read() -> None:
    assert read(request()).text is None
    assert (read(request()).silence_s, read({**request(), "silence_s": 5}).silence_s) == (None, 5.0)
    config = read({**request(), "text": {**TEXT, "endpoint": ENDPOINT}})
    assert config.text is not None
    assert (config.text.max_in_flight, config.text.timeout_s) == (8, 2.0)
    assert (config.text.endpoint.url, config.text.endpoint.api) == ("http://127.0.0.1:8000/v1", "chat")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "text: found null; allowed: an object"),
        ({**TEXT, "max_in_flight": 0}, "text.max_in_flight: found 0; allowed: a whole number from 1, or null"),
        ({**TEXT, "timeout_s": -1}, "text.timeout_s: found -1; allowed: a number above 0, or null"),
        ({**TEXT, "batch": 1}, "text.batch: found 1; allowed: no such key"),
        ({**TEXT, "endpoint": 5}, "text.endpoint: found 5; allowed: an object, or null"),
        ({**TEXT, "endpoint": {**ENDPOINT, "url": "server:1"}}, 'text.endpoint.url: found "server:1"; allowed: a URL'),
        ({**TEXT, "endpoint": {**ENDPOINT, "url": "ftp://me:pass@server"}}, 'found "ftp://********@server"'),
        ({**TEXT, "endpoint": {**ENDPOINT, "api": "v2"}}, 'text.endpoint.api: found "v2"; allowed: completions, chat'),
    ],
)
def test_a_wrong_setting_of_an_engine_is_named_once(text: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({**request(), "text": text})
    assert problem in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"silence_s": 0}, "silence_s: found 0; allowed: a number above 0, or null"),
        ({"silence_s": 5, "text": TEXT}, "silence_s: found 5.0; allowed: null: text.timeout_s"),
    ],
)
def test_a_wrong_time_of_silence_is_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read({**request(), **changes})
    assert problem in str(caught.value)


def test_no_target_of_an_engine_is_looked_for() -> None:
    with pytest.raises(ConfigError, match="find: found true; allowed: false: targets of engines"):
        read({**request(find=True), "text": TEXT})
