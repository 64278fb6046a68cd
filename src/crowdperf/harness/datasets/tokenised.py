"""Prompts as token ids with what their answers are held against: samples.jsonl, which get,dataset,mlperf-text makes of
the published files (JSON, pickled tables, parquet). One sample on each line, in the order of the published file:

    {"tokens": [128000, 791, ...], "reference": "A summary .", "subset": "gpqa", "text": "What ..."}

reference: the summary, letter, number or task that the answer is scored against. subset: the data set that a sample
of several comes from. text: the prompt as text. answer: of made samples, what a stand-in for a model says. All may be
absent, also the reference, which accuracy runs alone need; a sample has tokens or text.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import FACTS_FILE, SamplesOfFile, read_facts, require_answers
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.datasets.parts import SAMPLES_FILE

Parsed = TypeVar("Parsed")
_HINT = "rebuild the data set: cm run script --tags=get,dataset,mlperf-text,_<benchmark> --renew"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One prompt. tokens: int32[n], n from 1; None where only its text is known. reference: None where it has none."""

    tokens: npt.NDArray[np.int32] | None
    reference: str | None
    subset: str = ""
    text: str | None = None
    answer: str | None = None


class TokenisedDataset(SamplesOfFile[Sample]):
    """The samples (13,368 of the longest official set are 60 MB)."""

    @property
    def references(self) -> tuple[str, ...]:
        """What answers are held against, by index; raises HarnessError where samples have nothing such."""
        require_answers(self, "get,dataset,mlperf-text,_BENCHMARK")
        return tuple(sample.reference for sample in self.samples if sample.reference is not None)

    @property
    def without_answers(self) -> int:
        return sum(sample.reference is None for sample in self.samples)

    @property
    def subsets(self) -> tuple[str, ...]:
        """The data set that each sample comes from, by index."""
        return tuple(sample.subset for sample in self.samples)


def _sample(row: Any) -> Sample:
    """Return the sample of a parsed line; raises KeyError, TypeError, ValueError and OverflowError."""
    reference, subset, text, answer = row.get("reference"), row.get("subset", ""), row.get("text"), row.get("answer")
    if not all(one is None or isinstance(one, str) for one in (reference, text, answer)) or not isinstance(subset, str):
        raise TypeError("reference, subset, text and answer must be texts")
    ids = row.get("tokens")
    if ids is None and not text:
        raise ValueError("it has no tokens and no text")
    tokens = None if ids is None else token_array(ids)
    return Sample(tokens=tokens, reference=reference, subset=subset, text=text, answer=answer)


def token_array(ids: Any) -> npt.NDArray[np.int32]:
    """Return the tokens of a parsed line; raises ValueError for anything but a list of them."""
    found = np.array(ids)
    if found.ndim != 1 or found.dtype.kind != "i" or not len(found) or not 0 <= found.min() <= found.max() < 2**31:
        raise ValueError("tokens must be a list of whole numbers from 0, at least one")
    return found.astype(np.int32)


def _lines(path: Path, parse: Callable[[Any], Parsed], hint: str) -> Iterator[Parsed]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield parse(json.loads(line))
                except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                    raise HarnessError(f"line {number} of {path} cannot be used: {error!r}", hint) from error
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", hint) from error


def samples_of_lines(path: Path, parse: Callable[[Any], Parsed], hint: str) -> tuple[Parsed, ...]:
    """Return what `parse` makes of each line's JSON; raises HarnessError naming the first line that cannot be used."""
    samples = tuple(_lines(path, parse, hint))
    if not samples:
        raise HarnessError(f"{path} contains no sample", hint)
    return samples


def open_dataset(folder: Path) -> TokenisedDataset:
    path = folder / SAMPLES_FILE
    samples = samples_of_lines(path, _sample, _HINT)
    described = folder if (folder / FACTS_FILE).is_file() else folder.parent  # a part's facts lie beside its folder
    return TokenisedDataset(path, samples, read_facts(described))
