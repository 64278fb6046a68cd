"""The file that makes a LoadGen run a compliance test: in a folder that only this run uses, and deleted after it.

LoadGen would use any audit.config in the current folder. So the file is in a private folder, and an ordinary run gets
the name of a file that does not exist. The file of a killed run is removed by the next one. (LoadGen's detail log has
`audit.config` for any path: the user's folders are not in it.)
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.rules.compliance import audit_text

FOLDER = ".compliance-audit"
FILE = "audit.config"


def clear_audit(folder: Path) -> None:
    """Remove the file of a killed run from its output folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (folder / FOLDER / FILE).unlink()
    with contextlib.suppress(OSError):  # not there, or somebody put something into it
        (folder / FOLDER).rmdir()


@contextlib.contextmanager
def audit_file(folder: Path, values: Mapping[str, int] | None) -> Iterator[Path]:
    """Yield the settings file for LoadGen: one with `values`, or in an ordinary run (None) one that does not exist.

    Raises HarnessError if it cannot be written.
    """
    clear_audit(folder)
    path = folder / FOLDER / FILE
    if values is None:
        yield path
        return
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(audit_text(values), encoding="ascii")
    except OSError as error:
        message = f"cannot write the settings of the compliance test to {path}: {error.strerror}"
        raise HarnessError(message, "give another output_dir") from error
    try:
        yield path
    finally:
        clear_audit(folder)
