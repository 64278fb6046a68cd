"""Lines that fit: cut texts, joined names, tables, the width of a listing, the commands in a text."""

import os

import pytest
from recipe_engine.actions import adapter
from recipe_engine.documents.console_text import cut, joined, table
from recipe_engine.rules.amounts import counted, short_age
from recipe_engine.running.console import as_called

from crowdperf.call import command


@pytest.mark.parametrize(
    ("text", "width", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("ab cd", 4, "ab…"), ("", 0, ""), ("a", 0, "…")]
)
def test_a_long_line_ends_with_an_ellipsis(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


def test_many_names_are_counted() -> None:
    assert joined(["a", "b"], 2) == "a, b"
    assert joined(["a", "b", "c", "d"], 2) == "a, b, and 2 more"


def test_a_table_has_columns_and_cuts_the_flexible_one() -> None:
    rows = [("name", "what", "size"), ("a", "something long", "5 B"), ("longer", "b", "12 MB")]
    assert list(table(rows, 100, rights=[2])) == [
        "name    what             size",
        "a       something long    5 B",
        "longer  b               12 MB",
    ]
    assert list(table(rows, 24, rights=[2], flexible=1)) == [
        "name    what        size",
        "a       somethin…    5 B",
        "longer  b          12 MB",
    ]
    assert max(map(len, table(rows, 10, flexible=1))) == 10, "never wider, whatever that costs"
    assert list(table([], 10)) == []


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "run", "0 runs"), (1, "run", "1 run"), (1200, "run", "1,200 runs"), (2, "cache entry", "2 cache entries")],
)
def test_one_thing_is_singular(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


@pytest.mark.parametrize(
    ("age_s", "text"), [(-1, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86399, "23 h"), (200_000, "2 d")]
)
def test_a_short_age_has_one_unit(age_s: float, text: str) -> None:
    assert short_age(age_s) == text


def test_a_listing_is_as_wide_as_the_terminal_and_never_wider_than_100(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = {}
    for columns in (80, 300, 0):
        monkeypatch.setattr(os, "get_terminal_size", lambda _, columns=columns: os.terminal_size((columns, 24)))
        widths[columns] = adapter.listing_width()
    assert widths == {80: 80, 300: 100, 0: 100}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("again: cm run script --tags=a", "again: ./cm run script --tags=a"),
        ("cm show cache; then cm rm cache X -f", "./cm show cache; then ./cm rm cache X -f"),
        ("cm ACTION cache; cm use crowdperf:script", "./cm ACTION cache; ./cm use crowdperf:script"),
        ("(cm native-run script, cm pull repo)", "(./cm native-run script, ./cm pull repo)"),
        ("./cm run script, /x/cm run script, my-cm run script", "./cm run script, /x/cm run script, my-cm run script"),
        ("5 cm of script, cm ... script, scm run script", "5 cm of script, cm ... script, scm run script"),
    ],
)  # fmt: skip
def test_only_commands_are_named_as_the_user_calls_them(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CROWDPERF_CM", raising=False)
    assert as_called(text) == text
    monkeypatch.setenv("CROWDPERF_CM", "./cm")
    assert as_called(text) == shown
    monkeypatch.setenv("CROWDPERF_CM", "crowdperf cm")
    assert as_called(as_called(text)) == as_called(text), "a text that is shown twice"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Again: cm run script --tags=run,mlperf,inference --model_path=/a.onnx",
         "Again: crowdperf run --model_path=/a.onnx"),
        ("cm run script --tags=run,mlperf,inference,_short; cm run script --tags=run,mlperf,inference.",
         "crowdperf run run,mlperf,inference,_short; crowdperf run."),
        ("try cm run script --tags=run,mlperf,inference, or cm plan script --tags=get,cuda",
         "try crowdperf run, or crowdperf plan get,cuda"),
        ("cm show cache --tags=get,cuda; cm resume script 1-a",
         "crowdperf cache --tags=get,cuda; crowdperf resume 1-a"),
        ("cm run script alias --tags=doctor; cm rm cache X -f",
         "crowdperf cm run script alias --tags=doctor; crowdperf cm rm cache X -f"),
        ("cm run script --tags=doctor", "crowdperf doctor"),
    ],
)  # fmt: skip
def test_the_installed_command_prints_its_own_verbs(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in command.environment({"CM_REPOS": "/cm"}).items():
        monkeypatch.setenv(name, value)
    assert as_called(text) == as_called(as_called(text)) == shown
    assert command.words_of_cm(["run", "run,mlperf,inference,_short"])[2] == "--tags=run,mlperf,inference,_short"
