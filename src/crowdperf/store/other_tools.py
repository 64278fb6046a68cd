"""Reads what other load generators for servers write: vllm bench serve, guidellm, aiperf. Pure.

Each measurement is a result of its own, labeled `other tool`, `own model` and `own data`: it never has the name of a
benchmark, and no log to be derived again from. A metric has our name (TTFT, TPOT, tokens per second, with percentiles
or the mean) only where its definition is LoadGen's. Any other keeps the tool's name for it, after the tool's:

    TTFT               first token's arrival - request's start, by request
    TPOT               (last token's arrival - first token's) / (output tokens - 1), by request
    tokens per second  output tokens of all answers / duration

vllm bench serve (vllm/benchmarks/serve.py 009e6d4a and lib/endpoint_request_func.py 02cfb534, read 2026-11-28): TTFT
and TPOT are ours for completions. Chat counts the first event with choices, which may have a role and no text. With
--request-rate and --max-concurrency together requests wait in the client, which its TTFT leaves out. Its ITL is between
events, not tokens. Without tokenizer and usage an answer counts as one token.
guidellm (schemas/request_stats.py and benchmark/schemas/metrics.py of ee7a7745, between 0.7.3 and 0.8, the same keys in
0.3.0 and 0.5.0): TTFT is ours. Its inter-token latency is TPOT by request, but percentiles weigh each request by its
tokens. time_per_output_token_ms includes the first token. Rates are means over time.
aiperf (metrics/types of db4f6397, 2025-10-10, and a file recorded with 0.13.0): TTFT and output_token_throughput are
ours, inter_token_latency is TPOT.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import json_object, mapping, numbered_lines, part, utf8_text
from crowdperf.store import facts
from crowdperf.store.facts import stripped_text
from crowdperf.store.model import Configuration, Figure, NewResult, System
from crowdperf.store.result_folders import LeftOut

OTHER_TOOL = "other tool"
VLLM, GUIDELLM, AIPERF = "vllm bench serve", "guidellm", "aiperf"
CSV_START = b"Metric,"
"""How the CSV file of aiperf begins."""
LARGEST_BYTES = 1 << 28
"""guidellm writes every request, with its text (this project's choice)."""
_STATISTICS = {"mean": "mean", "avg": "mean", "median": "50", "p50": "50", "p90": "90", "p95": "95", "p99": "99"}
_VLLM_KEY = re.compile(r"(mean|median|p[0-9.]+)_(ttft|tpot|itl|e2el)_ms")
_GUIDELLM_KEYS = {
    "time_to_first_token_ms": "ms", "inter_token_latency_ms": "ms", "time_per_output_token_ms": "ms",
    "request_latency": "s", "output_tokens_per_second": "tokens/s", "tokens_per_second": "tokens/s",
    "requests_per_second": "requests/s",
}  # fmt: skip
_AIPERF_UNITS = {"ms": "ms", "sec": "s", "tokens/sec": "tokens/s", "tokens/sec/user": "tokens/s/user",
                 "requests/sec": "requests/s"}  # fmt: skip
_CSV_METRIC = re.compile(r"(.+) \(([^()]+)\)")
_OUR_AIPERF = {"time_to_first_token": "TTFT", "inter_token_latency": "TPOT"}
_MAIN = ("tokens per second", f"{GUIDELLM} output_tokens_per_second mean", f"{AIPERF} request_throughput mean",
         f"{GUIDELLM} requests_per_second mean", f"{VLLM} request_throughput")  # fmt: skip
"""The value of a result is the first of these."""


class NotOfTool(ValueError):
    """The file is not one of a known tool. The message lists the accepted files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measurement as its tool describes it. model: "" if not recorded. load: how requests were sent, by
    name of the setting. figures: with names as in the module's docstring. completed, failed: requests, None unknown."""

    tool: str
    version: str
    model: str
    load: Mapping[str, str]
    figures: tuple[Figure, ...]
    completed: int | None = None
    failed: int | None = None
    made_utc: str = ""
    notes: tuple[str, ...] = ()


def _number(value: object) -> float | None:
    number = number_of(value)
    return None if number is None or number < 0 else float(number)


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else round(number)


def _settings(**found: object) -> dict[str, str]:
    """Settings that are given, each as its shortest text."""
    named = {name.replace("_", " "): value for name, value in found.items() if value not in (None, "", "inf")}
    return {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in named.items()}


def _mean_tokens(total: object, count: object) -> int | None:
    tokens, requests = _number(total), _number(count)
    return round(tokens / requests) if tokens and requests else None


def _vllm(content: Mapping[str, Any]) -> Measured:
    """A file of `vllm bench serve --save-result`, or one line of `--append-result`."""
    backend = stripped_text(content.get("backend") or content.get("endpoint_type"))
    rate, concurrency = content.get("request_rate"), content.get("max_concurrency")
    completed, output = content.get("completed"), content.get("total_output_tokens")
    has_own_wait = rate not in (None, "inf") and concurrency is not None
    are_ours = "chat" not in backend and not has_own_wait
    figures = []
    for key, value in content.items():
        found, number = _VLLM_KEY.fullmatch(key), _number(value)
        if found is None or number is None or number <= 0:
            continue
        metric, statistic = found[2], _STATISTICS.get(found[1], found[1].removeprefix("p"))
        name = metric.upper() if are_ours and metric in ("ttft", "tpot") else f"{VLLM} {metric}"
        figures.append(Figure(name=f"{name} {statistic}", value=number, unit="ms"))
    are_tokens_counted = content.get("tokenizer_id") is not None or output != completed
    rates = (("output_throughput", "tokens per second" if are_tokens_counted else "", "tokens/s"),
             ("request_throughput", f"{VLLM} request_throughput", "requests/s"))  # fmt: skip
    for key, name, unit in rates:
        if name and (number := _number(content.get(key))):
            figures.append(Figure(name=name, value=number, unit=unit))
    why = "chat: its first event may have no text" if "chat" in backend else "requests waited in the client"
    notes = () if are_ours else (f"TTFT and TPOT are the tool's own, not LoadGen's ({why})",)
    date = re.fullmatch(r"(\d{4})(\d\d)(\d\d)-\d{6}", stripped_text(content.get("date")))
    return Measured(
        tool=VLLM, version="", model=stripped_text(content.get("model_id")), figures=tuple(dict.fromkeys(figures)),
        load=_settings(API=backend, rate=rate, concurrency=concurrency,
                       mean_input_tokens=_mean_tokens(content.get("total_input_tokens"), completed),
                       mean_output_tokens=_mean_tokens(output, completed)),
        completed=_whole(completed), failed=_whole(content.get("failed")), notes=notes,
        made_utc="-".join(date.groups()) if date else "",  # local time of day: the day alone
    )  # fmt: skip


def _summary(metrics: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return mapping(part(metrics, key, "successful"))


def _guidellm_figures(metrics: Mapping[str, Any]) -> Iterator[Figure]:
    for key, unit in _GUIDELLM_KEYS.items():
        found = _summary(metrics, key)
        values = {"mean": found.get("mean")}
        if unit in ("ms", "s"):
            values |= {name: part(found, "percentiles", name) for name in ("p50", "p90", "p95", "p99")}
        for statistic, value in values.items():
            number = _number(value)
            if number:  # 0 where an answer was not streamed
                name = "TTFT" if key == "time_to_first_token_ms" else f"{GUIDELLM} {key}"
                yield Figure(name=f"{name} {_STATISTICS[statistic]}", value=number, unit=unit)


def _first(*values: object) -> object:
    return next((value for value in values if value not in (None, "", {}, [])), None)


def _guidellm(report: Mapping[str, Any]) -> Iterator[Measured]:
    """The benchmarks of a benchmarks.json."""
    for found in map(mapping, report["benchmarks"]):
        config, metrics = mapping(found.get("config")), mapping(found.get("metrics"))
        strategy = mapping(_first(config.get("strategy"), part(found, "args", "strategy")))
        totals = mapping(_first(metrics.get("request_totals"), found.get("request_totals")))
        model = _first(part(config, "backend", "model"), part(report, "args", "model"),
                       part(report, "config", "backend", "model"), part(found, "worker", "backend_model"),
                       part(report, "config", "model"))  # fmt: skip
        tokens = {
            f"mean_{side}_tokens": _whole(_summary(metrics, f"{key}_token_count").get("mean"))
            for side, key in (("input", "prompt"), ("output", "output"))
        }
        yield Measured(
            tool=GUIDELLM, version=stripped_text(part(report, "metadata", "guidellm_version")),
            model=stripped_text(model),
            figures=tuple(_guidellm_figures(metrics)),
            load=_settings(load=stripped_text(_first(strategy.get("type_"), strategy.get("kind"))),
                           concurrency=_first(strategy.get("streams"), strategy.get("max_concurrency")),
                           rate=strategy.get("rate"), **tokens),
            completed=_whole(totals.get("successful")), failed=_whole(totals.get("errored")),
            notes=(f"{number} requests were not finished",) if (number := _whole(totals.get("incomplete"))) else (),
        )  # fmt: skip


def _aiperf_figures(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[Figure]:
    """metrics: by its tag `unit` and statistics, as in the JSON file."""
    for tag, found in metrics.items():
        unit = _AIPERF_UNITS.get(stripped_text(found.get("unit")))
        for statistic in ("avg", "p50", "p90", "p95", "p99") if unit else ():
            if number := _number(found.get(statistic)):
                name = f"{_OUR_AIPERF.get(tag, f'{AIPERF} {tag}')} {_STATISTICS[statistic]}"
                name = "tokens per second" if name == f"{AIPERF} output_token_throughput mean" else name
                yield Figure(name=name, value=number, unit=str(unit))


def _aiperf(content: Mapping[str, Any]) -> Measured:
    """A profile_export_aiperf.json, or the same of a CSV file, which has metrics only."""
    metrics = {tag: one for tag, one in content.items() if isinstance(one, Mapping) and "unit" in one}
    config = mapping(content.get("input_config"))
    models = [stripped_text(mapping(one).get("name")) for one in _items(part(config, "models", "items"))]
    models += [stripped_text(name) for name in _items(part(config, "endpoint", "model_names"))]  # up to 2025
    phases = [mapping(one) for one in _items(config.get("phases"))]
    load = next((one for one in phases if one.get("name") == "profiling"), mapping(config.get("loadgen")))
    errors = content.get("error_summary")
    counted = [_whole(part(metrics, tag, "avg")) for tag in ("request_count", "error_request_count")]
    failed = sum(_whole(mapping(one).get("count")) or 0 for one in errors) if isinstance(errors, list) else counted[1]
    return Measured(
        tool=AIPERF, version=stripped_text(content.get("aiperf_version")),
        model=next(iter(models), ""),
        figures=tuple(_aiperf_figures(metrics)),
        load=_settings(API=stripped_text(part(config, "endpoint", "type")), concurrency=load.get("concurrency"),
                       rate=_first(load.get("rate"), load.get("request_rate")),
                       mean_input_tokens=_whole(part(metrics, "input_sequence_length", "avg")),
                       mean_output_tokens=_whole(part(metrics, "output_sequence_length", "avg"))),
        completed=counted[0], failed=failed, made_utc=stripped_text(content.get("start_time"))[:10],
        notes=("the run was cancelled",) if content.get("was_cancelled") is True else (),
    )  # fmt: skip


def _aiperf_csv(text: str) -> Mapping[str, Any]:
    """The metrics of a CSV file in the form of the JSON file: tables with a head, split by empty lines."""
    found: dict[str, dict[str, Any]] = {}
    head: list[str] = []
    for row in csv.reader(io.StringIO(text)):
        if row[:1] == ["Metric"]:
            head = ["avg" if cell == "Value" else cell for cell in row[1:]]
        elif row and (named := _CSV_METRIC.fullmatch(row[0])) is not None:
            tag = re.sub(r"\W+", "_", named[1].lower()).strip("_")
            cells = {name: _csv_number(cell) for name, cell in zip(head, row[1:], strict=False)}
            found[tag] = {"unit": named[2], **cells}
        elif row and len(row) > 1:
            found[re.sub(r"\W+", "_", row[0].lower())] = {"unit": "", "avg": _csv_number(row[1])}
    return found


def _csv_number(cell: str) -> float | None:
    try:
        return _number(float(cell.replace(",", "")))
    except ValueError:
        return None


_JSON_FORMS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    (VLLM, lambda content: {"request_throughput", "total_input_tokens"} <= content.keys()),
    (GUIDELLM, lambda content: isinstance(content.get("benchmarks"), list) and "bundle_version" not in content),
    (AIPERF, lambda content: "input_config" in content and "unit" in mapping(content.get("request_latency"))),
)


def tool_of(content: Mapping[str, Any]) -> str:
    """Return which tool wrote a JSON object, "" for another one."""
    return next((tool for tool, is_of in _JSON_FORMS if is_of(content)), "")


def _measured(content: Mapping[str, Any]) -> Iterator[Measured]:
    tool = tool_of(content)
    if tool == GUIDELLM:
        yield from _guidellm(content)
    elif tool:
        yield (_vllm if tool == VLLM else _aiperf)(content)


def _objects(text: str) -> list[Mapping[str, Any]]:
    """The JSON object of a text, or those of its lines. Raises ValueError."""
    try:
        return [json_object(text)]
    except ValueError:
        lines = numbered_lines(text)
        if len(lines) < 2:
            raise
        return [json_object(line) for _, line in lines]


def _result(one: Measured, run_id: str) -> NewResult | str:
    """The result of a measurement, or why it has none."""
    by_name = {figure.name: figure for figure in one.figures}
    shown = next((by_name[name] for name in _MAIN if name in by_name), None)
    if shown is None:
        return f"{one.tool} has no throughput: no request was answered"
    model = one.model.rstrip("/").rpartition("/")[2] if one.model.startswith(("/", "~", ".")) else one.model
    load = next((name for name in ("concurrency", "rate") if name in one.load), one.load.get("load", "unlimited"))
    failures = (f"{one.failed:,} requests failed",) if one.failed else ()
    system = System(
        accelerator="", accelerator_count=0, nodes=0, cpu=facts.UNSEEN_SERVER, sockets=0, cores=0, memory_gib=0,
        facts={"served model": model} if model else {},
    )  # fmt: skip
    name = f"{facts.OWN_MODEL}: {model or 'not recorded'}"
    return NewResult(
        run_id=run_id,
        kind="own",
        configuration=Configuration(
            suite=OTHER_TOOL, benchmark=name, round="", division="", category="", scenario=load, precision="", tier="",
            stack=f"endpoint, by {one.tool}", device="", data_kind=facts.OWN_DATA, run_class=OTHER_TOOL,
            model_digest=name, settings=one.load, system=system,
        ),
        labels=(facts.UNOFFICIAL, OTHER_TOOL, facts.OWN_MODEL, facts.OWN_DATA, facts.UNSEEN),
        made_utc=one.made_utc,
        stack_version=f"{one.tool} {one.version or '(version not recorded)'}",
        metric=shown.name,
        value=shown.value,
        unit=shown.unit,
        higher_is_better=True,
        valid=None,
        verification="summary",
        command="",
        figures=tuple(figure for figure in one.figures if figure is not shown),
        accuracy=(),
        files=(),
        curve=(),
        notes=(f"measured by {one.tool}, not by LoadGen", *failures, *one.notes),
        raw={"tool": one.tool, "tool_version": one.version, "requests": one.completed},
    )  # fmt: skip


def results_of_file(content: bytes, name: str) -> list[NewResult | LeftOut]:
    """Return a result for each measurement in a file, and why others have none. Raises NotOfTool."""
    try:
        text = utf8_text(content)
        if content.startswith(CSV_START):
            measured = [_aiperf(_aiperf_csv(text))]
        else:
            measured = [one for found in _objects(text) for one in _measured(found)]
    except ValueError as error:
        raise NotOfTool(f"{name}: {error}") from error
    if not measured:
        raise NotOfTool(
            f"{name} has no results: expected a bundle of mlperf-viz, or what vllm bench serve --save-result, "
            "guidellm (benchmarks.json) or aiperf (profile_export_aiperf.json or .csv) wrote"
        )
    digest = hashlib.sha256(content).hexdigest()[:16]
    rows = [(f"{one.tool} {digest} {number}", one) for number, one in enumerate(measured)]
    made = [(run_id, _result(one, run_id)) for run_id, one in rows]
    return [LeftOut(run_id, found) if isinstance(found, str) else found for run_id, found in made]
