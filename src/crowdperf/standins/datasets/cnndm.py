"""Writes made news in the layout of CNN/DailyMail: seeded articles in a made vocabulary, and their summaries.

Each article is about one thing that happens in one place. Words of that thing and of that place stand in it among words
that mean nothing; the summary is the sentence of the thing and the sentence of the place. So there is something to
find out, and a small GPT-J learns it within seconds; it says nothing about how well a model reads news. cnn_eval.json
has the real layout. `--training_count` adds cnn_train.json for that fit, other articles of the same making. Needs the
standard library alone.
"""

import json
import random
import sys
from collections.abc import Mapping
from typing import Any

from crowdperf.standins.dataset_program import NOTE, Given, MadeSet, limited

INSTRUCTION = "Summarize the following news article:"  # download_cnndm.py of language/gpt-j (mlcommons/inference)
LICENSE = "CC0-1.0: made by a program"
LENGTHS = {"real": (250, 1400), "small": (24, 48)}  # words of an article

_THINGS, _PLACES = 8, 8
_SENTENCE_WORDS = 16
_OWN_WORDS = 6
_COMMON_WORDS = 120


class Language:
    """The made words, all from one seed."""

    def __init__(self, seed: int) -> None:
        source = random.Random(f"words {seed}")
        self._seen: set[str] = set()
        self.common = [self._word(source) for _ in range(_COMMON_WORDS)]
        self.thing_words = [[self._word(source) for _ in range(_OWN_WORDS)] for _ in range(_THINGS)]
        self.place_words = [[self._word(source) for _ in range(_OWN_WORDS)] for _ in range(_PLACES)]
        self.thing_sentences = [self._sentence(source, words) for words in self.thing_words]
        self.place_sentences = [self._sentence(source, words) for words in self.place_words]

    def _word(self, source: random.Random) -> str:
        """A new word of two or three syllables."""
        while True:
            syllables = (source.choice("bdfgklmnprstvz") + source.choice("aeiou") for _ in range(source.randint(2, 3)))
            word = "".join(syllables)
            if word not in self._seen:
                self._seen.add(word)
                return word

    def _sentence(self, source: random.Random, words: list[str]) -> str:
        """A fixed sentence: half of it the thing's or the place's own words, half common ones."""
        said = [*source.choices(words, k=_SENTENCE_WORDS // 2), *source.sample(self.common, _SENTENCE_WORDS // 2)]
        source.shuffle(said)
        return as_sentence(said)

    def article(self, source: random.Random, lengths: tuple[int, int]) -> dict[str, str]:
        """One entry of the list."""
        thing, place = source.randrange(_THINGS), source.randrange(_PLACES)
        words: list[str] = []
        for _ in range(source.randint(*lengths)):
            kind = source.random()
            own = self.thing_words[thing] if kind < 0.25 else self.place_words[place]
            words.append(source.choice(own if kind < 0.5 else self.common))
        sentences = []
        while words:
            size = source.randint(6, 14)
            sentences.append(as_sentence(words[:size]))
            words = words[size:]
        # Real summaries have a line for each sentence.
        summary = f"{self.thing_sentences[thing]}\n{self.place_sentences[place]}"
        return {"instruction": INSTRUCTION, "input": " ".join(sentences), "output": summary}


def as_sentence(words: list[str]) -> str:
    """The words with a capital letter in front and a full stop behind, as in the real summaries with a space."""
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]} ."


def make(given: Given) -> Mapping[str, Any]:
    language = Language(given.seed)
    parts = (("cnn_eval.json", "evaluation", given.count), ("cnn_train.json", "training", given.training_count))
    for name, part, size in parts:
        if size:
            source = random.Random(f"{part} {given.seed}")
            entries = [language.article(source, LENGTHS[given.lengths]) for _ in range(size)]
            text = json.dumps(entries, indent=4, ensure_ascii=False)
            (given.output_dir / name).write_text(text, encoding="utf-8")
    return {"license": LICENSE, "note": NOTE}


MADE = MadeSet(
    name="cnndm",
    what="articles",
    make=make,
    options={
        "--lengths": {"choices": sorted(LENGTHS), "default": "real"},
        "--training_count": {"type": limited(int, 0, 10**6), "default": 0, "help": "articles to train a small model"},
    },
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
