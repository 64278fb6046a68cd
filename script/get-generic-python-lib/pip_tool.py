"""Asks the chosen Python for a package and lets its pip install it, one install per environment at a time."""

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import write_json

from . import index_access, requirement

ASK_TIMEOUT_S = 120
INSTALL_TIMEOUT_S = 3 * 3600  # torch and its companions are several GB
BREAK_OPTION = "--break-system-packages"
LITTLE_SPACE_MB = 100
"""Below it, a pip that failed probably found no space: onnxruntime alone has 28 MB, and twice that when unpacked."""
HASHES_NAME = ".pip-hashes.json"
"""In a virtual environment: what pip said of the archives that it installed; pip itself forgets it."""
REPORT_SINCE = "22.2"
"""`pip install --report` (pip changelog, 2022-07-21)."""
QUESTION = Path(__file__).with_name("describe_package.py")


class PipError(Exception):
    """The package could not be provided. The text says why and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A package that is there: its version, and the metadata file that goes when it is removed or upgraded.

    ``packages`` are it and all it needs: name to ``version`` and, where pip told it at the install, ``sha256``.
    ``module_file`` is the file that importing it reads first, empty where that is not known.
    """

    version: str
    metadata_path: str
    packages: Mapping[str, Mapping[str, str]]
    module_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a Python says about itself and about one package (see describe_package.py)."""

    version: str | None
    metadata_path: str | None
    is_virtual: bool
    is_managed: bool
    has_pip: bool
    prefix: str
    half_made: tuple[str, ...]
    packages: Mapping[str, str] = field(default_factory=dict)
    pip_version: str = ""
    module_file: str = ""
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to install: options for pip, proxies, and what a lock wants (name to ``version`` and ``sha256``).

    is_silent: what pip writes is shown only when it fails.
    """

    options: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)
    locked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_silent: bool = False


def provide(python: Path, asked: requirement.Requirement, way: Way) -> Installed:
    """The package, installed when it is missing, out of range, forced, has extras or is not what is locked.

    Raises PipError.
    """
    described = describe(python, asked)
    if (there := _acceptable(described, asked, way)) and not asked.is_forced and not asked.extras:
        return there
    _check_may_install(python, asked, described, way.options)
    with _lock(described) as lock:
        described = describe(python, asked)
        # Another process may have installed it while this one waited for the lock.
        if (there := _acceptable(described, asked, way)) and not asked.is_forced and not asked.extras:
            return there
        if described.is_virtual:
            _remove_half_made(described)
        if _remove_rivals(python, asked, described, way, lock):
            described = describe(python, asked)
        _install(python, asked, described, way, lock)
        described = describe(python, asked)
        if described.is_virtual and described.module_file:
            _compile(python, Path(described.module_file))
    if there := _acceptable(described, asked, way):
        return there
    raise PipError(
        f"pip installed {asked.for_pip} into {python}, but {asked.name} is then "
        f"{described.version or 'missing'}\nhint: is {asked.name!r} the name of the package on the index?"
    )


