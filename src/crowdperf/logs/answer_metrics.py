"""The metrics of answers that are made token by token: names, units and definitions, for result.json, tables, pages,
sweeps, comparisons and the store. Pure.

    request        issue (Offline: send) ... first piece ... piece ... last piece, end of the answer
    TTFT           first piece - issue                       by request
    TPOT           (end - first piece) / (output tokens - 1) by request, as LoadGen has it
    ITL            piece - piece before it                   by gap between pieces that were received apart
    end-to-end     end - issue                               by request
    goodput        answers within all limits (TTFT, TPOT) / duration

ITL and TPOT have nearly the same mean where each piece is one token. ITL shows stalls in the middle of answers, which
TPOT averages away, and is longer if a piece has several tokens. vllm bench serve has the same ITL, except that it
counts events that were received together one by one (vllm/benchmarks/lib/endpoint_request_func.py 02cfb534); the
"inter-token latency" of guidellm and aiperf is this TPOT (sources: crowdperf/store/other_tools.py). Goodput is that of
vllm bench serve --goodput (vllm/benchmarks/serve.py 009e6d4a, read 2026-11-28): the rate of the requests that met every
limit. DistServe (OSDI 2024), which introduced the word, means the highest rate at which 90 % of the requests do.

TTFT, TPOT and the output rate are LoadGen's if it measured them, and the client's otherwise (Offline).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.text_documents import mapping, part

PERCENTS = (50, 90, 99)
CLIENT = "client"
"""Key of `text` in result.json, and how the names of such metrics begin in results databases: logs do not have them."""
NO_ANSWER = "no answer during the run"
"""Why a server's own metrics are not known: it was too slow for the run, or the run too short for it."""
STATISTICS = ("mean", *(f"p{one}" for one in PERCENTS))


@dataclass(frozen=True, slots=True)
class TextMetric:
    """A metric. places: where `text` of result.json has it, LoadGen's first."""

    title: str
    unit: str
    meaning: str
    places: tuple[tuple[str, ...], ...]
    has_spread: bool = True
    higher_is_better: bool = False


def _time(title: str, key: str, meaning: str, *, is_loadgens: bool = False) -> TextMetric:
    places = (("client", key),)
    return TextMetric(title, "ms", meaning, ((key,), *places) if is_loadgens else places)


def _rate(title: str, unit: str, meaning: str, *places: tuple[str, ...]) -> TextMetric:
    return TextMetric(title, unit, meaning, places, has_spread=False, higher_is_better=True)


METRICS = (
    _rate("tokens per second", "tokens/s", "output tokens of all answers per second", ("tokens_per_second",),
          ("client", "output_tokens_per_s")),
    _rate("input tokens per second", "tokens/s", "tokens of all answered prompts per second",
          ("client", "input_tokens_per_s")),
    _rate("requests per second", "requests/s", "answers per second", ("client", "requests_per_s")),
    _rate("goodput", "requests/s", "answers per second that met the limits of TTFT and TPOT",
          ("client", "goodput", "requests_per_s")),
    _time("TTFT", "ttft_ms", "time to the first token", is_loadgens=True),
    _time("TPOT", "tpot_ms", "time per output token after the first one", is_loadgens=True),
    _time("ITL", "itl_ms", "inter-token latency: time between two pieces of an answer"),
    _time("end-to-end", "end_to_end_ms", "time to the end of the answer"),
)  # fmt: skip


def found_of(metric: TextMetric, text: Mapping[str, Any]) -> Any:
    """Return the value of a metric, a mapping by STATISTICS if it has a spread, None if it was not measured. text: the
    key of a result.json."""
    return next((found for place in metric.places if (found := part(text, *place)) is not None), None)


def values_of(text: Mapping[str, Any]) -> Iterator[tuple[TextMetric, str, float]]:
    """Yield each measured value with its metric and its statistic, "" for a rate."""
    for metric in METRICS:
        found = found_of(metric, text)
        for name, value in mapping(found).items() if metric.has_spread else (("", found),):
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
            if name in ("", *STATISTICS) and is_number:
                yield metric, name, float(value)


def client_values_of(text: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """Yield name, value and unit of each metric that the client measured and LoadGen did not, for results databases."""
    for metric, statistic, value in values_of(text):
        if part(text, *metric.places[0]) is None or metric.places[0][0] == "client":
            yield f"{CLIENT} {metric.title} {statistic.removeprefix('p')}".strip(), value, metric.unit
