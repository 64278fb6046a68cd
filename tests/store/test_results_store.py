"""The database keeps results whole, once, in an order that pages can go through, and forgets only what is withdrawn."""

import contextlib
import dataclasses
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_results import RESULT, SIGNER, SOURCE, SYSTEM, made

from crowdperf.store import query, schema
from crowdperf.store.exports import write_export
from crowdperf.store.imports import import_loaded, load
from crowdperf.store.keys import configuration_key, key_id_of, log_marks, normal_name, system_key
from crowdperf.store.model import CurvePoint, Figure, NewResult, Signer
from crowdperf.store.query import FACETS, SORTS, BadQuery, Filter, Sort, key_of
from crowdperf.store.store import Conflict, NoSuchResult, SameLog, Store, What, Withdrawn

NOON = "2026-11-23T12:00:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db", clock=lambda: NOON) as opened:
        yield opened


def test_a_result_comes_back_as_it_was_added(store: Store) -> None:
    added = store.add(RESULT, SOURCE, SIGNER)
    found = store.result(added.id)
    bodiless = tuple(dataclasses.replace(file, body=None) for file in RESULT.files)
    assert found.result == dataclasses.replace(RESULT, files=bodiless)
    assert (found.source, found.signer, found.added_utc, found.state) == (SOURCE, SIGNER, NOON, "shown")
    assert found.key == configuration_key(RESULT.configuration)
    assert found.system_key == system_key(SYSTEM)
    assert store.file(added.id, "mlperf_log_summary.txt") == b"text"
    assert store.file(added.id, "mlperf_log_accuracy.json") is None
    assert store.file(added.id, "../results.db") is None


def test_a_curve_keeps_its_points_in_order(store: Store) -> None:
    points = tuple(
        CurvePoint(concurrency=n, region="low", system_tps=10.0 * n, tps_per_user=9.0, ttft_p90_ms=3.0, accuracy=None)
        for n in (64, 1, 8)
    )
    assert store.result(store.add(made(curve=points), SOURCE).id).result.curve == points


def test_the_same_result_is_kept_once_and_another_content_is_refused(store: Store) -> None:
    first = store.add(RESULT, SOURCE, SIGNER)
    assert first.is_new
    again = store.add(RESULT, dataclasses.replace(SOURCE, name="another folder"), SIGNER)
    assert (again.id, again.is_new) == (first.id, False)
    with pytest.raises(Conflict) as refused:
        store.add(made(value=124.0), SOURCE, SIGNER)
    assert refused.value.result_id == first.id
    assert store.add(RESULT, SOURCE).id != first.id  # nobody's result of the same name is another one
    assert store.facets().total == 2


def test_a_refused_result_leaves_nothing_behind(store: Store) -> None:
    for wrong in (made(value=float("nan")), made(raw={"n": float("inf")}), made(system={"cores": 2**70})):
        with pytest.raises(ValueError):
            store.add(wrong, SOURCE, SIGNER)
    assert store.facets().total == 0
    assert store.signer(SIGNER.key_id) is None


def test_texts_that_a_database_cannot_hold_become_their_escapes(store: Store) -> None:
    added = store.add(made(command="a\ud800b\0c", raw={"t": "\udfff"}, submitter="‮x"), SOURCE)
    found = store.result(added.id).result
    assert (found.command, found.raw, found.submitter) == ("a\\ud800b\0c", {"t": "\\udfff"}, "‮x")
    assert not store.add(made(command="a\ud800b\0c", raw={"t": "\udfff"}, submitter="‮x"), SOURCE).is_new
    assert store.find(Filter(chosen={"benchmark": ["\ud800"]}, text="\ud800")).rows == ()
    with pytest.raises(NoSuchResult):
        store.result("\ud800")


@pytest.mark.parametrize(
    "change",
    [
        {"scenario": "Server"},
        {"precision": "fp32"},
        {"tier": "99.9"},
        {"stack": "openvino"},
        {"device": "cuda"},
        {"data_kind": "synthetic"},
        {"run_class": "fast"},
        {"model_digest": "00" * 32},
        {"settings": {"batch_size": "8"}},
        {"system": {"cores": 32}},
        {"system": {"accelerator_count": 4}},
    ],
    ids=str,
)
def test_what_makes_results_incomparable_changes_the_key(change: dict[str, object]) -> None:
    assert configuration_key(made(**change).configuration) != configuration_key(RESULT.configuration)


