"""Turns the published files of a benchmark, or made ones of the same form, into samples.jsonl; checks what there is.

    python3 convert.py --benchmark gpt-oss-120b --source FOLDER --output_dir FOLDER [--is_published]

JSON lists, pickled tables (read by frames.py, which runs nothing of the file) and parquet. Run in the benchmark's
virtual environment with src on PYTHONPATH: the result is read as a run reads it.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from frames import TableError, read_pickled_table
from sources import SETS, Part

from crowdperf.kit.whole_file import write_json

SAMPLES_FILE = "samples.jsonl"
MADE_ANSWER = "made_answer"
"""A column that only tables of crowdperf.standins have."""


class ConversionError(Exception):
    """The files cannot be used; the text says which, and why."""


def find_file(folder: Path, part: Part) -> Path:
    """The file of a part at any place below a folder. Raises ConversionError where there is none, or several."""
    found = sorted(path for path in folder.rglob(part.file) if path.is_file())
    if len(found) != 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in found[:5]) or "none"
        raise ConversionError(f"{folder} must have one file {part.file}, at any place below it, found {names}")
    return found[0]


def _columns_of_parquet(path: Path) -> dict[str, list[Any]]:
    from pyarrow import parquet

    table = parquet.read_table(path)
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _columns_of_json(path: Path) -> dict[str, list[Any]]:
    entries = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConversionError(f"{path} contains no list of objects")
    names = dict.fromkeys(name for entry in entries for name in entry)
    return {name: [entry.get(name) for entry in entries] for name in names}


def read_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of a table by their names. Raises ConversionError, TableError and OSError."""
    try:
        if path.suffix == ".json":
            return _columns_of_json(path)
        if path.suffix == ".parquet":
            return _columns_of_parquet(path)
    except (ValueError, KeyError, UnicodeDecodeError) as error:  # pyarrow's errors are ValueErrors
        raise ConversionError(f"{path} cannot be read: {error}") from error
    return read_pickled_table(path)


def as_text(value: Any) -> str:
    """What an answer is held against as text: an integer that a table keeps as a float is one again."""
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


KINDS = (
    (bool, "a boolean"), (str, "a text"), (bytes, "bytes"), ((int, float), "a number"), (Mapping, "an object"),
    (Iterable, "a list"),
)  # fmt: skip
"""What a value is called, by the first type that it has."""


def _kind(value: Any) -> str:
    return next((name for kind, name in KINDS if isinstance(value, kind)), "nothing")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def as_tokens(value: Any) -> list[int] | None:
    """The token ids of a value; None where it is missing. Raises ValueError that says what it is instead."""
    if _is_missing(value):
        return None
    if _kind(value) != "a list":
        raise ValueError(_kind(value))
    for one in value:
        if isinstance(one, str | bytes | bool) or not hasattr(one, "__int__") or int(one) != one or one < 0:
            raise ValueError(f"a list with {one!r}")
    return [int(one) for one in value]


def as_words(value: Any) -> str | None:
    """The text of a value; None where it is missing. Raises ValueError that says what it is instead."""
    if _is_missing(value):
        return None
    if not isinstance(value, str):
        raise ValueError(_kind(value))
    return value


class _Columns:
    """The columns of a table, each value checked as it is read."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], path: Path) -> None:
        self.columns, self.path = columns, path

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def name(self, names: Sequence[str]) -> str | None:
        """The first of the names that is a column; None where none is."""
        return next((name for name in names if name in self.columns), None)

    def value(self, name: str | None, number: int, read: Callable[[Any], Any], allowed: str) -> Any:
        """A value as `read` gives it; None without a column. Raises ConversionError for one of another kind."""
        if name is None:
            return None
        try:
            return read(self.columns[name][number])
        except (ValueError, TypeError, OverflowError) as error:
            raise ConversionError(f"{self.path}: row {number + 1}: {name} is {error}; allowed: {allowed}") from None


def rows_of(columns: Mapping[str, Sequence[Any]], part: Part, path: Path) -> Iterator[dict[str, Any]]:
    """The lines of samples.jsonl. Raises ConversionError for a table without the columns that it must have, and for a
    value of another kind than its column's."""
    table = _Columns(columns, path)
    tokens, texts = table.name(part.tokens), table.name(part.text)
    answers, subsets = table.name(part.answers), table.name(part.subset)
    for column, names in (
        (tokens or texts, (*part.tokens, *part.text)),
        (answers, part.answers),
        (subsets, part.subset),
    ):
        if column is None and names:
            found = ", ".join(columns)
            raise ConversionError(f"{path} has no column {' or '.join(names)}, it has: {found}")
    made = table.name([MADE_ANSWER])
    for number in range(len(table)):
        row: dict[str, Any] = {"reference": table.value(answers, number, as_text, "a text or a number") or ""}
        if ids := table.value(tokens, number, as_tokens, "a list of token ids (numbers from 0)"):
            row["tokens"] = ids
        if subsets is not None:
            row["subset"] = str(table.value(subsets, number, as_words, "a text")).removesuffix("_em")
        if text := table.value(texts, number, as_words, "a text"):
            row["text"] = text
        if made is not None:
            row["answer"] = str(columns[MADE_ANSWER][number])
        yield row


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the lines, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(unfinished, path)


def convert(benchmark: str, source: Path, target: Path, *, is_published: bool) -> dict[str, int]:
    """Write each part's samples, and dataset.json last; return how many each part has. Raises ConversionError, where
    `is_published` also for another number of samples than the published files have."""
    from crowdperf.harness.base.errors import HarnessError
    from crowdperf.harness.datasets.tokenised import open_dataset

    made = source / "made.json"
    facts = json.loads(made.read_text(encoding="utf-8")) if made.is_file() else {}
    counts = {}
    for part in SETS[benchmark].parts:
        path = find_file(source, part)
        folder = target / part.name
        write_rows(rows_of(read_columns(path), part, path), folder / SAMPLES_FILE)
        try:
            counts[part.name] = open_dataset(folder).count
        except HarnessError as error:
            raise ConversionError(f"{path}: {error}") from error
        if is_published and not facts and counts[part.name] != part.count:
            raise ConversionError(f"{path} has {counts[part.name]:,} samples, but the published one has {part.count:,}")
    said = {"format": 1, "name": benchmark, "is_synthetic": bool(facts), **facts, "license": SETS[benchmark].license}
    described = {**said, **{key: facts[key] for key in ("license",) if key in facts}}
    described["count"] = counts.get("", counts.get("performance", 0))
    described["parts"] = {name: count for name, count in counts.items() if name}
    write_json(target / "dataset.json", described)
    return counts


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", choices=sorted(SETS), required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--is_published", action="store_true", help="the numbers of samples must be the published ones")
    given = parser.parse_args()
    try:
        counts = convert(given.benchmark, given.source, given.output_dir, is_published=given.is_published)
    except (ConversionError, TableError, OSError) as error:
        print(f"convert.py: {error}", file=sys.stderr)
        return 1
    print(f"{given.benchmark}: " + ", ".join(f"{count:,} samples {name}".strip() for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
