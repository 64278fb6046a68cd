"""Decides what of a result leaves the machine: which files, which fields of them, and what is masked in these.

Only what is listed here goes. Of the JSON files each text loses absolute paths, names of user and machine, addresses,
serial numbers; times are kept to the minute. LoadGen's logs go as they are or not at all: a changed log proves nothing.
`find_private` looks for what has a shape, without knowing the machine: the sender looks before, the receiver after.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from crowdperf.kit.path_redaction import NO_PLACES, KnownFolders, absolute_paths, honest_text
from crowdperf.kit.privacy import NOTHING_KNOWN, PrivateNames, find_leaks, masked

LOGS = ("mlperf_log_summary.txt", "mlperf_log_detail.txt")
TEXTS = ("user.conf", "accuracy.txt")
OF_CALL = ("results.json", "environment.json")
OF_RUN = (*LOGS, "user.conf", "result.json", "accuracy.json", "accuracy.txt", "load.json", "record.json")
"""The files that go of a call and of each of its runs."""

_RESULTS = """
format run_id label made_by notes is_synthetic provenance model backend device precision source execution_mode passed
missing disturbances scenarios verdict"""
_RESULT = """
format label run user_conf_lines is_synthetic provenance issue_shape shape_found_utc shape_candidates warm_up valid
invalid_reasons errors error_messages metric latency early_stopping min_duration_met min_queries_met duration_s
query_count generated_query_count samples_per_query sample_counts loadgen_version seeds versions model_sha256
calibration started_utc load energy cost machine disturbances took_s first_attempt served text find"""
_ACCURACY = """
format metrics passed target_basis line label is_synthetic response_count duplicate_count log_sha256"""
_RECORD = "format name made_utc duration_s command request crowdperf lock inputs settings machine outcome files seals"
KEYS_OF: Mapping[str, frozenset[str]] = {
    "results.json": frozenset(_RESULTS.split()),
    "environment.json": frozenset(["format", "command", "crowdperf", "host", "recipes", "runs"]),
    "result.json": frozenset(_RESULT.split()),
    "accuracy.json": frozenset(_ACCURACY.split()),
    "load.json": frozenset(["format", "interval_s", "gpus", "columns", "rows"]),
    "record.json": frozenset(_RECORD.split()),
}
"""The fields of the JSON files that go; record.json without its journal and the digests of the recipes' files."""

_HOST = """
CPU_ARCHITECTURE CPU_CGROUP_LIMIT CPU_FAMILY CPU_FLAGS CPU_L1D_CACHE_SIZE CPU_L2_CACHE_SIZE CPU_L3_CACHE_SIZE
CPU_MICROCODE CPU_MODEL_NAME CPU_NUMA_NODES CPU_PHYSICAL_CORES_PER_SOCKET CPU_SOCKETS CPU_THREADS_PER_CORE
CPU_TOTAL_CORES CPU_TOTAL_LOGICAL_CORES CPU_TOTAL_PHYSICAL_CORES CPU_USABLE_CPUS CPU_VENDOR_ID MEMORY_CAPACITY
MEMORY_CAPACITY_BYTES MEMORY_CGROUP_LIMIT_BYTES OS_BITS OS_CONTAINER OS_CONTAINER_KIND OS_FLAVOR OS_FLAVOR_LIKE
OS_GLIBC_VERSION OS_KERNEL_VERSION OS_MACHINE OS_TYPE OS_VERSION PLATFORM_FLAVOR PYTHON_BITS"""
HOST_KEYS = frozenset(f"CM_HOST_{name}" for name in _HOST.split())
"""What goes of the machine's facts; not its name."""

_RUN = "folder recipe_query recipe_inputs dependencies started_utc versions loadgen_version seeds model_sha256"
RUN_KEYS = frozenset(_RUN.split())
"""What goes of each run in environment.json; not its command."""

