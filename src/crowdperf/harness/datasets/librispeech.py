"""LibriSpeech dev-clean as MLPerf's RNN-T takes it: mono wav files of 16 kHz and one JSON list that describes them.

    dev-clean-wav.json      [{"files": [{"fname": "dev-clean-wav/2277/149896/2277-149896-0000.wav", "speed": 1, ...}],
                              "original_duration": 6.59, "original_num_samples": 105440, "transcript": "he was in"}]
    dev-clean-wav/...       the files it names, relative to the JSON's folder

Utterances longer than 15 s are left out; the others have the list's order (QSL.py and parts/manifest.py of
speech_recognition/rnnt, mlcommons/inference, tag v4.0): 2,513 of dev-clean's 2,703.
"""

import json
import os
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, read_facts, require_found
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media.audio_features import MIN_SAMPLES, SAMPLE_RATE_HZ
from crowdperf.harness.metrics.wer import CHARACTERS

MANIFEST_FILE = "dev-clean-wav.json"
LONGEST_S = 15.0

_HINT = "rebuild the data set: its recipe (get,dataset,librispeech or get,dataset,whisper) with --renew"
_SHOWN = 5
_SAMPLE_BYTES = 2


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line of the list: the file, its samples of sound and what is said."""

    path: Path
    sample_count: int
    transcript: str


@dataclass(frozen=True, slots=True, eq=False)
class LibriSpeechDataset:
    """The utterances of at most 15 s. manifest: None for those of a calibration list."""

    manifest: Path | None
    utterances: tuple[Utterance, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.utterances)

    @property
    def files(self) -> tuple[Path, ...]:
        manifest = () if self.manifest is None else (self.manifest,)
        return (*manifest, *(utterance.path for utterance in self.utterances))

    @property
    def transcripts(self) -> tuple[str, ...]:
        """What is said, by index: words of a to z and apostrophes."""
        return tuple(utterance.transcript for utterance in self.utterances)

    def sample_name(self, index: int) -> str:
        """Return the name of the sound file, for the sample map."""
        return self.utterances[index].path.name

    def load(self, indices: Sequence[int]) -> list[npt.NDArray[np.float32]]:
        """Return float32[samples] of 16 kHz, -1..1, for each index."""
        return [read_wav(self.utterances[index]) for index in indices]

    def problems(self) -> list[str]:
        """Return the sounds that cannot be read, and the wav files beside those of the list that it does not name."""
        found = []
        for utterance in self.utterances:
            try:
                read_wav(utterance)
            except HarnessError as error:
                found.append(str(error))
        if self.manifest is None:
            return found
        names = [Path(file["fname"]) for entry in _read_manifest(self.manifest) for file in entry["files"]]
        folder = self.manifest.parent
        parents, known = {folder / name.parts[0] for name in names}, {(folder / name).resolve() for name in names}
        extra = {path.resolve() for parent in parents for path in parent.rglob("*.wav")} - known
        return [*found, *(f"{path} is not in {self.manifest.name}" for path in sorted(extra))]


def read_wav(utterance: Utterance) -> npt.NDArray[np.float32]:
    """Return the sound, float32[samples], -1..1; raises HarnessError when the file is not what the list says."""
    try:
        with wave.open(str(utterance.path), "rb") as file:
            found = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise HarnessError(f"cannot read {utterance.path}: {error}", _HINT) from error
    if found != (1, _SAMPLE_BYTES, SAMPLE_RATE_HZ):
        channels, width, rate = found
        message = f"{utterance.path} has {channels} channels of {8 * width} bits at {rate} Hz, expected mono, 16 bits"
        raise HarnessError(f"{message}, {SAMPLE_RATE_HZ} Hz", _HINT)
    if len(data) != _SAMPLE_BYTES * utterance.sample_count:
        message = f"{utterance.path} has {len(data) // _SAMPLE_BYTES} samples, expected by the list of utterances:"
        raise HarnessError(f"{message} {utterance.sample_count}", _HINT)
    sound: npt.NDArray[np.float32] = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768.0)
    return sound


def write_wav(path: Path, sound: bytes) -> None:
    """Write 16-bit samples as a mono wav file of 16 kHz, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    with wave.open(str(unfinished), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(_SAMPLE_BYTES)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(sound)
    os.replace(unfinished, path)


def described(name: str, transcript: str, sample_count: int) -> dict[str, Any]:
    """Return the entry of the list for a file, with the keys of the official one (sox's facts)."""
    duration_s = sample_count / SAMPLE_RATE_HZ
    facts: dict[str, Any] = {"channels": 1, "sample_rate": float(SAMPLE_RATE_HZ), "bitrate": 16, "duration": duration_s}
    facts |= {"num_samples": sample_count, "encoding": "Signed Integer PCM", "silent": False}
    facts |= {"fname": name, "speed": 1}
    return {
        "files": [facts],
        "original_duration": duration_s,
        "original_num_samples": sample_count,
        "transcript": transcript,
    }


def _utterance(folder: Path, entry: Mapping[str, Any], longest_s: float) -> Utterance | None:
    """Return one entry of the list, None for a longer one than counts; raises KeyError, TypeError, ValueError."""
    if float(entry["original_duration"]) > longest_s:
        return None
    names = [str(file["fname"]) for file in entry["files"] if file.get("speed", 1) == 1]
    if len(names) != 1:
        raise ValueError(f"{len(names)} files of speed 1")
    transcript = str(entry["transcript"])
    strange = sorted(set(transcript) - set(CHARACTERS))
    if strange:
        raise ValueError(f"characters outside a-z, apostrophe and space: {''.join(strange)!r}")
    sample_count = int(entry["original_num_samples"])
    if sample_count < MIN_SAMPLES:
        raise ValueError(f"{sample_count:,} samples of sound, fewer than {MIN_SAMPLES}")
    return Utterance(folder / names[0], sample_count, transcript)


def _read_manifest(path: Path) -> list[Any]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    if not isinstance(entries, list) or not entries:
        raise HarnessError(f"{path} contains no list of utterances", _HINT)
    return entries


def open_dataset(folder: Path) -> LibriSpeechDataset:
    """Return the utterances; raises HarnessError naming files that are missing or have another size than their sound
    takes."""
    return open_manifest(folder / MANIFEST_FILE, LONGEST_S)


def open_manifest(manifest: Path, longest_s: float) -> LibriSpeechDataset:
    """Return the utterances of a list that are at most `longest_s` long; raises HarnessError as `open_dataset`."""
    folder = manifest.parent
    utterances = []
    for number, entry in enumerate(_read_manifest(manifest)):
        try:
            utterance = _utterance(folder, entry, longest_s)
        except (KeyError, TypeError, ValueError) as error:
            raise HarnessError(f"{manifest}: entry {number} cannot be used: {error!r}", _HINT) from error
        if utterance is not None:
            utterances.append(utterance)
    if not utterances:
        raise HarnessError(f"{manifest} has no utterance of at most {longest_s:g} s", _HINT)
    damaged = [problem for problem in map(_problem, utterances) if problem]
    if damaged:
        rest = f"\n  and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        lines = "".join(f"\n  {problem}" for problem in damaged[:_SHOWN])
        raise HarnessError(f"{len(damaged)} of {len(utterances)} files cannot be used:{lines}{rest}", _HINT)
    return LibriSpeechDataset(manifest, tuple(utterances), read_facts(folder))


def _problem(utterance: Utterance) -> str:
    """Return what is wrong with a file by its size alone, or an empty text."""
    try:
        size = utterance.path.stat().st_size
    except OSError as error:
        return f"{utterance.path}: {error.strerror}"
    least = _SAMPLE_BYTES * utterance.sample_count
    return f"{utterance.path} has {size} bytes, but its audio alone needs {least}" if size < least else ""


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the sounds that lines of a calibration list name, as in `train-clean-100-wav/103/1240/103-1240-0010.wav`.

    What is said in them is not known here, and calibration does not need it.
    """
    paths = [folder / entry for entry in entries]
    require_found([entry for entry in entries if not (folder / entry).is_file()], len(entries), folder)
    utterances = tuple(Utterance(path, _sample_count(path), "") for path in paths)
    dataset = LibriSpeechDataset(None, utterances, read_facts(folder))
    return ListedSamples(dataset=dataset, indices=range(dataset.count), is_measured=False)


def _sample_count(path: Path) -> int:
    try:
        with wave.open(str(path), "rb") as file:
            return file.getnframes()
    except (OSError, EOFError, wave.Error) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
