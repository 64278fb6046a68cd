"""Data sets whose samples depend on what is measured: one folder for each part, beside dataset.json.

<data set>/dataset.json   samples.jsonl                                                     (most benchmarks)
<data set>/dataset.json   performance/samples.jsonl   accuracy/samples.jsonl   TEST07/samples.jsonl
"""

from pathlib import Path

from crowdperf.rules.names import Mode

SAMPLES_FILE = "samples.jsonl"


def sample_folder(dataset: Path, mode: Mode, compliance_test: str | None = None) -> Path:
    """Return the folder with the samples of a run: that of its compliance test, else of its mode, else the data set's
    own."""
    for name in (compliance_test, mode.value):
        if name and (dataset / name / SAMPLES_FILE).is_file():
            return dataset / name
    return dataset
