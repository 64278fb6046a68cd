"""F1 and exact match of extractive question answering; agrees with accuracy-squad.py of mlcommons/inference.

The official script prints `{"exact_match": 83.67, "f1": 90.874}`. The steps, for each question:

1. Each of its features (windows of 384 tokens over the paragraph) has a start and an end logit for each position. The
   20 best starts and the 20 best ends make spans; one counts when it lies in the window's part of the paragraph, is at
   most 30 tokens long and starts where this window shows the start with the most context.
2. The span with the highest sum of logits is the answer; of equal ones the first, in the order of the windows, then of
   the starts, then of the ends (best first).
3. Its words are cut out of the paragraph as written, without the punctuation that the tokenizer split off.
4. The text is compared with every reference answer as SQuAD v1.1 does; the best comparison counts.

The numbers 20, 30 and 384 are those that accuracy-squad.py calls its functions with (b66003e1, August 2026).
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score

MAX_SEQUENCE_LENGTH = 384
_BEST_COUNT = 20
_MAX_ANSWER_TOKENS = 30
_PADDING_LOGIT = -10_000.0
_NO_ANSWER = "empty"  # what the official script answers when no span counts
_HINT = "score the log with the model and the data set that made it"

_CJK_RANGES = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = frozenset(string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadQuestion:
    """A question: its id, the words of its paragraph (split at white space), the reference answers."""

    question_id: str
    words: Sequence[str]
    answers: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadFeature:
    """One window over a question's paragraph: a sample of the model.

    question_index: of the question in the list of questions. document_start: position of the window's first paragraph
    token among the 384. tokens, word_indices, is_max_context: of the window's paragraph tokens only: the word piece
    ("##ing" as it is), the word it is of, and whether no other window shows it with more context.
    """

    question_index: int
    document_start: int
    tokens: Sequence[str]
    word_indices: Sequence[int]
    is_max_context: Sequence[bool]


@dataclass(frozen=True, slots=True)
class _Span:
    """The best span of one feature: its sum of logits and its first and last paragraph token in the window."""

    logit: float
    start: int
    end: int


def _is_control(char: str) -> bool:
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf")


def _is_space(char: str) -> bool:
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def _is_cjk(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in _CJK_RANGES)


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")


def _plain(char: str) -> str:
    """Return what the tokenizer reads for a character: nothing, a space, the character, or one set apart."""
    if char in "\0\ufffd" or _is_control(char):
        return ""
    if _is_space(char):
        return " "
    return f" {char} " if _is_cjk(char) else char


def basic_tokenize(text: str) -> list[str]:
    """Return the words and punctuation marks of `text` as uncased BERT sees them before word pieces are made.

    Lower case, accents stripped, control characters dropped, each CJK character and each mark a token of its own. The
    rules are those of the tokenization.py (TensorFlow's BERT) that accuracy-squad.py imports.
    """
    marked: list[str] = []
    for word in "".join(map(_plain, text)).split():
        stripped = (char for char in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(char) != "Mn")
        marked.extend(f" {char} " if _is_punctuation(char) else char for char in stripped)
        marked.append(" ")
    return "".join(marked).split()


def _without_spaces(text: str) -> tuple[str, list[int]]:
    """Return `text` without its spaces, and where each character that is left was."""
    places = [place for place, char in enumerate(text) if char != " "]
    return "".join(text[place] for place in places), places


def _as_written(answer: str, written: str) -> str:
    """Return the part of `written` (words of the paragraph) that the tokenized `answer` stands for.

    The tokenized form of `written` is aligned with it character by character; where that does not work out (accents
    that split, unknown word pieces), all of `written` is the answer, as in the official script.
    """
    tokenized = " ".join(basic_tokenize(written))
    start = tokenized.find(answer)
    written_chars, written_places = _without_spaces(written)
    tokenized_chars, tokenized_places = _without_spaces(tokenized)
    if start == -1 or not answer or len(written_chars) != len(tokenized_chars):
        return written
    rank_of = {place: rank for rank, place in enumerate(tokenized_places)}
    first, last = rank_of.get(start), rank_of.get(start + len(answer) - 1)
    if first is None or last is None:
        return written
    return written[written_places[first] : written_places[last] + 1]


def _best_positions(logits: npt.NDArray[np.float32]) -> list[int]:
    """Return the 20 positions of 384 with the highest logits, best first, of equal ones the earlier first."""
    padded = np.full(MAX_SEQUENCE_LENGTH, _PADDING_LOGIT)
    padded[: len(logits)] = logits
    positions: list[int] = np.argsort(-padded, kind="stable")[:_BEST_COUNT].tolist()
    return positions


def _best_span(logits: npt.NDArray[np.float32], feature: SquadFeature) -> _Span | None:
    """Return the best span that counts of one feature's logits float32[n, 2]; None when none does."""
    starts, ends = (
        [(position - feature.document_start, _logit(logits, position, side)) for position in _best_positions(column)]
        for side, column in enumerate(logits.T)
    )
    best: _Span | None = None
    for start, start_logit in starts:
        if not 0 <= start < len(feature.tokens) or not feature.is_max_context[start]:
            continue
        for end, end_logit in ends:
            if not start <= end < min(start + _MAX_ANSWER_TOKENS, len(feature.tokens)):
                continue
            if best is None or start_logit + end_logit > best.logit:
                best = _Span(start_logit + end_logit, start, end)
    return best


def _logit(logits: npt.NDArray[np.float32], position: int, side: int) -> float:
    return float(logits[position, side]) if position < len(logits) else _PADDING_LOGIT


def _answer(span: _Span, feature: SquadFeature, question: SquadQuestion) -> str:
    pieces = " ".join(feature.tokens[span.start : span.end + 1]).replace(" ##", "").replace("##", "")
    first, last = feature.word_indices[span.start], feature.word_indices[span.end]
    return _as_written(" ".join(pieces.split()), " ".join(question.words[first : last + 1]))


def _normalized(text: str) -> str:
    """Return an answer as SQuAD v1.1 compares it: lower case, no punctuation, no articles, single spaces."""
    kept = "".join(char for char in text.lower() if char not in _ASCII_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def _f1(prediction: str, truth: str) -> float:
    predicted, wanted = prediction.split(), truth.split()
    same = sum((Counter(predicted) & Counter(wanted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(wanted)
    return (2 * precision * recall) / (precision + recall)


def _is_exact(prediction: str, truth: str) -> float:
    return float(prediction == truth)


def _of_best(comparison: Callable[[str, str], float], text: str, question: SquadQuestion) -> float:
    if not question.answers:
        raise HarnessError(
            f"question {question.question_id} has no reference answer (SQuAD v1.1 has one to six for each)",
            "use dev-v1.1.json: SQuAD v2 with its unanswerable questions has another metric",
        )
    return max(comparison(_normalized(text), _normalized(answer)) for answer in question.answers)


def _logits_of(index: int, data: bytes) -> npt.NDArray[np.float32]:
    """Return float32[n, 2] of a response; raises HarnessError when it cannot be one."""
    if len(data) % 8 or not 0 < len(data) <= 8 * MAX_SEQUENCE_LENGTH:
        raise HarnessError(
            f"the response of sample {index} has {len(data)} bytes; allowed: 8 for each token, up to "
            f"{8 * MAX_SEQUENCE_LENGTH}",
            _HINT,
        )
    values: npt.NDArray[np.float32] = np.frombuffer(data, dtype=np.float32)
    logits = values.reshape(-1, 2)
    if np.isnan(logits).any() or np.isposinf(logits).any():
        raise HarnessError(f"the logits of sample {index} are not all numbers", "look at the model's precision")
    return logits


def _answers(
    spans: Mapping[int, _Span | None], questions: Sequence[SquadQuestion], features: Sequence[SquadFeature]
) -> dict[str, str]:
    """Return the answer of each question by its id."""
    best: dict[int, int] = {}
    for index in sorted(spans):
        span, question_index = spans[index], features[index].question_index
        held = spans[best[question_index]] if question_index in best else None
        if span is not None and (held is None or span.logit > held.logit):
            best[question_index] = index
    answers = {}
    for question_index, question in enumerate(questions):
        feature_index = best.get(question_index)
        found = None if feature_index is None else spans[feature_index]
        if feature_index is None or found is None:
            answers[question.question_id] = _NO_ANSWER
        else:
            answers[question.question_id] = _answer(found, features[feature_index], question)
    return answers


def score(
    responses: Iterable[tuple[int, bytes]], questions: Sequence[SquadQuestion], features: Sequence[SquadFeature]
) -> Score:
    """Return "F1" and "exact_match" in percent. A sample's index is that of its feature.

    A response is float32[n][2], start and end logit of each token, n up to 384. Tokens beyond n count as
    -10000. Of a sample that comes twice, the last response counts, as in the official script. Raises HarnessError for a
    response of another size or with NaN, and for a question without a reference answer.
    """
    spans: dict[int, _Span | None] = {}
    for index, data in responses:
        if not 0 <= index < len(features):
            raise HarnessError(f"sample {index} is unknown, the data set has 0 to {len(features) - 1}", _HINT)
        spans[index] = _best_span(_logits_of(index, data), features[index])
    if not spans or not questions:
        raise HarnessError("no responses or no questions to score", "score the log of an accuracy run")
    answers = _answers(spans, questions, features)
    exact_sum = f1_sum = 0.0
    for question in questions:
        exact_sum += _of_best(_is_exact, answers[question.question_id], question)
        f1_sum += _of_best(_f1, answers[question.question_id], question)
    exact, f1 = 100.0 * exact_sum / len(questions), 100.0 * f1_sum / len(questions)
    return Score(values={"F1": f1, "exact_match": exact}, line=f'{{"exact_match": {exact!r}, "f1": {f1!r}}}')
