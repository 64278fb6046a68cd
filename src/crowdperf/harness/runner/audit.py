"""The file that makes a LoadGen run a compliance test: in a folder that only this run uses, and gone after it.

LoadGen would take an audit.config in the current folder for its own. So the file lies in a folder that nothing else
makes, and an ordinary run gets the name of a file that is not there. What a killed run left, the next one removes.
(LoadGen's detail log says `audit.config` whatever the path was: no folder of the user gets into it.)
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.rules.compliance import audit_text

FOLDER = ".compliance-audit"
FILE = "audit.config"


def clear_audit(folder: Path) -> None:
    """Remove what a run that was killed left in its output folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (folder / FOLDER / FILE).unlink()
    with contextlib.suppress(OSError):  # not there, or somebody put something into it
        (folder / FOLDER).rmdir()


@contextlib.contextmanager
def audit_file(folder: Path, values: Mapping[str, int] | None) -> Iterator[Path]:
    """Give the settings file for LoadGen: one with `values`, or in an ordinary run (None) one that does not exist.

    Raises HarnessError where it cannot be written.
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
