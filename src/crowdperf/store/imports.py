"""Imports results into a database: from a summary.csv, a folder of runs, an Endpoints tree, a bundle, an export, or a
file of another load generator.

What a path is, its content says; results that are kept already stay as they are, so that the same call again changes
nothing, and one that was interrupted is completed. Folders of runs whose files have not changed are not read again.
Of an export also states, trust in keys, withdrawals and the list of actions are kept, but only for what is new here.
"""

import hashlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from crowdperf.kit.text_documents import given_bytes
from crowdperf.rules.names import counted, printable
from crowdperf.store.consistency import derived_again
from crowdperf.store.exports import EXPORT, Export, ExportedResult, read_export
from crowdperf.store.insert import add_withdrawn, set_states
from crowdperf.store.keys import digest_of, result_id
from crowdperf.store.model import Item, NewResult, Source, SourceKind
from crowdperf.store.other_tools import CSV_START, LARGEST_BYTES, NotOfTool, results_of_file
from crowdperf.store.result_folders import LeftOut, Seen, results_below
from crowdperf.store.result_json import WrongObject
from crowdperf.store.schema import StoreError
from crowdperf.store.store import Conflict, SameLog, Store, Withdrawn
from crowdperf.store.summary_csv import WrongTable, read_summary_csv

_BATCH = 200
"""Results that are written at once: a server that writes to the same database waits for no longer."""

_SHOWN = 20
"""Lines of a long list that are printed."""

NOT_CHECKED = "imported, not checked here"
_SIGNED = "imported from an export without signature: the key is the one in the export"

_POINT = "point.yaml"
_LOG = "mlperf_log_summary.txt"


class NothingToImport(ValueError):
    """A path that holds no results; the message says what is looked for."""


FAILURES = (NothingToImport, WrongTable, WrongObject, StoreError, OSError, sqlite3.Error)
"""Why an import cannot be made, beside BundleRefused."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is read of a path: results and what makes none, as they come, and what is said of all. seen: states of
    results whose files need not be read again, by their stamps, to be filled in before `items` are taken."""

    kind: SourceKind | Literal["export"]
    items: Iterable[Item | LeftOut | ExportedResult | Seen]
    notes: tuple[str, ...] = ()
    export: Export | None = None
    seen: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """What became of an import. added: ids. known: kept before, alike. changed: kept before with other content.

    notes: of the table, then of each new result, after its id.
    """

    kind: str
    added: list[str] = field(default_factory=list)
    known: int = 0
    changed: list[str] = field(default_factory=list)
    withdrawn: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _table(path: Path) -> Loaded:
    """A summary.csv of MLCommons, or a table of aiperf."""
    content = given_bytes(path)
    if content.startswith(CSV_START):
        return _of_tool("other-tool", results_of_file, path.name, content)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NothingToImport(f"{path} is not UTF-8: byte {error.start}") from error
    table = read_summary_csv(text)
    source = Source(kind="inference-csv", name=path.name, digest=hashlib.sha256(content).hexdigest())
    items: list[Item | LeftOut] = [Item(result, source) for result in table.results]
    items += [LeftOut(*line.split(": ", 1)) for line in table.left_out]
    return Loaded("inference-csv", items, table.notes)


def listing_digest(root: Path, name: str) -> str:
    """The SHA-256 of the places and sizes of all files of this name below a folder."""
    paths = sorted(root.rglob(name))
    return digest_of([[path.relative_to(root).as_posix(), path.stat().st_size] for path in paths])


def _folder(path: Path) -> Loaded:
    source = Source(kind="results-folder", name=path.name, digest=listing_digest(path, "mlperf_log_detail.txt"))
    seen: dict[str, str] = {}
    items = (Item(one[0], source, stamp=one[1]) if isinstance(one, tuple) else one for one in results_below(path, seen))
    return Loaded("results-folder", items, seen=seen)


def _tree(path: Path) -> Loaded:
    from crowdperf.store.endpoints_trees import curves_below  # reads YAML, which only such a tree needs

    source = Source(kind="endpoints-tree", name=path.name, digest=listing_digest(path, _POINT))
    found = curves_below(path)
    return Loaded("endpoints-tree", (one if isinstance(one, LeftOut) else Item(one, source) for one in found))


def _json_file(path: Path) -> Loaded:
    content = given_bytes(path, LARGEST_BYTES)
    if b'"bundle_version"' not in content:
        return _of_tool("other-tool", results_of_file, path.name, content)
    from crowdperf.store.viz_bundles import curves_of_bundle

    return _of_tool("endpoints-tree", curves_of_bundle, path.name, content)


