"""How the words of a published row become columns: benchmark, precision, software, counts, scores. Pure.

Each function returns what it made of a text, and a note where the text says less, or something else, than a column
needs.
Facts: summary.csv of mlcommons/inference_results_v6.1 at 7bf15fd8 (read 2026-11-23).
"""

import math
import re
from collections.abc import Mapping

from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import METRIC_OF_SCENARIO, TOKEN_METRIC, Metric, Scenario

_RESNET = next(one for one in RECORDS.values() if one.checker_name == "resnet")

BENCHMARK_NAMES: Mapping[str, str] = {
    _RESNET.checker_name: _RESNET.name,
    "text_to_video": "wan-2.2-t2v-a14b",
    "VLM": "qwen3-vl-235b-a22b",
    "agentic edge": "qwen3.6-27b",
}
"""Names of MlperfModel that say less than the model's own name, which Model has."""

_LATENCY = Metric(name="latency", unit="ms", higher_is_better=False)
_UNITS: Mapping[str, tuple[Metric, float]] = {
    "Tokens/s": (TOKEN_METRIC, 1.0),
    "Samples/s": (METRIC_OF_SCENARIO[Scenario.OFFLINE], 1.0),
    "Queries/s": (METRIC_OF_SCENARIO[Scenario.SERVER], 1.0),
    "Latency (ms)": (_LATENCY, 1.0),
    "Latency (s)": (_LATENCY, 1000.0),
}
"""By Units: what the figure is, and what it is multiplied with."""

_TIER = re.compile(r"(.+)-(99(?:\.9)?)")
_SCORE = re.compile(r"([A-Za-z][\w.@ -]*?):\s*(\S+)")
_TYPES = re.compile(r"(?<![a-z0-9])(?:nvfp4|mxfp[468]|fp(?:4|6|8|16|32|64)|bf16|tf32|int(?:4|8|16)|w\d+a\d+)(?![0-9])")
_PLAIN_TYPES = re.compile(r"[a-z0-9]+(?:\s*,\s*[a-z0-9]+)*")
_VERSION = re.compile(r"\s+v?\d.*|\s+[\w.-]+[:/].*|\s+\([^)]*\)$")
_TOTAL = re.compile(r"(\d+) total cores")
_PER_SOCKET = re.compile(r"(\d+)\s*cores?\b[^,]*?\b(?:per socket|/\s*socket)")
_NO_TEXT = ("", "none", "n/a", "na", "-")


def is_nothing(text: str) -> bool:
    """Whether a cell says that there is nothing: empty, `None`, `N/A`."""
    return text.strip().casefold() in _NO_TEXT


def split_tier(name: str) -> tuple[str, str]:
    """Return a benchmark's name without its quality tier, and the tier: "99", "99.9" or ""."""
    found = _TIER.fullmatch(name)
    return (found.group(1), found.group(2)) if found else (name, "")


def metric_of(unit: str) -> tuple[Metric, float, str]:
    """Return the metric of a unit, what its figure is multiplied with, and a note where the unit is not known."""
    found = _UNITS.get(unit.strip())
    if found is not None:
        return (*found, "")
    is_rate = unit.strip().endswith("/s")
    known = ", ".join(_UNITS)
    direction = "a greater" if is_rate else "a smaller"
    note = f"Units {unit!r} is not known ({known}), assuming {direction} is better"
    return Metric(name=unit.strip() or "figure", unit=unit.strip(), higher_is_better=is_rate), 1.0, note


def figure_of(text: str) -> float | None:
    """Return the number of a text; None where it has none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def scores_of(text: str) -> tuple[tuple[tuple[str, float], ...], str]:
    """Return the scores of an Accuracy, by name in its order, and a note where a part of it is none.

    `NAME: value` pairs stand two blanks apart. One bare fraction, of runs in the layout of Endpoints, is a share of 1:
    it becomes a percentage called `accuracy`.
    """
    bare = figure_of(text)
    if bare is not None:
        return (("accuracy", bare * 100 if 0 <= bare <= 1 else bare),), ""
    found, wrong = [], []
    for part in re.split(r"\s{2,}", text.strip()):
        pair = _SCORE.fullmatch(part)
        value = figure_of(pair.group(2)) if pair else None
        if pair is None or value is None:
            wrong.append(part)
        else:
            found.append((pair.group(1), value))
    return tuple(found), f"Accuracy {'; '.join(wrong)!r} is not a score" if wrong else ""


def precision_of(text: str) -> tuple[str, str]:
    """Return the numeric types that a text names, `bf16+fp8`, sorted, and a note where it says more than types."""
    lowered = text.strip().casefold()
    types = sorted(set(_TYPES.findall(lowered)))
    if not types:
        return lowered, "" if is_nothing(text) else f"weight_data_types {text!r} contains no known type"
    is_plain = _PLAIN_TYPES.fullmatch(lowered) and len(types) == len({part.strip() for part in lowered.split(",")})
    return "+".join(types), "" if is_plain else f"weight_data_types {text!r} read as {'+'.join(types)}"


def stack_of(text: str) -> str:
    """Return the first program of a list of software, in small letters and without its version."""
    first = text.split(",")[0].strip()
    return _VERSION.sub("", first).strip().casefold() or first.casefold()


def device_of(accelerator: str) -> str:
    """Return what a stack calls the device: `cuda` of NVIDIA's accelerators, `rocm` of AMD's, `cpu` without any."""
    if not accelerator:
        return "cpu"
    words = accelerator.casefold()
    makers = (("nvidia", "cuda"), ("amd", "rocm"), ("intel", "xpu"), ("google", "tpu"))
    return next((device for maker, device in makers if maker in words), "accelerator")


def count_of(text: str) -> int | None:
    """Return the whole number of a text; None where it has none."""
    stripped = text.strip()
    return int(stripped) if re.fullmatch(r"\d{1,9}", stripped) else None


def cores_of(text: str, sockets: int) -> tuple[int, str]:
    """Return the number of cores, as its submitter counts them, and a note for a text in prose or without a number."""
    count = count_of(text)
    if count is not None:
        return count, ""
    if total := _TOTAL.search(text):
        return int(total.group(1)), f"host_processor_core_count {text!r} read as {total.group(1)}"
    if each := _PER_SOCKET.search(text):
        cores = int(each.group(1)) * max(sockets, 1)
        return cores, f"host_processor_core_count {text!r} read as {cores}"
    return 0, f"host_processor_core_count {text!r} is not a number"


def sockets_of(text: str, processor: str, platform: str) -> tuple[int, str]:
    """Return the processors of a node, and a note where the text is no number or the platform's name says another.

    A platform `8xA_2xCHIP_9000` of a processor `Maker CHIP 9000` has two: some rows give the accelerators' number.
    """
    count = count_of(text)
    if count is None:
        return 0, f"host_processors_per_node {text!r} is not a number"
    words = {word.casefold() for word in re.findall(r"[A-Za-z0-9]{4,}", processor)}
    for number, name in re.findall(r"(?<![A-Za-z0-9])(\d{1,2})x([A-Za-z0-9]+)", platform):
        if name.casefold() in words and int(number) not in (0, count):
            return int(number), f"host_processors_per_node {count} read as {number}: the platform is called {platform}"
    return count, ""
