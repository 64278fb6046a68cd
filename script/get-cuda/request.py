"""Rules of the recipe get-cuda for what is asked: from CM's env to one `Request`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from crowdperf.call.values import text_of
from crowdperf.machine import versions

SOURCES = ("installed", "pip", "prebuilt")
Source = Literal["installed", "pip", "prebuilt"]
FIRST_PIP_COMPILER = "13.0"
"""The first CUDA whose PyPI package nvidia-cuda-nvcc holds the program nvcc. The wheels nvidia-cuda-nvcc-cu12 have only
ptxas and nvvm, seen in 12.9.86 (20 November 2026)."""
VERSION_KEYS = ("CM_VERSION", "CM_VERSION_MIN", "CM_VERSION_MAX")


class RequestError(Exception):
    """The request cannot be met. The text says what failed, what was found and the command to try."""


class Request(NamedTuple):
    """What is asked. Texts are empty where nothing is asked; ``only_in`` names the folders to choose among."""

    source: Source = "installed"
    needs_compiler: bool = True
    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    only_in: tuple[str, ...] = ()
    cudnn: str = ""
    tensorrt: str = ""

    @property
    def limits_text(self) -> str:
        """The versions asked for, in words."""
        return versions.asked_text(self.exact, self.minimum, self.maximum)


def from_env(env: Mapping[str, Any]) -> Request:
    """The request in CM's env.

    Raises RequestError for a version that is none, and for limits that nothing can meet.
    """

    def text(key: str) -> str:
        return text_of(env, key)

    for key in (*VERSION_KEYS, "CM_CUDA_FOR_CUDNN", "CM_CUDA_FOR_TENSORRT"):
        if text(key) and not re.fullmatch(r"\d+(\.\d+){0,3}", text(key)):
            raise RequestError(
                f"{text(key)!r} ({key}) is not a version, such as 12.4 or 12.4.1.\n"
                '  hint: cm run script "get cuda" --version_min=12.0 --version_max=12.9'
            )
    source = text("CM_CUDA_SOURCE") or "installed"
    if source not in SOURCES:
        raise RequestError(
            f"CM_CUDA_SOURCE is {source!r}; allowed are {', '.join(SOURCES)}\n  hint: use _pip, _prebuilt"
        )
    places = (text("CM_CUDA_INPUT_PATH") or text("CM_INPUT"),) if source == "installed" else ("",)
    folders = text("CM_CUDA_SEARCH_PATHS") or text("CM_TMP_PATH") if source == "installed" else ""
    return Request(
        source=cast(Source, source),
        needs_compiler=text("CM_CUDA_FULL_TOOLKIT_INSTALL") != "no",
        exact=text("CM_VERSION"),
        minimum=text("CM_VERSION_MIN"),
        maximum=text("CM_VERSION_MAX"),
        only_in=tuple(filter(None, places)) or tuple(part for part in folders.split(":") if part),
        cudnn=text("CM_CUDA_FOR_CUDNN"),
        tensorrt=text("CM_CUDA_FOR_TENSORRT"),
    )


def pip_limits(asked: Request, driver_cuda: str) -> tuple[str, str]:
    """Oldest and newest version of the PyPI package cuda-toolkit to install: what is asked, no newer than the driver.

    ``driver_cuda`` is the newest CUDA that the driver runs, empty where no driver answers. An empty limit is none.
    Raises RequestError for a CUDA whose wheels have no compiler, where one is asked for.
    """
    minimum, maximum = asked.exact or asked.minimum, asked.exact or asked.maximum
    if asked.needs_compiler:
        if maximum and versions.key(maximum) < versions.key(FIRST_PIP_COMPILER):
            raise RequestError(
                f"PyPI has no nvcc for CUDA {maximum}: its wheels have one since {FIRST_PIP_COMPILER}.\n"
                f'  hint: cm run script "get cuda _prebuilt" --version={maximum}\n'
                '  hint: the libraries alone: cm run script "get cuda _pip,_lib-only" --version_max=' + maximum
            )
        minimum = max(minimum, FIRST_PIP_COMPILER, key=versions.key)
    if not maximum and driver_cuda and versions.key(driver_cuda) >= versions.key(minimum):
        maximum = driver_cuda
    # the package's own last number is not part of what drivers and users say: 13.0 means every 13.0.x
    return minimum, maximum + ".999" if maximum and maximum.count(".") < 2 else maximum
