"""Results as tables for analysis: one row per result, and one row per metric of a result, as CSV or Parquet.

TABLES describes each column once: the export writes by it, the data dictionary next to the tables is made of it, and so
is docs/reference/results-tables.md (`python -m crowdperf.store.data_tables`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from crowdperf.kit.csv_cells import csv_text
from crowdperf.kit.whole_file import write_bytes_whole, write_json
from crowdperf.logs.answer_metrics import CLIENT, METRICS
from crowdperf.store.query import Filter, Row, Sort
from crowdperf.store.store import Store

ColumnType = Literal["text", "whole", "number", "yes_no"]
DICTIONARY = "dictionary.json"
_PAGE = 1000


class NoParquet(RuntimeError):
    """pyarrow is missing; the text has the command that installs it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, type, unit ("" without one, "column NAME" where another column has it), meaning, and where
    its values come from."""

    name: str
    type: ColumnType
    unit: str
    meaning: str
    source: str


_LOG, _USER, _STORE, _SYSTEM = (
    "LoadGen log or published table",
    "inputs of the run",
    "results database",
    "system record",
)
_CLIENT_NAMES = f"Metrics of the client begin with {CLIENT!r}: " + ", ".join(
    f"{one.title} ({one.meaning})" for one in METRICS
)
TABLES: Mapping[str, tuple[Column, ...]] = {
    "results": (
        Column("id", "text", "", "short id of the result, never reused", _STORE),
        Column("kind", "text", "", "published, crowd (uploaded) or own (imported by the operator)", _STORE),
        Column("suite", "text", "", "inference, endpoints or other tool", _STORE),
        Column("benchmark", "text", "", "name of the benchmark, or own model: NAME", _USER),
        Column("round", "text", "", "round of a published result", _LOG),
        Column("division", "text", "", "closed, open or network, of a submission", _LOG),
        Column("category", "text", "", "datacenter or edge, of a submission", _LOG),
        Column("scenario", "text", "", "scenario of LoadGen, or kind of load of another tool", _USER),
        Column("precision", "text", "", "number format of the weights", _USER),
        Column("tier", "text", "%", "accuracy level, 99 or 99.9", _USER),
        Column("stack", "text", "", "family of the software", _USER),
        Column("stack_version", "text", "", "software with versions", _LOG),
        Column("device", "text", "", "device of the model, such as cpu or cuda", _USER),
        Column("data_kind", "text", "", "real, synthetic, tiny or own data", _USER),
        Column("run_class", "text", "", "valid (long enough for its round), fast, test, or other tool", _LOG),
        Column("accelerator", "text", "", "name of the accelerator", _SYSTEM),
        Column("accelerator_count", "whole", "accelerators", "number of accelerators in all nodes", _SYSTEM),
        Column("nodes", "whole", "nodes", "number of machines", _SYSTEM),
        Column("cpu", "text", "", "name of the CPU", _SYSTEM),
        Column("submitter", "text", "", "submitter of a published result", _LOG),
        Column("system_name", "text", "", "system name of a published result", _LOG),
        Column("signer", "text", "", "key id of the uploader", _STORE),
        Column("metric", "text", "", "name of the main metric", _LOG),
        Column("value", "number", "column unit", "value of the main metric", _LOG),
        Column("unit", "text", "", "unit of value", _LOG),
        Column("higher_is_better", "yes_no", "", "whether a higher value is better", _LOG),
        Column("valid", "yes_no", "", "verdict of LoadGen, empty if there is none", _LOG),
        Column("verification", "text", "", "how the values were checked", _STORE),
        Column("labels", "text", "", "labels, as a JSON list", _STORE),
        Column("made_utc", "text", "UTC, ISO 8601", "when it was measured", _LOG),
        Column("added_utc", "text", "UTC, ISO 8601", "when it was added to the database", _STORE),
        Column("settings", "text", "", "settings chosen by the user, as a JSON object", _USER),
        Column("score", "number", "", "first score of the accuracy run", "accuracy run"),
        Column("ttft_p99_ms", "number", "ms", "99th percentile of the time to the first token", _LOG),
        Column("tpot_p99_ms", "number", "ms", "99th percentile of the time per output token", _LOG),
    ),
    "metrics": (
        Column("result_id", "text", "", "id in the table results", _STORE),
        Column("name", "text", "",
               "name of a further metric, such as TTFT 99 (50 is the median latency). Energy and cost are from no "
               f"log. {_CLIENT_NAMES}",
               "LoadGen log, published table, or the client"),
        Column("value", "number", "column unit", "value of the metric", _LOG),
        Column("unit", "text", "", "unit of value", _LOG),
    ),
}  # fmt: skip


def _cell(column: Column, value: Any) -> Any:
    """A value as its column's type; texts of several values are JSON."""
    return json.dumps(value) if isinstance(value, tuple) else bool(value) if _is_yes_no(column, value) else value


