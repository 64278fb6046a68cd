"""From the file of a sweep to its points."""

import contextlib
import random
import re

import pytest

from crowdperf.sweeps.choice import Choice, parse_where
from crowdperf.sweeps.definition import SweepError, parse_definition
from crowdperf.sweeps.expand import Expansion, Point, expand
from crowdperf.sweeps.planning import run_order

INPUTS = ("model", "batch_size", "precision", "threads", "instances", "scenario", "device", "performance_sample_count")
HEAD = "format: 1\nname: x\n"
EXAMPLE = """format: 1
name: resnet-batch-{device}
base: {model: resnet50, device: cpu, scenario: Offline}
sweep: {batch_size: [1, 4, 16], precision: [fp32, int8]}
zip: {instances: [1, 2], threads: [2, 1]}
exclude: [{batch_size: 16, precision: fp32}]
n_repeats: 3
override_quiet: {adr.python.name: mlperf-cpu}
zip_override_size: {model: [resnet50, bert-99], performance_sample_count: [1024, 256]}
tags: [nightly]
"""


class Rules:
    """A recipe with INPUTS whose models are two."""

    def is_input(self, name: str) -> bool:
        return name in INPUTS or name.startswith("adr.")

    def problem(self, name: str, value: str) -> str:
        wrong = name == "model" and value not in ("resnet50", "bert-99")
        return f"--model={value} is not one of its values" if wrong else ""

    def meant(self, name: str) -> str:
        return "batch_size" if name == "batchsize" else ""


def expanded(text: str, choice: Choice | None = None, max_points: int = 1000) -> Expansion:
    """The points of a file."""
    return expand(parse_definition(text, "s.yaml"), Rules(), choice or Choice(), max_points)


def points(text: str, choice: Choice | None = None) -> tuple[Point, ...]:
    """The points of a short file."""
    return expanded(HEAD + text, choice).points


def refused(text: str, choice: Choice | None = None, max_points: int = 1000) -> str:
    """What is said of a file that makes no points."""
    with pytest.raises(SweepError) as caught:
        expanded(text, choice, max_points)
    return str(caught.value)


@pytest.mark.parametrize(
    ("selector", "count"),
    [("", 90), ("zip_override_size[1]", 30), ("zip_override_size", 60), ("*size*", 60), ("override_quiet", 30),
     ("base", 30), ("*", 90)],
)  # fmt: skip
def test_the_documented_example_has_ninety_points_and_a_selector_leaves_its_part(selector: str, count: int) -> None:
    made = expanded(EXAMPLE, Choice(selector))
    assert made.name == "resnet-batch-cpu"
    assert len({point.id for point in made.points}) == count


def test_a_selector_that_fits_nothing_lists_the_names() -> None:
    said = refused(EXAMPLE, Choice("nothing"))
    assert "base, override_quiet, zip_override_size[0], zip_override_size[1]" in said


def test_the_last_key_changes_fastest_and_repeats_follow_each_other() -> None:
    found = points("n_repeats: 2\nsweep: {batch_size: [1, 2], threads: [3, 4]}\n")
    assert [(point.axes["batch_size"], point.axes["threads"], point.repeat) for point in found] == [
        ("1", "3", 1), ("1", "3", 2), ("1", "4", 1), ("1", "4", 2),
        ("2", "3", 1), ("2", "3", 2), ("2", "4", 1), ("2", "4", 2),
    ]  # fmt: skip
    assert re.fullmatch(r"1-3-[0-9a-f]{8}", found[0].id) and found[1].id == f"{found[0].id}-r2"
    assert run_order(found) == [one.id for one in (*found[::2], *found[1::2])], "each round runs every point once"


def test_values_added_to_a_file_leave_earlier_ids_alone_and_another_base_does_not() -> None:
    before = {point.id for point in points("base: {model: resnet50}\nsweep: {batch_size: [1]}\n")}
    more = points("base: {model: resnet50}\nsweep: {batch_size: [1, 2]}\nn_repeats: 2\n")
    other = {point.id for point in points("base: {model: bert-99}\nsweep: {batch_size: [1]}\n")}
    assert before < {point.id for point in more}
    assert not before & other


