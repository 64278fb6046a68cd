"""What LoadGen draws by chance is drawn again: by the C++ standard, and as runs of the published round v5.1 have it."""

import dataclasses

import pytest
from test_gate_derivation import server_run

from crowdperf.gate import loadgen_random, rules_draws
from crowdperf.gate.derivation import version_of
from crowdperf.gate.loadgen_random import arrival, engine, log_value, logged_count
from crowdperf.gate.log_view import LogView
from crowdperf.logs.seeds import SEEDS

SEED, LOG_SEED = SEEDS["v5.1"].schedule, 720381539243781796


def test_the_engine_is_that_of_cpp():
    """std::mt19937's 10,000th number, which the standard names ([rand.predef])."""
    source = engine(5489)
    assert [source.getrandbits(32) for _ in range(10_000)][-1] == 4123659995


@pytest.mark.parametrize(
    ("queries", "duration_ns", "target", "scheduled"),
    [(535, 602365309923, 0.9, 0.886584), (3565, 601172322302, 6, 5.92847), (9997, 600035703410, 16.5, 16.6595)],
)
def test_published_server_runs_have_the_times_that_the_seed_draws(queries, duration_ns, target, scheduled):
    assert arrival(SEED, queries) / target == pytest.approx(duration_ns / 1e9, rel=1e-8)
    assert arrival(SEED, queries - 1) / target == pytest.approx((queries - 1) / scheduled, rel=1e-5)
    assert arrival(SEED, queries + 1) / target != pytest.approx(duration_ns / 1e9, rel=1e-5)


@pytest.mark.parametrize(
    ("target", "expected", "chosen"), [(256, 294_360, [446, 1631]), (256, 236_256, [446, 1631]), (256, 627_000, [7374])]
)
def test_published_tests_logged_the_responses_that_their_seed_chooses(target: int, expected: int, chosen: list[int]):
    values = {number: log_value(number, LOG_SEED) for number in range(chosen[0] - 40, chosen[-1] + 40)}
    assert set(chosen) <= {number for number, value in values.items() if value <= target / expected} < set(values)


@pytest.mark.parametrize("count", [-1, 0, 1, 500])
def test_samples_are_counted_as_their_numbers_say(count: int):
    loadgen_random._log_draws.cache_clear()  # so that the row is made as far as is counted, whatever was asked before
    loadgen_random._ordered_log_values.cache_clear()
    assert logged_count(count, LOG_SEED, 1.0) == max(count, 0)
    values = [log_value(number, LOG_SEED) for number in range(count)]
    for share in (0.0, 0.25, *values[:3], 1.0):
        assert logged_count(count, LOG_SEED, share) == sum(value <= share for value in values)


def log_of(version: str, total: int, loaded: list[int]) -> LogView:
    values = {"loadgen_version": f"{version} @ 0123456789", "qsl_reported_total_count": total, "loaded_qsl_set": loaded,
              "effective_performance_sample_count": len(loaded), "effective_test_mode": "PerformanceOnly"}  # fmt: skip
    return LogView(path="x", values=values)


FIRST, ANY = [3, 7, 0, 5, 1, 6, 2, 4], [44012, 3187, 20655, 49100, 815, 36241, 12999, 27480]


@pytest.mark.parametrize(
    ("version", "total", "loaded", "found"),
    [
        ("5.1.0", 50_000, ANY, ""),
        ("5.1.0", 8, FIRST, ""),
        ("5.1.0", 50_000, FIRST, "8 samples up to number 7"),
        ("5.1.0", 50_000, sorted(ANY), "8 samples in ascending order"),
        ("6.0.17", 50_000, FIRST, ""),
        ("6.0.17", 50_000, ANY, "sample 49100 among 8"),
        ("6.0.17", 8, sorted(FIRST), "8 samples in ascending order"),
        ("6.0.5", 50_000, FIRST, ""),
        ("6.0.5", 50_000, ANY, ""),
        ("unknown", 50_000, sorted(ANY), ""),
        ("6.0.17", 50_000, [1, 2], ""),
        ("6.0.17", 50_000, ["x"] * 8, ""),
    ],
)
def test_loadgen_loads_samples_of_all_and_since_6_0_6_the_first_ones(version, total, loaded, found, trees):
    with trees.changed("closed") as root:
        run = dataclasses.replace(server_run(root, "resnet"), detail=log_of(version, total, loaded))
    assert [one.found for one in rules_draws.loaded_is_drawn(run)] == ([found] if found else [])


def test_a_version_has_three_numbers():
    assert version_of(log_of("5.1.0", 1, [])) == (5, 1, 0)
    assert version_of(log_of("fast", 1, [])) is None


def test_a_seed_of_no_round_is_not_drawn(trees):
    """A log may name as many seeds as it has lines; that they are the round's is another rule's."""
    with trees.changed("closed") as root:
        seeds = {"effective_schedule_rng_seed": 7, "generated_query_duration": 1}
        assert list(rules_draws.schedule_is_drawn(server_run(root, "resnet", **seeds))) == []
