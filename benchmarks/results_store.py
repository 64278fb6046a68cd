"""What the database of results and its server cost: pages, searches, tables, imports, uploads; each beside its limit.

    .venv-test/bin/python benchmarks/results_store.py [--results 10000] [--folders 50] [--large]

Processor time, the least of a few tries: of whole requests to the server in this process, and of whole imports. Results
are made up, of 300 systems; folders and uploads are copies of one recorded call of eight runs. The exit status is 1
where a figure misses its limit. `--large` adds pages of 100,000 results, which take minutes to make.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), *(str(ROOT / "tests" / name) for name in ("support", "store"))]

from made_results import SIGNER, SOURCE, made  # noqa: E402
from made_summary import csv_of, rows  # noqa: E402
from shared_results import OFFLINE, change_json, members_of, recorded, signed_again  # noqa: E402

from crowdperf.store.bundle import make_bundle  # noqa: E402
from crowdperf.store.exports import write_export  # noqa: E402
from crowdperf.store.imports import import_loaded, load  # noqa: E402
from crowdperf.store.signatures import new_key  # noqa: E402
from crowdperf.store.store import Store  # noqa: E402
from crowdperf.web.app import create_app  # noqa: E402
from crowdperf.web.settings import Settings  # noqa: E402

BENCHMARKS = ("resnet50", "bert", "retinanet", "gptj", "llama2-70b", "whisper", "digits", "3d-unet")
SCENARIOS = ("Offline", "Server", "SingleStream", "MultiStream")
TABLE_CHARACTERS = 297_569
"""Of summary.csv of MLCommons' inference_results_v6.1 at 7bf15fd8."""

missed: list[str] = []


def say(what: str, found: float, limit: float, unit: str) -> None:
    """Print a figure beside its limit: the most allowed, of rates the least; 0 where there is none."""
    is_met = not limit or (found >= limit if unit.endswith("/s") else found <= limit)
    if not is_met:
        missed.append(what)
    sign, verdict = (">=" if unit.endswith("/s") else "<="), ("met" if is_met else "MISSED")
    print(f"{what:56} {found:9.1f} {unit:10} " + (f"{sign} {limit:6,.0f}  {verdict}" if limit else ""), flush=True)


def least_s(work: Callable[[], object], tries: int = 7) -> float:
    """The least processor seconds of a few tries, all threads of this process counted."""
    found = []
    for _ in range(tries):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


class Server:
    """The server for a database, asked in this process: without the reading of HTTP, which is uvicorn's."""

    def __init__(self, database: Path) -> None:
        settings = Settings(database=database, min_free_bytes=0, bundles_per_hour=1_000_000)
        self._app, self._loop = create_app(settings, None), asyncio.new_event_loop()

    def ask(self, address: str, body: bytes | None = None) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        return self._loop.run_until_complete(self._asked(address, body))

    async def _asked(self, address: str, body: bytes | None) -> tuple[int, bytes]:
        path, _, query = address.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": "GET" if body is None else "POST", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(),
            "headers": [(b"content-type", b"application/gzip"), (b"host", b"127.0.0.1:8090")],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8090),
        }  # fmt: skip
        parts, status = [], 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return status, b"".join(parts)

    def close(self) -> None:
        """End its threads."""
        self._app.state.collector.database.close()
        self._loop.close()


@contextmanager
def serving(database: Path) -> Iterator[Server]:
    """The server for a database."""
    server = Server(database)
    try:
        yield server
    finally:
        server.close()


def without_marks(database: Path) -> Path:
    """Make a database that forgets the log of each result at once: it would keep one result of a log, and all results
    here are copies of one call."""
    Store.open(database).close()
    connection = sqlite3.connect(database)
    connection.execute("CREATE TRIGGER forget AFTER INSERT ON log BEGIN DELETE FROM log; END")  # words: ok P23
    connection.close()
    return database


