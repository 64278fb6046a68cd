"""Writes a made LibriSpeech: seeded sound in which each character is a chord of two tones of its own.

It is no speech and says nothing about how well a model understands people. It has the real layout (16 kHz mono wav
files of 16 bits, dev-clean-wav.json with the real keys, one utterance of more than 15 s that has to be left out), and a
small RNN-T can learn to read it within seconds. Needs numpy alone.

`--training_count` adds training-wav.json and training-wav/ for that fit, from another stream of random numbers; its
entries have a further key `character_ends`: the sample at which each character of the transcript ends.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.datasets.librispeech import described, write_wav
from crowdperf.harness.media.audio_features import SAMPLE_RATE_HZ
from crowdperf.harness.metrics.wer import CHARACTERS
from crowdperf.kit.whole_file import write_json
from crowdperf.standins.dataset_program import NOTE, Given, MadeSet, limited

LICENSE = "CC0-1.0: synthetic, not a recording of a person"

_LOW_TONES_HZ = (300.0, 420.0, 590.0, 830.0, 1160.0, 1620.0)
_HIGH_TONES_HZ = (2300.0, 2900.0, 3650.0, 4600.0, 5800.0)
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
_WORD_COUNT = 120
_SHORTEST_S = 1.2


@dataclass(frozen=True)
class Utterance:
    """What is said and how it sounds: int16[samples], and the sample at which each character ends."""

    transcript: str
    sound: npt.NDArray[np.int16]
    character_ends: list[int]


def make_words(random: np.random.RandomState) -> list[str]:
    """A made vocabulary: one to three syllables, now and then with an apostrophe before its last letter."""
    words: list[str] = []
    while len(words) < _WORD_COUNT:
        syllables = [
            _CONSONANTS[random.randint(len(_CONSONANTS))] + _VOWELS[random.randint(len(_VOWELS))]
            for _ in range(1 + random.randint(3))
        ]
        word = "".join(syllables) + ("'s" if random.rand() < 0.1 else "")
        if word not in words:
            words.append(word)
    return words


def _chord(character: str, sample_count: int, pitch: float, random: np.random.RandomState) -> npt.NDArray[np.float64]:
    """float64[sample_count] of one character; a space is silence. `pitch` is the speaker's, about 1."""
    number = CHARACTERS.index(character) - 1
    if number < 0:
        return np.zeros(sample_count)
    low = _LOW_TONES_HZ[number % len(_LOW_TONES_HZ)] * pitch
    high = _HIGH_TONES_HZ[number // len(_LOW_TONES_HZ)] * pitch
    time_s = np.arange(sample_count) / SAMPLE_RATE_HZ
    loudness = np.sin(np.pi * (np.arange(sample_count) + 0.5) / sample_count) ** 0.5
    phases = random.rand(2) * 2 * np.pi
    tones = np.sin(2 * np.pi * low * time_s + phases[0]) + np.sin(2 * np.pi * high * time_s + phases[1])
    return 0.2 * loudness * tones


def make_utterance(words: list[str], duration_s: float, random: np.random.RandomState) -> Utterance:
    """Words said one after the other until `duration_s` is reached; the last one is not cut."""
    pitch = 1.0 + 0.04 * (random.rand() - 0.5)
    parts = [np.zeros(1600)]
    ends: list[int] = []
    transcript = ""
    end = len(parts[0])
    while end < duration_s * SAMPLE_RATE_HZ:
        for character in (" " if transcript else "") + words[random.randint(len(words))]:
            part = _chord(character, 1440 + random.randint(960), pitch, random)
            parts.append(part)
            end += len(part)
            ends.append(end)
            transcript += character
    parts.append(np.zeros(1600 + random.randint(800)))
    sound = np.concatenate(parts)
    sound = sound + 0.003 * random.standard_normal(len(sound))
    return Utterance(transcript, np.round(np.clip(sound, -1, 1) * 32767).astype("<i2"), ends)


def write_part(folder: Path, part: str, utterances: list[Utterance], *, has_ends: bool = False) -> None:
    """Write `part`/SPEAKER/CHAPTER/*.wav and `part`.json."""
    entries = []
    for number, utterance in enumerate(utterances):
        speaker, chapter = 100 + number // 40, 1000 + number // 20
        name = f"{part}/{speaker}/{chapter}/{speaker}-{chapter}-{number % 20:04d}.wav"
        write_wav(folder / name, utterance.sound.tobytes())
        ends = {"character_ends": utterance.character_ends} if has_ends else {}
        entries.append(described(name, utterance.transcript, len(utterance.sound)) | ends)
    write_json(folder / f"{part}.json", entries)


def make(given: Given) -> Mapping[str, Any]:
    words = make_words(np.random.RandomState(given.seed))
    random = np.random.RandomState((given.seed + 1) % 2**32)
    # Of real dev-clean utterances few are as long as the longest: the square makes the short ones more frequent. A
    # word and the silence behind it come on top, 1.5 s at most.
    spread = max(0.1, given.longest_s - 1.5 - _SHORTEST_S)
    durations = [_SHORTEST_S + spread * random.rand() ** 2 for _ in range(given.count)]
    utterances = [make_utterance(words, duration, random) for duration in durations]
    middle = given.count // 2
    too_long = make_utterance(words, 15.1, random)
    write_part(given.output_dir, "dev-clean-wav", [*utterances[:middle], too_long, *utterances[middle:]])
    if given.training_count:
        random = np.random.RandomState((given.seed + 2) % 2**32)
        training = [make_utterance(words, 1.2 + 1.3 * random.rand(), random) for _ in range(given.training_count)]
        write_part(given.output_dir, "training-wav", training, has_ends=True)
    return {"license": LICENSE, "note": NOTE}


MADE = MadeSet(
    name="librispeech",
    what="utterances of at most 15 s",
    make=make,
    options={
        "--longest_s": {"type": limited(float, 3, 15), "required": True, "help": "about how long the longest one is"},
        "--training_count": {"type": limited(int, 0, 10**6), "default": 0, "help": "utterances to train a small model"},
    },
    seed=limited(int, 0, 2**32 - 1),
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
