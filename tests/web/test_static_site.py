"""The pages as files: every link leads to a file, nothing else is replaced, nothing hidden is written."""

import re
import sqlite3
from pathlib import Path
from urllib.parse import unquote

import pytest
from web_builder import SOURCE, crowd_result, fill

pytest.importorskip("jinja2", reason="the packages of the results server are not installed")

from recipe_programs import program

from crowdperf.store.store import Store
from crowdperf.web.links import round_url
from crowdperf.web.static_site import SiteError, name_of_benchmark, write_site

copy_database = program("serve-mlperf-results", "copy_database").copy_database


def test_every_link_of_every_file_leads_to_a_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.sqlite") as store:
        with store.transaction():
            ids = fill(store)
        store.act("hide", actor="moderator", reason="x", result_id=ids[3])
        written = write_site(store, tmp_path / "site", "Results")
        again = write_site(store, tmp_path / "site", "Results")
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert written == again and written.files == len(files) and written.results == len(ids) - 1
    assert not (tmp_path / "site" / "r" / f"{ids[3]}.html").exists()
    for path in files:
        if path.suffix == ".html":
            text = path.read_text(encoding="utf-8")
            assert "<script" not in text and ids[3] not in text
            for address in re.findall(r' (?:href|src|action)="([^"]*)"', text):
                if address not in ("#content", "data:,") and address != round_url("published", "v6.1"):
                    assert address and (path.parent / unquote(address)).is_file(), (path, address)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["site"]


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("three years")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    with Store.open(tmp_path / "results.sqlite") as store:
        store.add(crowd_result(), SOURCE)
        for name in ("home", "link", "home/thesis.txt"):
            with pytest.raises(SiteError, match="hint"):
                write_site(store, tmp_path / name, "Results")
    assert (tmp_path / "home" / "thesis.txt").read_text() == "three years"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("llama2-70b-99", "llama2-70b-99"),
        ("../../x", "x"),
        ("a/b c", "a_b_c"),
        ("é", "unnamed"),
        ("own model: " + "x" * 300, "own_model_" + "x" * 90),
    ],
)
def test_a_benchmark_cannot_leave_the_folder(name: str, file: str) -> None:
    assert name_of_benchmark(name) == file


def test_a_copy_for_datasette_has_all_and_is_one_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "it's.db") as store, store.transaction():
        ids = fill(store)
    with Store.open(tmp_path / "it's.db"):  # with a log beside it
        copy_database(tmp_path / "it's.db", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    (tmp_path / "copy.db").chmod(0o444)
    with sqlite3.connect(f"file:{tmp_path}/copy.db?mode=ro&immutable=1", uri=True) as copy:
        assert copy.execute("SELECT count(*) FROM listing").fetchone() == (len(ids),)
