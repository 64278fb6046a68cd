"""Prompts as token ids with what their answers are held against: samples.jsonl, which get,dataset,mlperf-text makes of
the published files (JSON, pickled tables, parquet). One sample on each line, in the order of the published file:

    {"tokens": [128000, 791, ...], "reference": "A summary .", "subset": "gpqa", "text": "What ..."}

reference: the summary, letter, number or task that the answer is scored against. subset: the data set that a sample
of several comes from. text: the prompt as text. answer: of made samples, what a stand-in for a model says. All but
reference may be absent; a sample has tokens or text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.datasets.base import FACTS_FILE, DatasetFacts, read_facts
from harness.errors import HarnessError
from harness.text.parts import SAMPLES_FILE

_HINT = "make the data set again: cm run script --tags=get,dataset,mlperf-text,_<benchmark> --renew"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One prompt. tokens: int32[n], n from 1; None where only its text is known."""

    tokens: npt.NDArray[np.int32] | None
    reference: str
    subset: str = ""
    text: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TokenisedDataset:
    """The samples, in memory (13,368 of the longest official set are 60 MB)."""

    path: Path
    samples: tuple[Sample, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.samples)

    @property
    def files(self) -> tuple[Path, ...]:
        """The list of samples."""
        return (self.path,)

    @property
    def references(self) -> tuple[str, ...]:
        """What answers are held against, by index."""
        return tuple(sample.reference for sample in self.samples)

    @property
    def subsets(self) -> tuple[str, ...]:
        """The data set that each sample comes from, by index."""
        return tuple(sample.subset for sample in self.samples)

    def load(self, indices: Sequence[int]) -> list[Sample]:
        """Return the samples of `indices`, in that order."""
        return [self.samples[index] for index in indices]


def _sample(row: Any) -> Sample:
    """Return the sample of a parsed line; raises KeyError, TypeError, ValueError and OverflowError."""
    reference, subset, text, answer = row["reference"], row.get("subset", ""), row.get("text"), row.get("answer")
    if not all(isinstance(one, str) for one in (reference, subset, text or "", answer or "")):
        raise TypeError("reference, subset, text and answer must be texts")
    ids = row.get("tokens")
    if ids is None and not text:
        raise ValueError("it has neither tokens nor a text")
    tokens = None if ids is None else _tokens(ids)
    return Sample(tokens=tokens, reference=reference, subset=subset, text=text, answer=answer)


def _tokens(ids: Any) -> npt.NDArray[np.int32]:
    found = np.array(ids)
    if found.ndim != 1 or found.dtype.kind != "i" or not len(found) or not 0 <= found.min() <= found.max() < 2**31:
        raise ValueError("tokens must be a list of whole numbers from 0, at least one")
    return found.astype(np.int32)


def _samples(path: Path) -> Iterator[Sample]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield _sample(json.loads(line))
                except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                    raise HarnessError(f"line {number} of {path} cannot be used: {error!r}", _HINT) from error
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error


def open_dataset(folder: Path) -> TokenisedDataset:
    """Return the samples of `folder`; raises HarnessError naming the first line that cannot be used."""
    path = folder / SAMPLES_FILE
    samples = tuple(_samples(path))
    if not samples:
        raise HarnessError(f"{path} holds no sample", _HINT)
    described = folder if (folder / FACTS_FILE).is_file() else folder.parent  # a part's facts lie beside its folder
    return TokenisedDataset(path, samples, read_facts(described))
