"""What is exported and imported into an empty database gives the same rows: results, states, keys and actions."""

from pathlib import Path
from typing import Any

import pytest
from made_results import RESULT, SIGNER, SOURCE, all_rows, made
from made_summary import csv_of, rows
from shared_results import bundle_of, change_json, result_folder

from crowdperf.store.exports import EXPORT, NotEmpty, write_export
from crowdperf.store.imports import NothingToImport, import_loaded, load
from crowdperf.store.keys import key_id_of
from crowdperf.store.model import NewResult, Signer
from crowdperf.store.result_json import WrongObject
from crowdperf.store.store import Store

OTHER = Signer(key_id=key_id_of(bytes(32)), public_key=bytes(32), alias="calm heron")


def filled(path: Path) -> None:
    """A database with a result of each kind and state, and something done to each."""
    with Store.open(path, clock=lambda: "2026-11-23T12:00:00Z") as store:
        first = store.add(RESULT, SOURCE, SIGNER)
        hidden = store.add(made("2", system={"accelerator": "VENDOR(R) x100-32GB"}), SOURCE, SIGNER)
        gone = store.add(made("3", benchmark="bert", system={"cores": 4}), SOURCE, SIGNER)
        blocked = store.add(made("4", command="\ud800 \0", labels=("a", "b", "a")), SOURCE, OTHER)
        store.act("note", actor="moderator", reason="fine", result_id=first.id)
        store.act("hide", actor="moderator", reason="doubt", result_id=hidden.id)
        store.withdraw(gone.id, actor=SIGNER.key_id, reason="mine")
        store.act("block", actor="moderator", reason="forged", signer=OTHER.key_id)
        store.act("note", actor="moderator", reason="of a blocked key", result_id=blocked.id)
        table = path.with_suffix(".csv")
        table.write_text(csv_of(rows()), encoding="utf-8")
        import_loaded(store, load(table))


def exported(folder: Path, *results: NewResult, signer: Signer | None = None) -> Path:
    """The export of a database with these results."""
    with Store.open(folder / "a.db") as store:
        for new in results:
            store.add(new, SOURCE, signer)
        write_export(store, folder / "out")
    return folder / "out"


def test_an_export_gives_the_same_rows_in_an_empty_database(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with Store.open(tmp_path / "a.db") as store:
        exported = write_export(store, tmp_path / "out")
    assert (exported.results, exported.files) == (64, 1)
    with Store.open(tmp_path / "b.db") as store:
        report = import_loaded(store, load(tmp_path / "out"), with_trust=True)
        assert (len(report.added), report.known, report.left_out) == (64, 0, [])
        again = import_loaded(store, load(tmp_path / "out"), with_trust=True)
        assert (again.added, again.known, again.changed, again.withdrawn) == ([], 64, [], 0)
    assert all_rows(tmp_path / "a.db") == all_rows(tmp_path / "b.db")


def test_an_import_changes_nothing_of_what_was_known(tmp_path: Path) -> None:
    filled(tmp_path / "a.db")
    with Store.open(tmp_path / "a.db") as store:
        write_export(store, tmp_path / "out")
    with Store.open(tmp_path / "b.db") as store:
        shown = store.add(made("2", system={"accelerator": "VENDOR(R) x100-32GB"}), SOURCE, SIGNER)
        kept = store.add(made("4", command="\ud800 \0", labels=("a", "b", "a")), SOURCE, OTHER)
        import_loaded(store, load(tmp_path / "out"))
        assert store.result(shown.id).state == "shown"
        assert store.result(kept.id).state == "shown"
        assert store.actions(signer=OTHER.key_id) == ()


def test_an_export_over_an_earlier_one_drops_the_files_of_withdrawn_results(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        added = store.add(RESULT, SOURCE)
        write_export(store, tmp_path / "out")
        assert len(list((tmp_path / "out/files").iterdir())) == 1
        store.withdraw(added.id, actor="me")
        write_export(store, tmp_path / "out")
        assert list((tmp_path / "out/files").iterdir()) == []


def test_a_folder_with_something_else_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with Store.open(tmp_path / "a.db") as store, pytest.raises(NotEmpty):
        write_export(store, tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(format=2), "format must be 1"),
        (lambda c: c.update(results=1), "results must be a list"),
        (lambda c: c["results"][0].update(result=None), "has no content"),
        (lambda c: c["results"][0].update(signer="nobody"), "not among the signers"),
        (lambda c: c["results"][0].update(source={}), "source"),
        (lambda c: c["signers"][0].update(public_key="xyz"), "signers"),
        (lambda c: c["signers"][0].update(public_key="00" * 32), "not that of its public key"),
        (lambda c: c["actions"].append({"what": 1}), "actions"),
    ],
)
def test_an_export_that_is_none_is_refused_whole(tmp_path: Path, change, words: str) -> None:
    out = exported(tmp_path, RESULT, signer=SIGNER)
    change_json(out / EXPORT, change)
    with pytest.raises(WrongObject, match=words):
        load(out)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '{"format": 1}'])