@pytest.mark.parametrize(
    "change",
    [
        {"round": "v6.1"},
        {"division": "open"},
        {"category": "edge"},
        {"stack_version": "onnxruntime 2"},
        {"made_utc": ""},
        {"system": {"facts": {"host": "x"}}},
        {"system": {"accelerator": "VENDOR x100_32GB", "cpu": "Maker(R) Chip 9000 CPU @ 2.00GHz"}},
    ],
    ids=str,
)
def test_what_comparable_results_may_differ_in_is_not_in_the_key(change: dict[str, object]) -> None:
    assert configuration_key(made(**change).configuration) == configuration_key(RESULT.configuration)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Intel(R) Xeon(R) 6767P", "6767p"),
        ("INTEL(R) XEON(R) 6767P CPU @ 2.40GHz", "6767p"),
        ("AMD EPYC 9375F 32-Core Processor", "epyc 9375f"),
        ("NVIDIA H200-SXM-141GB", "h200 sxm 141gb"),
        ("NVIDIA", "nvidia"),
        ("CPU", "cpu"),
        ("", ""),
    ],
)
def test_names_of_hardware_are_compared_without_their_ornaments(name: str, expected: str) -> None:
    assert normal_name(name) == expected


def test_pages_go_through_all_results_once_in_every_order(store: Store) -> None:
    for number in range(23):
        store.add(made(f"run-{number}", value=float(number % 5), submitter=f"org {number % 3}"), SOURCE)
    for by in SORTS:
        for descending in (True, False):
            seen, after = [], ""
            while True:
                page = store.find(sort=Sort(by, descending), after=after, limit=4)
                seen += page.rows
                after = page.next_key
                if not after:
                    break
            assert len({row.id for row in seen}) == len(seen) == 23
            if by not in ("added",):
                values = [getattr(row, by) for row in seen]
                assert values == sorted(values, reverse=descending)


@pytest.mark.parametrize(
    "after",
    [
        "x", "bm9uZQ", "WyJ2YWx1ZSIsdHJ1ZSwxLDFd", "WyJhZGRlZCIsdHJ1ZSxudWxsLDFd", "é", "[" * 9,
        key_of(Sort(), 2**70, 1), key_of(Sort(), -(2**53), 1), key_of(Sort(), 1, 2**53), key_of(Sort(), 1, -1),
    ],
)  # fmt: skip
def test_a_made_up_place_in_a_list_is_refused(store: Store, after: str) -> None:
    store.add(RESULT, SOURCE)
    with pytest.raises(BadQuery):
        store.find(after=after)


def test_a_place_with_half_a_character_has_no_rows(store: Store) -> None:
    store.add(RESULT, SOURCE)
    sort = Sort("benchmark", descending=False)
    assert len(store.find(None, sort, query.key_of(sort, "\ud800", 0)).rows) == 1
    assert not store.find(None, sort, query.key_of(sort, "\udfff z", 9)).next_key


def test_filters_choose_and_facets_count_without_their_own_choice(store: Store) -> None:
    store.add(made("a", precision="fp32", labels=("unofficial", "synthetic")), SOURCE)
    store.add(made("b", precision="int8"), SOURCE)
    store.add(made("c", precision="int8", benchmark="bert"), SOURCE)
    wanted = Filter(chosen={"precision": ["int8"], "benchmark": ["resnet50"]})
    assert len(store.find(wanted).rows) == 1
    counts = store.facets(wanted)
    assert counts.total == 1
    assert counts.facets["precision"] == (("fp32", 1), ("int8", 1))
    assert counts.facets["benchmark"] == (("bert", 1), ("resnet50", 1))
    assert counts.facets["label"] == (("unofficial", 1),)
    assert set(counts.facets) == {*FACETS, "label"}
    assert store.facets(Filter(without_labels=["synthetic"])).total == 2
    assert store.facets(Filter(labels=["synthetic", "other"])).total == 1
    with pytest.raises(BadQuery, match="by: benchmark"):
        store.find(Filter(chosen={"value; DROP TABLE result": ["1"]}))
    with pytest.raises(BadQuery, match="sorted by nothing"):
        store.find(sort=Sort("nothing"))


