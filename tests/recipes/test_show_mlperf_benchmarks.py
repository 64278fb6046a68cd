"""show-mlperf-benchmarks: the table of all, one benchmark in a round, an unknown one."""

from __future__ import annotations

from typing import Any

import pytest
from recipe_loader import RECIPES, load_recipe

load_recipe("get-mlperf-results-lib").preprocess(
    {"env": {"CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "get-mlperf-results-lib")}}
)
recipe = load_recipe("show-mlperf-benchmarks")

from mlperf_results.benchmarks import RECORDS  # noqa: E402


@pytest.fixture
def show(hook_input, capsys):
    def call(**inputs: str) -> dict[str, Any]:
        i = hook_input({f"CM_MLPERF_SHOW_{name.upper()}": value for name, value in inputs.items()})
        answer = recipe.preprocess(i)
        return {**answer, "found": i["state"].get("mlperf_benchmarks"), "text": capsys.readouterr().out}

    return call


def test_the_table_has_every_benchmark_and_fits_100_columns(show) -> None:
    answer = show()
    assert answer["return"] == 0
    assert [row["names"] for row in answer["found"]] == [list(record.names) for record in RECORDS.values()]
    lines = answer["text"].splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("3d-unet-99 or -99.9        v2.0 to v6.1")


def test_a_benchmark_has_the_rules_of_the_round(show) -> None:
    (old,), (new,) = show(model="bert-99.9", round="v4.1")["found"], show(model="bert-99.9")["found"]
    assert (old["round"], old["edge"], old["datacenter"]) == ("v4.1", [], ["Offline", "Server"])
    assert (new["round"], new["edge"], new["datacenter"]) == ("v6.1", ["SingleStream", "Offline"], [])
    assert new["targets"] == {"F1": pytest.approx(90.783126)} and new["compliance_tests"] == ["TEST01"]
    assert old["server_limit_ms"] == 130.0


def test_a_name_without_its_level_is_the_99_percent_one(show) -> None:
    answer = show(model="3D-UNet")
    assert answer["found"][0]["name"] == "3d-unet-99"
    assert "  target DICE            0.853083" in answer["text"]


def test_what_is_not_mlperfs_has_no_round(show) -> None:
    assert show(model="digits")["found"] == [
        {"name": "digits", "task": RECORDS["digits"].title, "dataset": "digits", "samples": 599}
    ]


@pytest.mark.parametrize(
    ("inputs", "said"), [({"model": "resnet"}, "known: 3d-unet"), ({"model": "rnnt", "round": "v6.1"}, "v4.0")]
)
def test_an_unknown_name_is_refused_with_those_there_are(show, inputs: dict[str, str], said: str) -> None:
    answer = show(**inputs)
    assert answer["return"] == 1 and said in answer["error"] and "hint: cm run script" in answer["error"]
