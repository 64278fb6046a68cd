"""Whether B is slower than A, for pipelines: never by chance, and never silently where it cannot be told."""

import itertools
import json
import math
import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from made_records import row
from recipe_engine.provenance import slowdown, slowdown_text
from recipe_engine.provenance.diff import diff_action
from recipe_engine.provenance.record import Quantity, ResultRecord, Slowing, parse_record, sealed
from recipe_engine.provenance.slowdown import Judged, chance_of, judge, judge_all, verdict
from recipe_engine.rules.errors import RequestError

SHORT = "less than 60 s were measured"


def quantities(values: list[float], **more: Any) -> list[Quantity]:
    return [Quantity(value, "1/s", **{"higher_is_better": True, **more}) for value in values]


def judged(before: list[float], after: list[float], allowed: float = 5.0, **more: Any) -> Judged:
    return judge("one", "speed", [quantities(before, **more), quantities(after, **more)], allowed)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (4, 3)])
def test_the_chance_is_that_of_all_ways_to_deal_the_ranks(sizes: tuple[int, int]) -> None:
    values = [random.Random(7).choice([1.0, 2.0, 2.5, 3.0, 4.0]) for _ in range(sum(sizes))]  # with ties
    before, after = values[: sizes[0]], values[sizes[0] :]
    ranks = [sum((other < value) + (other == value) / 2 for other in values) for value in values]
    deals = list(itertools.combinations(ranks, sizes[1]))
    expected = sum(sum(deal) >= sum(ranks[sizes[0] :]) - 1e-9 for deal in deals) / len(deals)
    assert chance_of(before, after) == pytest.approx(expected)
    assert chance_of([1, 2, 3], [4, 5, 6]) == 1 / math.comb(6, 3)


@pytest.mark.parametrize(
    ("before", "after", "more", "state", "words"),
    [
        ([100, 101, 99], [80, 81, 79], {}, "slower", "beyond 5 %"),
        ([100, 101, 99], [96, 97, 98], {}, "ok", ""),  # 3 % are allowed
        ([100, 101, 99], [120, 121, 119], {}, "ok", ""),
        ([100, 140, 60], [92, 130, 55], {}, "ok", "within the spread of the repeats"),
        ([100, 101, 99], [80, 81, 79], {"higher_is_better": False}, "ok", ""),
        ([100, 101, 99], [120, 121, 119], {"higher_is_better": False}, "slower", "beyond 5 %"),
        ([100, 101, 99], [80, 81, 79], {"not_judged_alone": (SHORT,)}, "slower", ""),
        ([100, 101, 99], [80, 81, 79], {"not_judged": ("other load",)}, "unknown", "other load (A and B)"),
        ([100], [80], {"not_judged_alone": (SHORT,), "spread_percent": 1.0}, "unknown", SHORT),
        ([100], [80], {}, "unknown", "no spread was measured: repeat each side 3 times"),
        ([100], [80], {"spread_percent": 2.0}, "slower", "the spread of 2.83 %"),
        ([100], [93], {"spread_percent": 2.0}, "unknown", "within the spread of single runs"),
        ([100], [97], {"spread_percent": 2.0}, "ok", ""),
        ([100, 110], [80, 88], {}, "slower", "beyond 5 %"),
        ([100, 140], [80, 112], {}, "unknown", "within the spread of single runs"),
        ([0], [80], {"spread_percent": 2.0}, "unknown", "the value of A is 0"),
        ([0], [0], {"spread_percent": 2.0}, "ok", ""),
    ],
)
def test_a_slowdown_counts_only_beyond_what_is_allowed_and_beyond_the_spread(
    before: list[float], after: list[float], more: dict[str, Any], state: str, words: str
) -> None:
    found = judged(before, after, **more)
    assert found.state == state, found
    assert words in found.reason


def test_ten_repeats_of_the_same_server_are_never_slower_and_injected_slowdowns_always_are() -> None:
    chance = random.Random(11)

    def repeats(factor: float) -> list[float]:
        return [100 * factor * chance.gauss(1, 0.015) for _ in range(10)]

    lower = {"higher_is_better": False}
    assert {judged(repeats(1), repeats(1), **lower).state for _ in range(200)} == {"ok"}
    assert {judged(repeats(1), repeats(factor), **lower).state for factor in (1.3, 1.1) for _ in range(50)} == {
        "slower"
    }


BUSY, HOT = "other programs used {} of the CPU", "heat slowed the CPU down for {} of the time"


