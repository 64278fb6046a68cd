"""Hooks of the recipe download-file: get one file into a folder, checked.

`inputs.py` says what is asked for, `download.py` does HTTP, `part.py` keeps what is there so far, `checks.py` verifies
files, `digests.py` writes their SHA-256 down.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import dataclasses
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from crowdperf.call.answers import failure
from crowdperf.call.values import text_of

from . import checks, digests, download, inputs, part

_OWN_PLACES = ("CM_DOWNLOAD_LOCAL_FILE_PATH", "CM_DOWNLOAD_PATH")
_PLACES = ("CM_DOWNLOAD_URL", "CM_DOWNLOAD_MIRRORS", "CM_DOWNLOAD_FILENAME", *_OWN_PLACES)
_HINT = "CM_MLPERF_DATA_OWN_COPY_HINT"
TERMINAL_PAUSE_S = 0.2
LINE_PAUSE_S = 1.0


def terminal_progress(
    name: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
) -> Callable[[int, int | None], None]:
    """A function to call with the bytes there and the bytes in all (None if unknown); it writes now and then."""
    is_terminal = stream.isatty()
    pause_s = TERMINAL_PAUSE_S if is_terminal else LINE_PAUSE_S
    started_s = last_s = clock()
    first_bytes = -1

    def report(done_bytes: int, total_bytes: int | None) -> None:
        nonlocal last_s, first_bytes
        now_s = clock()
        if first_bytes < 0:
            first_bytes = done_bytes
        is_end = total_bytes is not None and done_bytes >= total_bytes
        if now_s - last_s < pause_s and not is_end:
            return
        last_s = now_s
        rate = (done_bytes - first_bytes) / max(now_s - started_s, 1e-9)
        line = progress_line(name, done_bytes, total_bytes, rate)
        if is_terminal:
            stream.write(f"\r{line}" + ("\n" if is_end else ""))
        else:
            stream.write(line + "\n")
        stream.flush()

    return report


def progress_line(name: str, done_bytes: int, total_bytes: int | None, bytes_per_s: float) -> str:
    """One line of progress, sizes in MiB."""
    mebibyte = 1024 * 1024
    done = f"{done_bytes / mebibyte:.1f}"
    if total_bytes is None:
        amount = f"{done} MiB"
    else:
        percent = 100 * done_bytes // total_bytes if total_bytes else 100
        amount = f"{done} of {total_bytes / mebibyte:.1f} MiB ({percent} %)"
    return f"download {name}: {amount}, {bytes_per_s / mebibyte:.1f} MiB/s"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the dependencies it has; of what it sets only the name of a key is known before.

    Before a run it is asked whether a server can be reached, so that no package is installed for a run without data.
    """
    env = i["env"]
    env["CM_DOWNLOAD_FINAL_ENV_NAME"] = env.get("CM_DOWNLOAD_FINAL_ENV_NAME", "")
    if i.get("is_before_run") and all(map(env.knows, _PLACES)) and not any(env.get(key) for key in _OWN_PLACES):
        urls = inputs.addresses(str(env.get("CM_DOWNLOAD_URL") or ""), str(env.get("CM_DOWNLOAD_MIRRORS") or ""))
        is_remote = bool(urls) and all(url.startswith(("http://", "https://")) for url in urls)
        try:
            failures = download.unreachable(urls, inputs.proxies_in(env)) if is_remote else []
        except inputs.InputError as error:
            return failure(error)
        if failures:
            hint = text_of(env, _HINT) if env.knows(_HINT) else ""
            name = str(env.get("CM_DOWNLOAD_FILENAME") or urls[0].rpartition("/")[2])
            return failure(download.not_downloaded(name, failures, hint or download.OWN_COPY_HINT))
    return {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Downloads or takes the file and sets its keys; returns CM's answer."""
    env = i["env"]
    try:
        asked = _as_locked(inputs.asked_in(env, i["values"]), i.get("locked") or {})
        path = _local_file(asked) if asked.local_file is not None else _downloaded_file(asked)
    except (inputs.InputError, checks.ChecksumError, download.DownloadError, part.PartBusy) as error:
        return {"return": 1, "error": str(error)}
    if asked.local_file is None and env.get("CM_DOWNLOAD_RECORD") != "no":
        digests.record(path, asked, Path.cwd())
    env["CM_DOWNLOAD_DOWNLOADED_PATH"] = str(path)
    env["CM_DOWNLOAD_DOWNLOADED_FILENAME"] = path.name
    env["CM_GET_DEPENDENT_CACHED_PATH"] = str(path)
    if asked.final_env_name:
        env[asked.final_env_name] = str(path)
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Declares the file when it lies in the current folder, which is the entry's when the recipe is cached, and gives
    its SHA-256 to a lockfile."""
    path = Path(str(i["env"]["CM_DOWNLOAD_DOWNLOADED_PATH"]))
    downloads = {name: row["sha256"] for name, row in digests.recorded(Path.cwd()).items() if name == path.name}
    locked = {"locked": {"downloads": downloads}} if downloads else {}
    return {"return": 0, "files": [str(path)] if Path.cwd() in path.parents else [], **locked}


def _as_locked(asked: inputs.FileRequest, locked: dict[str, Any]) -> inputs.FileRequest:
    """The request with the SHA-256 that a lockfile has for the file, if it has one."""
    checksum = digests.locked_checksum(locked, asked.target.name)
    if checksum is None or checksum in asked.checksums:
        return asked
    return dataclasses.replace(asked, checksums=(checksum, *asked.checksums))


def _local_file(asked: inputs.FileRequest) -> Path:
    """The user's own file, where it lies, or a copy of it when a folder or a name was given."""
    source = asked.local_file
    assert source is not None
    checks.verify(source, asked.checksums)
    if not asked.is_place_given:
        return source
    target = asked.target
    if target.exists() and target.samefile(source):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    shutil.copyfile(source, partial)
    partial.replace(target)
    return target


def _downloaded_file(asked: inputs.FileRequest) -> Path:
    target = asked.target
    if target.is_file() and asked.checksums:
        try:
            checks.verify(target, asked.checksums)
        except checks.ChecksumError as error:
            print(f"download-file: {error}, downloading again", file=sys.stderr)
        else:
            print(f"download-file: {target} is there already and has the right checksum", file=sys.stderr)
            return target
    target.parent.mkdir(parents=True, exist_ok=True)
    return download.download(asked, terminal_progress(target.name, sys.stderr)).path
