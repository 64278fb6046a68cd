"""Sizes, ages and counts as people write them: ``20GB``, ``512 MiB``, ``30d``, ``1h30min``, ``2 entries``."""

import re

from .errors import RequestError

UNITS_BYTES = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    UNITS_BYTES.update({_letter: 1000**_power, f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power})
"""Decimal units as disks and ``cm show cache`` have them, and binary ones under their own names (IEC 80000-13)."""
UNITS_S = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
UNITS_S.update({name + ending: UNITS_S[name[0]] for name in ("hour", "day", "week", "year") for ending in ("", "s")})
"""``m`` are minutes, as in ``1h30m``; months have no fixed length and are refused."""

MAX_DIGITS = 18
"""Of a whole number: one of 64 bits has 19, and Python reads no more than 4,300."""

_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
_SIZE, _PART = rf"(?a){_NUMBER}\s*([a-z]*)", rf"(?a){_NUMBER}\s*([a-z]+)\s*"  # compiled at their first use


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 fact", "2,000 facts", "0 entries"; `plural` where that is formed otherwise."""
    regular = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural or regular}"


def whole_number(text: str) -> int | None:
    """Return the number that 1 to 18 digits mean, else None: int() fails for the digit "²", and for 5,000 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def parse_size_bytes(text: object, flag: str) -> int:
    """The bytes that ``text`` means; raises RequestError, which names ``flag``, when it is not a size."""
    found = re.fullmatch(_SIZE, str(text).strip().lower())
    if not found or found[2] not in UNITS_BYTES:
        raise RequestError(f"--{flag}={text} is not a size", hint=f"write --{flag}=20GB or --{flag}=512MiB")
    return round(float(found[1]) * UNITS_BYTES[found[2]])


def parse_age_s(text: object, flag: str) -> float:
    """The seconds that ``text`` means; raises RequestError, which names ``flag``, when it is not an age."""
    rest = str(text).strip().lower()
    parts = re.findall(_PART, rest)
    is_whole = parts and re.sub(_PART, "", rest) == ""
    if not is_whole or any(unit not in UNITS_S for _, unit in parts):
        raise RequestError(f"--{flag}={text} is not an age", hint=f"write --{flag}=30d, --{flag}=12h or --{flag}=1d12h")
    return sum(float(number) * UNITS_S[unit] for number, unit in parts)


def size_text(size_bytes: int) -> str:
    """A size for people, in units of 1000: ``1.2 MB``."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def age_text(age_s: float) -> str:
    """A duration for people in its two largest units: ``2 h 5 min``."""
    minutes, seconds = divmod(max(0, int(age_s)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def short_age(age_s: float) -> str:
    """A duration in its largest unit, for a column: ``5 min``, ``3 h``, ``12 d``."""
    for unit, unit_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if age_s >= unit_s:
            return f"{int(age_s // unit_s)} {unit}"
    return f"{max(0, int(age_s))} s"
