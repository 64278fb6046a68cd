"""Chooses the samples that a model is calibrated with, and says what they are.

The official list of the data set is the default, and its samples must be there. A synthetic data set and one without
such a list give seeded samples of their calibration part, or of the measured samples where there is none. A file of
indices, or a count, chooses others.
All but the official list on real data is marked `is_official: false`, which the closed division refuses.
"""

import hashlib
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.calibration_lists import OFFICIAL, official_list
from crowdperf.harness.base.dataset import Dataset, ListedSamples, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import CalibrationSource

DEFAULT_COUNT = 64
"""Samples of a synthetic data set; official lists have 20 to 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the caller asked for: nothing (the official list, if any), an official list by name, a file with the
    index of a sample in each line, or a count of samples drawn by `seed`."""

    list_name: str = ""
    sample_list: Path | None = None
    count: int | None = None
    seed: int = 0


def choose(name: str, module: Any, folder: Path, choice: Choice) -> tuple[ListedSamples, CalibrationSource]:
    """Return the samples of the data set `name` (its file is `module`) in `folder`, and the record of what they are.

    Raises HarnessError when the official list cannot be used, or when indices are outside the data set.
    """
    is_synthetic = read_facts(folder).is_synthetic
    is_given = choice.sample_list is not None or choice.count is not None
    if choice.list_name or not (is_given or is_synthetic or name not in OFFICIAL):
        source, entries = official_list(name, choice.list_name)
        listed: ListedSamples = module.listed_samples(folder, entries)
        return listed, CalibrationSource(name=source.name, sha256=source.sha256, is_official=not is_synthetic)
    open_rest = getattr(module, "open_calibration", None)
    dataset: Dataset = (open_rest or module.open_dataset)(folder)
    part = "the calibration part" if open_rest else "the measured samples"
    if choice.sample_list is not None:
        indices, text = read_sample_list(choice.sample_list), f"the file {choice.sample_list.name}"
    else:
        wanted = DEFAULT_COUNT if choice.count is None else choice.count
        indices = choose_samples(dataset.count, wanted, choice.seed)
        text = f"{len(indices)} samples, seed {choice.seed},"
    wrong = [index for index in indices if not 0 <= index < dataset.count]
    if wrong or not indices:
        raise HarnessError(f"sample ids {wrong[:5]}: the data set has 0 to {dataset.count - 1}", "choose others")
    if not is_synthetic:
        print(f"calibrate: {text} of {part}: not the official list, open division only", file=sys.stderr)
    sha256 = hashlib.sha256("".join(f"{index}\n" for index in indices).encode("ascii")).hexdigest()
    source = CalibrationSource(name=f"{name}: {text} of {part}", sha256=sha256, is_official=False)
    return ListedSamples(dataset=dataset, indices=indices, is_measured=open_rest is None), source


def choose_samples(count: int, wanted: int, seed: int) -> tuple[int, ...]:
    """Return `wanted` different indices of `count`, seeded, in rising order; all when there are no more."""
    if wanted >= count:
        return tuple(range(count))
    return tuple(sorted(random.Random(seed).sample(range(count), max(0, wanted))))


def read_sample_list(path: Path) -> Sequence[int]:
    """Return the indices in a file with one in each line; empty lines and what stands behind # do not count."""
    hint = "give a file with one index in each line"
    try:
        words = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
        return tuple(int(word) for word in words if word)
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", hint) from error
    except ValueError as error:
        raise HarnessError(f"{path}: {error}", hint) from error
