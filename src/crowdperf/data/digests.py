"""Digests of files and of texts."""

import hashlib
from pathlib import Path

_PIECE_BYTES = 1 << 22
_IDENTITY_DIGITS = 16


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the hexadecimal digest of a file, read in pieces; `algorithm` is "sha256" or "md5"."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def short_identity(*texts: str) -> str:
    """Return 16 hex digits that stand for these texts in this order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:_IDENTITY_DIGITS]
