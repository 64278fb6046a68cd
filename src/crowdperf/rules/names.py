"""The closed sets of names of MLPerf Inference: scenarios, modes, execution modes, and the metric of each scenario.

Every other module takes these types; text from users or files enters through the `parse_*` functions only.
Source of scenarios, metrics and percentiles: MLPerf inference rules, section "Scenarios"
(https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc, read November 2026).
"""

from __future__ import annotations

import enum
import functools
import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

FULL_RULES_MIN_DURATION_MS = 600_000
"""Shortest performance run of the MLPerf rules, all scenarios (rules since v1.0; enforced by the submission
checker)."""

TEST_RUN_LABEL = "test run, not a valid MLPerf result"
"""The words that stand beside every figure of a run that asked for less than the full duration."""

DEPARTURE_LABEL = "not measured by the rules"
"""Begins the words beside a figure whose run had settings that change what is measured; they follow in brackets."""

SYNTHETIC_LABEL = "synthetic input, not an MLPerf result"
"""The words that stand beside every figure got with made data or made weights."""


REHEARSAL_LABEL = "rehearsal, not an MLPerf submission"
"""The words in every file of a tree that was made to try the way of a submission, with runs that none may hold."""

STAND_IN_LABEL = "stand-in for a backend, not an MLPerf result"
"""The words that stand beside every figure got with a backend whose speed is no machine's."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 fact", "2,000 facts"; `plural` where that is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration_text(seconds: float) -> str:
    """Return a duration as people say it: "8 s", "41 min", "1 h 8 min"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Scenario(enum.Enum):
    """One of LoadGen's four ways to issue queries, or Server with the limits of a conversation (Interactive, language
    models only); the value is the spelling of LoadGen and of result folders."""

    SINGLE_STREAM = "SingleStream"
    MULTI_STREAM = "MultiStream"
    OFFLINE = "Offline"
    SERVER = "Server"
    INTERACTIVE = "Interactive"

    @property
    def is_stream(self) -> bool:
        """True where LoadGen sends the next query when the last one is answered."""
        return self in (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM)

    @property
    def is_server(self) -> bool:
        """True where LoadGen sends queries at random moments, whatever has been answered."""
        return self in (Scenario.SERVER, Scenario.INTERACTIVE)

    @property
    def issued_as(self) -> Scenario:
        """The scenario that LoadGen and its logs know: an Interactive run is a Server run of another model name."""
        return Scenario.SERVER if self is Scenario.INTERACTIVE else self

    @property
    def target_key(self) -> str:
        """LoadGen's key of the target that a run is planned with: ms in a stream, else queries per second."""
        return "target_latency" if self.is_stream else "target_qps"


TARGETS = {
    Scenario.SINGLE_STREAM: ("target_latency_ms", "singlestream_target_latency_ms", "target_latency_ms"),
    Scenario.MULTI_STREAM: ("target_latency_ms", "multistream_target_latency_ms", "target_latency_ms"),
    Scenario.OFFLINE: ("target_qps", "offline_target_qps", "target_qps"),
    Scenario.SERVER: ("target_qps", "server_target_qps", "target_qps"),
    Scenario.INTERACTIVE: ("target_qps", "interactive_target_qps", "target_qps"),
}
"""Of each scenario: the target it has, the input that sets it for this scenario alone, and the one for several."""


class Mode(enum.Enum):
    """What one LoadGen run is for: a figure of speed, or the responses of the whole validation set."""

    PERFORMANCE = "performance"
    ACCURACY = "accuracy"


