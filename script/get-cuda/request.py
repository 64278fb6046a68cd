"""Rules of the recipe get-cuda for what is asked: from CM's env to one `Request`."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from crowdperf.call.values import text_of
from crowdperf.machine import versions

Source = Literal["installed", "pip", "prebuilt"]
FIRST_PIP_COMPILER = "13.0"
"""The first CUDA whose PyPI package nvidia-cuda-nvcc holds the program nvcc. The wheels nvidia-cuda-nvcc-cu12 have only
ptxas and nvvm, seen in 12.9.86 (20 November 2026)."""


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


def asked_in(env: Mapping[str, Any], values: Mapping[str, Any]) -> Request:
    """The request in a recipe's inputs, and in what the engine and the variations put into CM's env.

    Raises RequestError for a version that is none.
    """
    limits = {name: text_of(env, f"CM_{name.upper()}") for name in ("version", "version_min", "version_max")}
    fits = {name: values[name] or "" for name in ("for_cudnn", "for_tensorrt")}
    for name, text in {**limits, **fits}.items():
        if text and not re.fullmatch(r"\d+(\.\d+){0,3}", text):
            raise RequestError(
                f"--{name}={text} is not a version, such as 12.4 or 12.4.1.\n"
                '  hint: cm run script "get cuda" --version_min=12.0 --version_max=12.9'
            )
    source = cast(Source, text_of(env, "CM_CUDA_SOURCE") or "installed")
    only_in: tuple[str, ...] = ()
    if source == "installed":
        one = str(values["input"] or text_of(env, "CM_INPUT"))
        folders = values["path"] or text_of(env, "CM_TMP_PATH")
        only_in = (one,) if one else tuple(part for part in folders.split(":") if part)
    return Request(
        source,
        text_of(env, "CM_CUDA_FULL_TOOLKIT_INSTALL") != "no",
        *limits.values(),
        only_in,
        *fits.values(),
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