def slowed(values: list[float], percents: list[float | None], words: str = BUSY) -> list[Quantity]:
    """Throughputs, with what slowed each of them down; None: nothing did."""
    causes = [() if percent is None else (Slowing(words, f"{percent:g} %", percent),) for percent in percents]
    return [Quantity(value, "1/s", True, slowed_by=cause) for value, cause in zip(values, causes, strict=True)]


FIVE, LOWER = [100.0, 101.0, 99.0, 102.0, 98.0], [80.0, 81.0, 79.0, 82.0, 78.0]
QUIET: list[float | None] = [None] * 5


@pytest.mark.parametrize(
    ("before", "after", "state", "words"),
    [
        (slowed(FIVE, [70, 60, 65, 72, 68]), slowed(FIVE, [70, 60, 65, 72, 68]), "ok", "were slowed down alike"),
        (slowed(FIVE, [70] * 5), slowed(LOWER, [71] * 5), "slower", "both sides were slowed down alike"),
        (slowed(FIVE, [70] * 5), slowed(FIVE, QUIET), "unknown", "programs used 70 % of the CPU (A): repeat both"),
        (slowed(FIVE, [70] * 5), slowed(LOWER, QUIET), "slower", "other programs used 70 % of the CPU (A)"),
        (slowed(FIVE, QUIET), slowed(LOWER, [70] * 5), "unknown", "of the CPU (B): repeat both sides on a quiet"),
        (slowed(FIVE, QUIET), slowed(FIVE, [70] * 5), "ok", "other programs used 70 % of the CPU (B)"),
        (slowed(FIVE, [20] * 5), slowed(LOWER, [70] * 5), "unknown", "(B): repeat both sides"),
        (slowed(FIVE, [20] * 5), slowed(FIVE, [20] * 5, HOT), "unknown", "heat slowed"),
        (slowed(FIVE, [20] * 5), slowed(LOWER, [20] * 5, HOT), "unknown", "heat slowed"),
        (slowed(FIVE, QUIET), slowed([*LOWER[:2], 101.0, 99.0, 100.0], [70, 70, None, None, None]), "ok",
         "2 of 5 repeats of B left out"),
        (slowed([100.0], [70]), slowed([99.0], [70]), "unknown", "no spread was measured"),
    ],
)  # fmt: skip
def test_what_slowed_a_side_down_speaks_against_one_verdict_only(
    before: list[Quantity], after: list[Quantity], state: str, words: str
) -> None:
    found = judge("one", "speed", [before, after], 5.0)
    assert found.state == state, found
    assert found.reason.count(words) == 1, found.reason


def test_a_worse_median_within_the_spread_is_not_called_no_slowdown() -> None:
    rows = [judge("one", "speed", [quantities([100.0, 60.0, 90.0]), quantities([80.0, 99.0, 50.0])], 5.0)]
    assert slowdown_text.headline(rows, 5.0) == (
        "B is not shown to be slower than A by more than 5 % (1 metric, 1 of them with a worse median, "
        "within the spread)"
    )


def test_a_reason_that_another_one_contains_is_not_repeated() -> None:
    row = judge("one", "speed", [quantities([100.0])] * 2, 5.0)._replace(state="unknown", reason="short (A)")
    rows = [row, row._replace(reason="too slow (A), short (A)"), row._replace(reason="INVALID (B)")]
    assert "cannot be judged: too slow (A), short (A), INVALID (B). To get" in slowdown_text.headline(rows, 5.0)


def test_what_cannot_be_proven_is_measured_again_with_twice_the_repeats() -> None:
    before, after = [100.0, 140, 60, 120, 80, 100], [57.0, 85, 56, 66, 43, 99]
    rows = [judged(before, after)]
    assert slowdown_text.headline(rows, 5.0) == (
        "1 metric of 1 cannot be judged: far worse than 5 %, but the spread of the repeats is too wide to prove it. "
        "To get a verdict, make both sides with --repeats=12 on a quieter machine"
    )
    ((case,),) = (ElementTree.fromstring(slowdown_text.junit(rows)),)
    assert case.find("error") is not None and case.find("failure") is None
    assert "inconclusive" in slowdown_text.markdown(rows, 5.0)
    rows = [judged(before * 5, [one * 1.6 for one in after] * 5)]
    assert rows[0].state == "ok"
    many = [rows[0]._replace(state="unknown", reason=slowdown.UNPROVEN.format(5.0))]
    assert slowdown_text.headline(many, 5.0).endswith("longer runs (--min_duration_ms), or on a quieter machine")


