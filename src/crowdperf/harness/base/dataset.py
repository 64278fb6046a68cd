"""What a data set is: validation samples by index, and what a model's scorer must know of them.

A data set file holds the members of DatasetModule. The samples are raw; a model's `preprocess` makes network inputs
of them. What scoring needs (labels, questions, annotations) are members of the data set's own class: a model knows
the data set it is for.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from crowdperf.harness.base.errors import HarnessError
from crowdperf.kit.text_documents import given_object
from crowdperf.rules.names import counted

FACTS_FILE = "dataset.json"
Sample = TypeVar("Sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """What dataset.json says. A folder without one is taken for real data that a user put there.

    is_synthetic: made by a program, so that no figure got with it is an MLPerf result. is_described: a recipe wrote a
    dataset.json. difference: what shows that it is not the benchmark's data, empty where nothing does, or is compared.
    """

    is_synthetic: bool = False
    is_described: bool = False
    difference: str = ""


def read_facts(folder: Path) -> DatasetFacts:
    """Return what `folder`/dataset.json says; raises HarnessError when it is no JSON object."""
    path = folder / FACTS_FILE
    if not path.exists():
        return DatasetFacts()
    values = given_object(path, lambda why: HarnessError(why, "rebuild the data set"))
    return DatasetFacts(is_synthetic=bool(values.get("is_synthetic", False)), is_described=True)


def listed_cases(folder: Path, key: str, hint: str) -> tuple[str, ...]:
    """Return the names that dataset.json of a synthetic data set lists under `key`; raises HarnessError with `hint`
    when it lists none."""
    listed = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8")).get(key)
    if not isinstance(listed, list) or not listed or not all(isinstance(case, str) for case in listed):
        raise HarnessError(f"{folder / FACTS_FILE}: {key} is {listed!r}, expected a list of cases", hint)
    return tuple(listed)


@dataclass(frozen=True, slots=True, eq=False)
class SamplesOfFile(Generic[Sample]):
    """A data set that was read from one file and is in memory."""

    path: Path
    samples: tuple[Sample, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.samples)

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def without_answers(self) -> int:
        """How many samples have nothing that answers could be scored against."""
        return 0

    def load(self, indices: Sequence[int]) -> list[Sample]:
        return [self.samples[index] for index in indices]


class Dataset(Protocol):
    """An opened validation set; indices are 0 to `count` - 1."""

    @property
    def count(self) -> int:
        """Number of validation samples."""

    @property
    def facts(self) -> DatasetFacts:
        """What dataset.json says (`read_facts`)."""

    @property
    def files(self) -> Sequence[Path]:
        """The files that samples and scores are read from, without dataset.json: what the data set's identity is
        made of (`crowdperf.harness.base.identity`)."""

    def load(self, indices: Sequence[int]) -> Any:
        """Return the raw samples of `indices`, in that order; what one is, the data set says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSamples:
    """The samples that a calibration list names: `indices` of `dataset`, in the list's order.

    is_measured: `dataset` is the one that the benchmark measures, so a store of its preprocessed samples serves, too.
    """

    dataset: Dataset
    indices: Sequence[int]
    is_measured: bool


def require_found(missing: Sequence[str], wanted: int, place: Path) -> None:
    """Raise HarnessError naming the samples of a calibration list that `place` lacks, if there are any."""
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise HarnessError(
            f"{place} is missing {len(missing)} of the {wanted} samples of the calibration list: {shown}",
            "get the listed samples (variation _calibration of get,dataset,coco and openimages, see README.md "
            "of calibrate-ml-model), or calibrate with --count=N other samples (open division only)",
        )


class DatasetModule(Protocol):
    """The members of one file in this folder.

    Optional are `open_calibration(folder) -> Dataset`, samples that are not measured, and, where mlcommons/inference
    has a calibration list, `listed_samples(folder, entries) -> ListedSamples`: the samples that lines of it name. An
    opened data set may have `problems() -> list[str]`: what opening does not look at, such as files that are damaged.
    """

    def open_dataset(self, folder: Path) -> Dataset:
        """Return the data set in `folder`; raises HarnessError naming every file that is missing or damaged."""


def require_answers(dataset: Dataset, recipe: str) -> None:
    """Raise HarnessError where samples have no reference answer, which accuracy runs alone need. recipe: the tags of
    the one that gets the data set."""
    if isinstance(dataset, SamplesOfFile) and dataset.without_answers:
        raise HarnessError(
            f"{dataset.without_answers:,} of {counted(dataset.count, 'sample')} in {dataset.path} have no reference "
            "answer, which an accuracy run needs",
            f"get the data set with its answers: cm run script --tags={recipe}. A performance run does not need them",
        )
