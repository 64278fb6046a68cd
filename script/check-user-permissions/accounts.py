"""Who a user is, and which groups he is in: those of this process, and those that a new login would get.

A process keeps the groups of its login: who was added to a group since then has to log in again. Formats: passwd(5),
group(5); ``getent`` (getent(1)) also knows users of a directory service.
"""

from typing import NamedTuple

from crowdperf.machine.probe import Machine

DOCKER = "docker"


class Account(NamedTuple):
    """A user to check. ``is_self`` when this process runs as him; ``uid`` is -1 for a name that nobody has."""

    name: str
    uid: int
    home: str
    is_self: bool

    @property
    def is_root(self) -> bool:
        """Whether this is root."""
        return self.uid == 0


class DockerGroup(NamedTuple):
    """The group docker: whether it exists, who would be in it after a login, and whether this process is in it."""

    exists: bool
    is_member: bool
    is_in_process: bool


def account(machine: Machine, name: str) -> Account:
    """The user of this process for an empty name, else the named one."""
    user = machine.user
    if not name or name == user.name:
        return Account(user.name, user.uid, machine.environment.get("HOME", ""), True)
    fields = _entry(machine, "passwd", name)
    is_known = len(fields) > 5 and fields[2].isdigit()
    return Account(name, int(fields[2]) if is_known else -1, fields[5] if is_known else "", False)


def docker_group(machine: Machine, who: Account) -> DockerGroup:
    """How the user stands to the group docker."""
    fields = _entry(machine, "group", DOCKER)
    members = fields[3].split(",") if len(fields) > 3 else []
    passwd = _entry(machine, "passwd", who.name)
    is_primary = len(passwd) > 3 and len(fields) > 2 and passwd[3] == fields[2]
    is_in_process = who.is_self and DOCKER in machine.user.groups
    return DockerGroup(bool(fields) or is_in_process, who.name in members or is_primary, is_in_process)


def _entry(machine: Machine, database: str, name: str) -> list[str]:
    """The fields of a line of passwd or group; empty without such a name."""
    told = machine.run(("getent", database, name))
    text = told.stdout if told.code == 0 else machine.read_text(f"/etc/{database}")
    return next((line.split(":") for line in text.splitlines() if line.startswith(f"{name}:")), [])