def test_a_busy_machine_compared_with_itself_is_the_same_on_one_list_and_never_slower() -> None:
    chance = random.Random(5)

    def repeats() -> list[Quantity]:
        loads = [chance.uniform(60, 75) for _ in range(5)]
        return slowed([100 * (1.6 - load / 100) * chance.gauss(1, 0.03) for load in loads], list(loads))

    found = [judge("one", "speed", [repeats(), repeats()], 5.0).state for _ in range(200)]
    assert "slower" not in found and found.count("ok") > 150  # the medians of the load differ by chance in some


RECORDED = {
    "base": (
        (61.7, 65.7, 61.8, 66.5, 61.7, 62.3, 62.0, 62.3, 62.0, 62.3),
        (20.02, 19.96, 20.01, 19.94, 20.03, 20.01, 20.01, 20.01, 20.02, 20.01),
        (91.4, 91.0, 92.8, 92.8, 93.6, 92.7, 89.0, 91.1, 92.1, 15.8),
    ),
    "same": (
        (62.6, 67.2, 61.9, 64.3, 61.8, 61.8, 67.3, 65.4, 65.1, 62.3),
        (20.06, 20.03, 20.01, 19.97, 20.04, 20.0, 19.94, 20.04, 20.03, 20.04),
        (90.8, 92.1, 93.8, 91.0, 90.5, 92.1, 91.5, 93.6, 90.2, 92.1),
    ),
    "slower": (
        (90.8, 80.3, 82.3, 81.9, 83.5, 84.5, 80.3, 81.4, 82.5),
        (21.74, 22.09, 22.01, 22.04, 21.93, 21.96, 22.07, 22.04, 22.04),
        (94.5, 92.7, 92.2, 92.9, 92.1, 94.3, 93.6, 93.2, 93.3),
    ),
}
"""TTFT p50 and TPOT p50 in ms, and the percent of the CPU that other programs used: runs of 1 s against a paced server
with 60 and 20 ms, again, and with 30 % and 10 % more, four requests in flight, on a busy machine with 2 cores
(2026-11-29)."""


def recorded(name: str) -> list[list[Quantity]]:
    *metrics, loads = RECORDED[name]
    return [[one._replace(higher_is_better=False) for one in slowed(list(values), list(loads))] for values in metrics]


@pytest.mark.parametrize(("name", "states"), [("base", "ok"), ("same", "ok"), ("slower", "slower")])
def test_recorded_sweeps_of_a_paced_server_on_a_busy_machine_are_told_apart(name: str, states: str) -> None:
    pairs = zip(("TTFT", "TPOT"), recorded("base"), recorded(name), strict=True)
    assert [judge("one", metric, [before, after], 5.0).state for metric, before, after in pairs] == [states] * 2


def synthetic(chance: random.Random, factor: float, mean: float, scatter: float) -> dict[str, list[Quantity]]:
    """Ten repeats with the scatter of the recorded ones, twice as wide, and other load, which slows TTFT down."""
    loads = [min(95.0, max(0.0, chance.gauss(mean, scatter))) for _ in range(10)]
    percents = [load if load >= 5 else None for load in loads]
    found = {}
    for metric, values in zip(("TTFT", "TPOT"), RECORDED["same"][:2], strict=True):
        noise = [1 + 2 * (chance.choice(values) / values[0] - 1) for _ in loads]
        slowing = [1 + (0.2 if metric == "TTFT" else 0.02) * load / 100 for load in loads]
        made = [100 * factor * one * other for one, other in zip(noise, slowing, strict=True)]
        found[metric] = [one._replace(higher_is_better=False) for one in slowed(made, percents)]
    return found


@pytest.mark.parametrize(("mean", "scatter"), [(0.0, 0.0), (10.0, 10.0), (30.0, 30.0), (90.0, 5.0)])
def test_of_a_thousand_pairs_of_ten_repeats_of_the_same_server_none_is_slower(mean: float, scatter: float) -> None:
    chance, states = random.Random(29), {"ok": 0, "unknown": 0, "slower": 0}
    for _ in range(250):
        drift = chance.uniform(0, scatter)  # the machine is busier at one of the two times
        sides = synthetic(chance, 1.0, mean, scatter), synthetic(chance, 1.0, mean + drift, scatter)
        rows = [slowdown._judge("one", metric, [side[metric] for side in sides], 5.0) for metric in sides[0]]
        states[verdict(slowdown._corrected(rows, 5.0))] += 1
    assert states["slower"] == 0 and states["ok"] >= 240, states
    sides = synthetic(chance, 1.0, mean, scatter), synthetic(chance, 1.15, mean, scatter)
    assert {judge("one", metric, [side[metric] for side in sides], 5.0).state for metric in sides[0]} == {"slower"}


