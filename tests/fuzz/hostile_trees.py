"""Judges hostile trees of hundreds of megabytes and prints what that cost; fails above 60 s or 500 MB of memory.

    PYTHONPATH=src:tests/support .venv-test/bin/python tests/fuzz/hostile_trees.py [NAME ...] [--megabytes=500]

Each tree is a good one with files beside it that were made to keep a reader busy. Not a test of the suite: it writes
up to 500 MB and takes minutes.
"""

import argparse
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from changes import C_MODEL, O_MODEL, OPEN, replace
from tree_builder import LOG_ROUND, MEASUREMENTS, SYSTEM, build, copy_of

from crowdperf.gate import report
from crowdperf.gate.gate import check
from crowdperf.gate.views import Options
from crowdperf.kit.privacy import PrivateNames

MEGABYTE = 1024 * 1024
ALLOWED_S, ALLOWED_MB = 60, 500
LARGEST = 49
KNOWN = PrivateNames(users=("annab",), hosts=("box.example.org",), homes=("/home/annab",), emails=("anna@example.org",))
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


def copies_of_scenarios(root: Path, megabytes: int, name: str, content: bytes, division: str = "open") -> None:
    """So many systems with one scenario each whose file of this name is hostile; the other files are hard links."""
    model = O_MODEL if division == "open" else C_MODEL
    good = root / model / "Offline"
    for number in range(max(1, megabytes * MEGABYTE // len(content))):
        place = root / model.replace(SYSTEM, f"box{number}") / "Offline"
        copy_of(good, place)
        replace(place / name, content)


def whole_log(size: int) -> bytes:
    """An accuracy log that nobody cut, with a number of tokens of each answer."""
    row = b'{ "seq_id" : 1, "qsl_idx" : 1, "data" : "00", "token_count" : 128 },\n'
    return b"[\n" + filled(row, size - 4)


def cut_log(size: int) -> bytes:
    """An accuracy log that was cut everywhere."""
    return b"[\n" + filled(b'"qsl_idx" : 1\n\n...\n\n', size - 4)


def runs_alike(root: Path, megabytes: int, change: Callable[[bytes, int], bytes]) -> None:
    """3,000 systems with one run, each changed a little."""
    log = (root / O_MODEL / "Offline" / LOG).read_bytes()
    for number in range(3000):
        replace(root / O_MODEL.replace(SYSTEM, f"box{number}") / "Offline" / LOG, change(log, number))


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
DATE = ':::MLLOG {"key": "power_end", "value": "11-21-2026 13:44:24.977", "metadata": {"is_error": false}}\n'
LOG, ACCURACY = "performance/run_1/mlperf_log_detail.txt", "accuracy/mlperf_log_accuracy.json"


def numbers(size: int) -> bytes:
    """A detail log whose messages all have keys of their own and a number of thousands of digits."""
    row = ':::MLLOG {"key": "result_%d", "value": ' + "9" * 4000 + ', "metadata": {"is_error": false}}\n'
    return detail_log(0, "x") + "".join(row % number for number in range(size // 4080)).encode()


def words_of_weights(size: int) -> bytes:
    """Measurements that say more of the weights than fits into a book."""
    text = "pruned weight prune " * ((size - 500) // 40)
    fields = {**MEASUREMENTS, "weight_transformations": text, "retraining": f"no {text}"}
    return json.dumps(fields).encode()


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
    "accuracy.txt of scores": lambda root, size: copies_of_scenarios(
        root, min(size, 100), "accuracy/accuracy.txt", filled(b"accuracy=176.8%, good=1, total=7\n", MEGABYTE // 4)),
    "README.md in two alphabets": lambda root, size: copies_of_scenarios(
        root, size, "README.md", filled("synth\u0435tic &amp; \u00ad".encode(), 7 * MEGABYTE)),
    "detail logs beyond the limit": lambda root, size: copies_of_scenarios(
        root, size, LOG, detail_log(LARGEST * MEGABYTE, ERROR)),
    "detail logs of errors": lambda root, size: copies_of_scenarios(root, size, LOG, detail_log(15 * MEGABYTE, ERROR)),
    "detail logs of hidden lines": lambda root, size: copies_of_scenarios(
        root, size, LOG, detail_log(15 * MEGABYTE, HIDDEN)),
    "detail logs of one list": lambda root, size: copies_of_scenarios(root, size, LOG, long_list(15 * MEGABYTE)),
    "accuracy logs that are whole": lambda root, size: copies_of_scenarios(
        root, size, ACCURACY, whole_log(MEGABYTE)),
    "accuracy logs of cuts": lambda root, size: copies_of_scenarios(root, size, ACCURACY, cut_log(MEGABYTE)),
    "accuracy logs of TEST01": lambda root, size: copies_of_scenarios(
        root, size, f"TEST01/{ACCURACY}", whole_log(MEGABYTE), "closed"),
    "TEST01 verified at length": lambda root, size: copies_of_scenarios(
        root, size, "TEST01/verify_accuracy.txt", filled(b"num_perf_log_entries = 7\n", MEGABYTE), "closed"),
    "summaries within the limit": lambda root, size: copies_of_scenarios(
        root, min(size, 30), "performance/run_1/mlperf_log_summary.txt",
        filled(b"Samples per second : 1\n", MEGABYTE // 17)),
    "user.conf within the limit": lambda root, size: copies_of_scenarios(
        root, min(size, 8), "user.conf", filled(b"*.Offline.target_qps = 7\n", MEGABYTE // 65)),
    "measurements in many words": lambda root, size: copies_of_scenarios(
        root, min(size, 60), "measurements.json", words_of_weights(MEGABYTE // 9), "closed"),
    "detail logs of dates": lambda root, size: copies_of_scenarios(
        root, size, LOG, detail_log(15 * MEGABYTE, DATE)),
    "detail logs of numbers": lambda root, size: copies_of_scenarios(root, size, LOG, numbers(15 * MEGABYTE)),
    "3,000 copies of a run": lambda root, size: runs_alike(root, size, lambda log, number: log),
    "3,000 runs of one clock": lambda root, size: runs_alike(
        root, size, lambda log, number: re.sub(rb'"pid": \d+', b'"pid": %d' % (number + 9), log)),
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
            for division in ("open", "closed"):
                build(root, division)
            TREES[name](root, arguments.megabytes)
            size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file()) / MEGABYTE
            answers = processes.Queue()
            process = processes.Process(target=judge, args=(root, answers))
            process.start()
            said, seconds, peak, shown = answers.get(timeout=3600)  # of the clock, on a busy machine
            process.join()
        is_bad = seconds > ALLOWED_S or peak > ALLOWED_MB
        is_good = is_good and not is_bad
        print(f"{name}: {size:.0f} MB, {seconds:.1f} s CPU, {peak:.0f} MB of memory, {shown:.1f} MB of text, {said}"
              f"{'  TOO MUCH' if is_bad else ''}", flush=True)  # fmt: skip
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
