"""crowdperf.harness.find's rules: which rate is tried next, how long a search may take, which queries are late. All
pure."""

import json
import math
import random
from array import array
from dataclasses import replace

import pytest
from harness_support import request

from crowdperf.harness.find import record
from crowdperf.harness.find.lateness import Answered, LateCount, allowed_late, most_queries
from crowdperf.harness.find.plans import BOUNDS, MAX_RUNS, TOLERANCE, Overrides, make_plan
from crowdperf.harness.find.probe_run import Verdict
from crowdperf.harness.find.record import Probe, inputs_of, unfinished, write
from crowdperf.harness.find.search import (  # fmt: skip
    HighestRate,
    Kind,
    Length,
    NotFound,
    Plan,
    Tried,
    Try,
    first_step_fits,
    next_step,
)
from crowdperf.harness.runner.config import KnownNames, parse_run_config
from crowdperf.rules.names import ExecutionMode

PROBE, CONFIRMATION = Kind.PROBE, Kind.CONFIRMATION
OPEN = Overrides(limit_ms=15.0, target_qps=None, min_duration_ms=None, min_query_count=None)


def plan(**changes: object) -> Plan:
    base = Plan(
        estimate=100.0, highest=1e6, tolerance=0.02, budget_s=1000.0, most_runs=40, probe=Length(3.0, 100),
        confirmation=Length(6.0, 100), overhead_s=0.0,
    )  # fmt: skip
    return replace(base, **changes)


def tried(*runs: tuple) -> list[Tried]:
    """(rate, verdict) is a probe, (rate, verdict, "c") a confirmation."""
    return [Tried(run[0], CONFIRMATION if len(run) > 2 else PROBE, run[1]) for run in runs]


# --- the next rate ---


@pytest.mark.parametrize(
    ("runs", "rate", "kind"),
    [
        ([], 100.0, PROBE),
        ([(100, True)], 130.0, PROBE),  # up, in growing steps
        ([(100, True), (130, True)], 208.0, PROBE),
        ([(100, True), (130, True), (208, True)], 416.0, PROBE),
        ([(100, False)], 75.0, PROBE),  # down, in growing steps
        ([(100, False), (75, False)], 37.5, PROBE),
        ([(100, False), (75, False), (37.5, False)], 9.375, PROBE),
        ([(100, True), (130, False)], 114.02, PROBE),  # the gap is halved (geometrically)
        ([(100, False), (75, True)], 86.603, PROBE),
        ([(100, True), (102, False)], 102, PROBE),  # narrow enough: was the failure one of the machine?
        ([(100, True), (102, False), (102, False)], 100, CONFIRMATION),
        ([(100, True), (102, False), (102, True)], 102, PROBE),  # a tie: once more
        ([(100, True), (102, False), (102, True), (102, True)], 163.2, PROBE),  # it holds: up again
        ([(100, True), (102, False), (102, True), (102, False)], 100, CONFIRMATION),
        ([(100, False), (75, True), (86, True), (93, True)], 100, PROBE),  # three held in a row below it: once more
        ([(90, False), (100, True)], 90, PROBE),  # a higher rate held: once more
        ([(90, False), (100, True), (90, False)], 45.0, PROBE),  # twice is enough: the lower verdict counts
        ([(100, True), (102, False), (102, False), (100, False, "c")], 98.0, CONFIRMATION),  # step down, growing
        ([(100, True), (102, False), (102, False), (100, False, "c"), (98, False, "c")], 94.08, CONFIRMATION),
        (
            [(100, True), (102, False), (102, False), (100, False, "c"), (98, False, "c"), (94.08, True, "c")],
            96.02,  # between the confirmed and the failed one, until they are as near as the tolerance
            CONFIRMATION,
        ),
        ([(100, None), (100, True)], 130.0, PROBE),  # a run without a verdict says nothing
    ],
)  # fmt: skip
def test_the_next_rate_follows_from_the_verdicts_so_far(runs: list, rate: float, kind: Kind) -> None:
    step = next_step(plan(), tried(*runs), 0.0)
    assert isinstance(step, Try), step
    assert (step.rate, step.kind) == (pytest.approx(rate, rel=1e-4), kind)