def _of_tool(
    kind: SourceKind, read: Callable[[bytes, str], Iterable[NewResult | LeftOut]], name: str, content: bytes
) -> Loaded:
    """What another tool wrote, by the reader of its files."""
    source = Source(kind=kind, name=name, digest=hashlib.sha256(content).hexdigest())
    try:
        return Loaded(kind, [one if isinstance(one, LeftOut) else Item(one, source) for one in read(content, name)])
    except NotOfTool as error:
        raise NothingToImport(str(error)) from error


def _bundle(path: Path) -> Loaded:
    try:
        from crowdperf.store.bundle import read_bundle  # signatures need a package that nothing else here needs
        from crowdperf.store.consistency import results_of_bundle
    except ImportError as error:
        raise NothingToImport(
            f"{path} is a bundle, whose signature cannot be checked: {error}\n"
            "  hint: pip install cryptography into the environment of cm, or send it to a collector"
        ) from error
    with path.open("rb") as file:
        bundle = read_bundle(file)
    source = Source(kind="bundle", name=bundle.manifest.run_id, digest=bundle.digest)
    return Loaded("bundle", [Item(new, source, bundle.signer) for new in results_of_bundle(bundle)])


def _export(path: Path) -> Loaded:
    export = read_export(path)
    return Loaded("export", [*export.left_out, *export.results], export=export)


