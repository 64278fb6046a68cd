"""Makes click logs in the formats of Criteo's day 23, in which some categories and counts do say who clicks.

Not real data: seeded random rows. `multi-hot` writes the three files of dlrm-v2; `one-hot` writes the day's text and
the dictionaries of its categories, from which convert_day.py of get-dataset-criteo makes the
binary rows of dlrm v1. The day has twice the rows of the asked number of samples: the first half is measured, the
second one is for calibration and fitting.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.datasets import criteo
from crowdperf.standins.dataset_program import Given, MadeSet

TINY_ROWS = 100  # values of a category at most, as the tables of the tiny models
DENSE_WEIGHTS = np.array([0.9, -0.7, 0.5, -0.4] + [0.0] * (criteo.DENSE_COUNT - 4))
INFORMATIVE_VALUES = 64  # categories with so few values have an effect each
EFFECT_DEVIATION = 0.9
OFFSET = -1.0  # makes about a third of the rows clicks; real logs have 3 %
_ONE_HOT_ID_STEP = 2_654_435_761  # odd, so that value * step modulo 2**32 is another id for each value


def table_rows(form: str, size: str) -> tuple[int, ...]:
    """Return how many values each category has."""
    rows = criteo.TABLE_ROWS_V2 if form == "multi-hot" else criteo.TABLE_ROWS_V1
    return rows if size == "full" else tuple(min(count, TINY_ROWS) for count in rows)


def draw_values(
    random: np.random.Generator, rows: int, tables: tuple[int, ...], hot_counts: tuple[int, ...]
) -> list[npt.NDArray[np.int32]]:
    """Return int32[rows, k] for each category; low values are the frequent ones."""
    return [
        (random.random((rows, width)) ** 3 * count).astype(np.int32)
        for count, width in zip(tables, hot_counts, strict=True)
    ]


def draw_labels(
    random: np.random.Generator, counts: npt.NDArray[np.int64], values: list[npt.NDArray[np.int32]]
) -> npt.NDArray[np.int32]:
    """Return int32[rows], drawn with a probability that follows from counts and categories."""
    logit = OFFSET + (np.log1p(np.maximum(counts, 0)) - 1.0) @ DENSE_WEIGHTS
    effects = np.random.default_rng(20_190_523)  # the same in every data set, so that models fit any of them
    for category in values:
        effect = effects.normal(0.0, EFFECT_DEVIATION, INFORMATIVE_VALUES)
        if category.max() < INFORMATIVE_VALUES:
            logit += effect[category].mean(axis=1)
    return (random.random(len(counts)) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int32)


def write_multi_hot(
    folder: Path, counts: npt.NDArray[np.int64], values: list[npt.NDArray[np.int32]], labels: npt.NDArray[np.int32]
) -> None:
    """Write dlrm-v2's files. Counts are stored as log(count + 3), as torchrec's preparation does."""
    np.save(folder / "day_23_dense.npy", np.log(np.maximum(counts, -2) + 3.0).astype(np.float32))
    np.save(folder / "day_23_labels.npy", labels.reshape(-1, 1))
    np.savez(folder / "day_23_sparse_multi_hot.npz", **{str(number): array for number, array in enumerate(values)})  # type: ignore[arg-type]


def write_text(
    folder: Path, counts: npt.NDArray[np.int64], values: list[npt.NDArray[np.int32]], labels: npt.NDArray[np.int32]
) -> None:
    """Write the day's text (tabs; ids of eight hexadecimal digits; empty where a count is missing) and dictionaries.

    A dictionary lists the ids of one category; the place of an id in it is its row in the embedding table. Real ids are
    taken modulo 40 million before they are looked up, so ids here are below that.
    """
    ids = [
        (category[:, 0].astype(np.uint64) * np.uint64(_ONE_HOT_ID_STEP) % np.uint64(2**32)) % np.uint64(40_000_000)
        for category in values
    ]
    columns = [[f"{value:08x}" for value in column.tolist()] for column in ids]
    numbers = [["" if value < 0 else str(value) for value in column] for column in counts.T.tolist()]
    with (folder / "day_23").open("w", encoding="ascii", newline="\n") as file:
        for row in zip(map(str, labels.tolist()), *numbers, *columns, strict=True):
            file.write("\t".join(row) + "\n")
    for number, column in enumerate(ids):
        np.savez_compressed(folder / f"day_fea_dict_{number}.npz", unique=np.unique(column).astype(np.int32))


def make(given: Given) -> Mapping[str, Any]:
    form, count = given.form, given.count
    half = int(criteo.aggregation(800 * count)[count])
    random = np.random.default_rng(given.seed)
    counts = np.floor(np.exp(random.normal(1.0, 1.0, (2 * half, criteo.DENSE_COUNT)))).astype(np.int64)
    counts[random.random(counts.shape) < 0.02] = -1
    hot_counts = criteo.MULTI_HOT if form == "multi-hot" else criteo.ONE_HOT
    values = draw_values(random, 2 * half, table_rows(form, given.size), hot_counts)
    labels = draw_labels(random, counts, values)
    (write_multi_hot if form == "multi-hot" else write_text)(given.output_dir, counts, values, labels)
    return {"rows": half, "size": given.size, "form": form, "license": "made by this project: Apache-2.0"}


MADE = MadeSet(
    name="criteo",
    what="samples of 100 to 700 rows",
    make=make,
    options={
        "--form": {"choices": ("one-hot", "multi-hot"), "required": True},
        "--size": {"choices": ("full", "tiny"), "default": "full"},
    },
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