def _is_yes_no(column: Column, value: Any) -> bool:
    return column.type == "yes_no" and value is not None


def _result_rows(store: Store) -> Iterator[Row]:
    after = ""
    while True:
        page = store.find(Filter(), Sort("added", descending=False), after, _PAGE)
        yield from page.rows
        if not (after := page.next_key):
            return


def rows_of(store: Store, table: str) -> Iterator[Sequence[Any]]:
    """The rows of a table, each value in its column's place: of results that are shown, the oldest first."""
    columns = TABLES[table]
    if table == "results":
        for row in _result_rows(store):
            yield [_cell(column, getattr(row, column.name)) for column in columns]
        return
    yield from store.connection.execute(
        "SELECT result_id, name, m.value, m.unit FROM figure AS m JOIN listing ON id = result_id "  # words: ok P15
        "WHERE listing.state = 'shown' ORDER BY listing.seq, place"
    )


def _parquet(path: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a Parquet file. Raises NoParquet, OSError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise NoParquet(
            "Parquet needs the package pyarrow, which is not installed in the environment of cm\n"
            "  hint: python3 -m pip install pyarrow   # with the Python of cm, or leave out _parquet"
        ) from error
    types = {"text": pyarrow.string(), "whole": pyarrow.int64(), "number": pyarrow.float64(), "yes_no": pyarrow.bool_()}
    fields = [
        pyarrow.field(one.name, types[one.type], metadata={"unit": one.unit, "description": one.meaning})
        for one in columns
    ]
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pyarrow.array(list(column), field.type) for column, field in zip(values, fields, strict=True)]
    scratch = path.with_name(f".{path.name}.part")
    parquet.write_table(pyarrow.table(arrays, schema=pyarrow.schema(fields)), scratch)
    scratch.replace(path)


def write_tables(store: Store, output: Path, *, is_parquet: bool) -> dict[str, int]:
    """Writes both tables and their dictionary, and returns the number of rows by table. Raises NoParquet, OSError."""
    output.mkdir(parents=True, exist_ok=True)
    counts = {}
    with store.transaction():
        for table, columns in TABLES.items():
            rows = list(rows_of(store, table))
            counts[table] = len(rows)
            if is_parquet:
                _parquet(output / f"{table}.parquet", columns, rows)
            else:
                text = csv_text((one.name for one in columns), rows)
                write_bytes_whole(output / f"{table}.csv", text.encode("utf-8", "backslashreplace"))
    described = {table: [asdict(one) for one in columns] for table, columns in TABLES.items()}
    write_json(output / DICTIONARY, {"format": 1, "tables": described}, indent=1)
    return counts


def page() -> str:
    """The data dictionary as Markdown."""
    lines = [
        "# Tables of results", "",
        "The columns that `export,mlperf,results,_table` and `_parquet` write, as in their `dictionary.json`. Hidden",
        "results are left out. `results` has one row per result, `metrics` one per further metric of a result.",
        "This page is made by `python -m crowdperf.store.data_tables`.",
    ]  # fmt: skip
    for table, columns in TABLES.items():
        lines += ["", f"## {table}", "", "| column | type | unit | meaning | source |", "|---|---|---|---|---|"]
        lines += [f"| `{one.name}` | {one.type} | {one.unit} | {one.meaning} | {one.source} |" for one in columns]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
