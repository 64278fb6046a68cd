"""Whether an answer in words names the right solution: letters, integers, and formulas, as the graders of
language/deepseek-r1 and language/gpt-oss-120b find and compare them (eval_accuracy.py of mlcommons/inference,
b66003e1 of 2026-08-20; for formulas grading/grader.py of openai/prm800k, 7ecc7947, its submodule there).

Programs are not run against their tests (LiveCodeBench): such an answer is Grade.OPEN. So is a formula with LaTeX that
formulatext.py does not read, and one that only sympy can compare, unless what asks it (formulas.py) is given.
"""

import enum
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from crowdperf.harness.metrics.formulatext import is_integer, plain_formula, short_form, without_thousands


class Grade(enum.Enum):
    """What is known of an answer. OPEN: only the official grader can say."""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "open"


def _graded(is_right: bool) -> Grade:
    return Grade.RIGHT if is_right else Grade.WRONG


Grader = Callable[[str, str], Grade]
"""From the text of an answer and the solution to the grade."""

AreEqual = Callable[[str, str], bool | None]
"""Whether two formulas, the right one first, are equal; None where that is not known."""


def _unquoted(text: str) -> str:
    """Return a text that came as the print of a Python list of one, without that, and its escapes as characters."""
    if text.startswith(("['", '["')) and text.endswith(("']", '"]')):
        text = text[2:-2].strip()
    return text.replace(r"\n", "\n").replace(r"\'", "'")


def _last_named_letter(text: str, last: str) -> str:
    pattern = rf"\b(?:ANSWER|FINAL\s*ANSWER)\b\s*[:=]?\s*(?:\(?\s*([A-{last}])\s*\)?)(?:\s*$|[^A-Za-z])"
    found: list[str] = re.findall(pattern, text, re.IGNORECASE)
    return found[-1].upper() if found else ""


def _last_lone_letter(text: str, last: str) -> str:
    found: list[str] = re.findall(rf"\b([A-{last}])\b", text, re.IGNORECASE)
    return found[-1].upper() if found else ""


def chosen_letter(text: str, last: str) -> str:
    """Return the letter from A to `last` (D or J) that an answer chooses, empty where it names none: the last one
    after the word ANSWER; of ten choices else the last letter that stands alone."""
    text = _unquoted(text.strip())
    return _last_named_letter(text, last) or (_last_lone_letter(text, last) if last == "J" else "")


_FINAL = re.compile(r"<\|channel\|>final[^<]*<\|message\|>(.*?)(?:<\|return\|>|$)", re.DOTALL)


def final_part(text: str) -> str:
    """Return what stands in the final channel of an answer in the harmony form, the whole text where it has none."""
    found = _FINAL.search(text)
    return found[1].strip() if found else text


def chosen_letter_harmony(text: str, last: str) -> str:
    """Return the letter that an answer in the harmony form chooses: the one its final part begins with, or names after
    the word ANSWER; else what `chosen_letter` finds."""
    whole = text.strip()
    final = _unquoted(re.sub(r"\*\*([^*]+)\*\*", r"\1", final_part(whole)))
    first = re.match(rf"[^a-zA-Z]*([A-{last}])(?:[^a-zA-Z]|$)", final.strip(), re.IGNORECASE)
    found = first or re.search(rf"\bANSWER\s*[:.]?\s*([A-{last}])\b", final, re.IGNORECASE)
    if found:
        return found[1].upper()
    named = _last_named_letter(whole.replace(r"\n", "\n").replace(r"\'", "'"), last)
    return named or (_last_lone_letter(final, last) if last == "J" else "")


def _letters(find: Callable[[str, str], str], last: str) -> Grader:
    def grade(text: str, solution: str) -> Grade:
        letter = find(text, last)
        return _graded(bool(letter) and letter == solution.upper())

    return grade


def boxed(text: str) -> str | None:
    r"""Return what stands in the last \boxed{}, braces inside it included; None where there is none, or it never
    ends."""
    start = text.rfind(r"\boxed{")
    depth = 0
    for place in range(start + 7, len(text)) if start >= 0 else ():
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            if depth == 0:
                return text[start + 7 : place].strip()
            depth -= 1
    return None


