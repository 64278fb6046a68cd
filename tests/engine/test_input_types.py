"""The types of inputs: which texts mean which values, and what is said of the others."""

from pathlib import Path
from typing import Any

import pytest
from recipe_engine.rules.conditions import symbol
from recipe_engine.rules.errors import MetaError, RequestError
from recipe_engine.rules.input_types import KINDS, Values
from recipe_engine.rules.keys import INPUT_TYPES
from recipe_engine.rules.schema import parse_recipe, with_described_keys


def values_of(
    described: dict[str, Any], env: dict[str, Any] | None = None, inputs: dict[str, Any] | None = None
) -> Values:
    """The values of a recipe with these inputs."""
    meta = {"uid": "a" * 16, "alias": "x", "input_description": described}
    return Values(parse_recipe(meta, Path("/r/script/x"), Path("/r")).inputs, env or {}, inputs or {}, Path)


def test_each_type_that_the_schema_knows_is_read() -> None:
    assert set(KINDS) == set(INPUT_TYPES)


@pytest.mark.parametrize(
    ("described", "text", "value"),
    [
        ({"type": "text"}, " a b ", "a b"),
        ({"type": "whole"}, "0", 0),
        ({"type": "whole"}, "007", 7),
        ({"type": "whole", "minimum": -2}, "-2", -2),
        ({"type": "whole", "minimum": 1, "maximum": 8}, 8, 8),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "number", "above": 0}, "0.001", 0.001),
        ({"type": "yes_no"}, "On", True),
        ({"type": "yes_no"}, False, False),
        ({"type": "choice", "choices": ["SingleStream", "all"]}, "single-stream", "SingleStream"),
        ({"type": "choice", "choices": ["datacenter,edge", "edge"]}, "edge", "edge"),
        ({"type": "choice", "choices": ["yes", "no", "unfinished"]}, "true", "yes"),
        ({"type": "list of choice", "choices": ["a", "b"]}, "B, a", ("b", "a")),
        ({"type": "list of choice", "choices": ["c,d", "e"]}, "c,d", ("c,d",)),
        ({"type": "list of whole", "minimum": 1}, ["1", "20"], (1, 20)),
        ({"type": "path"}, "model.onnx", Path("model.onnx")),
        ({"type": "list of path"}, "a, b", (Path("a"), Path("b"))),
        ({"type": "port"}, "8000", 8000),
        ({"type": "size"}, "512MiB", 512 * 1024**2),
        ({"type": "duration"}, "90", 90.0),
        ({"type": "sha256"}, "0A" * 32, "0a" * 32),
        ({"type": "duration"}, "1h30min", 5400.0),
        ({"type": "duration", "minimum": 0}, "0", 0.0),
        ({"type": "url"}, "https://user@host:8443/v1?x#y", "https://user@host:8443/v1?x#y"),
        ({"type": "url"}, "http://[::1]:80", "http://[::1]:80"),
        ({"type": "whole", "default": 4}, None, 4),
        ({}, "whatever", "whatever"),
    ],
)
def test_a_text_becomes_the_value_that_it_means(described: dict[str, Any], text: object, value: object) -> None:
    for values in (
        values_of({"n": described}, inputs={"n": text}),
        values_of({"n": {**described, "env": "CM_N"}}, env={"CM_N": text}),
    ):
        assert values["n"] == value
        assert type(values["n"]) is type(value)
        assert values.problems() == []


