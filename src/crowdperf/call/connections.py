"""How many connections a client on this machine may have open at once."""

import resource

from crowdperf.rules.prompt_settings import OTHER_FILES


def most_connections() -> int | None:
    """Return how many connections the hard limit of open files allows, or None without a limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else max(0, hard - OTHER_FILES)


def too_many_connections(count: int) -> str:
    """Return why a client cannot have `count` requests in flight, or an empty text."""
    most = most_connections()
    if most is None or count <= most:
        return ""
    return (
        f"found {count}; allowed: at most {most} connections at once, as the limit of open files is "
        f"{most + OTHER_FILES} here. Raise it: ulimit -n {count + OTHER_FILES}"
    )
