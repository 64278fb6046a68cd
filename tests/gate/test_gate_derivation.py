"""What follows from what in one run: the arithmetic by tables, and the rules that no log of the test data can meet."""

import dataclasses
import gc
from pathlib import Path
from types import SimpleNamespace

import pytest
from forgeries_of_chance import of_chance
from forgeries_of_models import of_models
from forgeries_of_results import results
from forgeries_of_runs import forgeries
from forgeries_of_vendors import of_vendors
from tree_builder import LOG_ROUND

from crowdperf.gate import rules_messages, rules_settings, rules_tokens, single_run, views
from crowdperf.gate.derivation import OUTPUT_TOKENS, Ranked, mean_bounds, ranked
from crowdperf.gate.documents import TextFile
from crowdperf.gate.listing import read_listing
from crowdperf.gate.log_view import LogView, log_view
from crowdperf.gate.rulebook import RULES, Scope, Severity
from crowdperf.gate.rules_verdict import tolerated
from crowdperf.gate.views import Options, RunView, TreeView
from crowdperf.logs.round_tables import load_round

NEEDED_FORGERIES = 35


@pytest.mark.parametrize(
    ("queries", "percentile", "wanted"),
    [
        (1265079, 0.9, 125723),  # open/SingleStream of the test data: would discard 125722
        (228487, 0.99, 2174),  # open/MultiStream: would discard 2173
        (29619, 0.9, 2841),  # closed/SingleStream: would discard 2840
        (43, 0.9, -1),
        (44, 0.9, 0),
        (63, 0.9, 0),
        (64, 0.9, 1),  # "Processed at least 64 queries" is LoadGen's least at 90 %
        (661, 0.99, 0),
        (662, 0.99, 1),  # and 662 at 99 %
        (0, 0.9, None),
        (10**12, 0.9, None),
        (100, 1.0, None),
    ],
)
def test_early_stopping_tolerates_what_loadgen_does(queries: int, percentile: float, wanted: int | None):
    assert tolerated(queries, percentile) == wanted


@pytest.mark.parametrize(
    ("known", "bounds"),
    [
        ([(0, 1.0), (9, 2.0)], (1.1, 1.9)),
        ([(0, 1.0), (0, 1.0)], (1.0, 1.0)),
        ([(0, 1.0), (1, 3.0)], (2.0, 2.0)),
        ([(0, 1.0), (2, 4.0), (4, 10.0)], (4.0, 5.8)),
    ],
)
def test_the_mean_lies_between_what_its_percentiles_allow(known, bounds):
    assert mean_bounds([Ranked(rank, value, "") for rank, value in known]) == pytest.approx(bounds)


def test_there_are_enough_forgeries_and_each_rule_of_a_run_is_met_by_one_or_a_test_here():
    rows = list(forgeries())
    assert len(rows) >= NEEDED_FORGERIES
    kinds = ("FIG-", "SUM-", "VER-", "LOG-", "TIME-", "SET-", "LG-")
    own = {name for name, rule in RULES.items() if name.startswith(kinds) and rule.severity is Severity.ERROR}
    assert own - {row.rule for row in (*rows, *results(), *of_models(), *of_chance(), *of_vendors())} == {
        "FIG-012", "TIME-008", "SET-016",  # test_gate_evidence.py
    }  # fmt: skip


ODD_VALUES = (0, -1, 1e-320, 1e308, int("9" * 400), float("nan"), float("-inf"), "x", None, [], True)


@pytest.mark.parametrize("key", [
    "result_query_count", "result_mean_latency_ns", "effective_target_qps", "generated_query_count", "loaded_qsl_set",
    "effective_target_latency_percentile", "generated_samples_per_query", "result_scheduled_samples_per_sec",
])  # fmt: skip
def test_no_value_of_a_log_makes_a_rule_fail_or_leaves_all_content(key: str, trees):
    rules = [rule for rule in RULES.values() if rule.scope in (Scope.RUN, Scope.LOG)]
    with trees.changed("closed") as root:
        assert [found for rule in rules for found in rule.check(server_run(root, "resnet"))] == []
        for value in ODD_VALUES:
            run = server_run(root, "resnet", **{key: value})
            assert [found for rule in rules for found in rule.check(run)], value