def test_counts_are_those_of_the_rows_whatever_is_chosen(store: Store) -> None:
    chance = random.Random(5)
    values = {"benchmark": ("bert", "gptj"), "precision": ("int8", "fp8", ""), "scenario": ("Offline", "Server")}
    with store.transaction():
        for number in range(24):
            labels = tuple(sorted(chance.sample(("synthetic", "tiny", "unofficial"), chance.randint(0, 2))))
            place = {name: chance.choice(them) for name, them in values.items()}
            store.add(made(f"run-{number}", labels=labels, **place), SOURCE)
    for _ in range(15):
        chosen = {name: chance.sample(them, 1) for name, them in values.items() if chance.random() < 0.6}
        wanted = Filter(
            chosen=chosen,
            labels=chance.choice(((), (), ("tiny",))),
            without_labels=chance.choice(((), ("synthetic",))),
        )
        counts = store.facets(wanted)
        assert counts.total == len(store.find(wanted).rows)
        for name in FACETS:
            rest = {other: them for other, them in chosen.items() if other != name}
            rows = store.find(dataclasses.replace(wanted, chosen=rest)).rows
            assert dict(counts.facets[name]) == Counter(getattr(row, name) for row in rows)
        rows = store.find(dataclasses.replace(wanted, labels=())).rows
        assert dict(counts.facets["label"]) == Counter(label for row in rows for label in row.labels)


@pytest.mark.parametrize(
    ("text", "count"),
    [("resn", 1), ("RESNET50 x100", 1), ("bert", 0), ("", 1), ('"', 0), ("_", 0), ("resnet50 OR bert", 0),
     ("a* NEAR(", 0), ("'; --", 0), ("linux", 1), ("x" * 9999, 0)],
)  # fmt: skip
def test_a_search_takes_words_and_nothing_else(store: Store, text: str, count: int) -> None:
    store.add(RESULT, SOURCE)
    assert len(store.find(Filter(text=text)).rows) == count


def test_a_withdrawn_result_leaves_its_id_and_nothing_else(store: Store, tmp_path: Path) -> None:
    kept = store.add(RESULT, SOURCE, SIGNER).id
    store.withdraw(kept, actor=SIGNER.key_id, reason="wrong machine")
    with pytest.raises(Withdrawn, match="wrong machine"):
        store.result(kept)
    with pytest.raises(Withdrawn):
        store.add(RESULT, SOURCE, SIGNER)
    with pytest.raises(Withdrawn):
        store.act("hide", actor="m", reason="", result_id=kept)
    assert store.file(kept, "mlperf_log_summary.txt") is None
    assert store.find(Filter(states=("shown", "hidden"))).rows == ()
    assert store.find(Filter(text="resnet50")).rows == ()
    assert store.system(system_key(SYSTEM)) is None
    assert [action.what for action in store.actions(result_id=kept)] == ["withdraw"]
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Maker Chip 9000" not in content
    assert b"as it came" not in content


def test_a_blocked_key_hides_its_results_until_it_is_unblocked(store: Store) -> None:
    first = store.add(made("1"), SOURCE, SIGNER).id
    second = store.add(made("2"), SOURCE, SIGNER).id
    other = store.add(made("3"), SOURCE).id
    store.act("hide", actor="moderator", reason="doubt", result_id=first)
    store.act("block", actor="moderator", reason="forged", signer=SIGNER.key_id)
    third = store.add(made("4"), SOURCE, SIGNER).id
    assert [row.id for row in store.find().rows] == [other]
    assert store.result(second).state == "hidden"
    known = store.signer(SIGNER.key_id)
    assert known is not None
    assert (known.trust, known.count) == ("blocked", 3)
    store.act("unblock", actor="moderator", reason="was right", signer=SIGNER.key_id)
    assert {row.id for row in store.find().rows} == {second, other, third}
    assert [(a.what, a.reason) for a in store.actions(signer=SIGNER.key_id)] == [
        ("unblock", "was right"),
        ("block", "forged"),
    ]
    with pytest.raises(LookupError):
        store.act("block", actor="m", reason="", signer="ffff")