def integer_answer(text: str) -> int | None:
    r"""Return the number from 0 to 999 in the last \boxed{}, else after the last "Answer:"; None where there is
    none."""
    found = re.findall(r"\\boxed{\s*(\d+)\s*}", text) or re.findall(r"Answer:\s*(\d+)(?!\.)\b", text, re.IGNORECASE)
    digits = found[-1].lstrip("0") or "0" if found else ""
    return int(digits) if digits.isascii() and 0 < len(digits) <= 3 else None


def grade_integer(text: str, solution: str) -> Grade:
    """Return whether an answer gives the integer of the solution (AIME)."""
    try:
        return _graded(integer_answer(text) == int(solution))
    except ValueError:
        return Grade.WRONG


_BRACKETS = "()[]"
_RATIO = re.compile(r"^-?[0-9]+.?/0*[1-9][0-9]*.?$")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{0,9})?")


def _elements(text: str) -> list[str]:
    text = without_thousands(text)
    if not text:
        return []
    is_tuple = len(text) > 2 and text[0] in _BRACKETS and text[-1] in _BRACKETS
    if is_tuple and not any(sign in text[1:-1] for sign in _BRACKETS):
        return [element.strip() for element in text[1:-1].split(",")]
    return [text]


def _same_element(right: str, given: str, are_equal: AreEqual) -> Grade:
    """Return whether two formulas are equal: fractions as they are written, decimals by value, an integer only to an
    integer, anything else as `are_equal` says."""
    if _RATIO.search(right) and _RATIO.search(given):
        return _graded(right == given)  # a fraction that is not reduced is wrong
    if is_integer(right) != is_integer(given):
        return Grade.WRONG
    if _DECIMAL.fullmatch(right) and _DECIMAL.fullmatch(given):
        return _graded(Fraction(right) == Fraction(given))
    is_equal = are_equal(right, given)
    return Grade.OPEN if is_equal is None else _graded(is_equal)


def _unknown(right: str, given: str) -> None:
    """Stand for what asks sympy: it is not known."""


def grade_formula(text: str, solution: str, are_equal: AreEqual = _unknown) -> Grade:
    r"""Return whether the last \boxed{} of an answer holds the formula of the solution (MATH-500). are_equal: of two
    formulas whose texts differ."""
    found = boxed(text)
    if not found or not solution:
        return Grade.WRONG
    if short_form(found) == short_form(solution):
        return Grade.RIGHT
    given, right = plain_formula(found), plain_formula(solution)
    if given is None or right is None:
        return Grade.OPEN
    if given == right:
        return Grade.RIGHT
    pairs = _elements(right), _elements(given)
    is_framed = len(pairs[0]) > 1 and bool(given) and (right[0], right[-1]) != (given[0], given[-1])
    if not given or is_framed or len(pairs[0]) != len(pairs[1]):
        return Grade.WRONG
    grades = [_same_element(*pair, are_equal) for pair in zip(*pairs, strict=True)]
    return next((one for one in (Grade.WRONG, Grade.OPEN) if one in grades), Grade.RIGHT)


def grade_program(text: str, solution: str) -> Grade:
    """Return WRONG for an answer without a block of code, else OPEN: it would have to be run."""
    return Grade.OPEN if re.search(r"```.*?```", text, re.DOTALL) and solution else Grade.WRONG


def _graders(find: Callable[[str, str], str]) -> Mapping[str, Grader]:
    choices = {"gpqa": _letters(find, "D"), "mmlu_pro": _letters(find, "J")}
    others = {"math500": grade_formula, "aime": grade_integer, "livecodebench": grade_program}
    return MappingProxyType({**choices, **others, "mmlu": _letters(find, "J")})


GRADERS, HARMONY_GRADERS = _graders(chosen_letter), _graders(chosen_letter_harmony)
"""By a word in the name of a data set, in the order in which they are looked for."""


def grader_of(subset: str, graders: Mapping[str, Grader] = GRADERS) -> Grader | None:
    """Return the grader of a data set by its name ("gpqa_diamond"); None where there is none."""
    return next((grader for word, grader in graders.items() if word in subset.lower()), None)
