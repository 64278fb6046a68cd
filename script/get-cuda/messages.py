"""What the recipe get-cuda says when it has no toolkit to give."""

import contextlib

from crowdperf.machine import toolkits

from .request import Request, RequestError, pip_limits
from .selection import Choice

PACKAGES = {"apt": ("nvidia-cuda-toolkit",), "pacman": ("cuda",)}
"""The distribution's own toolkit. Debian: non-free, Ubuntu: multiverse, Arch: extra; others have none of their own
(packages.debian.org, packages.ubuntu.com, archlinux.org/packages, 2026)."""


def not_found(asked: Request, choice: Choice, package_command: str) -> str:
    """The error when no toolkit fits: what was looked at, why not, and the commands to try; nothing is run.

    ``package_command`` installs the distribution's own toolkit, empty where it has none.
    """
    part = "CUDA toolkit" if asked.needs_compiler else "CUDA runtime library"
    if choice.judged:
        lines = [
            f"no {part} matches; required: {asked.limits_text}. Seen:",
            *(f"  {one.text}" for one in choice.judged),
        ]
    else:
        lines = [f"no {part} was found. Looked at: {', '.join(looked_at(asked))}"]
    return "\n".join((*lines, *(f"  hint: {command}" for command in _commands(asked, choice, package_command))))


def looked_at(asked: Request) -> tuple[str, ...]:
    """The places where toolkits are looked for."""
    if asked.only_in:
        return asked.only_in
    return (
        "nvcc on PATH",
        *toolkits.HOME_VARIABLES,
        *toolkits.USUAL_HOMES,
        f"{toolkits.COMPILER_PACKAGE_HOME}/bin/nvcc",
    )


def _commands(asked: Request, choice: Choice, package_command: str) -> list[str]:
    usable = [one.kit for one in choice.judged if one.refusal.startswith("required: ")]
    commands = [f'cm run script "get cuda" --version={usable[0].release}  (it is there)'] if usable else []
    mode = "" if asked.needs_compiler else ",_lib-only"
    version = asked.exact or asked.maximum or asked.minimum
    suffix = f" --version={version}" if version else ""
    with contextlib.suppress(RequestError):  # PyPI has no compiler for an older CUDA
        pip_limits(asked, "")
        commands.append(
            f'cm run script "get cuda _pip{mode}"{suffix}  (NVIDIA\'s PyPI wheels into a virtual environment, no root)'
        )
    if asked.needs_compiler:
        commands.append(f'cm run script "get cuda _prebuilt"{suffix} --run_file=FILE  (NVIDIA\'s run file, no root)')
    commands.append(f'cm run script "get cuda{" _lib-only" * bool(mode)}" --input=FOLDER  (one in another place)')
    if package_command:
        commands.append(f"{package_command}  (the distribution's own, whatever version it has)")
    return commands


def wheels_missing(venv: str) -> str:
    """The error when pip installed but no toolkit lies where the wheels put it."""
    return (
        f"pip installed cuda-toolkit, but there is no CUDA below {venv} in site-packages/nvidia/.\n"
        "  hint: this recipe knows the layout nvidia/cu13 (CUDA 13.0 to 13.5). Please report the version"
    )


def does_not_compile(kit: toolkits.Toolkit, said: str) -> str:
    """The error when a toolkit that was just installed does not compile the check."""
    last = "\n".join(f"    {line}" for line in said.strip().splitlines()[-8:]) or "    (nothing)"
    advice = "a host compiler is needed: sudo apt-get install -y g++ (or gcc-c++)"
    if "unsupported GNU version" in said:
        advice = "the host's gcc is newer than this CUDA allows: a newer --version, or NVCC_CCBIN=<an older g++>"
    return (
        f"CUDA {kit.version} in {kit.home} does not compile a small program. Output of nvcc:\n{last}\n  hint: {advice}"
    )
