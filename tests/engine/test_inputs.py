"""Which inputs are known, what a misspelt one is answered with, and who is strict."""

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import recipe, request
from helpers import Listener, TemporaryHome
from recipe_engine.disk.repos import RecipeSource
from recipe_engine.rules.errors import RequestError
from recipe_engine.rules.inputs import (
    declared_inputs,
    refusal,
    refuse_values,
    refuses_unknown,
    unknown_inputs,
    with_own_names,
    wrong_values,
)
from recipe_engine.rules.model import Recipe
from recipe_engine.rules.rerun import name_command
from recipe_engine.running.engine import check_inputs

META: dict[str, Any] = {
    "input_description": {"scenario": {"desc": "what is measured"}},
    "input_mapping": {"batch_size": "CM_BATCH"},
    "variations": {"gpu": {"input_mapping": {"gpus": "CM_GPUS"}}, "cpu": {}},
    "versions": {"2": {"input_mapping": {"level": "CM_LEVEL"}}},
}
NO_RECIPES = RecipeSource([], Path("no-index"))
STRICT = recipe(**META)._replace(has_strict_inputs=True)
COMMUNITY = recipe(**META)


def test_described_inputs_and_those_of_every_variation_and_version_are_known() -> None:
    assert declared_inputs(STRICT) == {"scenario", "batch_size", "gpus", "level"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("scenaro", "scenario"),
        ("scenarios", "scenario"),
        ("batchsize", "batch_size"),
        ("gpu", "gpus"),
        ("renw", "renew"),
    ],
)
def test_a_misspelt_input_is_answered_with_the_nearest(name: str, meant: str) -> None:
    found = unknown_inputs(STRICT, {"action": "run", "tags": "get,x", name: "1"})
    assert [(each.name, each.meant) for each in found] == [(name, meant)]
    assert found[0].text("get-x") == f"unknown input --{name} for recipe get-x, did you mean --{meant}?"


def test_a_name_with_little_in_common_is_not_taken_for_a_misspelt_one() -> None:
    assert unknown_inputs(STRICT, {"network": "lon"})[0].text("get-x") == "unknown input --network for recipe get-x"


def test_flags_of_the_engine_and_of_the_action_are_known() -> None:
    inputs = {"quiet": True, "adr": {}, "env": {}, "hf_token": "x", "cache_expiration": "2h", "graph": "dot"}
    assert unknown_inputs(STRICT, inputs, "plan") == []
    assert [each.name for each in unknown_inputs(STRICT, inputs, "run")] == ["graph"]


def test_a_flag_that_only_reaches_the_recipe_must_be_read_by_a_strict_one() -> None:
    assert [each.name for each in unknown_inputs(STRICT, {"path": "/data"})] == ["path"]
    assert unknown_inputs(COMMUNITY, {"path": "/data"}) == []


def test_the_hint_is_the_whole_command_with_the_names_that_were_meant() -> None:
    inputs = {"action": "plan", "tags": "get,x", "scenaro": "Offline", "gpu": 2}
    error = refusal(STRICT, unknown_inputs(STRICT, inputs, "plan"), inputs, "plan")
    assert error.hint == "cm plan script --tags=get,x --gpus=2 --scenario=Offline"


def test_known_inputs_are_listed_when_none_is_near() -> None:
    inputs = {"tags": "get,x", "zzz": 1}
    error = refusal(STRICT, unknown_inputs(STRICT, inputs), inputs, "run")
    assert error.message == (
        "unknown input --zzz for recipe get-x\n  it has: --batch_size, --gpus, --level, --scenario"
    )
    assert error.hint == "cm help script get-x lists its inputs"
    assert "it has no inputs" in refusal(recipe(), unknown_inputs(recipe(), inputs), inputs, "run").message


def test_a_flag_for_containers_is_refused_with_what_starts_one() -> None:
    inputs = {"docker_it": True}
    error = refusal(STRICT, unknown_inputs(STRICT, inputs), inputs, "run")
    assert error.message == "--docker_it has no effect: this engine starts no containers"
    assert "run,container,mlperf" in error.hint


