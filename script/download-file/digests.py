"""The SHA-256 of each downloaded file, written down at its first use: downloads.json in the folder of the step.

    {"format": 1, "files": {"model.onnx": {"url": "https://...", "size_bytes": 4, "sha256": "...", "checked": "md5"}}}

checked: which given checksum the file has, "" when none was given. A publisher often gives an MD5 only, or nothing: the
digest in here, kept by `cm lock script`, then tells the next download from another file.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import file_sha256, write_json

from . import checks, inputs

RECORD_FILE = "downloads.json"
FORMAT = 1


def record(path: Path, asked: inputs.FileRequest, folder: Path) -> dict[str, Any]:
    """Write what `path` is into `folder`/downloads.json, beside what is there, and return the row.

    Says on stderr when nothing vouches for the file. Reads the whole file unless its SHA-256 was just checked.
    """
    given = {checksum.algorithm: checksum.value for checksum in asked.checksums}
    row = {
        "url": inputs.mask_secrets(asked.urls[0]) if asked.urls else "",
        "size_bytes": path.stat().st_size,
        "sha256": given.get("sha256") or file_sha256(path),
        "checked": next(iter(given), ""),
    }
    _warn(path.name, row)
    content = {"format": FORMAT, "files": {**recorded(folder), path.name: row}}
    write_json(folder / RECORD_FILE, content, indent=1, sort_keys=True)
    return row


def recorded(folder: Path) -> Mapping[str, Any]:
    """Return the rows of `folder`/downloads.json by file name; none where it is missing or cannot be read."""
    try:
        rows = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return rows if isinstance(rows, dict) else {}


def locked_checksum(locked: Mapping[str, Any], name: str) -> checks.Checksum | None:
    """Return the SHA-256 that a lockfile has for a file; None when it has none."""
    value = locked.get("downloads", {}).get(name)
    return None if value is None else checks.parse("sha256", str(value))


def _warn(name: str, row: Mapping[str, Any]) -> None:
    if not row["checked"]:
        print(
            f"download-file: WARNING: no checksum is known for {name}, so the file cannot be verified. Its "
            f"SHA-256 is {row['sha256']} ({RECORD_FILE}). `cm lock script` keeps it for the next download",
            file=sys.stderr,
        )
    elif row["checked"] == "md5":
        way = "over http, which can be changed in transit, " if row["url"].startswith("http:") else ""
        print(
            f"download-file: {name} came {way}with an MD5 only. Its SHA-256 is {row['sha256']} ({RECORD_FILE})",
            file=sys.stderr,
        )
