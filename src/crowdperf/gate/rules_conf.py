"""Rules on what LoadGen's own mlperf.conf asks of a model where the checker asks less, or nothing (rounds since v6.1).

LoadGen reads that file by itself: an unchanged LoadGen under the model's name meets all of it. Another name in the
call, or a line of user.conf, loses it without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from crowdperf.gate.derivation import at_key
from crowdperf.gate.rulebook import MLPERF_CONF, Scope, Severity, Violation, rule
from crowdperf.gate.views import RunView


@rule("RUN-023", Scope.RUN, "The latency target is that of LoadGen's configuration where the checker's is looser.",
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
