r"""Formulas whose texts differ, as sympy compares them; what the official grader says of the same pairs
(grading/grader.py of openai/prm800k, 7ecc7947) was recorded on 2026-11-23, and of many more on 2026-11-28.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from harness_libraries import need

from crowdperf.harness.metrics import formulas, formulatext
from crowdperf.harness.metrics.formulas import FormulaChecker
from crowdperf.harness.metrics.graders import Grade, grade_formula

need("sympy")
RIGHT, WRONG, OPEN = Grade.RIGHT, Grade.WRONG, Grade.OPEN

PAIRS = [
    ("x+1", "1+x", RIGHT),
    ("x+1", "x+2", WRONG),
    (r"\sqrt{8}", r"2\sqrt{2}", RIGHT),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt3}", RIGHT),
    (r"\dfrac{\pi}{2}", r"0.5\pi", RIGHT),
    (r"\frac{3\pi}{4}", r"\frac{\pi}{4}", WRONG),
    ("(x+1)(x-1)", "x^2-1", RIGHT),
    ("(1, 2x)", "(1, x+x)", RIGHT),
    ("(1, 2x)", "(1, x)", WRONG),
    ("0.5", r"\frac{1}{2}", RIGHT),
    ("x = 5", "5", RIGHT),
    ("5", "", WRONG),
    ("p-q", "q-p", WRONG),
    ("a+b+c", "c+b+a", WRONG),  # more than two letters are never parsed
    ("2^{10}", "1024x", WRONG),
    ("2^123", "x", WRONG),  # nor powers of two digits
    (r"\text{west}", "east", WRONG),
    (r"(3\hat{i} - 2\hat{j})", r"3\hat{i} - 2\hat{j}", RIGHT),
    (r"2*(3\hat{i} - 2\hat{j})/2", r"3\hat{i} - 2\hat{j}", RIGHT),
    (r"-3\hat{i} - 2\hat{j}", r"3\hat{i} - 2\hat{j}", WRONG),
    ("\uff58+1", "1+x", OPEN),  # a wide x only looks like one
]  # fmt: skip


@pytest.fixture(scope="module")
def checker() -> Iterator[FormulaChecker]:
    with FormulaChecker() as found:
        yield found


@pytest.mark.parametrize(("given", "solution", "grade"), PAIRS)
def test_formulas_are_equal_where_sympy_says_so(
    checker: FormulaChecker, given: str, solution: str, grade: Grade
) -> None:
    grader = partial(grade_formula, are_equal=checker)
    assert grader(f"Therefore \\boxed{{{given}}}.", solution) is grade


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"2\hat{i}-3\hat{j}", "2î-3ĵ"),
        (r"\vec{AB}", "a\u20d7b\u20d7"),
        (r"\bar{x }y", "x\u0305y"),
        (r"\vec{\frac{1}{2}}", "1\u20d7/\u20d72\u20d7"),
        (r"\ell \wedge \nabla f", "ℓ∧∇f"),
        (r"x \in \mathbb{R}", "x∈ℝ"),  # pylatexenc 2.10, 2026-11-29
        (r"\mathbb{X}", None),  # "𝕏" there: stays open
        (r"p\implies \neg q", "pq"),  # names that pylatexenc does not know leave nothing
        (r"\textup{ab}3\emph{x}", "3x"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix", None),  # breaks off
        (r"\wrongname x", None),
        (r"\sqrt[4[]{16}", None),
    ],
)
def test_formulas_are_written_as_the_official_grader_writes_them(text: str, plain: str | None) -> None:
    """As `_normalize` of grading/grader.py (7ecc7947, pylatexenc 2.11) answered on 2026-11-28."""
    assert formulatext.plain_formula(text) == plain


def test_a_formula_that_takes_too_long_stays_open_and_the_next_one_is_graded(
    checker: FormulaChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checker("x", "x+0") is True
    monkeypatch.setattr("crowdperf.harness.metrics.formulas.LIMIT_S", 0.5)
    assert checker("9**9**9**9", "2x") is None
    monkeypatch.undo()
    assert checker("x+x", "2x") is True


def test_hundreds_of_pairs_are_graded_as_the_official_grader_grades_them(checker: FormulaChecker) -> None:
    """What it grades from LaTeX that is not read here stays open; no pair gets the other grade."""
    content = json.loads((Path(__file__).parent / "scores" / "formula_grades.json").read_text(encoding="utf-8"))
    found = [grade_formula(f"\\boxed{{{given}}}", solution, checker) for given, solution, _ in content["pairs"]]
    differing = [
        (given, solution, grade.value)
        for (given, solution, is_right), grade in zip(content["pairs"], found, strict=True)
        if grade not in (OPEN, RIGHT if is_right else WRONG)
    ]
    assert differing == []
    assert len(found) > 350 and found.count(OPEN) < len(found) / 20


@pytest.mark.parametrize(
    "text", ["a.__class__", "'a'*9", "a__b", "a²", "a→b", "\N{FULLWIDTH DIGIT ONE}", "1+" * 400 + "1"]
)
def test_what_is_no_formula_never_reaches_the_parser(text: str) -> None:
    checker = FormulaChecker(python="/none")  # cannot be started
    assert checker(text, "x") in (None, False)


def test_without_sympy_nothing_is_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with FormulaChecker(python=str(program)) as checker:
        assert checker("x+1", "1+x") is None and checker("x+2", "2+x") is None
    assert [record.message for record in caplog.records] == [
        "formulas whose texts differ are not graded: sympy is missing (pip install sympy)"
    ]


def test_the_program_is_gone_at_the_end() -> None:
    with FormulaChecker() as other:
        other._process = process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, stdout=-1)
    assert process.returncode is not None
    assert formulas.difference("x^2", "y") == "(x**2)-(y)"
