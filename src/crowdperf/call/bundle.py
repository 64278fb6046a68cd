"""Makes a bundle: one file with everything that a run uses, for a machine without a network.

`bundle_program.py` is the program in it and describes its content. Packages are those of the lockfile, by their hashes.
Data and models come from the cache: entries whose files the lockfile lists all, because no file names this machine.
A model, data and settings that the user gave by a path are copied.
Other steps (environments, packages, facts of the machine) are made again on the other machine.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.call import bundle_program
from crowdperf.call.bundle_program import CACHE_MARK, ENTRY_FILES, FOLDER_MARK, FORMAT, BundleError
from crowdperf.kit.whole_file import file_sha256

ENGINE = ("cmind", "pyyaml", "requests")
"""The packages of requirements.txt."""
REPOSITORY = ("automation", "script", "src", "cmr.yaml")
BUILT_FROM = "built-from.json"
"""Where the engine reads the commit of a repository without git (its `running/toolversion.py`)."""
LEFT_OUT = ("__pycache__", "*.pyc", "*.egg-info")
SUFFIX = ".pyz"
PYZ_START = b"#!/usr/bin/env python3\n"


@dataclass(frozen=True, slots=True)
class Given:
    """An input's own file or folder. files: those that are packed, in the folder of `path` or below it."""

    path: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """command: words of `cm`, without those that name own files. lock: the content of the lockfile. repository: with
    cmr.yaml. built_from: its `commit` and `is_modified`, which results state; None if nothing is known. cache: of this
    machine. entries: the UIDs of those that the run uses. given: what the user gave."""

    command: tuple[str, ...]
    lock: Mapping[str, Any]
    repository: Path
    cache: Path
    output: Path
    entries: Sequence[str]
    given: Mapping[str, Given] = field(default_factory=dict)
    built_from: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A finished bundle: its size, its SHA-256, how many wheels and cache entries it has."""

    path: Path
    size_bytes: int
    sha256: str
    wheels: int
    entries: int


def make_bundle(order: Order) -> Made:
    """Write the bundle and replace an existing file at the end. Raises BundleError and OSError."""
    order.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bundle.", dir=order.output.parent) as name:
        work, files = Path(name), Path(name) / "files"
        files.mkdir()
        (files / "crowdperf.lock").write_text(json.dumps(order.lock, indent=2) + "\n", encoding="utf-8")
        copy_repository(order.repository, files / "repository")
        if order.built_from:
            (files / "repository" / BUILT_FROM).write_text(json.dumps(order.built_from) + "\n", encoding="utf-8")
        wheels = fetch_wheels(locked_packages(order.lock), files / "wheels")
        entries = [pack_entry(entry, order.cache, files / "cache") for entry in portable_entries(order)]
        own = [f"--{name}={FOLDER_MARK}/{place}" for name, place in copy_given(order.given, files).items()]
        _write(work / "bundle", files, [*order.command, *own], python_version(order.lock))
        digest = file_sha256(work / "bundle")
        os.replace(work / "bundle", order.output)
    return Made(order.output, order.output.stat().st_size, digest, wheels, len(entries))


def copy_repository(source: Path, target: Path) -> None:
    """Copy recipes, engine and packages, without compiled files. Raises OSError and shutil.Error."""
    target.mkdir(parents=True)
    for name in REPOSITORY:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
        else:
            shutil.copy2(source / name, target / name)


def copy_given(given: Mapping[str, Given], files: Path) -> dict[str, str]:
    """Copy the user's own files and folders. Returns the places of the inputs' values below `files`. Raises BundleError
    and OSError."""
    places: dict[str, str] = {}
    for name, one in given.items():
        folder = one.path.parent
        places[name] = bundle_program.checked_name(f"given/{name}/{one.path.relative_to(folder).as_posix()}")
        for path in one.files:
            place = files / bundle_program.checked_name(f"given/{name}/{path.relative_to(folder).as_posix()}")
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, place)
            else:
                shutil.copy2(path, place)
    return places


def python_version(lock: Mapping[str, Any]) -> str:
    """The version of Python that the lockfile pins, such as 3.11.7; empty if it pins none or several. Pure."""
    found = {thing.get("version", "") for thing in lock["things"] if thing["recipe"].startswith("get-python3,")}
    return found.pop() if len(found) == 1 else ""


def locked_packages(lock: Mapping[str, Any]) -> list[dict[str, str]]:
    """The packages of a lockfile in groups for one call of pip each, a package to `==VERSION --hash=...`. Pure.

    A second group has other versions of packages that the first one has, for another environment.
    """
    groups: list[dict[str, str]] = []
    for thing in lock["things"]:
        for name, row in (thing.get("facts") or {}).get("python_packages", {}).items():
            wanted = f"=={row['version']}" + (f" --hash=sha256:{row['sha256']}" if "sha256" in row else "")
            if any(group.get(name) == wanted for group in groups):
                continue
            group = next((group for group in groups if name not in group), None)
            if group is None:
                groups.append(group := {})
            group[name] = wanted
    return groups


def fetch_wheels(groups: Iterable[Mapping[str, str]], folder: Path) -> int:
    """Let pip put the packages into a folder, and those of the engine. Returns their number. Raises BundleError.

    Without a hash (an old pip installed it) a package is taken by its version alone.
    """
    folder.mkdir()
    for group in groups:
        for has_hash in (True, False):
            lines = [name + wanted for name, wanted in sorted(group.items()) if ("--hash" in wanted) is has_hash]
            if lines:
                listed = folder / "requirements.txt"
                listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
                _pip("download", "--no-deps", "--dest", str(folder), "--requirement", str(listed))
                listed.unlink()
    _pip("wheel", "--wheel-dir", str(folder), *engine_packages())
    return sum(1 for _ in folder.iterdir())


def engine_packages() -> list[str]:
    """The packages of the engine as they are in this environment, `NAME==VERSION` each."""
    return [f"{name}=={importlib.metadata.version(name)}" for name in ENGINE]


def _pip(*words: str) -> None:
    command = [sys.executable, "-I", "-m", "pip", words[0], "--quiet", "--disable-pip-version-check", *words[1:]]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise BundleError(
            f"pip could not fetch the packages of the run (exit code {done.returncode}): "
            f"{' '.join(done.stderr.strip().splitlines()[-3:])}\nhint: the index that they came from must be reachable"
        )


def portable_entries(order: Order) -> Iterator[Path]:
    """Folders of the run's cache entries with exactly the files that the lockfile lists for their recipe."""
    locked = [
        (thing["recipe"], {(name, row["sha256"]) for name, row in thing["files"].items()})
        for thing in order.lock["things"]
        if thing.get("files")
    ]
    for path in (order.cache / uid / "entry.json" for uid in sorted(order.entries)):
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            files = {(file["path"], file["sha256"]) for file in row["files"]}
            recipe = row["recipe"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # an entry of CM's own engine
        if (recipe, files) in locked:
            yield path.parent


def pack_entry(entry: Path, cache: Path, target: Path) -> str:
    """Copy the declared files of an entry and its description without the path of the cache. Returns its name.

    Raises BundleError if a file differs from its record, and OSError.
    """
    folder = target / entry.name
    folder.mkdir(parents=True)
    escaped = json.dumps(str(cache))[1:-1]
    for name in ENTRY_FILES:
        text = (entry / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(escaped, CACHE_MARK), encoding="utf-8")
    details = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
    for file in details["files"]:
        name = bundle_program.checked_name(file["path"])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(entry / name, folder / name)
        if (found := file_sha256(folder / name)) != file["sha256"]:
            raise BundleError(
                f"{entry / name} has the SHA-256 {found}, recorded is {file['sha256']}\n"
                f"hint: cm rm cache {entry.name} -f, then a run rebuilds it"
            )
    state = (folder / "cm-cached-state.json").read_bytes()
    details_text = (folder / "entry.json").read_text(encoding="utf-8")
    new = details_text.replace(details["state_sha256"], hashlib.sha256(state).hexdigest())
    (folder / "entry.json").write_text(new, encoding="utf-8")
    return entry.name


def _write(target: Path, files: Path, command: Sequence[str], python: str) -> None:
    """Writes the zip file. Wheels, data and models are packed already, or do not become smaller: they are stored."""
    rows: dict[str, Any] = {}
    names = sorted(str(path.relative_to(files)) for path in files.rglob("*") if path.is_file())
    with target.open("wb") as out:
        out.write(PYZ_START)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
            for name in names:
                path = files / name
                status = path.stat()
                rows[name] = {
                    "size_bytes": status.st_size,
                    "sha256": file_sha256(path),
                    "mtime_ns": status.st_mtime_ns,
                    **({"is_program": True} if status.st_mode & 0o100 else {}),
                }
                is_small = name.startswith("repository/")
                bundle.write(path, f"files/{name}", zipfile.ZIP_DEFLATED if is_small else zipfile.ZIP_STORED)
            manifest = {
                "format": FORMAT,
                "command": list(command),
                "machine": {**bundle_program.machine(), **({"python_version": python} if python else {})},
                "engine": engine_packages(),
                "files": rows,
            }
            bundle.writestr("manifest.json", json.dumps(manifest, indent=1) + "\n")
            bundle.write(bundle_program.__file__, "__main__.py")
    target.chmod(0o755)