class ExecutionMode(enum.Enum):
    """How long a run is: `test` 2 s, `fast` 60 s, `valid` the full rules (600 s)."""

    TEST = "test"
    FAST = "fast"
    VALID = "valid"

    @property
    def min_duration_ms(self) -> int:
        """Shortest performance run: `test` and `fast` are this project's choice, `valid` is the rule."""
        return {"test": 2_000, "fast": 60_000, "valid": FULL_RULES_MIN_DURATION_MS}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What the figure of a scenario is called, its unit, and which direction is good."""

    name: str
    unit: str
    higher_is_better: bool


_SERVER_METRIC = Metric(name="completed queries per second", unit="queries/s", higher_is_better=True)
METRIC_OF_SCENARIO: Mapping[Scenario, Metric] = {
    Scenario.SINGLE_STREAM: Metric(
        name="90th percentile latency (early-stopping estimate)", unit="ms", higher_is_better=False
    ),
    Scenario.MULTI_STREAM: Metric(
        name="99th percentile latency of 8-sample queries (early-stopping estimate)",
        unit="ms",
        higher_is_better=False,
    ),
    Scenario.OFFLINE: Metric(name="throughput", unit="samples/s", higher_is_better=True),
    Scenario.SERVER: _SERVER_METRIC,
    Scenario.INTERACTIVE: _SERVER_METRIC,
}

FIGURE_KEYS: Mapping[Scenario, str] = {
    Scenario.SINGLE_STREAM: "early_stopping_latency_ss",
    Scenario.MULTI_STREAM: "early_stopping_latency_ms",
    Scenario.OFFLINE: "result_samples_per_second",
    Scenario.SERVER: "result_completed_samples_per_sec",
    Scenario.INTERACTIVE: "result_completed_samples_per_sec",
}
"""The key of the detail log with the figure of each scenario, which the checkers read and TEST01 compares (RESULT_FIELD
of its verify_performance.py); latencies are in nanoseconds there."""

PLAIN_LATENCY_METRIC = Metric(name="90th percentile latency", unit="ms", higher_is_better=False)
"""Of SingleStream runs that LoadGen measures by tokens."""

TOKEN_METRIC = Metric(name="tokens per second", unit="tokens/s", higher_is_better=True)
INFERRED_TOKEN_METRIC = Metric(name="inferred tokens per second", unit="tokens/s", higher_is_better=True)
_SERVER_TOKENS = {
    "result_completed_tokens_per_second": TOKEN_METRIC,
    "result_inferred_completed_tokens_per_second": INFERRED_TOKEN_METRIC,
}
TOKEN_KEYS: Mapping[Scenario, Mapping[str, Metric]] = {
    Scenario.OFFLINE: {
        "result_tokens_per_second": TOKEN_METRIC,
        "result_inferred_tokens_per_second": INFERRED_TOKEN_METRIC,
    },
    Scenario.SERVER: _SERVER_TOKENS,
    Scenario.INTERACTIVE: _SERVER_TOKENS,
}
"""What LoadGen logs of a model with `use_token_latencies` in its mlperf.conf, and since 4.1 of one with
`infer_token_latencies`, which is GPT-J only (results.cc); the official checkers publish it instead of the metric of the
scenario."""

MULTI_STREAM_SAMPLES_PER_QUERY = 8
"""Samples of one MultiStream query (rules since v2.0)."""


def _letters(text: str) -> str:
    return re.sub(r"\d", "", text.lower())


def with_problems(title: str, problems: Sequence[str]) -> str:
    """Return what is said of a call with these problems: a single one stands in the first line, several below it."""
    before = " " if len(problems) == 1 else "\n  "
    return f"{title}:" + "".join(before + text for text in problems)


class RequestError(Exception):
    """A call asks for something that cannot be. problems: one text for each. code: of the process, above 0."""

    def __init__(self, problems: Sequence[str], code: int = 1, title: str = "cannot run this request") -> None:
        super().__init__(with_problems(title, problems))
        self.problems, self.code = tuple(problems), code


def unknown_text(kind: str, found: str, known: Sequence[str]) -> str:
    """Return what is said of a text that names no member of a closed set: the nearest name first, then all.

    A name that differs by its digits only (a round, a test) is another one, not one that was misspelt.
    """
    from difflib import get_close_matches  # rarely needed, and slow to import

    by_lower = {name.lower(): name for name in known}
    near = next(iter(get_close_matches(found.lower(), by_lower, n=1)), "")
    is_another = _letters(near) == _letters(found) != found.lower()
    meant = f" (did you mean {by_lower[near]}?)" if near and not is_another else ""
    return f"unknown {kind} {found!r}{meant}; known: {', '.join(known)}"


class UnknownName(ValueError):
    """A text that names no member of a closed set; `found` and `allowed` are on the object."""

    def __init__(self, kind: str, found: str, allowed: tuple[str, ...]) -> None:
        super().__init__(unknown_text(kind, found, allowed))
        self.kind = kind
        self.found = found
        self.allowed = allowed


_Member = TypeVar("_Member", bound=enum.Enum)


def _parse(members: type[_Member], kind: str, text: str) -> _Member:
    wanted = re.sub(r"[-_ ]", "", text).lower()
    for member in members:
        if str(member.value).lower() == wanted:
            return member
    raise UnknownName(kind, text, tuple(str(member.value) for member in members))


def parse_scenario(text: str) -> Scenario:
    """Return the scenario that `text` names, whatever its case, hyphens or underscores; raises UnknownName."""
    return _parse(Scenario, "scenario", text)


ALL_MODES = "all"
_TEST_MODES = {
    "accuracyonly": (Mode.ACCURACY,),
    "performanceonly": (Mode.PERFORMANCE,),
    "submissionrun": (Mode.PERFORMANCE, Mode.ACCURACY),
    ALL_MODES: (Mode.PERFORMANCE, Mode.ACCURACY),
}
"""The names of LoadGen's TestMode (test_settings.h, LoadGen 6.0.17), which NVIDIA's harness takes, in small letters.
FindPeakPerformance is no mode here: the search is made by performance runs."""


class NoModeButASearch(UnknownName):
    """FindPeakPerformance, with what to ask for instead."""

    def __init__(self, text: str) -> None:
        super().__init__("mode", text, tuple(member.value for member in Mode))
        self.args = (f"{text} is a search, not a mode: give --find=yes, or _find-performance to generate-run-cmds",)


def parse_modes(text: str) -> tuple[Mode, ...]:
    """Return the modes of a comma list in the usual order: ours, those of LoadGen's TestMode, `all` for both.

    Raises UnknownName, and NoModeButASearch.
    """
    found: set[Mode] = set()
    for word in (word.strip() for word in text.split(",")):
        if word.lower() == "findpeakperformance":
            raise NoModeButASearch(word)
        try:
            found.update(_TEST_MODES.get(word.lower()) or (_parse(Mode, "mode", word),))
        except UnknownName as error:
            raise UnknownName("mode", word, (*error.allowed, ALL_MODES)) from error
    return tuple(mode for mode in Mode if mode in found)


def parse_mode(text: str) -> Mode:
    """Return the one mode that `text` names; raises UnknownName."""
    modes = _TEST_MODES.get(text.lower(), ())
    return modes[0] if len(modes) == 1 else _parse(Mode, "mode", text)


def parse_execution_mode(text: str) -> ExecutionMode:
    """Return the execution mode that `text` names; raises UnknownName."""
    return _parse(ExecutionMode, "execution mode", text)


class _Seen(dict[int, int | None]):
    """For str.translate: what people see of a character, None where it takes no room."""

    def __missing__(self, number: int) -> int | None:
        seen = None if unicodedata.category(chr(number)) in ("Cf", "Mn", "Me") else number
        self[number] = seen
        return seen


_SEEN = _Seen(str.maketrans("", "", "*_`\\"))
_FEW_LETTERS = 8
"""So many are removed from megabytes quicker one by one than by a table."""
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


@functools.lru_cache(maxsize=4)
def plain_text(text: str) -> str:
    """Return a text as its readers see it, in lower case: one form of each letter (NFKC), without characters that take
    no room and marks of Markdown, single spaces; escapes of JSON and HTML are resolved. Empty for one that is blank."""
    if not (text.isascii() and "&" not in text and "\\u" not in text):
        text = unicodedata.normalize("NFKC", html.unescape(_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)))
    unseen = [letter for letter in set(text) if _SEEN[ord(letter)] is None]
    if len(unseen) > _FEW_LETTERS:
        text = text.translate(_SEEN)
    else:
        for letter in unseen:
            text = text.replace(letter, "")
    return " ".join(text.split()).casefold()


def printable(text: str) -> str:
    """Return a foreign text (a file name, a value of a log) for one line of a terminal.

    Control, bidirectional and invisible characters, line ends and bytes that are not UTF-8 are shown as escapes. The
    engine has the same function (`rules/errors.py`): it can import nothing from here; a test compares them.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )


def printable_lines(text: str) -> str:
    """Return a foreign text of several lines for a terminal."""
    return "\n".join(map(printable, text.splitlines()))
