"""Writes a synthetic data set in the format of SQuAD v1.1: made words, a vocabulary for them, seeded.

Needs the standard library alone.

Everything that SQuAD asks of a tokenizer is in it: capitals, accents, punctuation beside answers, words of several
pieces, numbers, a few paragraphs longer than 384 tokens. What a question means can be learned: words belong to kinds,
a paragraph names one phrase of each of some kinds, and "which KIND ..." asks for that phrase. `tiny` has a training
file too, on which get-ml-model-bert-large-squad fits its tiny model.
"""

import hashlib
import math
import random
import string
import sys
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from crowdperf.kit.whole_file import write_json
from crowdperf.standins.dataset_program import Given, MadeSet

LICENSE = "Apache-2.0"
QUESTIONS_FILE, TRAINING_FILE, VOCABULARY_FILE = "dev-v1.1.json", "train-v1.1.json", "vocab.txt"

UNUSED_ROWS = 99  # so that [UNK], [CLS], [SEP], [MASK] are 100 to 103, as in the real vocabulary
QUESTION_WORDS = ("which", "the", "of", "in", "was", "name")
CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aeiou"
ACCENTED = str.maketrans("aeiou", "áéîöü")
SUFFIX_START = "x"  # no made word holds it: where a word is split into pieces is known
QUESTIONS_PER_PARAGRAPH = 5  # SQuAD's validation part: 10,570 questions on 2,067 paragraphs
LONG_PARAGRAPH_TOKENS = 450


@dataclass(frozen=True)
class Shape:
    """How big things are. Lengths are of paragraphs in tokens: log-normal, as SQuAD's roughly are.

    has_long: one validation paragraph is made longer than a window whatever the lengths say.
    """

    vocabulary: int
    kinds: int
    words_per_role: int
    suffixes: int
    median_tokens: float
    deviation: float
    has_long: bool
    training_questions: int


SHAPES = {
    # full-size vocabulary of uncased BERT; lengths such that questions have 225 tokens on average with the question
    "synthetic": Shape(
        vocabulary=30_522, kinds=16, words_per_role=100, suffixes=1_500, median_tokens=202.0, deviation=0.3,
        has_long=False, training_questions=0,
    ),
    "tiny": Shape(
        vocabulary=1_024, kinds=8, words_per_role=10, suffixes=60, median_tokens=40.0, deviation=0.3, has_long=True,
        training_questions=1_200,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Language:
    """The made words. roles: for each kind, words that open a phrase, that close one, and that stand alone."""

    vocabulary: list[str]
    kind_names: list[str]
    roles: list[tuple[list[str], list[str], list[str]]]
    fillers: list[str]
    suffixes: list[str]


@dataclass
class Paragraph:
    """A paragraph that grows. phrases: by kind, the text of the phrase and where it starts."""

    text: str = ""
    tokens: int = 0
    phrases: dict[int, tuple[str, int]] = field(default_factory=dict)

    def add(self, word: str, tokens: int) -> int:
        """Adds a word; gives where it starts."""
        self.text += (" " if self.text else "") + word
        self.tokens += tokens
        return len(self.text) - len(word)


def make_words(count: int, rng: random.Random) -> list[str]:
    """`count` different words of two or three syllables; short ones first."""
    syllables = [consonant + vowel for consonant in CONSONANTS for vowel in VOWELS]
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choice(syllables) for _ in range(2 if len(words) < 3000 else 3))] = None
    return list(words)