def test_a_damaged_export_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / EXPORT).write_text(text)
    with pytest.raises(WrongObject):
        load(tmp_path)


def test_a_changed_file_of_an_export_is_refused(tmp_path: Path) -> None:
    out = exported(tmp_path, RESULT)
    next((out / "files").iterdir()).write_bytes(b"test")
    with pytest.raises(WrongObject, match="has been changed"):
        load(out)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.update(value="fast"), 'result.value: found "fast"; allowed: a finite number'),
        (lambda r: r.update(valid="no"), 'result.valid: found "no"; allowed: true or false, or null'),
        (lambda r: r.update(labels=[1]), "result.labels: found [1]; allowed: a list of texts"),
        (lambda r: r.update(figures={}), "result.figures: found {}; allowed: a list of objects"),
        (lambda r: r.update(surprise=1), "result.surprise: found 1; allowed: no such key; known: run_id"),
        (lambda r: r["configuration"].pop("suite"), "result.configuration.suite: found nothing; allowed: a text"),
        (lambda r: r["configuration"]["system"].update(cores="8"), 'result.configuration.system.cores: found "8"'),
        (lambda r: r.update(verification="sure"), "allowed: logs consistent, not consistent, summary"),
    ],
)
def test_values_of_a_wrong_type_are_left_out_and_named(tmp_path: Path, change, words: str) -> None:
    out = exported(tmp_path, RESULT, made("2"))
    change_json(out / EXPORT, lambda found: change(found["results"][0]["result"]))
    with Store.open(tmp_path / "b.db") as store:
        report = import_loaded(store, load(out))
        assert len(report.added) == 1
        assert report.left_out[0].place == "run-1" and words in report.left_out[0].reason


def test_paths_without_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingToImport, match="does not exist"):
        load(tmp_path / "none")
    with pytest.raises(NothingToImport, match="contains no results"):
        load(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(NothingToImport, match="not UTF-8"):
        load(tmp_path / "latin.csv")


def test_a_table_imported_twice_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "summary.csv").write_text(csv_of(rows()))
    with Store.open(tmp_path / "a.db") as store:
        first = import_loaded(store, load(tmp_path / "summary.csv"))
        assert len(first.added) == 60
        assert any("read as 128" in note for note in first.notes)
        before = all_rows(tmp_path / "a.db")
        second = import_loaded(store, load(tmp_path / "summary.csv"))
        assert (second.added, second.known) == ([], 60)
    assert all_rows(tmp_path / "a.db") == before


def test_a_corrected_table_is_reported_and_the_first_kept(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    path.write_text(csv_of(rows()[:2]))
    with Store.open(tmp_path / "a.db") as store:
        import_loaded(store, load(path))
        path.write_text(csv_of([{**rows()[0], "Result": "1.0"}, rows()[1]]))
        report = import_loaded(store, load(path))
        assert (len(report.changed), report.known) == (1, 1)
        assert store.result(report.changed[0]).result.value == 106517.0


def _edited(found: dict[str, Any]) -> None:
    """Somebody makes the results of an export faster, without labels, by a key that is known."""
    for row in found["results"]:
        row["result"] |= {"value": 999_999.0, "labels": [], "verification": "logs consistent"}
    for row in found["signers"]:
        row["trust"] = "known"


def test_an_edited_export_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "shared.tar.gz").write_bytes(bundle_of(result_folder(tmp_path)).content)
    with Store.open(tmp_path / "a.db") as store:
        shared = import_loaded(store, load(tmp_path / "shared.tar.gz")).added
        unproven = store.add(RESULT, SOURCE, SIGNER)
        published = store.add(made("2", kind="published", verification="published"), SOURCE)
        before = {one: store.result(one).result for one in shared}
        write_export(store, tmp_path / "out")
    change_json(tmp_path / "out" / EXPORT, _edited)
    with Store.open(tmp_path / "b.db") as store:
        report = import_loaded(store, load(tmp_path / "out"))
        assert {*report.added} == {*shared, unproven.id} and "summary.csv" in report.left_out[0].reason
        for one, old in before.items():
            new = store.result(one).result
            assert (new.value, new.labels, new.verification) == (old.value, old.labels, "logs consistent")
        found = store.result(unproven.id).result
        assert (found.labels, found.verification) == (("imported, not checked here",), "none")
        known = store.signer(SIGNER.key_id)
        assert known is not None and known.trust == "none" and store.actions() == ()
    with Store.open(tmp_path / "c.db") as store:
        assert published.id in import_loaded(store, load(tmp_path / "out"), with_trust=True).added
