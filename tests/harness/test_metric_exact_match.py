"""Graders and the share of right answers.

The letters, integers and boxed formulas are found as eval_accuracy.py of language/deepseek-r1 and language/gpt-oss-120b
find them (mlcommons/inference b66003e1): on 200,000 random texts of the pieces below the functions here gave the same,
2026-11-23; the table holds some of them.
"""

import ast
import logging

import numpy as np
import pytest

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.metrics import exact_match, graders
from crowdperf.harness.metrics.graders import HARMONY_GRADERS, Grade, grade_formula, grader_of

RIGHT, WRONG, OPEN = Grade.RIGHT, Grade.WRONG, Grade.OPEN


@pytest.mark.parametrize(
    ("text", "of_four", "of_ten"),
    [
        ("ANSWER: B", "B", "B"),
        ("Answer: (C)", "C", "C"),
        ("answer = d\n", "D", "D"),
        ("FINAL ANSWER: A.\nANSWER: C.", "C", "C"),
        ("ANSWER:E", "", "E"),
        ("ANSWER: AB", "", ""),
        ("the answer is C", "", "C"),
        ("I think J. or so", "", "J"),
        ("['ANSWER: A']", "A", "A"),
        (r"so\nANSWER: D\n", "D", "D"),
        ("", "", ""),
    ],
)
def test_the_chosen_letter(text: str, of_four: str, of_ten: str) -> None:
    assert (graders.chosen_letter(text, "D"), graders.chosen_letter(text, "J")) == (of_four, of_ten)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("<|channel|>analysis<|message|>ANSWER: A<|end|><|channel|>final<|message|>B<|return|>", "B"),
        ("<|channel|>final x<|message|>**C**", "C"),
        ("<|channel|>final<|message|>Surely. Answer: D", "D"),
        ("no channel here\nANSWER: A", "A"),
        ("<|channel|>analysis<|message|>ANSWER: A<|end|>", "A"),
        ("nothing", ""),
    ],
)
def test_the_chosen_letter_of_an_answer_with_channels(text: str, letter: str) -> None:
    assert graders.chosen_letter_harmony(text, "D") == letter


@pytest.mark.parametrize(
    ("text", "boxed", "integer"),
    [
        (r"so \boxed{ 007 }", "007", 7),
        (r"\boxed{12} or \boxed{34}", "34", 34),
        (r"\boxed{1000}", "1000", None),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", None),
        (r"\boxed{12", None, None),
        ("Answer: 123", None, 123),
        ("Answer: 12.5", None, None),
        ("no answer", None, None),
    ],
)
def test_what_stands_in_a_box(text: str, boxed: str | None, integer: int | None) -> None:
    assert (graders.boxed(text), graders.integer_answer(text)) == (boxed, integer)


@pytest.mark.parametrize(
    ("given", "solution", "grade"),
    [
        ("42", "42", RIGHT),
        ("42.0", "42", RIGHT),
        ("1,234", "1234", RIGHT),
        (r"\frac{1}{2}", r"\dfrac{1}{2}", RIGHT),
        (r"\frac12", r"\frac{1}{2}", RIGHT),
        (r"2/4", r"\frac{1}{2}", WRONG),  # not reduced
        ("0.5", r"0.50", RIGHT),
        (r"(1, 2)", r"\left( 1,2 \right)", RIGHT),
        ("(1, 2)", "[1, 2]", WRONG),
        ("(1, 3)", "(1, 2)", WRONG),
        ("(1, 2, 3)", "(1, 2)", WRONG),
        (r"\text{Evelyn}", "Evelyn", RIGHT),
        (r"90^\circ", "90", RIGHT),
        (r"\$5", "5", RIGHT),
        ("5 cm", "5", RIGHT),
        ("41", "42", WRONG),
        ("x", "42", WRONG),
        ("x+1", "1+x", OPEN),  # sympy would say: right
        (r"\sqrt{8}", r"2\sqrt{2}", OPEN),
        ("", "42", WRONG),
    ],
)
def test_a_formula_is_right_wrong_or_for_sympy(given: str, solution: str, grade: Grade) -> None:
    assert grade_formula(f"Therefore \\boxed{{{given}}}.", solution) is grade


def test_a_formula_is_never_run() -> None:
    assert grade_formula(r"\boxed{__import__('os').system('touch /tmp/x')}", "1") is WRONG
    assert grade_formula(r"\boxed{9**9**9**9}", "2x") is OPEN
    assert grade_formula(r"\boxed{" + "9" * 10_000 + "}", "2x") in (OPEN, WRONG)
    assert grade_formula(r"\boxed{\pi" + "{" * 20_000 + "}" * 20_001, "2x") is OPEN


def test_a_program_is_not_run_either() -> None:
    grade = grader_of("livecodebench_v6")
    assert grade is not None
    assert (grade("```python\nprint(1)\n```", "abc_1"), grade("no program", "abc_1")) == (OPEN, WRONG)


def ids(text: str) -> bytes:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32).tobytes()


def said(tokens: list[int]) -> str:
    return bytes(tokens).decode()


def test_every_set_counts_each_question_once_and_tokens_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    sets = ["gpqa", "aime", "math500", "mmlu_pro", "livecodebench"]
    texts = ["ANSWER: A", "\\boxed{7}", "\\boxed{x+1}", "ANSWER: J", "```python\n```"]
    responses = [(index, ids(text)) for index, text in enumerate(texts)]
    with caplog.at_level(logging.WARNING):
        score = exact_match.score(responses, ["A", "7", "1+x", "B", "q1"], sets, said, has_token_counts=True)
    mean = sum(map(len, texts)) / 5
    assert score.values == {"exact_match": 40.0, "TOKENS_PER_SAMPLE": mean}
    line = {"exact_match": 40.0, "tokens_per_sample": mean, "num-samples": 5, "not-graded": 2}
    assert ast.literal_eval(score.line) == line
    assert "2 of 5 answers count as wrong" in caplog.text


def test_repeated_questions_weigh_as_one() -> None:
    """Of 2 AIME questions asked 8 times 12 answers are right, of 3 of GPQA asked 5 times 9: (12/8 + 9/5) / (2 + 3)."""
    sets = ["aime25"] * 16 + ["gpqa_diamond"] * 15
    texts = ["\\boxed{7}"] * 12 + ["\\boxed{8}"] * 4 + ["A"] * 9 + ["B"] * 6
    references = ["7"] * 16 + ["A"] * 15
    score = exact_match.score(
        [(index, ids(text)) for index, text in enumerate(texts)], references, sets, said,
        graders=HARMONY_GRADERS, repeats={"aime25": 8, "gpqa_diamond": 5},
    )  # fmt: skip
    assert score.line == "{'exact_match': 66.000, 'num-samples': 31}"
    assert score.values == {"exact_match": 66.0}, (
        "tokens_per_sample is not printed: the checker would hold it to a limit"
    )


def test_what_cannot_be_scored_is_named() -> None:
    with pytest.raises(HarnessError, match="no grader for samples of 'poems'; known: gpqa"):
        exact_match.score([], ["x"], ["poems"], said)
    with pytest.raises(HarnessError, match="no responses to score"):
        exact_match.score([], ["x"], ["gpqa"], said)
    with pytest.raises(HarnessError, match="6 bytes, which is not a whole number of int32"):
        exact_match.score([(0, b"123456")], ["x"], ["gpqa"], said)
