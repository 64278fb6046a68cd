"""The commands that carry a scratch space to another machine. They are printed, never run.

Low-power targets (Azure's README asks for it, v4.1) get their data from a machine that prepared it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from .folders import NAMES


def export_text(scratch: Path, archive: str) -> str:
    """What to type on the machine that has the data: an archive with its checksum, or a copy without an archive."""
    place, file = shlex.quote(str(scratch)), shlex.quote(archive)
    return "\n".join(
        (
            f"To move {scratch} to another machine (nothing was run):",
            f"  du -sh {place}/*",
            f"  tar -C {place} -cf {file} {' '.join(NAMES)}",
            f"  sha256sum {file} > {shlex.quote(archive + '.sha256')}",
            "or, with ssh and without an archive in between:",
            f"  rsync -a --partial --info=progress2 {place}/ USER@TARGET:FOLDER/",
            "then on the target: cm run script --tags=get,mlperf,scratch,space,_import --path=FOLDER",
        )
    )


def import_text(scratch: Path, archive: str) -> str:
    """What to type on the target: check the archive, look into it, unpack it beside what is there."""
    place, file = shlex.quote(str(scratch)), shlex.quote(archive)
    return "\n".join(
        (
            f"To fill {scratch} from an archive of another machine (nothing was run):",
            f"  sha256sum -c {shlex.quote(archive + '.sha256')}",
            f"  tar -tf {file} | head     # only {', '.join(NAMES)} should be in it",
            f"  tar -C {place} --keep-old-files -xf {file} {' '.join(NAMES)}",
            f"  cm run script --tags=get,mlperf,scratch,space,_verify --path={place}",
        )
    )