@pytest.mark.parametrize(
    ("described", "text", "allowed"),
    [
        ({"type": "whole"}, "1.5", "a whole number from 0"),
        ({"type": "whole"}, "-1", "a whole number from 0"),
        ({"type": "whole"}, "\u00b2", "a whole number from 0"),
        ({"type": "whole"}, "9" * 19, "at most 18 digits"),
        ({"type": "whole", "minimum": 1, "maximum": 8, "unit": "threads"}, "9", "a whole number from 1 to 8 (threads)"),
        ({"type": "number", "above": 0, "unit": "ms"}, "0", "a number above 0 (ms)"),
        ({"type": "number"}, "nan", "a number"),
        ({"type": "number"}, "1_0", "a number"),
        ({"type": "yes_no"}, "maybe", "(allowed: yes, no)"),
        ({"type": "choice", "choices": ["a", "b"]}, "a,b", "(allowed: a, b)"),
        ({"type": "list of whole"}, "1,x", "a comma list; each: a whole number from 0"),
        ({"type": "port", "minimum": 1024}, "80", "a whole number from 1024 to 65535"),
        ({"type": "port"}, "65536", "a whole number from 1 to 65535"),
        ({"type": "size"}, "much", "a size such as 512MiB or 20GB"),
        ({"type": "sha256"}, "0a" * 31, "64 hexadecimal digits, as sha256sum FILE prints them"),
        ({"type": "sha256"}, f"sha256:{'0a' * 32}", "64 hexadecimal digits"),
        ({"type": "duration"}, "0", "a number of seconds above 0, or a time such as 90s"),
        ({"type": "duration", "maximum": 60}, "2min", "a number of seconds to 60, or a time"),
        ({"type": "url"}, "host:8000", "the URL of a server, such as http://HOST:8000/v1"),
        ({"type": "url"}, "http://host:99999", "the URL of a server"),
        ({"type": "url"}, "me:hunter2@host", "found 'host'; allowed: the URL of a server"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(described: dict[str, Any], text: str, allowed: str) -> None:
    values = values_of({"n": {**described, "env": "CM_N"}}, inputs={"n": text})
    (line,) = values.problems()
    assert line.startswith("--n")
    assert allowed in line and "hunter2" not in line
    with pytest.raises(RequestError, match="--n"):
        values["n"]
    (line,) = values_of({"n": {**described, "env": "CM_N"}}, env={"CM_N": text}).problems()
    assert line.startswith("--n (CM_N)")


def test_all_problems_are_told_at_once_and_a_value_that_a_plan_does_not_know_is_none() -> None:
    described = {"n": {"type": "whole", "env": "CM_N"}, "m": {"type": "number"}, "k": {"type": "port", "env": "CM_K"}}
    values = values_of(described, {"CM_N": "x", "CM_K": symbol("CM_K", "get-k")}, {"m": "y"})
    assert [line.partition(":")[0] for line in values.problems()] == ["--n (CM_N)", "--m"]
    assert values["k"] is None


@pytest.mark.parametrize("kind", [*INPUT_TYPES, "list of text", "list of whole"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_value_is_refused_whatever_the_type(kind: str, value: str) -> None:
    described = {"n": {"type": kind, "choices": ["a"], "env": "CM_N", "default": "1"}}
    (line,) = values_of(described, inputs={"n": value}).problems()
    assert line.startswith("--n has no value; allowed: ")
    assert ("that is not empty" in line) is kind.endswith("text")
    assert values_of(described, env={"CM_N": value}).problems() == [], "a recipe that sets no key for it"


@pytest.mark.parametrize("kind", ["text", "list of text"])
def test_an_empty_text_counts_as_not_given_where_it_may_be_empty(kind: str) -> None:
    values = values_of({"n": {"type": kind, "may_be_empty": True}}, inputs={"n": ""})
    assert (values.problems(), values["n"], values.is_given("n")) == ([], None, False)


TIED = {
    "batching": {"type": "choice", "choices": ["client", "server"], "default": "client"},
    "delay_us": {"type": "whole", "only_with": "batching=server"},
    "http": {"type": "port", "together_with": ["grpc"]},
    "grpc": {"type": "port", "together_with": ["http"]},
}


@pytest.mark.parametrize(
    ("inputs", "problems"),
    [
        ({}, []),
        ({"delay_us": 5}, ["--delay_us: found '5', which counts only with --batching=server"]),
        ({"delay_us": 5, "batching": "SERVER"}, []),
        ({"http": 80}, ["--http: give --grpc as well, or omit both"]),
        ({"http": 80, "grpc": 81}, []),
    ],
)
def test_inputs_that_belong_together_are_given_together(inputs: dict[str, Any], problems: list[str]) -> None:
    assert values_of(TIED, inputs=inputs).problems() == problems


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"type": "integer"}, "found 'integer'; allowed: text, whole, number"),
        ({"type": "choice"}, "choices: missing"),
        ({"type": "whole", "only_with": "m=1"}, "has the unknown input 'm'"),
        ({"type": "whole", "minimum": "one"}, "minimum: expected a number"),
        ({"type": "path", "may_be_empty": True}, "may_be_empty: the type is path; allowed: text, list of text"),
    ],
)
def test_a_description_that_cannot_be_is_refused(described: dict[str, Any], words: str) -> None:
    with pytest.raises(MetaError, match=words):
        values_of({"n": described})


def test_the_env_key_and_env_default_of_an_input_count_as_in_input_mapping_and_default_env() -> None:
    meta = {
        "uid": "a" * 16,
        "input_description": {"n": {"type": "whole", "env": "CM_N", "env_default": 3}, "m": "words"},
        "input_mapping": {"m": "CM_M"},
        "default_env": {"CM_M": "x", "CM_N": "that of a base"},
    }
    recipe = parse_recipe(with_described_keys(meta), Path("/r/script/x"), Path("/r"))
    assert recipe.layer.input_mapping == {"n": "CM_N", "m": "CM_M"}
    assert recipe.layer.default_env == {"CM_N": "3", "CM_M": "x"}
    assert recipe.inputs["n"].default == "3"
    assert recipe.inputs["m"].env_key == "CM_M"
