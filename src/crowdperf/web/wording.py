"""The words for labels, checks, systems and configurations: one text for each, on every page. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from crowdperf.endpoints.findings import TITLES
from crowdperf.logs.answer_metrics import CLIENT
from crowdperf.store.curve_bundles import CONTRADICTIONS
from crowdperf.store.model import Configuration, System
from crowdperf.store.query import Row

LABELS: Final = {
    "unofficial": "MLCommons did not review the result.",
    "synthetic": "The inputs, the model or both are synthetic. The result shows their speed, not that of the"
    " benchmark.",
    "tiny": "A small model replaces the benchmark's. The result is not one of the benchmark.",
    "stand-in": "A stand-in replaced the real backend: a rehearsal.",
    "test run": "The run was shorter than the rules require.",
    "fast run": "The run was shorter than the rules require.",
    "not exclusive": "Other programs or jobs ran on the machine at the same time.",
    "outlier": "Further from the median of its configuration than three times the median absolute deviation.",
    "new contributor": "The key that signed it is new to this collector.",
    "own model": "The weights are not the published ones: the harness of the benchmark measured another model.",
    "other tool": "Measured by another load generator, not by LoadGen. Its own name for a metric means its own"
    " definition.",
    "own data": "The samples are not the benchmark's: its harness measured other data.",
    "accuracy below target": "The accuracy run missed its target, so the result does not count.",
    "weights not checked": "The weights came from a path, and no digest of the benchmark's weights is published.",
    "weights of a server": "Measured on a server: its weights cannot be checked.",
    "server not seen": "A server was measured over its URL: its hardware is not known, and results of one "
    "configuration may come from different servers. Facts named `client` describe the client's machine.",
    "origin not recorded": "An older crowdperf made the result and did not record whether weights and samples are the"
    " benchmark's own.",
    "inferred": "MLCommons derived the value from another scenario of the same system.",
}
"""What each label means; a source may bring others, which are printed as they are."""

WARNING_LABELS: Final = frozenset(
    (
        "unofficial",
        "synthetic",
        "tiny",
        "stand-in",
        "test run",
        "fast run",
        "not exclusive",
        "outlier",
        "own model",
        "own data",
        "other tool",
        "weights not checked",
        "accuracy below target",
        "server not seen",
        "origin not recorded",
    )
)

VERIFICATIONS: Final = {
    "logs consistent": "every value was recomputed from LoadGen's own logs, and the logs are self-consistent.",
    "not consistent": "the logs are not self-consistent, or other files contradict them: see the notes. The value is "
    "that of the log.",
    "summary": "the values were read from a summary, without the logs.",
    "published": "the values were copied from MLCommons' published summary.",
    "none": "not checked.",
}

CHECKS: Final = (
    ("V1", "LoadGen's summary agrees with its detailed log: value, validity, parameters, seeds."),
    ("V2", "Latency percentiles rise from the minimum to the maximum, and the mean is in between."),
    ("V3", "The measured window is the time between its first and its last mark."),
    ("V4", "Offline: rate times maximum latency is the number of samples, and the window is the maximum latency."),
    ("V5", "SingleStream: rate and mean latency are each other's inverse, and the queries fill the window."),
    ("V6", "MultiStream: the queries' latencies are within the window."),
    ("V7", "Server: completed queries fill the window, the scheduled rate is near its target, and the late queries are"
     " as many as the verdict says."),
    ("V8", "The early-stopping estimate follows from the number of queries."),
    ("V9", "Times in the log never go back."),
    ("V10", "The seeds are those of a published round."),
    ("V11", "The version of LoadGen is a known one."),
    ("V12", "Duration and number of queries reach the minimum of the claimed length of run."),
    ("V13", "The other files agree with the logs, and the seals of the record match."),
)  # fmt: skip
"""What is derived again from the logs of a run of LoadGen before a volunteer's result is kept."""

