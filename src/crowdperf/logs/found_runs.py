"""Finds every LoadGen run below a folder and says what it is a run of, by the folders it lies in. Reads folders only.

    <time>/<system>/<benchmark>/<scenario>/mlperf_log_*            NVIDIA's build/logs
    <run id or sut>/<model>/<Scenario>/{performance/run_1, accuracy}/mlperf_log_*      our results
    <division>/<submitter>/results/<system>/<model>/<Scenario>/{performance/run_1, accuracy}/mlperf_log_*   submissions

Only names below the given folder, and its own, are used: what lies above is the user's own business.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_bytes
from crowdperf.kit.whole_file import object_of
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.names import Mode, Scenario, UnknownName, parse_scenario

ACCURACY_LOG_LEAST_BYTES = 5
"""A performance run leaves an accuracy log of at most 4 bytes, an empty list (NVIDIA's results tool, v0.7)."""

_COMPLIANCE = re.compile(r"TEST\d\d")
_RUN_FOLDER = re.compile(r"run_(\d+)")
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """One run; `system` and `model` are names of folders.

    relative: its folder below the one that was searched. number: of run_1, run_2 ... in a performance folder, else
    None. group: the folders above `system` (a time, or division, submitter and results), "" without any.
    """

    paths: RunPaths
    relative: Path
    group: str
    system: str
    model: str
    scenario: Scenario
    mode: Mode
    number: int | None

    @property
    def has_run_id(self) -> bool:
        """True where `system` is the id of a call of run,mlperf,inference: a time and no system."""
        return _RUN_ID.fullmatch(self.system) is not None


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A folder with LoadGen's logs whose place does not say what they are of, and why."""

    relative: Path
    reason: str


def _log_folders(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("mlperf_log_summary.txt")):
        parts = path.relative_to(root).parts
        if not any(part.startswith(".") or _COMPLIANCE.fullmatch(part) or part == "compliance" for part in parts):
            yield path.parent


def mode_by_log(paths: RunPaths) -> Mode:
    """Return the mode that the size of the accuracy log tells."""
    try:
        size = paths.accuracy_log.stat().st_size
    except OSError:
        return Mode.PERFORMANCE
    return Mode.ACCURACY if size >= ACCURACY_LOG_LEAST_BYTES else Mode.PERFORMANCE


def place_of(root: Path, folder: Path) -> FoundRun | Misplaced:
    """Return what the run in ``folder`` is of."""
    relative, paths = folder.relative_to(root), RunPaths(folder)
    parts = [root.resolve().name, *relative.parts]
    number, mode = None, mode_by_log(paths)
    if parts[-1] == "accuracy":
        parts, mode = parts[:-1], Mode.ACCURACY
    elif len(parts) > 1 and parts[-2] == "performance" and (found := _RUN_FOLDER.fullmatch(parts[-1])):
        parts, number, mode = parts[:-2], int(found.group(1)), Mode.PERFORMANCE
    if len(parts) < 3:
        return Misplaced(relative, "use the folder that contains <system>/<benchmark>/<scenario>, or a parent folder")
    try:
        scenario = parse_scenario(parts[-1])
    except UnknownName as error:
        return Misplaced(relative, f"{parts[-1]!r} is not a scenario: {error}")
    return FoundRun(
        paths=paths,
        relative=relative,
        group="/".join(parts[1:-3]),
        system=parts[-3],
        model=parts[-2],
        scenario=scenario,
        mode=mode,
        number=number,
    )


def find_runs(root: Path) -> tuple[tuple[FoundRun, ...], tuple[Misplaced, ...]]:
    """Return the runs below ``root``, in the order of their paths, and the logs that stand elsewhere.

    Runs of compliance tests and hidden folders are left out.
    """
    found = [place_of(root, folder) for folder in _log_folders(root)]
    runs = tuple(run for run in found if isinstance(run, FoundRun))
    return runs, tuple(run for run in found if isinstance(run, Misplaced))


class RunFiles(dict[str, bytes]):
    """The contents of files of a run by their names. A JSON file is parsed once, however many ask for it."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        super().__init__(contents or {})
        self._objects: dict[str, dict[str, Any] | None] = {}

    def object(self, name: str) -> dict[str, Any] | None:
        """Return the object in a JSON file; None where there is no such file, or it contains something else."""
        if name not in self._objects:
            self._objects[name] = object_of(self.get(name, b""))
        return self._objects[name]

    def keep(self, name: str, value: dict[str, Any]) -> None:
        """Keep what a JSON file was parsed to elsewhere."""
        self._objects[name] = value

    def by_folder(self) -> dict[str, RunFiles]:
        """Return the files of each folder by their names, where names here are paths; "" has those of none."""
        found = {"": RunFiles()}
        for path, content in self.items():
            folder, _, name = path.rpartition("/")
            own = found.setdefault(folder, RunFiles())
            own[name] = content
            if (value := self._objects.get(path)) is not None:
                own.keep(name, value)
        return found


def files_of(run: FoundRun, names: Iterable[str]) -> RunFiles:
    """Return those of the files of a run that can be read."""
    contents = dict[str, bytes]()
    for name in names:
        with contextlib.suppress(OSError):
            contents[name] = given_bytes(run.paths.folder / name)
    return RunFiles(contents)
