"""Says in words with which instances, threads, batch and Server rate each scenario was measured. Pure.

The values are those of the part `run` of result.json, which says of each where it comes from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crowdperf.logs.rates import batch_of
from crowdperf.rules.names import Scenario

HEADING = "Settings (chosen by the harness unless marked as given)"
_GIVEN = "user"
_DEFAULT = "default"
"""Origins in result.json: of a value that the caller gave, and of one that nothing has changed. Any other one says what
lowered a value."""


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _given(setting: Mapping[str, Any]) -> str:
    return " (given)" if setting.get("origin") == _GIVEN else ""


def _given_in_all(threads: Mapping[str, Any], instances: int) -> str:
    """The mark of threads that the caller gave, who gives those of all instances together."""
    if threads.get("origin") != _GIVEN or instances == 1:
        return _given(threads)
    return f" ({_count(threads['value'] * instances, 'thread')} given in total)"


_SERVERS = tuple(scenario.value for scenario in Scenario if scenario.is_server)


def settings_text(performance: Mapping[str, Any]) -> str:
    """The settings of a performance run: "2 instances of 1 thread, batch of 32"; empty where nothing says them.

    `performance`: a result.json, or its part in results.json.
    """
    run = performance.get("run") or {}
    found = {name: run.get(name) or {} for name in ("instances", "threads", "batch_size", "target_qps")}
    value = {name: setting.get("value") for name, setting in found.items()}
    scenario = (run.get("scenario") or {}).get("value")
    if engine := (performance.get("text") or {}).get("engine"):
        return ", ".join(filter(None, (_in_flight(engine), _sent(scenario, found["target_qps"]))))
    if not value["instances"]:
        return ""
    text = _count(value["instances"], "instance") + _given(found["instances"])
    if value["threads"] and (run.get("device") or {}).get("value") == "cpu":
        text += f" of {_count(value['threads'], 'thread')}{_given_in_all(found['threads'], value['instances'])}"
    parts = [text]
    if value["batch_size"] and (batch := batch_of(str(scenario), performance)):
        is_inline = str(performance.get("issue_shape") or "").startswith("inline")
        parts.append("one query at a time" if is_inline else f"batch of {batch}{_given(found['batch_size'])}")
    return ", ".join(filter(None, (*parts, _sent(scenario, found["target_qps"]))))


def _sent(scenario: object, rate: Mapping[str, Any]) -> str:
    """The rate of a Server run; empty for any other."""
    value = rate.get("value")
    return f"{value:,g} queries/s sent{_given(rate)}" if value and scenario in _SERVERS else ""


def _in_flight(engine: Mapping[str, Any]) -> str:
    """How many requests an engine that answers prompts works on at once; empty where it does not say."""
    setting = engine.get("max_in_flight")
    value = setting.get("value") if isinstance(setting, Mapping) else None
    if not isinstance(value, int):
        return ""
    origin = setting.get("origin")
    why = "" if origin in (None, _DEFAULT, _GIVEN) else f" ({origin})"
    return f"at most {value:,} in flight{why}{_given(setting)}"


def settings_rows(scenarios: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The scenarios with the same settings, and the settings; `scenarios`: the rows of results.json."""
    names: dict[str, list[str]] = {}
    for row in scenarios:
        if row["performance"] is not None and (text := settings_text(row["performance"])):
            names.setdefault(text, []).append(row["scenario"])
    return [(", ".join(found), text) for text, found in names.items()]


def settings_lines(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same as lines below the table; none without performance runs."""
    rows = settings_rows(scenarios)
    width = max((len(names) for names, _ in rows), default=0)
    return [f"{HEADING}:", *(f"  {names.ljust(width)}  {text}" for names, text in rows)] if rows else []
