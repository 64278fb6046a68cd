"""generate-mlperf-inference-user-conf: where each setting comes from, and how long runs take."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from recipe_loader import input_values, load_module, load_recipe, recipe_meta

from crowdperf.harness.runner import user_conf
from crowdperf.rules.names import ExecutionMode, Mode, Scenario

recipe = load_recipe("generate-mlperf-inference-user-conf")
inputs = load_module("generate-mlperf-inference-user-conf", "inputs")
conf_plan = load_module("generate-mlperf-inference-user-conf", "conf_plan")


META = recipe_meta("generate-mlperf-inference-user-conf")


def planned(scenario: str, recorded: dict[str, Any] | None = None, style: str = "valid", **wish: Any) -> Any:
    wanted = conf_plan.Overrides(**wish)
    return conf_plan.plan_scenario("resnet50", Scenario(scenario), ExecutionMode(style), wanted, recorded)


def test_your_values_come_before_what_was_found_and_that_before_the_rules():
    recorded = {"target_qps": 893.5, "measured": 812.3, "origin": "found 2026-11-21"}
    assert planned("Offline", recorded).lines == (
        "resnet50.Offline.min_duration = 600000  # rule of valid runs",
        "resnet50.Offline.min_query_count = 24576  # rule",
        "resnet50.Offline.performance_sample_count_override = 1024  # rule, of a smaller data set all samples",
        "resnet50.Offline.target_qps = 893.5  # found 2026-11-21",
    )
    mine = planned("Offline", recorded, target=5.0, min_duration_ms=9, min_query_count=7, performance_sample_count=3)
    assert [line.partition(" = ")[2] for line in mine.lines] == ["9  # you", "7  # you", "3  # you", "5  # you"]


def test_a_target_that_nobody_gives_is_left_to_the_harness():
    item = planned("SingleStream")
    assert item.target is None
    assert "the harness measures it" in item.notes[0]
    assert not any("target" in line for line in item.lines)


def test_server_has_the_latency_limit_of_the_rules():
    assert "resnet50.Server.target_latency = 15  # rule" in planned("Server").lines


@pytest.mark.parametrize(
    ("scenario", "recorded", "mode", "expected"),
    [
        ("SingleStream", {"target_latency": 1.0}, Mode.PERFORMANCE, (600.0, True)),
        ("SingleStream", {"target_latency": 10_000.0}, Mode.PERFORMANCE, (1000.0, True)),
        ("MultiStream", {"target_latency": 2000.0}, Mode.PERFORMANCE, (1324.0, True)),
        ("Offline", {"target_qps": 1100.0, "measured": 1000.0}, Mode.PERFORMANCE, (726.0, True)),
        ("Offline", {"target_qps": 1.0}, Mode.PERFORMANCE, (24576.0, True)),
        ("Server", {"target_qps": 0.5}, Mode.PERFORMANCE, (1324.0, True)),
        ("Offline", {"target_qps": 1000.0}, Mode.ACCURACY, (50.0, True)),
        ("SingleStream", {"target_latency": 2.0}, Mode.ACCURACY, (100.0, True)),
        ("MultiStream", {"target_latency": 8.0}, Mode.ACCURACY, (50.0, True)),
        ("Server", {"target_qps": 500.0}, Mode.ACCURACY, (100.0, True)),
        ("Offline", None, Mode.PERFORMANCE, (600.0, False)),
        ("Offline", None, Mode.ACCURACY, (0.0, False)),
    ],
)
def test_the_time_of_a_run_follows_from_speed_and_rules(scenario, recorded, mode, expected):
    seconds, is_known = conf_plan.expected_s(planned(scenario, recorded), mode)
    assert (pytest.approx(seconds), is_known) == expected


def test_a_target_of_yours_paces_a_server_run_and_not_its_accuracy_run():
    item = planned("Server", target=10.0)
    assert conf_plan.expected_s(item, Mode.PERFORMANCE) == (600.0, True)
    assert conf_plan.expected_s(item, Mode.ACCURACY) == (0.0, False)


@pytest.fixture
def call(tmp_path, hook_input):
    def run(recorded: dict[str, Any] | None = None, **env: str) -> tuple[dict, dict, dict]:
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump(recorded or {}))
        fixed = {"CM_TMP_CURRENT_PATH": str(tmp_path), "CM_SUT_CONFIG_FILE": str(config)}
        i = hook_input({**META["default_env"], **fixed, **env}, meta=META)
        return recipe.preprocess(i), i["env"], i["state"]

    return run


def test_the_file_has_every_scenario_and_is_told(call, tmp_path, capsys):
    recorded = {"resnet50": {"Offline": {"target_qps": 10.0, "origin": "found"}}, "bert-99": {}}
    answer, env, state = call(recorded, CM_MLPERF_MODEL="resnet50", CM_MLPERF_LOADGEN_SCENARIO="Offline,singlestream")
    assert answer == {"return": 0}
    text = Path(env["CM_MLPERF_USER_CONF"]).read_text()
    assert Path(env["CM_MLPERF_USER_CONF"]) == tmp_path / "user.conf"
    assert "resnet50.Offline.target_qps = 10  # found" in text
    assert "# SingleStream: no target_latency is recorded or given" in text
    rows = state["mlperf_user_conf"]["scenarios"]
    assert rows["Offline"]["target"] == {"key": "target_qps", "value": 10.0}
    assert (rows["Offline"]["is_recorded"], rows["SingleStream"]["is_recorded"]) == (True, False)
    told = capsys.readouterr().out
    assert "Offline performance: about 41 min" in told
    assert "SingleStream performance: at least 10 min" in told


def test_a_recorded_target_that_a_run_does_not_use_is_not_called_missing(call, capsys):
    recorded = {"resnet50": {"Offline": {"target_qps": 514.52, "origin": "found", "measured": 467.7}}}
    env = {"CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_LOADGEN_SCENARIO": "Offline,SingleStream"}
    _, _, state = call(recorded, **env, CM_TMP_MLPERF_RECORDED_UNUSED_IN="test runs")
    told = capsys.readouterr().out
    assert (
        "# Offline: a target_qps of 514.52 is recorded, and test runs do not use it, so the harness measures it" in told
    )
    assert "# SingleStream: no target_latency is recorded or given" in told
    row = state["mlperf_user_conf"]["scenarios"]["Offline"]
    assert (row["target"], row["is_recorded"]) == (None, False)


@pytest.mark.parametrize(
    ("name", "official"), [("ResNet50", "resnet50"), ("BERT", "bert-99"), ("3D-UNet-99.9", "3d-unet-99.9")]
)
def test_a_benchmark_goes_by_the_names_of_the_documents(name, official):
    values = input_values("generate-mlperf-inference-user-conf", {"CM_MLPERF_MODEL": name})
    assert inputs.read(values, "").model == official


def test_a_model_that_mlperf_does_not_know_is_told_to_be_one(call, capsys):
    call(CM_MLPERF_MODEL="resnet51", CM_MLPERF_LOADGEN_SCENARIO="Offline")
    assert "resnet51 is not an MLPerf benchmark (3d-unet-99, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resnet50: {Offline: {origin: found}}", "resnet50: Offline: target_qps: found None; allowed: a number"),
        ("resnet50: {Offline: {target_qps: many}}", "target_qps: found 'many'; allowed: a number above 0"),
        ("resnet50: {Offline: {target_qps: true}}", "target_qps: found True; allowed: a number above 0"),
        ("resnet50: {Offline: {target_qps: 1, measured: x}}", "measured: found 'x'; allowed: a number above 0"),
        ("resnet50: 3", "resnet50: found a YAML int; allowed: a mapping of scenarios"),
        ("- 1", "a YAML list, not a mapping"),
        ("[" * 5000, "not valid YAML (maximum recursion depth"),
        ("\xe9", "not UTF-8 text"),
    ],
)
def test_a_given_file_of_recorded_values_that_is_odd_is_refused(tmp_path, hook_input, text, words):
    config = tmp_path / "mine.yaml"
    config.write_bytes(text.encode("latin-1"))
    env = {"CM_MLPERF_MODEL": "resnet50", "CM_SUT_CONFIG_FILE": "mine.yaml", "CM_TMP_CURRENT_PATH": str(tmp_path)}
    for hook in (recipe.plan, recipe.preprocess):
        answer = hook(hook_input({**META["default_env"], **env}, meta=META))
        assert (answer["return"], words in answer["error"]) == (1, True)
        assert str(config) in answer["error"]
    assert not (tmp_path / "user.conf").exists()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "give the benchmark"),
        ({"CM_MLPERF_MODEL": "bert-99", "CM_MLPERF_LOADGEN_SCENARIO": "MultiStream"}, "bert-99 has no MultiStream"),
        ({"CM_MLPERF_MODEL": "bert-99", "CM_VERSION": "v3.1"}, "by the rules of v6.1, the newest round that has bert"),
    ],
)
def test_a_bad_call_is_refused_and_writes_nothing(call, tmp_path, env, words):
    answer, _, _ = call(**env)
    assert answer["return"] == 1
    assert words in answer["error"]
    assert not (tmp_path / "user.conf").exists()


def test_the_lines_are_ones_that_the_harness_reads(call):
    _, env, _ = call(CM_MLPERF_MODEL="bert-99", CM_MLPERF_LOADGEN_TARGET_QPS="3", CM_MLPERF_LOADGEN_TARGET_LATENCY="9")
    lines = user_conf.parse(Path(env["CM_MLPERF_USER_CONF"]).read_text(), "user.conf")
    assert user_conf.effective(lines, "bert", Scenario.OFFLINE)["target_qps"] == 3.0
