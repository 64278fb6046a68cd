"""Facts of the recipe get-cuda: which CUDA a driver runs, and for which CUDA cuDNN and TensorRT are made."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Level = Literal["runs", "unknown", "minor", "too-new"]
FIRST_MINOR_COMPATIBLE_MAJOR = 11
"""Since CUDA 11 a driver runs programs of newer minor versions of its own major version, but for new features and PTX
(NVIDIA, CUDA Compatibility, "CUDA Minor Version Compatibility"). Older toolkits run on any newer driver."""

CUDNN_MAJORS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((9, 12), (12, 13)),
    ((9, 11), (12,)),
    ((8, 8), (11, 12)),
    ((8, 0), (10, 11)),
)
"""From this cuDNN on: the major versions of CUDA it is released for. NVIDIA cuDNN support matrices of 8.7 to 9.5; first
and last versions of the PyPI packages nvidia-cudnn-cu11 (last 9.10.2) and -cu13 (first 9.12.0), 21 November 2026."""
CUDNN_KNOWN_UP_TO = 9

TENSORRT_MAJORS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((10, 13, 2), (12, 13)),
    ((8, 6), (11, 12)),
    ((8, 0), (10, 11)),
)
"""The same for TensorRT: NVIDIA TensorRT support matrices 8.0.1, 8.5.3, 8.6.1, 10.1, 10.6, 10.15.1; release notes of
10.13.2 (18 August 2025) for CUDA 13 added and 11 dropped."""
TENSORRT_KNOWN_UP_TO = 10


class Fit(NamedTuple):
    """How well a toolkit goes with a driver, and the reason in words (empty when there is nothing to tell)."""

    level: Level
    reason: str = ""


def driver_fit(release: str, driver_cuda: str) -> Fit:
    """How a toolkit of ``release`` (``12.4``) goes with a driver that runs CUDA up to ``driver_cuda`` (``12.2``)."""
    if not driver_cuda:
        return Fit("unknown", "no NVIDIA driver answers here, so what it could run is not known")
    kit, driver = _numbers(release), _numbers(driver_cuda)
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


def cudnn_misfit(release: str, cudnn: str) -> str:
    """Why a cuDNN of this version is not for CUDA ``release``, empty when it is; raises ValueError when not known."""
    return _misfit(release, ("cuDNN", cudnn), CUDNN_MAJORS, CUDNN_KNOWN_UP_TO)


def tensorrt_misfit(release: str, tensorrt: str) -> str:
    """The same for TensorRT."""
    return _misfit(release, ("TensorRT", tensorrt), TENSORRT_MAJORS, TENSORRT_KNOWN_UP_TO)


def _misfit(
    release: str,
    library: tuple[str, str],
    rows: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
    known_up_to: int,
) -> str:
    name, version = library
    asked = _numbers(version)
    majors = next((made_for for first, made_for in rows if asked >= first[: len(asked)]), None)
    if majors is None or asked[0] > known_up_to:
        raise ValueError(f"for which CUDA {name} {version} is made is not known to this recipe")
    if _numbers(release)[0] in majors:
        return ""
    return f"{name} {version} is made for CUDA {' and '.join(str(major) for major in majors)}, not {release}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
