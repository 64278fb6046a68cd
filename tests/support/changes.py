"""Changes of a tree, and the paths of the good trees that they are made on."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tree_builder import CLOSED_MODEL, OPEN_MODEL, SUBMITTER, SYSTEM

Change = Callable[[Path], None]
DETAIL, SUMMARY, JSON_LOG = "mlperf_log_detail.txt", "mlperf_log_summary.txt", "mlperf_log_accuracy.json"


@dataclass(frozen=True)
class Mutation:
    """One change. tree: "open" or "closed". rule: that the gate gives; None where it accepts the changed tree."""

    name: str
    tree: str
    rule: str | None
    change: Change


def replace(path: Path, content: str | bytes) -> None:
    """Give a file another content; the hard link to the good tree is cut."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def drop(name: str) -> Change:
    """Remove a file or a folder."""

    def change(root: Path) -> None:
        path = root / name
        if path.is_file():
            path.unlink()
            return
        for inner in sorted(path.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        path.rmdir()

    return change


def rename(name: str, other: str) -> Change:
    """Rename a file or a folder."""
    return lambda root: (root / other).parent.mkdir(parents=True, exist_ok=True) or (root / name).rename(root / other)


def put(name: str, content: str | bytes) -> Change:
    """Write a file."""
    return lambda root: replace(root / name, content)


def edit(name: str, old: str, new: str) -> Change:
    """Exchange every occurrence of a pattern; there must be one."""

    def change(root: Path) -> None:
        text = (root / name).read_text(encoding="utf-8")
        changed, count = re.subn(old, lambda match: new, text, flags=re.MULTILINE)
        assert count, f"{old} does not occur in {name}"
        replace(root / name, changed)

    return change


def value(name: str, key: str, new: object) -> Change:
    """Give a key of a detail log another value."""
    return edit(name, rf'(?<="key": "{key}", "value": )("[^"]*"|[^,]+)(?=, "time_ms")', json.dumps(new))


def field(name: str, key: str, new: object) -> Change:
    """Give a field of a JSON file another value."""
    return fields(name, lambda content: content | {key: new})


def no_field(name: str, key: str) -> Change:
    """Remove a field of a JSON file."""
    return fields(name, lambda content: {one: old for one, old in content.items() if one != key})


def fields(name: str, function: Callable[[dict], dict]) -> Change:
    """Change the fields of a JSON file."""
    return lambda root: replace(root / name, json.dumps(function(json.loads((root / name).read_text()))))


def line_without(name: str, key: str) -> Change:
    """Remove a message from a detail log."""
    return edit(name, rf'^:::MLLOG {{"key": "{key}".*\n', "")


def both(*changes: Change) -> Change:
    """Several changes that make one mistake."""

    def change(root: Path) -> None:
        for one in changes:
            one(root)

    return change


OPEN, CLOSED = f"open/{SUBMITTER}", f"closed/{SUBMITTER}"
O_SYSTEM, C_SYSTEM = f"{OPEN}/systems/{SYSTEM}.json", f"{CLOSED}/systems/{SYSTEM}.json"
O_MODEL, C_MODEL = f"{OPEN}/results/{SYSTEM}/{OPEN_MODEL}", f"{CLOSED}/results/{SYSTEM}/{CLOSED_MODEL}"
O_RUN, C_RUN = f"{O_MODEL}/Offline/performance/run_1", f"{C_MODEL}/Offline/performance/run_1"
O_STREAM = f"{O_MODEL}/SingleStream/performance/run_1"
C_SERVER = f"{C_MODEL}/Server/performance/run_1"
O_ACC, C_ACC = f"{O_MODEL}/Offline/accuracy", f"{C_MODEL}/Offline/accuracy"
T01, T04 = f"{C_MODEL}/Offline/TEST01", f"{C_MODEL}/Offline/TEST04"
