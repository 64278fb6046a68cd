"""Calibration: from the values that a network's tensors take to the range that 8 bits are spread over, and the neutral
file that holds such ranges.

    {"format": 2, "method": "entropy", "networks": {"model": {"conv1_out": [0.0, 3.2], ...}},
     "provenance": {"model": {"name", "sha256"}, "dataset": {"name", "is_synthetic", ...},
                    "calibration": {"name", "sha256", "is_official"}, "sample_ids": [...], "versions": {...}}}

Names are those of the ONNX file; ranges hold zero. Nothing in the file belongs to one runtime. Pure but for reading and
writing the file.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array
from crowdperf.kit.whole_file import write_json

FORMAT = 2
METHODS = ("entropy", "minmax", "percentile")
BIN_COUNT = 4096
"""Bins over -largest to +largest, so half of them on each side."""
_LEVELS = 128
"""Values of seven bits: the magnitudes that a signed byte can tell apart."""
_STEP = 16
"""Bins between two thresholds that are tried; finer steps moved no range of resnet50 by more than 1 %."""
DEFAULT_PERCENTILE = 99.99
_HINT = "calibrate again: cm run script --tags=calibrate,ml-model --renew"

Histogram = npt.NDArray[np.int64]
Range = tuple[float, float]


@dataclass(slots=True)
class Observed:
    """What was seen of one tensor: smallest and greatest value, and counts in BIN_COUNT bins over -limit to limit."""

    low: float = 0.0
    high: float = 0.0
    counts: Histogram | None = None

    @property
    def limit(self) -> float:
        return max(-self.low, self.high)

    def widen(self, values: Array) -> None:
        """Take the smallest and greatest of `values` in."""
        if values.size:
            low, high = float(values.min()), float(values.max())
            self.low, self.high = (min(self.low, low), max(self.high, high)) if low <= high else (-math.inf, math.inf)

    def count(self, values: Array) -> None:
        """Add `values` to the counts; `widen` must have seen all values before."""
        if self.counts is None:
            self.counts = np.zeros(BIN_COUNT, dtype=np.int64)
        if self.limit == 0.0 or not math.isfinite(self.limit) or not values.size:
            return
        scale = np.float32(BIN_COUNT / (2 * self.limit))
        bins = (values.reshape(-1) * scale).astype(np.int32) + BIN_COUNT // 2
        np.clip(bins, 0, BIN_COUNT - 1, out=bins)
        self.counts += np.bincount(bins, minlength=BIN_COUNT)


def range_of(observed: Observed, method: str, percentile: float = DEFAULT_PERCENTILE) -> Range:
    """Return the range of a tensor, zero in it; raises HarnessError for an unknown method or values that are no
    numbers."""
    if not (math.isfinite(observed.low) and math.isfinite(observed.high)):
        raise HarnessError("a tensor has values that are not numbers", "check the model and the data set")
    if method == "minmax" or observed.limit == 0.0:
        return observed.low, observed.high
    assert observed.counts is not None
    if method == "percentile":
        return percentile_range(observed, percentile)
    if method == "entropy":
        limit = entropy_limit(magnitudes(observed.counts)) * observed.limit
        return max(observed.low, -limit), min(observed.high, limit)
    raise HarnessError(f"calibration method is {method!r}; allowed: {', '.join(METHODS)}")


def percentile_range(observed: Observed, percentile: float) -> Range:
    """Return the range that leaves out half of the remaining share of values at each end."""
    assert observed.counts is not None
    rising = np.cumsum(observed.counts) / max(1, int(observed.counts.sum()))
    tail = (1.0 - percentile / 100.0) / 2
    edges = np.linspace(-observed.limit, observed.limit, BIN_COUNT + 1)
    low = float(edges[int(np.searchsorted(rising, tail, side="right"))])
    high = float(edges[min(BIN_COUNT, int(np.searchsorted(rising, 1.0 - tail)) + 1)])
    return max(observed.low, min(0.0, low)), min(observed.high, max(0.0, high))


def magnitudes(counts: Histogram) -> Histogram:
    """Fold counts over -limit to limit into counts over 0 to limit."""
    half = len(counts) // 2
    return counts[half:] + counts[:half][::-1]


def entropy_limit(counts: Histogram) -> float:
    """Return the threshold, as a part of the greatest magnitude, that loses the least information in 128 levels.

    For each threshold the kept values with all greater ones put into the last bin (P) are compared with the same
    values rounded to 128 levels (Q); the threshold of the smallest divergence of Q from P wins. Source: S. Migacz,
    "8-bit Inference with TensorRT", GTC 2017, slides "Entropy calibration - pseudocode".
    """
    best, best_divergence = len(counts), math.inf
    kept_total = np.cumsum(counts)
    counts = counts.astype(np.int64)
    counts[0] = counts[1] if len(counts) > 1 else counts[0]  # zeros (behind a Relu) need no level of their own
    for end in range(_LEVELS, len(counts) + 1, _STEP):
        kept = counts[:end].astype(np.float64)
        outliers = float(kept_total[-1] - kept_total[end - 1])
        divergence = _divergence(kept, outliers)
        if divergence < best_divergence:
            best, best_divergence = end, divergence
    return best / len(counts)


def _divergence(kept: npt.NDArray[np.float64], outliers: float) -> float:
    """Return the Kullback-Leibler divergence of the values rounded to 128 levels from the clipped values."""
    clipped = kept.copy()
    clipped[-1] += outliers
    total = clipped.sum()
    if total == 0.0:
        return math.inf
    starts = (np.arange(_LEVELS) * len(kept)) // _LEVELS
    is_filled = kept > 0
    sums = np.add.reduceat(kept, starts)
    filled = np.add.reduceat(is_filled.astype(np.float64), starts)
    widths = np.diff(np.append(starts, len(kept)))
    rounded = np.repeat(np.divide(sums, filled, out=np.zeros_like(sums), where=filled > 0), widths) * is_filled
    rounded_total = rounded.sum()
    if rounded_total == 0.0:
        return math.inf
    wanted, found = clipped / total, rounded / rounded_total
    has_both = (wanted > 0) & (found > 0)
    missing = float(wanted[(wanted > 0) & (found == 0)].sum())
    return float((wanted[has_both] * np.log(wanted[has_both] / found[has_both])).sum()) + missing * 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Ranges by tensor name, by network; and where they come from."""

    method: str
    networks: Mapping[str, Mapping[str, Range]]
    provenance: Mapping[str, Any] = field(default_factory=dict)


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write the file whole or not at all."""
    content = {
        "format": FORMAT,
        "method": calibration.method,
        "provenance": dict(calibration.provenance),
        "networks": {name: {tensor: list(row) for tensor, row in sorted(rows.items())}
                     for name, rows in calibration.networks.items()},
    }  # fmt: skip
    write_json(path, content, indent=1)


def read_calibration(path: Path) -> Calibration:
    """Return what the file at `path` holds; raises HarnessError naming what is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT or content["method"] not in METHODS:
            raise ValueError(f"format {content['format']!r}, method {content['method']!r}")
        networks = {
            str(name): {str(tensor): (float(low), float(high)) for tensor, (low, high) in rows.items()}
            for name, rows in content["networks"].items()
        }
        provenance = dict(content["provenance"])
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", _HINT) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HarnessError(f"{path} is not a calibration of format {FORMAT}: {error!r}", _HINT) from error
    wrong = [
        tensor
        for rows in networks.values()
        for tensor, (low, high) in rows.items()
        if not (math.isfinite(low) and math.isfinite(high) and low <= 0.0 <= high)
    ]
    if wrong:
        raise HarnessError(f"{path}: the range of {wrong[0]} does not contain zero, or is not a number", _HINT)
    return Calibration(method=content["method"], networks=networks, provenance=provenance)
