"""What differs between two results is named, with how much; what is equal is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_records import A, B, row, thing
from recipe_engine.provenance.compare import (
    Difference,
    Figure,
    compare,
    difference_line,
    figure_line,
    value_text,
)
from recipe_engine.provenance.diff import Pair, diff_action, diff_lines, sorted_out
from recipe_engine.provenance.record import BadRecord, ResultRecord, here, parse_record, portable_value, sealed
from recipe_engine.rules.errors import RequestError


def record(**changes: Any) -> ResultRecord:
    return parse_record(json.dumps(sealed(row(**changes))), "record.json")


def locked(recipes: dict[str, str] | None = None, *things: dict[str, Any]) -> dict[str, Any]:
    return {"format": 1, "command": "cm", "host": {}, "recipes": recipes or {"get-x,u": A}, "things": list(things)}


INPUTS = {
    "recipe file": (
        {
            "lock": locked({"get-x,u": B}, thing()),
            "recipe_files": {"get-x,u": {"customize.py": A, "run.sh": B, "new.py": A}},
        },
        [("recipe", "get-x/new.py", None, A), ("recipe", "get-x/run.sh", A, B)],
    ),
    "recipe digest alone": ({"lock": locked({"get-x,u": B}, thing())}, [("recipe", "get-x", A, B)]),
    "another recipe": (
        {"lock": locked({"get-x,u": A, "get-y,w": B}, thing())},
        [("recipe", "get-y", None, B)],
    ),
    "version": ({"lock": locked(None, thing("2"))}, [("made", "get-x,_v version", "1", "2")]),
    "file": ({"lock": locked(None, thing(sha256=B))}, [("made", "get-x,_v x.bin", A, B)]),
    "package": (
        {"lock": locked(None, thing(numpy="2.1"))},
        [("made", "get-x,_v python_packages.numpy", {"version": "2.0"}, {"version": "2.1"})],
    ),
    "thing": ({"lock": locked()}, [("made", "get-x,_v", "used", None)]),
    "line of a configuration": ({"inputs": {"user.conf": {"a.b": "2"}}}, [("user.conf", "a.b", "1", "2")]),
    "request": (
        {"request": {"inputs": {"tags": "make", "adr": {"x": {"tags": "_b"}}}, "secrets": [], "folder_input": "out"}},
        [("request", "adr.x.tags", "_a", "_b")],
    ),
    "attached file": ({"attachments": {"conf": "x"}}, [("attachment", "conf", None, "x")]),
}


@pytest.mark.parametrize(("changes", "expected"), INPUTS.values(), ids=INPUTS.keys())
def test_a_differing_input_is_named_with_both_values(changes: dict[str, Any], expected: list[Any]) -> None:
    found = compare(record(), record(**changes))
    assert [tuple(difference)[:4] for difference in found.inputs] == expected
    assert not found.is_reproduced(10.0)
    assert not found.is_identical


def test_settings_and_machine_are_told_and_are_no_inputs() -> None:
    other = record(settings={"batch": {"value": 8, "origin": "user"}}, machine={"cores": 4})
    found = compare(record(), other)
    assert found.is_reproduced(10.0)
    assert not found.is_identical
    assert found.settings == (Difference("setting", "batch", 4, 8, "from default and from user"),)
    assert found.machine == (Difference("machine", "cores", 2, 4),)


def test_another_origin_of_the_same_value_is_no_difference() -> None:
    other = record(settings={"batch": {"value": 4, "origin": "user"}})
    assert compare(record(), other).is_identical


@pytest.mark.parametrize(
    ("kind", "before", "after", "percent", "is_same"),
    [
        ("within", 100.0, 110.0, 10.0, True),
        ("within", 100.0, 89.9, -10.1, False),
        ("within", 0.0, 1.0, None, False),
        ("within", 0.0, 0.0, 0.0, True),
        ("within", 100.0, None, None, False),
        ("exact", 0.5, 0.5000001, 0.00002, False),
        ("exact", True, True, None, True),
        ("exact", None, None, None, True),
        ("exact", "a", "b", None, False),
    ],
)
def test_figures_agree_exactly_or_within_the_tolerance(
    kind: Any, before: Any, after: Any, percent: float | None, is_same: bool
) -> None:
    figure = Figure("f", kind, before, after)
    assert figure.percent == (percent if percent is None else pytest.approx(percent, rel=1e-3))
    assert figure.is_same(10.0) is is_same


def test_lines_for_people_cut_digests_and_keep_figures_whole() -> None:
    line = difference_line(Difference("recipe", "get-x/run.sh", A, B, "the file was changed"))
    assert line == "recipe get-x/run.sh: the file was changed; recorded aaaaaaaaaaaa..., now bbbbbbbbbbbb..."
    assert figure_line(Figure("speed", "within", 0.58, 0.76, "1/s"), 10.0) == (
        "! speed: recorded 0.58 1/s, now 0.76 1/s (+31.03 %), within 10 %"
    )
    assert value_text("x" * 100) == "x" * 57 + "..."
    assert value_text({"b": 1}) == '{"b": 1}'


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"seed": {"origin": "data"}, "batch": {"origin": "user"}, "plain": 3, "none": None}},
        {"lock": locked(None, {**thing(), "variations": [["v"]], "tags": [None]})},
        {"outcome": {"exact": {"score": 10**300}, "within": {}}},
    ],
)
def test_a_record_of_odd_values_is_compared(changes: dict[str, Any], tmp_path: Path) -> None:
    for name, content in (("a", row()), ("b", row(**changes))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(json.dumps(sealed(content)))
    for more in ({}, {"max_slowdown": "5%"}):
        json.dumps(diff_action({"artifact": str(tmp_path / "a"), "artifacts": (str(tmp_path / "b"),), **more}))


# --- the text of a comparison ---


def pair(before: ResultRecord, after: ResultRecord) -> Pair:
    return Pair((before, after), compare(before, after), ((), ()))


def speed(value: float, **more: Any) -> dict[str, Any]:
    return {"exact": {"valid": True, "errors": 0}, "within": {"speed": {"value": value, "unit": "1/s", **more}}}


@pytest.mark.parametrize(
    ("before", "after", "more", "words"),
    [
        (100.0, 150.0, {"higher_is_better": True}, "100  150  1.500  better"),
        (100.0, 50.0, {"higher_is_better": True}, "100  50  0.500  worse"),
        (0.5, 0.25, {"higher_is_better": False}, "0.5  0.25  0.500  better"),
        (1000.0, 1500.0, {}, "1,000  1,500  1.500  different"),
        (100.0, 109.0, {"higher_is_better": True}, "100  109  1.090  within 10 %"),
        (100.0, 100.0, {}, "100  100  1.000  the same"),
        (100.0, 120.0, {"higher_is_better": True, "spread_percent": 20.0}, "100  120  1.200  within 28.3 %"),
        (100.0, 130.0, {"higher_is_better": True, "spread_percent": 20.0}, "100  130  1.300  better"),
        (100.0, 108.0, {"higher_is_better": True, "spread_percent": 0.1}, "100  108  1.080  within 10 %"),
        (100.0, 150.0, {"higher_is_better": True, "not_judged": ["INVALID"]}, "100  150  1.500  not judged"),
        (100.0, 100.0, {"not_judged": ["INVALID"]}, "100  100  1.000  the same"),
    ],
)
def test_a_figure_says_which_side_is_better(before: float, after: float, more: dict[str, Any], words: str) -> None:
    other = record(outcome=speed(after, **more), machine={"cores": 9})
    text = "\n".join(diff_lines([pair(record(outcome=speed(before, **more)), other)], 10.0))
    assert f"speed, 1/s  {words}" in " ".join(text.split("\n")[1:2])
    assert "errors" not in text, "what is as it should be on both sides is left out"


def test_why_a_figure_is_not_judged_is_told_once_for_all_that_have_the_same_reasons() -> None:
    def result(name: str, value: float, *reasons: str) -> ResultRecord:
        return record(name=f"net/{name}", outcome=speed(value, higher_is_better=True, not_judged=list(reasons)))

    pairs = [
        pair(result("Offline", 10.0, "short", "other programs used 70 %"), result("Offline", 20.0, "short")),
        pair(result("Server", 10.0), result("Server", 30.0, "short")),
        pair(result("MultiStream", 10.0), result("MultiStream", 30.0, "short")),
        pair(result("SingleStream", 10.0, "short"), result("SingleStream", 10.0, "short")),
    ]
    lines = list(diff_lines(pairs, 10.0))
    assert [line for line in lines if line.startswith("not judged")] == [
        "not judged, Offline: short (A and B); other programs used 70 % (A)",
        "not judged, Server, MultiStream: short (B)",
    ]
    alone = list(diff_lines([pair(record(outcome=speed(1.0, not_judged=["short"])), record(outcome=speed(2.0)))], 10.0))
    assert "not judged, thing/one: short (A)" in alone
    figure = compare(pairs[0].records[0], pairs[0].records[1]).row(10.0)["figures"][-1]
    assert (figure["verdict"], figure["spread_percent"]) == ("not judged", None)


def test_figures_come_first_and_each_difference_once_for_all_results() -> None:
    def result(name: str, value: float, numpy: str, batch: int, qps: float) -> ResultRecord:
        settings = {"batch": {"value": batch, "origin": "user"}, "qps": {"value": qps, "origin": "warm-up"}}
        things = [thing(numpy=numpy), *([{**thing(), "recipe": "get-y,w"}] if batch == 4 else [])]
        return record(
            name=f"net/{name}/performance",
            outcome=speed(value, higher_is_better=True),
            settings=settings,
            inputs={"user.conf": {"net.qps": str(qps)}},
            lock=locked(None, *things),
        )

    first = [result(name, value, "2.0", 4, value) for name, value in (("Offline", 10.0), ("Server", 20.0))]
    second = [result(name, value, "2.1", 8, value) for name, value in (("Offline", 30.0), ("Server", 5.0))]
    lines = list(diff_lines([pair(*both) for both in zip(first, second, strict=True)], 10.0))
    assert lines == [
        "net/...              figure       A   B  B / A  B is",
        "Offline/performance  speed, 1/s  10  30  3.000  better",
        "Server/performance   speed, 1/s  20   5  0.250  worse",
        "",
        "what differs                                    A    B",
        "built by a recipe get-x,_v python_packages.nu…  2.0  2.1",
        "setting batch                                   4    8",
        "and 3 other differences (used by one side only, measured, or following from these). -v shows them",
    ]
    whole = "\n".join(diff_lines([pair(*both) for both in zip(first, second, strict=True)], 10.0, is_verbose=True))
    for words in ("setting qps", "user.conf net.qps", "only one of them used it", "errors"):
        assert words in whole


def test_what_differs_in_some_results_says_in_which() -> None:
    def result(name: str, cores: int) -> ResultRecord:
        return record(name=name, machine={"cores": cores})

    pairs = [pair(result("a", 2), result("a", 4)), pair(result("b", 2), result("b", 2))]
    text = "\n".join(diff_lines(pairs, 10.0))
    assert "machine cores  2  4  a" in text
    third = [*pairs, pair(result("c", 2), result("c", 8))]
    assert "machine cores  2  4  2 of 3 results, 2 values" in "\n".join(diff_lines(third, 10.0))


def test_of_a_recipe_the_files_are_counted() -> None:
    changed, _ = INPUTS["recipe file"]
    assert "recipe get-x     2 files differ" in "\n".join(diff_lines([pair(record(), record(**changed))], 10.0))


def test_what_only_follows_or_is_used_on_one_side_explains_little() -> None:
    after = record(
        settings={"batch": {"value": 8, "origin": "user"}},
        inputs={"user.conf": {"a.b": "1", "x.batch": "8"}},
        lock=locked(None),
    )
    before = record(inputs={"user.conf": {"a.b": "1", "x.batch": "4"}})
    important, others = sorted_out([pair(before, after)])
    assert list(important) == ["setting batch"]
    assert list(others) == ["built by a recipe get-x,_v", "user.conf x.batch"]


def test_identical_results_are_one_line() -> None:
    same = pair(record(), record())
    assert list(diff_lines([same, same], 10.0)) == ["identical: inputs, settings, machine and metrics"]


# --- records ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a valid record"),
        ("[" * 200_000, "is not a valid record"),
        ("null", "not a record of format 1: found NoneType"),
        ("[]", "not a record of format 1: found list"),
        ('{"format": 2}', "found 2"),
        ('{"format": 1}', "its name, made_utc"),
        (json.dumps(sealed(row(journal={}))), "journal is not valid in a record of format 1"),
        (json.dumps(sealed(row(lock={}))), "lock is not valid in a record of format 1"),
        (json.dumps(sealed(row(request={}))), "request is not valid in a record of format 1"),
        (json.dumps(sealed(row(duration_s=10**400))), "duration_s is not valid in a record of format 1"),
        (json.dumps(sealed(row(outcome={"within": {"speed": 3}}))), "outcome is not valid in a record of format 1"),
        (json.dumps(sealed(row(outcome={"exact": {"score": 10**400}}))), "outcome is not valid in a record"),
    ],
)
def test_a_file_that_is_no_record_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_record(text, "r.json")
    assert words in caught.value.message


def test_places_of_a_machine_are_put_by_name_at_any_depth_and_back() -> None:
    places = [("/h/cache", "<cache>"), ("/h/me", "<home>"), ("/", "<root>")]
    value = {"a": ["/h/me/data", {"b": "/h/cache/0123456789abcdef/x"}], "c": 3}
    assert portable_value(value, places) == {"a": ["<home>/data", {"b": "<cache>/x"}], "c": 3}
    assert here({"a": ["<home>/data"], "c": 3}, {"<home>": "/u"}, "r") == {"a": ["/u/data"], "c": 3}
    with pytest.raises(BadRecord, match="a file of another cache: <cache>/x"):
        here(["<cache>/x"], {"<home>": "/u"}, "r")


# --- cm diff script ---


def put(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(sealed(row(**changes))), encoding="utf-8")
    return folder


def test_results_of_one_name_are_put_side_by_side_and_the_others_are_named(tmp_path: Path) -> None:
    put(tmp_path / "a" / "1", name="one")
    put(tmp_path / "a" / "2", name="two")
    put(tmp_path / "b" / "1", name="one", machine={"cores": 8})
    put(tmp_path / "b" / "3", name="three")
    answer = diff_action({"artifact": str(tmp_path / "a"), "artifacts": [str(tmp_path / "b")]})
    assert (answer["return"], answer["identical"]) == (0, False)
    (only,) = answer["results"]
    assert only["machine"] == [{"group": "machine", "name": "cores", "before": 2, "after": 8, "note": ""}]
    assert (answer["only_in_first"], answer["only_in_second"]) == (["two"], ["three"])


def test_two_single_results_are_compared_whatever_they_are_called(tmp_path: Path) -> None:
    one, other = put(tmp_path / "a", name="one"), put(tmp_path / "b", name="other")
    words = {"artifact": str(one), "artifacts": [str(other)]}
    assert diff_action(words)["identical"]
    assert diff_action({**words, "exit_code": True})["return"] == 0
    put(tmp_path / "c", inputs={})
    answer = diff_action({"artifact": str(one), "artifacts": [str(tmp_path / "c")], "exit_code": True})
    assert answer["return"] == 1


def test_an_edited_file_of_a_result_is_told(tmp_path: Path) -> None:
    one = put(tmp_path / "a", files={"score.txt": A})
    (one / "score.txt").write_text("x")
    answer = diff_action({"artifact": str(one), "artifacts": [str(put(tmp_path / "b"))]})
    assert answer["results"][0]["edited"][0][0]["name"] == "score.txt"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "two results are compared, found 0"),
        (["a"], "two results are compared, found 1"),
        (["a", "b", "b"], "found 3"),
        (["a", "gone"], "it does not exist"),
        (["two", "other"], "no result of"),
        (["a", "twice"], "thing/one was produced more than once"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(tmp_path: Path, words: list[str], expected: str) -> None:
    put(tmp_path / "a")
    put(tmp_path / "two" / "1", name="one")
    put(tmp_path / "two" / "2", name="two")
    put(tmp_path / "other" / "3", name="three")
    put(tmp_path / "twice" / "1")
    put(tmp_path / "twice" / "2")
    paths = [str(tmp_path / word) for word in words]
    with pytest.raises(RequestError, match=expected):
        diff_action({"artifact": paths[0] if paths else "", "artifacts": paths[1:]})


def test_a_folder_that_is_not_there_comes_with_the_command_that_lists_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        diff_action({"artifact": str(tmp_path / "a"), "artifacts": [str(tmp_path / "b")]})
    assert caught.value.hint.startswith("cm run script --tags=show,mlperf,results ")
