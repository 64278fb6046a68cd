"""Word pieces and windows: equal to transformers' BertTokenizer and to the official create_squad_data.py."""

import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from harness_support import need
from made_sets import make_set
from squad_texts import NOT_ASSIGNED, POOLS, articles, text, vocabulary

from crowdperf.benchmarks.bert.model import open_model
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.squad import SquadDataset, open_dataset
from crowdperf.harness.media.tokenization_squad import (
    WordPieces,
    cut_windows,
    read_vocabulary,
    split_words,
    tokenize_document,
)

# transformers 4.57.6, BertTokenizer in Python (the one of the reference), Python 3.11, 2026-11-21; the features by
# create_squad_data.py of mlcommons/inference b66003e1 with it. Script: make the texts of squad_texts.py, hash as below.
TEXTS_SHA256 = "68ce877dba8125f42f687b9e682637fca49fce7bbc9494b3725c7a70e370a821"
AWKWARD_SHA256 = "21ac1a97b782dfe81a2ac2cdc7e26aa4f022ed72825bac8ece2b496396cb69ee"
TINY_SHA256 = "d365e12dc5f8d62378738ee0dbf39f119cddeafc0f688ba331a1ae53b8a667fb"


def write_vocabulary(folder: Path) -> Path:
    path = folder / "vocab.txt"
    path.write_text("\n".join(vocabulary()) + "\n", encoding="utf-8")
    return path


def digest_of(rows: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def as_official(dataset: SquadDataset) -> list[object]:
    """The features of a data set in the form that the recorded ones were hashed in."""
    rows: list[object] = [list(question.words) for question in dataset.questions]
    samples = open_model(ModelFacts()).preprocess(dataset.load(range(dataset.count)))
    for feature, sample in zip(dataset.features, samples, strict=True):
        places = range(feature.document_start, feature.document_start + len(feature.tokens))
        rows.append(
            [
                feature.question_index,
                sample["input_ids"].tolist(),
                sample["segment_ids"].tolist(),
                list(feature.tokens),
                [list(pair) for pair in zip(places, feature.word_indices, strict=True)],
                [list(pair) for pair in zip(places, feature.is_max_context, strict=True)],
            ]
        )
    return rows


@pytest.fixture
def pieces(tmp_path: Path) -> WordPieces:
    return WordPieces(read_vocabulary(write_vocabulary(tmp_path)))


def test_4000_texts_give_the_pieces_that_transformers_gives(pieces):
    rng = random.Random(1)
    assert digest_of(pieces.tokenize(text(rng)) for _ in range(4000)) == TEXTS_SHA256


def test_3000_texts_give_the_pieces_that_tokenizers_gives(pieces, tmp_path):
    """The package differs for private and unassigned characters only, which are left out here."""
    need("tokenizers")
    import tokenizers

    other = tokenizers.BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=True)
    pools = tuple(pool for pool in POOLS if pool != NOT_ASSIGNED)
    rng = random.Random(2)
    for _ in range(3000):
        written = text(rng, pools)
        assert pieces.tokenize(written) == other.encode(written, add_special_tokens=False).tokens, repr(written)


def test_awkward_questions_make_the_features_that_the_official_script_makes(tmp_path):
    write_vocabulary(tmp_path)
    content = {"data": articles(random.Random(3), 120), "version": "1.1"}
    (tmp_path / "dev-v1.1.json").write_text(json.dumps(content), encoding="utf-8")
    dataset = open_dataset(tmp_path)
    assert (len(dataset.questions), dataset.count) == (246, 498)
    assert digest_of(as_official(dataset)) == AWKWARD_SHA256