def make_language(shape: Shape, rng: random.Random) -> Language:
    """The vocabulary of `shape`, and what its words stand for."""
    rows = ["[PAD]", *(f"[unused{number}]" for number in range(UNUSED_ROWS)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = string.digits + string.ascii_lowercase
    rows += [*string.punctuation, *characters, *(f"##{character}" for character in characters), *QUESTION_WORDS]
    endings = [one + two for one in CONSONANTS for two in CONSONANTS + VOWELS]
    suffixes = rng.sample([SUFFIX_START + vowel + ending for vowel in VOWELS for ending in endings], shape.suffixes)
    words = make_words(shape.vocabulary - len(rows) - len(suffixes), rng)
    rows += [f"##{suffix}" for suffix in suffixes] + words
    supply = iter(rng.sample(words, len(words)))
    kind_names = [next(supply) for _ in range(shape.kinds)]
    role = range(shape.words_per_role)
    roles = [
        ([next(supply) for _ in role], [next(supply) for _ in role], [next(supply) for _ in role])
        for _ in range(shape.kinds)
    ]
    return Language(rows, kind_names, roles, list(supply), suffixes)


def written(word: str, rng: random.Random) -> str:
    """The word as a text may show it: capitals, accents."""
    chance = rng.random()
    if chance < 0.15:
        word = word.capitalize()
    elif chance < 0.18:
        word = word.upper()
    return word.translate(ACCENTED) if rng.random() < 0.08 else word


def add_filler(paragraph: Paragraph, language: Language, rng: random.Random) -> None:
    """Adds a word that is no answer, a number or a word of two pieces, sometimes with a mark behind it."""
    chance = rng.random()
    if chance < 0.04:
        word = str(rng.randint(1000, 2026))
        tokens = 4
    else:
        word, tokens = written(rng.choice(language.fillers), rng), 1
        if chance < 0.12:
            word, tokens = word + rng.choice(language.suffixes), 2
    mark = rng.random()
    end = "." if mark < 0.08 else "," if mark < 0.14 else ""
    paragraph.add(word + end, tokens + len(end))


def add_phrase(paragraph: Paragraph, kind: int, language: Language, rng: random.Random) -> None:
    """Adds the phrase of a kind: one word, or two that open and close it, sometimes between marks."""
    opening, closing, alone = language.roles[kind]
    words = [rng.choice(alone)] if rng.random() < 0.4 else [rng.choice(opening), rng.choice(closing)]
    phrase = " ".join(written(word, rng) for word in words)
    before, after = rng.choice((("", ""), ("", ""), ("", ","), ("(", ")"), ('"', '".')))
    start = paragraph.add(before + phrase + after, len(words) + len(before + after))
    paragraph.phrases[kind] = (phrase, start + len(before))


def make_paragraph(language: Language, tokens: int, rng: random.Random) -> Paragraph:
    """A paragraph of about `tokens` tokens with one phrase of each of some kinds, at random places."""
    paragraph = Paragraph()
    kinds = rng.sample(range(len(language.roles)), QUESTIONS_PER_PARAGRAPH)
    places = sorted(rng.uniform(0, max(1, tokens - 4)) for _ in kinds)
    for kind, place in zip(kinds, places, strict=True):
        while paragraph.tokens < place:
            add_filler(paragraph, language, rng)
        add_phrase(paragraph, kind, language, rng)
    while paragraph.tokens < tokens:
        add_filler(paragraph, language, rng)
    return paragraph


def make_question(kind: int, language: Language, rng: random.Random) -> str:
    """A question that asks for the phrase of a kind."""
    words = ["Which", language.kind_names[kind]]
    for _ in range(rng.randint(4, 10)):
        words.append(rng.choice((*QUESTION_WORDS[1:], *rng.sample(language.fillers, 2))))
    return " ".join(words) + "?"


def make_lengths(shape: Shape, count: int, rng: random.Random) -> list[int]:
    """The tokens of `count` paragraphs: evenly spread over the distribution, in random order."""
    normal = NormalDist(0.0, shape.deviation)
    lengths = [round(shape.median_tokens * math.exp(normal.inv_cdf((place + 0.5) / count))) for place in range(count)]
    if shape.has_long:
        lengths[-1] = max(lengths[-1], LONG_PARAGRAPH_TOKENS)
    rng.shuffle(lengths)
    return lengths


def make_articles(
    language: Language, shape: Shape, questions: int, rng: random.Random, answers: int
) -> list[dict[str, Any]]:
    """`questions` questions in SQuAD's structure, ten paragraphs an article, `answers` equal answers to each."""
    articles: list[dict[str, Any]] = []
    made = 0
    for number, tokens in enumerate(make_lengths(shape, -(-questions // QUESTIONS_PER_PARAGRAPH), rng)):
        paragraph = make_paragraph(language, tokens, rng)
        entries = []
        for kind, (phrase, start) in list(paragraph.phrases.items())[: questions - made]:
            identity = hashlib.md5(f"{made} {phrase} {rng.random()}".encode(), usedforsecurity=False).hexdigest()[:24]
            answer = {"answer_start": start, "text": phrase}
            question = make_question(kind, language, rng)
            entries.append({"answers": [answer] * answers, "question": question, "id": identity})
            made += 1
        if number % 10 == 0:
            articles.append({"title": f"Synthetic_{number // 10}", "paragraphs": []})
        articles[-1]["paragraphs"].append({"context": paragraph.text, "qas": entries})
    return articles


def make(given: Given) -> None:
    kind, seed, output_dir = given.kind, given.seed, given.output_dir
    shape = SHAPES[kind]
    language = make_language(shape, random.Random(f"words {kind} {seed}"))
    (output_dir / VOCABULARY_FILE).write_text("".join(f"{row}\n" for row in language.vocabulary), encoding="utf-8")
    names = [VOCABULARY_FILE, QUESTIONS_FILE]
    form: dict[str, Any] = {"indent": None, "ensure_ascii": False}
    articles = make_articles(language, shape, given.count, random.Random(f"validation {kind} {seed}"), answers=3)
    write_json(output_dir / QUESTIONS_FILE, {"data": articles, "version": "1.1"}, **form)
    if shape.training_questions:
        rng = random.Random(f"training {kind} {seed}")
        articles = make_articles(language, shape, shape.training_questions, rng, answers=1)
        write_json(output_dir / TRAINING_FILE, {"data": articles, "version": "1.1"}, **form)
        names.append(TRAINING_FILE)
    facts = {
        "format": 1,
        "name": f"squad-{kind}",
        "is_synthetic": True,
        "seed": seed,
        "count": given.count,
        "count_of": "questions (a question on a paragraph longer than a window makes two samples or more)",
        "vocabulary_size": shape.vocabulary,
        "license": LICENSE,
        "source": "made by get-dataset-squad/make_dataset.py",  # where this was: the data set's identity has the text
        "sha256": {name: hashlib.sha256((output_dir / name).read_bytes()).hexdigest() for name in names},
    }
    write_json(output_dir / "dataset.json", facts, **form)


MADE = MadeSet(
    name="squad",
    what="questions",
    make=make,
    options={"--kind": {"choices": sorted(SHAPES), "required": True}},
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