def test_a_variant_merges_replaces_and_takes_away() -> None:
    text = """
base: {adr: {a: {x: 1, y: 2}, b: {z: 3}}, model: resnet50, scenario: Offline}
override_v: {adr: {a: {x: 9}, b: null}, scenario: null}
"""
    assert dict(points(text)[0].inputs) == {"adr.a.y": "2", "model": "resnet50", "adr.a.x": "9"}


def test_placeholders_take_values_with_their_type_and_braces_are_doubled() -> None:
    text = """
base: {threads: "{n}", instances: "{n}", device: "{{x}}-{ n }", scenario: "{both}",
       both: [A, B], model: "{no}", no: null}
sweep: {n: [1, 2]}
"""
    found = points(text)
    assert dict(found[1].inputs) == {"threads": "2", "instances": "2", "device": "{x}-2", "scenario": "A,B"}


def test_truth_values_and_lists_become_what_inputs_are_called_with() -> None:
    found = points("base: {device: true, scenario: false, precision: [a, b], threads: 1.5}\n")
    assert dict(found[0].inputs) == {"device": "yes", "scenario": "no", "precision": "a,b", "threads": "1.5"}


def test_exclude_takes_a_list_as_any_of() -> None:
    found = points("sweep: {batch_size: [1, 2, 3], threads: [1, 2]}\nexclude: [{batch_size: [1, 3], threads: 2}]\n")
    assert [tuple(point.axes.values()) for point in found] == [("1", "1"), ("2", "1"), ("2", "2"), ("3", "1")]


def test_where_and_tags_leave_points() -> None:
    text = "sweep: {batch_size: [1, 2, 3]}\noverride_a: {tags: [night], threads: 1}\noverride_b: {threads: 2}\n"
    chosen = Choice(where=parse_where(("batch_size=1", "batch_size=3")), tags=("night",))
    assert [point.varied for point in points(text, chosen)] == [
        {"threads": "1", "batch_size": "1"}, {"threads": "1", "batch_size": "3"}]  # fmt: skip
    assert "keys: batch_size; tags: night" in refused(HEAD + text, Choice(where={"batch_size": ("7",)}))


def test_every_mistake_is_named_at_once_with_its_line() -> None:
    text = """format: 1
name: bad-{nope}
base: {model: resnet51, batchsize: 3}
sweep:
  threads: [1, 1]
  note: [x]
zip: {batch_size: [1, 2], precision: [a]}
"""
    said = refused(text, max_points=1000).splitlines()
    assert [line.split(":")[1] for line in said] == ["2", "3", "3", "5", "6", "7"]
    for words in (
        "unknown placeholder {nope}",
        "did you mean batch_size?",
        "resnet51",
        "sweep.threads: 1 is listed twice (line 5)",
        "note is no",
        "batch_size has 2, precision has 1",
    ):
        assert words in "\n".join(said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sweep: {batch_size: [1]}\nzip: {batch_size: [1]}\n", "batch_size is set by sweep and by zip"),
        ("sweep: {batch_size: [1]}\noverride_a: {batch_size: 2}\n", "set by override_a and by sweep (line 3)"),
        ("exclude: [{nothing: 1}]\nbase: {threads: 1}\n", "exclude: nothing is not a key"),
        ("base: {threads: '{threads}'}\n", "refers to itself"),
        ("zip: {batch_size: [1, 1]}\n", "the same inputs as a point of line 3: batch_size=1"),
        ("base: {run_id: a}\n", "run_id is"),
        ("base: {threads: 1}\nexclude: [{threads: 1}]\n", "no point is left by exclude"),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, words: str) -> None:
    assert words in refused(HEAD + text)


def test_more_points_than_allowed_are_refused_without_making_them() -> None:
    assert "makes 1,001 points, but at most 1,000 are allowed" in refused(
        HEAD + f"sweep: {{threads: {list(range(1001))}}}\n"
    )
    axes = ", ".join(f"a{n}: {list(range(100))}" for n in range(9))
    assert "makes 1,000,000,000,000,000,000 points" in refused(HEAD + f"sweep: {{{axes}}}\n")


