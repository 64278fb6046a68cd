"""crowdperf.harness.runner.effective: a setting that LoadGen did not take over ends the run. The logs are LoadGen's
own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from harness_support import need, request, run_harness
from test_harness_runs import Digits, digits  # noqa: F401 - a fixture

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.effective import require_same_settings
from crowdperf.harness.runner.settings import Circumstances, Origin, Setting, Settings, Shape, WarmUp, resolve
from crowdperf.harness.runner.user_conf import effective, parse
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, read_run_logs
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.compliance import audit_values
from crowdperf.rules.names import Scenario
from crowdperf.rules.record import ALL_SCENARIOS

need("mlperf_loadgen", "onnxruntime")

EVERY_LINE = """
*.*.max_duration = 90000
*.*.max_query_count = 2000000
*.*.sample_concatenate_permutation = 1
*.*.performance_sample_count_override = 100
*.Server.max_async_queries = 500000
*.*.target_latency_percentile = 80
*.Server.target_latency = 30
*.Server.target_qps = 1234.5678
*.MultiStream.target_latency = 0.0625
"""
SHAPE = Shape(
    batch_size=Setting(8, Origin.DEFAULT),
    instances=Setting(1, Origin.DEFAULT),
    threads=Setting(1, Origin.DEFAULT),
    is_spinning=False,
    wait_s=0.0,
)


def settings_of(result: dict, conf: str) -> Settings:
    """The settings of a run that has ended, from its result.json."""
    run = {key: value["value"] for key, value in result["run"].items() if isinstance(value, dict)}
    scenario = Scenario(run["scenario"])
    wanted = {key: run.get(key) for key in ("scenario", "mode", "target_qps", "target_latency_ms", "min_duration_ms")}
    config = parse_run_config(
        json.dumps(request(**wanted, min_query_count=run["min_query_count"])),
        "run.json",
        KnownNames(models=("digits",), backends=("null",)),
    )
    lines = effective(parse(conf, "my.conf"), "digits", scenario)
    place = Circumstances(rules=record_of("digits"), user_lines=lines, dataset_count=300)
    settings = resolve(config, SHAPE, place, WarmUp(query_latency_ms=1.0, samples_per_second=1000.0))
    rate = run.get("target_qps")  # of an accuracy run of Server: the warm-up's
    return settings if rate is None else replace(settings, target_qps=Setting(rate, Origin.USER))


@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize("scenario", [scenario.value for scenario in ALL_SCENARIOS])
def test_every_setting_is_found_again_and_every_change_is_noticed(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
    scenario: str,
    mode: str,
) -> None:
    (tmp_path / "my.conf").write_text(EVERY_LINE)
    changes = {"scenario": scenario, "mode": mode, "min_duration_ms": 50, "min_query_count": 130, "threads": 1}
    content = digits.request(tmp_path, backend="null", user_conf=str(tmp_path / "my.conf"), **changes)
    ended = run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    settings, logged = settings_of(ended.result, EVERY_LINE), dict(read_run_logs(RunPaths(ended.folder)).settings)
    require_same_settings(settings, None, logged)
    checked = {key for key, value in logged.items() if is_noticed(settings, logged, key, value)}
    expected = {
        "effective_scenario", "effective_test_mode", "effective_min_duration_ms", "effective_max_duration_ms",
        "requested_min_query_count", "effective_max_query_count", "effective_performance_sample_count",
        "effective_sample_concatenate_permutation", "effective_performance_issue_same",
        "effective_performance_issue_same_index", "effective_performance_issue_unique",
        "effective_accuracy_log_rng_seed", "effective_accuracy_log_probability",
        "effective_accuracy_log_sampling_target",
    }  # fmt: skip
    own = {
        "SingleStream": {"requested_single_stream_expected_latency_ns", "effective_target_latency_percentile"},
        "MultiStream": {"requested_multi_stream_expected_latency_ns", "effective_target_latency_percentile"},
        "Offline": {"effective_target_qps"},
        "Server": {"effective_target_qps", "effective_target_latency_ns", "effective_target_latency_percentile",
                   "effective_max_async_queries", "requested_server_coalesce_queries"},
    }  # fmt: skip
    assert expected | own[scenario] <= checked


def is_noticed(settings: Settings, logged: dict[str, Json], key: str, value: Json) -> bool:
    """Whether another value of `key` in the log is an error that names it."""
    other: Json = (not value) if isinstance(value, bool) else 7 if not isinstance(value, int | float) else value + 1001
    try:
        require_same_settings(settings, None, {**logged, key: other})
    except HarnessError as error:
        assert key in str(error) or key in ("effective_scenario", "effective_test_mode")
        return True
    return False


def test_what_a_compliance_test_sets_must_be_in_effect(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    changes = {"scenario": "Server", "min_duration_ms": 50, "min_query_count": 130, "threads": 1}
    ended = run_harness(tmp_path, digits.request(tmp_path, backend="null", **changes))
    settings, logged = settings_of(ended.result, ""), dict(read_run_logs(RunPaths(ended.folder)).settings)
    with pytest.raises(HarnessError, match="performance_issue_same 1 became False"):
        require_same_settings(settings, audit_values("TEST04", "digits", "6.0.17"), logged)
    with pytest.raises(HarnessError, match="accuracy_log_sampling_target 4096 became 0"):
        require_same_settings(settings, audit_values("TEST01", "digits", "6.0.17"), logged)
    require_same_settings(settings, None, logged)
    with pytest.raises(HarnessError, match=r"target_latency_percentile 99 became 0\.9 "):
        require_same_settings(settings, None, {**logged, "effective_target_latency_percentile": 0.9})


SABOTAGE = """
from crowdperf.harness.runner import loadgen, user_conf
loadgen.render = lambda *words: user_conf.render(*words).replace("target_qps = ", "target_qps=")
"""


def test_a_line_that_loadgen_ignores_ends_the_run(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    content = digits.request(tmp_path, backend="null", scenario="Offline", target_qps=777, min_duration_ms=50)
    ended = run_harness(tmp_path, content, first=SABOTAGE)
    assert ended.code == 1, ended.stderr
    assert "target_qps 777 became 1" in ended.stderr
    assert not (ended.folder / "result.json").exists()
