"""show-mlperf-benchmarks: the table of all, one benchmark in a round, an unknown one."""

import json
from typing import Any

import pytest
from recipe_loader import load_recipe, recipe_meta

from crowdperf.logs.round_tables import load_round
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.official_names import benchmark_of
from crowdperf.rules.rounds import ROUNDS

recipe = load_recipe("show-mlperf-benchmarks")


@pytest.fixture
def show(hook_input, capsys):
    def call(**inputs: str) -> dict[str, Any]:
        i = hook_input({f"CM_MLPERF_SHOW_{name.upper()}": value for name, value in inputs.items()})
        answer = recipe.preprocess(i)
        return {**answer, "found": i["state"].get("mlperf_benchmarks"), "text": capsys.readouterr().out}

    return call


def test_the_table_has_every_benchmark_and_fits_100_columns(show) -> None:
    answer = show()
    assert answer["return"] == 0, answer
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


def test_a_round_has_every_model_of_its_table_with_its_rules(show) -> None:
    answer = show(round="v6.1")
    rows = {row["name"]: row for row in answer["found"]}
    assert list(rows) == list(load_round("v6.1").models) and len(rows) == 21
    assert max(map(len, answer["text"].splitlines())) <= 120
    eight = rows["llama3.1-8b"]
    assert eight["categories"]["datacenter"] == {"required": ["Offline"], "optional": ["Interactive", "Server"]}
    assert eight["figures"] == {"Offline": "tokens/s", "Server": "tokens/s", "Interactive": "tokens/s"}
    assert eight["token_latency_ms"]["Interactive"] == {"ttft": 500.0, "tpot": 30.0}
    assert (eight["compliance_tests"], eight["upper_limits"]) == (["TEST06"], {"GEN_LEN": pytest.approx(8984408.4)})
    assert rows["dlrm-v3"]["latency_ms"] == {"Server": 80.0}
    assert "34,996 samples by the rules" in rows["dlrm-v3"]["notes"][0] and "  note         34,996" in answer["text"]
    assert rows["wan-2.2-t2v-a14b"]["samples"]["in_memory"] == 248
    assert rows["qwen3-vl-235b-a22b"]["samples"]["accuracy"]["Interactive"] == 8000
    assert json.dumps(answer["found"])


def test_what_can_be_run_comes_from_the_records(show) -> None:
    answer = show(round="v6.1")
    missing = [row for row in answer["found"] if row["here"]["name"] is None]
    assert answer["text"].count("cannot be run with this tool") == len(missing)
    for row in answer["found"]:
        own = benchmark_of(row["name"], "v6.1")
        assert row["here"]["name"] == own


@pytest.mark.parametrize("round_name", ROUNDS)
def test_every_round_can_be_shown(show, round_name: str) -> None:
    answer = show(round=round_name)
    assert answer["return"] == 0 and len(answer["found"]) == len(load_round(round_name).models)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"round": "6.1"}, "unknown round '6.1' (did you mean v6.1?)"),
        ({"round": "v61"}, "did you mean v6.1?"),
        ({"round": "v6.1", "model": "lama3.1-8b"}, "did you mean llama3.1-8b?"),
    ],
)
def test_a_misspelt_round_is_answered_with_the_nearest(show, inputs: dict[str, str], said: str) -> None:
    answer = show(**inputs)
    assert answer["return"] == 1 and said in answer["error"]


def test_a_run_refuses_what_the_newest_round_has_beyond_the_records_by_short_names_too() -> None:
    refused = recipe_meta("run-mlperf-inference")["input_description"]["model"]["refused"]
    models = load_round(ROUNDS[-1]).models
    missing = {name for name in models if benchmark_of(name, ROUNDS[-1]) is None}
    assert missing <= refused.keys()
    for name, reason in refused.items():
        meant = [one for one in models if one.startswith(name)]
        assert meant and missing.issuperset(meant), name
        assert all(("--tags=get,mlperf,endpoints,client" in reason) is models[one].may_be_endpoints for one in meant)
        assert f"--tags=show,mlperf,benchmarks --round={ROUNDS[-1]}" in reason
