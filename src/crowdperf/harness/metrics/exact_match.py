"""Share of right answers; agrees with eval_accuracy.py (language/deepseek-r1) and eval_mlperf_accuracy.py
(language/gpt-oss-120b) of mlcommons/inference at b66003e1, but for answers that only those can grade (graders.py).

An answer that stays open counts as wrong, so the score is never too high; `not-graded` behind it says how many there
are. The official script on the same log then gives the score to hand in.

    {'exact_match': 81.3582, 'tokens_per_sample': 3886.2274, 'num-samples': 4388}
    {'exact_match': 83.130, 'num-samples': 4395, 'not-graded': 3165}

With `repeats` each data set counts as often as it has different questions: AIME's are asked 8 times, GPQA's 5 times.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics.graders import GRADERS, Grade, Grader, grader_of
from crowdperf.harness.metrics.rouge import token_ids

_LOG = logging.getLogger(__name__)
_HINT = "score the log with the data set that made it"


def _require_graders(subsets: Iterable[str], graders: Mapping[str, Grader]) -> None:
    unknown = sorted({subset for subset in subsets if grader_of(subset, graders) is None})
    if unknown:
        found = ", ".join(repr(name) for name in unknown[:5])
        raise HarnessError(f"no grader for samples of {found}; known: {', '.join(graders)}", _HINT)


def weighted_percent(right: Mapping[str, int], total: Mapping[str, int], repeats: Mapping[str, int]) -> float:
    """Return the percentage of right answers, those of each data set divided by how often it repeats its questions."""
    whole = sum(count / repeats.get(subset, 1) for subset, count in total.items())
    return 100.0 * sum(count / repeats.get(subset, 1) for subset, count in right.items()) / whole


def score(
    responses: Iterable[tuple[int, bytes]],
    references: Sequence[str],
    subsets: Sequence[str],
    decode: Callable[[list[int]], str],
    *,
    graders: Mapping[str, Grader] = GRADERS,
    repeats: Mapping[str, int] | None = None,
    has_token_counts: bool = False,
) -> Score:
    """Return "exact_match" in percent and, with `has_token_counts`, "TOKENS_PER_SAMPLE".

    A response is int32[n]. references, subsets: by sample index. repeats: by data set in small letters; None: each
    sample counts once. Raises HarnessError for a data set without a grader and for damaged responses.
    """
    _require_graders(set(subsets), graders)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    token_count = open_count = 0
    for index, data in responses:
        tokens = token_ids(index, data, "int32")
        subset = subsets[index].lower()
        grader = grader_of(subset, graders)
        grade = Grade.WRONG if grader is None else grader(decode(tokens), references[index])
        total[subset] += 1
        right[subset] += grade is Grade.RIGHT
        open_count += grade is Grade.OPEN
        token_count += len(tokens)
    count = total.total()
    if not count:
        raise HarnessError("no responses to score", "score the log of an accuracy run")
    if open_count:
        _LOG.warning(
            "%d of %d answers count as wrong: grading them requires running the model's programs, or sympy for "
            "formulas. Run the official script on this log for the score to submit",
            open_count, count,
        )  # fmt: skip
    percent = weighted_percent(right, total, repeats or {})
    shown = f"{{'exact_match': {percent:.3f}" if repeats is not None else f"{{'exact_match': {percent!r}"
    values = {"exact_match": round(percent, 3) if repeats is not None else percent}
    if has_token_counts:
        values["TOKENS_PER_SAMPLE"] = token_count / count
        shown += f", 'tokens_per_sample': {token_count / count!r}"
    not_graded = f", 'not-graded': {open_count}" if open_count else ""
    return Score(values=values, line=f"{shown}, 'num-samples': {count}{not_graded}}}")
