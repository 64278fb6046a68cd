"""The program of a bundle: `python3 FILE.pyz` checks its files, unpacks them, and starts its run.

A bundle is a zip file that Python runs, with this file as `__main__.py`, `manifest.json`, and below `files/`

    crowdperf.lock      the lockfile of the run
    repository/         recipes, engine and packages
    wheels/             the Python packages of the run and of the engine
    cache/UID/          cache entries with data and models; the path of the cache is written as @CACHE@
    given/INPUT/NAME    the user's own files and folders, which the command names as @FOLDER@/given/INPUT/NAME

It needs only Python (read by any version from 3.8 on, which says which one is required), and never asks a network.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

FORMAT = 1
CACHE_MARK = "@CACHE@"
"""Stands for the path of the cache in the files of its entries."""
FOLDER_MARK = "@FOLDER@"
"""Stands for the folder of the unpacked bundle in the command."""
ENTRY_FILES = ("_cm.json", "cm-cached-state.json", "entry.json")
"""Files of a cache entry that name its path: see `automation/recipe_engine/disk/entries.py`."""
CHUNK_BYTES = 1 << 20
READY = "bundle.json"
"""In the folder, when all is unpacked: the SHA-256 of the manifest."""
PROGRAM = "import sys; from cmind.cli import run; run()"
USAGE = "python3 %(prog)s [--folder=FOLDER] [--check] [WORDS OF THE RUN, such as --scenario=Offline ...]"


class BundleError(Exception):
    """A bundle that cannot be used here. The text says why and what to try."""


def machine() -> dict[str, str]:
    """What packages with compiled code depend on: `system`, `machine` and `python` (such as 3.11), and the
    `python_version` (such as 3.11.7), which a lockfile pins."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "python": f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}",
        "python_version": platform.python_version(),
    }


def oldest_libc(wheels: list[str]) -> tuple[int, int]:
    """The glibc that the wheels with these file names need, (0, 0) for none (PEP 600, manylinux_X_Y; read 2026-11)."""
    tags = [re.findall(r"manylinux_(\d+)_(\d+)_", name) for name in wheels]
    return max((min((int(a), int(b)) for a, b in found) for found in tags if found), default=(0, 0))


def check_machine(manifest: dict[str, Any], here: dict[str, str], libc: str, file: str) -> None:
    """Raises BundleError if the bundle was made for another machine or Python. Pure.

    `libc` is the version of this machine's glibc, empty if it has another C library.
    """
    wanted = manifest["machine"]
    for name in ("system", "machine"):
        if wanted[name] != here[name]:
            raise BundleError(
                f"{file} was made for {wanted['system']} {wanted['machine']}, this is {here['system']} "
                f"{here['machine']}\nhint: make a bundle on a machine of this kind: crowdperf bundle --for=..."
            )
    if wanted["python"] != here["python"]:
        version = wanted["python"].rpartition(" ")[2]
        raise BundleError(
            f"{file} was made for {wanted['python']}, this is {here['python']}\n"
            f"hint: python{version} {shlex.quote(file)}"
        )
    if (locked := wanted.get("python_version", here["python_version"])) != here["python_version"]:
        raise BundleError(
            f"{file} is locked to Python {locked}, this is {here['python_version']}\n"
            f"hint: PYTHON {shlex.quote(file)}, where PYTHON is the path of a Python {locked}. Or make the bundle of a "
            f"run with this version: crowdperf run ... --adr.python.version={here['python_version']}"
        )
    needed = oldest_libc([name for name in manifest["files"] if name.endswith(".whl")])
    found = tuple(map(int, libc.split(".")[:2])) if re.match(r"\d+\.\d+", libc) else None
    if needed > (0, 0) and (found is None or found < needed):
        raise BundleError(
            f"packages in {file} need glibc {needed[0]}.{needed[1]} or newer, this machine has {libc or 'none'}\n"
            "hint: make the bundle on a machine with this system, where pip chooses older packages"
        )


