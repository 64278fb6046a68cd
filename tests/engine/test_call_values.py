"""The values in the env of a hook as texts, as yes or no by one table of words (the engine's), and its answers."""

import pytest
from recipe_engine.rules.conditions import FALSE_WORDS, TRUE_WORDS

from crowdperf.call.answers import failure
from crowdperf.call.values import TRUTHS, first_text_of, is_no, is_set, is_yes, text_of, truth_of


def test_the_words_are_those_of_the_engine():
    assert {word for word, is_true in TRUTHS.items() if is_true} == TRUE_WORDS
    assert {word for word, is_true in TRUTHS.items() if not is_true} == FALSE_WORDS


@pytest.mark.parametrize(
    "value, truth, set_",
    [
        ("yes", True, True),
        (" On ", True, True),
        ("TRUE", True, True),
        (True, True, True),
        (1, True, True),
        ("no", False, False),
        ("Off", False, False),
        (False, False, False),
        (0, False, False),
        ("maybe", None, True),
        ("2", None, True),
        ("", None, False),
        ("  ", None, False),
        (None, None, False),
    ],
)
def test_what_a_value_means(value, truth, set_):
    assert (truth_of(value), is_yes(value), is_no(value)) == (truth, truth is True, truth is False)
    assert is_set(value) is set_


@pytest.mark.parametrize(
    "value, text", [(" a b ", "a b"), (8, "8"), (0, "0"), (None, ""), ("", ""), (False, "False"), (True, "True")]
)
def test_a_value_as_text(value, text):
    assert text_of({"CM_X": value}, "CM_X") == text


def test_a_value_that_is_not_there():
    assert text_of({}, "CM_X") == ""
    assert first_text_of({"CM_B": " ", "CM_C": "third"}, ("CM_A", "CM_B", "CM_C")) == "third"
    assert first_text_of({}, ("CM_A",)) == ""


def test_what_a_hook_answers_where_a_call_cannot_be_carried_out():
    assert failure(ValueError("no such file")) == {"return": 1, "error": "no such file"}
    assert failure("no", "hint: look", 3) == {"return": 3, "error": "no\nhint: look"}
