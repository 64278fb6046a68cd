"""Questions on the terminal: a wrong answer is never taken for an answer."""

import sys

import pytest
from helpers import TemporaryHome, Terminal
from recipe_engine.rules.errors import Ambiguous, RequestError
from recipe_engine.running.console import confirm, pick


@pytest.mark.parametrize(
    ("typed", "picked"),
    [("1\n", 1), ("\n", 0), (" 2 \n", 2), ("two\n7\n1\n", 1), ("-1\n2\n", 2), ("1x\n\n", 0)],
)
def test_a_wrong_answer_to_a_menu_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, picked: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert pick("several fit:", ["a", "b", "c"], hint="name one") == picked
    shown = capsys.readouterr()
    assert "  1) b\n" in shown.err
    assert shown.err.count("is not a number from 0 to 2") == typed.count("\n") - 1
    assert shown.out == "", "stdout is for data"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("two\n7\n-1\n0\n", "no valid answer after 3 attempts, expected a number from 0 to 2, or q to quit"),
        ("q\n0\n", "no recipe was chosen"),
        ("Quit\n", "no recipe was chosen"),
        ("", "no recipe was chosen"),
        ("7\n", "no recipe was chosen"),
        ("\u0661\n\u0661\n\u0661\n", "no valid answer"),
    ],
)
def test_a_menu_without_a_valid_answer_is_an_error(monkeypatch: pytest.MonkeyPatch, typed: str, words: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(Ambiguous, match=words) as caught:
        pick("several fit:", ["a", "b", "c"], hint="name one")
    assert caught.value.hint == "name one"


@pytest.mark.parametrize(
    ("typed", "is_agreed"),
    [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False), ("q\n", False), ("what\ny\n", True)],
)
def test_only_y_and_yes_confirm(monkeypatch: pytest.MonkeyPatch, typed: str, is_agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert confirm("Remove it?", refusal="would remove it", hint="pass -f") is is_agreed


@pytest.mark.parametrize(("typed", "words"), [("", "not confirmed"), ("a\nb\nc\ny\n", "expected y or n")])
def test_no_answer_is_no_confirmation(monkeypatch: pytest.MonkeyPatch, typed: str, words: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(RequestError, match=words):
        confirm("Remove it?", refusal="would remove it", hint="pass -f")


@pytest.mark.parametrize(("typed", "ran"), [("two\n1\n", "b"), ("\n", "a"), ("q\n", ""), ("two\n7\n-1\n", "")])
def test_a_wrong_answer_to_the_recipe_menu_never_runs_the_first_recipe(
    home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, typed: str, ran: str
) -> None:
    for name in "ab":
        home.recipe(f"get-{name}", {"tags": ["get", "it"], "env": {"CM_RAN": name}, "new_env_keys": ["CM_RAN"]})
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    if ran:
        assert home.run("get,it", quiet=False)["new_env"] == {"CM_RAN": ran}
    else:
        with pytest.raises(Ambiguous):
            home.run("get,it", quiet=False)
