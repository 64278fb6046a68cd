"""Base images: a small table with digests, and what a reference of a user may look like.

A digest pins the content: an engine refuses what does not fit it. The digests of the table are those of the lists over
all platforms, as several public files had them; this project could not reach a registry to compare them (2026-11-21).
For an image that is not in the table no digest is invented: the engine resolves the tag before it builds.
"""

import re
from typing import NamedTuple

from crowdperf.machine.images import REFERENCE, is_pinned

from .shell_words import RequestError


class Base(NamedTuple):
    """A base image: its reference, where its digest was found, and when. ``source`` is empty for a user's own."""

    reference: str
    source: str = ""
    seen: str = ""

    @property
    def is_pinned(self) -> bool:
        """Whether the reference holds a digest."""
        return is_pinned(self.reference)

    @property
    def without_tag(self) -> str:
        """The reference without its tag where it has a digest: Apptainer refuses one with both."""
        found = REFERENCE.fullmatch(self.reference)
        return f"{found['name']}@{found['digest']}" if found and found["digest"] else self.reference

    @property
    def short(self) -> str:
        """The reference as a word for the name of a folder: no digest, nothing but letters, digits, dot and dash."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.reference.split("@")[0])


PYTHON = "sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b"
CUDA = "sha256:da6791294b0b04d7e65d87b7451d6f2390b4d36225ab0701ee7dfec5769829f5"
UBUNTU = "sha256:3c61d3759c2639d4b836d32a2d3c83fa0214e36f195a3421018dbaaf79cbe37f"
TABLE = {
    "python": Base(
        f"docker.io/library/python:3.11-slim-bookworm@{PYTHON}",
        "public Dockerfiles that agree, one was, by its comment, compared with Docker's repo-info on 2026-09-22",
        "2026-11-21",
    ),
    "cuda": Base(
        f"docker.io/nvidia/cuda:12.4.1-devel-ubuntu22.04@{CUDA}",
        "public Dockerfiles and build records that agree",
        "2026-11-21",
    ),
    "ubuntu": Base(
        f"docker.io/library/ubuntu:22.04@{UBUNTU}",
        "public Dockerfiles and a recorded pull that agree",
        "2026-11-21",
    ),
}
DEFAULT = "python"


def base_of(asked: str) -> Base:
    """The base image for a name of the table or a reference; empty text: the default. Raises RequestError."""
    if not asked or asked in TABLE:
        return TABLE[asked or DEFAULT]
    if not REFERENCE.fullmatch(asked):
        raise RequestError(
            f"--base_image={asked!r} is not a reference of an image",
            f"{', '.join(TABLE)}, NAME, NAME:TAG or NAME:TAG@sha256:DIGEST (64 hexadecimal digits)",
            "--base_image=ubuntu:24.04",
        )
    return Base(asked)


def resolved(base: Base, digests: object) -> Base | None:
    """The base with the digest that an engine tells of it (its ``RepoDigests``); None when it tells none.

    The digest has to belong to the same repository; engines write Docker Hub's names in several ways.
    """
    wanted = _repository(base.reference)
    for text in digests if isinstance(digests, list) else ():
        if isinstance(text, str) and REFERENCE.fullmatch(text) and "@" in text and _repository(text) == wanted:
            return base._replace(reference=f"{base.reference}@{text.partition('@')[2]}")
    return None


def _repository(reference: str) -> str:
    found = REFERENCE.fullmatch(reference)
    name = found["name"] if found else reference
    for prefix in ("docker.io/", "library/"):
        name = name.removeprefix(prefix)
    return name
