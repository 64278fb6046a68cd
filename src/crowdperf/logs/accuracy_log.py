"""Reads LoadGen's mlperf_log_accuracy.json entry by entry: the one reader of a log that nobody cut.

The log is a list with one entry on each line:
`{ "seq_id" : 0, "qsl_idx" : 216, "data" : "0000803F..." },`, upper-case hexadecimal of the response bytes. It can be
larger than memory (3d-unet: gigabytes), so it is never read whole. A sample may be in it more than once (LoadGen pads
some runs). What a log that was cut still shows is found by `shown_responses` and ANSWERED.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping

from crowdperf.kit.text_documents import parse_json

_NUMBERED = re.compile(r'"seq_id"\s*:\s*([0-9]{1,18}),\s*"qsl_idx"\s*:\s*([0-9]{1,18}),')
ANSWERED = re.compile(_NUMBERED.pattern + r'\s*"data"\s*:\s*"([0-9A-Fa-f]*)"')
"""The number, sample and response of an entry."""


class DamagedLog(Exception):
    """An accuracy log that cannot be read: cut off, truncated for a submission, or of another kind."""


def entries(lines: Iterable[str], name: str) -> Iterator[Mapping[str, object]]:
    """Yield the entries of an accuracy log line by line; raises DamagedLog. `name` is for the message."""
    is_closed = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().rstrip(",")
        if line in ("[", ""):
            continue
        if line == "]":
            is_closed = True
            continue
        try:
            entry = parse_json(line)
        except ValueError as error:
            raise DamagedLog(f"line {number} of {name} is damaged or was truncated") from error
        is_closed = isinstance(entry, list)
        for item in entry if isinstance(entry, list) else (entry,):
            if not isinstance(item, dict):
                raise DamagedLog(f"line {number} of {name} no responses logged")
            yield item
    if not is_closed:
        raise DamagedLog(f"{name} is incomplete: it was truncated, or the run ended early")


def sample_of(entry: Mapping[str, object], where: str) -> int:
    """Return the sample of an entry; raises DamagedLog, with `where` in it, for an entry without one."""
    try:
        return int(str(entry["qsl_idx"]))
    except (KeyError, ValueError) as error:
        raise DamagedLog(f"{where} is damaged or was truncated ({error!r})") from error


def response_of(entry: Mapping[str, object], where: str) -> bytes:
    """Return the response in an entry; raises DamagedLog, with `where` in it, for an entry without one."""
    try:
        return bytes.fromhex(str(entry["data"]))
    except (KeyError, ValueError) as error:
        raise DamagedLog(f"{where} is damaged or was truncated ({error!r})") from error


@functools.lru_cache(maxsize=4)
def shown_responses(text: str) -> tuple[tuple[int, int], ...]:
    """Return the number and the sample of each response that a log shows, cut or not."""
    return tuple((int(number), int(sample)) for number, sample in _NUMBERED.findall(text))
