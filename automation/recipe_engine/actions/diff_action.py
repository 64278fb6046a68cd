"""``cm diff script A B``: what differs between two results, from their records alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.comparison import Comparison, compare
from ..documents.comparison_text import diff_lines, difference_line, visible
from ..rules.errors import RequestError
from ..rules.schema import is_yes
from .reproduce import parse_tolerance
from .results import FoundResult, edited_files, find_results, names_of, one_sided, pairs_of, result_folder

DIFFERS = RequestError.code
"""The code with ``--exit_code`` when anything differs, as of ``git diff --exit-code``."""


def diff_action(i: Mapping[str, Any]) -> dict[str, Any]:
    """Answers ``cm diff script A B``: results of the same name side by side; of one result each, those two.

    Raises RequestError for what is no result.
    """
    words = [str(word) for word in (i.get("artifact"), *(i.get("artifacts") or ())) if word]
    if len(words) != 2:
        raise RequestError(f"two results are compared, found {len(words)}", hint="cm diff script FOLDER FOLDER")
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    first, second = (find_results(result_folder(i, word)) for word in words)
    pairs, alone = pairs_of(first, second), one_sided(first, second)
    if not pairs:
        names = f"the first has {', '.join(names_of(first))}; the second has {', '.join(names_of(second))}"
        raise RequestError(f"no result of {words[0]} has the name of one of {words[1]}: {names}")
    comparisons = [compare(one.record, other.record) for one, other in pairs]
    is_identical = not any(alone.values()) and all(comparison.is_identical for comparison in comparisons)
    if i.get("out") == "con":
        lines = (*_lines(pairs, comparisons, tolerance_percent), *_alone_lines(alone))
        sys.stdout.write("".join(visible(line) + "\n" for line in lines))
    answer = {
        "return": 0,
        "identical": is_identical,
        "results": [
            {
                **comparison.row(tolerance_percent),
                "is_identical": comparison.is_identical,
                "folders": [str(one.folder), str(other.folder)],
                "edited": [[difference.row for difference in edited_files(side)] for side in (one, other)],
            }
            for comparison, (one, other) in zip(comparisons, pairs, strict=True)
        ],
        **alone,
    }
    if is_yes(i.get("exit_code")) and not is_identical:
        if i.get("out") == "con":
            raise RequestError("the results differ")
        answer.update({"return": DIFFERS, "error": "the results differ"})
    return answer


def _lines(
    pairs: list[tuple[FoundResult, FoundResult]], comparisons: list[Comparison], tolerance_percent: float
) -> Iterator[str]:
    for (one, other), comparison in zip(pairs, comparisons, strict=True):
        yield f"A: {one.folder} ({one.record.made_utc})"
        yield f"B: {other.folder} ({other.record.made_utc})"
        for side, letter in ((one, "A"), (other, "B")):
            for difference in edited_files(side):
                yield f"  ! {letter}: {difference_line(difference, ('recorded', 'now'))}"
        yield from diff_lines(comparison, tolerance_percent)


def _alone_lines(alone: Mapping[str, list[str]]) -> Iterator[str]:
    for letter, names in zip("AB", alone.values(), strict=True):
        if names:
            yield f"only in {letter}: {', '.join(names)}"
