"""Turns what goes wrong outside the harness, a full disk or no memory, into errors with a cause and a way out.

LoadGen writes its logs without looking whether the disk takes them: a run on a full disk ends as if all were well and
leaves logs that are cut off. So they are looked at before a result is written.
"""

import errno
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LoadGenLog, LogError, read_run_logs
from crowdperf.rules.names import Mode

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_SPACE_HINT = "free some space or choose another --output_dir (or --results_dir), then rerun"
_MEMORY_HINT = (
    "use a smaller batch_size, fewer instances or a shorter run (LoadGen generates all queries before it starts), "
    "or a machine with more memory. ulimit -v and a container's limit also count"
)
_MEMORY_WORDS = ("bad_alloc", "failed to map segment", "cannot allocate memory")
"""How libraries say that there was no memory: the C++ library, the loader, the C library; in lower case."""

_THREAD_WORDS = ("can't start new thread", "unable to start watchdog thread", "resource temporarily unavailable")
"""How Python, its faulthandler and the C library say that no thread or process could be started; in lower case."""

_THREAD_HINT = (
    "allow more processes and threads (ulimit -u, pids.max of the control group, --pids-limit of a container), or use "
    "fewer instances and threads. A limit of memory (ulimit -v) also stops threads"
)
_MOST_OPENBLAS_THREADS = 64
"""As many are in numpy's wheels for Linux on x86-64 (2.4.6: MAX_THREADS=64 in numpy.show_config())."""

_FEW_BYTES = 1024 * 1024
_TAIL_BYTES = 64


def free_bytes(folder: Path) -> int | None:
    """Return what can still be written in `folder`; None where the system does not tell."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def explained(error: BaseException) -> HarnessError | None:
    """Return the error to show for one that means a full disk or no memory; None for any other.

    A HarnessError is explained too where its cause is one of them, because its own hint leads astray then.
    """
    cause = error.__cause__ if isinstance(error, HarnessError) else error
    if isinstance(cause, OSError) and cause.errno in _NO_SPACE:
        return HarnessError(f"cannot write {cause.filename or 'a file'}: {cause.strerror}", _SPACE_HINT)
    is_out = isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM)
    if is_out or (cause is not None and any(words in str(cause).lower() for words in _MEMORY_WORDS)):
        return HarnessError(f"there was not enough memory: {str(cause) or type(cause).__name__}", _MEMORY_HINT)
    if cause is not None and any(words in str(cause).lower() for words in _THREAD_WORDS):
        return HarnessError(f"no more threads or processes could be started: {cause}", _THREAD_HINT)
    return None


def require_threads(environment: Mapping[str, str]) -> None:
    """Raise HarnessError where fewer threads can be started than OpenBLAS starts when numpy is imported: it ends the
    process then as Ctrl-C does. environment: the variables, of which OPENBLAS_NUM_THREADS and OMP_NUM_THREADS count."""
    said = environment.get("OPENBLAS_NUM_THREADS") or environment.get("OMP_NUM_THREADS") or ""
    count = int(said) if said.isdecimal() else min(os.cpu_count() or 1, _MOST_OPENBLAS_THREADS)
    is_over = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count - 1):  # its first one is the process's own
            thread = threading.Thread(target=is_over.wait, daemon=True, name="probe")
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise explained(error) or error from error
    finally:
        is_over.set()
        for thread in started:
            thread.join()


def _is_closed_list(path: Path) -> bool:
    """Whether a file ends as a JSON list does."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().rstrip().endswith(b"]")
    except OSError:
        return False


def cut_off_log(paths: RunPaths, mode: Mode) -> str:
    """Return what is wrong with the logs that no parser would notice; empty when nothing is."""
    if mode is Mode.ACCURACY and not _is_closed_list(paths.accuracy_log):
        return f"{paths.accuracy_log.name} ends in the middle of its list"
    return ""


def _incomplete_logs(paths: RunPaths, what: str) -> HarnessError:
    """Return the error for logs that LoadGen left incomplete; `what` says in which way."""
    left = free_bytes(paths.folder)
    if left is not None and left < _FEW_BYTES:
        return HarnessError(
            f"LoadGen left no complete logs: {what}. The disk of {paths.folder} is full ({left} bytes free)",
            _SPACE_HINT,
        )
    hint = "look for its message above. A limit on the size of files (ulimit -f) and a disk quota also truncate logs"
    return HarnessError(f"LoadGen left no complete logs in {paths.folder}: {what}", hint)


def read_whole_logs(paths: RunPaths, mode: Mode) -> LoadGenLog:
    """Return what LoadGen's logs say; raises HarnessError where they were cut off, which LoadGen itself does not
    notice."""
    try:
        log = read_run_logs(paths)
    except LogError as error:
        raise _incomplete_logs(paths, str(error)) from error
    if what := cut_off_log(paths, mode):
        raise _incomplete_logs(paths, what)
    return log
