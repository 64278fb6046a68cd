"""Criteo's Terabyte click logs, day 23: rows of 13 counts and 26 categories, and whether the advertisement was clicked.

Two formats are read, both mapped into memory, never read whole:

    dlrm-v2   day_23_dense.npy float32[N, 13], day_23_labels.npy int32[N, 1] and day_23_sparse_multi_hot.npz, whose
              members 0.npy to 25.npy are int32[N, k] (stored, not compressed). Measured is the first half of the day.
    dlrm v1   terabyte_processed_test.bin: int32 rows of label, 13 counts, 26 categories; only the measured half.
              terabyte_processed_val.bin, the same for the other half, is read for calibration only.

A sample of the benchmark is a run of 100 to 700 rows (`aggregation`). Sources: recommendation/dlrm_v2/pytorch of
mlcommons/inference and data_loader_terabyte.py of facebookresearch/dlrm, as its v1 reference uses it.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, read_facts
from crowdperf.harness.base.errors import HarnessError

DENSE_COUNT, CATEGORY_COUNT = 13, 26

TABLE_ROWS_V1 = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976, 14,
    39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
"""Values of each category, at most 40 million (--max-ind-range=40000000; main.py of the v1 reference)."""

TABLE_ROWS_V2 = (
    40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976, 14,
    40000000, 40000000, 40000000, 590152, 12973, 108, 36,
)  # fmt: skip
"""The same for dlrm-v2 (main.py of its reference)."""

MULTI_HOT = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)
"""Values of a row for each category in dlrm-v2 (make_fake_criteo.sh of its reference)."""

ONE_HOT = (1,) * CATEGORY_COUNT

TRACE_FILE = "dlrm_trace_of_aggregated_samples.txt"
_QUANTILES = np.array([100] * 2 + [200] * 12 + [300] * 2 + [400, 500, 600, 700])  # tools/dist_quantile.txt
_TRACE_SEED = 123  # default of main.py's --numpy-rand-seed
_SPARSE_FILE = "day_23_sparse_multi_hot.npz"
_TEST_FILE, _VALIDATION_FILE = "terabyte_processed_test.bin", "terabyte_processed_val.bin"
_FILES = ("day_23_dense.npy", "day_23_labels.npy", _SPARSE_FILE, _TEST_FILE, _VALIDATION_FILE, TRACE_FILE)
_ROW_VALUES = 1 + DENSE_COUNT + CATEGORY_COUNT
_HINT = "rebuild the data set: cm run script --tags=get,dataset,original,criteo --renew"

IntRows = npt.NDArray[np.int32]
FloatRows = npt.NDArray[np.float32]


class Table(Protocol):
    """Rows in a file. hot_counts: values of a row for each category."""

    row_count: int
    hot_counts: tuple[int, ...]

    def dense(self, rows: slice) -> FloatRows:
        """Return a copy float32[rows, 13] of what the network takes."""

    def labels(self, rows: slice) -> FloatRows:
        """Return a copy float32[rows] of the labels, 0 or 1."""

    def copy_sparse(self, rows: slice, out: IntRows) -> None:
        """Copy the categories' values side by side into int32[rows, sum of hot_counts]."""


class MultiHotTable:
    """dlrm-v2's files, or a part of their rows."""

    def __init__(self, dense: FloatRows, labels: IntRows, sparse: Sequence[IntRows], part: slice) -> None:
        self._dense, self._labels = dense[part], labels[part].reshape(-1)
        self._sparse = [values[part] for values in sparse]
        self.row_count = len(self._dense)
        self.hot_counts = tuple(int(values.shape[1]) for values in sparse)

    def dense(self, rows: slice) -> FloatRows:
        """Return a copy of the rows, which are stored as the network takes them."""
        return np.array(self._dense[rows])

    def labels(self, rows: slice) -> FloatRows:
        return self._labels[rows].astype(np.float32)

    def copy_sparse(self, rows: slice, out: IntRows) -> None:
        column = 0
        for values, width in zip(self._sparse, self.hot_counts, strict=True):
            out[:, column : column + width] = values[rows]
            column += width


class OneHotTable:
    """dlrm v1's binary rows: int32[N, 40]."""

    hot_counts = ONE_HOT

    def __init__(self, rows: IntRows) -> None:
        self._rows = rows
        self.row_count = len(rows)

    def dense(self, rows: slice) -> FloatRows:
        """Return log(count + 1), computed in float32 as the reference does."""
        counts = self._rows[rows, 1 : 1 + DENSE_COUNT].astype(np.float32)
        logs: FloatRows = np.log(counts + np.float32(1.0))
        return logs

    def labels(self, rows: slice) -> FloatRows:
        return self._rows[rows, 0].astype(np.float32)

    def copy_sparse(self, rows: slice, out: IntRows) -> None:
        out[...] = self._rows[rows, 1 + DENSE_COUNT :]


@dataclass(frozen=True, slots=True, eq=False)
class ClickRows:
    """One sample: which rows of a table it is."""

    table: Table
    rows: slice


@dataclass(frozen=True, slots=True, eq=False)
class CriteoDataset:
    """Samples are the runs of rows between `boundaries`, int64[count + 1]."""

    folder: Path
    table: Table
    boundaries: npt.NDArray[np.int64]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.boundaries) - 1

    @property
    def files(self) -> tuple[Path, ...]:
        """The tables of both formats and the trace, as far as they are there."""
        return tuple(self.folder / name for name in _FILES if (self.folder / name).is_file())

    def load(self, indices: Sequence[int]) -> list[ClickRows]:
        starts = self.boundaries.tolist() if len(indices) > self.count // 8 else self.boundaries
        return [ClickRows(self.table, slice(int(starts[index]), int(starts[index + 1]))) for index in indices]