def side_of(chance: random.Random, metrics: int, count: int) -> list[ResultRecord]:
    """Repeats with independent metrics, all drawn from the same distribution."""
    rows = [{f"m{number}": {"value": chance.gauss(100, 5), "unit": "ms", "higher_is_better": False}
             for number in range(metrics)} for _ in range(count)]  # fmt: skip
    return [read({"exact": {"valid": True}, "within": {}, "further": one}) for one in rows]


def test_more_metrics_give_no_more_false_alarms() -> None:
    chance, alarms, rounds = random.Random(3), 0, 60
    for _ in range(rounds):
        sides = [{"x": side_of(chance, 12, 7)} for _ in range(2)]
        alarms += verdict(judge_all(sides, 0.0)) == "slower"
    assert alarms <= 3  # without a correction: 12 metrics of 1 % each, 7 alarms


def test_few_repeats_show_only_what_is_far_beyond_their_spread() -> None:
    lower = {"higher_is_better": False}
    near, far = (
        judged([22.1, 22.6, 23.0], [25.0, 26.0, 27.1], **lower),
        judged([22.1, 22.6, 23.0], [60.0, 61, 62], **lower),
    )
    assert (near.state, far.state) == ("unknown", "slower")
    assert "3 repeats are too few to rule out chance" in near.reason
    chance = random.Random(17)
    alarms = 0
    for _ in range(60):
        sides = [{"x": side_of(chance, 28, 3)} for _ in range(2)]
        alarms += verdict(judge_all(sides, 0.0)) == "slower"
    assert alarms <= 6  # all of B worse than all of A in 5 % of 28 metrics: 76 % of the comparisons


def test_holm_refuses_what_one_metric_alone_would_show() -> None:
    quiet, worse = [100.0, 101, 102, 103, 104, 105, 106], [103.5, 104.5, 105.5, 106.5, 107.5, 108.5, 109.5]
    lower = {"higher_is_better": False}
    assert judged(quiet, worse, 0.0, **lower).state == "slower"

    def side(values: list[float], others: int) -> dict[str, list[ResultRecord]]:
        names = ["TTFT", *(f"m{number}" for number in range(others))]
        rows = [{name: {"value": value if name == "TTFT" else 50.0 + place, "unit": "ms", **lower} for name in names}
                for place, value in enumerate(values)]  # fmt: skip
        return {"x": [read({"exact": {"valid": True}, "within": {}, "further": one}) for one in rows]}

    found = judge_all([side(quiet, 9), side(worse, 9)], 0.0)
    assert verdict(found) == "ok"
    assert verdict(judge_all([side(quiet, 0), side(worse, 0)], 0.0)) == "slower"


# --- folders ---


def outcome(speed: float = 100.0, ttft: float | None = 40.0, **exact: Any) -> dict[str, Any]:
    within = {"throughput": {"value": speed, "unit": "1/s", "higher_is_better": True, "not_judged_alone": [SHORT]}}
    further = {} if ttft is None else {"TTFT p99": {"value": ttft, "unit": "ms", "higher_is_better": False}}
    return {"exact": {"valid": True, "errors": 0, "accuracy acc": 99.0, **exact}, "within": within, "further": further}


def write(folder: Path, *outcomes: dict[str, Any], name: str = "net/Offline/performance") -> Path:
    for number, one in enumerate(outcomes):
        place = folder / f"repeat-{number}"
        place.mkdir(parents=True)
        (place / "record.json").write_text(json.dumps(sealed(row(name=name, outcome=one))))
    return folder


def answer(a: Path | str, b: Path | str, **more: Any) -> dict[str, Any]:
    return diff_action({"artifact": str(a), "artifacts": [str(b)], "max_slowdown": "5%", **more})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "a", outcome(100, 40), outcome(102, 41), outcome(98, 39))


