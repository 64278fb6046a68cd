"""Writes made clips in the form of MLPerf's Whisper data.

The sound is that of `librispeech` here: each character is a chord of its own, no speech. The folder has the real
layout: dev-all-repack.json with the real keys, and mono wav files of 16 kHz in dev-all-repack/. Needs numpy alone.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdperf.standins.dataset_program import NOTE, Given, MadeSet, limited
from crowdperf.standins.datasets.librispeech import LICENSE, make_utterance, make_words, write_part

_SHORTEST_S = 1.0
_LAST_WORD_S = 1.2
"""What a clip may go beyond the second in which its last word begins."""


def make(given: Given) -> Mapping[str, Any]:
    words, random = make_words(np.random.RandomState(given.seed)), np.random.RandomState(given.seed + 1)
    spread = given.longest_s - _LAST_WORD_S - _SHORTEST_S
    clips: list[Any] = []
    while len(clips) < given.count:
        clip = make_utterance(words, _SHORTEST_S + spread * random.rand(), random)
        if len(clip.sound) <= given.longest_s * 16_000:
            clips.append(clip)
    write_part(given.output_dir, "dev-all-repack", clips)
    return {"license": LICENSE, "note": NOTE}


MADE = MadeSet(
    name="whisper",
    what="clips",
    make=make,
    options={"--longest_s": {"type": limited(float, 3.0, 30.0), "required": True, "help": "no clip is longer"}},
    seed=limited(int, 0, 2**31 - 1),
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