def server_run(root: Path, model: str, **changed: object) -> RunView:
    """The Server run of the good closed tree, as if it were of another model and had measured tokens."""
    tree = TreeView(listing=read_listing(root), round=load_round(LOG_ROUND), options=Options())
    owner = next(views.submitters(tree))
    found = next(views.models(next(views.systems(owner))))
    view = dataclasses.replace(found, table=tree.round.models[model])
    scenario = next(one for one in views.scenarios(view) if one.name == "Server")
    run = next(views.performance_runs(scenario))
    return dataclasses.replace(run, detail=dataclasses.replace(run.detail, values={**run.detail.values, **changed}))


def with_tokens(queries: int = 12098, completed: float = 20.1613, mean_ns: int = 5934290) -> dict[str, object]:
    """The rates of 265 tokens a query, as LoadGen derives them from the Server run's figures."""
    tokens = 265 * queries
    return {
        "requested_use_token_latencies": True,
        "requested_server_ttft_latency": 2000000000,
        "requested_server_tpot_latency": 200000000,
        "result_completed_tokens_per_second": float(f"{tokens / ((queries - 1) / completed):.6g}"),
        "result_token_throughput": float(f"{tokens / (mean_ns * queries):.6g}"),
    }


NOT_NEEDED = ("generic_message", "warning_generic_message", "get_sut_name_duration_ns", "num_errors")


@pytest.mark.parametrize("tree", ["open", "closed"])
def test_no_message_of_any_log_can_be_taken_away(tree: str, trees):
    for path in sorted((trees.folder / tree).rglob("mlperf_log_detail.txt")):
        log = log_view(TextFile(path=path.name, text=path.read_text()))
        for key in log.values:
            if key.startswith(("logger_", "loadgen_git_", "loadgen_build_date_local")) or key in NOT_NEEDED:
                continue
            without = dataclasses.replace(log, values={one: value for one, value in log.values.items() if one != key})
            found = list(rules_messages.is_whole(SimpleNamespace(detail=without)))
            assert [one.found for one in found] == [f"no {key}"], path
        assert not list(rules_messages.is_whole(SimpleNamespace(detail=log)))


def test_rates_of_tokens_that_follow_from_each_other_are_good_and_others_are_not(trees):
    with trees.changed("closed") as root:
        good = server_run(root, "llama2-70b-99.9", **with_tokens())
        assert list(rules_tokens.token_rates_follow(good)) == []
        assert list(rules_tokens.answers_have_length(good)) == []
        assert list(rules_settings.token_targets_are_kept(good)) == []
        rate = 10 * good.detail.values["result_completed_tokens_per_second"]
        forged = server_run(root, "llama2-70b-99.9", **{**with_tokens(), "result_completed_tokens_per_second": rate})
        found = [*rules_tokens.token_rates_follow(forged), *rules_tokens.answers_have_length(forged)]
        assert [one.allowed.split()[0] for one in found] == ["as", "half"]
        assert found[1].found.endswith("2650.2 tokens a sample")
        loose = {**with_tokens(), "requested_server_ttft_latency": 2000000001}
        found = list(rules_settings.token_targets_are_kept(server_run(root, "llama2-70b-99.9", **loose)))
        assert [one.found for one in found] == ["requested_server_ttft_latency = 2000000001"]


OLDER, WITH_KEY, NEWER = "4.1 @ 2ed955", "4.1 @ 3fb6c3", "5.0.16 @ 0123456789"
PADDED = {
    "result_samples_per_second": 80.15, "result_max_latency_ns": 919874995640, "result_query_count": 1,
    "generated_samples_per_query": 52800, "effective_samples_per_query": 52800, "generated_query_count": 24576,
    "generated_query_duration": 2457600000000, "effective_target_qps": 10, "loaded_qsl_set": list(range(24576)),
}  # fmt: skip
"""A published Offline run of llama2-70b-99 of round v4.1 (198fc467): thrice the data set, logged before padding."""


