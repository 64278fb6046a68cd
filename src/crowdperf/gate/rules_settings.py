"""Rules on the settings of a performance run: what was asked for, what LoadGen made of it, what the rules ask for.

Rules on what LoadGen's own mlperf.conf asks of a model where the checker asks less, or nothing (rounds since v6.1).

LoadGen reads that file by itself: an unchanged LoadGen under the model's name meets all of it. Another name in the
call, or a line of user.conf, loses it without a word.
"""

from collections.abc import Iterator, Mapping

from crowdperf.gate.derivation import (
    CLOSE,
    SECOND_NS,
    STAMPS_S,
    at_key,
    at_keys,
    contradiction,
    given,
    has_token_latencies,
    is_close,
    lasted_s,
    numbers,
    performance_rule,
    readable,
    usable,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import (
    BOTH,
    CLOSED,
    LOADGEN,
    MLPERF_CONF,
    OURS,
    SINCE,
    Scope,
    Severity,
    Violation,
    log_rule,
    rule,
)
from crowdperf.gate.user_conf import ConfSetting, asked_for
from crowdperf.gate.views import RunView
from crowdperf.kit.text_documents import Json


@rule("RUN-023", Scope.RUN, "The latency target is that of LoadGen's configuration if the checker's is looser.",
      source=MLPERF_CONF)  # fmt: skip
def latency_target_is_that_of_conf(run: RunView) -> Iterator[Violation]:
    table, key = run.scenario.model.table, "effective_target_latency_ns"
    limit = None if table is None else table.conf.latency_ns.get(run.detail.text("effective_scenario") or "")
    value = run.detail.number(key)
    if limit is not None and run.detail.is_usable and (value is None or value > limit):
        yield at_key(run.detail, key, f"at most {limit:g}")


@rule("RUN-024", Scope.RUN, "The run has the settings that LoadGen's configuration has for the model.",
      source=MLPERF_CONF, severity=Severity.WARNING)  # fmt: skip
def has_settings_of_conf(run: RunView) -> Iterator[Violation]:
    table, log = run.scenario.model.table, run.detail
    if table is None or not log.is_usable:
        return
    samples = log.number("effective_performance_sample_count") or 0
    if samples < table.conf.performance_samples:
        yield at_key(run.detail, "effective_performance_sample_count", f"{table.conf.performance_samples}")
    flags = {
        "effective_sample_concatenate_permutation": table.conf.equal_issue,
        "requested_use_token_latencies": table.conf.token_latencies and not table.needs_token_latencies,
    }
    for key, is_asked in flags.items():
        if is_asked and log.values.get(key) is not True:
            yield at_key(run.detail, key, f"true, as for {table.name} in mlperf.conf")


_TAKEN_OVER = (
    "scenario", "test_mode", "min_duration_ms", "max_duration_ms", "max_query_count", "qsl_rng_seed",
    "sample_index_rng_seed", "schedule_rng_seed", "accuracy_log_rng_seed", "accuracy_log_probability",
    "accuracy_log_sampling_target", "print_timestamps", "performance_issue_unique", "performance_issue_same",
    "performance_issue_same_index", "sample_concatenate_permutation",
)  # fmt: skip
_OF_SERVER = {
    "effective_target_qps": "requested_server_target_qps",
    "effective_target_latency_ns": "requested_server_target_latency_ns",
    "effective_target_latency_percentile": "requested_server_target_latency_percentile",
    "effective_max_async_queries": "requested_server_max_async_queries",
    "effective_min_query_count": "requested_min_query_count",
}
_OF_STREAM = {
    "SingleStream": {"effective_target_latency_percentile": "requested_single_stream_target_latency_percentile"},
    "MultiStream": {
        "effective_min_query_count": "requested_min_query_count",
        "effective_target_latency_percentile": "requested_multi_stream_target_latency_percentile",
        "effective_samples_per_query": "requested_multi_stream_samples_per_query",
    },
}


def _same(log: LogView, pairs: Mapping[str, str]) -> Iterator[Violation]:
    """Yield where two keys both have values, but different ones."""
    for key, other in pairs.items():
        one, two = log.values.get(key), log.values.get(other)
        if one is not None and two is not None and (one != two or isinstance(one, bool) != isinstance(two, bool)):
            yield at_keys(log, (key, other), "the same")


@log_rule("SET-001", "LoadGen used the requested settings.")
def effective_is_requested(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        yield from _same(log, {f"effective_{name}": f"requested_{name}" for name in _TAKEN_OVER})
        scenario = log.scenario or ""
        yield from _same(log, _OF_SERVER if scenario == "Server" else _OF_STREAM.get(scenario, {}))
        if scenario == "SingleStream" and log.values.get("effective_sample_concatenate_permutation") is False:
            yield from _same(log, {"effective_min_query_count": "requested_min_query_count"})
        yield from _fixed(log, scenario)


def _fixed(log: LogView, scenario: str) -> Iterator[Violation]:
    """What LoadGen sets itself in a scenario."""
    wanted: dict[str, Json] = {"effective_target_duration_ms": log.values.get("effective_min_duration_ms")}
    if scenario == "Offline":
        wanted = {"effective_target_duration_ms": 0, "effective_min_query_count": 1, "result_query_count": 1,
                  "effective_target_latency_percentile": 0.99}  # fmt: skip
    if scenario != "Server":
        wanted["effective_max_async_queries"], wanted["effective_target_latency_ns"] = 1, 0
    if scenario in ("SingleStream", "Server"):
        wanted["effective_samples_per_query"] = 1
    for key, value in wanted.items():
        if key in log.values and value is not None and log.values[key] != value:
            yield at_key(log, key, f"{value} in {scenario}")


@log_rule("SET-002", "The target rate is that of the requested latency or rate.")
def target_rate_follows(run: RunView) -> Iterator[Violation]:
    asked = {"Offline": "requested_offline_expected_qps",
             "SingleStream": "requested_single_stream_expected_latency_ns",
             "MultiStream": "requested_multi_stream_expected_latency_ns"}  # fmt: skip
    for log in readable(run):
        key = asked.get(log.scenario or "")
        found = numbers(log, "effective_target_qps", key) if key else None
        if key is None or found is None or not found[1] > 0:
            continue
        wanted = found[1] if log.scenario == "Offline" else SECOND_NS / found[1]
        if not is_close(found[0], wanted, relative=2 * CLOSE):
            yield at_keys(log, ("effective_target_qps", key), f"{wanted:g}")


@performance_rule("SET-004", "The run stayed within the limits at which LoadGen ends a run with an error.")
def limits_were_kept(log: LogView) -> Iterator[Violation]:
    """An Offline run is not judged: LoadGen ends it after its one query, before it looks at max_duration.

    That query has all samples, and min_duration was no reason to stop: `max_duration` cannot have ended such a run, so
    no log of one can show that it did. (IssueQueryThread in issue_query_controller.cc: target_duration is 0.)
    """
    if log.scenario == "Offline":
        return
    found = numbers(log, "effective_max_duration_ms", "effective_min_duration_ms")
    if found is not None and 0 < found[0] < found[1]:
        yield at_keys(
            log, ("effective_max_duration_ms", "effective_min_duration_ms"), "0, or no less than min_duration"
        )
    else:
        yield from _issued_too_late(log)
    found = numbers(log, "effective_max_query_count", "result_query_count")
    if found is not None and 0 < found[0] <= found[1] and not log.error_count:
        yield at_keys(log, ("effective_max_query_count", "result_query_count"), "0, or more queries than the run had")


def _issued_too_late(log: LogView) -> Iterator[Violation]:
    """LoadGen ends a run with an error at the first query that it issues after max_duration.

    A stream may end naturally at that query, so its last but one counts: two latencies before the end of the run.
    """
    found = numbers(log, "effective_max_duration_ms", "result_query_count", "result_max_latency_ns")
    if found is None or not found[0] > 0 or log.error_count:
        return
    limit_s, queries, longest_ns = found[0] / 1000, found[1], found[2]
    rate = log.number("result_scheduled_samples_per_sec") if log.scenario == "Server" else None
    elapsed_s = lasted_s(log)
    issued_s = None if elapsed_s is None else elapsed_s - 2 * longest_ns / SECOND_NS
    issued_s = (queries - 1) / rate if rate else issued_s
    if issued_s is not None and issued_s * (1 - CLOSE) - STAMPS_S > limit_s:
        text = (
            f"{given(log, 'effective_max_duration_ms')}, but a query was issued after {issued_s:.3f} s without an error"
        )
        yield contradiction(log, "effective_max_duration_ms", text, "0, or a run that it did not end")


@rule("SET-005", Scope.RUN, "A submitted run is not a run of a compliance test.", source=MLPERF_CONF, since=SINCE)
def has_no_test_settings(run: RunView) -> Iterator[Violation]:
    yield from _off(run, ("performance_issue_same", "performance_issue_unique", "performance_issue_same_index"))


@rule("SET-011", Scope.RUN, "A submitted run logs no responses.", source=MLPERF_CONF, since=SINCE,
      severity=Severity.WARNING)  # fmt: skip
def logs_no_responses(run: RunView) -> Iterator[Violation]:
    """A warning, because it can only cost speed: LoadGen draws the samples to log from a separate seed, records each
    completion time before it copies a response, and issues the same queries at the same times. (SampleComplete in
    loadgen.cc, LoadGen 6.0.17. IDENT-008 refuses a log of TEST01 in place of the submitted one.)"""
    yield from _off(run, ("accuracy_log_sampling_target", "accuracy_log_rng_seed", "accuracy_log_probability"))


def _off(run: RunView, names: tuple[str, ...]) -> Iterator[Violation]:
    """Settings that are false or 0 but in compliance runs."""
    for log in usable(run):
        for key in (f"effective_{name}" for name in names if not run.test):
            if log.values.get(key):
                yield at_key(log, key, "false or 0 in a submitted run")


@rule("SET-007", Scope.RUN, "Latency percentile and samples of a query are those of the round.", source=MLPERF_CONF,
      since="v5.0", divisions=CLOSED)  # fmt: skip
def has_round_settings(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    for log in usable(run):
        scenario = log.scenario or ""
        wanted = {} if table is None else {
            "effective_target_latency_percentile": table.latency_percentile.get(scenario),
            "effective_samples_per_query": table.samples_per_query.get(scenario),
        }  # fmt: skip
        for key, value in wanted.items():
            if value is not None and log.values.get(key) != value:
                yield at_key(log, key, f"{value:g}: {scenario} in {run.scenario.tree.round.name}")


@rule("SET-008", Scope.RUN, "The token latency targets are not looser than the benchmark's.", source=BOTH, since="v5.0",
      divisions=CLOSED)  # fmt: skip
def token_targets_are_kept(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    limits = {} if table is None else table.token_latency_ns.get(run.scenario.scenario or "", {})
    for log in usable(run):
        for name, limit in limits.items() if has_token_latencies(log) else ():
            key = f"requested_server_{name}_latency"
            value = log.number(key)
            if value is None or value > limit:
                yield at_key(log, key, f"at most {limit:g}")


@rule("SET-009", Scope.RUN, "user.conf has no setting that is forbidden in a submitted run.", source=MLPERF_CONF,
      since="v5.0")  # fmt: skip
def user_conf_is_legal(run: RunView) -> Iterator[Violation]:
    for log in usable(run):
        for one in _asked(run):
            wanted = log.number(one.key) if one.is_fixed and run.scenario.division in CLOSED else None
            if (one.is_forbidden and one.value) or (wanted is not None and not is_close(one.value, wanted)):
                allowed = "no such line" if wanted is None else f"{given(log, one.key)}, as in the log"
                yield Violation(path=run.scenario.user_conf.path, found=one.text, allowed=allowed, line=one.line)


@rule("SET-012", Scope.RUN, "The log was made with the settings of user.conf.", source=LOADGEN, since="v5.0",
      severity=Severity.WARNING)  # fmt: skip
def user_conf_was_used(run: RunView) -> Iterator[Violation]:
    for log in usable(run):
        for one in _asked(run):
            if not one.is_drawn:
                yield from _differs(run, log, one)


@rule("SET-016", Scope.RUN, "The seeds of the log are those of user.conf.",
      source=OURS, since="v5.0")  # fmt: skip
def user_conf_has_seeds(run: RunView) -> Iterator[Violation]:
    for log in usable(run):
        for one in _asked(run):
            if one.is_drawn:
                yield from _differs(run, log, one)


def _differs(run: RunView, log: LogView, one: ConfSetting) -> Iterator[Violation]:
    value, relative = log.number(one.key), 0.0 if one.is_drawn else CLOSE
    if value is not None and not one.is_fixed and not is_close(value, one.value, relative):
        found = f"{one.text}, but the log has {given(log, one.key)}"
        yield Violation(path=run.scenario.user_conf.path, found=found, allowed="the same", line=one.line)


def _asked(run: RunView) -> Iterator[ConfSetting]:
    """The settings of user.conf for a submitted run. A compliance run also has an audit.config."""
    if not run.test and run.scenario.user_conf.is_usable:
        yield from asked_for(run.scenario.user_conf.text, run.scenario.model, run.detail.scenario or "")


@performance_rule("SET-010", "As many different samples were loaded as the setting says.")
def loaded_follows(log: LogView) -> Iterator[Violation]:
    found = numbers(log, "effective_performance_sample_count", "qsl_reported_total_count")
    loaded = log.values.get("loaded_qsl_set")
    if found is None or not isinstance(loaded, list):
        return
    samples = log.loaded_samples
    if samples and not 0 <= min(samples) <= max(samples) < found[1]:
        samples = frozenset(one for one in samples if 0 <= one < found[1])
    wanted = min(found)  # MultiStream repeats some to fill its last query
    if len(samples) != wanted or (len(loaded) != wanted and log.scenario != "MultiStream"):
        text = f"{len(loaded)} loaded, {len(samples)} different ones of the data set"
        yield contradiction(
            log, "loaded_qsl_set", text, f"{wanted:g}: {given(log, 'effective_performance_sample_count')}"
        )


@log_rule("SET-014", "The numbers of samples in effect are the requested ones, else those that the QSL reports.")
def sample_counts_follow(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        for kind, reported in (("performance", "performance"), ("accuracy", "total")):
            key, asked = f"effective_{kind}_sample_count", f"requested_{kind}_sample_count_override"
            found = numbers(log, key, asked, f"qsl_reported_{reported}_count")
            if found is not None and found[0] != (found[1] or found[2]):
                yield at_keys(log, (key, asked, f"qsl_reported_{reported}_count"), f"{found[1] or found[2]:g}")
        found = numbers(log, "qsl_reported_performance_count", "qsl_reported_total_count")
        if found is not None and not 0 < found[0] <= found[1]:
            yield at_keys(
                log, ("qsl_reported_performance_count", "qsl_reported_total_count"), "1 to as many as there are in all"
            )


@rule("SET-015", Scope.RUN, "A submitted run read no audit.config, or shows its settings.", source=LOADGEN,
      since=SINCE)  # fmt: skip
def has_settings_of_audit(run: RunView) -> Iterator[Violation]:
    """LoadGen warns if it finds one. Without any setting of a test in effect, these were removed from the log."""
    names = ("accuracy_log_sampling_target", "accuracy_log_rng_seed", "performance_issue_same",
             "performance_issue_unique", "performance_issue_same_index")  # fmt: skip
    for log in usable(run):
        if not run.test and log.audit_line is not None and not any(log.values.get(f"effective_{one}") for one in names):
            found = "an audit.config was found, but no setting of a test is in effect"
            yield Violation(
                path=log.path, found=found, allowed="no audit.config in a submitted run", line=log.audit_line
            )