def test_a_confirmed_rate_with_a_near_failed_one_ends_the_search() -> None:
    runs = tried((100, True), (102, False), (102, False), (100, True, "c"))
    found = next_step(plan(), runs, 10.0)
    assert found == HighestRate(100, True, pytest.approx(0.02), "the next rate that failed is at most 2% higher")


def test_a_confirmation_counts_more_than_the_probes_above_it() -> None:
    runs = tried((100, True), (101, True), (102, False), (102, False), (101, False, "c"), (98.98, True, "c"))
    step = next_step(plan(), runs, 10.0)
    assert isinstance(step, Try)
    assert step.kind is CONFIRMATION
    assert 98.98 < step.rate < 101  # 100 held as a probe only


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([Tried(100, PROBE, False, is_hopeless=True)], "a single query already"),
        ([Tried(100 * 0.75 * 0.5 * 0.25**k, PROBE, False) for k in range(-2, 5)], "rates down to"),
    ],
)
def test_no_rate_that_holds_is_an_answer_too(runs: list[Tried], why: str) -> None:
    end = next_step(plan(), runs, 10.0)
    assert isinstance(end, NotFound)
    assert why in end.why


def test_nothing_above_what_memory_allows_is_tried() -> None:
    limited = plan(highest=110.0)
    step = next_step(limited, tried((100, True)), 0.0)
    assert isinstance(step, Try)
    assert step.rate == 110.0
    runs = tried((100, True), (110, True))
    assert next_step(limited, runs, 0.0) == Try(110, CONFIRMATION, "a longer run at the highest rate that passed")
    end = next_step(limited, [*runs, *tried((110, True, "c"))], 0.0)
    assert end == HighestRate(110, True, None, "it is the highest rate that there is memory for")


# --- requests in flight ---


def in_flight(**changes: object) -> Plan:
    return plan(**{"estimate": 1.0, "tolerance": 0.05, "is_whole": True, **changes})


@pytest.mark.parametrize(
    ("runs", "number", "kind"),
    [
        ([(1, True)], 2, PROBE),  # by at least one
        ([(1, True), (2, True)], 3, PROBE),
        ([(1, True), (2, True), (3, True)], 6, PROBE),
        ([(1, True), (2, True), (3, True), (6, True), (12, False)], 8, PROBE),
        ([(1, True), (2, True), (3, True), (6, True), (12, False), (8, True)], 10, PROBE),
        ([(1, True), (3, False)], 2, PROBE),
        ([(1, True), (2, False)], 2, PROBE),  # neighbors: was the failure one of the machine?
        ([(1, True), (2, False), (2, False)], 1, CONFIRMATION),
        ([(1, False)], 1, PROBE),  # nothing is lower: the same question
        ([(200, True), (210, False), (210, False)], 200, CONFIRMATION),  # 5 %, although they are not neighbors
        ([(4, True), (5, False), (5, False), (4, False, "c")], 3, CONFIRMATION),  # by at least one
        ([(2, True), (3, False), (3, False), (2, False, "c"), (1, False, "c")], None, None),
    ],
)
def test_requests_in_flight_are_whole_numbers(runs: list, number: int | None, kind: Kind | None) -> None:
    step = next_step(in_flight(), tried(*runs), 0.0)
    if number is None:
        assert isinstance(step, NotFound)
    else:
        assert isinstance(step, Try) and (step.rate, step.kind) == (number, kind), step
        assert step.rate == int(step.rate)


def test_a_first_number_that_is_given_is_lowered_to_one_at_least() -> None:
    made, runs = in_flight(estimate=16.0), []
    while isinstance(step := next_step(made, runs, 0.0), Try):
        runs.append(Tried(step.rate, step.kind, False))
    assert [run.rate for run in runs] == [16, 12, 6, 1, 1]
    assert step == NotFound("a single request in flight failed")


@pytest.mark.parametrize("truth", [1, 2, 3, 7, 19, 20, 64, 100, 777, 5000])
@pytest.mark.parametrize("first", [1, 8])
def test_a_search_ends_at_the_highest_number_or_within_the_tolerance_below_it(truth: int, first: int) -> None:
    made, runs = in_flight(estimate=float(first)), []
    while isinstance(step := next_step(made, runs, 0.0), Try):
        runs.append(Tried(step.rate, step.kind, step.rate <= truth))
    assert isinstance(step, HighestRate) and step.is_confirmed
    assert truth / 1.05 <= step.rate <= truth
    assert step.rate == truth or truth > 20
    assert len(runs) <= 24
    if truth <= 19:
        assert step.why == "the next higher number failed"