@pytest.mark.parametrize(
    ("version", "changed", "rules"),
    [
        (OLDER, {}, set()),
        (WITH_KEY, {"effective_sample_concatenate_permutation": True}, set()),
        (WITH_KEY, {"effective_sample_concatenate_permutation": False}, {"FIG-001", "FIG-009", "SET-003"}),
        (NEWER, {}, {"FIG-001", "FIG-009", "SET-003"}),
        (OLDER, {"result_samples_per_second": 160.3}, {"FIG-001"}),
        (OLDER, {"generated_query_count": 24575}, {"FIG-009"}),
        (OLDER, {"generated_query_duration": 4915200000000}, {"SET-003"}),
        (OLDER, {"generated_samples_per_query": 52801}, {"SET-003"}),
    ],
)
def test_loadgen_before_5_logs_an_offline_query_before_it_is_padded(
    version: str, changed: dict[str, object], rules: set[str], trees
):
    modes = {"effective_scenario": "Offline", "effective_test_mode": "PerformanceOnly", "loadgen_version": version}
    with trees.changed("closed") as root:
        run = server_run(root, "llama2-70b-99.9")
        run = dataclasses.replace(run, detail=LogView(path="x", values={**modes, **PADDED, **changed}))
        assert {name for name in ("FIG-001", "FIG-009", "SET-003") if list(RULES[name].check(run))} == rules


@pytest.mark.parametrize(("percent", "estimate", "is_good"), [("90.0", 7, True), ("90", 7, True), ("90", 8, False)])
def test_an_estimate_is_that_of_the_text_however_its_percentile_is_written(percent, estimate, is_good, trees):
    """LoadGen writes a digit behind the point since February 2025."""
    values = {
        "effective_scenario": "MultiStream", "effective_test_mode": "PerformanceOnly",
        "effective_target_latency_percentile": 0.9, "early_stopping_latency_ms": estimate,
        "early_stopping_result": f" * Early stopping {percent}th percentile estimate: 7",
    }  # fmt: skip
    with trees.changed("closed") as root:
        run = dataclasses.replace(server_run(root, "resnet"), detail=LogView(path="x", values=values))
        assert (list(RULES["VER-005"].check(run)) == []) is is_good


def parsed(text: str) -> LogView:
    return log_view(TextFile(path="x", text=text))


def message(key: str, value: str, time_ms: float = 1.0, more: str = "") -> str:
    metadata = f'{{"is_error": false, "is_warning": false, "pid": 7{more}}}'
    return f':::MLLOG {{"key": "{key}", "value": {value}, "time_ms": {time_ms}, "metadata": {metadata}}}\n'


def test_a_log_says_what_is_hidden_doubled_unflagged_and_when():
    log = parsed(
        message("a", "1", 5.0)
        + message("b", "2", 4.0)
        + message("error_x", '"bad"', 18446744053695.91)
        + " :::MLLOG {}\n"
        + message("c", "3", 6.0, ', "pid": 8')
    )
    assert (log.times_ms, log.lines["c"]) == ({"a": 5.0, "b": 4.0, "c": 6.0}, 5)
    assert [one.line for one in (*log.falls, *log.unflagged, *log.hidden, *log.doubled)] == [2, 3, 4, 5]
    assert log.processes == (7, 8)
    assert "7, then 8" in log.doubled[0].text


@pytest.mark.parametrize("is_failed", [False, True])
def test_times_per_token_below_zero_are_loadgens_own_where_requests_failed(is_failed: bool):
    """A failed request has no token, and LoadGen divides by its tokens less one."""
    values = dict.fromkeys(OUTPUT_TOKENS.keys(), "5") | {OUTPUT_TOKENS.least: "-55123"}
    text = "".join(message(key, value) for key, value in values.items()) + message("result_query_count", "9")
    text += message("effective_samples_per_query", "1") + message("effective_scenario", '"Server"')
    log = parsed(text + message("error_runtime", '"no token"').replace("false", "true", 1) * is_failed)
    assert (ranked(log, OUTPUT_TOKENS) == []) is is_failed and log.error_count == is_failed


