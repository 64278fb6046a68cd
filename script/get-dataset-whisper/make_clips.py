"""Writes made clips in the form of MLPerf's Whisper data: `python3 make_clips.py --help`.

    python3 make_clips.py --output_dir FOLDER --count 24 --longest_s 3.5

The sound is that of get-dataset-librispeech: each character is a chord of its own, no speech. The folder has the real
layout: dev-all-repack.json with the real keys, and mono wav files of 16 kHz in dev-all-repack/. Needs numpy alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "get-dataset-librispeech"))

from synthetic import LICENCE, NOTE, make_utterance, make_words, write_part

_SHORTEST_S = 1.0
_LAST_WORD_S = 1.2
"""What a clip may go beyond the second in which its last word begins."""


def main() -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(prog="make_clips.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True, help="clips")
    parser.add_argument("--longest_s", type=float, required=True, help="no clip is longer")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.count < 1 or not 3.0 <= given.longest_s <= 30.0 or not 0 <= given.seed < 2**31:
        print("make_clips.py: count >= 1, 3 <= longest_s <= 30 and a seed below 2^31 are needed", file=sys.stderr)
        return 2
    words, random = make_words(np.random.RandomState(given.seed)), np.random.RandomState(given.seed + 1)
    spread = given.longest_s - _LAST_WORD_S - _SHORTEST_S
    clips = []
    while len(clips) < given.count:
        clip = make_utterance(words, _SHORTEST_S + spread * random.rand(), random)
        if len(clip.sound) <= given.longest_s * 16_000:
            clips.append(clip)
    write_part(given.output_dir, "dev-all-repack", clips)
    facts = {"format": 1, "name": "whisper", "is_synthetic": True, "seed": given.seed, "count": given.count,
             "licence": LICENCE, "note": NOTE}  # fmt: skip
    (given.output_dir / "dataset.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(f"whisper (synthetic): {given.count} clips")
    return 0


if __name__ == "__main__":
    sys.exit(main())