@pytest.mark.parametrize(
    ("chosen", "wanted", "is_refused"),
    [(STRICT, None, True), (STRICT, "warn", False), (COMMUNITY, None, False), (COMMUNITY, "error", True)],
)
def test_the_repository_decides_and_the_caller_may_say_otherwise(
    chosen: Recipe, wanted: str | None, is_refused: bool
) -> None:
    inputs = {} if wanted is None else {"unknown_inputs": wanted}
    assert refuses_unknown(chosen, inputs) is is_refused


def test_another_word_for_what_to_do_is_refused() -> None:
    with pytest.raises(RequestError, match="--unknown_inputs must be one of error, warn, got 'no'"):
        refuses_unknown(STRICT, {"unknown_inputs": "no"})


@pytest.fixture
def warned() -> Iterator[list[str]]:
    """The lines that the engine logs."""
    lines: list[str] = []
    listener = Listener(lines)
    logging.getLogger("recipe_engine").addHandler(listener)
    yield lines
    logging.getLogger("recipe_engine").removeHandler(listener)


def engine(reported: set[str] | None = None) -> Any:
    """What checking inputs needs of an engine."""
    reported = set() if reported is None else reported
    return SimpleNamespace(source=NO_RECIPES, reported=reported, names_below=lambda request: ())


def test_a_program_is_refused_too_but_not_warned(warned: list[str]) -> None:
    with pytest.raises(RequestError, match="unknown input --scenaro"):
        check_inputs(STRICT, request(inputs={"scenaro": 1}), engine())
    check_inputs(COMMUNITY, request(inputs={"scenaro": 1}), engine())
    assert warned == []


def test_a_line_is_printed_once(warned: list[str]) -> None:
    reported: set[str] = set()
    for _ in range(2):
        check_inputs(COMMUNITY, request(inputs={"scenaro": 1, "out": "con"}), engine(reported))
    assert warned == ["! unknown input --scenaro for recipe get-x, did you mean --scenario?"]


@pytest.mark.parametrize("name", ["plan", "dry_run"])
def test_a_dry_run_that_the_recipe_does_not_know_is_refused_everywhere(name: str) -> None:
    with pytest.raises(RequestError, match="would run for real"):
        check_inputs(COMMUNITY, request(inputs={name: True}), engine())
    knows = recipe(input_mapping={name: "CM_PLAN"})
    check_inputs(knows, request(inputs={name: True}), engine())


def test_inputs_that_others_know_are_refused_with_the_reason_or_accepted_with_a_remark() -> None:
    chosen = recipe(refused_inputs={"network": "not supported"}, unused_inputs={"gpu_name": "the driver says it"})
    chosen = chosen._replace(has_strict_inputs=True)
    with pytest.raises(RequestError, match=r"^get-x: --network: not supported$"):
        check_inputs(chosen, request(inputs={"network": "lon"}), engine())
    reported: set[str] = set()
    check_inputs(chosen, request(inputs={"network": "no", "gpu_name": "A100", "out": "con"}), engine(reported))
    assert reported == {"--gpu_name has no effect: the driver says it"}


SCENARIOS = ("SingleStream", "MultiStream", "Offline", "Server")
WITH_CHOICES = recipe(
    input_description={
        "scenario": {"choices": list(SCENARIOS)},
        "rerun": {"choices": ["yes", "no"]},
        "category": {"choices": ["edge", "datacenter,edge"]},
        "mode": {"choices": ["all", "performance", "accuracy"]},
    }
)._replace(has_strict_inputs=True)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("scenario", "Offlne", "Offline"),
        ("scenario", "Offline,Sever", "Offline,Server"),
        ("scenario", "quick", ""),
        ("mode", "perf", "performance"),
        ("mode", 3, ""),
        ("rerun", "yess", "yes"),
        ("scenario", "Offline,Srver", "Offline,Server"),
    ],
)
def test_a_value_that_is_not_a_choice_names_the_nearest(name: str, value: object, meant: str) -> None:
    (wrong,) = wrong_values(WITH_CHOICES, {name: value})
    assert wrong.meant == meant
    assert f"--{name}={value} is not one of its values" in wrong.text
    assert ("did you mean" in wrong.text) == bool(meant)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("scenario", text) for text in ("offline", "single-stream", "Single_Stream", "Offline, Server")],
        *[("rerun", value) for value in (True, False, "true", "off", 1, "No")],
        *[("category", text) for text in ("edge", "datacenter,edge", "datacenter-edge")],
        ("scenario", ["Offline", "Server"]),
    ],
)
def test_values_that_mean_a_choice_are_allowed(name: str, value: object) -> None:
    assert wrong_values(WITH_CHOICES, {name: value}) == []


