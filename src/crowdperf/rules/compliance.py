"""The MLPerf compliance tests: which a benchmark needs in a round, and the settings LoadGen is given for each. Pure.

    TEST01         responses of a performance run are those of the accuracy run; the speed stays the same
    TEST04         the same sample again and again is answered no faster (up to v2.0 two runs, TEST04-A and TEST04-B)
    TEST05         other random seeds give the same speed (up to v4.1)
    TEST06         a language model's answers begin, end and are as long as it says
    TEST07         answers of a performance run are right as often as they must be, on samples of their own
    TEST09         answers of a performance run are as long on average as the reference model's

LoadGen takes the settings from a file in user.conf's format (`audit_text`) right before the test, so they win over all
others. Sources: the audit.config files, README files and checkers of mlcommons/inference, tags v0.7 to v5.1 and commit
b66003e1 (August 2026).
"""

from collections.abc import Mapping

from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import UnknownName
from crowdperf.rules.rounds import is_since, rounds_of

TESTS = ("TEST01", "TEST04", "TEST05", "TEST06", "TEST07", "TEST09")
"""The tests this project makes. TEST04-A and TEST04-B (v0.7 to v2.0) and TEST08 (v6.0, a benchmark this project does
not run) it does not."""

SAMPLED_TEST = "TEST01"
"""The test whose performance run logs the responses of some samples; it is scored on those."""

SCORED_TESTS = (SAMPLED_TEST, "TEST07")
"""The tests whose performance runs are scored; TEST07 logs all of its samples."""

ANSWER_TESTS = ("TEST06", "TEST07", "TEST09")
"""The tests that read a language model's answers. Their runs are short, and nothing but the answers is judged: LoadGen
may call them INVALID."""

CHECKED_DIVISIONS = ("closed", "network")
"""An open submission needs no compliance test."""

_LOG_SEED = 720381539243781796
_SAMPLED = 4096
_SAMPLED_OF_OTHERS: Mapping[str, int] = {"pointpainting": 256, "wan-2.2-t2v-a14b": 50}
"""What TEST01 logs of benchmarks that this project does not run, where it is fewer."""

_TEST05_SEEDS: Mapping[str, int] = {
    "qsl_rng_seed": 313588358309856706,
    "sample_index_rng_seed": 471397156132239067,
    "schedule_rng_seed": 413914573387865862,
}
"""Up to v2.1; since v3.0 LoadGen holds a second set of seeds for each round, which `test05 = 1` switches to."""

SERVER_RATE_PARTS: Mapping[str, float] = {"TEST01": 0.96, "TEST04": 0.97}
"""Part of the Server rate that the test is run at, as cm does: logging responses costs a little, and a tested rate at
the edge would miss its latency limit. What TEST01 allows is 0.9."""


def _sampled(benchmark: str) -> int:
    """Return how many responses TEST01 logs."""
    row = BENCHMARKS.get(benchmark)
    return _SAMPLED_OF_OTHERS.get(benchmark, _SAMPLED) if row is None else row.record.test01_samples


def has_second_seeds(loadgen_version: str) -> bool:
    """Return whether a LoadGen of this version ("6.0.17") knows `test05`: those since 3.0 do."""
    major = loadgen_version.split(".")[0]
    return major.isdigit() and int(major) >= 3


_WHOLE_SETS: Mapping[str, tuple[int, int]] = {"TEST07": (990, 990), "TEST09": (6_396, 10_000)}
"""The tests that issue each sample of their data set once: how many there are, how many answers are logged at most."""


def _each_once(test: str, sample_count: int | None) -> dict[str, int]:
    """Return the settings of a test over a whole data set, by its size where that is not the official one's.

    Without the size as performance_sample_count_override LoadGen 6.0.17 takes the one of its embedded mlperf.conf,
    6,396, issues nothing from the 990 samples of TEST07, and crashes.
    """
    count, logged = _WHOLE_SETS[test]
    count = sample_count or count
    log = {"mode": 2, "accuracy_log_rng_seed": _LOG_SEED, "accuracy_log_sampling_target": max(logged, count)}
    once = {"performance_issue_unique": 1, "sample_concatenate_permutation": 0}
    return {**log, "min_query_count": count, "min_duration": 0, **once, "performance_sample_count_override": count}


def audit_values(test: str, benchmark: str, loadgen_version: str, sample_count: int | None = None) -> dict[str, int]:
    """Return what a compliance test sets, by LoadGen's key; raises UnknownName for a test that is not in TESTS.

    mode 2 is a performance run. The values are the same in all scenarios. sample_count: of the data set of the test's
    run, for tests that issue all of it; None: the official one's.
    """
    if test == "TEST01":
        return {"mode": 2, "accuracy_log_rng_seed": _LOG_SEED, "accuracy_log_sampling_target": _sampled(benchmark)}
    if test == "TEST04":
        same = {"performance_issue_unique": 0, "performance_issue_same": 1, "performance_issue_same_index": 3}
        return {"mode": 2, **same}
    if test == "TEST05":
        return {"test05": 1} if has_second_seeds(loadgen_version) else {"mode": 2, **_TEST05_SEEDS}
    if test == "TEST06":
        log = {"mode": 2, "accuracy_log_rng_seed": _LOG_SEED, "accuracy_log_sampling_target": 100}
        return {**log, "min_query_count": 100, "min_duration": 0, "sample_concatenate_permutation": 0}
    if test in _WHOLE_SETS:
        return _each_once(test, sample_count)
    raise UnknownName("compliance test", test, TESTS)


def audit_text(values: Mapping[str, int]) -> str:
    """Return the content of an audit.config. LoadGen looks its keys up as those of model `*`."""
    head = "# Settings of an MLPerf compliance test. LoadGen reads them once, right before the test.\n"
    return head + "".join(f"*.*.{key} = {value}\n" for key, value in values.items())


def tests_needed(benchmark: str, round_name: str, division: str) -> tuple[str, ...]:
    """Return the compliance tests of a benchmark in a round; none in the open division.

    Up to v2.0 the answer has TEST04-A and TEST04-B. Raises
    UnknownName for a benchmark the round does not have.
    """
    allowed = rounds_of(benchmark)
    if round_name not in allowed:
        raise UnknownName(f"round of {benchmark}", round_name, allowed)
    if division not in CHECKED_DIVISIONS:
        return ()
    record = BENCHMARKS[benchmark].record
    if record.generation is not None:
        return record.generation.tests
    if round_name in record.own_tests:
        return record.own_tests[round_name]
    if record.test06_since:
        return ("TEST06",) if is_since(round_name, record.test06_since) else ()
    same_sample: tuple[str, ...] = ("TEST04",) if record.has_test04 else ()
    if same_sample and not is_since(round_name, "v2.1"):
        same_sample = ("TEST04-A", "TEST04-B")
    other_seeds = () if is_since(round_name, "v5.0") else ("TEST05",)
    return ("TEST01", *same_sample, *other_seeds)
