"""Judges hostile trees of hundreds of megabytes and prints what that cost; fails above 60 s or 500 MB of memory.

    .venv-test/bin/python tests/fuzz/hostile_trees.py [NAME ...] [--megabytes=500]

Each tree is a good one with files beside it that were made to keep a reader busy. Not a test of the suite: it writes
up to 500 MB and takes minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "script"
for folder in (HERE.parent / "submission", SCRIPTS / "check-mlperf-submission", SCRIPTS / "get-mlperf-results-lib"):
    sys.path.insert(0, str(folder))

from changes import O_MODEL, OPEN, replace  # noqa: E402
from mlperf_gate import report  # noqa: E402
from mlperf_gate.gate import check  # noqa: E402
from mlperf_gate.views import Options  # noqa: E402
from mlperf_results.privacy import Known  # noqa: E402
from tree_builder import LOG_ROUND, SYSTEM, build  # noqa: E402

MEGABYTE = 1024 * 1024
ALLOWED_S, ALLOWED_MB = 60, 500
LARGEST = 49
KNOWN = Known(users=("annab",), hosts=("box.example.org",), homes=("/home/annab",), emails=("anna@example.org",))
SEARCHED = (
    b"/home/", b"/home/x ", b" /Users/", b"token=", b"token= ", b'token="', b"password: x1 ", b"api_key=",
    b"-----BEGIN RSA PRIVATE KEY-----\n", b"-----BEGIN A A ", b"eyJ", b"eyJaaaaaaaaaaaa.", b"authorization:",
    b"bearer a", b"://a:", b"ghp_", b"&sig=", b"annab ", b":\\Users\\", b"a", b"\n", b"\xff\xfe/\0h\0",
)  # fmt: skip


def filled(piece: bytes, size: int) -> bytes:
    """The piece again and again."""
    return (piece * (size // len(piece) + 1))[:size]


def searched(root: Path, megabytes: int, each: int) -> None:
    """Files of `each` megabytes that the search for secrets has to look at."""
    for number in range(max(1, megabytes // each)):
        piece = SEARCHED[number % len(SEARCHED)]
        replace(root / OPEN / "src" / f"file{number}.txt", filled(piece, each * MEGABYTE))


def copies_of_scenarios(root: Path, megabytes: int, name: str, content: bytes) -> None:
    """So many systems with one scenario each whose file of this name is hostile."""
    good = root / O_MODEL / "Offline"
    for number in range(max(1, megabytes * MEGABYTE // len(content))):
        place = root / O_MODEL.replace(SYSTEM, f"box{number}") / "Offline"
        for path in good.rglob("*"):
            if path.is_file():
                replace(place / path.relative_to(good), path.read_bytes())
        replace(place / name, content)


def detail_log(size: int, piece: str) -> bytes:
    """A detail log whose last messages are of one kind."""
    first = ':::MLLOG {"key": "effective_test_mode", "value": "PerformanceOnly", "metadata": {"is_error": false}}\n'
    return first.encode() + filled(piece.encode(), size)


def long_list(size: int) -> bytes:
    """A detail log with one list as long as may be."""
    values = filled(b"1000,", size - 200).rstrip(b",")
    return (b':::MLLOG {"key": "loaded_qsl_set", "value": [' + values.rsplit(b",", 1)[0] + b"]"
            b', "time_ms": 1, "metadata": {"is_error": false}}\n')  # fmt: skip


ERROR = ':::MLLOG {"key": "error_runtime", "value": "x", "time_ms": 1, "metadata": {"is_error": false}}\n'
HIDDEN = " :::MLLOG\n"
LOG = "performance/run_1/mlperf_log_detail.txt"


def many_files(root: Path, megabytes: int) -> None:
    """100,000 small ones."""
    for number in range(100_000):
        path = root / OPEN / "src" / f"d{number // 1000}" / f"f{number}"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(b"x")


def many_systems(root: Path, megabytes: int) -> None:
    """20,000 systems with nothing in them but a scenario's folder."""
    for number in range(20_000):
        (root / OPEN / "results" / f"box{number}" / "resnet50" / "Offline").mkdir(parents=True)


TREES: dict[str, Callable[[Path, int], None]] = {
    "large files to search": lambda root, size: searched(root, size, LARGEST),
    "small files to search": lambda root, size: searched(root, size, 1),
    "accuracy.txt of hashes": lambda root, size: copies_of_scenarios(
        root, size, "accuracy/accuracy.txt", filled(b"hash=0123456789abcdef\n", LARGEST * MEGABYTE)),
    "accuracy.txt of hashes within the limit": lambda root, size: copies_of_scenarios(
        root, min(size, 50), "accuracy/accuracy.txt", filled(b"hash=0123\n", MEGABYTE)),
    "detail logs beyond the limit": lambda root, size: copies_of_scenarios(
        root, size, LOG, detail_log(LARGEST * MEGABYTE, ERROR)),
    "detail logs of errors": lambda root, size: copies_of_scenarios(root, size, LOG, detail_log(15 * MEGABYTE, ERROR)),
    "detail logs of hidden lines": lambda root, size: copies_of_scenarios(
        root, size, LOG, detail_log(15 * MEGABYTE, HIDDEN)),
    "detail logs of one list": lambda root, size: copies_of_scenarios(root, size, LOG, long_list(15 * MEGABYTE)),
    "100,000 files": many_files,
    "20,000 systems": many_systems,
}  # fmt: skip


def judge(root: Path, answers: multiprocessing.Queue) -> None:
    """Judge a tree; the answer: what was said, the CPU seconds, the peak of memory in MB, the text's megabytes."""
    start = time.process_time()
    verdict = check(root, LOG_ROUND, Options(known=KNOWN))
    text = report.as_text(verdict, str(root))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put((verdict.text, time.process_time() - start, peak, len(text) / MEGABYTE))


def main() -> int:
    """Make, judge and remove each tree."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[[], *TREES])
    parser.add_argument("--megabytes", type=int, default=500)
    arguments = parser.parse_args()
    processes, is_good = multiprocessing.get_context("fork"), True
    for name in arguments.names or TREES:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            root = Path(folder)
            build(root, "open")
            TREES[name](root, arguments.megabytes)
            size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) / MEGABYTE
            answers = processes.Queue()
            process = processes.Process(target=judge, args=(root, answers))
            process.start()
            said, seconds, peak, shown = answers.get(timeout=600)
            process.join()
        is_bad = seconds > ALLOWED_S or peak > ALLOWED_MB
        is_good = is_good and not is_bad
        print(f"{name}: {size:.0f} MB, {seconds:.1f} s CPU, {peak:.0f} MB of memory, {shown:.1f} MB of text, {said}"
              f"{'  TOO MUCH' if is_bad else ''}", flush=True)  # fmt: skip
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
