"""What bundles of results cost, in processor seconds: made, read, and checked with all that a collector derives again.

    .venv-test/bin/python benchmarks/result_bundles.py [--repeats=20]

The result is the recorded one of the tests: eight runs of digits, and one run of them alone.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for name in ("get-mlperf-results-lib", "get-mlperf-results-store-lib", "check-mlperf-submission", "run-mlperf-curve"):
    sys.path.insert(0, str(ROOT / "script" / name))
sys.path.insert(0, str(ROOT / "tests" / "store"))

from results_store.bundle import make_bundle, read_bundle  # noqa: E402
from results_store.consistency import results_of_bundle  # noqa: E402
from results_store.signing import new_key  # noqa: E402
from shared_results import OFFLINE, change_json, recorded  # noqa: E402


def _folder(root: Path, is_one_run: bool) -> Path:
    """The recorded result below `root`, or one run of it."""
    folder = root / ("one" if is_one_run else "eight")
    for name, content in recorded().items():
        if not is_one_run or "/" not in name or name.startswith(f"{OFFLINE}/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    if is_one_run:
        change_json(folder / "results.json", _only_offline)
    return folder


def _only_offline(content: dict[str, list[dict[str, object]]]) -> None:
    content["scenarios"] = [{**row, "accuracy": None} for row in content["scenarios"] if row["scenario"] == "Offline"]


def _seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of a call."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats, key, rows = parser.parse_args().repeats, new_key(), {}
    with tempfile.TemporaryDirectory() as temporary:
        for is_one_run in (True, False):
            folder = _folder(Path(temporary), is_one_run)
            content = make_bundle(folder, key).content
            read = read_bundle(io.BytesIO(content))
            made_s = _seconds(lambda folder=folder: make_bundle(folder, key), max(1, repeats // 5))
            read_s = _seconds(lambda content=content: read_bundle(io.BytesIO(content)), repeats)
            checked_s = _seconds(lambda read=read: results_of_bundle(read), repeats)
            rows["one run" if is_one_run else "eight runs"] = {
                "bytes": len(content),
                "make_s": round(made_s, 4),
                "read_s": round(read_s, 4),
                "check_s": round(checked_s, 4),
                "uploads_per_s": round(1 / (read_s + checked_s), 1),
            }
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
