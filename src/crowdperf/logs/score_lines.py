"""The lines of accuracy.txt that carry a score or the hash, in the form that the official checkers look for.

A line counts from its beginning, so that a console message before the score on the same line hides it. Source: the
accuracy patterns of the checker of mlcommons/inference (submission_checker/constants.py at b66003e1, August 2026),
whose files look like

    accuracy=76.456%, good=38228, total=50000
    hash=5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
"""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_NUMBER = r"(?P<value>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9.])"


def _printed(key: str) -> str:
    """A key in the print of a Python dict, its number bare or in quotes."""
    return rf".*'{key}':\s+'?{_NUMBER}"


_WORD_ERRORS = rf"Word Error Rate:.*, accuracy={_NUMBER}%"

PATTERNS: Mapping[str, str] = {
    "acc": rf'(?:\{{")?accuracy[": ]*=?\s*{_NUMBER}',
    "AUC": rf"AUC={_NUMBER}",
    "DLRM_NE": rf".*metric/lifetime_ne/rating:\s*{_NUMBER}",
    "DLRM_ACC": rf".*metric/lifetime_accuracy/rating:\s*{_NUMBER}",
    "DLRM_AUC": rf".*metric/lifetime_gauc/rating:\s*{_NUMBER}",
    "mAP": rf".*(?:mAP=|'Total':)\s*{_NUMBER}",
    "F1": rf"""\{{["']exact_match["']:\s*[0-9.]+,\s*["']f1["']:\s*{_NUMBER}\}}""",
    "ACCURACY": _WORD_ERRORS,
    "WER": _WORD_ERRORS,
    "DICE": rf"Accuracy:\s*mean\s*=\s*{_NUMBER}",
    "ROUGE1": _printed("rouge1"),
    "ROUGE2": _printed("rouge2"),
    "ROUGEL": _printed("rougeL"),
    "ROUGELSUM": _printed("rougeLsum"),
    "GEN_LEN": rf".*'gen_len':\s{_NUMBER}",
    "TOKENS_PER_SAMPLE": rf".*'tokens_per_sample':\s{_NUMBER}",
    "CLIP_SCORE": _printed("CLIP_SCORE"),
    "FID_SCORE": _printed("FID_SCORE"),
    "gsm8k_accuracy": rf".*'gsm8k':\s{_NUMBER}",
    "mbxp_accuracy": rf".*'mbxp':\s{_NUMBER}",
    "exact_match": rf".*'exact_match':\s{_NUMBER}",
    "vbench_score": rf".*'vbench_score':\s{_NUMBER}",
    "F1_HIERARCHICAL": rf'\{{.{{0,9999}}"f1":\s*{_NUMBER}.{{0,9999}}\}}',
    "E2E_ACCURACY": rf"Accuracy:\s*{_NUMBER}",
    "overall": _printed("overall"),
    "non_live": _printed("non_live"),
}
"""By metric: what a line with its score matches from the beginning; the group `value` is the score. A search that could
begin again at every place of a line is bounded, because a file may be made to keep it busy. The last two are
not the checker's: qwen3.6-27b has two gates in its README, and one in the checker."""

