"""What the results database costs: pages, searches and CSV of many results, imports, uploads. Processor seconds.

    .venv-test/bin/python benchmarks/results_store.py [--results 10000] [--folders 50] [--large]

Results are made up, of 300 systems; the folders are copies of one recorded call of eight runs, each with logs of its
own. Each figure is the least of a few tries; wall time is printed beside it. `--large` adds 100,000 results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for name in ("get-mlperf-results-lib", "get-mlperf-results-store-lib", "check-mlperf-submission", "run-mlperf-curve"):
    sys.path.insert(0, str(ROOT / "script" / name))
sys.path.insert(0, str(ROOT / "tests" / "store"))

from made_results import RESULT, SIGNER, SOURCE, made  # noqa: E402
from made_summary import csv_of, rows  # noqa: E402
from results_store.exporting import write_export  # noqa: E402
from results_store.importing import import_loaded, load  # noqa: E402
from results_store.listing import Filter, Sort  # noqa: E402
from results_store.store import Store  # noqa: E402

BENCHMARKS = ("resnet50", "bert", "retinanet", "gptj", "llama2-70b", "whisper", "digits", "3d-unet")
SCENARIOS = ("Offline", "Server", "SingleStream", "MultiStream")
SHOWN = Filter(chosen={"benchmark": ["resnet50"], "precision": ["int8"]}, without_labels=["synthetic"])


def least(work: Callable[[], object], tries: int = 5) -> tuple[float, float]:
    """The least processor and wall seconds of a few tries."""
    found = []
    for _ in range(tries):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(found)


def say(what: str, seconds: tuple[float, float], count: int = 1) -> None:
    """Print one line: milliseconds of each of `count`."""
    each = f", {seconds[0] / count * 1e3:8.2f} ms each" if count > 1 else ""
    print(f"{what:44} {seconds[0] * 1e3:9.1f} ms CPU {seconds[1] * 1e3:9.1f} ms wall{each}", flush=True)


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


def measure_pages(folder: Path, count: int) -> None:
    """Time what the pages ask of a database of `count` results."""
    with Store.open(folder / f"{count}.db") as store:
        say(f"{count:,} results: add", least(lambda: fill(store, count), 1), count)

        def page(wanted: Filter) -> None:
            store.find(wanted)
            store.facets(wanted)

        say(f"{count:,} results: first page, counts, no filter", least(lambda: page(Filter())))
        say(f"{count:,} results: first page, counts, default", least(lambda: page(SHOWN)))
        say(
            f"{count:,} results: filtered by accelerator",
            least(lambda: page(Filter(chosen={"accelerator": ["Vendor X7"]}))),
        )
        say(f"{count:,} results: by value", least(lambda: store.find(sort=Sort("value"))))
        say(f"{count:,} results: search", least(lambda: store.find(Filter(text="bert x7 offline"))))
        say(f"{count:,} results: rows of a CSV of 10,000", least(lambda: store.find(limit=10_000)))
        one = store.find(limit=1).rows[0].id
        say(f"{count:,} results: one result", least(lambda: store.result(one)))
        if count <= 10_000:
            say(f"{count:,} results: export", least(lambda: write_export(store, folder / "out"), 1), count)


def call_folders(folder: Path, count: int) -> Path:
    """Copies of the recorded call, each with another process id in its logs."""
    with tarfile.open(ROOT / "tests" / "store" / "data" / "digits.tar.xz") as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]
    for number in range(count):
        for file, content in files.items():
            path = folder / f"20261123T{number:06}Z-digits-onnxruntime-cpu" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.replace(b'"pid": ', b'"pid": %d' % (number + 1)))
    return folder


def measure_imports(folder: Path, count: int) -> None:
    """Time imports of folders of eight runs and of a table of a round's size."""
    calls = call_folders(folder / "calls", count)
    with Store.open(folder / "folders.db") as store:
        say(f"import of {count} folders of 8 runs", least(lambda: import_loaded(store, load(calls)), 1), count)
        say(f"the same again, {count} folders", least(lambda: import_loaded(store, load(calls)), 1), count)
        table = [{**row, "Location": f"{row['Location']}/{number}"} for number in range(9) for row in rows()]
        (folder / "summary.csv").write_text(csv_of(table), encoding="utf-8")
        say("import of a summary.csv of 540 rows", least(lambda: import_loaded(store, load(folder / "summary.csv")), 1))


def measure_uploads(folder: Path, count: int = 200) -> None:
    """Time what keeping an upload costs beside checking it: a transaction each, 20 kB of files."""
    body = BytesIO(json.dumps({"text": "x" * 20_000}).encode()).getvalue()
    files = tuple(RESULT.files[:1])
    with Store.open(folder / "uploads.db") as store:

        def add() -> None:
            for number in range(count):
                kept = tuple(
                    type(file)(name=file.name, sha256=file.sha256, size_bytes=len(body), body=body) for file in files
                )
                store.add(made(f"run-{number}", files=kept), SOURCE, SIGNER)

        say(f"{count} uploads kept, a transaction each", least(add, 1), count)


def main() -> None:
    """Run all measurements in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--folders", type=int, default=50)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for count in (given.results, *((100_000,) if given.large else ())):
            measure_pages(folder, count)
        measure_imports(folder, given.folders)
        measure_uploads(folder)


if __name__ == "__main__":
    main()
