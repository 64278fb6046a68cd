"""Digests of texts."""

import hashlib

_IDENTITY_DIGITS = 16


def short_identity(*texts: str) -> str:
    """Return 16 hex digits that stand for these texts in this order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()[:_IDENTITY_DIGITS]
