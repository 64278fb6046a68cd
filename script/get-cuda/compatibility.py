"""Rules of the recipe get-cuda: whether a driver runs a CUDA, and whether a cuDNN or TensorRT is made for it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from crowdperf.machine import compatibility, versions

Level = Literal["runs", "unknown", "minor", "too-new"]
FIRST_MINOR_COMPATIBLE_MAJOR = 11
"""Since CUDA 11 a driver runs programs of newer minor versions of its own major version, but for new features and PTX
(NVIDIA, CUDA Compatibility, "CUDA Minor Version Compatibility"). Older toolkits run on any newer driver."""


class Fit(NamedTuple):
    """How well a toolkit goes with a driver, and the reason in words (empty when there is nothing to tell)."""

    level: Level
    reason: str = ""


def driver_fit(release: str, driver_cuda: str) -> Fit:
    """How a toolkit of ``release`` (``12.4``) goes with a driver that runs CUDA up to ``driver_cuda`` (``12.2``)."""
    if not driver_cuda:
        return Fit("unknown", "no NVIDIA driver answers, so the CUDA versions it supports are not known")
    kit, driver = versions.key(release), versions.key(driver_cuda)
    if kit[:2] <= driver[:2]:
        return Fit("runs", f"the driver runs CUDA up to {driver_cuda}")
    if kit[0] == driver[0] >= FIRST_MINOR_COMPATIBLE_MAJOR:
        return Fit(
            "minor",
            f"CUDA {release} is newer than the {driver_cuda} of the driver: its programs run by minor version "
            "compatibility, but not what needs the newer driver (PTX, new features)",
        )
    return Fit(
        "too-new",
        f"CUDA {release} is newer than the {driver_cuda} that the driver runs: it compiles, but its programs do not "
        "run until the driver is newer",
    )


def misfit(release: str, library: str, version: str) -> str:
    """Why a cuDNN or TensorRT of this version is not for CUDA ``release``, empty when it is.

    Raises ValueError when that is not known.
    """
    majors = compatibility.cuda_majors_of(library, version, with_newer=True)
    if not majors:
        raise ValueError(f"for which CUDA {library} {version} is made is not known to this recipe")
    return (
        ""
        if release.split(".")[0] in majors
        else f"{library} {version} is made for CUDA {' and '.join(majors)}, not {release}"
    )
