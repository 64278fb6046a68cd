"""The decision of the recipe get-cuda: which of the toolkits of a machine to take, and why not the others. Pure.

A toolkit is refused when it lacks a part, is outside the versions asked for, or does not fit the cuDNN or TensorRT
asked for. Of the others the best by these, weightiest first: what the driver runs; what CUDA_HOME or CUDA_PATH names;
the newest; the first on PATH.

Rules of the recipe get-cuda: whether a driver runs a CUDA, and whether a cuDNN or TensorRT is made for it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from crowdperf.machine import compatibility, toolkits, versions

from .request import Request

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


GIVEN = "folder given"
"""How crowdperf.machine.toolkits marks the folders that the caller named."""
HOME_NAMES = ("CUDA_HOME", "CUDA_PATH")
_RANK = {"runs": 0, "unknown": 0, "minor": 1, "too-new": 2}


class RatedToolkit(NamedTuple):
    """A toolkit, why it is refused (empty when it is not), how it goes with the driver, and other remarks."""

    kit: toolkits.Toolkit
    refusal: str
    fit: Fit
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line: what it is, where it was found, and what is to be said of it."""
        where = ", ".join(self.kit.found_in)
        said = self.refusal or "; ".join(filter(None, (self.fit.reason, *self.remarks)))
        return f"CUDA {self.kit.version} in {self.kit.home} (by {where}): {said}"


class Choice(NamedTuple):
    """All toolkits, best first, the refused ones last; ``chosen`` is None when each is refused."""

    chosen: RatedToolkit | None
    judged: tuple[RatedToolkit, ...]

    @property
    def reason(self) -> str:
        """Why this one, where there was a choice."""
        others = [one for one in self.judged if not one.refusal and one is not self.chosen]
        if self.chosen is None or not others:
            return "the only compatible one"
        best, next_best = self.chosen, others[0]
        if _RANK[best.fit.level] < _RANK[next_best.fit.level]:
            return f"the driver runs it, CUDA {next_best.kit.version} it does not (fully)"
        if _is_named(best.kit) and not _is_named(next_best.kit):
            names = [name for name in HOME_NAMES if name in best.kit.found_in]
            return f"{' and '.join(names)} says so"
        if versions.key(best.kit.version) > versions.key(next_best.kit.version):
            return "the newest compatible one"
        return "the first on PATH of the same version"


def choose(kits: Sequence[toolkits.Toolkit], asked: Request, driver_cuda: str) -> Choice:
    """The toolkit to take; ``driver_cuda`` is the newest CUDA of the driver, empty where none answers."""
    rows = [judge(kit, asked, driver_cuda) for kit in kits if not asked.only_in or GIVEN in kit.found_in]
    rows.sort(key=lambda one: (bool(one.refusal), *_order(one)))
    chosen = rows[0] if rows and not rows[0].refusal else None
    return Choice(chosen, tuple(rows))


def judge(kit: toolkits.Toolkit, asked: Request, driver_cuda: str) -> RatedToolkit:
    """What is to be said of one toolkit."""
    remarks: list[str] = []
    refusal = _missing_part(kit, asked) or _wrong_version(kit, asked)
    for library, version in (("cuDNN", asked.cudnn), ("TensorRT", asked.tensorrt)):
        if version:
            try:
                refusal = refusal or misfit(kit.release, library, version)
            except ValueError as error:
                remarks.append(str(error))
    return RatedToolkit(kit, refusal, driver_fit(kit.release, driver_cuda), tuple(remarks))


def _missing_part(kit: toolkits.Toolkit, asked: Request) -> str:
    if asked.needs_compiler and not kit.nvcc:
        return "it has no nvcc, _lib-only would accept it" if kit.lib else "it has no nvcc"
    if asked.needs_compiler and not kit.nvcc_version:
        return f"its {kit.nvcc} does not run (no version from `nvcc --version`)"
    return "" if asked.needs_compiler or kit.lib else "it has no libcudart.so"


def _wrong_version(kit: toolkits.Toolkit, asked: Request) -> str:
    told = [version for version in (kit.version, kit.nvcc_version) if version]
    # its release and its build are both its version: 12.4.1 by version.json, 12.4.131 by nvcc
    is_right = any(versions.is_asked(version, asked.exact, asked.minimum, asked.maximum) for version in told)
    return "" if is_right else f"required: {asked.limits_text}"


def _order(one: RatedToolkit) -> tuple[int, bool, tuple[int, ...], int]:
    newest_first = tuple(-number for number in versions.key(one.kit.version))
    return _RANK[one.fit.level], not _is_named(one.kit), newest_first, one.kit.path_rank or 99


def _is_named(kit: toolkits.Toolkit) -> bool:
    return any(name in kit.found_in for name in HOME_NAMES)
