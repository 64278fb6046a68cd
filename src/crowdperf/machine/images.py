"""References of container images: their grammar, and the digest that pins what they hold. Pure."""

import re

REFERENCE = re.compile(
    r"(?P<name>(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d+)?/)?[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
"""An image reference after the grammar of github.com/distribution/reference (2025), SHA-256 only."""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def is_pinned(reference: str) -> bool:
    """Whether a reference holds a digest; a tag can be moved to another content."""
    return "@sha256:" in reference


def pinned(image: str, digest: str = "") -> str:
    """Return the reference of an image with a digest; without one as it is.

    Raises ValueError for what is no reference or no digest, and for a digest beside another one.
    """
    found = REFERENCE.fullmatch(image)
    if not found:
        raise ValueError(f"--image={image!r} is not a reference of an image: NAME:TAG or NAME@sha256:DIGEST")
    if not digest:
        return image
    if not DIGEST.fullmatch(digest):
        raise ValueError(
            f"--image_digest={digest!r}; allowed: sha256: and 64 hexadecimal digits (0 to 9, a to f)\n"
            f"hint: {find_digest(image.partition('@')[0])} prints it"
        )
    if found["digest"] and found["digest"] != digest:
        raise ValueError(f"--image_digest={digest} contradicts the digest in --image={image}")
    return f"{image.partition('@')[0]}@{digest}"


def find_digest(image: str) -> str:
    """The command that prints an image's digest, after the word `Digest:`; it asks the registry and fetches no layer.

    Source: docs.docker.com, docker buildx imagetools inspect, read 2026-11-23.
    """
    return f"docker buildx imagetools inspect {image}"