@pytest.mark.parametrize("name", ["scenario", "mode", "category"])
def test_an_empty_value_is_no_choice(name: str) -> None:
    (wrong,) = wrong_values(WITH_CHOICES, {name: ""})
    assert wrong.meant == "" and wrong.text.startswith(f"--{name} has no value; allowed: ")


def test_the_hint_of_a_wrong_value_is_the_given_command_with_the_nearest() -> None:
    inputs = {"action": "run", "tags": "get,x", "scenario": "Offlne", "mode": "all"}
    with pytest.raises(RequestError) as caught:
        refuse_values(WITH_CHOICES, inputs)
    name_command(caught.value, inputs, is_verbose=False)
    assert caught.value.message == (
        f"get-x: --scenario=Offlne is not one of its values, did you mean Offline? (allowed: {', '.join(SCENARIOS)})"
    )
    assert caught.value.hint == "cm run script --tags=get,x --mode=all --scenario=Offline"
    assert caught.value.given == ""


def test_without_a_near_value_the_help_is_the_hint_and_a_community_recipe_only_remarks_on_it() -> None:
    with pytest.raises(RequestError) as caught:
        refuse_values(WITH_CHOICES, {"scenario": "quick"})
    assert caught.value.hint == "cm help script get-x lists the values of its inputs"
    refuse_values(WITH_CHOICES._replace(has_strict_inputs=False), {"scenario": "quick"})


def test_a_value_that_the_recipe_refuses_is_answered_with_its_reason_not_with_the_nearest() -> None:
    described = {"choices": ["net-v2"], "refused": {"net-v3": "too large for this tool"}}
    (wrong,) = wrong_values(recipe(input_description={"model": described}), {"model": "Net_V3"})
    assert (wrong.text, wrong.meant) == ("--model=Net_V3: too large for this tool", "")


# --- other names of an input ---

SIZE = {"type": "whole", "env": "CM_X", "aliases": ["extent", "big"], "desc": "how big"}
ALIASED = {"input_description": {"size": SIZE}}


@pytest.mark.parametrize(
    ("inputs", "own"),
    [
        ({"extent": 3}, {"size": 3}),
        ({"size": 1, "extent": 3, "quiet": True}, {"size": 3, "quiet": True}),
        ({"extent": 3, "size": 1}, {"size": 1}),
        ({"size": 1}, {"size": 1}),
    ],
)
def test_an_alias_is_the_input_and_the_last_of_several_counts(inputs: dict[str, Any], own: dict[str, Any]) -> None:
    assert with_own_names(recipe(**ALIASED), request(inputs=inputs)).inputs == own
    assert unknown_inputs(recipe(**ALIASED), ["extnt"])[0].meant == "extent"


def test_an_alias_is_accepted_from_a_user_a_dependency_and_adr_and_refused_by_the_name(home: TemporaryHome) -> None:
    home.write_cmr(inputs="strict")
    home.recipe("get-x", {"tags": ["get", "x"], "new_env_keys": ["CM_X"], **ALIASED})
    home.recipe("get-y", {"tags": ["get", "y"], "new_env_keys": ["CM_X"],
                          "deps": [{"tags": "get,x", "names": ["x"], "extent": 5}]})  # fmt: skip
    assert home.run("get,x", extent="3")["new_env"]["CM_X"] == "3"
    assert home.run("get,y")["new_env"]["CM_X"] == "5"
    assert home.run("get,y", adr={"x": {"size": 6}})["new_env"]["CM_X"] == "6"
    assert home.run("get,y", adr={"x": {"big": 7}})["new_env"]["CM_X"] == "7"
    with pytest.raises(RequestError, match="get-x: --size: found 'much'; allowed"):
        home.run("get,x", extent="much")
