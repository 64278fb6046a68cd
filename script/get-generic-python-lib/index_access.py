"""Says quickly which package indexes can be reached, so that pip does not try for minutes to reach one that cannot."""

import functools
import itertools
import re
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.call.values import is_yes

PROBE_S = 4.0
PIP_TIMEOUT_S = 30
NO_RETRIES = ("--retries=0", "--timeout=5")


@dataclass(frozen=True, slots=True)
class Access:
    """Options for pip without what cannot be reached, and what to tell the user about it, a line each."""

    options: tuple[str, ...]
    notes: tuple[str, ...] = ()


def adapted(python: Path, options: Sequence[str], proxies: Mapping[str, str]) -> Access:
    """Return `options` without extra indexes that cannot be reached; without retries where the main one cannot.

    Nothing is left out where pip has a proxy of its own, which is not asked here.
    """
    if "--no-index" in options:
        return Access(tuple(options))
    config = pip_config(python)
    if is_yes(config.get("no-index")) or "proxy" in config:
        return Access(tuple(options))
    kept, notes = _without_unreachable(options, proxies)
    chosen = _value_of(options, "--index-url") or config.get("index-url", "")
    if trouble := reachable(chosen or default_index(python), tuple(sorted(proxies.items()))):
        kept = [*kept, *NO_RETRIES]
        where = shown(chosen) if chosen else "PyPI"
        notes.append(f"cannot reach {where} ({trouble}), but installed packages work offline")
    return Access(tuple(kept), tuple(notes))


def _without_unreachable(options: Sequence[str], proxies: Mapping[str, str]) -> tuple[list[str], list[str]]:
    kept: list[str] = []
    notes: list[str] = []
    words = iter(options)
    for word in words:
        if word != "--extra-index-url":
            kept.append(word)
            continue
        address = next(words, "")
        if trouble := reachable(address, tuple(sorted(proxies.items()))):
            notes.append(f"cannot reach {shown(address)} ({trouble}): trying the default index without it")
        else:
            kept += [word, address]
    return kept, notes


def _value_of(options: Sequence[str], name: str) -> str:
    return next((value for word, value in itertools.pairwise(options) if word == name), "")


def shown(address: str) -> str:
    """An address without user and password."""
    return re.sub(r"://[^/@\s]+@", "://***@", address)


@functools.cache
def pip_config(python: Path) -> dict[str, str]:
    """pip's settings from its files and the environment, by name without their section; empty when it says none."""
    text = _said(python, "-m", "pip", "--disable-pip-version-check", "config", "list")
    return dict(re.findall(r"^[^\s=]*\.([a-z-]+)='(.*)'$", text, re.MULTILINE))


@functools.cache
def default_index(python: Path) -> str:
    """The index that pip uses where none is configured; empty when this pip has another name for it.

    The help of `pip install` shows it as well, which takes ten times as long. Tried with pip 23.2 and 26.3.
    """
    return _said(python, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)").strip()


def _said(python: Path, *words: str) -> str:
    command = [str(python), "-I", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PIP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


@functools.cache
def reachable(address: str, proxies: tuple[tuple[str, str], ...] = ()) -> str:
    """Why an address cannot be reached, within a few seconds and once in a process; empty when it can.

    Any answer of a server counts as reached, and so does a certificate that is not known here: pip may know it.
    """
    if not address.startswith(("http://", "https://")):
        return ""
    found: list[str] = []
    asker = threading.Thread(target=lambda: found.append(_ask(address, dict(proxies))), daemon=True)
    asker.start()
    asker.join(PROBE_S + 1)  # looking a name up knows no timeout
    return found[0] if found else f"no answer within {PROBE_S:g} s"


def _ask(address: str, proxies: Mapping[str, str]) -> str:
    import http.client
    import ssl  # here, because plans load this module and need no network
    import urllib.error
    import urllib.request

    from recipe_engine.rules.errors import printable  # only a hook's process has the engine

    own = {name.lower().removesuffix("_proxy"): value for name, value in proxies.items()}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({**urllib.request.getproxies(), **own}))
    try:
        with opener.open(urllib.request.Request(address, method="HEAD"), timeout=PROBE_S):
            return ""
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError, http.client.HTTPException) as error:  # URLError is an OSError
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):
            return ""
        is_late = isinstance(reason, socket.timeout | TimeoutError)
        said = printable(str(getattr(reason, "strerror", "") or reason).strip())
        return f"no answer within {PROBE_S:g} s" if is_late else said
