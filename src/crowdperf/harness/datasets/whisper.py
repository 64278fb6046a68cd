"""LibriSpeech's dev-clean and dev-other as MLPerf's Whisper takes them: clips of up to 30 s, joined from utterances.

    dev-all-repack.json     the list, with the keys of librispeech.py
    dev-all-repack/...      mono wav files of 16 kHz, which it names relative to its own folder

The utterances of a chapter are joined with half a second of silence between them: 1,633 clips. Source: QSL.py,
manifest.py and utils/repackage_librispeech.py in speech2text of mlcommons/inference, b66003e1 of 2026-08-20.
"""

from pathlib import Path

from crowdperf.harness.datasets.librispeech import LibriSpeechDataset, open_manifest

MANIFEST_FILE = "dev-all-repack.json"
LONGEST_S = 30.0


def open_dataset(folder: Path) -> LibriSpeechDataset:
    """Return the clips; raises HarnessError naming files that are missing or have another size than their sound
    takes."""
    return open_manifest(folder / MANIFEST_FILE, LONGEST_S)
