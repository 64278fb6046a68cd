"""Shortens the accuracy logs of a submission tree as the official tool does, and keeps what was there before.

An accuracy log of a whole data set is megabytes of hex digits. A submission holds its first and last 4,096 bytes and,
in accuracy.txt beside it, a line `hash=<sha256 of the whole log>`. Scores and compliance verdicts need the whole log,
so this comes last. Agrees byte for byte with tools/submission/truncate_accuracy_log.py of mlcommons/inference at
b66003e1 (August 2026); unlike it, a backup that exists is kept and the new one stands beside it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.whole_file import copy_whole, write_bytes_whole
from crowdperf.logs.score_lines import parse_hashes
from crowdperf.logs.tree import DIVISIONS

LOG_NAME, SCORE_NAME = "mlperf_log_accuracy.json", "accuracy.txt"
LARGEST_TRUNCATED_BYTES = 10 * 1024
"""The checkers accept no longer log; one below this that has its hash is taken for truncated."""
PART_BYTES = 4096
GAP = b"\n\n...\n\n"
_TESTS_WITH_LOGS = ("TEST01", "TEST07", "TEST09")
_PLACES = ("results/*/*/*/accuracy", "results/*/*/*/TEST*/accuracy", "compliance/*/*/*/TEST*/accuracy")


@dataclass(frozen=True, slots=True)
class Truncated:
    """A log that was shortened: its path below the tree's root, the digest of the whole log, and the backup."""

    log: Path
    sha256: str
    backup: Path


@dataclass(frozen=True, slots=True)
class Skipped:
    """A log that was left as it is, and why."""

    log: Path
    reason: str


def truncated_bytes(content: bytes) -> bytes:
    """Return what a submission holds of a log; a log below 4,096 bytes as it is."""
    return content if len(content) < PART_BYTES else content[:PART_BYTES] + GAP + content[-PART_BYTES:]


def hash_in(score: bytes) -> str:
    """Return the digest that an accuracy.txt holds, empty without."""
    found = parse_hashes(score.decode(errors="replace").replace("\r\n", "\n"))
    return found[0].value if found else ""


def accuracy_folders(root: Path, submitter: str = "") -> Iterator[Path]:
    """Yield the folders of a tree that can hold an accuracy log, sorted; those of one submitter, or of all."""
    for division in DIVISIONS:
        base = root / division
        names = [submitter] if submitter else sorted(path.name for path in base.glob("*") if path.is_dir())
        for name in names:
            for pattern in _PLACES:
                for folder in sorted((base / name).glob(pattern)):
                    test = folder.parent.name
                    if not test.startswith("TEST") or test in _TESTS_WITH_LOGS:
                        yield folder


def truncate_tree(root: Path, submitter: str, backup: Path) -> tuple[tuple[Truncated, ...], tuple[Skipped, ...]]:
    """Shorten every accuracy log below `root`, with copies below `backup`; return what was done and what was not."""
    done, skipped = [], []
    for folder in accuracy_folders(root, submitter):
        log = folder / LOG_NAME
        relative = log.relative_to(root)
        if not log.is_file():
            continue
        score = folder / SCORE_NAME
        is_verdict_only = folder.parent.name in ("TEST07", "TEST09")
        if not score.is_file() and not is_verdict_only:
            skipped.append(Skipped(relative, f"no {SCORE_NAME} next to it: score the run first"))
            continue
        if score.is_file() and hash_in(score.read_bytes()) and log.stat().st_size < LARGEST_TRUNCATED_BYTES:
            skipped.append(Skipped(relative, "truncated already"))
            continue
        done.append(truncate_log(log, backup.resolve() / relative, relative, is_verdict_only))
    return tuple(done), tuple(skipped)


def truncate_log(log: Path, backup: Path, relative: Path, is_verdict_only: bool = False) -> Truncated:
    """Shorten one log: copy it, note its digest, then replace it. Killed in between, a second call goes on."""
    content = log.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    kept = _keep(log, backup, digest)
    score = log.with_name(SCORE_NAME)
    before = score.read_bytes() if score.is_file() and not is_verdict_only else b""
    line = f"hash={digest}\n".encode()
    if hash_in(before) != digest:
        write_bytes_whole(score, line if is_verdict_only else before + b"\n" + line)
    write_bytes_whole(log, truncated_bytes(content))
    return Truncated(relative, digest, kept)


def _keep(log: Path, backup: Path, digest: str) -> Path:
    """Copy a log to its backup; where another log lies there already, to a name with the digest in it."""
    if backup.exists() and hashlib.sha256(backup.read_bytes()).hexdigest() != digest:
        backup = backup.with_name(f"{backup.stem}-{digest[:16]}{backup.suffix}")
    if not backup.exists():
        copy_whole(log, backup)
    return backup