def test_the_tiny_data_set_makes_the_features_that_the_official_script_makes(tmp_path):
    make_set("squad", tmp_path, kind="tiny", count=48)
    dataset = open_dataset(tmp_path)
    assert (len(dataset.questions), dataset.count) == (48, 53)
    assert digest_of(as_official(dataset)) == TINY_SHA256


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", []),
        (" \t\n", []),
        ("Ab'cé", ["ab", "'", "ce"]),
        ("abx", ["ab", "##x"]),
        ("a[SEP]b", ["a", "[SEP]", "b"]),
        ("[sep]", ["[", "sep", "]"]),
        ("qab", ["[UNK]"]),
        ("ab" * 51, ["[UNK]"]),
        ("中ab", ["中", "ab"]),
        ("a\u0000\u200b\ufffdb", ["ab"]),
        ("a\u00a0b", ["a", "b"]),
    ],
)
def test_words_are_cut_into_the_longest_pieces(written, expected):
    rows = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "ab", "##x", "'", "ce", "[", "]", "sep", "中"]
    assert WordPieces({row: number for number, row in enumerate(rows)}).tokenize(written) == expected


def test_only_five_characters_separate_the_words_of_a_paragraph():
    assert split_words("a\tb\r\nc\u202fd\u00a0e  f ") == ["a", "b", "c", "d\u00a0e", "f"]


def test_a_document_tells_the_word_of_each_piece(pieces):
    document = tokenize_document("ab, \u200b 7中", pieces)
    assert document.words == ["ab,", "\u200b", "7中"]
    assert list(zip(document.tokens, document.word_indices, strict=True))[-2:] == [("7", 2), ("中", 2)]
    assert document.word_indices[0] == 0


@pytest.mark.parametrize(
    ("tokens", "query", "expected"),
    [
        (0, 5, []),
        (1, 0, [(0, 1)]),
        (376, 5, [(0, 376)]),
        (377, 5, [(0, 376), (128, 249)]),
        (505, 5, [(0, 376), (128, 376), (256, 249)]),
        (320, 64, [(0, 317), (128, 192)]),
    ],
)
def test_windows_start_every_128_tokens(tokens, query, expected):
    assert [(window.start, window.length) for window in cut_windows(tokens, query)] == expected


def test_each_token_has_its_most_context_in_one_window():
    shown = [
        window.start + place
        for window in cut_windows(900, 20)
        for place, is_shown in enumerate(window.is_max_context)
        if is_shown
    ]
    assert sorted(shown) == list(range(900))


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read"), ("a\nb\n", r"is missing \[UNK\], \[SEP\]"), ("", "is not a BERT vocabulary")],
)
def test_a_vocabulary_that_cannot_be_used_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "vocab.txt").write_text(content)
    with pytest.raises(HarnessError, match=message):
        read_vocabulary(tmp_path / "vocab.txt")


def test_a_vocabulary_with_windows_line_ends_is_read(tmp_path):
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(vocabulary()).encode() + b"\r\n")
    assert read_vocabulary(tmp_path / "vocab.txt")["[CLS]"] == 101


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (None, "is missing dev-v1.1.json"),
        ("{", "cannot read"),
        ('{"data": [{"paragraphs": [{"context": "a"}]}]}', r"data\[0\].paragraphs\[0\]"),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "1", "question": "b"}]}]}]}', "answers"),
        ('{"data": 3}', "data is not a paragraph"),
        ('{"data": []}', "contains no question"),
    ],
)
def test_questions_that_cannot_be_used_are_refused(tmp_path, questions, message):
    write_vocabulary(tmp_path)
    if questions is not None:
        (tmp_path / "dev-v1.1.json").write_text(questions)
    with pytest.raises(HarnessError, match=message):
        open_dataset(tmp_path)


def test_a_sample_is_named_by_its_question_and_its_window(tmp_path):
    make_set("squad", tmp_path, kind="tiny", count=48)
    dataset = open_dataset(tmp_path)
    names = [dataset.sample_name(index) for index in range(dataset.count)]
    assert len(set(names)) == len(names)
    assert sum(name.endswith(" 128") for name in names) == 5
    assert dataset.facts.is_synthetic