def test_no_number_above_the_highest_is_tried() -> None:
    limited = in_flight(highest=3.0)
    step = next_step(limited, tried((1, True), (2, True)), 0.0)
    assert isinstance(step, Try) and step.rate == 3
    end = next_step(limited, tried((1, True), (2, True), (3, True), (3, True, "c")), 0.0)
    assert end == HighestRate(3, True, None, "no higher one is tried")


# --- the budget ---


@pytest.mark.parametrize(
    ("runs", "spent_s", "end"),
    [
        ([], 998.0, NotFound),
        ([(100, True)], 987.0, Try),  # time for a confirmation only
        ([(100, True)], 995.0, HighestRate),  # not even for that
        ([(100, False)], 999.0, NotFound),
        ([(100, True), (102, False), (102, False), (100, False, "c")], 999.0, NotFound),
        ([(90, True), (100, True), (102, False), (102, False), (100, False, "c")], 999.0, HighestRate),
    ],
)
def test_the_budget_ends_a_search_with_what_is_known(runs: list, spent_s: float, end: type) -> None:
    step = next_step(plan(), tried(*runs), spent_s)
    assert isinstance(step, end)
    if isinstance(step, Try):
        assert step.kind is CONFIRMATION
    else:
        assert "budget of 1000 s" in step.why
    if isinstance(step, HighestRate):
        assert not step.is_confirmed


def test_the_number_of_runs_is_limited_too_and_one_is_kept_for_the_confirmation() -> None:
    runs = tried((100, True), (200, False))
    assert next_step(plan(most_runs=3), runs, 0.0) == Try(
        100, CONFIRMATION, "a longer run at the highest rate that passed"
    )
    end = next_step(plan(most_runs=3), [*runs, *tried((100, True, "c"))], 0.0)
    assert isinstance(end, HighestRate)
    assert end.is_confirmed
    assert end.gap == pytest.approx(1.0)
    stopped = next_step(plan(most_runs=3), tried((100, True), (200, False), (150, False)), 0.0)
    assert (type(stopped), stopped.why) == (HighestRate, "the search may have 3 runs")


def searched(truth: float, made: Plan, chance: random.Random, scatter: float, bad_luck: float) -> tuple:
    """Search on a machine that holds up to `truth`, give or take `scatter`, and fails a run in `bad_luck` of cases."""
    runs, spent_s = [], 5.0
    while True:
        step = next_step(made, runs, spent_s)
        if not isinstance(step, Try):
            return step, len(runs), spent_s
        spent_s += made.takes_s(step.kind, step.rate)
        holds = step.rate <= truth * (1 + chance.gauss(0, scatter)) and chance.random() >= bad_luck
        runs.append(Tried(step.rate, step.kind, holds))


@pytest.mark.parametrize("mode", ExecutionMode)
@pytest.mark.parametrize("ratio", [0.1, 0.7, 1.0, 3.0, 40.0])
@pytest.mark.parametrize(("scatter", "bad_luck", "near"), [(0.0, 0.0, 0.021), (0.02, 0.0, 0.1), (0.02, 0.05, 0.15)])
def test_a_search_finds_the_rate_of_a_noisy_machine_within_its_budget(
    mode: ExecutionMode, ratio: float, scatter: float, bad_luck: float, near: float
) -> None:
    chance = random.Random(7)
    made = make_plan(mode, replace(OPEN, target_qps=3000.0 * ratio), 1.0, 1e9)
    ends = [searched(3000.0, made, chance, scatter, bad_luck) for _ in range(40)]
    assert max(count for _, count, _ in ends) <= MAX_RUNS
    assert max(spent_s for _, _, spent_s in ends) <= made.budget_s
    good = sum(isinstance(end, HighestRate) and abs(end.rate / 3000.0 - 1) <= near for end, _, _ in ends)
    assert good >= (26 if bad_luck else 34 if scatter else 40)