def test_a_log_gives_the_build_of_its_loadgen_for_comparison():
    files = '{"/a.cc": "1", "/b.cc": "2"}'
    lines = (("loadgen_version", '"6.0.17 @ d6147c7eb7"'), ("loadgen_git_status_message", '""'),
             ("loadgen_build_date_utc", '"2026-07-24"'), ("loadgen_file_sha1", files))  # fmt: skip
    log = parsed("".join(message(*line) for line in lines))
    other = parsed(message("loadgen_file_sha1", '{"/b.cc": "2", "/a.cc": "1"}'))
    assert (log.loadgen_version, log.git_status, log.build_date) == ("6.0.17", "", "2026-07-24")
    one_file = parsed(message("loadgen_file_sha1", '{"/a.cc": "1"}'))
    assert log.source_digest == other.source_digest != one_file.source_digest
    assert parsed(message("x", "1")).source_digest is None


def test_a_log_that_was_read_leaves_nothing_to_the_garbage_collector():
    """Its lists may have millions of numbers, which do not make Python collect."""
    gc.collect()
    gc.disable()
    try:
        parsed(message("loaded_qsl_set", "[1, 2]"))
        assert gc.collect() == 0
        parsed(message("loaded_qsl_set", "[1, 2]") + ":::MLLOG x\n")
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_many_messages_of_a_kind_are_counted_and_a_hundred_kept():
    log = parsed("".join(message("error_x", '"bad"') for _ in range(1000)))
    assert (len(log.unflagged), log.error_count) == (100, 0)


def test_a_log_without_its_end_has_no_duration():
    begin = message("power_begin", '"11-29-2026 10:00:00.000"', 1.0)
    end = message("power_end", '"11-29-2026 10:00:02.500"', 2.0)
    for text, elapsed_s in ((begin + end, 2.5), (begin, None), (end, None)):
        assert parsed(text).elapsed_s == elapsed_s


def test_words_are_on_the_line_where_they_are_first():
    source = TextFile(path="x", text="a b\nc\nc d")
    assert [source.line_of(words) for words in ("a b", "c", "d", "e")] == [1, 2, 3, None]


@pytest.mark.parametrize(("scenario", "repeated"), [("MultiStream", 9), ("Offline", 0)])
def test_only_multi_stream_fills_its_last_query_with_samples_again(scenario: str, repeated: int):
    for more, is_refused in ((repeated, False), (repeated + 1, True)):
        indexes = [*range(16 - more), *[0] * more]
        rows = ",\n".join(
            f'{{ "seq_id" : {place}, "qsl_idx" : {one}, "data" : "{one:08X}" }}' for place, one in enumerate(indexes)
        )
        view = SimpleNamespace(
            accuracy_log=TextFile(path="log", text=f"[\n{rows}\n]\n"), accuracy_text=TextFile(path="x", text=""),
            accuracy_detail=LogView(path="detail", values={"effective_scenario": scenario}),
        )  # fmt: skip
        found = list(RULES["ACC-021"].check(view))
        assert [one.found for one in found] == [f"{16 - more} samples in 16 responses"] * is_refused


def test_data_sets_of_performance_runs_are_no_part_of_the_accuracy():
    def found(*entries):
        table = SimpleNamespace(accuracy_samples_in=lambda scenario: 12)
        scores = TextFile(path="accuracy_results.json", text='{"total_samples": 12}')
        view = SimpleNamespace(table=table, scores=scores, entries=entries, scenario=SimpleNamespace(scenario="Server"))
        return [one.found for one in RULES["EP-009"].check(view)]

    whole = {"dataset_type": "accuracy", "total_samples": 12}
    other = {"dataset_type": "performance", "total_samples": 4}
    assert found(whole) == found(whole, other) == found({"response_counts": {"issued": 12}}) == []
    assert found(other) == ["total_samples = 0 in 0 data sets of the type accuracy"]


def test_a_log_that_a_rule_cannot_judge_is_a_contradiction(monkeypatch):
    def fails(run):
        raise KeyError("lost")

    (broken, *_) = single_run.rules_of_logs()
    monkeypatch.setattr(single_run, "rules_of_logs", lambda: (dataclasses.replace(broken, check=fails),))
    ((rule, found),) = single_run.contradictions("run_1", LogView(path="run_1/detail"), TextFile(path="x", text=""))
    assert (rule.identity, found.path, found.found) == (
        broken.identity, "run_1/detail", "cannot be judged (KeyError: 'lost')"
    )  # fmt: skip
