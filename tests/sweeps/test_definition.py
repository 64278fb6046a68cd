"""The file of a sweep: what it may hold, and that every mistake is named with its line."""

from pathlib import Path
from typing import Any

import pytest

from crowdperf.sweeps.definition import Cell, SweepError, parse_definition
from crowdperf.sweeps.executors import make_executor, settings_of

HEAD = "format: 1\nname: x\n"


def problems(text: str) -> list[tuple[int, str]]:
    """The lines and texts of what is wrong with a file."""
    return [(problem.line, problem.text) for problem in parse_definition(text, "s.yaml").problems]


def test_mappings_become_dotted_keys_with_their_lines() -> None:
    made = parse_definition(HEAD + "base:\n  adr: {python: {name: a}}\n  model: m\n", "s.yaml")
    assert made.base == {"adr.python.name": Cell("a", 4), "model": Cell("m", 5)}


def test_json_is_read_too() -> None:
    made = parse_definition('{"format": 1, "name": "x", "sweep": {"a": [1, true, null, "2"]}}', "s.json")
    assert [cell.value for cell in made.sweep["a"]] == [1, True, None, "2"]


def test_an_unquoted_placeholder_is_what_yaml_makes_a_mapping_of() -> None:
    made = parse_definition(HEAD + "base: {threads: { instances }, other: {a: 1}}\n", "s.yaml")
    assert made.base["threads"].value == "{instances}"
    assert made.base["other.a"].value == 1


def test_a_zip_variant_has_one_variant_for_each_place() -> None:
    text = HEAD + "zip_override_size: {model: [a, b], n: 3, words: [[x, y]], tags: [small]}\n"
    variants = parse_definition(text, "s.yaml").variants
    assert [variant.name for variant in variants] == ["zip_override_size[0]", "zip_override_size[1]"]
    assert {key: cell.value for key, cell in variants[1].cells.items()} == {"model": "b", "n": 3, "words": ("x", "y")}
    assert variants[0].tags == ("small",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\n", 1, "format is missing"),
        ("format: 2\nname: x\n", 1, "format must be 1"),
        ("format: 1\n", 1, "name is missing"),
        (HEAD + "swep: {a: [1]}\n", 3, "unknown key swep"),
        (HEAD + "sweep: {a: 1}\n", 3, "sweep.a must be a list"),
        (HEAD + "sweep: {a: []}\n", 3, "sweep.a must be a list"),
        (HEAD + "zip: {a: [1, 2], b: [1]}\n", 3, "a has 2, b has 1"),
        (HEAD + "zip_override_z: {a: [1, 2, 3], b: [1, 2]}\n", 3, "a has 3, b has 2"),
        (HEAD + "n_repeats: 0\n", 3, "n_repeats must be a whole number >= 1, found 0"),
        (HEAD + "n_repeats: yes\n", 3, "found True"),
        (HEAD + "point_seconds: -1\n", 3, "point_seconds must be"),
        (HEAD + "exclude: {a: 1}\n", 3, "exclude must be a list of mappings"),
        (HEAD + "exclude: [{}]\n", 3, "would leave out everything"),
        (HEAD + "base: {a: 1}\nbase: {a: 2}\n", 4, "base is there twice, first in line 3"),
        (HEAD + "base: {a: [[1]]}\n", 3, "must be a single value, found a list"),
        (HEAD + "base: [a]\n", 3, "base must be a mapping"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, words: str) -> None:
    assert any(line == found and words in said for found, said in problems(text)), problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n",
        "a: [\n",
        "a: &a [*a]\n",
        "\x00",
        "a: " + "[" * 3000,
        "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e]\n",
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match=r"s\.yaml:\d+: "):
        parse_definition(text, "s.yaml")


def test_a_file_that_is_no_mapping_is_named_with_its_first_line() -> None:
    with pytest.raises(SweepError, match=r"s\.yaml:1: a sweep is a mapping with format, name and sweep"):
        parse_definition("\n- a\n", "s.yaml")


def test_the_call_stands_over_the_file_and_a_wrong_executor_is_named_where_it_was_given() -> None:
    definition = parse_definition(HEAD + "executor: {kind: pbs, partition: big, lost: 1}\n", "s.yaml")
    for given, line, kind in (({}, 3, "pbs"), ({"kind": "moon"}, 0, "moon"), ({"kind": "slurm"}, None, "slurm")):
        settings, found = settings_of(definition, given)
        assert (settings["kind"], settings["partition"]) == (kind, "big")
        wrong = [one for one in found if one.text == f"executor must be one of local, slurm, found {kind!r}"]
        assert [one.line for one in wrong] == ([] if line is None else [line])
        assert [one.line for one in found if one.text.startswith("executor: unknown setting lost; known: ")] == [3]


def test_a_file_of_secrets_is_the_same_for_every_folder_that_points_run_in(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    executor, found = make_executor({"kind": "slurm", "secrets": "mine.env"}, print)
    assert found == [] and executor is not None
    assert executor.options.secrets == tmp_path / "mine.env"  # type: ignore[attr-defined]
    assert [one.text for one in make_executor({"kind": "local", "max_parallel": "x"}, print)[1]] == [
        "--max_parallel must be a number, found 'x'"
    ]
