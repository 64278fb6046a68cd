"""How often equal and unequal sides are judged ok, slower or unknown, counted: docs/howto/compare-in-a-pipeline.md has
the table."""

import math
import random
import re
from pathlib import Path

import pytest
from recipe_engine.provenance import slowdown
from recipe_engine.provenance.record import Quantity
from recipe_engine.provenance.slowdown import State, judge, verdict

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/compare-in-a-pipeline.md"
ALLOWED, PAIRS = 5.0, 500

SCATTERS = {
    "quiet": (0.02, 0.01, 0.01, 0.03, 0.03, 0.1, 0.15),
    "busy": (0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.4),
    "useless": (0.6,) * 7,
}
"""The relative scatter of the seven metrics of a language model's run (throughput, TTFT and TPOT at p50, p90, p99)."""


def counts(machine: str, factor: float, repeats: int) -> dict[State, int]:
    """The verdicts on so many pairs of sides whose metrics scatter alike, those of B `factor` times as high (worse)."""
    chance, found = random.Random(37), dict[State, int]({"ok": 0, "slower": 0, "unknown": 0})
    for _ in range(PAIRS):
        rows = []
        for number, scatter in enumerate(SCATTERS[machine]):
            sides = [
                [Quantity(100 * times * math.exp(chance.gauss(0, scatter)), "ms", False) for _ in range(repeats)]
                for times in (1.0, factor)
            ]
            rows.append(slowdown._judge("x", f"m{number}", sides, ALLOWED))
        found[verdict(slowdown._corrected(rows, ALLOWED))] += 1
    return found


def shown() -> list[tuple[str, float, int, dict[str, int]]]:
    """The rows of the page: machine, factor, repeats and verdicts."""
    pattern = r"^\| (\w+) \| (\d+) % \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$"
    rows = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [
        (machine, 1 + int(more) / 100, int(n), {"ok": int(ok), "slower": int(slower), "unknown": int(unknown)})
        for machine, more, n, ok, slower, unknown in rows
    ]


ROWS = shown()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]:g}-{row[2]}")
def test_the_page_shows_the_counted_verdicts(row: tuple[str, float, int, dict[str, int]]) -> None:
    machine, factor, repeats, expected = row
    assert counts(machine, factor, repeats) == expected


def test_equal_sides_are_seldom_unknown_and_very_slow_ones_never_ok() -> None:
    cases = {(machine, factor, repeats): found for machine, factor, repeats, found in ROWS}
    assert len(cases) == len(ROWS) == len(SCATTERS) * 3 * 2
    for (machine, factor, repeats), found in cases.items():
        assert sum(found.values()) == PAIRS
        if factor == 1.0:
            assert found["slower"] <= PAIRS / 100, (machine, repeats)
            assert machine != "quiet" or found["ok"] >= 0.98 * PAIRS, repeats
        if factor == 1.75:
            assert found["ok"] <= PAIRS / 100, (machine, repeats)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ([100, 101, 99, 102, 98, 100], [100, 99, 101, 98, 102, 100], "ok"),
        ([100, 140, 60, 120, 80, 100], [90, 130, 55, 125, 85, 95], "ok"),  # noisy, and near
        ([100, 101, 99, 102, 98, 100], [90, 91, 89, 92, 88, 90], "slower"),
        ([100, 110, 90, 105, 95, 100], [93, 103, 84, 98, 88, 93], "ok"),  # 7 %: more than allowed, not far
        ([100, 140, 60, 120, 80, 100], [57, 85, 56, 66, 43, 99], "unknown"),  # -39 % on a busy machine
        ([100, 160, 40, 150, 55, 100], [57, 120, 30, 90, 35, 50], "unknown"),
        ([100, 190, 20, 170, 30, 100], [85, 195, 10, 180, 20, 75], "ok"),  # plain chance
        ([100, 300, 10, 280, 12, 100], [57, 310, 11, 290, 13, 50], "unknown"),  # chance, but never "no slowdown"
        ([100, 60, 90], [57, 65, 40], "unknown"),
        ([100, 96, 99], [57, 58, 55], "slower"),
    ],
)
def test_a_far_difference_that_cannot_be_proven_is_unknown(
    before: list[float], after: list[float], state: State
) -> None:
    sides = [[Quantity(value, "1/s", True) for value in side] for side in (before, after)]
    found = judge("one", "speed", sides, ALLOWED)
    assert found.state == state, found
    assert state != "unknown" or found.reason == slowdown.UNPROVEN.format(ALLOWED)