def test_a_search_that_was_cut_off_goes_on_where_it_stood() -> None:
    made, runs = plan(), []
    while isinstance(step := next_step(made, runs, 0.0), Try):
        again = next_step(made, list(runs), 0.0)
        assert again == step
        runs.append(Tried(step.rate, step.kind, step.rate <= 77.0))
    assert isinstance(step, HighestRate)
    assert 77.0 / 1.02 <= step.rate <= 77.0


# --- how long ---


@pytest.mark.parametrize(
    ("mode", "budget_s"), [(ExecutionMode.TEST, 60), (ExecutionMode.FAST, 300), (ExecutionMode.VALID, 1200)]
)
def test_each_execution_mode_has_a_budget(mode: ExecutionMode, budget_s: float) -> None:
    made = make_plan(mode, OPEN, 1000.0, 1e9)
    assert (made.budget_s, made.tolerance, made.estimate) == (budget_s, TOLERANCE, 700.0)
    assert made.confirmation.seconds > made.probe.seconds


@pytest.mark.parametrize("mode", ExecutionMode)
def test_a_run_is_long_enough_for_an_overload_to_show_where_the_budget_allows(mode: ExecutionMode) -> None:
    made = make_plan(mode, replace(OPEN, limit_ms=60.0), 1000.0, 1e9)
    assert made.probe.seconds >= 0.060 / TOLERANCE
    slow = make_plan(mode, replace(OPEN, limit_ms=20_000.0), 1000.0, 1e9)
    assert slow.probe.seconds == pytest.approx(slow.budget_s / 15)
    assert slow.confirmation.seconds == pytest.approx(slow.budget_s / 4)


def test_what_the_request_gives_is_kept_to() -> None:
    overrides = Overrides(limit_ms=800.0, target_qps=50.0, min_duration_ms=500, min_query_count=900)
    made = make_plan(ExecutionMode.TEST, overrides, 1000.0, 1e9)
    assert made.estimate == 50.0
    assert (made.probe, made.confirmation) == (Length(0.5, 900), Length(1.0, 900))


def test_fewer_queries_than_early_stopping_asks_for_are_not_taken_over() -> None:
    overrides = replace(OPEN, min_query_count=40)
    assert make_plan(ExecutionMode.TEST, overrides, 1000.0, 1e9).probe.queries == 459


def test_a_network_that_is_too_slow_for_the_budget_is_seen_before_the_first_run() -> None:
    queries = BOUNDS[ExecutionMode.TEST].probe.queries
    assert not first_step_fits(make_plan(ExecutionMode.TEST, OPEN, 10.0, 1e9), 6.0)
    assert first_step_fits(make_plan(ExecutionMode.TEST, OPEN, queries, 1e9), 6.0)


# --- late queries ---


def looked(count: LateCount, now_s: float, came: int, answered: int) -> int:
    """Look after `came` queries in all have come, the last ones just now."""
    count.came.extend([now_s] * (came - len(count.came)))
    return count.look(now_s, answered)


def test_what_is_not_answered_a_limit_after_it_came_is_late_and_counts_once() -> None:
    count = LateCount(rate=1.0, limit_s=1.0)  # a rate so low that only what came counts
    looks = [(0.0, 10, 0), (0.5, 20, 0), (1.0, 20, 4), (1.2, 20, 4), (1.5, 20, 9), (3.0, 20, 20)]
    assert [looked(count, *look) for look in looks] == [0, 0, 6, 6, 16, 16]


def test_queries_that_loadgen_is_behind_with_are_late_too() -> None:
    count = LateCount(rate=10_000.0, limit_s=0.1)
    late = [looked(count, second / 20, 250 * second, 250 * second) for second in range(1, 21)]  # half of what is due
    assert late[0] == 0
    assert late[-1] > 2000


def test_a_system_that_keeps_up_is_never_called_late() -> None:
    chance = random.Random(3)
    for rate in (50.0, 1000.0, 20_000.0):
        count, came, now_s = LateCount(rate, 0.05), 0, 0.0
        while now_s < 5.0:
            now_s += 0.05
            came += max(0, round(chance.gauss(rate * 0.05, math.sqrt(rate * 0.05))))
            assert looked(count, now_s, came, came) == 0


