"""SQuAD v1.1: questions about paragraphs, answered by a part of the paragraph (recipe get-dataset-squad).

Files read: `dev-v1.1.json` (10,570 questions in the real one) and `vocab.txt`, the word pieces of uncased BERT. A
sample is a window of at most 384 tokens over a question and its paragraph: 10,833 in the real data set. Samples are in
the order of create_squad_data.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, read_facts, require_found
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media.tokenization_squad import (
    MAX_QUERY_LENGTH,
    Document,
    Window,
    WordPieces,
    cut_windows,
    read_vocabulary,
    tokenize_document,
)
from crowdperf.harness.metrics.squad import SquadFeature, SquadQuestion

QUESTIONS_FILE = "dev-v1.1.json"
VOCABULARY_FILE = "vocab.txt"
_HINT = "make or get the data set again: cm run script --tags=get,dataset,squad --renew"


@dataclass(frozen=True, slots=True)
class SquadSample:
    """A raw sample: the numbers of its tokens, and where those of the paragraph start."""

    token_ids: Sequence[int]
    document_start: int


@dataclass(frozen=True, slots=True)
class _CutQuestion:
    """A question with its paragraph, both cut into pieces."""

    question: SquadQuestion
    query: Sequence[str]
    document: Document


@dataclass(frozen=True)
class SquadDataset:
    """The questions of one file. `windows`: of each sample the question's index and the window over its paragraph."""

    files: tuple[Path, ...]
    asked: Sequence[_CutQuestion]
    windows: Sequence[tuple[int, Window]]
    vocabulary: Mapping[str, int]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.windows)

    @cached_property
    def questions(self) -> tuple[SquadQuestion, ...]:
        return tuple(asked.question for asked in self.asked)

    @cached_property
    def features(self) -> tuple[SquadFeature, ...]:
        """What the scorer must know of each sample."""
        return tuple(self._feature(*window) for window in self.windows)

    def _feature(self, question_index: int, window: Window) -> SquadFeature:
        asked = self.asked[question_index]
        shown = slice(window.start, window.start + window.length)
        return SquadFeature(
            question_index=question_index,
            document_start=len(asked.query) + 2,
            tokens=asked.document.tokens[shown],
            word_indices=asked.document.word_indices[shown],
            is_max_context=window.is_max_context,
        )

    def sample_name(self, index: int) -> str:
        """Return the question's id and the first paragraph token of the window."""
        question_index, window = self.windows[index]
        return f"{self.asked[question_index].question.question_id} {window.start}"

    def load(self, indices: Sequence[int]) -> list[SquadSample]:
        return [self._sample(*self.windows[index]) for index in indices]

    def _sample(self, question_index: int, window: Window) -> SquadSample:
        asked = self.asked[question_index]
        document = asked.document.tokens[window.start : window.start + window.length]
        tokens = ["[CLS]", *asked.query, "[SEP]", *document, "[SEP]"]
        return SquadSample([self.vocabulary[token] for token in tokens], len(asked.query) + 2)


def _read_questions(path: Path, pieces: WordPieces) -> list[_CutQuestion]:
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"cannot read {path}: {error!r}", _HINT) from error
    asked: list[_CutQuestion] = []
    place = "data"
    try:
        for article_number, article in enumerate(articles):
            for number, paragraph in enumerate(article["paragraphs"]):
                place = f"data[{article_number}].paragraphs[{number}]"
                asked.extend(_of_paragraph(paragraph, pieces))
    except (KeyError, TypeError, AttributeError) as error:
        message = f"{path}: {place} is not a paragraph with context and qas of id, question and answers: {error!r}"
        raise HarnessError(message, _HINT) from error
    return asked


def _of_paragraph(paragraph: Mapping[str, Any], pieces: WordPieces) -> list[_CutQuestion]:
    document = tokenize_document(paragraph["context"], pieces)
    asked = []
    for entry in paragraph["qas"]:
        answers = [str(answer["text"]) for answer in entry["answers"]]
        question = SquadQuestion(question_id=str(entry["id"]), words=document.words, answers=answers)
        query = pieces.tokenize(entry["question"])[:MAX_QUERY_LENGTH]
        asked.append(_CutQuestion(question, query, document))
    return asked


def read_squad(questions_path: Path, vocabulary_path: Path, facts: DatasetFacts) -> SquadDataset:
    """Return the questions of a file in the format of SQuAD v1.1; raises HarnessError naming what cannot be used."""
    vocabulary = read_vocabulary(vocabulary_path)
    asked = _read_questions(questions_path, WordPieces(vocabulary))
    windows = [
        (index, window)
        for index, entry in enumerate(asked)
        for window in cut_windows(len(entry.document.tokens), len(entry.query))
    ]
    if not windows:
        raise HarnessError(f"{questions_path} contains no question with a paragraph", _HINT)
    return SquadDataset((questions_path, vocabulary_path), asked, windows, vocabulary, facts)


def open_dataset(folder: Path) -> SquadDataset:
    missing = [name for name in (QUESTIONS_FILE, VOCABULARY_FILE) if not (folder / name).is_file()]
    if missing:
        raise HarnessError(f"{folder} is missing {' and '.join(missing)}", _HINT)
    return read_squad(folder / QUESTIONS_FILE, folder / VOCABULARY_FILE, read_facts(folder))


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the windows that lines of a calibration list name: the number of a window, or the id of a question, which
    stands for all its windows."""
    dataset = open_dataset(folder)
    windows_of: dict[str, list[int]] = {str(index): [index] for index in range(dataset.count)}
    for index, (question, _) in enumerate(dataset.windows):
        windows_of.setdefault(dataset.questions[question].question_id, []).append(index)
    require_found([entry for entry in entries if entry not in windows_of], len(entries), folder)
    indices = [index for entry in entries for index in windows_of[entry]]
    return ListedSamples(dataset=dataset, indices=indices, is_measured=True)
