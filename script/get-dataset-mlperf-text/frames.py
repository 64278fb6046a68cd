"""Reads a pickled table of pandas without pandas, and without running anything that the file asks for.

A pickle is a program: reading a stranger's with `pickle.load` or `pandas.read_pickle` runs what its author wrote. Here
every name that a file asks for is looked up in a short list: numpy's and Python's own makers of arrays and slices,
and stand-ins for pandas' classes, which keep the parts and do nothing. Any other name ends the reading.

The parts of a table (pandas 1.3 to 3.0): DataFrame -> BlockManager -> blocks of (values, columns they fill) + axes.
"""

import gzip
import importlib
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

MAX_BYTES = 16 * 10**9
"""The published tables have less than 1 GB."""


class TableError(Exception):
    """The file is no table that can be read here; the text says why."""


class _Frame:
    """In place of DataFrame: keeps its manager."""

    def __init__(self, *_: Any) -> None:
        self.manager: Any = None

    def __setstate__(self, state: Any) -> None:
        self.manager = state.get("_mgr", state.get("_data")) if isinstance(state, dict) else None


class _Manager:
    """In place of BlockManager: blocks and axes (columns, rows)."""

    def __init__(self, blocks: Any = (), axes: Any = (), *_: Any) -> None:
        self.blocks, self.axes = blocks, axes


class _Block:
    """In place of a block: its values, and the columns that they are of."""

    def __init__(self, values: Any, places: Any, *_: Any, **__: Any) -> None:
        self.values, self.places = values, places


class _Text:
    """In place of pandas' array of texts: keeps the numpy array in it."""

    def __init__(self, *_: Any) -> None:
        self.values: Any = None

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        found = [one.get("_ndarray") for one in parts if isinstance(one, dict) and "_ndarray" in one]
        self.values = next((one for one in (*found, *parts) if isinstance(one, np.ndarray)), None)


class _Ignored:
    """In place of a class whose content is not needed: types of columns, flags."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def _index(_: Any, parts: Mapping[str, Any]) -> Any:
    """In place of pandas' _new_Index: the labels, or the range of a RangeIndex."""
    if "data" in parts:
        return parts["data"]
    return range(parts["start"], parts["stop"], parts["step"])


def _text_array(*_: Any) -> _Text:
    return _Text()


_NUMPY = {
    ("multiarray", "_reconstruct"),
    ("multiarray", "scalar"),
    ("numeric", "_frombuffer"),
}
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("builtins", "slice"): slice,
    ("builtins", "bytearray"): bytearray,
    ("pandas.core.frame", "DataFrame"): _Frame,
    ("pandas", "DataFrame"): _Frame,
    ("pandas.core.internals.managers", "BlockManager"): _Manager,
    ("pandas._libs.internals", "_unpickle_block"): _Block,
    ("pandas.core.indexes.base", "_new_Index"): _index,
    ("pandas.core.indexes.base", "Index"): _Ignored,
    ("pandas", "Index"): _Ignored,
    ("pandas", "RangeIndex"): _Ignored,
    ("pandas.core.indexes.range", "RangeIndex"): _Ignored,
    ("pandas.core.indexes.numeric", "Int64Index"): _Ignored,
    ("pandas._libs.arrays", "__pyx_unpickle_NDArrayBacked"): _text_array,
    ("pandas.arrays", "StringArray"): _Text,
    ("pandas", "StringDtype"): _Ignored,
}


def _numpys(module: str, name: str) -> Callable[..., Any] | None:
    """Return numpy's own maker of arrays, wherever the numpy that wrote the file had it (numpy.core before 2.0)."""
    for place in ("numpy.core.", "numpy._core."):
        if module.startswith(place) and (module.removeprefix(place), name) in _NUMPY:
            core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
            found: Callable[..., Any] = getattr(importlib.import_module(f"{core}.{module.removeprefix(place)}"), name)
            return found
    return None


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _ALLOWED.get((module, name)) or _numpys(module, name)
        if found is None:
            what = "which no plain table needs, so it was not read further"
            if name.startswith("Arrow"):
                what = "texts kept by pyarrow: write the table again with its texts as objects, table.astype(object)"
            raise TableError(f"it refers to {module}.{name}, {what}")
        return found


def _labels(axis: Any) -> list[Any]:
    values = axis.values if isinstance(axis, _Text) else axis
    return list(values)


def _filled(places: Any, count: int) -> list[int]:
    """The columns that a block fills: a slice, or an array of numbers."""
    return list(range(count))[places] if isinstance(places, slice) else [int(one) for one in np.asarray(places)]


def _columns(frame: Any) -> dict[str, list[Any]]:
    if not isinstance(frame, _Frame) or not isinstance(frame.manager, _Manager):
        raise TableError("it contains no table of pandas")
    names, rows = (_labels(axis) for axis in frame.manager.axes)
    columns: dict[str, list[Any]] = {}
    for block in frame.manager.blocks:
        values = block.values.values if isinstance(block.values, _Text) else block.values
        if not isinstance(values, np.ndarray):
            raise TableError(f"a column is kept as {type(values).__name__}, which is not read here")
        places = _filled(block.places, len(names))
        for place, column in zip(places, np.atleast_2d(values), strict=True):
            columns[str(names[place])] = column.tolist()
    if set(columns) != set(map(str, names)) or any(len(column) != len(rows) for column in columns.values()):
        raise TableError("its columns do not match its rows")
    return columns


def read_pickled_table(path: Path) -> dict[str, list[Any]]:
    """The columns of the table in a pickle, each with one value for each row. Raises TableError and OSError."""
    if path.stat().st_size > MAX_BYTES:
        raise TableError(f"{path} has more than {MAX_BYTES / 1e9:g} GB")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            frame = _Reader(file).load()
        return _columns(frame)
    except TableError as error:
        raise TableError(f"{path}: {error}") from error
    except Exception as error:  # a damaged pickle raises nearly anything
        raise TableError(
            f"{path} is not a pickled table that can be read here: {type(error).__name__}: {error}"
        ) from error
