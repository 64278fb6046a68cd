"""Reads metadata.json, the summary of one LoadGen run, in the forms of several rounds. Pure.

Two forms are read: that of NVIDIA's v4.1 tree and of this project's harness (`config_name`, `summary_string`), and that
of its v5.0 and v5.1 trees (`workload_setting_code`, `true_result_value`). Source: mlcommons/inference_results_v5.1,
closed/NVIDIA/code/ops/harness.py and code/common/constants.py (965182b0); microsoft/VirtualClient, examples of its unit
tests (53e432ad); both read November 2026.
"""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.records import Record
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS, Mode

Json = Any
"""Anything of a JSON document; a JSON alias."""

LARGEST_BYTES = 4 * 1024 * 1024
"""A metadata.json of v5.1 with eight GPUs has 20 KB; what is larger than this is another kind of file."""

_TEXT_MODES = {"PerformanceOnly": Mode.PERFORMANCE, "AccuracyOnly": Mode.ACCURACY}
_SUMMARY = re.compile(r"^(result_[\w.]+): (-?[\d.]+(?:[eE][+-]?\d+)?),")
_NEEDED = ("benchmark_full", "scenario", "test_mode")


class MetadataError(ValueError):
    """The text is no metadata.json of a known form; `problems` has every reason."""

    def __init__(self, where: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"{where}: {'; '.join(problems)}")
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One entry of the accuracy list. `said_passed` is the verdict in the file, None where it gives none."""

    name: str
    value: float
    threshold: float | None
    upper_limit: float | None
    said_passed: bool | None

    @property
    def passed(self) -> bool | None:
        """The verdict that follows from the figures; None without a threshold."""
        if self.threshold is None:
            return None
        return self.value >= self.threshold and (self.upper_limit is None or self.value <= self.upper_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetadata:
    """One run. `figure` is in the unit that its `figure_key` names (nanoseconds, samples or tokens a second).

    `level` is the accuracy level, "99" or "99_9". `remarks` are contradictions and other things that must be known
    beside the figures. `label` is this project's word for a run that is no MLPerf result, empty for none.
    """

    benchmark: str
    short_name: str
    scenario: str
    mode: Mode
    level: str
    config_name: str
    system_name: str
    label: str
    min_duration_ms: float | None
    audit_test: str
    is_valid: bool
    figure_key: str
    figure: float | None
    scores: tuple[Score, ...]
    accuracy_passed: bool | None
    remarks: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        """Whether the run asked for less than the ten minutes of the rules."""
        return _is_short(self.min_duration_ms, self.audit_test)


def _object(text: str, where: str) -> dict[str, Json]:
    def pairs(found: list[tuple[str, Json]]) -> dict[str, Json]:
        content = dict(found)
        if len(content) < len(found):
            twice = next(key for key, count in Counter(key for key, _ in found).items() if count > 1)
            raise ValueError(f"the key {twice!r} occurs twice")
        return content

    def number(found: str) -> float:
        if not math.isfinite(value := float(found)):
            raise ValueError(f"{found} is too large a number")
        return value

    def constant(found: str) -> float:
        raise ValueError(f"{found} is not a JSON number")

    if len(text) > LARGEST_BYTES:
        raise MetadataError(where, (f"larger than {LARGEST_BYTES:,} bytes, so it is not a metadata.json",))
    try:
        content = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
    except json.JSONDecodeError as error:
        raise MetadataError(where, (f"cut off or no JSON (line {error.lineno}: {error.msg})",)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise MetadataError(where, (reason,)) from None
    if not isinstance(content, dict):
        raise MetadataError(where, ("does not contain a JSON object",))
    return content


def _is_short(min_duration_ms: float | None, audit_test: str) -> bool:
    """Whether less than ten minutes were asked for. Of audit runs nobody asks them: TEST06's audit.config has 0 ms
    (compliance/TEST06 of mlcommons/inference b66003e1)."""
    return not audit_test and min_duration_ms is not None and min_duration_ms < FULL_RULES_MIN_DURATION_MS


def parse_metadata(text: str, where: str = "metadata.json") -> RunMetadata:
    """Return what a metadata.json says of its run. Raises MetadataError with every problem; `where` begins its text."""
    content = _object(text, where)
    missing = [key for key in _NEEDED if not content.get(key)]
    if missing:
        reason = f"{', '.join(missing)} missing. metadata.json of v4.1 and v5.x can be read, older summaries cannot"
        raise MetadataError(where, (f"{reason} (cm run script --tags=print,mlperf,results reads LoadGen's logs)",))
    reader = Record(content)
    mode = _TEXT_MODES.get(reader.text("test_mode"))
    if mode is None:
        reader.refuse("test_mode", " or ".join(_TEXT_MODES))
    remarks: list[str] = []
    level = _level(reader, remarks)
    figure_key, figure = _figure(reader, remarks) if mode is Mode.PERFORMANCE else ("", None)
    scores = _scores(reader, remarks) if mode is Mode.ACCURACY else ()
    validity = reader.text("result_validity")
    if mode is Mode.PERFORMANCE and validity not in ("VALID", "INVALID"):
        reader.refuse("result_validity", "VALID or INVALID")
    passed = _accuracy_passed(reader, scores, remarks)
    minimum_ms = reader.number("effective_min_duration_ms")
    audit = reader.text("audit_test")
    if mode is Mode.PERFORMANCE and _is_short(minimum_ms, audit):
        remarks.append(f"short run: {minimum_ms:g} ms requested, the rules require {FULL_RULES_MIN_DURATION_MS} ms")
    if audit:
        remarks.append(f"audit run {audit}: {'passed' if reader.flag('audit_success') else 'not passed'}")
    names = {key: reader.text(key) for key in ("benchmark_full", "benchmark_short", "scenario", "config_name")}
    label, system = reader.text("label"), reader.text("system_name")
    if reader.problems or mode is None:
        raise MetadataError(where, tuple(map(str, reader.problems)))
    return RunMetadata(
        benchmark=names["benchmark_full"],
        short_name=names["benchmark_short"] or names["benchmark_full"].removesuffix("-99.9").removesuffix("-99"),
        scenario=names["scenario"],
        mode=mode,
        level=level,
        config_name=names["config_name"],
        system_name=system,
        label=label,
        min_duration_ms=minimum_ms,
        audit_test=audit,
        is_valid=validity == "VALID",
        figure_key=figure_key,
        figure=figure,
        scores=scores,
        accuracy_passed=passed,
        remarks=tuple(remarks),
    )


def _level(reader: Record, remarks: list[str]) -> str:
    """The accuracy level: of the benchmark's name, else of config_name (`k_99_9`), else of the setting code (`cp999`:
    harness, power setting, level in thousandths)."""
    benchmark, code = reader.text("benchmark_full"), reader.text("workload_setting_code")
    by_name = "99_9" if benchmark.endswith("-99.9") else "99" if benchmark.endswith("-99") else ""
    found = re.search(r"_k_(99_9|99)_", reader.text("config_name"))
    by_config = found[1] if found else ""
    by_code = {"990": "99", "999": "99_9"}.get(code[2:], "")
    given = {
        source: level
        for source, level in (
            ("benchmark_full", by_name),
            ("config_name", by_config),
            ("workload_setting_code", by_code),
        )
        if level
    }
    if len(set(given.values())) > 1:
        remarks.append(f"contradictory accuracy levels: {', '.join(f'{k} {v}' for k, v in given.items())}")
    return next(iter(given.values()), "99")  # fmt: skip


def _figure(reader: Record, remarks: list[str]) -> tuple[str, float | None]:
    """The figure with its key: under scenario_key, else true_result_value, else in summary_string."""
    key, metric = reader.text("scenario_key"), reader.text("true_result_metric")
    direct = reader.number(key) if key else None
    true_value = reader.number("true_result_value")
    said = _SUMMARY.match(reader.text("summary_string"))
    if direct is not None and true_value is not None and metric in ("", key) and direct != true_value:
        remarks.append(f"contradictory values: {key} is {direct:g}, true_result_value {true_value:g}")
    if direct is not None and said is not None and said[1] == key and not math.isclose(float(said[2]), direct):
        remarks.append(f"contradictory values: {key} is {direct:g}, summary_string says {said[2]}")
    if direct is not None:
        return key, direct
    if true_value is not None:
        return metric or key, true_value
    why = f"{key} (from scenario_key) is missing: " if key and reader.values.get(key) is None else ""
    if said is not None:
        remarks.append(f"{why}the value is read from summary_string, which may have fewer digits")
        return said[1], float(said[2])
    if not key:
        reader.note("scenario_key", "nothing", "the key of the result, the only source of it")
    remarks.append(f"{why}the run has no result")
    return key, None


def _scores(reader: Record, remarks: list[str]) -> tuple[Score, ...]:
    if reader.values.get("accuracy") is None:
        reader.note("accuracy", "nothing", "a list of objects with name, value and threshold")
    scores = []
    listed = reader.each("accuracy")
    for entry in listed:
        value, name = entry.number("value"), entry.needed("name")
        if entry.values.get("value") is None:
            entry.note("value", "nothing", "a finite number")
        if value is None or not name:
            continue
        limits = {key: entry.number(key) for key in ("threshold", "upper_limit")}
        score = Score(name=name, value=value, said_passed=entry.flag("pass"), **limits)
        scores.append(score)
        if score.passed is not None and score.said_passed is not None and score.passed != score.said_passed:
            limit = "" if score.upper_limit is None else f" to {score.upper_limit:g}"
            said = str(score.said_passed).lower()
            remarks.append(
                f"contradictory verdict: {name} {value:g} against {score.threshold:g}{limit}, pass is {said}"
            )
    if not listed:
        remarks.append("the run is not scored yet")
    return tuple(scores)


def _accuracy_passed(reader: Record, scores: tuple[Score, ...], remarks: list[str]) -> bool | None:
    """Whether every score that has a threshold meets it; None where none has."""
    verdicts = [score.passed for score in scores if score.passed is not None]
    passed = all(verdicts) if verdicts else None
    said = reader.flag("accuracy_pass")
    if passed is not None and said is not None and passed != said:
        remarks.append(f"contradictory verdict: accuracy_pass is {str(said).lower()}, the values show the opposite")
    return passed
