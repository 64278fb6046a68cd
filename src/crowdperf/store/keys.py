"""What makes two results comparable, as keys: SHA-256 of canonical JSON, the same in every database. Pure.

The key of a configuration leaves out what may differ between runs that are compared: versions of the software (the axis
of their history), measured settings, time, who sent them, the host, and the round, division and category of a
submission. A published result of the open division has a model of its own, which its `model_digest` says.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from crowdperf.kit.canonical_json import canonical_json
from crowdperf.logs.answer_metrics import CLIENT
from crowdperf.logs.system_names import plain_name
from crowdperf.store.model import Configuration, CurvePoint, Figure, System

SYSTEM = ("accelerator", "accelerator_count", "nodes", "cpu", "sockets", "cores", "memory_gib")
"""What a system is told from others by: all of it but its further facts."""

CONFIGURATION = ("suite", "benchmark", "scenario", "precision", "tier", "stack", "device", "data_kind", "run_class",
                 "model_digest")  # fmt: skip
"""What a configuration is told from others by, beside its system and the settings that were chosen."""

ID_LENGTH = 12
"""Characters of a result's id: 60 bits, so that a million results meet by chance once in two million databases."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without the letters that are read as digits (Crockford)."""

_FILLER = re.compile(r"\b(?:amd|advanced micro devices|\d+-core|graphics)\b|[®™©,]")
"""What some write and others do not."""


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def key_id_of(public_key: bytes) -> str:
    """Return the short name of a signer's key: the first 16 hex digits of the SHA-256 of its public part."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def normal_name(name: str) -> str:
    """Return a processor's or accelerator's name as it is compared: `Intel(R) Xeon(R) Gold 6258R` is `gold 6258r`."""
    words = _FILLER.sub(" ", plain_name(name)).replace("_", " ").replace("-", " ").split()
    return " ".join(words or name.casefold().split())


def system_key(system: System) -> str:
    """The key of what a system consists of; its further facts are not in it."""
    names = {name: normal_name(getattr(system, name)) for name in ("accelerator", "cpu")}
    return digest_of({**{name: getattr(system, name) for name in SYSTEM}, **names})


def configuration_key(configuration: Configuration) -> str:
    """The key of what was measured and on what: results with the same one may be compared."""
    compared = {name: getattr(configuration, name) for name in CONFIGURATION if name != "model_digest"}
    return digest_of(
        {
            **compared,
            "model": configuration.model_digest,
            "settings": dict(configuration.settings),
            "system": system_key(configuration.system),
        }
    )


_MIN_LATENCIES = 3
"""Different latencies in nanoseconds that two runs do not share by chance."""


def log_marks(detail_sha256: object, value: float, figures: Iterable[Figure]) -> tuple[str, ...]:
    """What a run's log is known by, whoever sends it: the SHA-256 of its detail log, and its figures to the nanosecond,
    which stay when another line of the log is edited. () without a log."""
    if not isinstance(detail_sha256, str) or not detail_sha256:
        return ()
    in_log = [one for one in figures if one.unit == "ms" and not one.name.startswith(f"{CLIENT} ")]
    found = sorted((one.name, float(one.value)) for one in in_log)
    marks = [f"sha256:{detail_sha256}"]
    if len({number for _, number in found}) >= _MIN_LATENCIES:
        marks.append(f"figures:{digest_of([float(value), found])}")
    return tuple(marks)


def curve_marks(points: Iterable[CurvePoint]) -> tuple[str, ...]:
    """What a curve of Endpoints is known by, whoever sends it: its rates, and its times to the first token, so that it
    is still known where the one or the other is edited. () for rows of few values, which two runs may share."""
    found = sorted((one.concurrency, one.system_tps, one.tps_per_user, one.ttft_p90_ms) for one in points)
    rates = [(number, system, user) for number, system, user, _ in found]
    times = [(number, ttft) for number, _, _, ttft in found]
    has_rates = len({rate for _, *both in rates for rate in both}) >= _MIN_LATENCIES
    has_times = len({ttft for _, ttft in times}) >= _MIN_LATENCIES
    kinds = (("curve-rates", rates, has_rates), ("curve-times", times, has_times))
    return tuple(f"{kind}:{digest_of([list(map(float, row)) for row in rows])}" for kind, rows, known in kinds if known)


def result_id(kind: str, key_id: str, run_id: str) -> str:
    """The id of a result: of its kind, the key that signed it ("" without) and its run, in every database the same."""
    number = int(digest_of([kind, key_id, run_id])[:16], 16)
    return "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in range(ID_LENGTH))
