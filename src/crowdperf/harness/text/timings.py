"""The client's measurements of the answers of a run: rates, times by request, the gaps between pieces, and goodput.

crowdperf/logs/answer_metrics.py defines each of them. LoadGen measures the first two times as well, but not in Offline.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from crowdperf.harness.text.engine import AnswerTimes
from crowdperf.harness.text.phases import Phases
from crowdperf.logs.answer_metrics import PERCENTS
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import TokenLimits

_MS = 1000.0
_GAP_TYPE = "f"
"""Gaps are kept as 4 bytes each: a run of 10 million pieces takes 40 MB."""


def spread_ms(times_s: "array[float]") -> dict[str, Json] | None:
    """Return mean and percentiles in ms, or None without values. A percentile is the value at int(count * part) of
    the sorted ones, as in LoadGen 6.0.17 (loadgen/logging.cc)."""
    if not times_s:
        return None
    places = [min(len(times_s) - 1, int(len(times_s) * percent / 100)) for percent in PERCENTS]
    parts = np.partition(np.frombuffer(times_s, dtype=times_s.typecode), places)
    found = {f"p{percent}": float(parts[place]) * _MS for percent, place in zip(PERCENTS, places, strict=True)}
    return {"mean": fmean(times_s) * _MS, **found}


@dataclass(slots=True)
class Timings:
    """The times of answers. prompts_without: answers whose prompt has no known number of tokens. slo: the limits
    of TTFT and TPOT for goodput, None without goodput. phases: the rates of answers that are made one at a time, None
    where several are in flight."""

    slo: TokenLimits | None = None
    phases: Phases | None = None
    answers: int = 0
    prompts_without: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    good: int = 0
    began_s: float = float("inf")
    ended_s: float = 0.0
    ttft_s: "array[float]" = field(default_factory=lambda: array("d"))
    tpot_s: "array[float]" = field(default_factory=lambda: array("d"))
    gaps_s: "array[float]" = field(default_factory=lambda: array(_GAP_TYPE))
    whole_s: "array[float]" = field(default_factory=lambda: array("d"))

    def take(self, times: AnswerTimes, tokens_in: int | None, tokens_out: int, began_with: int = 1) -> None:
        """Note an answer. tokens_in: of its prompt, None if unknown. began_with: tokens that came as the first."""
        self.answers += 1
        self.began_s, self.ended_s = min(self.began_s, times.began_s), max(self.ended_s, times.ended_s)
        self.prompts_without += tokens_in is None
        self.tokens_in += tokens_in or 0
        self.tokens_out += tokens_out
        self.whole_s.append(times.ended_s - times.began_s)
        if times.first_s is None:
            return
        ttft_s = times.first_s - times.began_s
        tpot_s = (times.ended_s - times.first_s) / (tokens_out - 1) if tokens_out > 1 else 0.0
        if self.phases is not None:
            self.phases.add(tokens_in or 0, began_with, tokens_out, times)
        self.ttft_s.append(ttft_s)
        if tokens_out > 1:
            self.tpot_s.append(tpot_s)
        self.gaps_s.extend(times.gaps_s)
        if self.slo is not None:
            self.good += ttft_s * _MS <= self.slo.ttft_ms and tpot_s * _MS <= self.slo.tpot_ms

    def record(self, *, times_from: str, has_failures: bool) -> Mapping[str, Json] | None:
        """Return the key `client` of `text` in result.json, or None if no answer has times. times_from:
        what the times of a request count from. has_failures: no times are given, as from LoadGen."""
        duration_s = self.ended_s - self.began_s
        if not self.answers or duration_s <= 0:
            return None
        goodput = None
        if self.slo is not None and self.ttft_s:
            goodput = {
                "requests_per_s": self.good / duration_s, "good": self.good,
                "ttft_limit_ms": self.slo.ttft_ms, "tpot_limit_ms": self.slo.tpot_ms,
            }  # fmt: skip
        spreads = {"ttft_ms": self.ttft_s, "tpot_ms": self.tpot_s, "itl_ms": self.gaps_s, "end_to_end_ms": self.whole_s}
        return {
            "times_from": times_from,
            "duration_s": duration_s,
            "requests_per_s": self.answers / duration_s,
            "input_tokens_per_s": None if self.prompts_without else self.tokens_in / duration_s,
            "output_tokens_per_s": self.tokens_out / duration_s,
            "goodput": goodput,
            **{name: None if has_failures else spread_ms(values) for name, values in spreads.items()},
        }
