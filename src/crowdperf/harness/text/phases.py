"""Tokens per second of the two phases of an answer, of requests that are answered one at a time: the prompt up to the
first token of its answer, and the tokens after it. Names and definitions are those of llama-bench (tools/llama-bench of
ggml-org/llama.cpp, b11549): pp512 is a prompt of 512 tokens, tg128 an answer of 128, each rate is that of one
repetition, and the spread is the sample standard deviation.
"""

import statistics
from dataclasses import dataclass, field

from crowdperf.harness.text.engine import AnswerTimes
from crowdperf.logs.run_log import Json

MIN_PIECES_PART = 0.5
"""Pieces after the first, for each token after the first ones, of an answer that counts: this project's choice."""


@dataclass(slots=True)
class _Phase:
    name: str
    lengths: set[int] = field(default_factory=set)
    tokens: int = 0
    rates: list[float] = field(default_factory=list)

    def add(self, length: int, tokens: int, duration_s: float) -> None:
        """Note a phase. length: what llama-bench counts, tokens: what took the time."""
        if length > 0 and tokens > 0 and duration_s > 0:
            self.lengths.add(length)
            self.tokens += length
            self.rates.append(tokens / duration_s)

    def record(self) -> dict[str, Json] | None:
        """Return the name, with the length where all have the same, and the rates, None without any."""
        if not self.rates:
            return None
        count = len(self.rates)
        return {
            "name": self.name + (str(min(self.lengths)) if len(self.lengths) == 1 else ""),
            "tokens": self.tokens / count,
            "answers": count,
            "mean": statistics.fmean(self.rates),
            "stddev": statistics.stdev(self.rates) if count > 1 else None,
            "min": min(self.rates),
            "max": max(self.rates),
        }


@dataclass(slots=True)
class Phases:
    """The rates of a run. One request is in flight at a time, so that one thread writes."""

    prompt: _Phase = field(default_factory=lambda: _Phase("pp"))
    generation: _Phase = field(default_factory=lambda: _Phase("tg"))

    def add(self, prompt_tokens: int, first_tokens: int, tokens: int, times: AnswerTimes) -> None:
        """Note an answer, unless its pieces are too few to show when its tokens were made: a server holds back bytes
        that are no whole character yet. prompt_tokens: 0 if they are not known. first_tokens: that came as the
        first."""
        is_streamed = len(times.gaps_s) >= MIN_PIECES_PART * (tokens - first_tokens)
        if times.first_s is not None and is_streamed and tokens > first_tokens:
            self.prompt.add(prompt_tokens, prompt_tokens, times.first_s - times.began_s)
            self.generation.add(tokens, tokens - first_tokens, times.ended_s - times.first_s)

    def record(self) -> list[Json]:
        """Return the phases with rates, in tokens per second, for result.json."""
        return [found for phase in (self.prompt, self.generation) if (found := phase.record()) is not None]
