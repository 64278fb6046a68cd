"""What get-cudnn and get-tensorrt give alike: lines of the story, the error when nothing fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdperf.machine.nvidia_libraries import archive
from crowdperf.machine.nvidia_libraries.kinds import Kind
from crowdperf.machine.nvidia_libraries.request import Request
from crowdperf.machine.nvidia_libraries.selection import Choice


def library_folders(env: Mapping[str, Any]) -> list[str]:
    """The folders that the loader of this system searches, as detect-os tells them."""
    told = env.get("+CM_HOST_OS_DEFAULT_LIBRARY_PATH", [])
    return [str(folder) for folder in told] if isinstance(told, list) else []


def state_of(kind: Kind, choice: Choice) -> list[dict[str, Any]]:
    """All that were looked at, best first, with what is to be said of each."""
    return [
        {
            "version": one.library.version,
            "version_source": one.library.version_source,
            "lib": one.library.lib,
            "include": one.library.include,
            "is_chosen": one is choice.chosen,
            "says": one.text(kind),
        }
        for one in choice.judged
    ]


def not_found(kind: Kind, asked: Request, choice: Choice, more: tuple[str, ...]) -> str:
    """The error when none fits: what was seen or where was looked, and the commands to try, ``more`` the last ones."""
    if choice.judged:
        lines = [f"no {kind.name} fits; required: {asked.limits_text}. Seen:"]
        lines += [f"  {one.text(kind)}" for one in choice.judged]
    elif asked.only_in:
        lines = [f"no {kind.name} ({kind.library}) lies in {', '.join(asked.only_in)}."]
    else:
        places = "beside CUDA, in /usr, /usr/local and /opt, in LD_LIBRARY_PATH, " + ", ".join(kind.home_variables)
        lines = [f"no {kind.name} ({kind.library}) was found. Looked: {places}."]
    usable = [one for one in choice.judged if one.refusal.startswith("required: ")]
    hints = [f'cm run script "{kind.tags}" --version={usable[0].library.version}  (it is there)'] if usable else []
    hints.append(f"{archive.command(kind)}  (from {kind.page})")
    return "\n".join((*lines, *(f"  hint: {text}" for text in (*hints, *more))))
