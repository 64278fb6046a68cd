"""crowdperf.harness.runner.text_settings and warmup: LoadGen's settings for answers that are texts, and what they are
measured from."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_support import request
from test_text_sut import answer, sut_of

from crowdperf.harness.base.errors import ConfigError, HarnessError
from crowdperf.harness.runner import loadgen_run
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.harness.runner.settings import Circumstances, Origin, Setting, Shape, WarmUp, resolve
from crowdperf.harness.runner.text_settings import LATENCY_MARGIN, resolve_text
from crowdperf.harness.runner.text_warmup import Plan, warm_up
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.record import Generation, OwnModel, Recipes, Record, Sampling, Span, TokenLimits

GENERATION = Generation(sampling=Sampling(max_tokens=8), longest_prompt=16, server=TokenLimits(ttft_ms=50, tpot_ms=20))
MEASURED = WarmUp(query_latency_ms=100.0, samples_per_second=40.0)


def record(*spans: Span) -> Record:
    return Record(
        name="digits", title="t", loadgen_name="digits", dataset="digits", dataset_count=20,
        performance_sample_count=30, offline_min_sample_count=20, server_target_latency_ms=1000.0, batch_size=1,
        largest_batch_size=1, references=(), recipes=Recipes(dataset="d", model="m"), spans=spans,
        generation=GENERATION,
    )  # fmt: skip


OWN = replace(record(), recipes=Recipes(dataset="d", model="m", own=OwnModel(inputs=(), needs="--x=1")))
KNOWN = KnownNames(models=("digits",), backends=("null",))


def settings(
    rules: Record | None = None, generation: Generation = GENERATION, measured: WarmUp = MEASURED, **changes: object
):
    left = dict.fromkeys(("endpoint", "client_processes", "timeout_s", "server", "kv_cache_bytes"))
    text = {**left, "max_in_flight": changes.pop("max_in_flight", None)}
    config = parse_run_config(json.dumps({**request(**changes), "text": text}), "run.json", KNOWN)
    circumstances = Circumstances(rules=rules or record(), user_lines={}, dataset_count=20)
    return resolve_text(config, generation, 2, circumstances, measured)


def test_a_benchmark_that_loadgen_does_not_know_gets_its_limits_in_user_conf() -> None:
    values = settings(scenario="Server").conf_values
    assert {key: values[key] for key in ("use_token_latencies", "ttft_latency", "tpot_latency", "target_latency")} == {
        "use_token_latencies": 1, "ttft_latency": 50, "tpot_latency": 20, "target_latency": 0
    }  # fmt: skip
    assert values["target_qps"] == 40.0 * 0.4
    assert "ttft_latency" not in settings(scenario="Offline").conf_values


def test_a_benchmark_of_mlperf_has_them_in_loadgen() -> None:
    official = record(Span("v6.1", "v6.1", (), ()))
    values = settings(official, scenario="Server").conf_values
    assert not {"use_token_latencies", "ttft_latency", "tpot_latency", "target_latency"} & set(values)


def test_a_benchmark_without_token_latencies_keeps_the_limit_of_whole_answers() -> None:
    values = settings(
        generation=Generation(sampling=Sampling(max_tokens=8), longest_prompt=16, has_token_latencies=False),
        scenario="Server",
    ).conf_values
    assert values["target_latency"] == 1000.0
    assert "use_token_latencies" not in values


@pytest.mark.parametrize(
    ("is_own", "changes", "queries"),
    [
        (True, {"max_in_flight": 64}, 128),
        (True, {"max_in_flight": 64, "execution_mode": "fast"}, 128),
        (True, {"max_in_flight": 64, "min_query_count": 5}, 5),
        (True, {"max_in_flight": 64, "scenario": "SingleStream", "min_query_count": 5}, 5),
        (True, {}, 5),
        (True, {"max_in_flight": 1, "execution_mode": "fast"}, 5),
        (True, {"execution_mode": "valid"}, 20),
        (False, {"max_in_flight": 64}, 1),
    ],
)
def test_a_given_number_in_flight_is_reached(is_own: bool, changes: dict[str, object], queries: int) -> None:
    rules = OWN if is_own else record()
    assert settings(rules, **{"scenario": "Offline", **changes}).min_query_count.value == queries


@pytest.mark.parametrize(("seconds", "samples"), [(0.01, 5), (7, 5), (60, 5), (100, 3), (1000, 1)])
def test_a_short_run_of_a_slow_own_model_has_several_answers(seconds: float, samples: int) -> None:
    measured = WarmUp(query_latency_ms=None, samples_per_second=1 / seconds)
    assert settings(OWN, scenario="Offline", measured=measured).min_query_count.value == samples


def test_batches_of_an_own_model_are_filled_twice() -> None:
    config = parse_run_config(json.dumps(request(scenario="Offline")), "run.json", KNOWN)
    circumstances = Circumstances(rules=OWN, user_lines={}, dataset_count=20)
    shape = Shape(
        batch_size=Setting(8, Origin.USER), instances=Setting(2, Origin.USER), threads=Setting(1, Origin.USER),
        is_spinning=False, wait_s=0.0,
    )  # fmt: skip
    measured = WarmUp(query_latency_ms=None, samples_per_second=1.0)
    assert resolve(config, shape, circumstances, measured).min_query_count.value == 32


def test_the_performance_set_is_never_larger_than_the_data_set() -> None:
    assert settings().performance_sample_count.value == 20


def test_the_expected_latency_of_a_long_stream_leaves_a_margin() -> None:
    short, long = settings(scenario="SingleStream"), settings(scenario="SingleStream", execution_mode="fast")
    assert short.target_latency_ms.value == pytest.approx(100, rel=0.01)
    assert long.target_latency_ms.value == pytest.approx(100 * LATENCY_MARGIN, rel=0.01)
    assert short.target_latency_ms.origin is Origin.ESTIMATE


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch_size": 4}, "batch_size: found 4; allowed: null"),
        ({"instances": 2}, "instances: found 2; allowed: null"),
        ({"scenario": "Server", "target_latency_ms": 5}, "target_latency_ms: found 5; allowed: null"),
        ({"preprocessed_path": "x"}, "preprocessed_path: found x; allowed: null"),
    ],
)
def test_what_a_run_of_texts_cannot_have_is_refused(changes: dict, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(**changes)
    assert words in str(caught.value)


# --- the warm-up ---


def plan(**changes: object) -> Plan:
    return Plan(**{"needs_rate": True, "budget_s": 60.0, "most": 8, "limit_s": 1.0, **changes})


def instantly(engine, request) -> None:
    engine.listener.done(request.number, answer(1, 2))


def test_waves_grow_until_they_are_as_large_as_what_the_engine_works_on_at_once() -> None:
    made = sut_of(instantly)
    measured = warm_up(made.work, plan(most=1))
    assert measured.samples_per_second == pytest.approx(1000.0 / measured.query_latency_ms)
    assert len(made.engine.requests) == 4
    assert made.work.tally.issued == 0
    assert made.told == []


def test_no_rate_is_measured_where_none_is_needed_and_a_slow_engine_is_asked_once() -> None:
    made = sut_of(instantly)
    assert warm_up(made.work, plan(needs_rate=False)).samples_per_second is None
    made = sut_of(instantly)
    warm_up(made.work, plan(budget_s=0.0))
    assert len(made.engine.requests) == 1


def test_an_engine_that_cannot_answer_is_told_before_the_test() -> None:
    made = sut_of(lambda engine, request: engine.listener.failed(request.number, "HTTP 404"))
    for settings, hint in (({}, ""), ({"endpoint": {}}, "check the server's log")):
        made.engine.settings = settings
        with pytest.raises(HarnessError, match="could not answer 1 prompt before the test: HTTP 404") as caught:
            warm_up(made.work, plan())
        assert caught.value.hint.partition(".")[0] == hint
    made = sut_of(lambda engine, request: None)
    with pytest.raises(HarnessError, match=r"answered 0 of 1 prompts before the test in 0\.05 s"):
        warm_up(made.work, plan(limit_s=0.05))
    made = sut_of(lambda engine, request: engine.listener.broken(HarnessError("it died", "ask it")))
    with pytest.raises(HarnessError, match="failed before the test: it died") as caught:
        warm_up(made.work, plan())
    assert caught.value.hint == "ask it"


@pytest.mark.parametrize(
    ("scenario", "mode", "latency_ms", "rate", "queries", "origin", "said"),
    [
        ("SingleStream", "performance", 2100.0, None, 100, "RULE", "100 queries, one every 2.1 s, need about 4 min"),
        (
            "SingleStream",
            "performance",
            5000.0,
            None,
            60,
            "ESTIMATE",
            "60 of the 100 queries that early stopping needs",
        ),
        ("SingleStream", "performance", 1.0, None, 100, "RULE", ""),
        ("SingleStream", "performance", 5000.0, None, 2, "USER", ""),
        ("SingleStream", "accuracy", 5000.0, None, 100, "RULE", ""),
        ("Server", "performance", None, 3.0, 662, "DEFAULT", "662 queries, one every 0.33 s, need about 4 min"),
        ("Offline", "performance", None, 0.1, 100, "RULE", ""),
    ],
)
def test_a_run_whose_queries_take_long_says_so_before_it_begins(
    scenario, mode, latency_ms, rate, queries, origin, said
):
    def setting(value):
        return None if value is None else Setting(value, Origin.ESTIMATE)

    config = SimpleNamespace(mode=Mode(mode), scenario=Scenario(scenario), model="llama3.1-8b")
    settings = SimpleNamespace(
        target_qps=setting(rate), target_latency_ms=setting(latency_ms), min_duration_ms=setting(2000),
        min_query_count=Setting(queries, Origin[origin]),
    )  # fmt: skip
    note = loadgen_run._length_note(config, settings)
    assert (said in note) if said else note == ""