def fill(store: Store, count: int) -> None:
    """Add results of 300 systems, 8 benchmarks, 4 scenarios, 2 precisions."""
    with store.transaction():
        for number in range(count):
            new = made(
                f"run-{number}",
                kind="crowd",
                system={"accelerator": f"Vendor X{number % 100}", "cores": 8 << number % 3},
                benchmark=BENCHMARKS[number % 8],
                scenario=SCENARIOS[number // 8 % 4],
                precision=("int8", "fp32")[number // 32 % 2],
                labels=("unofficial", "synthetic") if number % 7 == 0 else ("unofficial",),
                value=float(number % 997),
                files=(),
            )
            store.add(new, SOURCE, SIGNER)


def measure_pages(folder: Path, count: int, limits: tuple[int, ...]) -> None:
    """Whole requests to a server of `count` results. limits: of first pages, filtered ones, searches, the CSV; ms."""
    database = folder / f"{count}.db"
    with Store.open(database) as store:
        say(f"{count:,} results: each added", least_s(lambda: fill(store, count), 1) / count * 1e3, 0, "ms")
        if count <= 10_000:
            export = least_s(lambda: write_export(store, folder / "out"), 1)
            say(f"{count:,} results: each exported", export / count * 1e3, 0, "ms")
        one = store.find(limit=1).rows[0]
    first, filtered, search, table = limits
    asked = (
        ("first page", "/", first),
        ("first page of all, with counts", "/?all=1", first),
        ("filtered by accelerator", "/?all=1&accelerator=Vendor+X7", filtered),
        ("filtered by benchmark, precision, label", "/?all=1&benchmark=bert&precision=int8&without=synthetic", first),
        ("sorted by value", "/?all=1&sort=-value", first),
        ("search", "/?all=1&q=bert+x7+offline", search),
        ("search, common words", "/?all=1&q=bert", first),
        ("CSV of all", "/api/v1/results.csv?all=1", table),
        ("one result", f"/r/{one.id}", 0),
        ("its configuration", f"/c/{one.key}", 0),
    )
    with serving(database) as server:
        for what, address, limit in asked:
            assert server.ask(address)[0] == 200, address
            say(f"{count:,} results: {what}", least_s(lambda at=address: server.ask(at)) * 1e3, limit, "ms")


def call_folders(folder: Path, count: int) -> Path:
    """Copies of the recorded call, each with another process id in its logs."""
    for number in range(count):
        for file, content in recorded().items():
            path = folder / f"20261123T{number:06}Z-digits-onnxruntime-cpu" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.replace(b'"pid": ', b'"pid": %d' % (number + 1)))
    return folder


def measure_imports(folder: Path, count: int) -> None:
    """Imports of folders of eight runs and of a table of a round's size."""
    calls = call_folders(folder / "calls", count)
    time.sleep(2.5)  # files that were just written are read again (result_folders.py)
    with Store.open(without_marks(folder / "folders.db")) as store:
        first_s = least_s(lambda: import_loaded(store, load(calls)), 1)
        again_s = least_s(lambda: import_loaded(store, load(calls)), 1)
        say("import of 1,000 folders of 8 runs", first_s / count * 1e3, 30, "s")
        say("the same 1,000 folders again", again_s / count * 1e3, 5, "s")
    table, text = rows(), ""
    for number in range(1_000):
        text = csv_of([{**row, "Location": f"{row['Location']}/{part}"} for part in range(number) for row in table])
        if len(text) >= TABLE_CHARACTERS:
            break
    (folder / "summary.csv").write_text(text, encoding="utf-8")
    with Store.open(folder / "table.db") as store:
        taken_s = least_s(lambda: import_loaded(store, load(folder / "summary.csv")), 1)
        say("import of a summary.csv of a round", taken_s * 1e3, 1_000, "ms")


def bundles(folder: Path, is_one_run: bool, count: int) -> list[bytes]:
    """Bundles of the recorded call, or of one run of it, each of another key."""
    for name, content in recorded().items():
        if not is_one_run or "/" not in name or name.startswith(f"{OFFLINE}/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    if is_one_run:
        change_json(folder / "results.json", _only_offline)
    key = new_key()
    say(f"  making a bundle of {folder.name}", least_s(lambda: make_bundle(folder, key), 3) * 1e3, 0, "ms")
    members = members_of(make_bundle(folder, key))
    return [signed_again(members, new_key()) for _ in range(count)]


def _only_offline(content: dict[str, Any]) -> None:
    content["scenarios"] = [{**row, "accuracy": None} for row in content["scenarios"] if row["scenario"] == "Offline"]


def measure_uploads(folder: Path, count: int = 15) -> None:
    """Uploads, each read, checked and kept; of each size some to begin with, then the fastest group of several."""
    for name, is_one_run, limit in (("one run", True, 50), ("eight runs", False, 20)):
        waiting = iter(bundles(folder / name, is_one_run, 5 * count))
        with serving(without_marks(folder / f"{name}.db")) as server:

            def send(server: Server = server, waiting: Iterator[bytes] = waiting) -> None:
                for _ in range(count):
                    status, answer = server.ask("/api/v1/bundles", next(waiting))
                    assert status == 201, answer

            say(f"uploads of {name}", count / least_s(send, 5), limit, "uploads/s")


def measure_start(folder: Path) -> None:
    """The server's start, with its import of nothing, until it answers, and its memory."""
    words = [sys.executable, "-m", "crowdperf.web", f"--db={folder / 'start.db'}", "--port=0"]
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    )
    assert server.stdout is not None
    while not server.stdout.readline().startswith("Share"):
        pass
    server.terminate()
    _, _, used = os.wait4(server.pid, 0)
    say("start and end of the server", (used.ru_utime + used.ru_stime) * 1e3, 1_000, "ms")
    say("its memory", used.ru_maxrss / 1e3, 120, "MB")


def main() -> int:
    """Run all measurements in a temporary folder; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--folders", type=int, default=50)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--imports", action="store_true", help="only imports")
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        measure_imports(folder, given.folders)
        if not given.imports:
            measure_start(folder)
            measure_uploads(folder)
            measure_pages(folder, given.results, (60, 30, 20, 150))
        if given.large:
            measure_pages(folder, 100_000, (400, 400, 400, 0))
    print(json.dumps({"missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
