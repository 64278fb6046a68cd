"""The upload token of a collector on this machine, where only the user who started it can read it.

Who shares a result with a collector that the same user has started need not copy the token: it lies beside the user's
key, in a file for each port. A collector on another machine has no such file here.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.store.signatures import key_folder

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LONGEST = 4096


def _file(port: int, environ: Mapping[str, str]) -> Path:
    return key_folder(environ) / "collectors" / str(port)


def remember_token(port: int, token: str, environ: Mapping[str, str]) -> None:
    """Keep the token of the collector on a port, for this user only; a folder that cannot be written is no error."""
    path = _file(port, environ)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        write_bytes_whole(path, token.encode("ascii"), 0o600)


def forget_token(port: int, environ: Mapping[str, str]) -> None:
    """Forget the token of a collector that ended: another user's program may have its port next."""
    with contextlib.suppress(OSError):
        _file(port, environ).unlink()


def known_token(collector: str, environ: Mapping[str, str]) -> str:
    """The token of a collector at a loopback address that this user has started; empty where there is none."""
    parts = urlsplit(collector)
    if parts.hostname not in LOOPBACK or parts.port is None:
        return ""
    try:
        return _file(parts.port, environ).read_text(encoding="ascii")[:_LONGEST].strip()
    except (OSError, ValueError):
        return ""
