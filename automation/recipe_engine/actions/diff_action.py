"""``cm diff script A B``: what differs between two results, from their records alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..documents.comparison import Comparison, Difference, compare, diff_lines, difference_line, visible
from ..rules.errors import RequestError
from ..rules.schema import is_yes
from .results import FoundResult, edited_files, find_results, parse_tolerance, result_folder

DIFFERS = RequestError.code
"""The code with ``--exit_code`` when anything differs, as of ``git diff --exit-code``."""


class Pair(NamedTuple):
    """Two results side by side, and the files of each that were edited since."""

    sides: tuple[FoundResult, FoundResult]
    comparison: Comparison
    edited: tuple[list[Difference], ...]

    def lines(self, tolerance_percent: float) -> Iterator[str]:
        """The pair for a terminal."""
        for letter, side in zip("AB", self.sides, strict=True):
            yield f"{letter}: {side.folder} ({side.record.made_utc})"
        for letter, edited in zip("AB", self.edited, strict=True):
            for difference in edited:
                yield f"  ! {letter}: {difference_line(difference, ('recorded', 'now'))}"
        yield from diff_lines(self.comparison, tolerance_percent)

    def row(self, tolerance_percent: float) -> dict[str, Any]:
        """The pair as JSON."""
        return {
            **self.comparison.row(tolerance_percent),
            "is_identical": self.comparison.is_identical,
            "folders": [str(side.folder) for side in self.sides],
            "edited": [[difference._asdict() for difference in edited] for edited in self.edited],
        }


def diff_action(i: Mapping[str, Any]) -> dict[str, Any]:
    """Answers ``cm diff script A B``: results of the same name side by side; of one result each, those two.

    Raises RequestError for a folder without results.
    """
    words = [str(word) for word in (i.get("artifact"), *(i.get("artifacts") or ())) if word]
    if len(words) != 2:
        raise RequestError(f"two results are compared, found {len(words)}", hint="cm diff script FOLDER FOLDER")
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    first, second = (find_results(result_folder(i, word)) for word in words)
    are_single = len(first) == len(second) == 1
    sides = [{"": results[0]} if are_single else _by_name(results) for results in (first, second)]
    pairs = [_pair(one, sides[1][name]) for name, one in sides[0].items() if name in sides[1]]
    if not pairs:
        names = f"the first has {', '.join(sides[0])}; the second has {', '.join(sides[1])}"
        raise RequestError(f"no result of {words[0]} has the name of one of {words[1]}: {names}")
    alone = [sorted(sides[0].keys() - sides[1].keys()), sorted(sides[1].keys() - sides[0].keys())]
    is_identical = not any(alone) and all(pair.comparison.is_identical for pair in pairs)
    if i.get("out") == "con":
        lines = [line for pair in pairs for line in pair.lines(tolerance_percent)]
        lines += [f"only in {letter}: {', '.join(names)}" for letter, names in zip("AB", alone, strict=True) if names]
        sys.stdout.write("".join(visible(line) + "\n" for line in lines))
    answer = {
        "return": 0,
        "identical": is_identical,
        "results": [pair.row(tolerance_percent) for pair in pairs],
        "only_in_first": alone[0],
        "only_in_second": alone[1],
    }
    if is_yes(i.get("exit_code")) and not is_identical:
        if i.get("out") == "con":
            raise RequestError("the results differ")
        answer.update({"return": DIFFERS, "error": "the results differ"})
    return answer


def _pair(one: FoundResult, other: FoundResult) -> Pair:
    return Pair((one, other), compare(one.record, other.record), (list(edited_files(one)), list(edited_files(other))))


def _by_name(results: Sequence[FoundResult]) -> dict[str, FoundResult]:
    """Results by their names; raises RequestError where several have one name."""
    found: dict[str, FoundResult] = {}
    for result in results:
        name = result.record.name
        if name in found:
            raise RequestError(
                f"{name} was made more than once: {found[name].folder} and {result.folder}",
                hint="name the folder of one call, or of one run",
            )
        found[name] = result
    return found