CURVE_VERIFICATIONS: Final = {
    "logs consistent": "every value was recomputed from the times of each sample, with the sender's token counts, "
    "and the files agree with each other.",
    "summary": "the values are claimed: the files agree with each other, but not all of their samples were included.",
}
CURVE_CHECKS: Final = tuple((name, TITLES[name]) for name in sorted(CONTRADICTIONS, key=lambda name: int(name[1:])))
"""What is derived again of a curve of MLPerf Endpoints (docs/reference/endpoints-rules.md)."""
_LOGS = "logs consistent"


def verification_words(suite: str, verification: str) -> str:
    """How far a result was checked, in a sentence."""
    words = {**VERIFICATIONS, **CURVE_VERIFICATIONS} if suite == "endpoints" else VERIFICATIONS
    return words.get(verification, "")


def checks_of(suite: str, verification: str) -> tuple[tuple[str, str], ...]:
    """The rules by which a result was derived again; none where it was not."""
    if verification != _LOGS:
        return ()
    return CURVE_CHECKS if suite == "endpoints" else CHECKS


RUN_CLASSES: Final = {
    "valid": "full length",
    "fast": "shorter than the rules require",
    "test": "a few seconds, for trying out",
}


def kind_of_label(label: str) -> str:
    """The class of a label in style.css; "" for one that says nothing to be careful about."""
    return "warn" if label in WARNING_LABELS or label.startswith("stand-in") or _is_part(label) else ""


def label_rows(labels: Iterable[str]) -> list[tuple[str, str]]:
    """Labels with their meaning, for those that have one."""
    return [(one, _PART_OF_DATA if _is_part(one) else LABELS[one]) for one in labels if one in LABELS or _is_part(one)]


_PART_OF_DATA: Final = "The run used only part of the benchmark's samples, so it is listed under a separate name."


def _is_part(label: str) -> bool:
    """Whether a label is `50 of 50,000 samples`."""
    return label.endswith(" samples")


def name_of(one: Row | Configuration) -> str:
    """A result's name: benchmark with its quality tier, and scenario."""
    tier = f"-{one.tier}" if one.tier and not one.benchmark.endswith(one.tier) else ""
    return f"{one.benchmark}{tier} {one.scenario}".strip()


def hardware_of(one: Row | System) -> str:
    """The accelerator of a system, or its processor where it has none."""
    return one.accelerator or one.cpu or "system not known"


def system_words(one: Row | System) -> str:
    """A system in a few words: `8 x NVIDIA H100, 2 nodes`, or its processor where it has no accelerator."""
    count = f"{one.accelerator_count} x " if one.accelerator and one.accelerator_count > 1 else ""
    return f"{count}{hardware_of(one)}, {one.nodes} nodes" if one.nodes > 1 else f"{count}{hardware_of(one)}"


TOKEN_TIMES: Final = {"TTFT": "Time to first token", "TPOT": "Time per output token", "ITL": "Inter-token latency",
                      "end-to-end": "Time to the end of the answer"}  # fmt: skip


def figure_words(name: str) -> str:
    """A figure's name in words: percentiles are kept as bare numbers, those of tokens behind TTFT or TPOT."""
    if name.startswith(f"{CLIENT} "):
        return f"{figure_words(name.removeprefix(f'{CLIENT} '))}, measured by the client"
    kind, _, percent = name.rpartition(" ")
    if kind in TOKEN_TIMES and percent == "mean":
        return f"{TOKEN_TIMES[kind]} ({kind}), mean"
    if kind in TOKEN_TIMES and re.fullmatch(_PERCENT, percent):
        return f"{TOKEN_TIMES[kind]} ({kind}) p{percent}"
    if not re.fullmatch(_PERCENT, name):
        return {"mean": "Latency, mean"}.get(name, name[:1].upper() + name[1:])
    return {"0": "Latency, min", "100": "Latency, max"}.get(name, f"Latency, p{name}")


_PERCENT = r"\d{1,3}(\.\d+)?"
