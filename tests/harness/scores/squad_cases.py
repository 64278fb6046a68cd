"""Cases of the SQuAD scorer. truth: SquadTruth."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import squad

MAX_TOKENS, MAX_QUERY_TOKENS, STRIDE = 384, 64, 128
_TEXT = "the quick river of stone moved a house to an island where Kings built towers and ships in winter"
_PLAIN = _TEXT.split()
_ODD = [
    "(1895-1943).", "Anderson's", "U.S.", "naïve", "Åland", "São", "12,000", "don't", "a.b.c", "“quoted”", "中国人",
    "Tōkyō-to", "e\u0301clair", "x\u00a0y", "zero\u200bwidth", "ﬁne", "İstanbul", "$5.00", "the", "The", "A", "…", "—",
    "Straße", "co-op", "3½", "¿qué?", "Ⅷ", "한국어", "हिन्दी", "\ufeffbom", "soft\u00adhyphen", "[UNK]", "##odd",
]  # fmt: skip


@dataclass(frozen=True)
class SquadTruth:
    """dataset: the content of dev-v1.1.json. vocabulary: the lines of vocab.txt. And what the scorer wants of them."""

    dataset: dict[str, Any]
    vocabulary: list[str]
    questions: list[squad.SquadQuestion]
    features: list[squad.SquadFeature]


def _vocabulary() -> list[str]:
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    words = sorted({word for text in _PLAIN for word in squad.basic_tokenize(text)} | {"house", "island", "中"})
    pieces = [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"] + ["##ing", "##s", "##er"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return list(dict.fromkeys([*special, *letters, *words, *pieces]))


def word_pieces(word: str, vocabulary: Sequence[str]) -> list[str]:
    """Return the longest-match-first pieces of one token."""
    if word in vocabulary:
        return [word]
    known, pieces, start = set(vocabulary), [], 0
    while start < len(word):
        ends = range(len(word), start, -1)
        found = next((end for end in ends if ("##" if start else "") + word[start:end] in known), None)
        if found is None:
            return ["[UNK]"]
        pieces.append(("##" if start else "") + word[start:found])
        start = found
    return pieces


def _tokens(text: str, vocabulary: Sequence[str]) -> list[str]:
    """Return the word pieces; a "[UNK]" in the text stays whole, as with the official script's tokenizer."""
    parts = re.split(r"(\[UNK\])", text)
    words = [word for part in parts for word in ([part] if part == "[UNK]" else squad.basic_tokenize(part))]
    return [piece for word in words for piece in word_pieces(word, vocabulary)]


def _windows(token_count: int, room: int) -> list[tuple[int, int]]:
    windows, start = [], 0
    while start < token_count:
        length = min(room, token_count - start)
        windows.append((start, length))
        if start + length == token_count:
            break
        start += min(length, STRIDE)
    return windows


def _best_window(windows: Sequence[tuple[int, int]], position: int) -> int:
    def context(number: int) -> float:
        start, length = windows[number]
        return min(position - start, start + length - 1 - position) + 0.01 * length

    inside = [number for number, (start, length) in enumerate(windows) if start <= position < start + length]
    return max(inside, key=context)


def _features(index: int, question: str, words: Sequence[str], vocabulary: Sequence[str]) -> list[squad.SquadFeature]:
    query = _tokens(question, vocabulary)[:MAX_QUERY_TOKENS]
    pairs = [(piece, place) for place, word in enumerate(words) for piece in _tokens(word, vocabulary)]
    windows = _windows(len(pairs), MAX_TOKENS - len(query) - 3)
    return [
        squad.SquadFeature(
            question_index=index,
            document_start=len(query) + 2,
            tokens=[piece for piece, _ in pairs[start : start + length]],
            word_indices=[place for _, place in pairs[start : start + length]],
            is_max_context=[_best_window(windows, start + i) == number for i in range(length)],
        )
        for number, (start, length) in enumerate(windows)
    ]


def _text(random: np.random.RandomState, length: int, odd_share: float) -> list[str]:
    return [
        _ODD[random.randint(len(_ODD))] if random.rand() < odd_share else _PLAIN[random.randint(len(_PLAIN))]
        for _ in range(length)
    ]


def _answer(random: np.random.RandomState, words: Sequence[str]) -> str:
    start = random.randint(len(words))
    return " ".join(words[start : start + random.randint(1, 6)]).strip(".,()“”")