def test_latencies_are_those_of_what_was_answered() -> None:
    answered = Answered()
    came = array("d", [0.0, 0.1, 0.2, 0.3])
    assert answered.percentile_ms(came, 0.99) is None
    answered.at.extend([0.01, 0.12, 0.5])
    assert answered.percentile_ms(came, 0.3) == pytest.approx(20.0)
    assert answered.percentile_ms(came, 0.99) == pytest.approx(300.0)


def test_no_query_is_late_before_the_first_one_came() -> None:
    assert LateCount(rate=100.0, limit_s=0.1).look(1e6, 0) == 0


@pytest.mark.parametrize(
    ("queries", "percentile", "allowed"), [(459, 0.99, 5), (1000, 0.99, 10), (1001, 0.99, 11), (1000, 0.9, 100)]
)
def test_a_percentile_allows_so_many_late_queries(queries: int, percentile: float, allowed: int) -> None:
    assert allowed_late(queries, percentile) == pytest.approx(allowed, abs=1)
    assert allowed_late(queries, percentile) >= (1 - percentile) * queries


def test_a_run_has_as_many_queries_as_it_asks_for_or_as_come_in_its_time() -> None:
    assert most_queries(10.0, 1.0, 500) == 500
    assert 1000 < most_queries(1000.0, 1.0, 500) < 1200


# --- find.json ---

CONFIG = parse_run_config(
    json.dumps(request(scenario="Server", find=True)), "run.json", KnownNames(models=("digits",), backends=("null",))
)
RECORD = Probe(
    number=1, kind="probe", rate=50.0, because="the estimate", verdict="VALID", reason="", took_s=1.0, duration_s=0.9,
    queries=45, late=0, p50_ms=1.1, p99_ms=2.0, is_hopeless=False, folder="probes/01",
)  # fmt: skip


def content(**changes: object) -> dict:
    from dataclasses import asdict

    return {
        "format": 1, "is_finished": False, "inputs": inputs_of(CONFIG, 2, "6.0.17"), "model_sha256": {"model": "ab"},
        "shape": {"batch_size": 4, "instances": 2, "threads": 1}, "spent_s": 7.5, "probes": [asdict(RECORD)], **changes,
    }  # fmt: skip


def test_an_unfinished_search_with_the_same_inputs_is_gone_on_with(tmp_path) -> None:
    write(tmp_path, content())
    earlier = unfinished(tmp_path, inputs_of(replace(CONFIG, output_dir=tmp_path), 2, "6.0.17"))
    assert earlier is not None
    assert (earlier.probes, earlier.spent_s, earlier.shape["batch_size"]) == ((RECORD,), 7.5, 4)
    assert earlier.probes[0].tried() == Tried(50.0, PROBE, True)


@pytest.mark.parametrize(
    "changes",
    [{"is_finished": True}, {"format": 9}, {"inputs": {}}, {"probes": []}, {"probes": [{"number": 1}]}, {"shape": {}}],
)
def test_any_other_find_json_starts_a_new_search(tmp_path, changes: dict) -> None:
    write(tmp_path, content(**changes))
    assert unfinished(tmp_path, inputs_of(CONFIG, 2, "6.0.17")) is None


@pytest.mark.parametrize("changes", [{"target_latency_ms": 3.0}, {"batch_size": 2}, {"precision": "int8"}])
def test_another_request_is_another_search(tmp_path, changes: dict) -> None:
    write(tmp_path, content())
    assert unfinished(tmp_path, inputs_of(replace(CONFIG, **changes), 2, "6.0.17")) is None


def test_no_find_json_or_a_damaged_one_starts_a_new_search(tmp_path) -> None:
    assert unfinished(tmp_path, {}) is None
    (tmp_path / record.FILE).write_text("{")
    assert unfinished(tmp_path, {}) is None


@pytest.mark.parametrize(
    ("verdict", "holds"),
    [(Verdict.VALID, True), (Verdict.INVALID, False), (Verdict.ABANDONED, False), (Verdict.OUT_OF_TIME, None)],
)
def test_a_run_out_of_time_has_no_verdict(verdict: Verdict, holds: bool | None) -> None:
    assert verdict.holds is holds