def test_metrics_and_scores_of_repeats_are_judged(tmp_path: Path, base: Path) -> None:
    same = write(tmp_path / "b", outcome(101, 40), outcome(99, 40), outcome(100, 41))
    found = answer(base, same)
    assert (found["return"], found["verdict"]) == (0, "ok")
    assert [one["metric"] for one in found["metrics"]] == ["TTFT p99", "accuracy acc", "throughput"]
    worse = write(tmp_path / "c", outcome(101, 52), outcome(99, 53), outcome(100, 54))
    found = answer(base, worse)
    assert (found["return"], found["verdict"]) == (1, "slower")
    assert found["error"] == "B is worse than A by more than 5 %: net/Offline/performance TTFT p99"


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"accuracy acc": 98.9}, 0, ""),
        ({"accuracy acc": 97.0}, 1, "accuracy acc"),
        ({"accuracy passed": True}, 0, ""),
        ({"valid": False}, 2, "cannot be judged"),
    ],
)
def test_a_lost_score_is_worse_and_an_invalid_run_cannot_be_compared(
    tmp_path: Path, base: Path, changed: dict[str, Any], code: int, words: str
) -> None:
    other = write(tmp_path / "b", *(outcome(speed, 40, **changed) for speed in (100, 101, 99)))
    found = answer(base, other)
    assert found["return"] == code
    assert words in found.get("error", "")


def test_what_was_passed_must_stay_passed(tmp_path: Path) -> None:
    sides = [{"x": [read(outcome(**{"accuracy passed": value}))] * 3} for value in (True, False)]
    found = {one.metric: one for one in judge_all(sides, 5.0)}
    assert (found["accuracy passed"].state, found["accuracy passed"].reason) == ("slower", "no longer true")
    assert verdict(judge_all(sides[::-1], 5.0)) == "ok"


def read(one: dict[str, Any]) -> ResultRecord:
    return parse_record(json.dumps(sealed(row(outcome=one))), "record.json")


def test_several_folders_are_repeats_and_one_folder_counts_once(tmp_path: Path, base: Path) -> None:
    folders = ",".join(str(base / f"repeat-{number}") for number in range(3))
    found = answer(f"{folders},{base}", base)
    assert [len(one["before"]) for one in found["metrics"] if one["metric"] == "throughput"] == [3]
    assert found["return"] == 0


def test_points_of_a_sweep_are_no_repeats_of_one_measurement(tmp_path: Path) -> None:
    def sweep(folder: str, ttfts: dict[int, float]) -> Path:
        for number, ttft in ttfts.items():
            for repeat in range(3):
                place = tmp_path / folder / f"{number}-{repeat}"
                place.mkdir(parents=True)
                chosen = {"value": str(number), "origin": "user"}
                measured = {"value": 10 + repeat, "origin": "warm-up estimate"}
                settings = {"max_in_flight": chosen, "target_qps": measured, "model_path": {**chosen, "value": repeat}}
                content = row(
                    name="own/Offline/performance", settings=settings, outcome=outcome(100, ttft + repeat / 10)
                )
                (place / "record.json").write_text(json.dumps(sealed(content)))
        return tmp_path / folder

    base = sweep("base", {1: 40.0, 4: 80.0, 16: 160.0})
    found = answer(base, sweep("new", {1: 40.0, 4: 104.0, 16: 160.0}))
    assert found["return"] == 1
    assert {len(one["before"]) for one in found["metrics"] if one["metric"] == "TTFT p99"} == {3}
    (worse,) = [one for one in found["metrics"] if one["state"] == "slower"]
    assert (worse["name"], worse["metric"]) == ("own/Offline/performance max_in_flight=4", "TTFT p99")
    assert answer(base, base)["return"] == 0
    alone = [f"{tmp_path / 'base' / f'{number}-0'}" for number in (1, 4)]
    found = diff_action({"artifact": str(tmp_path / "base" / "1-0"), "artifacts": [alone[1]]})
    assert len(found["results"]) == 1, "two single results are compared as asked"
    one_point = answer(base, sweep("one", {4: 80.0}))
    assert one_point["return"] == 2 and "missing in B" in {one["reason"] for one in one_point["metrics"]}


def test_other_prompts_are_another_measurement(tmp_path: Path) -> None:
    def one(folder: str, digest: str, **more: Any) -> Path:
        for number in range(3):
            place = tmp_path / folder / f"{digest}-{number}"
            place.mkdir(parents=True)
            settings = {"prompts": {"value": digest, "origin": "data"}} | more
            content = row(name="own/Offline/performance", settings=settings, outcome=outcome(100 + number))
            (place / "record.json").write_text(json.dumps(sealed(content)))
        return tmp_path / folder

    base, same, other = one("a", "11111111"), one("b", "11111111"), one("c", "22222222")
    assert answer(base, same)["return"] == 0
    found = answer(base, other)
    assert found["return"] == 2 and "A and B measured other prompts: give both the same" in found["error"]
    both = one("a", "22222222")  # two traces in one sweep
    found = answer(both, both)
    assert found["return"] == 0
    assert {one["name"] for one in found["metrics"]} == {
        f"own/Offline/performance prompts={digest}" for digest in ("11111111", "22222222")
    }


