"""Reads the file with the secrets of a sweep: NAME=VALUE lines, which only their owner can read.

OPENAI_API_KEY=...
"""

import os
import re
from pathlib import Path

_LARGEST_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class WrongSecrets(ValueError):
    """The file cannot be used; the text says why and shows no value."""


def read_secrets(path: Path | None) -> dict[str, str]:
    """The variables of a file of secrets, none without a file. Raises WrongSecrets, OSError."""
    if path is None:
        return {}
    if not path.is_file():
        raise WrongSecrets(f"{path} is not a file; try: install -m 600 /dev/null {path}, then NAME=VALUE lines in it")
    if path.stat().st_mode & 0o077 or path.stat().st_uid != os.getuid():
        raise WrongSecrets(f"{path} must be your own file with mode 0600. Try: chmod 600 {path}")
    if path.stat().st_size > _LARGEST_BYTES:
        raise WrongSecrets(f"{path} has {path.stat().st_size:,} bytes, allowed: at most {_LARGEST_BYTES:,} bytes")
    found = {}
    for number, line in enumerate(path.read_bytes().decode("utf-8", "surrogateescape").splitlines(), 1):
        name, mark, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith("#"):
            if not mark or not _NAME.fullmatch(name.strip()):
                raise WrongSecrets(f"{path}, line {number}, must be NAME=VALUE, without export (it is not shown here)")
            found[name.strip()] = value
    return found
