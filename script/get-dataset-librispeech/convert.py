"""Turns LibriSpeech's FLAC files into what MLPerf's RNN-T reads: mono wav files of 16 kHz and dev-clean-wav.json.

    python3 convert.py --source LibriSpeech/dev-clean --output_dir FOLDER [--workers N] [--expected 2703]

The list has the keys of the official conversion (speech_recognition/rnnt/pytorch/utils/convert_librispeech.py of
mlcommons/inference), sorted by name; the official one has the order in which a file system gave the folders, which no
score depends on. Can be stopped at any time and started again: finished wav files are kept. Needs soundfile.
"""

import argparse
import os
import sys
import wave
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.datasets.librispeech import described, write_wav
from crowdperf.harness.media.audio_features import SAMPLE_RATE_HZ
from crowdperf.kit.whole_file import write_json

PART = "dev-clean-wav"
_SHOWN = 5
_PROGRESS_STEP = 250


class ConversionError(Exception):
    """The source cannot be converted; the text names every file that is in the way (or the first of them)."""


@dataclass(frozen=True)
class Recording:
    """One FLAC file, the wav file to write (relative to the output folder) and what is said in it."""

    source: Path
    name: str
    transcript: str


def find_recordings(source: Path) -> list[Recording]:
    """Every recording that the *.trans.txt files below `source` list, sorted by name; raises ConversionError."""
    recordings = []
    missing = []
    for listing in sorted(source.rglob("*.trans.txt")):
        folder = listing.parent.relative_to(source)
        for line in listing.read_text(encoding="utf-8").splitlines():
            name, _, transcript = line.partition(" ")
            flac = listing.parent / f"{name}.flac"
            if not flac.is_file():
                missing.append(str(flac))
            wav = (Path(PART) / folder / f"{name}.wav").as_posix()
            recordings.append(Recording(flac, wav, transcript.lower().strip()))
    if not recordings:
        raise ConversionError(f"{source} contains no *.trans.txt files: it is not a part of LibriSpeech")
    if missing:
        raise ConversionError(f"{len(missing)} files are missing: {shorten(missing)}")
    return recordings


def shorten(names: list[str]) -> str:
    """The first few of `names`, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def existing_count(path: Path) -> int:
    """Samples in a wav file that an earlier run finished, 0 when there is none."""
    try:
        with wave.open(str(path), "rb") as file:
            return file.getnframes()
    except (OSError, EOFError, wave.Error):
        return 0


def convert(recording: Recording, output_dir: Path) -> int:
    """Writes one wav file unless it is there; gives its number of samples. Raises ConversionError."""
    path = output_dir / recording.name
    count = existing_count(path)
    if count:
        return count
    import soundfile  # only here: finding and describing recordings needs no library

    try:
        samples, rate = soundfile.read(recording.source, dtype="int16", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise ConversionError(f"{recording.source} cannot be read: {error}") from error
    if rate != SAMPLE_RATE_HZ or samples.shape[1] != 1:
        raise ConversionError(f"{recording.source} has {samples.shape[1]} channels at {rate} Hz, expected mono, 16 kHz")
    write_wav(path, samples.astype("<i2").tobytes())
    return len(samples)


def convert_all(recordings: list[Recording], output_dir: Path, workers: int) -> list[int]:
    """Converts in parallel and tells how far it is; gives the samples of each."""
    counts = []
    with ProcessPoolExecutor(workers) as pool:
        for count in pool.map(convert, recordings, [output_dir] * len(recordings), chunksize=8):
            counts.append(count)
            if len(counts) % _PROGRESS_STEP == 0 or len(counts) == len(recordings):
                print(f"{len(counts)} of {len(recordings)} recordings converted", file=sys.stderr, flush=True)
    return counts


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="folder of one part of LibriSpeech")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--expected", type=int, default=0, help="recordings there must be (0: any number)")
    given = parser.parse_args()
    try:
        recordings = find_recordings(given.source)
        if given.expected and len(recordings) != given.expected:
            raise ConversionError(f"{given.source} lists {len(recordings)} recordings, expected {given.expected}")
        counts = convert_all(recordings, given.output_dir, max(1, given.workers))
    except (ConversionError, OSError) as error:
        print(f"convert.py: {error}", file=sys.stderr)
        return 1
    entries = [described(one.name, one.transcript, count) for one, count in zip(recordings, counts, strict=True)]
    write_json(given.output_dir / f"{PART}.json", entries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