@pytest.mark.parametrize("name", ["../x", "/x", ".x", "a/b", "'a\\nb'", "", "-x"])
def test_a_name_must_be_the_name_of_a_folder(name: str) -> None:
    assert "name must be the name of a folder" in refused(f'format: 1\nname: "{name}"\nbase: {{threads: 1}}\n')


def test_a_name_may_not_differ_between_points() -> None:
    said = refused("format: 1\nname: 'n-{threads}'\nsweep: {threads: [1, 2]}\n")
    assert "name must be the same for all points, found n-1, n-2" in said


@pytest.mark.parametrize("text", ["a", "=1", "a=1,b"])
def test_a_where_that_is_not_key_and_value_is_refused(text: str) -> None:
    with pytest.raises(SweepError, match="--where must be KEY=VALUE"):
        parse_where(text.split(","))


PIECES = [*"{}[],:\"'\n -&*!|>#%@\t0a", "null", "{x}", "{ x }", "{{", "!!python/object:os.system", "*a", "&a ", "<<: ",
          ".inf", "base", "zip", "override_", "zip_override_q", "[[1,2],3]", "{a: {b: 1}}", "!!binary aa"]  # fmt: skip


@pytest.mark.full
def test_a_damaged_file_makes_points_or_is_refused() -> None:
    chance = random.Random(20)
    for _ in range(3000):
        text = EXAMPLE
        for _ in range(chance.randint(1, 4)):
            begin = chance.randrange(len(text))
            text = text[:begin] + chance.choice(PIECES) + text[begin + chance.choice((0, 1, 3, 20)) :]
        with contextlib.suppress(SweepError):
            assert expanded(text, Choice(chance.choice(("", "base", "*size*")))).points


DOUBLING = "".join(f'  a{n}: "{{a{n - 1}}}{{a{n - 1}}}"\n' for n in range(1, 40))
CHAIN = "".join(f'  a{n}: "{{a{n - 1}}}"\n' for n in range(1, 3000))
LISTS = "".join(f'  a{n}: ["{{a{n - 1}}}", "{{a{n - 1}}}"]\n' for n in range(1, 24))
WIDE = "".join(f'  b{n}: "{{a0}}"\n' for n in range(1, 3000))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"{HEAD}recipe: run,x\nbase:\n  a0: {'x' * 1000}\n{DOUBLING}  model: '{{a39}}'\n",
            "more than 65,536",
        ),
        (f"format: 1\nname: '{{a39}}'\nrecipe: run,x\nbase:\n  a0: {'x' * 1000}\n{DOUBLING}", "more than 65,536 char"),
        (f"{HEAD}recipe: run,x\nbase:\n  a0: x\n{LISTS}  model: '{{a23}}'\n", "more than 1,000 items"),
        (f"{HEAD}recipe: run,x\nbase:\n  model: '{{a2999}}'\n  a0: x\n{CHAIN}", "more than 64 deep"),
        (f"{HEAD}recipe: run,x\nbase:\n  a0: {'x' * 1000}\n{WIDE}", "more than 262,144 characters"),
        (f"{HEAD}recipe: run,x\nn_repeats: 1000000000\nbase:\n  model: a\n", "makes 1,000,000,000 points"),
        (
            f"{HEAD}recipe: run,x\nn_repeats: 900\nsweep:\n  batch_size: {list(range(20_000))}\n",
            "makes 18,000,000",
        ),
    ],
)
def test_what_multiplies_is_refused_at_once(text: str, told: str) -> None:
    assert told in refused(text)


def test_points_that_are_left_out_do_not_count_against_the_most() -> None:
    text = HEAD + "sweep: {batch_size: [1, 2, 3, 4]}\nexclude: [{batch_size: 1}, {batch_size: 2}]\nn_repeats: 2\n"
    assert len(expanded(text, max_points=4).points) == 4
    assert "makes 4 points, but at most 3 are allowed" in refused(text, max_points=3)
