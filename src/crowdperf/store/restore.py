"""Puts what was done to exported results into a database: states, trust in keys, withdrawals and the list of actions.

Only what is new here is changed: a result or a key that this database knew keeps the state it has here.
"""

import dataclasses
import sqlite3

from crowdperf.store.consistency import derived_again
from crowdperf.store.exports import Export, ExportedResult
from crowdperf.store.insert import add_withdrawn, set_states
from crowdperf.store.keys import result_id
from crowdperf.store.model import NewResult
from crowdperf.store.result_json import WrongObject
from crowdperf.store.store import Store

NOT_CHECKED = "imported, not checked here"
_SIGNED = "imported from an export without signature: the key is the one in the export"


def unvouched(new: NewResult) -> NewResult | str:
    """What is kept of an export's result when nobody vouches for the export; why nothing is, where that is so.

    The figures are those of the logs, where the export has them.
    """
    if new.kind == "published":
        return "published results are read from MLCommons' summary.csv. --with_trust uses those of your own export"
    if (found := derived_again(new)) is not None:
        return dataclasses.replace(found, notes=(*found.notes, _SIGNED) if found.kind == "crowd" else found.notes)
    accuracy = tuple(dataclasses.replace(score, basis="claimed") for score in new.accuracy)
    labels = tuple(dict.fromkeys((*new.labels, NOT_CHECKED)))
    return dataclasses.replace(new, labels=labels, verification="none", accuracy=accuracy)


def restore_withdrawn(store: Store, kept: ExportedResult) -> bool:
    """Keep a withdrawn result of an export, without content; False where its id is known here. Raises WrongObject."""
    key_id = kept.signer.key_id if kept.signer is not None else ""
    if kept.id != result_id(kept.gone["kind"], key_id, kept.gone["run_id"]):
        raise WrongObject(f"result {kept.id} has not the id of its run")
    try:
        return add_withdrawn(store.connection, kept.gone, (kept.source, kept.signer, kept.added_utc), kept.marks)
    except sqlite3.IntegrityError as error:
        raise WrongObject(f"result {kept.id}: {error}") from error


def restore_hidden(store: Store, export: Export, added: set[str]) -> None:
    """Hide new results that were hidden where they come from."""
    database = store.connection
    for kept in export.results:
        if kept.id in added and kept.state == "hidden":
            database.execute("UPDATE result SET state = 'hidden' WHERE id = ?", (kept.id,))
            set_states(database, "id", kept.id)


def restore_actions(store: Store, export: Export, added: set[str], known_keys: set[str]) -> None:
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
