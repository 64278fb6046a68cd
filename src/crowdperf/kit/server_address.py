"""Reads the address of a server as a user gives it: http or https, a host, an optional port. Pure."""

import ipaddress
from urllib.parse import SplitResult, urlsplit, urlunsplit


def server_parts(url: str) -> SplitResult | None:
    """Return the parts of a server's address, or None if scheme, host or port are invalid."""
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number or above 65535, an IPv6 address without its bracket
        return None
    return parts if is_server else None


def call_url(url: str, path: str) -> str:
    """Return the URL of a call: `path` behind that of the server, before its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def without_login(url: str) -> str:
    """Return an address for a message: without what may be a user and a password."""
    return url.rpartition("@")[2]


def is_loopback(host: str) -> bool:
    """Return whether a host, `127.0.0.1`, `::1`, `[::1]` or a name, means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