EXAMPLES: Mapping[str, str] = {
    "acc": "accuracy=76.456%, good=38228, total=50000",
    "AUC": "AUC=80.31%",
    "mAP": "mAP=37.55%",
    "F1": '{"exact_match": 83.1, "f1": 90.4}',
    "ACCURACY": "Word Error Rate: 2.07%, accuracy=97.93%",
    "WER": "Word Error Rate: 7.45%, accuracy=92.55%",
    "DICE": "Accuracy: mean = 0.86170",
    "ROUGE1": "{'rouge1': '42.98'}",
    "ROUGE2": "{'rouge2': 15.9075}",
    "ROUGEL": "{'rougeL': 24.4957}",
    "ROUGELSUM": "{'rougeLsum': 35.793}",
    "GEN_LEN": "{'gen_len': 4016878}",
    "TOKENS_PER_SAMPLE": "{'tokens_per_sample': 294.45}",
    "CLIP_SCORE": "{'CLIP_SCORE': '31.75'}",
    "FID_SCORE": "{'FID_SCORE': '23.48'}",
    "exact_match": "{'exact_match': 83.13}",
    "DLRM_NE": "metric/lifetime_ne/rating: 0.86687",
    "DLRM_ACC": "metric/lifetime_accuracy/rating: 0.69651",
    "DLRM_AUC": "metric/lifetime_gauc/rating: 0.78663",
    "vbench_score": "{'vbench_score': 70.48}",
    "F1_HIERARCHICAL": '{"f1": 0.7903}',
    "E2E_ACCURACY": "Accuracy: 35.1234",
    "overall": "{'overall': 86.23}",
    "non_live": "{'non_live': 87.96}",
}
"""By metric: a line as its official script prints it; of vbench_score and E2E_ACCURACY, whose scripts print none that
parses, and of the last two, a line that the checker or the gate reads."""

_ANYTHING = r"(?P<value>(?:np\.)?\w{1,20}\([^)]{0,80}\)|[+-]?(?:[\d.](?:[^\s,%'\"}]|,(?=\d)){0,80}|nan\b|inf\b))"
"""A number, however it is written, also with a comma in it; as long as numbers are, because a file may be made to keep
the search busy."""

_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")

_HASH = re.compile(r"^hash=(?P<value>\w+)$", re.MULTILINE)
_SECOND_COUNTS = re.compile(
    r"AUC=.*\baccuracy=(?P<percent>[0-9.]+)%,\s*good=(?P<good>[0-9]{1,18}),\s*total=(?P<total>[0-9]{1,18})"
)
_WORDS = re.compile(rf"Word Error Rate:\s*(?P<errors>[0-9.]+)%, accuracy={_NUMBER}%")
_DICE = re.compile(r"Accuracy:\s*mean\s*=\s*(?P<mean>[0-9.]+)(?P<parts>(?:,\s*[a-z ]+=\s*[0-9.]+)+)")
_TOKENS = re.compile(
    r".*'gen_num':\s*(?P<count>[0-9]{1,18}),.*'gen_tok_len':\s*(?P<tokens>[0-9]{1,18}),"
    r".*'tokens_per_sample':\s*(?P<mean>[0-9.]+)"
)
_SAMPLES = re.compile(r"(?:'(?P<name>gen_num|num-samples)':\s*|\b(?P<word>queries)=)(?P<count>[0-9]{1,18})")

_NAMED = re.compile(
    r"""["'](?P<name>exact_match|f1|rouge1|rouge2|rougeL|rougeLsum)["']:\s*'?(?P<value>[0-9]{1,9}(?:\.[0-9]{0,20})?)"""
)
_AT_MOST = {"exact_match": "f1", "rouge2": "rouge1", "rougel": "rouge1", "rougelsum": "rouge1"}
"""An exact answer has F1 100; of two words, or of words in order, no more agree than of single words."""

_COUNTS = re.compile(r"accuracy=(?P<percent>[0-9.]+)%,\s*good=(?P<good>[0-9]+),\s*total=(?P<total>[0-9]+)")


@dataclass(frozen=True, slots=True)
class Score:
    """A score and the number of its line, counted from 1."""

    value: float
    line: int