_EMAIL = re.compile(r"[\w.+-]{0,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_NUMBERS = r"(?:\d{1,3}\.){3}\d{1,3}"
_IP = re.compile(rf"^{_NUMBERS}$|(?<=//){_NUMBERS}|(?<=@){_NUMBERS}|(?<![\d.]){_NUMBERS}(?=:\d)")
_HOST_OF_URL = re.compile(r"(?<=://)(?!<)(\[[0-9a-fA-F:.]+\]|[^\s/:'\"<>\[\]]+)(?=(:\d+)?)")
_KERNEL = re.compile(r"\b(Linux |)(\d+\.\d+(?:\.\d+)?)[-+][\w.+-]+")
_SECONDS = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\d(?:\.\d+)?")
_OUR_OWN = ("localhost", "127.0.0.1", "[::1]")
_SHAPES = (("e-mail address", _EMAIL), ("UUID", _UUID), ("MAC address", _MAC))
_HEX = "[0-9a-fA-F]"
_SEARCHED = (
    ("e-mail address", re.compile(r"@[A-Za-z0-9-]{1,63}\.[A-Za-z0-9]")),
    ("UUID", re.compile(rf"-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")),
    ("MAC address", re.compile(f":{_HEX}{{2}}" * 5 + r"\b")),
)
"""As they are looked for in files that somebody sent: from a sign on, in time that grows with the text alone."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Sender:
    """What is private here: the folders with their signs, the names of user and machine."""

    places: KnownFolders = NO_PLACES
    known: PrivateNames = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Masked:
    """A JSON value that may go, and where something was taken out or replaced (`run.model_path.value`)."""

    value: Any
    where: tuple[str, ...]


def _without_hosts(text: str) -> str:
    """A text without the hosts of servers: those with a port, without a dot, or given as numbers."""

    def replaced(found: re.Match[str]) -> str:
        host = found[1]
        is_public = "." in host and not found[2] and not re.fullmatch(_NUMBERS, host) and not host.startswith("[")
        return host if is_public or host in _OUR_OWN else "<host>"

    return _HOST_OF_URL.sub(replaced, text)


def masked_text(text: str, sender: Sender) -> str:
    """Return a text without paths, names, addresses and serial numbers."""
    found = masked(honest_text(text, sender.places), sender.known)
    if "://" in found:
        found = _without_hosts(found)
    for name, shape in _SHAPES:
        found = shape.sub(f"<{name}>", found)
    return _IP.sub("<address>", found)


@dataclass(slots=True)
class _Walk:
    sender: Sender
    where: list[str] = field(default_factory=list)

    def value(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, Mapping):
            names = {str(name): honest_text(str(name), self.sender.places) for name in value}
            return {names[str(name)]: self.value(one, f"{place}.{names[str(name)]}") for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, f"{place}.{number}") for number, one in enumerate(value)]
        return value

    def _text(self, text: str, place: str) -> str:
        name = place.rpartition(".")[2]
        found = masked_text(text, self.sender)
        if name.endswith("_utc"):
            found = _SECONDS.sub(r"\1:00", found)
        if name in ("operating_system", "CM_HOST_OS_KERNEL_VERSION"):
            found = _KERNEL.sub(r"\1\2", found)
        if found != text:
            self.where.append(place)
        return found

    def only(self, value: Any, keys: frozenset[str], place: str) -> dict[str, Any]:
        """The fields that may go; the others are noted."""
        rows = value if isinstance(value, Mapping) else {}
        self.where += [f"{place}{name}" for name in rows if name not in keys]
        return {name: one for name, one in rows.items() if name in keys}


def mask_json(name: str, content: Mapping[str, Any], sender: Sender) -> Masked:
    """Return what may go of the JSON file of this name. Raises KeyError for a file that may not."""
    walk = _Walk(sender)
    kept = walk.only(content, KEYS_OF[name], "")
    if name == "environment.json":
        kept["host"] = walk.only(kept.get("host"), HOST_KEYS, "host.")
        runs = kept.get("runs")
        kept["runs"] = [walk.only(run, RUN_KEYS, "runs.") for run in (runs if isinstance(runs, list) else [])]
    value = {key: walk.value(one, key) for key, one in kept.items()}
    return Masked(value, tuple(dict.fromkeys(walk.where)))


def mask_whole(content: Mapping[str, Any], sender: Sender) -> Masked:
    """Return a JSON object with all its fields, and where something in them was replaced."""
    walk = _Walk(sender)
    return Masked({key: walk.value(one, key) for key, one in content.items()}, tuple(dict.fromkeys(walk.where)))


def as_file(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as the bytes of a file; half characters are shown as their escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return (text.encode("utf-8", "backslashreplace").decode() + "\n").encode()


def find_private(name: str, content: bytes, known: PrivateNames = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return what a file of a bundle still gives away, with its line; not what it is.

    Of LoadGen's logs only what the leak finder finds: they name sources by paths that begin with a slash.
    """
    found = [str(leak) for leak in find_leaks(content, known, _SHOWN)]
    if name.rpartition("/")[2] in LOGS:
        return tuple(found)
    text = content.decode("utf-8", "replace")
    for kind, shape in (*_SEARCHED, ("absolute path", None)):
        matches = shape.finditer(text) if shape is not None else absolute_paths(text)
        for match in islice(matches, _SHOWN):
            found.append(f"line {text.count(chr(10), 0, match.start()) + 1}: {kind}")
    return tuple(found)
