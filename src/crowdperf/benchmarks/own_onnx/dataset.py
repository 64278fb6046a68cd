"""Inputs of a network of the user: `input_<n>.npy` [N, ...] of each input, and `expected.npy` [N, ...], which is
optional, as the recipe get-dataset-own-inputs writes them. dataset.json names the inputs:

    {"is_synthetic": true, "inputs": ["image"], "seed": 0}
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdperf.harness.base.dataset import FACTS_FILE, DatasetFacts, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array, Tensors

EXPECTED_FILE = "expected.npy"
_HINT = "rebuild the inputs: cm run script --tags=get,dataset,own-inputs --renew"


@dataclass(frozen=True, slots=True, eq=False)
class OwnInputs:
    """All samples, in memory. expected: the right values of the response, None without them."""

    files: tuple[Path, ...]
    arrays: Tensors
    expected: Array | None
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(next(iter(self.arrays.values())))

    @property
    def why_unscored(self) -> str:
        """Why an accuracy run is not possible; empty with expected values."""
        return "" if self.expected is not None else "the inputs have no expected values"

    def load(self, indices: Sequence[int]) -> Tensors:
        rows = np.asarray(indices, dtype=np.intp)
        return {name: array[rows] for name, array in self.arrays.items()}


def input_file(number: int) -> str:
    return f"input_{number}.npy"


def open_dataset(folder: Path) -> OwnInputs:
    facts = read_facts(folder)
    try:
        names = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))["inputs"]
        files = [folder / input_file(number) for number in range(len(names))]
        arrays = {name: np.load(path, allow_pickle=False) for name, path in zip(names, files, strict=True)}
        expected = None
        if (path := folder / EXPECTED_FILE).is_file():
            expected = np.load(path, allow_pickle=False)
            files.append(path)
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise HarnessError(f"{folder} cannot be used: {error!r}", _HINT) from error
    counts = {len(array) for array in (*arrays.values(), *(() if expected is None else (expected,)))}
    if len(counts) != 1 or not min(counts):
        raise HarnessError(f"{folder} contains {sorted(counts)} samples, expected one number, 1 or more", _HINT)
    return OwnInputs(tuple(files), arrays, expected, facts)