def checked_name(name: str) -> str:
    """A file name of a manifest, which must lead below the folder. Raises BundleError."""
    path = PurePosixPath(name)
    if path.is_absolute() or "\\" in name or "\0" in name or not path.parts or ".." in path.parts or str(path) != name:
        raise BundleError(f"the bundle is not safe to unpack: it has a file named {name!r}, which leads elsewhere")
    return name


def read_manifest(bundle: zipfile.ZipFile, file: str) -> tuple[dict[str, Any], str]:
    """The manifest, checked, and its SHA-256. Raises BundleError."""
    try:
        text = bundle.read("manifest.json")
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise BundleError(f"{file} has the bundle format {manifest['format']}, known is {FORMAT}")
        for name, row in manifest["files"].items():
            checked_name(name)
            int(row["size_bytes"]), str(row["sha256"]), int(row["mtime_ns"])
        manifest["machine"]["python"], list(manifest["command"])
    except BundleError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise BundleError(f"{file} is damaged: its manifest cannot be read ({type(error).__name__}: {error})") from None
    return manifest, hashlib.sha256(text).hexdigest()


def copy_checked(read: Callable[[int], bytes], name: str, row: dict[str, Any], target: Path | None) -> None:
    """Copies a file, or only reads it without a target. Raises BundleError if it is not as the manifest says."""
    digest, size_bytes = hashlib.sha256(), 0
    out = target.open("xb") if target else None
    try:
        while size_bytes <= row["size_bytes"]:
            block = read(CHUNK_BYTES)
            if not block:
                break
            digest.update(block)
            size_bytes += len(block)
            if out:
                out.write(block)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BundleError(f"{name} is damaged ({error}): its SHA-256 must be {row['sha256']}") from None
    finally:
        if out:
            out.close()
    if size_bytes != row["size_bytes"] or digest.hexdigest() != row["sha256"]:
        raise BundleError(
            f"{name} has the SHA-256 {digest.hexdigest()}, the manifest has {row['sha256']}\n"
            "hint: copy the bundle again, or make a new one"
        )


