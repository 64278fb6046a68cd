"""import-mlperf-results and export-mlperf-results: what they refuse, print and leave."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from made_summary import PLAIN, csv_of, rows
from recipe_loader import load_recipe, recipe_meta

from crowdperf.store import bundle_import

importer, exporter = load_recipe("import-mlperf-results"), load_recipe("export-mlperf-results")
IMPORT, EXPORT = recipe_meta("import-mlperf-results"), recipe_meta("export-mlperf-results")


@pytest.fixture
def table(inside: Path) -> Path:
    path = inside / "summary.csv"
    path.write_text(csv_of(rows()), encoding="utf-8")
    return path


def test_an_import_says_what_became_of_everything(preprocessed: Any, table: Path) -> None:
    first = preprocessed(importer, IMPORT, db="results.db", path="summary.csv")
    assert first["return"] == 0, first
    assert "60 results added, 0 known already (inference-csv)" in first["text"]
    assert "Units 'Joules/stream' is not known" in first["text"]
    assert len(first["state"]["mlperf_results_import"]["added"]) == 60
    table.write_text(csv_of([{**rows()[0], "Result": "1"}, *rows()[1:], {**PLAIN, "Result": "\x1b[31mno"}]))
    second = preprocessed(importer, IMPORT, db="results.db", path="summary.csv")
    assert "0 results added, 59 known already" in second["text"]
    assert "1 result kept as before" in second["text"]
    assert "line 63: Result '\\x1b[31mno' is not a number" in second["text"]


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({}, 1, "--db and --path must be given"),
        ({"db": "a.db"}, 1, "--path must be given"),
        ({"db": "a.db", "path": "none"}, 16, "none does not exist"),
        ({"db": ".", "path": "summary.csv"}, 1, "is a folder: give a file"),
        ({"db": "deep/a.db", "path": "summary.csv"}, 1, "has no parent folder"),
        ({"db": "a.db", "path": "."}, 16, "contains no results"),
        ({"db": "summary.csv", "path": "summary.csv"}, 1, "not a results database"),
        ({"db": "a.db", "path": "short.csv"}, 1, "it has no column Organization"),
    ],
)
def test_what_cannot_be_imported_is_refused(preprocessed: Any, table: Path, inputs, code: int, words: str) -> None:
    table.with_name("short.csv").write_text("a,b\n1,2\n")
    answer = preprocessed(importer, IMPORT, **inputs)
    assert answer["return"] == code
    assert words in answer["error"]


def test_a_bundle_is_left_to_the_environment_that_checks_signatures(
    preprocessed: Any, table: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table.with_name("packed.tar.gz").write_bytes(b"\x1f\x8bnothing")
    answer = preprocessed(importer, IMPORT, db="a.db", path="packed.tar.gz")
    assert (answer["return"], answer["env"]["CM_TMP_IMPORT_KIND"]) == (0, "bundle")
    assert not Path("a.db").exists()
    assert bundle_import.main(["a.db", "packed.tar.gz", importer.REPORT_FILE]) == 1
    assert "packed.tar.gz is refused" in capsys.readouterr().err
    report = importer.Report("bundle", added=["an-id"], left_out=[importer.LeftOut("a place", "a reason")])
    Path(importer.REPORT_FILE).write_text(json.dumps(dataclasses.asdict(report)))
    i = hook_input(answer["env"])
    assert importer.postprocess(i)["return"] == 0
    assert i["state"]["mlperf_results_import"]["added"] == ["an-id"]
    assert "a place: a reason" in capsys.readouterr().out


def test_an_export_is_imported_again(preprocessed: Any, table: Path) -> None:
    preprocessed(importer, IMPORT, db="a.db", path=table.name)
    written = preprocessed(exporter, EXPORT, db="a.db", output="out")
    assert written["return"] == 0, written
    assert written["state"]["mlperf_results_export"]["results"] == 60
    assert "summary.csv" in preprocessed(importer, IMPORT, db="b.db", path="out")["text"]  # nobody vouches for it
    answer = preprocessed(importer, IMPORT, db="b.db", path="out", with_trust="yes")
    assert "60 results added, 0 known already (export)" in answer["text"]


@pytest.mark.parametrize(
    ("inputs", "code", "words"),
    [
        ({}, 1, "--db and --output must be given"),
        ({"db": "a.db", "output": "out"}, 16, "a.db does not exist"),
        ({"db": "summary.csv", "output": "out"}, 1, "not a results database"),
        ({"db": "summary.csv", "output": "summary.csv"}, 1, "is a file: give a folder"),
    ],
)
def test_what_cannot_be_exported_is_refused(preprocessed: Any, table: Path, inputs, code: int, words: str) -> None:
    answer = preprocessed(exporter, EXPORT, **inputs)
    assert answer["return"] == code
    assert words in answer["error"]


def test_pages_are_left_to_the_servers_environment(preprocessed: Any, table: Path) -> None:
    preprocessed(importer, IMPORT, db="a.db", path=table.name)
    answer = preprocessed(exporter, EXPORT, "static", db="a.db", output="pages")
    assert answer["return"] == 0, answer
    assert answer["env"]["CM_TMP_EXPORT_DB"].endswith("a.db")
    assert not Path("pages").exists()