def is_bundle(path: Path) -> bool:
    """Whether a file is packed as a bundle is. Raises OSError."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def load(path: Path) -> Loaded:
    """Return what a path holds. Raises NothingToImport, WrongTable, WrongObject, BundleRefused, OSError."""
    path = path.resolve()
    if path.is_file() and path.suffix.lower() == ".csv":
        return _table(path)
    if (path / EXPORT).is_file() or path.name == EXPORT:
        return _export(path if path.is_dir() else path.parent)
    if path.is_file() and path.suffix.lower() == ".json":
        return _json_file(path)
    if is_bundle(path):
        return _bundle(path)
    if path.is_dir() and next(path.rglob(_LOG), None) is not None:
        return _folder(path)
    if path.is_dir() and next(path.rglob(_POINT), None) is not None:
        return _tree(path)
    raise NothingToImport(
        f"{path} contains no results: looked for a .csv or .json file, {_LOG} or {_POINT} below a folder, and {EXPORT}"
        if path.exists()
        else f"{path} does not exist"
    )


def _batches(loaded: Loaded) -> Iterator[list[Item | LeftOut | ExportedResult | Seen]]:
    """The items a few at a time; those of an export all at once, because its states and actions belong to them."""
    them = iter(loaded.items)
    while batch := list(itertools.islice(them, _BATCH if loaded.export is None else None)):
        # Hidden ones last: a log may be another's.
        yield sorted(batch, key=lambda one: isinstance(one, ExportedResult) and one.state == "hidden")


def _keep(store: Store, item: Item, report: Report) -> None:
    try:
        added = store.add(item.new, item.source, item.signer, added_utc=item.added_utc)
        if item.stamp:
            store.note_seen(item.stamp, added.id)
    except SameLog as error:
        report.left_out.append(LeftOut(item.new.run_id, str(error)))
    except Conflict as error:
        report.changed.append(error.result_id)
    except Withdrawn:
        report.withdrawn += 1
    except (ValueError, TypeError, sqlite3.IntegrityError) as error:  # what an export of another's making may hold
        report.left_out.append(LeftOut(item.new.run_id, str(error)))
    else:
        if added.is_new:
            report.added.append(added.id)
            report.notes += [f"{added.id}: {note}" for note in item.new.notes]
        else:
            report.known += 1


def _unvouched(new: NewResult) -> NewResult | str:
    """What is kept of an export's result when nobody vouches for the export; why nothing is, where that is so.

    The figures are those of the logs, where the export has them.
    """
    if new.kind == "published":
        return "published results are read from MLCommons' summary.csv. --with_trust uses those of your own export"
    if (found := derived_again(new)) is not None:
        return replace(found, notes=(*found.notes, _SIGNED) if found.kind == "crowd" else found.notes)
    accuracy = tuple(replace(score, basis="claimed") for score in new.accuracy)
    labels = tuple(dict.fromkeys((*new.labels, NOT_CHECKED)))
    return replace(new, labels=labels, verification="none", accuracy=accuracy)


def _restore_withdrawn(store: Store, kept: ExportedResult) -> bool:
    """Keep a withdrawn result of an export, without content; False where its id is known here. Raises WrongObject."""
    key_id = kept.signer.key_id if kept.signer is not None else ""
    if kept.id != result_id(kept.gone["kind"], key_id, kept.gone["run_id"]):
        raise WrongObject(f"result {kept.id} has not the id of its run")
    try:
        return add_withdrawn(store.connection, kept.gone, (kept.source, kept.signer, kept.added_utc), kept.marks)
    except sqlite3.IntegrityError as error:
        raise WrongObject(f"result {kept.id}: {error}") from error


def _restore_hidden(store: Store, export: Export, added: set[str]) -> None:
    """Hide new results that were hidden where they come from."""
    database = store.connection
    for kept in export.results:
        if kept.id in added and kept.state == "hidden":
            database.execute("UPDATE result SET state = 'hidden' WHERE id = ?", (kept.id,))
            set_states(database, "id", kept.id)


def _restore_actions(store: Store, export: Export, added: set[str], known_keys: set[str]) -> None:
    """Give new keys the trust of the export, and add what was done to new results and keys to the list of actions."""
    database = store.connection
    for key_id, trust in export.trust.items():
        if key_id not in known_keys and trust in ("known", "blocked"):
            database.execute("UPDATE signer SET trust = ? WHERE key_id = ?", (trust, key_id))
            set_states(database, "signer", key_id)
    for action in export.actions:
        is_new = action.result_id in added or (action.signer and action.signer not in known_keys)
        if is_new and (not action.signer or store.signer(action.signer) is not None):
            store.record(action)


def _keep_any(store: Store, item: Item | LeftOut | ExportedResult | Seen, report: Report, *, with_trust: bool) -> None:
    if isinstance(item, LeftOut):
        report.left_out.append(item)
    elif isinstance(item, Seen):
        report.withdrawn += item.state == "withdrawn"
        report.known += item.state != "withdrawn"
    elif isinstance(item, Item):
        _keep(store, item, report)
    elif item.new is not None:
        new = item.new if with_trust else _unvouched(item.new)
        if isinstance(new, str):
            report.left_out.append(LeftOut(item.new.run_id, new))
        else:
            _keep(store, Item(new, item.source, item.signer, item.added_utc), report)
    elif _restore_withdrawn(store, item):
        report.added.append(item.id)
    else:
        report.known += 1


def import_loaded(store: Store, loaded: Loaded, *, with_trust: bool = False) -> Report:
    """Keep what was loaded, and return what became of it.

    with_trust: an export is believed, as one's own: its figures, trust in keys and the list of actions. Otherwise the
    figures of its logs are taken, and what cannot be derived again is labelled.

    Raises WrongObject, OSError and LogError where what is still to be read cannot be.
    """
    report = Report(loaded.kind, notes=list(loaded.notes))
    loaded.seen.update(store.seen())
    known_keys = {str(row[0]) for row in store.connection.execute("SELECT key_id FROM signer")}
    for batch in _batches(loaded):
        with store.transaction():
            for item in batch:
                _keep_any(store, item, report, with_trust=with_trust)
            if loaded.export is not None:
                _restore_hidden(store, loaded.export, set(report.added))
            if loaded.export is not None and with_trust:
                _restore_actions(store, loaded.export, set(report.added), known_keys)
    return report


def import_path(database: Path, path: Path, *, with_trust: bool = False) -> Report:
    """Keep what a path holds in a database, which is made where there is none. Raises FAILURES, BundleRefused."""
    loaded = load(path)
    with Store.open(database) as store:
        return import_loaded(store, loaded, with_trust=with_trust)


def report_lines(report: Report) -> Iterator[str]:
    """What became of an import, in words; of long lists the beginning."""
    yield f"{counted(len(report.added), 'result')} added, {report.known:,} known already ({report.kind})"
    if report.changed:
        yield f"{counted(len(report.changed), 'result')} kept as before: the same run has other content now"
    if report.withdrawn:
        yield f"{counted(report.withdrawn, 'result')} skipped: withdrawn from this database"
    left_out = [f"{found.place}: {found.reason}" for found in report.left_out]
    notes = [f"{note} (of {count})" if count > 1 else note for note, count in _by_words(report.notes).items()]
    for heading, lines in (("left out", left_out), ("noted", notes)):
        if lines:
            yield f"{heading}:"
            yield from (f"  {printable(line)}" for line in lines[:_SHOWN])
            if len(lines) > _SHOWN:
                yield f"  and {len(lines) - _SHOWN:,} more (--out=json has all)"


def _by_words(notes: list[str]) -> Counter[str]:
    """How many results have each note; a note that begins with an id is counted without it."""
    return Counter(note.partition(": ")[2] if " " not in note.partition(": ")[0] else note for note in notes)
