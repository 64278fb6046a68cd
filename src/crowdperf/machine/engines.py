"""The container engines of a machine, and whether each could start a container now; this module looks only.

Docker has a daemon: its client alone starts nothing, and ``docker info`` says why the daemon is out of reach (messages
of Docker 20 to 28). Podman and Apptainer (once Singularity) have none.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from crowdperf.machine.probe import TIMED_OUT, Machine, Ran

Name = Literal["docker", "podman", "apptainer"]
NAMES: tuple[Name, ...] = ("docker", "podman", "apptainer")
"""In the order in which one is chosen: what the documents use first."""
Cause = Literal["", "stopped", "permission", "remote", "timeout", "other"]
SERVER = ("info", "--format", "{{.ServerVersion}}")
RUNTIMES = ("info", "--format", "{{json .Runtimes}}")
CAUSES: tuple[tuple[str, Cause], ...] = (
    ("permission denied", "permission"),
    ("cannot connect to the docker daemon", "stopped"),
    ("is the docker daemon running", "stopped"),
    ("error during connect", "remote"),
    ("no such host", "remote"),
    ("i/o timeout", "remote"),
)


class Engine(NamedTuple):
    """An installed engine: ``program`` is what to call. ``trouble`` is what it says when it cannot start a container.

    ``server_version`` is the daemon's; ``runtimes`` those that the daemon knows, such as ``nvidia``.
    """

    name: Name
    program: str
    path: str
    version: str
    server_version: str = ""
    cause: Cause = ""
    trouble: str = ""
    runtimes: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether it could start a container now, as far as can be seen without starting one."""
        return not self.cause

    @property
    def is_denied_docker(self) -> bool:
        """Whether it is Docker, and this user may not talk to its daemon."""
        return self.name == "docker" and self.cause == "permission"


def look(machine: Machine, names: Sequence[Name] = NAMES) -> tuple[Engine, ...]:
    """The engines that are installed, of those named, in the order of the names."""
    lookers = {"docker": _docker, "podman": _podman, "apptainer": _apptainer}
    found = (lookers[name](machine) for name in names)
    return tuple(engine for engine in found if engine)


def version_in(text: str) -> str:
    """The version that an engine's ``--version`` tells: ``Docker version 28.2.2, build e6534b4`` is ``28.2.2``."""
    found = re.search(r"\bversion (\d+(?:\.\d+)*)", text)
    return found[1] if found else ""


def cause_of(ran: Ran) -> Cause:
    """Why a daemon did not answer, told by the words of the client."""
    if ran.code == TIMED_OUT:
        return "timeout"
    said = (ran.stderr + ran.stdout).lower()
    return next((cause for words, cause in CAUSES if words in said), "other")


def _docker(machine: Machine) -> Engine | None:
    path = machine.which("docker")
    said = machine.run(("docker", "--version")).stdout if path else ""
    if not path or "podman" in said:  # a shim of podman's calls itself podman; it is found as that
        return None
    known = Engine("docker", "docker", path, version_in(said))
    asked = machine.run(("docker", *SERVER))
    server = asked.stdout.strip()
    if not server or asked.code != 0:  # older clients end with 0 and an empty line
        return known._replace(cause=cause_of(asked), trouble=_first_line(asked))
    return known._replace(server_version=server, runtimes=_runtimes(machine.run(("docker", *RUNTIMES))))


def _podman(machine: Machine) -> Engine | None:
    program = next((name for name in ("podman", "docker") if machine.which(name)), "")
    said = machine.run((program, "--version")).stdout if program else ""
    if "podman" not in said:
        return None
    known = Engine("podman", program, machine.which(program), version_in(said))
    asked = machine.run((program, "info", "--format", "{{.Version.Version}}"))
    is_told = not asked.is_missing  # only a recorded machine can lack the answer of a program that it has
    return (
        known if asked.code == 0 or not is_told else known._replace(cause=cause_of(asked), trouble=_first_line(asked))
    )


def _apptainer(machine: Machine) -> Engine | None:
    program = next((name for name in ("apptainer", "singularity") if machine.which(name)), "")
    if not program:
        return None
    said = machine.run((program, "--version")).stdout
    found = re.search(r"\d+(?:\.\d+)+", said)
    return Engine("apptainer", program, machine.which(program), found[0] if found else "")


def _runtimes(ran: Ran) -> tuple[str, ...]:
    try:
        known = json.loads(ran.stdout)
    except ValueError:
        return ()
    return tuple(sorted(known)) if isinstance(known, dict) else ()


def _first_line(ran: Ran) -> str:
    lines = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
    return lines[0] if lines else f"it ended with code {ran.code} without output"
