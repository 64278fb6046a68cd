"""crowdperf.harness.runner.settings: which value a run works with, and where it comes from."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_support import need, request

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.runner.components import check_backend
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.query_memory import expected_memory_bytes, require_memory
from crowdperf.harness.runner.settings import Circumstances, Origin, Setting, Settings, Shape, WarmUp, resolve
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import record_of

need("numpy")

PLACE = Circumstances(rules=record_of("digits"), user_lines={}, dataset_count=500)
SHAPE = Shape(
    batch_size=Setting(32, Origin.DEFAULT),
    instances=Setting(2, Origin.ESTIMATE),
    threads=Setting(1, Origin.ESTIMATE),
    is_spinning=False,
    wait_s=0.0,
)
WARM = WarmUp(query_latency_ms=0.09, samples_per_second=1000.0)
RULE, USER, ESTIMATE = Origin.RULE, Origin.USER, Origin.ESTIMATE
KNOWN = KnownNames(models=("digits",), backends=("null",))


def decide(place: Circumstances = PLACE, **changes: object) -> Settings:
    config = parse_run_config(json.dumps(request(**changes)), "run.json", KNOWN)
    return resolve(config, SHAPE, place, WARM)


@pytest.mark.parametrize(
    ("scenario", "mode", "duration_ms", "queries"),
    [
        ("SingleStream", "test", 2_000, 100),
        ("MultiStream", "fast", 60_000, 662),
        ("Server", "valid", 600_000, 662),
        ("Offline", "test", 2_000, 1),
        ("Offline", "fast", 60_000, 1),
        ("Offline", "valid", 600_000, 24_576),
    ],
)
def test_duration_and_counts_are_rules(scenario: str, mode: str, duration_ms: int, queries: int) -> None:
    settings = decide(scenario=scenario, execution_mode=mode)
    assert settings.min_duration_ms == Setting(duration_ms, RULE)
    origin = Origin.DEFAULT if scenario == "Server" else RULE  # the rule is 100 there
    assert settings.min_query_count == Setting(queries, origin)
    assert settings.performance_sample_count == Setting(500, RULE)


def test_what_nobody_gave_is_estimated_by_the_warm_up() -> None:
    assert decide(scenario="Offline").target_qps == Setting(2000.0, ESTIMATE)
    assert decide(scenario="Offline", execution_mode="fast").target_qps == Setting(1250.0, ESTIMATE)
    assert decide(scenario="Server").target_qps == Setting(500.0, ESTIMATE)  # 5 % of 1 / (0.09 + 0.01) ms
    assert decide(scenario="Server").target_latency_ms == Setting(200.0, RULE)
    assert decide(scenario="SingleStream").target_latency_ms == Setting(0.092, ESTIMATE)
    assert decide(scenario="MultiStream").target_latency_ms == Setting(0.094, ESTIMATE)


@pytest.mark.parametrize(
    ("fastest", "sustained", "mode", "rate"),
    [
        (10_000.0, 9_000.0, "test", 19_980.0),  # LoadGen needs 0.1 us a sample
        (4e6, None, "test", 5_714_000.0),
        (4e6, 3e6, "fast", 3_571_000.0),
        (10_000.0, 1_000.0, "test", 3_000.0),  # a core to itself for 50 ms, but a tenth of it over the whole warm-up
        (10_000.0, 1_000.0, "valid", 3_000.0),
        (5e6, 1e6, "test", 2_727_000.0),
    ],
)
def test_offline_requests_no_multiple_of_what_a_busy_machine_answers(fastest, sustained, mode, rate) -> None:
    config = parse_run_config(json.dumps(request(scenario="Offline", execution_mode=mode)), "run.json", KNOWN)
    warm = WarmUp(query_latency_ms=None, samples_per_second=fastest, sustained_samples_per_second=sustained)
    assert resolve(config, SHAPE, PLACE, warm).target_qps == Setting(rate, ESTIMATE)


def test_a_scenario_without_a_setting_has_none() -> None:
    assert decide(scenario="Offline").target_latency_ms is None
    assert decide(scenario="SingleStream").target_qps is None
    assert "target_qps" not in decide(scenario="SingleStream").conf_values


def test_run_json_beats_the_user_conf_which_beats_the_rules() -> None:
    place = replace(PLACE, user_lines={"target_qps": 7.0, "min_duration": 900.0, "max_duration": 5000.0})
    settings = decide(place, scenario="Server", min_duration_ms=100)
    assert settings.min_duration_ms == Setting(100, USER)
    assert settings.target_qps == Setting(7.0, USER)
    assert settings.conf_values["max_duration"] == 5000.0 and settings.user_lines == {"max_duration": 5000.0}
    assert settings.min_query_count.origin is Origin.DEFAULT


def test_an_accuracy_run_of_the_server_is_not_paced_by_a_low_rate() -> None:
    settings = decide(scenario="Server", mode="accuracy", target_qps=1)
    assert settings.target_qps == Setting(10000.0, ESTIMATE)


def test_no_more_samples_are_in_memory_than_the_data_set_has() -> None:
    place = replace(PLACE, rules=replace(record_of("digits"), performance_sample_count=1024))
    assert decide(place).performance_sample_count == Setting(500, RULE)


def test_a_slow_network_gets_a_larger_part_of_its_rate_in_the_server() -> None:
    config = parse_run_config(json.dumps(request(scenario="Server")), "run.json", KNOWN)
    slow = WarmUp(query_latency_ms=99.99, samples_per_second=10.0)
    assert resolve(config, SHAPE, PLACE, slow).target_qps == Setting(4.0, ESTIMATE)


@pytest.mark.parametrize(
    ("scenario", "mode", "latency_ms", "queries"),
    [
        ("SingleStream", "test", 60_000.0, Setting(5, ESTIMATE)),
        ("SingleStream", "test", 3_000.0, Setting(100, RULE)),
        ("SingleStream", "fast", 60_000.0, Setting(100, RULE)),
        ("MultiStream", "test", 600_000.0, Setting(1, ESTIMATE)),
        ("MultiStream", "test", 600.0, Setting(500, ESTIMATE)),
        ("Server", "test", 2_000.0, Setting(60, ESTIMATE)),  # 0.4 of 0.5/s
    ],
)
def test_a_test_run_of_a_slow_network_ends(scenario: str, mode: str, latency_ms: float, queries: Setting) -> None:
    config = parse_run_config(json.dumps(request(scenario=scenario, execution_mode=mode)), "run.json", KNOWN)
    slow = WarmUp(query_latency_ms=latency_ms, samples_per_second=None)
    assert resolve(config, SHAPE, PLACE, slow).min_query_count == queries


@pytest.mark.parametrize("count", [501, 10**9])
def test_more_performance_samples_than_there_are_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="1 to 500"):
        decide(performance_sample_count=count)


def test_a_run_whose_queries_do_not_fit_into_memory_is_refused_before_it_starts() -> None:
    settings = decide(scenario="Offline", execution_mode="valid", target_qps=150_000)
    needed = expected_memory_bytes(settings)
    assert needed == pytest.approx(1.1 * 600 * 150_000 * 400)
    require_memory(settings, needed)
    require_memory(settings, None)
    with pytest.raises(ConfigError, match=r"at most about 300000 ms") as caught:
        require_memory(settings, needed // 2)
    assert "threads 1" in caught.value.hint
    assert expected_memory_bytes(decide(mode="accuracy", execution_mode="valid")) == 0


def test_a_stream_generates_twice_what_its_expected_latency_asks_for() -> None:
    settings = decide(scenario="SingleStream", min_duration_ms=1000, target_latency_ms=1)
    assert expected_memory_bytes(settings) == 2000 * 475


@pytest.mark.parametrize(
    ("scenario", "test", "given", "rate", "origin"),
    [
        ("Server", "TEST01", 100.0, 96.0, Origin.COMPLIANCE),
        ("Server", "TEST04", 100.0, 97.0, Origin.COMPLIANCE),
        ("Server", "TEST05", 100.0, 100.0, USER),
        ("Server", None, 100.0, 100.0, USER),
        ("Offline", "TEST01", 100.0, 100.0, USER),
    ],
)
def test_a_server_compliance_test_is_sent_a_part_of_the_rate(scenario, test, given, rate, origin) -> None:
    settings = decide(scenario=scenario, compliance_test=test, target_qps=given)
    assert settings.target_qps == Setting(pytest.approx(rate), origin)


def test_what_a_compliance_test_sets_wins_over_all_others() -> None:
    place = replace(PLACE, audit_values={"min_duration": 0, "min_query_count": 100})
    settings = decide(place, scenario="Offline", execution_mode="valid", min_duration_ms=5000)
    assert settings.min_duration_ms == Setting(0, Origin.COMPLIANCE)
    assert settings.min_query_count == Setting(100, Origin.COMPLIANCE)


def of_resnet(**changes: float) -> Circumstances:
    return Circumstances(rules=record_of("resnet50"), user_lines=changes, dataset_count=50_000)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ({"target_latency": 16}, "at most 15"),
        ({"max_duration": 60_000}, "at least 600000"),
        ({"max_query_count": 100}, "at least 662"),
        ({"target_latency": 14.5}, "whole milliseconds"),
    ],
)
def test_a_run_of_the_full_rules_keeps_their_limits(lines: dict[str, float], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        decide(of_resnet(**lines), scenario="Server", execution_mode="valid")


def test_a_stricter_limit_and_a_later_end_are_allowed() -> None:
    place = of_resnet(target_latency=14, max_duration=660_000, max_query_count=0)
    settings = decide(place, scenario="Server", execution_mode="valid")
    assert settings.target_latency_ms == Setting(14, USER)
    assert settings.departures == ()


def test_what_departs_from_the_rules_is_kept_for_the_label() -> None:
    place = of_resnet(target_latency=20, max_async_queries=1)
    assert decide(place, scenario="Server").departures == ("max_async_queries", "target_latency")
    assert decide(of_resnet(), scenario="Server").departures == ()


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_backend_is_asked_for_nothing_that_its_record_lacks(name: str) -> None:
    """So no backend looks at device, precision and file again."""
    can = BACKENDS[name]
    asked = {
        "backend": name, "device": can.devices[0], "precision": can.precisions[0],
        "serving": {} if can.is_served else None, "text": {} if can.is_text else None,
    }  # fmt: skip
    for key, known in (("device", can.devices), ("precision", can.precisions_on(can.devices[0]))):
        with pytest.raises(ConfigError, match=f"{key}: found 'other'; allowed: {', '.join(known)} "):
            check_backend(SimpleNamespace(**{**asked, key: "other"}), can, ModelFacts())
    if can.framework is not None:
        with pytest.raises(ConfigError, match=f"a model file: backend {name} reads one"):
            check_backend(SimpleNamespace(**asked), can, ModelFacts())