@dataclass(frozen=True, slots=True)
class HashLine:
    """What stands behind `hash=`, and the number of the line."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts that accuracy-imagenet's line gives beside its score."""

    percent: float
    good: int
    total: int
    line: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A figure that follows from others on its line: as written, as derived, and how far apart rounding puts them."""

    name: str
    written: float
    derived: float
    tolerance: float
    line: int

    @property
    def is_true(self) -> bool:
        """Whether the two are near each other."""
        return abs(self.written - self.derived) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Bound:
    """A score that is at most another one on its line: `name` is as written, `other` has the value `most`."""

    name: str
    written: float
    other: str
    most: float
    line: int

    @property
    def is_kept(self) -> bool:
        """Whether it is, but for four digits of rounding."""
        return not self.written > self.most + 2e-4


@dataclass(frozen=True, slots=True)
class SampleCount:
    """How many samples a score is of, by the name that its script has for them, and the number of the line."""

    name: str
    count: int
    line: int


@functools.lru_cache(maxsize=32)
def parse_scores(metric: str, text: str) -> tuple[Score, ...]:
    """Return every score of `metric` in the text of an accuracy.txt; empty for a metric that has no pattern here."""
    pattern = PATTERNS.get(metric)
    if pattern is None:
        return ()
    expression = re.compile(pattern)
    found = ((number, expression.match(line)) for number, line in enumerate(text.split("\n"), start=1))
    return tuple(Score(float(match["value"]), number) for number, match in found if match)


@functools.lru_cache(maxsize=32)
def unplain_scores(metric: str, text: str) -> tuple[tuple[str, int], ...]:
    """Return what stands where a score of `metric` should, and is no plain number, each with its line.

    The checker refuses `np.float64(44.43)` and `nan`, and reads the 8.1 of `8.1e+06` as the score.
    """
    pattern = PATTERNS.get(metric)
    if pattern is None:
        return ()
    expression = re.compile(pattern.replace(_NUMBER, _ANYTHING))
    found = ((number, expression.match(line)) for number, line in enumerate(text.split("\n"), start=1))
    return tuple((one["value"], number) for number, one in found if one and not _PLAIN.fullmatch(one["value"]))


def parse_hashes(text: str) -> tuple[HashLine, ...]:
    """Return every line `hash=...` that stands alone."""
    found, line, counted = [], 1, 0
    for match in _HASH.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        found.append(HashLine(match["value"], line))
    return tuple(found)


def parse_counts(text: str) -> Iterator[Counts]:
    """Yield the counts of every line like `accuracy=86.800%, good=43400, total=50000`."""
    for number, line in enumerate(text.split("\n"), start=1):
        match = _COUNTS.match(line)
        if match:
            good, total = int(match["good"]), int(match["total"])
            yield Counts(percent=_float(match["percent"]), good=good, total=total, line=number)


def parse_sample_counts(text: str) -> Iterator[SampleCount]:
    """Yield the numbers of samples that the scripts for DLRM and language models print beside their scores."""
    for number, line in enumerate(text.split("\n"), start=1):
        for match in _SAMPLES.finditer(line):
            yield SampleCount(match["name"] or match["word"], int(match["count"]), number)


def parse_statements(text: str) -> Iterator[Statement]:
    """Yield every figure of an accuracy.txt that the rest of its line gives, too."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield from _statements(line, number)


def parse_bounds(text: str) -> Iterator[Bound]:
    """Yield every score of an accuracy.txt that another one on its line is never less than."""
    for number, line in enumerate(text.split("\n"), start=1):
        scores = {match["name"].lower(): _float(match["value"]) for match in _NAMED.finditer(line)}
        for name, other in _AT_MOST.items():
            if name in scores and other in scores:
                yield Bound(name, scores[name], other, scores[other], number)


def _statements(line: str, number: int) -> Iterator[Statement]:
    match = _SECOND_COUNTS.match(line)
    if match and int(match["total"]):
        percent = 100.0 * int(match["good"]) / int(match["total"])
        yield Statement("accuracy", _float(match["percent"]), percent, 0.01, number)
    match = _WORDS.match(line)
    if match:
        yield Statement("accuracy", _float(match["value"]), 100.0 - _float(match["errors"]), 0.011, number)
    match = _DICE.match(line)
    if match:
        parts = [_float(part) for part in re.findall(r"=\s*([0-9.]+)", match["parts"])]
        yield Statement("mean", _float(match["mean"]), sum(parts) / len(parts), 2e-4, number)
    match = _TOKENS.match(line)
    if match and int(match["count"]):
        mean = int(match["tokens"]) / int(match["count"])
        yield Statement("tokens_per_sample", _float(match["mean"]), mean, 0.051, number)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # 1.2.3
        return float("nan")
