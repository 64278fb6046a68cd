"""Finds the processes of a server that runs on this machine, from the URL that a run measures.

Such a server is what is measured, not a disturbance: its processor time is reported on its own. Linux lists listening
sockets in /proc/net/tcp and tcp6 (proc_net_tcp(5)), and the sockets of each process in /proc/PID/fd. Those of other
users can only be read by root.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from crowdperf.harness.watch.machine import read_text
from crowdperf.harness.watch.processes import GROUP_PLACE, Rows, family

_LISTENING = "0A"
"""TCP_LISTEN in include/net/tcp_states.h of Linux."""

_DEFAULT_PORTS = {"http": 80, "https": 443}

_CONTAINER = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlace:
    """Where a server of this machine listens. addresses: those that its URL's host has here."""

    addresses: frozenset[str]
    port: int


def _is_local(address: str) -> bool:
    """Return whether an address belongs to this machine: only such a one can be bound."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def place_of(url: str) -> ServerPlace | None:
    """Return where the server of a URL listens; None for a server of another machine, and for a host that cannot be
    resolved here."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = {str(row[4][0]).partition("%")[0] for row in found}
    local = frozenset(one for one in addresses if _is_local(one))
    return ServerPlace(addresses=local, port=port) if local else None


def _address(digits: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address that /proc/net/tcp shows: words of 32 bits in the byte order of the machine (little-endian on
    x86-64 and arm64)."""
    words = [bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8)]
    return ipaddress.ip_address(b"".join(words))


def _answers_for(listening: ipaddress.IPv4Address | ipaddress.IPv6Address, addresses: Iterable[str]) -> bool:
    """Return whether a socket that listens there takes connections to one of the addresses; `::` takes IPv4 as well."""
    mapped = listening.ipv4_mapped if isinstance(listening, ipaddress.IPv6Address) else None
    plain = mapped or listening
    wanted = [ipaddress.ip_address(one) for one in addresses]
    if plain.is_unspecified:
        return plain.version == 6 or any(one.version == 4 for one in wanted)
    return plain in wanted


def listening_inodes(tables: Iterable[str], place: ServerPlace) -> frozenset[str]:
    """Return the inodes of the sockets that listen at a place. tables: the texts of /proc/net/tcp and tcp6."""
    found = set()
    for line in "\n".join(tables).splitlines():
        words = line.split()
        if len(words) < 10 or words[3] != _LISTENING:
            continue
        digits, _, port = words[1].partition(":")
        if int(port, 16) == place.port and _answers_for(_address(digits), place.addresses):
            found.add(words[9])
    return frozenset(found)


def _sockets(folder: Path) -> Iterator[str]:
    """Yield the inodes of a process's sockets; none for a process of another user."""
    try:
        names = os.listdir(folder / "fd")
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(folder / "fd" / name)
        except OSError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            yield target[8:-1]


def _service(cgroups: str) -> str | None:
    """Return the control group of a service or of a container in the text of /proc/PID/cgroup; None for the group of a
    login session or of the whole machine, where anything may run."""
    path = cgroups.strip().rpartition("\n")[2].rpartition(":")[2]
    last = path.rpartition("/")[2]
    is_one = (last.endswith(".service") and not last.startswith("user@")) or _CONTAINER.search(last)
    return path if is_one else None


def _companions(proc: Path, rows: Rows, owners: frozenset[int], own: frozenset[int]) -> set[int]:
    """Return the processes that surely belong to the server: of a process group that it leads, and of its service or
    container where this run is not in it."""
    found = {pid for pid, fields in rows.items() if int(fields[GROUP_PLACE]) in owners}
    services = {_service(read_text(proc / str(pid) / "cgroup")) for pid in owners} - {None}
    if services - {_service(read_text(proc / str(pid) / "cgroup")) for pid in own}:
        found |= {pid for pid in rows if _service(read_text(proc / str(pid) / "cgroup")) in services}
    return found


def server_processes(proc: Path, place: ServerPlace, rows: Rows, own: frozenset[int]) -> frozenset[int] | None:
    """Return the processes of the server that listens at a place, without those of this run (`own`); None where they
    are another user's, and so cannot be told from other programs. Empty where nothing listens there."""
    inodes = listening_inodes([read_text(proc / "net" / name) for name in ("tcp", "tcp6")], place)
    if not inodes:
        return frozenset()
    owners = frozenset(pid for pid in rows if not inodes.isdisjoint(_sockets(proc / str(pid))))
    if not owners:
        return None
    return family(rows, owners | _companions(proc, rows, owners, own)) - own