def unpack(bundle: zipfile.ZipFile, manifest: dict[str, Any], folder: Path) -> None:
    """Writes each file of the manifest below a new folder, and nothing else. Raises BundleError and OSError."""
    for name, row in manifest["files"].items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with bundle.open(f"files/{name}") as source:
                copy_checked(source.read, name, row, target)
        except (KeyError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise BundleError(f"{name} is missing or damaged ({error}): its SHA-256 must be {row['sha256']}") from None
        target.chmod(0o755 if row.get("is_program") else 0o644)
        os.utime(target, ns=(row["mtime_ns"], row["mtime_ns"]))


def place_entries(folder: Path, cache: Path) -> None:
    """Moves the entries to the cache and writes its path into their files, with the digest that `entry.json` has."""
    for packed in sorted((folder / "cache").glob("*")):
        texts = {name: (packed / name).read_text(encoding="utf-8") for name in ENTRY_FILES}
        path = json.dumps(str(cache))[1:-1]
        new = {name: text.replace(CACHE_MARK, path) for name, text in texts.items()}
        old_state, state = (hashlib.sha256(one["cm-cached-state.json"].encode()).hexdigest() for one in (texts, new))
        new["entry.json"] = new["entry.json"].replace(old_state, state)
        for name, text in new.items():
            (packed / name).write_text(text, encoding="utf-8")
        cache.mkdir(parents=True, exist_ok=True)
        packed.rename(cache / packed.name)


def wrong_files(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    """What of an unpacked bundle is not as it was, except entries, which the engine checks itself."""
    for name, row in manifest["files"].items():
        if not name.startswith("cache/"):
            try:
                with (folder / name).open("rb") as source:
                    copy_checked(source.read, name, row, None)
            except OSError as error:
                yield f"{name} cannot be read: {error.strerror}"
            except BundleError as error:
                yield str(error).partition("\n")[0]


def settings(folder: Path) -> dict[str, str]:
    """The environment variables of everything that runs from an unpacked bundle."""
    return {
        "CM_REPOS": str(folder / "cm-home"),
        "CROWDPERF_CACHE": str(folder / "used-cache"),
        "CROWDPERF_CM": shlex.quote(str(folder / "cm")),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": (folder / "wheels").as_uri(),  # pip splits it at blanks
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }


def install(folder: Path, manifest: dict[str, Any]) -> None:
    """The environment of the engine, its CM home, and the command `cm` of the folder. Raises BundleError."""
    repository, python = folder / "repository", folder / "environment" / "bin" / "python3"
    env = {**os.environ, **settings(folder)}
    env.pop("PIP_EXTRA_INDEX_URL", None)
    env.pop("PIP_CONSTRAINT", None)
    maker = repository / "script" / "install-python-venv" / "environment.py"
    steps = (
        [sys.executable, "-I", str(maker), sys.executable, str(folder / "environment")],
        [str(python), "-I", "-m", "pip", "install", "--quiet", "--no-compile", *manifest["engine"]],
        [str(python), str(repository / "src/crowdperf/call/cm_home.py"), env["CM_REPOS"], str(repository)],
    )
    for words in steps:
        done = subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise BundleError(
                f"this step of the installation failed (exit code {done.returncode}): {shlex.join(words)}"
            )
    lines = [f"export {name}={shlex.quote(value)}" for name, value in settings(folder).items()]
    last = f'exec {shlex.quote(str(python))} -c {shlex.quote(PROGRAM)} "$@"'
    (folder / "cm").write_text("\n".join(["#!/bin/sh", *lines, last, ""]), encoding="utf-8")
    (folder / "cm").chmod(0o755)


def make_folder(bundle: zipfile.ZipFile, manifest: dict[str, Any], digest: str, folder: Path) -> None:
    """Unpacks and installs the bundle, or checks that this was done. Raises BundleError and OSError."""
    hint = f"hint: remove it, or give another one: --folder=FOLDER (now {folder})"
    if folder.exists():
        try:
            known = json.loads((folder / READY).read_text(encoding="utf-8"))["manifest_sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            raise BundleError(f"{folder} exists, but does not contain a complete bundle\n{hint}") from None
        if known != digest:
            raise BundleError(
                f"{folder} is of another bundle: its manifest has the SHA-256 {known}, here {digest}\n{hint}"
            )
        wrong = list(wrong_files(folder, manifest))
        if wrong:
            raise BundleError("\n  ".join([f"{len(wrong)} files in {folder} were changed:", *wrong[:5], hint]))
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        unpack(bundle, manifest, scratch)
        scratch.chmod(0o755)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    place_entries(folder, folder / "used-cache")
    install(folder, manifest)
    (folder / READY).write_text(json.dumps({"manifest_sha256": digest}) + "\n", encoding="utf-8")


def main(file: str, words: list[str]) -> int:
    """Check, unpack and run the bundle `file`. Returns the exit code, 1 for a bundle that cannot be used."""
    name = os.path.basename(file)
    parser = argparse.ArgumentParser(prog=name, usage=USAGE, description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--folder", type=Path, help="for its files (default: the path of the bundle without .pyz)")
    parser.add_argument("--check", action="store_true", help="only check this machine and the SHA-256 of every file")
    given, more = parser.parse_known_args(words)
    folder = Path(os.path.abspath(given.folder or os.path.splitext(file)[0]))
    try:
        with zipfile.ZipFile(file) as bundle:
            manifest, digest = read_manifest(bundle, name)
            check_machine(manifest, machine(), platform.libc_ver()[1], file)
            if given.check:
                for one, row in manifest["files"].items():
                    with bundle.open(f"files/{one}") as source:
                        copy_checked(source.read, one, row, None)
                print(f"{name}: {len(manifest['files'])} files, all with the SHA-256 of the manifest ({digest})")
                return 0
            make_folder(bundle, manifest, digest, folder)
    except (BundleError, KeyError, OSError, zipfile.BadZipFile) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    run = [word.replace(FOLDER_MARK, str(folder)) for word in manifest["command"]]
    command = [str(folder / "cm"), *run, f"--frozen={folder / 'crowdperf.lock'}", *more]
    print(f"+ {shlex.join(command)}", file=sys.stderr, flush=True)
    return os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[0], sys.argv[1:]))