def test_actions_are_never_changed(store: Store, tmp_path: Path) -> None:
    store.act("note", actor="m", reason="looked at", result_id=store.add(RESULT, SOURCE).id)
    with sqlite3.connect(tmp_path / "results.db") as other:
        for text in ("UPDATE action SET reason = 'x'", "DELETE FROM action"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                other.execute(text)


def test_a_system_has_the_facts_that_all_its_results_agree_on(store: Store) -> None:
    store.add(made("1", system={"facts": {"os": "A", "cooling": "air"}}), SOURCE)
    store.add(made("2", system={"facts": {"os": "B", "cooling": "air"}}), SOURCE)
    found = store.system(system_key(SYSTEM))
    assert found is not None
    assert found.facts == {"cooling": "air"}
    assert store.configuration("00") is None
    assert store.system("00") is None


def test_what_a_hidden_result_says_of_its_system_is_not_told(store: Store) -> None:
    shown = store.add(made("1", system={"facts": {"cooling": "air"}}), SOURCE)
    store.add(made("2", kind="crowd", system={"facts": {"cooling": "air", "os": "a secret"}}), SOURCE, SIGNER)
    store.act("block", actor="moderator", reason="a test", signer=SIGNER.key_id)
    found = store.system(store.result(shown.id).system_key)
    assert found is not None and found.facts == {"cooling": "air"}
    store.act("hide", actor="moderator", reason="a test", result_id=shown.id)
    found = store.system(store.result(shown.id).system_key)
    assert found is not None and found.facts == {}


def test_a_failed_transaction_keeps_none_of_its_results(store: Store) -> None:
    with pytest.raises(RuntimeError), store.transaction():
        store.add(made("1"), SOURCE)
        with pytest.raises(Conflict):
            store.add(made("1", value=1.0), SOURCE)
        raise RuntimeError
    assert store.facets().total == 0
    with store.transaction():
        store.add(made("1"), SOURCE)
        with pytest.raises(Conflict):
            store.add(made("1", value=1.0), SOURCE)
        store.add(made("2"), SOURCE)
    assert store.facets().total == 2


def test_a_reader_sees_results_while_another_writes(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db", read_only=True) as reader, store.transaction():
        store.add(RESULT, SOURCE)
        assert reader.find().rows == ()
    with Store.open(tmp_path / "results.db", read_only=True) as reader:
        assert len(reader.find().rows) == 1
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.add(made("2"), SOURCE)


def test_counts_follow_every_change_of_the_database(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db", read_only=True) as reader:
        assert (reader.facets().total, store.facets().total) == (0, 0)
        result_id = store.add(RESULT, SOURCE).id
        assert (reader.facets().total, store.facets().total) == (1, 1)
        with pytest.raises(RuntimeError), store.transaction():
            store.add(made("2"), SOURCE)
            assert (reader.facets().total, store.facets().total) == (1, 2)
            raise RuntimeError
        assert (reader.facets().total, store.facets().total) == (1, 1)
        assert reader.facets(Filter(chosen={"benchmark": ["bert"]})).total == 0
        store.act("hide", actor="moderator", reason="a test", result_id=result_id)
        assert (reader.facets().total, store.facets().total) == (0, 0)


def test_rows_without_details_are_the_same_but_for_these(store: Store) -> None:
    store.add(RESULT, SOURCE, SIGNER)
    (whole,), (bare,) = store.find().rows, store.find(has_details=False).rows
    empty = {"key": "", "system_key": "", "settings": "", "score": None, "ttft_p99_ms": None, "tpot_p99_ms": None}
    assert bare == whole._replace(**empty)
    assert whole.key and whole.system_key and whole.settings and whole.score == 76.1


def test_files_that_are_no_results_database_are_refused(tmp_path: Path) -> None:
    newer, foreign, text = tmp_path / "newer.db", tmp_path / "foreign.db", tmp_path / "text.db"
    Store.open(newer).close()
    with sqlite3.connect(newer) as other:
        other.execute("PRAGMA user_version = 99")
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE mine (x)")
    text.write_text("not a database at all\n" * 99)
    for path, words in ((newer, "schema version 99"), (foreign, "another program"), (text, "not an SQLite file")):
        with pytest.raises(schema.StoreError, match=words):
            Store.open(path)
    with pytest.raises(schema.StoreError, match=r"the results database .* does not exist"):
        Store.open(tmp_path / "none.db", read_only=True)
    with sqlite3.connect(foreign) as other:
        assert other.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)


@pytest.mark.parametrize("statements", range(4))
def test_a_database_that_another_process_makes_meanwhile_is_none_of_another_program(
    tmp_path: Path, statements: int
) -> None:
    path, left = tmp_path / "results.db", statements

    class Slow(sqlite3.Connection):
        def execute(self, *words: Any) -> sqlite3.Cursor:
            nonlocal left
            if left == 0:
                Store.open(path).close()
            left -= 1
            return super().execute(*words)

    with contextlib.closing(sqlite3.connect(path, factory=Slow)) as connection:
        assert schema._version(connection, path) in (0, schema.VERSION)


def test_an_interrupted_migration_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as first:
        first.add(RESULT, SOURCE)
    steps = (*schema.MIGRATIONS, "ALTER TABLE result ADD COLUMN more TEXT;\nSELECT wrong;\n")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", len(steps))
    with pytest.raises(sqlite3.OperationalError):
        Store.open(path)
    with pytest.raises(schema.StoreError, match="older version"):
        Store.open(path, read_only=True)
    monkeypatch.setattr(schema, "MIGRATIONS", (*steps[:-1], "ALTER TABLE result ADD COLUMN more TEXT;\n"))
    with Store.open(path) as second:
        assert len(second.find().rows) == 1


def _as_of_the_first_version(path: Path) -> None:
    """Take out of a database what later versions added."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE log")
        database.execute("DROP TABLE seen")
        database.execute("DROP INDEX listing_facets")
        database.execute("CREATE INDEX listing_facets ON listing (state, benchmark)")
        database.execute("PRAGMA user_version = 1")


def logged(run_id: str, sha256: str = "e" * 64, **changes: Any) -> NewResult:
    """A result with a log of its own."""
    latencies = tuple(
        Figure(name=name, value=value, unit="ms") for name, value in (("50", 1.25), ("90", 2.5), ("99", 3))
    )
    return made(run_id, raw={"detail_sha256": sha256}, **{"figures": latencies, "kind": "crowd", **changes})


OTHER = Signer(key_id="f" * 16, public_key=bytes(32), alias="")


@pytest.mark.parametrize(
    ("changes", "signer", "told"),
    [
        ({}, OTHER, "kept as another result"),
        ({}, SIGNER, "kept as another result"),
        ({"sha256": "d" * 64}, OTHER, "kept as another result"),  # another line of the log was edited
        ({"system": {"cpu": "Faster Chip"}}, SIGNER, "kept on another machine"),
        ({"system": {"cores": 128}, "kind": "own"}, None, "kept on another machine"),
    ],
)
def test_one_log_makes_one_result(tmp_path: Path, changes: dict[str, Any], signer: Signer | None, told: str) -> None:
    with Store.open(tmp_path / "results.db") as store:
        first = store.add(logged("run-1"), SOURCE, SIGNER)
        with pytest.raises(SameLog, match=f"{told}: {first.id}"):
            store.add(logged("run-2", **changes), SOURCE, signer)
        own = store.add(logged("run-2", kind="own"), SOURCE)
        assert (own.id, own.is_new) == (first.id, False)
        latencies = tuple(
            Figure(name=name, value=value, unit="ms") for name, value in (("50", 2), ("90", 3), ("99", 4))
        )
        assert store.add(logged("run-3", "c" * 64, figures=latencies), SOURCE, SIGNER).is_new
        store.withdraw(first.id, actor="key")
        for again in (logged("run-2"), logged("run-2", "d" * 64)):
            with pytest.raises(Withdrawn):
                store.add(again, SOURCE, OTHER)


@pytest.mark.parametrize("done", [("free",), ("hide",), ("free", "hide"), ()])
def test_a_log_is_free_for_another_key_once_a_moderator_freed_the_result_that_has_it(
    tmp_path: Path, done: tuple[What, ...]
) -> None:
    """Who was copied can send the run then; a result that was only hidden keeps its log, or anybody could send it."""
    thief = Signer(key_id=key_id_of(bytes(32)), public_key=bytes(32), alias="")
    with Store.open(tmp_path / "results.db") as store:
        copy = store.add(logged("copy"), SOURCE, thief)
        for what in done:
            store.act(what, actor="moderator", reason="a copy", result_id=copy.id)
            assert store.result(copy.id).state == "hidden"
        if done != ("free",):
            with pytest.raises(SameLog, match=copy.id):
                store.add(logged("run-1"), SOURCE, SIGNER)
            return
        with pytest.raises(SameLog):
            store.add(logged("again"), SOURCE, thief)
        owner = store.add(logged("run-1"), SOURCE, SIGNER)
        assert owner.is_new and store.result(owner.id).state == "shown"
        with pytest.raises(SameLog, match=owner.id):
            store.act("unhide", actor="moderator", reason="?", result_id=copy.id)
        write_export(store, tmp_path / "out")
    with Store.open(tmp_path / "b.db") as store:
        import_loaded(store, load(tmp_path / "out"), with_trust=True)
        assert store.result(owner.id).state == "shown"


def curve(*rows: tuple[int, float, float, float]) -> tuple[CurvePoint, ...]:
    """Points of concurrency, system rate, rate per user and TTFT."""
    return tuple(
        CurvePoint(concurrency=number, region="", system_tps=rate, tps_per_user=user, ttft_p90_ms=ttft, accuracy=None)
        for number, rate, user, ttft in rows
    )


CURVE = ((4, 100.5, 25.25, 31.125), (8, 180.75, 22.5, 40.25), (16, 300.125, 18.75, 77.5))


@pytest.mark.parametrize(
    ("again", "is_known"),
    [
        (CURVE, True),
        (CURVE[::-1], True),
        (((*CURVE[0][:3], 1.0), *CURVE[1:]), True),  # a time was edited
        (((4, 999.5, *CURVE[0][2:]), *CURVE[1:]), True),  # a rate was edited
        (((4, 101.5, 25.375, 30.0), *CURVE[1:]), False),  # one point was measured again
        (CURVE[:2], False),
    ],
)
def test_one_curve_makes_one_result(tmp_path: Path, again: Any, is_known: bool) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.add(made("1", curve=curve(*CURVE), raw={}, kind="crowd"), SOURCE, SIGNER)
    for is_old in (False, True):
        if is_old:
            _as_of_the_first_version(path)
        with Store.open(path) as store:
            copied = made("2", curve=curve(*again), raw={}, kind="crowd")
            if is_known:
                with pytest.raises(SameLog, match="kept as another result"):
                    store.add(copied, SOURCE, OTHER)
            else:
                assert store.add(copied, SOURCE, OTHER).is_new is not is_old


def test_a_withdrawn_log_stays_away_where_an_export_is_imported(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        store.withdraw(store.add(logged("run-1"), SOURCE, SIGNER).id, actor="key")
        write_export(store, tmp_path / "out")
    with Store.open(tmp_path / "b.db") as store:
        import_loaded(store, load(tmp_path / "out"))
        with pytest.raises(Withdrawn):
            store.add(logged("run-2"), SOURCE, OTHER)


def test_logs_of_an_older_database_are_known(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as store:
        store.add(logged("run-1"), SOURCE, SIGNER)
    _as_of_the_first_version(path)
    with Store.open(path) as store:
        for sha256 in ("e" * 64, "d" * 64):
            with pytest.raises(SameLog):
                store.add(logged("run-2", sha256), SOURCE, OTHER)


def test_a_file_of_the_first_version_is_brought_to_this_one(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with Store.open(path) as first:
        first.add(RESULT, SOURCE)
    _as_of_the_first_version(path)
    with Store.open(path) as second:
        assert second.facets().facets["label"] == (("unofficial", 1),)
        assert second.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_the_client_measured_does_not_hide_a_log_that_is_known() -> None:
    figures = [Figure(name=name, value=value, unit="ms") for name, value in (("50", 1.0), ("90", 2.0), ("99", 3.0))]
    marks = log_marks("ab", 7.0, figures)
    assert len(marks) == 2
    assert log_marks("", 7.0, figures) == log_marks(None, 7.0, figures) == (), "without a log nothing is known"
    assert log_marks("ab", 7.0, [*figures, Figure(name="client ITL 50", value=4.0, unit="ms")]) == marks
    assert log_marks("ab", 7.0, [*figures, Figure(name="TTFT 50", value=4.0, unit="ms")]) != marks
