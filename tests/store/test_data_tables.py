"""Results as CSV and Parquet: every column is described once, and the dictionary, the page and the tables agree."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_results import SIGNER, SOURCE, made
from made_summary import csv_of, rows

from crowdperf.store import data_tables
from crowdperf.store.data_tables import TABLES, NoParquet, page, write_tables
from crowdperf.store.imports import import_path
from crowdperf.store.query import Row
from crowdperf.store.store import Store

CHECKOUT = Path(__file__).resolve().parents[2]
VLLM = Path(__file__).with_name("data") / "vllm-bench.json"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "summary.csv").write_text(csv_of(rows()), encoding="utf-8")
    import_path(tmp_path / "a.db", tmp_path / "summary.csv")
    import_path(tmp_path / "a.db", VLLM)
    return tmp_path / "a.db"


def test_every_column_of_a_listing_is_exported_and_described() -> None:
    left_out = {"key", "system_key", "state", "alias"}
    assert {column.name for column in TABLES["results"]} == set(Row._fields) - left_out
    for columns in TABLES.values():
        assert len({column.name for column in columns}) == len(columns)
        assert all(column.meaning and column.source for column in columns)


def test_tables_and_dictionary_agree(database: Path, tmp_path: Path) -> None:
    with Store.open(database) as store:
        counts = write_tables(store, tmp_path / "out", is_parquet=False)
    described = json.loads((tmp_path / "out" / "dictionary.json").read_text())["tables"]
    for table in TABLES:
        with (tmp_path / "out" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file))
        assert len(read) == counts[table] > 0
        assert list(read[0]) == [column["name"] for column in described[table]]
    metrics = {row["name"]: float(row["value"]) for row in read if row["unit"] == "ms"}
    assert metrics["TTFT 99"] == 55.75
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        cells = {name: {row[name] for row in rows} for rows in [list(csv.DictReader(file))] for name in rows[0]}
    assert (cells["ttft_p99_ms"], cells["valid"]) == ({"", "55.75"}, {"", "True"})


def test_hidden_results_stay_out(database: Path, tmp_path: Path) -> None:
    with Store.open(database) as store:
        before = write_tables(store, tmp_path / "out", is_parquet=False)
        (shown,) = [row.id for row in store.find().rows if row.suite == "other tool"]
        store.act("hide", actor="me", reason="a test", result_id=shown)
        after = write_tables(store, tmp_path / "out", is_parquet=False)
        store.add(made("crowd", kind="crowd"), SOURCE, SIGNER)
        store.act("block", actor="me", reason="a test", signer=SIGNER.key_id)
        assert write_tables(store, tmp_path / "out", is_parquet=False) == after
    assert after["results"] == before["results"] - 1
    assert after["metrics"] < before["metrics"]
    assert shown not in (tmp_path / "out" / "metrics.csv").read_text()


def test_without_pyarrow_parquet_is_refused_with_the_command(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with Store.open(database) as store, pytest.raises(NoParquet, match="python3 -m pip install pyarrow"):
        write_tables(store, tmp_path / "out", is_parquet=True)


@pytest.mark.full
def test_pyarrow_reads_what_was_written(database: Path, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    if (given := os.environ.get("CROWDPERF_PYARROW_PYTHON")) is None:
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=300)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "pyarrow"], check=True, timeout=600)
    program = """
import sys
from pathlib import Path
from crowdperf.store.data_tables import TABLES, rows_of, write_tables
from crowdperf.store.store import Store
from pyarrow import parquet
with Store.open(Path(sys.argv[1])) as store:
    write_tables(store, Path(sys.argv[2]), is_parquet=True)
    for table, columns in TABLES.items():
        read = parquet.read_table(f"{sys.argv[2]}/{table}.parquet")
        assert read.column_names == [column.name for column in columns]
        assert [list(row.values()) for row in read.to_pylist()] == [list(row) for row in rows_of(store, table)]
        assert read.schema.field("value").metadata[b"unit"] == b"column unit"
print("same")
"""
    call = [given or str(python), "-c", program, str(database), str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "same\n", done.stderr


def test_the_page_is_made_of_the_same_table() -> None:
    made = (CHECKOUT / "docs/reference/results-tables.md").read_text(encoding="utf-8")
    assert made == page(), f"run: python -m {data_tables.__name__} > docs/reference/results-tables.md"
