"""The SQuAD scorer agrees with accuracy-squad.py, and its text handling with what SQuAD and BERT say."""

import re

import numpy as np
import pytest
from scores import squad_cases
from scores.agreement import check

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics import squad

# the checkers' pattern (tools/submission/submission_checker/constants.py, ACC_PATTERN)
_PATTERN = re.compile(r"^{[\"\']exact_match[\"\']\:\s*[\d\.]+,\s*[\"\']f1[\"\']\:\s*([\d\.]+)}")


@pytest.mark.parametrize("name", squad_cases.CASES)
def test_line_is_the_official_one(name):
    check("squad", name, squad_cases.CASES[name](), squad_cases.ours)


def test_checker_reads_f1_from_the_line():
    score = squad_cases.ours(squad_cases.CASES["real format"]())
    assert float(_PATTERN.match(score.line).group(1)) == score.values["F1"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Quick-Brown fox.", ["the", "quick", "-", "brown", "fox", "."]),
        ("Naïve Ångström", ["naive", "angstrom"]),
        ("中国abc", ["中", "国", "abc"]),
        ("a\u200bb\ufeffc\x00d\ufffd", ["abcd"]),
        ("x\u00a0y\u2003z", ["x", "y", "z"]),
        ("$5 `x` ^2 “q”", ["$", "5", "`", "x", "`", "^", "2", "“", "q", "”"]),
        ("", []),
    ],
)
def test_basic_tokens(text, tokens):
    assert squad.basic_tokenize(text) == tokens


def _one(words: list[str], tokens: list[str], word_indices: list[int], start: int, end: int, answers: list[str]):
    feature = squad.SquadFeature(
        question_index=0,
        document_start=3,
        tokens=tokens,
        word_indices=word_indices,
        is_max_context=[True] * len(tokens),
    )
    logits = np.full((384, 2), -5.0, dtype=np.float32)
    logits[start + 3, 0] = logits[end + 3, 1] = 5.0
    question = squad.SquadQuestion(question_id="q", words=words, answers=answers)
    return squad.score([(0, logits.tobytes())], [question], [feature])


@pytest.mark.parametrize(
    ("words", "tokens", "word_indices", "span", "answer"),
    [
        (["(1895-1943)."], ["(", "1895", "-", "1943", ")", "."], [0] * 6, (1, 1), "1895"),
        (["Smith's", "House"], ["smith", "'", "s", "house"], [0, 0, 0, 1], (0, 0), "Smith"),
        (["Playing", "Åland"], ["play", "##ing", "aland"], [0, 0, 1], (0, 2), "Playing Åland"),
    ],
)
def test_answer_is_cut_out_as_written(words, tokens, word_indices, span, answer):
    assert _one(words, tokens, word_indices, *span, [answer]).values == {"F1": 100.0, "exact_match": 100.0}


def test_answer_of_more_than_thirty_tokens_does_not_count():
    words = [f"w{i}" for i in range(40)]
    longest = _one(words, words, list(range(40)), 0, 29, [" ".join(words[:30])])
    too_long = _one(words, words, list(range(40)), 0, 30, [" ".join(words[:31])])
    assert (longest.values["exact_match"], too_long.values["exact_match"]) == (100.0, 0.0)


def test_best_of_the_reference_answers_counts():
    assert _one(["a", "House"], ["a", "house"], [0, 1], 0, 1, ["ship", "the house!"]).values["exact_match"] == 100.0


@pytest.mark.parametrize(
    ("responses", "said"),
    [
        ([(99, b"\0" * 8)], "sample 99 is unknown"),
        ([(0, b"\0" * 3080)], "3080 bytes; allowed: 8 for each token, up to 3072"),
        ([(0, b"")], "has 0 bytes"),
        ([(0, np.array([np.inf, 0], np.float32).tobytes())], "not all numbers"),
        ([], "no response"),
    ],
)
def test_response_that_cannot_be_is_refused(responses, said):
    truth = squad_cases.make_truth(1)
    with pytest.raises(HarnessError, match=said):
        squad.score(responses, truth.questions, truth.features)


def test_a_data_set_without_questions_has_no_score():
    truth = squad_cases.make_truth(1)
    with pytest.raises(HarnessError, match="no responses or no questions"):
        squad.score([(0, np.zeros((1, 2), np.float32).tobytes())], [], truth.features)
