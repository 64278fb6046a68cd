"""crowdperf.kit.records: each kind with good, wrong, missing and null values; all problems at once, with key paths."""

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from crowdperf.kit.records import (
    COUNT,
    GREATEST,
    MAY_BE_MISSING,
    NOT_NULL,
    NUMBER,
    POSITIVE,
    URL,
    Kind,
    Named,
    Record,
    filled_text,
    found_text,
    list_of,
    matching,
    one_of,
    spelled,
    whole,
)


class Color(enum.Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    name: str


def _upper(text: str) -> str:
    if not text.islower():
        raise ValueError(text)
    return text.upper()


NUMBERS = [True, "1", [], {}, 10**400, float("nan"), float("inf"), 2 * GREATEST]
KINDS: list[tuple[Any, str, list[tuple[object, object]], list[object]]] = [
    (str, "a text", [("", ""), ("x", "x")], [1, True, [], {}]),
    (bool, "true or false", [(True, True), (False, False)], [0, 1, "yes", []]),
    (int, "a whole number", [(0, 0), (-1, -1), (2**64, 2**64)], [1.0, *NUMBERS]),
    (float, "a finite number", [(0, 0), (-1.5, -1.5), (1e38, 1e38)], NUMBERS),
    (Path, "a path", [("a/b", Path("a/b"))], ["", 1, []]),
    (Color, "red", [("red", Color.RED)], ["blue", "", 1, []]),
    (Inner, "an object", [({"name": "x"}, Inner(name="x"))], [1, "x", [], True]),
    (tuple[str, ...], "a list of texts", [([], ()), (["a", "b"], ("a", "b"))], ["a", [1], [None], {}]),
    (tuple[Inner, ...], "a list of objects", [([], ()), ([{"name": "x"}], (Inner(name="x"),))], [1, {}, "a"]),
    (Mapping[str, Inner], "an object", [({}, {}), ({"a": {"name": "x"}}, {"a": Inner(name="x")})], [[], 1]),
    (Literal["a", "b"], "a, b", [("a", "a")], ["c", 1, []]),
    (Annotated[str, matching(re.compile("a+"))], "a text like a+", [("aa", "aa")], ["ab", "", 1]),
    (Mapping[str, Any], "an object", [({}, {}), ({"a": 1}, {"a": 1})], [[], "a", 1]),
    (Annotated[int, COUNT], "a whole number from 1", [(1, 1), (2**63 - 1, 2**63 - 1)], [0, -1, 2**63, 1.0, *NUMBERS]),
    (Annotated[int, whole(0, 9)], "a whole number from 0 to 9", [(0, 0), (9, 9)], [-1, 10, *NUMBERS]),
    (Annotated[float, POSITIVE], "a number above 0", [(1, 1.0), (1e39, 1e39)], [0, -1, 10**400, True, "1"]),
    (Annotated[str, URL], "a URL that begins with http:// or https://", [("http://h", "http://h")], ["h:1", 1, ""]),
    (Annotated[str, one_of(("a", "b"))], "a, b", [("a", "a")], ["c", "", 1, []]),
    (Annotated[str, filled_text("a name")], "a name", [("a", "a")], ["", 1, []]),
    (Annotated[str, spelled(_upper, ("lower",))], "lower", [("a", "A")], ["A", 1, []]),
    (Annotated[tuple[int, ...], list_of(COUNT, "counts")], "counts", [([2, 1], (2, 1))], [[0], 1, ["1"], {}]),
    (Annotated[str, Kind("a word", lambda value: value or "empty")], "a word", [("", "empty"), ("a", "a")], []),
]
IDS = [allowed for _, allowed, _, _ in KINDS]


def one_field(hint: Any, **default: Any) -> Any:
    namespace = {"__annotations__": {"key": hint}, **({"key": field(**default)} if default else {})}
    return dataclass(frozen=True, kw_only=True)(type("OneField", (), namespace))


@pytest.mark.parametrize(("hint", "allowed", "good", "wrong"), KINDS, ids=IDS)
def test_each_kind_takes_its_values_and_refuses_all_others(
    hint: Any, allowed: str, good: list[tuple[object, object]], wrong: list[object]
) -> None:
    needed, nullable = one_field(hint), one_field(hint | None if isinstance(hint, type) else Annotated[hint, ""] | None)
    optional = one_field(hint, default="default")
    for value, expected in good:
        for one in (needed, nullable, optional):
            record = Record({"key": value})
            found = record.filled(one)
            assert (found.key, record.problems) == (expected, []), value
    for value in wrong:
        for one, words in ((needed, allowed), (nullable, f"{allowed}, or null"), (optional, allowed)):
            record = Record({"key": value})
            found = record.filled(one)
            assert [str(problem) for problem in record.problems] == [
                f"key: found {found_text(value)}; allowed: {words}"
            ], value
            assert (None if one is needed else {nullable: None, optional: "default"}[one]) == getattr(
                found, "key", None
            )
    record = Record({})
    assert record.filled(needed) is None and record.filled(optional).key == "default"
    assert [str(problem) for problem in record.problems] == [
        f"key: found nothing; allowed: {allowed} (every key is always there)"
    ]


def test_null_is_taken_where_the_annotation_says_so() -> None:
    assert Record({"key": None}).filled(one_field(int | None)).key is None
    for hint in (int, Annotated[int | None, NOT_NULL]):
        record = Record({"key": None})
        record.filled(one_field(hint))
        assert [str(problem) for problem in record.problems] == ["key: found null; allowed: a whole number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner
    count: Annotated[int, COUNT]
    later: Annotated[Inner | None, MAY_BE_MISSING] = None
    speed: Annotated[float | None, NUMBER] = None


def test_all_problems_are_told_at_once_with_their_key_paths() -> None:
    record = Record({"inner": {"name": 1, "nmae": "x"}, "count": 0, "speed": "fast", "1": [1]}, place="top.")
    assert record.filled(Outer, every_key=True) is None
    assert [problem.key for problem in record.problems] == [
        "top.inner.name", "top.inner.nmae", "top.count", "top.speed", "top.1"
    ]  # fmt: skip
    assert str(record.problems[0]) == "top.inner.name: found 1; allowed: a text"
    assert str(record.problems[1]) == 'top.inner.nmae: found "x"; allowed: no such key; known: name'


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    size_bytes: Annotated[int, Named("bytes")]
    rows: tuple[Inner, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)


def test_rows_have_places_fields_other_names_and_an_open_document_further_keys() -> None:
    content = {"bytes": 3, "rows": [{"name": "a"}, {"name": 1}, 2], "digests": {"x": "a", "y": None}, "more": 1}
    record = Record(content)
    assert record.filled(Files, is_open=True) == Files(size_bytes=3)
    assert [problem.key for problem in record.problems] == ["rows[1].name", "rows[2]", "digests.y"]
    record = Record({"rows": [1] * 10_000})
    assert record.filled(Files) is None and len(record.problems) == 200


def test_keys_that_may_be_missing_and_kinds_that_are_known_only_now() -> None:
    record = Record({"inner": {"name": "a"}, "count": 7})
    assert record.filled(Outer, {"count": whole(7)}) == Outer(inner=Inner(name="a"), count=7)
    record.filled(Outer, every_key=True)
    assert [problem.key for problem in record.problems] == ["speed"]


def test_a_value_is_shown_short_and_without_a_login() -> None:
    assert found_text("http://me:secret@host/") == '"http://********@host/"'
    assert len(found_text("x" * 1000)) < 100 and found_text({1, 2}).startswith('"{')


def test_a_document_of_others_is_read_key_by_key() -> None:
    content = json.loads('{"name": "a", "n": 3, "rows": [{"x": 1.5}, {"x": "no"}], "on": true, "in": {"words": ["a"]}}')
    record = Record(content)
    assert (record.text("name"), record.whole("n"), record.flag("on"), record.number("n")) == ("a", 3, True, 3)
    assert (record.text("gone", "other"), record.number("gone"), record.flag("gone"), record.texts("gone")) == (
        "other", None, None, None
    )  # fmt: skip
    assert record.within("in").texts("words") == ("a",)
    assert record.within("gone").values == {} and record.each("gone") == [] and record.problems == []
    assert [row.number("x") for row in record.each("rows")] == [1.5, None]
    for read in (record.number, record.whole, record.flag, record.texts, record.within, record.each):
        read("name")
    assert (record.needed("gone"), record.count("gone"), record.needed("name")) == ("", 0, "a")
    record.text("n")
    assert [str(problem) for problem in record.problems] == [
        'rows[1].x: found "no"; allowed: a finite number',
        'name: found "a"; allowed: a finite number',
        'name: found "a"; allowed: a whole number',
        'name: found "a"; allowed: true or false',
        'name: found "a"; allowed: a list of texts',
        'name: found "a"; allowed: an object',
        'name: found "a"; allowed: a list of objects',
        "gone: found nothing; allowed: a text that is not empty",
        "gone: found nothing; allowed: a whole number from 0",
        "n: found 3; allowed: a text",
    ]