def make_truth(seed: int, *, odd_share: float = 0.15, article_count: int = 6) -> SquadTruth:
    """Return a made data set: paragraphs of 3 to 500 words, each with one to four questions."""
    random, vocabulary = np.random.RandomState(seed), _vocabulary()
    articles: list[dict[str, Any]] = []
    questions: list[squad.SquadQuestion] = []
    features: list[squad.SquadFeature] = []
    for article in range(article_count):
        words = _text(random, (3, 40, 120, 250, 400, 500)[article % 6], odd_share)
        entries = []
        for number in range(random.randint(1, 5)):
            query = " ".join(_text(random, 80 if number == 3 else 9, odd_share)) + "?"
            answers = [_answer(random, words) for _ in range(random.randint(1, 4))]
            name = f"q{article}-{number}"
            features += _features(len(questions), query, words, vocabulary)
            questions.append(squad.SquadQuestion(question_id=name, words=words, answers=answers))
            entries.append(
                {"id": name, "question": query, "answers": [{"text": a, "answer_start": 0} for a in answers]}
            )
        separators = [" ", "\n", "\t", "  ", "\u202f"]
        context = "".join(word + separators[random.randint(5) if random.rand() < 0.1 else 0] for word in words)
        articles.append({"title": f"a{article}", "paragraphs": [{"context": context, "qas": entries}]})
    return SquadTruth({"version": "1.1", "data": articles}, vocabulary, questions, features)


def _good_logits(random: np.random.RandomState, truth: SquadTruth, feature: squad.SquadFeature) -> np.ndarray:
    """Noise, and peaks where an answer stands (else anywhere): much as a fair model answers."""
    logits = random.standard_normal((MAX_TOKENS, 2)) * 2 - 5
    answer = truth.questions[feature.question_index].answers[0].split()
    words = truth.questions[feature.question_index].words
    places = [i for i in range(len(words)) if list(words[i : i + len(answer)]) == answer]
    first = places[0] if places else random.randint(len(words))
    for column, word in ((0, first), (1, first + len(answer) - 1)):
        at = [i for i, place in enumerate(feature.word_indices) if place == word]
        if at:
            logits[feature.document_start + at[0 if column == 0 else -1], column] += random.rand() * 14
    return logits.astype(np.float32)


def _responses(seed: int, truth: SquadTruth, change: Callable[[Any, np.ndarray, int], np.ndarray]) -> Responses:
    random = np.random.RandomState(seed)
    responses = []
    for index, feature in enumerate(truth.features):
        logits = change(random, _good_logits(random, truth, feature), feature.document_start + len(feature.tokens) + 1)
        responses.append((index, np.ascontiguousarray(logits, dtype=np.float32).tobytes()))
    order = random.permutation(len(responses))
    return [responses[i] for i in order]


def _masked(random: np.random.RandomState, logits: np.ndarray, length: int) -> np.ndarray:
    logits[length:] = -np.inf
    return logits


def _unanswerable(random: np.random.RandomState, logits: np.ndarray, length: int) -> np.ndarray:
    """All best positions in the query and in the padding: no span counts."""
    logits[:] = -9.0
    logits[:12] = 5.0
    logits[-12:] = 5.0
    return logits


def _simple(seed: int, change: Callable[[Any, np.ndarray, int], np.ndarray]) -> Callable[[], Case]:
    def make() -> Case:
        truth = make_truth(seed)
        return Case(_responses(seed, truth, change), truth)

    return make


def _duplicates() -> Case:
    truth = make_truth(7)
    first, second = (_responses(seed, truth, lambda random, logits, n: logits) for seed in (70, 71))
    return Case([*first, *second[: len(second) // 2]], truth)


def _missing() -> Case:
    truth = make_truth(8)
    return Case(_responses(8, truth, lambda random, logits, n: logits)[::3], truth)


def _unicode() -> Case:
    truth = make_truth(9, odd_share=0.9, article_count=12)
    return Case(_responses(9, truth, lambda random, logits, n: logits), truth)


def _without_answers() -> Case:
    case = CASES["real format"]()
    case.truth.dataset["data"][0]["paragraphs"][0]["qas"][0]["answers"] = []
    old = case.truth.questions[0]
    case.truth.questions[0] = squad.SquadQuestion(question_id=old.question_id, words=old.words, answers=[])
    return case


CASES: dict[str, Callable[[], Case]] = {
    "real format": _simple(1, lambda random, logits, n: logits),
    "as long as the tokens": _simple(2, lambda random, logits, n: logits[:n]),
    "shorter than the tokens": _simple(3, lambda random, logits, n: logits[: max(1, n // 2)]),
    "ties": _simple(5, lambda random, logits, n: random.randint(0, 3, logits.shape)),
    "all equal": _simple(6, lambda random, logits, n: np.zeros_like(logits)),
    "duplicated indices": _duplicates,
    "windows missing": _missing,
    "unicode": _unicode,
    "masked with minus infinity": _simple(10, _masked),
    "no span counts": _simple(11, _unanswerable),
    "huge logits": _simple(12, lambda random, logits, n: logits * np.float32(1e30)),
    "a question without answers": _without_answers,
    "NaN": _simple(13, lambda random, logits, n: np.where(logits > 1, np.nan, logits)),
    "half a pair": lambda: Case([(0, b"\0" * 12)], make_truth(14)),
}


def ours(case: Case) -> Score:
    """Return the score of this project's scorer."""
    return squad.score(case.responses, case.truth.questions, case.truth.features)
