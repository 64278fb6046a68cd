"""What is around the computing: container engines, the rights of the user, the scratch space. Looks, and judges."""

from collections.abc import Iterator
from typing import NamedTuple

from crowdperf.machine import engines, packages
from crowdperf.machine.findings import Command, Finding
from crowdperf.machine.probe import Disk, Machine

from . import advice

SCRATCH_VARIABLE = "MLPERF_SCRATCH_PATH"
ALL_BENCHMARKS_BYTES = 3 * 10**12
"""What the NVIDIA v0.7 README wants for all benchmarks; single ones need less (get,mlperf,scratch,space counts it)."""


class Surroundings(NamedTuple):
    """Engines, rights and scratch space of a machine. ``scratch`` is empty when MLPERF_SCRATCH_PATH is not set."""

    engines: tuple[engines.Engine, ...]
    has_container_toolkit: bool
    user_name: str
    rights: packages.Rights
    package_tool: str
    owns_docker_config: bool
    scratch: str
    scratch_is_usable: bool
    scratch_disk: Disk | None
    visible_devices: str = ""

    @property
    def working_engine(self) -> str:
        """The first container engine that works for this user, empty when none does."""
        return next((engine.name for engine in self.engines if engine.is_usable), "")


def look(machine: Machine) -> Surroundings:
    """The surroundings of a machine; asks the container engines, changes nothing."""
    home, scratch = machine.environment.get("HOME", ""), machine.environment.get(SCRATCH_VARIABLE, "")
    owner = machine.owner_uid(f"{home}/.docker") if home else None
    known = packages.look(machine)
    return Surroundings(
        engines=engines.look(machine),
        has_container_toolkit=bool(machine.which("nvidia-ctk") or machine.which("nvidia-container-cli")),
        user_name=machine.user.name,
        rights=known.rights,
        package_tool=known.tool or "",
        owns_docker_config=owner is None or owner == machine.user.uid,
        scratch=scratch,
        scratch_is_usable=bool(scratch) and machine.is_dir(scratch) and machine.can_write(scratch),
        scratch_disk=machine.disk(scratch) if scratch else None,
        visible_devices=machine.environment.get("CUDA_VISIBLE_DEVICES", ""),
    )


def findings(seen: Surroundings) -> tuple[Finding, ...]:
    """What is to be said of the surroundings."""
    limited = f"{seen.visible_devices}: CUDA programs see no other devices"
    devices = [Finding("CUDA_VISIBLE_DEVICES", "note", limited)] if seen.visible_devices else []
    return (*_user(seen), *_docker(seen), *_scratch(seen), *devices)


def _user(seen: Surroundings) -> Iterator[Finding]:
    texts = {
        "root": "is root: what containers and clones write will belong to root. An ordinary user is better",
        "sudo": "may use sudo",
        "maybe": "has sudo, but is in no group that usually may use it",
        "none": "has no sudo: an administrator has to run what needs root",
    }
    yield Finding(f"user {seen.user_name}", "ok" if seen.rights == "sudo" else "note", texts[seen.rights])
    yield Finding(
        "packages", "ok" if seen.package_tool else "note", seen.package_tool or "no package tool that we know"
    )


def _docker(seen: Surroundings) -> Iterator[Finding]:
    for engine in seen.engines:
        if engine.is_denied_docker:
            join = Command(("usermod", "-aG", "docker", seen.user_name), needs_root=True)
            fixes = (join, Command(("newgrp", "docker")))
            wanted = "the user in the group docker (its members can become root: Docker's documentation)"
            yield Finding(
                "docker", "problem", f"is there, but not for {seen.user_name}: {engine.trouble}", wanted, fixes
            )
        elif not engine.is_usable:
            found = f"it does not answer: {engine.trouble}"
            yield Finding(engine.name, "note", found, "an engine that starts containers", (advice.DOCKER,))
        else:
            yield Finding(engine.name, "ok", "works for this user" if engine.name == "docker" else "is there")
    if not seen.owns_docker_config:
        fix = Command(line=f'{{sudo}}chown -R {seen.user_name} "$HOME/.docker"', needs_root=True)
        yield Finding("~/.docker", "problem", "belongs to another user", f"to belong to {seen.user_name}", (fix,))


def _scratch(seen: Surroundings) -> Iterator[Finding]:
    if not seen.scratch:
        yield Finding("scratch space", "note", f"{SCRATCH_VARIABLE} is not set", "a folder for data", (advice.SCRATCH,))
    elif not seen.scratch_is_usable:
        found = f"{seen.scratch} is not a folder that {seen.user_name} may write to"
        yield Finding("scratch space", "problem", found, "one that may be written", (advice.PERMISSIONS,))
    else:
        free = seen.scratch_disk.free_bytes if seen.scratch_disk else 0
        is_large = free >= ALL_BENCHMARKS_BYTES
        wanted = "" if is_large else "3000 GB for all benchmarks of the v0.7 README, less for single ones"
        fixes = () if is_large else (advice.SCRATCH,)
        found = f"{seen.scratch}: {free / 10**9:.0f} GB free"
        yield Finding("scratch space", "ok" if is_large else "note", found, wanted, fixes)
