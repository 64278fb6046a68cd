"""Energy and cost: what is counted, and that every place shows the same values."""

import pytest

from crowdperf.logs.efficiency import (
    METRICS,
    Work,
    cost_of,
    efficiency_lines,
    efficiency_page,
    efficiency_values,
    energy_per_work,
)

ENERGY = {"method": "RAPL of package-0", "is_requested": False, "mean_w": 80.0, "idle_w": 20.5, "idle_s": 2.0,
          "j_per_sample": 2.0, "j_per_output_token": 0.25, "problems": []}  # fmt: skip
COST = {"price_per_hour": 2.5, "per_million_samples": 7.0, "per_million_output_tokens": None}


@pytest.mark.parametrize(
    ("result", "work"),
    [
        ({"query_count": 1, "samples_per_query": 374770}, Work(374770, None)),  # Offline
        ({"query_count": 300, "samples_per_query": 8}, Work(2400, None)),
        ({"query_count": None, "generated_query_count": 40, "samples_per_query": 1}, Work(40, None)),
        ({"query_count": 9, "text": {"tally": {"completed": 7, "tokens_out": 70}}}, Work(7, 70)),
        ({"samples_per_query": 8}, Work(0, None)),
        ({}, Work(0, None)),
    ],
)
def test_what_was_answered_is_counted(result, work) -> None:
    assert Work.of(result) == work


def test_joules_and_cost_are_divided_by_what_was_answered() -> None:
    assert energy_per_work(90.0, Work(9, 45)) == {"j_per_sample": 10.0, "j_per_output_token": 2.0}
    assert energy_per_work(None, Work(9, 45)) == {"j_per_sample": None, "j_per_output_token": None}
    assert energy_per_work(90.0, Work(0, None)) == {"j_per_sample": None, "j_per_output_token": None}
    found = cost_of(3.6, 1000.0, Work(500, 50_000))  # 1.0 in all
    assert found["per_million_samples"] == pytest.approx(2000.0)
    assert found["per_million_output_tokens"] == pytest.approx(20.0)


def test_each_metric_is_found_in_a_result_and_shown() -> None:
    result = {"energy": ENERGY, "cost": COST}
    names = {metric.name: value for metric, value in efficiency_values(result)}
    assert len(names) == 5 and names["energy per sample"] == 2.0 and names["cost per million samples"] == 7.0
    energy, cost = efficiency_lines(result)
    told = "energy per sample 2 J, energy per output token 0.25 J, mean power 80 W, idle power 20.5 W"
    assert energy.startswith(told)
    assert energy.endswith("(informative. RAPL of package-0. Idle: 2 s before the run.)")
    assert cost.startswith("cost per million samples 7 (at 2.5 per hour")
    shown = "\n".join(efficiency_page([("Offline", result), ("Server", {"energy": None})]))
    assert all(words in shown for words in ("idle power, W", "0.25", "Offline: cost per million samples 7"))
    assert "cost per million output tokens" not in shown and "Server" not in shown
    assert len({metric.name for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("result", [{}, {"energy": None, "cost": None}, {"energy": {"problems": ["x"]}}])
def test_nothing_is_shown_where_nothing_was_measured(result) -> None:
    assert (list(efficiency_values(result)), efficiency_lines(result), efficiency_page([("a", result)])) == ([], [], [])


def test_a_requested_energy_that_is_missing_is_explained() -> None:
    energy = {**dict.fromkeys(ENERGY), "is_requested": True, "problems": ["--power_command=x ended"]}
    assert efficiency_lines({"energy": energy}) == ["--power_command=x ended"]
