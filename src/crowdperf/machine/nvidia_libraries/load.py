"""Whether a library loads, and the version it answers: asked in another process, which may crash. Needs no GPU.

What this cannot tell: whether a GPU of this machine computes with it; ``cudnnCreate`` and TensorRT's builder need one.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from crowdperf.machine import versions
from crowdperf.machine.nvidia_libraries.kinds import Kind, version_of_number
from crowdperf.machine.probe import Machine

LOAD_TIMEOUT_S = 120.0
"""TensorRT 10 has libraries of 3 GB; from a slow disk they take a while."""
QUESTION = str(Path(__file__).with_name("load_check.py"))
DRIVER_LIBRARY = "libcuda.so"


class Loaded(NamedTuple):
    """How loading ended. ``broken``: the file itself is wrong. ``text`` tells it in one line."""

    level: Literal["loads", "needs-other", "broken", "not-tried"]
    version: str
    text: str


def load(machine: Machine, kind: Kind, library: str, folders: Sequence[str]) -> Loaded:
    """Loads ``library`` with the loader looking into ``folders`` first; recorded machines have nothing to load."""
    if machine.is_recorded:
        return Loaded("not-tried", "", "a recorded machine: not loaded")
    known = [folder for folder in (*folders, *machine.environment.get("LD_LIBRARY_PATH", "").split(":")) if folder]
    path = f"LD_LIBRARY_PATH={':'.join(dict.fromkeys(known))}"
    done = machine.run(("env", path, sys.executable, "-I", QUESTION, library, kind.function), timeout_s=LOAD_TIMEOUT_S)
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.code}"]
        return Loaded("broken", "", f"{library} crashes when it is loaded ({said[0]})")
    return judge(kind, library, answer.get("number"), str(answer.get("error") or ""))


def judge(kind: Kind, library: str, number: int | None, error: str) -> Loaded:
    """What the answer of the other process means."""
    if number is not None:
        version = version_of_number(number)
        return Loaded("loads", version, f"{library} loads, {kind.function}() says {version}")
    missing = re.match(r"(\S+\.so\S*): cannot open shared object file", error)
    if missing and missing[1] != library:
        what = "the NVIDIA driver" if missing[1].startswith(DRIVER_LIBRARY) else "another library of CUDA"
        return Loaded("needs-other", "", f"{library} was not loaded here: it needs {missing[1]} ({what})")
    return Loaded("broken", "", f"{library} does not load: {error}")


def contradiction(kind: Kind, version: str, loaded: Loaded) -> str:
    """What is wrong when the library answers another version than its headers or names say; empty when nothing is."""
    if not loaded.version:
        return ""
    if versions.is_exact(loaded.version, version) or versions.is_exact(version, loaded.version):
        return ""
    return f"the library says {kind.name} {loaded.version}, its headers or name say {version}"