def aggregation(row_count: int) -> npt.NDArray[np.int64]:
    """Return the boundaries of the samples, int64[samples + 1], as the reference draws them.

    Lengths are drawn from the quantile list with numpy's old generator and seed 123 until the rows are used up; the
    last sample takes what is left. 89,137,319 rows make 330,067 samples.
    """
    random = np.random.RandomState(_TRACE_SEED)
    boundaries = [np.zeros(1, dtype=np.int64)]
    while boundaries[-1][-1] < row_count:
        lengths = _QUANTILES[random.randint(0, len(_QUANTILES), size=1 + row_count // 100)]
        boundaries.append(boundaries[-1][-1] + np.cumsum(lengths))
    ends: npt.NDArray[np.int64] = np.concatenate(boundaries)
    return np.append(ends[ends < row_count], row_count)


def _read_trace(path: Path, row_count: int) -> npt.NDArray[np.int64]:
    """Return the boundaries of a trace file, whose lines are `start, end, length`."""
    if path.stat().st_size == 0:
        raise HarnessError(f"{path} is empty", "remove the file: new samples are then drawn")
    try:
        lines = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", "remove the file: new samples are then drawn") from error
    if lines.shape[1:] != (3,) or len(lines) == 0:
        raise HarnessError(f"{path} should have lines of start, end, length", "remove the file")
    starts, ends, lengths = lines.T
    is_whole = starts[0] == 0 and (starts[1:] == ends[:-1]).all() and (ends - starts == lengths).all()
    if not is_whole or (lengths < 1).any() or ends[-1] > row_count:
        raise HarnessError(
            f"{path} does not cut {row_count:,} rows into samples one behind the other", "remove the file"
        )
    return np.append(starts, ends[-1])


def _mapped_npy(path: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    return array


def _mapped_member(path: Path, archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Return an array that is stored in an .npz, mapped where it lies in the file."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, but must be stored, so that it can be mapped")
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)  # local header: the lengths of name and extra field, then both of them
        lengths = np.frombuffer(file.read(4), dtype="<u2")
        file.seek(int(lengths.sum()), 1)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
        order = "F" if is_fortran else "C"
        return np.memmap(path, dtype=dtype, shape=shape, order=order, mode="r", offset=file.tell())  # type: ignore[call-overload, no-any-return]


def _open_multi_hot(folder: Path, *, is_measured_half: bool) -> MultiHotTable:
    dense, labels = _mapped_npy(folder / "day_23_dense.npy"), _mapped_npy(folder / "day_23_labels.npy")
    path = folder / _SPARSE_FILE
    try:
        with zipfile.ZipFile(path) as archive:
            sparse = [_mapped_member(path, archive, f"{number}.npy") for number in range(CATEGORY_COUNT)]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    rows = len(dense)
    found = [
        ("day_23_dense.npy", dense, "float32", (rows, DENSE_COUNT)),
        ("day_23_labels.npy", labels, "int32", (rows, 1)),
        *((f"{_SPARSE_FILE}:{n}.npy", values, "int32", (rows, *values.shape[1:2])) for n, values in enumerate(sparse)),
    ]
    for name, array, dtype, shape in found:
        if array.dtype != dtype or array.shape != shape or array.ndim != 2:
            found_as, wanted = f"{array.dtype}{list(array.shape)}", f"{dtype}{list(shape)}"
            raise HarnessError(f"{folder}/{name} contains {found_as}, expected {wanted}", _HINT)
    middle = rows // 2 + rows % 2  # multihot_criteo.py: second_half_start_index
    part = slice(0, middle) if is_measured_half else slice(middle, rows)
    return MultiHotTable(dense, labels, sparse, part)


def _open_one_hot(path: Path) -> OneHotTable:
    try:
        size = path.stat().st_size
        if size == 0 or size % (4 * _ROW_VALUES) != 0:
            raise HarnessError(f"{path} has {size} bytes, expected rows of {4 * _ROW_VALUES} bytes", _HINT)
        rows = np.memmap(path, dtype="<i4", mode="r").reshape(-1, _ROW_VALUES)
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", _HINT) from error
    return OneHotTable(rows)


def _open_table(folder: Path, *, is_measured_half: bool) -> Table:
    if (folder / "day_23_dense.npy").is_file():
        return _open_multi_hot(folder, is_measured_half=is_measured_half)
    path = folder / (_TEST_FILE if is_measured_half else _VALIDATION_FILE)
    if path.is_file():
        return _open_one_hot(path)
    raise HarnessError(
        f"{folder} does not contain Criteo day 23: neither {path.name} (dlrm) nor day_23_dense.npy, day_23_labels.npy "
        f"and {_SPARSE_FILE} (dlrm-v2)",
        _HINT,
    )


def open_dataset(folder: Path) -> CriteoDataset:
    """Return the measured half; raises HarnessError when a file is missing, damaged or of another length."""
    table = _open_table(folder, is_measured_half=True)
    trace = folder / TRACE_FILE
    boundaries = _read_trace(trace, table.row_count) if trace.is_file() else aggregation(table.row_count)
    return CriteoDataset(folder, table, boundaries, read_facts(folder))


def open_calibration(folder: Path) -> CriteoDataset:
    """Return the other half, whose first 128,000 rows are the official calibration set; none of it is measured."""
    table = _open_table(folder, is_measured_half=False)
    return CriteoDataset(folder, table, aggregation(table.row_count), read_facts(folder))