def test_a_model_that_replaces_another_one_is_compared_with_it(tmp_path: Path) -> None:
    def one(folder: str, digest: str, speed: float) -> Path:
        return write(tmp_path / folder, *(outcome(speed + number) for number in range(3)),
                     name=f"own-onnx-{digest}/Offline/performance")  # fmt: skip

    base, slower = one("o", "0a1b2c3d", 100), one("n", "ffffffff", 50)
    found = answer(base, slower)
    assert found["return"] == 1
    assert {one["name"] for one in found["metrics"]} == {"own-onnx/Offline/performance"}
    several = f"{slower},{one('m', '12345678', 50)}"
    assert answer(base, several)["metrics"][0]["reason"] == "missing in B", "two models could have replaced it"


def test_a_missing_result_or_metric_cannot_be_told(tmp_path: Path, base: Path) -> None:
    other = write(tmp_path / "b", outcome(), name="net/Server/performance")
    assert answer(base, other)["return"] == 2
    assert answer(base, other)["metrics"][0]["reason"] == "missing in B"
    assert answer(base, other)["error"].endswith("make both sides with --repeats=5 under the same load")
    assert [slowdown.fewest_repeats(metrics) for metrics in (1, 8, 28)] == [5, 6, 7]
    other = write(tmp_path / "c", *(outcome(100, None) for _ in range(3)))
    found = answer(base, other)
    assert found["return"] == 2
    assert "not every result has TTFT p99" in [one["reason"] for one in found["metrics"]]
    informative = {"energy per sample": {"value": 3.0, "unit": "J"}}
    one = outcome()
    with_energy = write(tmp_path / "e", *({**one, "further": {**one["further"], **informative}} for _ in range(3)))
    assert answer(with_energy, base)["return"] == 0, "what is not judged need not be there"
    many = write(tmp_path / "d", *(outcome() for _ in range(slowdown.MAX_REPEATS + 1)))
    assert "at most 30 are compared" in answer(base, many)["metrics"][0]["reason"]


def test_a_pipeline_gets_junit_and_markdown(tmp_path: Path, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "net|<&/Offline"
    a = write(tmp_path / "x", *(outcome(speed) for speed in (100, 101, 99)), name=name)
    b = write(tmp_path / "y", *(outcome(speed) for speed in (80, 81, 79)), name=name)
    files = {"junit": str(tmp_path / "j.xml"), "markdown": str(tmp_path / "m.md")}
    assert answer(a, b, **files)["return"] == 1
    suite = ElementTree.parse(files["junit"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    (failed,) = [case for case in suite if case.find("failure") is not None]
    assert failed.get("name") == "throughput, 1/s"
    lines = (tmp_path / "m.md").read_text().splitlines()
    assert lines[0].startswith("**B is worse than A by more than 5 %") and "\x1b" not in "".join(lines)
    assert {line.replace("\\|", "").count("|") for line in lines[2:7]} == {7}
    assert lines[8].startswith("WORSE: beyond 5 %") and lines[8].endswith("net|<&/Offline throughput")
    with pytest.raises(RequestError) as caught:
        answer(a, b, out="con")
    assert caught.value.code == 1
    assert "80 ±1.2 % (n=3)" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["-1", "x", "nan", "5 % or so"])
def test_a_wrong_limit_is_refused(base: Path, given: str) -> None:
    with pytest.raises(RequestError, match=f"--max_slowdown: found '{given}'; allowed: a number of percent"):
        answer(base, base, max_slowdown=given)
    with pytest.raises(RequestError, match="--max_slowdown has no value; allowed: a number of percent"):
        answer(base, base, max_slowdown="")
    with pytest.raises(RequestError, match=r"--junit: found '.*'; allowed: a file in an existing folder"):
        answer(base, base, junit=str(base))
    with pytest.raises(RequestError, match="--junit only applies with --max_slowdown"):
        diff_action({"artifact": str(base), "artifacts": [str(base)], "junit": "a.xml"})
