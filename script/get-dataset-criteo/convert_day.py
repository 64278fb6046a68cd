"""Makes the binary rows that dlrm v1 reads from the text of Criteo's day 23.

Follows data_utils.py and data_loader_terabyte.py of facebookresearch/dlrm: an empty field is 0, a category's id is a
hexadecimal number modulo 40 million, its row in the embedding table is the place of that id in the category's
dictionary, and negative counts are 0. The first half of the day, rounded up, is what the benchmark measures.

The dictionaries `day_fea_dict_0.npz` to `day_fea_dict_25.npz` (key `unique`) come out of the preparation of all 24 days
for training: without them no row of a published model's tables can be told, so they must lie beside the text.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

COUNTS, CATEGORIES = 13, 26
LARGEST_ID = 40_000_000  # --max-ind-range of the benchmark
ROWS_AT_ONCE = 100_000
TEST_FILE, VALIDATION_FILE = "terabyte_processed_test.bin", "terabyte_processed_val.bin"


class ConversionError(Exception):
    """The text or a dictionary cannot be used; the message says where."""


class Dictionary:
    """Rows of the embedding table by id of one category."""

    def __init__(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as content:
                unique = content["unique"].astype(np.int64)
        except (OSError, ValueError, KeyError) as error:
            raise ConversionError(f"cannot read the dictionary {path}: {error}") from error
        self._path = path
        self._rows = np.argsort(unique, kind="stable")
        self._ids = unique[self._rows]

    def rows_of(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row of each id; raises ConversionError for an id that the dictionary lacks."""
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        unknown = ids[self._ids[place] != ids]
        if len(unknown):
            raise ConversionError(f"{self._path} has no id {int(unknown[0]):08x} of the text")
        found: npt.NDArray[np.int64] = self._rows[place]
        return found


def parse_line(line: str, number: int) -> list[int]:
    """Return label, counts and ids of one line; `number` is for the message of ConversionError."""
    fields = line.rstrip("\n").split("\t")
    if len(fields) != 1 + COUNTS + CATEGORIES:
        raise ConversionError(f"line {number} has {len(fields)} fields, expected {1 + COUNTS + CATEGORIES}")
    try:
        values = [int(field or 0) for field in fields[: 1 + COUNTS]]
        ids = [int(field or "0", 16) % LARGEST_ID for field in fields[1 + COUNTS :]]
    except ValueError as error:
        raise ConversionError(f"line {number}: {error}") from error
    return values + ids


def blocks(text: Path) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows, int64[up to ROWS_AT_ONCE, 40], ids not yet looked up."""
    with text.open(encoding="ascii") as file:
        lines = enumerate(file, start=1)
        while piece := list(itertools.islice(lines, ROWS_AT_ONCE)):
            yield np.array([parse_line(line, number) for number, line in piece], dtype=np.int64)


def convert(folder: Path, output_dir: Path) -> int:
    """Write both halves of `folder`/day_23; return the number of measured rows. Raises ConversionError."""
    text = folder / "day_23"
    with text.open("rb") as file:
        row_count = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 22), b""))
    half = row_count // 2 + row_count % 2
    dictionaries = [Dictionary(folder / f"day_fea_dict_{number}.npz") for number in range(CATEGORIES)]
    done = 0
    unfinished = [output_dir / f"{name}.part" for name in (TEST_FILE, VALIDATION_FILE)]
    with unfinished[0].open("wb") as test, unfinished[1].open("wb") as validation:
        for block in blocks(text):
            block[:, 1 : 1 + COUNTS] = np.maximum(block[:, 1 : 1 + COUNTS], 0)
            for number, dictionary in enumerate(dictionaries, start=1 + COUNTS):
                block[:, number] = dictionary.rows_of(block[:, number])
            rows = block.astype("<i4")
            first = max(0, min(half - done, len(rows)))
            test.write(rows[:first].tobytes())
            validation.write(rows[first:].tobytes())
            done += len(rows)
            if done % (ROWS_AT_ONCE * 50) == 0:
                print(f"{done:,} of {row_count:,} rows", file=sys.stderr)
    if done != row_count:
        raise ConversionError(f"{text} ends within a line (it was cut off)")
    for path in unfinished:
        path.replace(path.with_suffix(""))
    return half


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    asked = parser.parse_args()
    try:
        rows = convert(asked.input_dir, asked.output_dir)
    except (ConversionError, OSError) as error:
        raise SystemExit(f"convert_day: {error}") from error
    print(f"{rows:,} measured rows -> {asked.output_dir / TEST_FILE}")


if __name__ == "__main__":
    main()
