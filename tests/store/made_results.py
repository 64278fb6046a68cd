"""Results for tests of the database, each field of them set."""

import contextlib
import dataclasses
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

from crowdperf.store.keys import key_id_of
from crowdperf.store.model import Accuracy, Configuration, Figure, File, NewResult, Signer, Source, System

SOURCE = Source(kind="results-folder", name="results", digest="ab" * 32)
SIGNER = Signer(key_id=key_id_of(bytes(range(32))), public_key=bytes(range(32)), alias="swift otter")
SYSTEM = System(
    accelerator="Vendor X100-32GB",
    accelerator_count=2,
    nodes=1,
    cpu="Maker Chip 9000",
    sockets=2,
    cores=64,
    memory_gib=512,
    facts={"operating_system": "Linux 6"},
)
CONFIGURATION = Configuration(
    suite="inference",
    benchmark="resnet50",
    round="",
    division="",
    category="",
    scenario="Offline",
    precision="int8",
    tier="",
    stack="onnxruntime",
    device="cpu",
    data_kind="real",
    run_class="valid",
    model_digest="cd" * 32,
    settings={"batch_size": "4"},
    system=SYSTEM,
)
RESULT = NewResult(
    run_id="run-1",
    kind="own",
    configuration=CONFIGURATION,
    labels=("unofficial",),
    made_utc="2026-11-23T10:00:00Z",
    stack_version="onnxruntime 1.23.0",
    metric="samples per second",
    value=123.5,
    unit="samples/s",
    higher_is_better=True,
    valid=True,
    verification="logs consistent",
    command="cm run script --tags=run,mlperf,inference",
    figures=(Figure(name="99", value=12.25, unit="ms"), Figure(name="50", value=3.5, unit="ms")),
    accuracy=(Accuracy(name="acc", value=76.1, target=75.7, passed=True, basis="claimed"),),
    files=(
        File(name="mlperf_log_summary.txt", sha256=hashlib.sha256(b"text").hexdigest(), size_bytes=4, body=b"text"),
        File(name="mlperf_log_accuracy.json", sha256="aa" * 32, size_bytes=9, body=None),
    ),
    curve=(),
    notes=("a note",),
    raw={"nested": [1, {"text": "as it came"}]},
)


def made(run_id: str = "run-1", *, system: dict[str, Any] | None = None, **changes: Any) -> NewResult:
    """RESULT with other fields; those of its configuration and, in `system`, of its system by their names."""
    names = {field.name for field in dataclasses.fields(Configuration)}
    place = {name: changes.pop(name) for name in sorted(names & set(changes))}
    machine = dataclasses.replace(SYSTEM, **(system or {}))
    configuration = dataclasses.replace(CONFIGURATION, **place, system=machine)
    return dataclasses.replace(RESULT, run_id=run_id, configuration=configuration, **changes)


TABLES = ("log", "source", "signer", "system", "configuration", "result", "figure", "accuracy", "file", "curve_point",
          "action", "listing", "label", "search")  # fmt: skip


OF_RESULTS = ("result", "listing", "label")


def all_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a database, by table; a result is named by its id, since an import adds hidden ones last."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        ids = dict(database.execute("SELECT seq, id FROM result"))

        def rows_of(table: str) -> list[tuple[object, ...]]:
            found = database.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in found.description]
            pairs = (zip(names, row, strict=True) for row in found)
            return sorted(
                (
                    tuple(ids[one] if name == "seq" and table in OF_RESULTS else one for name, one in row)
                    for row in pairs
                ),
                key=repr,
            )

        return {table: rows_of(table) for table in TABLES}