def describe(python: Path, asked: requirement.Requirement) -> Description:
    """What a Python says about itself and a package. Run with -I: PYTHONPATH and the user's packages have no say."""
    command = [str(python), "-I", str(QUESTION), asked.name, asked.extras.strip("[]"), ",".join(asked.replaces)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=ASK_TIMEOUT_S, check=False
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise PipError(_no_answer(python, str(error))) from error
    if not isinstance(answer, dict):
        raise PipError(_no_answer(python, " ".join(done.stderr.strip().splitlines()[-1:])))
    answer.update({name: tuple(answer[name]) for name in ("half_made", "rivals")})
    return Description(**answer)


def _no_answer(python: Path, said: str) -> str:
    return (
        f"the Python {python} does not report its packages ({said[:300]}). Python 3.8 or "
        'newer is needed\nhint: cm run script "get python3" --version_min=3.10 --new'
    )


def _acceptable(described: Description, asked: requirement.Requirement, way: Way) -> Installed | None:
    if described.version is None or described.metadata_path is None or described.rivals:
        return None
    if not asked.takes(described.version):
        return None
    hashes = _known_hashes(described)
    packages = {
        name: {"version": version, **({"sha256": hashes[name, version]} if (name, version) in hashes else {})}
        for name, version in sorted(described.packages.items())
    }
    if any(packages.get(name, {}).get("version") != wanted["version"] for name, wanted in way.locked.items()):
        return None
    return Installed(
        version=described.version,
        metadata_path=described.metadata_path,
        packages=packages,
        module_file=described.module_file,
    )


def _known_hashes(described: Description) -> dict[tuple[str, str], str]:
    """(name, version) to the SHA-256 of the archive that it was installed from in this environment."""
    try:
        value = json.loads((Path(described.prefix) / HASHES_NAME).read_text(encoding="utf-8"))
        return {(name, row["version"]): row["sha256"] for name, row in value.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _remember_hashes(described: Description, report: Path) -> None:
    """Adds what pip's report tells to the hashes of a virtual environment; the caller holds its lock."""
    try:
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    except (OSError, ValueError, KeyError):
        return  # an old pip, or nothing had to be installed
    rows = {
        name: {"version": version, "sha256": digest} for (name, version), digest in _known_hashes(described).items()
    }
    for item in installed:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        if digest := sha256_of(item.get("download_info", {}).get("archive_info", {})):
            rows[name] = {"version": item["metadata"]["version"], "sha256": digest}
    write_json(Path(described.prefix) / HASHES_NAME, rows, indent=1, sort_keys=True, end="")


def sha256_of(archive: Mapping[str, Any]) -> str:
    """The SHA-256 in the ``archive_info`` of a report, else an empty text.

    Before pip 23.1 (Debian 12 and Python 3.10 bring 23.0.1) it is in ``hash`` only, as ``sha256=<digits>``
    (PyPA direct URL specification, "Archive URLs").
    """
    algorithm, _, digest = str(archive.get("hash", "")).partition("=")
    return str(archive.get("hashes", {}).get("sha256", digest if algorithm == "sha256" else ""))


def _check_may_install(
    python: Path, asked: requirement.Requirement, described: Description, options: tuple[str, ...]
) -> None:
    made = 'cm run script "install python-venv" --name=mine, then run this with --adr.python.name=mine'
    if described.is_managed and BREAK_OPTION not in options:
        raise PipError(
            f"{asked.for_pip} is not in {python} (found: {described.version or 'none'}), and "
            f"this Python belongs to the system's package manager\nhint: {made}"
        )
    if not described.has_pip:
        raise PipError(f"{python} has no pip to install {asked.for_pip} with\nhint: {made}")


def _remove_half_made(described: Description) -> None:
    """Removes what an interrupted pip left in this virtual environment, which pip would take for installed."""
    for folder in described.half_made:
        if Path(described.prefix) in Path(folder).parents:
            print(f"get-generic-python-lib: removing the half-made {folder}", file=sys.stderr)
            shutil.rmtree(folder)


def _remove_rivals(
    python: Path, asked: requirement.Requirement, described: Description, way: Way, lock: int
) -> tuple[str, ...]:
    """Uninstalls other builds of the package, and it with them: they overwrite each other's files.

    Returns what was uninstalled.
    """
    broken = (asked.name,) if described.rivals and described.version is not None else ()
    for name in (*described.rivals, *broken):
        other = requirement.Requirement(name=name, extras="", limits="", is_forced=False)
        _run_pip([str(python), "-I", "-m", "pip", "uninstall", "--yes", name], [], other, way, lock)
    return (*described.rivals, *broken)


def _install(python: Path, asked: requirement.Requirement, described: Description, way: Way, lock: int) -> None:
    """Runs pip. It keeps the lock, so that it stays locked should this process be killed and pip go on."""
    access = index_access.adapted(python, way.options, way.proxies)
    way = dataclasses.replace(way, options=access.options)
    for note in access.notes:
        _say_once(f"get-generic-python-lib: {note}")
    with tempfile.TemporaryDirectory(prefix="pip-install-") as name:
        folder = Path(name)
        command = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        is_refused = described.version is not None and not asked.takes(described.version)
        command += ["--force-reinstall"] if is_refused and asked.refused_build else []  # 2.13.0 would do for pip
        command += ["--no-compile"] if described.is_virtual else []
        command += _what_to_install(asked, way, folder)
        report = folder / "report.json"
        has_report = requirement.fits(described.pip_version or "0", f">={REPORT_SINCE}")
        told = ["--report", str(report)] if has_report else []
        try:
            _run_pip(command, told, asked, way, lock)
        except PipError as error:
            raise PipError("\n".join((*access.notes, str(error)))) from error
        if described.is_virtual:
            _remember_hashes(described, report)


def _compile(python: Path, module_file: Path) -> None:
    """Imports what was installed, which compiles the files that this needs; others are compiled by their first import.

    For numpy, onnx and onnxruntime these are a fifth of all files. Whether it can be imported is not judged here.
    """
    name = module_file.parent.name if module_file.stem == "__init__" else module_file.stem
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime 1.31 makes a device id in the user's home and reports use
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [str(python), "-I", "-c", f"import {name}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )


@functools.cache
def _say_once(line: str) -> None:
    """Prints a line, once in each process."""
    print(line, file=sys.stderr, flush=True)


def _what_to_install(asked: requirement.Requirement, way: Way, folder: Path) -> list[str]:
    """pip's words for the package, or for exactly the archives that a lock names."""
    force = ["--force-reinstall", "--no-deps"] if asked.is_forced else []
    if not way.locked:
        return [*force, *way.options, asked.for_pip]
    has_hashes = all("sha256" in row for row in way.locked.values())
    lines = [
        f"{name}=={row['version']}" + (f" --hash=sha256:{row['sha256']}" if has_hashes else "")
        for name, row in sorted(way.locked.items())
    ]
    path = folder / "requirements.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    checked = ["--require-hashes"] if has_hashes else []
    return [*force[:1], "--no-deps", *checked, *way.options, "--requirement", str(path)]


def _run_pip(command: list[str], told: list[str], asked: requirement.Requirement, way: Way, lock: int) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | dict(way.proxies)
    shown = requirement.masked(command)
    if not way.is_silent:
        print(f"get-generic-python-lib: {shown}", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            [*command, *told],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if way.is_silent else 2,
            stderr=subprocess.STDOUT if way.is_silent else None,
            env=env,
            pass_fds=(lock,),
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipError(f"{shown} did not end: {error}\nhint: run it by hand") from error
    if done.returncode != 0:
        if way.is_silent:
            print(requirement.without_logins(done.stdout.decode("utf-8", "replace")), file=sys.stderr, flush=True)
        raise PipError(
            f"pip could not install {asked.for_pip} into {command[0]} (exit code "
            f"{done.returncode}, its output is above and in the log). The command was: {shown}\n"
            f"hint: {_way_out(Path(command[0]).parent)}"
        )


def _way_out(environment: Path) -> str:
    """What to try after a pip that failed: more space, where little is left for what it writes, else another source."""
    places = (
        (environment, "", "free some (df -h), or move the cache: export CROWDPERF_CACHE=/big/disk/cache"),
        (Path(tempfile.gettempdir()), "temporary files in ", "free some, or export TMPDIR=/another/folder"),
    )
    for place, words, way_out in places:
        free_mb = shutil.disk_usage(place).free // 1_000_000
        if free_mb < LITTLE_SPACE_MB:
            return f"only {free_mb} MB are left for {words}{place}: {way_out}"
    return "check the name, the version and the network. --index_url or --find_links choose another source"


# Not crowdperf.kit.file_locks: a base recipe depends on no library of MLPerf, and a file in /tmp must not be a link.
@contextlib.contextmanager
def _lock(described: Description) -> Iterator[int]:
    """Waits until no other pip of ours works on this environment; gives the descriptor of the lock."""
    if described.is_virtual:
        path = Path(described.prefix) / ".pip-install.lock"
    else:
        digest = hashlib.sha256(os.fsencode(described.prefix)).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"pip-install-{os.getuid()}-{digest}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PipError(
            f"{path} cannot be written ({error.strerror}), so packages cannot be installed there\n"
            'hint: cm run script "install python-venv" --name=mine, then --adr.python.name=mine'
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"get-generic-python-lib: waiting for another pip (lock {path})", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
