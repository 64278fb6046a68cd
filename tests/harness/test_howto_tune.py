"""docs/howto/tune.md: its numbers are those of the harness, its inputs those of the recipes."""

import re
from pathlib import Path

import pytest
from recipe_loader import recipe_meta

from crowdperf.harness.find import plans, session
from crowdperf.harness.runner import shape_search
from crowdperf.logs.rates import LONGER_PART, LOWER_PART
from crowdperf.rules.names import ExecutionMode
from crowdperf.rules.query_counts import SERVER_QUERY_COUNT

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "howto" / "tune.md").read_text(encoding="utf-8").split())
RECIPES = ("run-mlperf-inference", "tune-system")
OF_NVIDIA = {"min_duration"}

budgets = [f"{plans.BOUNDS[mode].budget_s:,.0f} s" for mode in ExecutionMode]
NUMBERS = {
    shape_search._GAIN: f"only if it is at least {shape_search._GAIN - 1:.0%} faster".replace("%", " %"),
    shape_search.SERVER_BATCH_OF_LIMIT: {0.25: "at most a quarter of the latency limit"}[
        shape_search.SERVER_BATCH_OF_LIMIT
    ],
    LOWER_PART: {0.5: "Server at half the rate"}[LOWER_PART],
    LONGER_PART: f"Offline at {LONGER_PART:g} times it",
    session.OFFLINE_PART: f"{session.OFFLINE_PART:g} times the rate of the last run is enough",
    session.STREAM_PART: f"{session.STREAM_PART:g} times the median is enough",
    plans.TOLERANCE: f"halves the gap to {plans.TOLERANCE:.0%}".replace("%", " %"),
    plans.MIN_QUERIES: f"A Server run needs {plans.MIN_QUERIES} queries to be VALID",
    budgets[0]: f"budget is {budgets[0]}, {budgets[1]} or {budgets[2]} by `--execution_mode`",
}


@pytest.mark.parametrize("words", NUMBERS.values())
def test_the_page_says_what_the_harness_does(words: str) -> None:
    assert words in PAGE
    assert plans.MIN_QUERIES <= SERVER_QUERY_COUNT


def test_every_input_of_the_page_is_one_of_the_recipes() -> None:
    inputs = set(OF_NVIDIA)
    for recipe in RECIPES:
        inputs |= set(recipe_meta(recipe)["input_description"])
    named = set(re.findall(r"`--(\w+)", PAGE))
    assert {"batch_size", "find", "server_target_qps"} <= named
    assert named <= inputs
