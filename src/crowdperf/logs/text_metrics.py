"""What runs say of answers that are made token by token, the key `text` of result.json: words, tables and plots. Pure.

    {"tokens_per_second": 7950.1, "ttft_ms": {"p50": 4.6, "p90": 5.0, "p99": 6.1, ...}, "tpot_ms": {...},
     "client": {"times_from": "issue", "requests_per_s": 97.3, "itl_ms": {"p50": 4.4, ...}, ...},
     "tally": {"completed": 3348, "lengths": {...}, "finish_reasons": {"stop": 3030, "length": 318}, ...},
     "problems": [], ...}

crowdperf/logs/answer_metrics.py defines the metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from crowdperf.kit.html_page import bullets, figures, table
from crowdperf.kit.numbers import quantity
from crowdperf.kit.text_documents import part
from crowdperf.logs.answer_metrics import METRICS, NO_ANSWER, STATISTICS, found_of
from crowdperf.logs.run_log import LoadGenLog
from crowdperf.rules.names import counted

HEADINGS = ("Metric", *STATISTICS)
_SERVER_GAUGES = (("kv_cache", "% of the KV cache", 100.0), ("running", "running", 1.0), ("waiting", "waiting", 1.0))
_ONE_READ_PART, _FEW_FIRST = 0.5, 1.5
"""From where on a time per token is doubtful: this project's choice."""
_LIMIT_PART = 0.01
"""Where more of what was sent was refused with 429, the figure is that of the server's limit: this project's choice."""


def with_problems(log: LoadGenLog, problems: Sequence[str]) -> LoadGenLog:
    """Return a log with what is wrong with the answers, which LoadGen does not see: the run is INVALID then."""
    if not problems:
        return log
    reasons = tuple(dict.fromkeys((*problems, *log.invalid_reasons)))
    return replace(log, is_valid=False, invalid_reasons=reasons)


def with_recorded_problems(log: LoadGenLog, result: Mapping[str, Any] | None) -> LoadGenLog:
    """Return a log with the problems that a result.json beside it has of its answers."""
    found = part(result, "text", "problems")
    return with_problems(log, [str(one) for one in found]) if isinstance(found, list) else log


def metric_rows(text: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the rows below HEADINGS for `text` of a result.json, of the metrics that were measured."""
    for metric in METRICS:
        found = found_of(metric, text)
        title = f"{metric.title}, ms" if metric.has_spread else metric.title
        if found is not None:
            values = [found.get(name) for name in STATISTICS] if metric.has_spread else [found]
            cells = [quantity(value, 3) for value in values]
            yield (title, *cells, *[""] * (len(STATISTICS) - len(cells)))


def answers_text(text: Mapping[str, Any]) -> str:
    """Return how many answers there are, how long they are and why they ended, in one line."""
    tally = text["tally"]
    lengths, ended = tally["lengths"], tally["finish_reasons"]
    if not tally["completed"]:
        return f"no answers to {tally['issued']:,} requests"
    parts = ", ".join(f"p{name} {length:,}" for name, length in lengths["percentiles"].items())
    reasons = ", ".join(f"{name} {count:,}" for name, count in ended.items())
    size = f"{lengths['min']:,} to {lengths['max']:,} tokens, {lengths['mean']:,.1f} on average ({parts})"
    return f"{tally['completed']:,} answers of {size}, ended by {reasons}"


def _by_kind(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{kind}: {count:,}" for kind, count in counts.items())


def _value(engine: Mapping[str, Any], name: str) -> Any:
    return part(engine, name, "value")


def measured_text(text: Mapping[str, Any]) -> str:
    """Return what was measured of a server: its model, its host, the API, and how tokens were counted; of a server
    that the run started the last alone, and of an engine without a server nothing."""
    engine = text.get("engine") or {}
    url, way = _value(engine, "endpoint"), _value(engine, "token_counts")
    counts = f"tokens counted by {way}" if way else ""
    if not url:
        return counts
    whole = ", whole answers without streaming" if _value(engine, "streamed") is False else ""
    server = f"model {_value(engine, 'model')} at {urlsplit(str(url)).netloc}"
    return f"measured: {server}, API {_value(engine, 'api')} (prompts as {_value(engine, 'prompt')}){whole}, {counts}"


def phases_text(text: Mapping[str, Any]) -> str:
    """Return the tokens per second of prompts and of answers as llama-bench names them, mean and standard deviation
    over answers that were made one at a time, empty if nothing was measured so."""
    rows = text.get("phases") or []
    shown = [
        f"{row['name']} {quantity(row['mean'], 4)}" + (f" ± {quantity(row['stddev'], 2)}" if row["stddev"] else "")
        for row in rows
    ]
    return f"{', '.join(shown)} tokens/s (mean of {counted(rows[0]['answers'], 'answer')})" if rows else ""


def model_text(text: Mapping[str, Any]) -> str:
    """Return the description of a language model of the user, empty for any other."""
    model = text.get("model") or {}
    if not model.get("architecture"):
        return ""
    weights = f", weights of {model['quantization']}" if model.get("quantization") else ""
    return f"model: {model['architecture']}{weights}, context of {model['context']:,} tokens"


def _has_counts(text: Mapping[str, Any]) -> bool:
    """Whether a server's tokens were counted, not those of an engine that knows its own end."""
    return part(text, "engine", "token_counts") is not None


def _retried(counts: Mapping[str, Any]) -> str:
    by_status = counts.get("retried_by_status")
    if not by_status:
        return ""
    sent = counts["requests"] + counts["retried"]
    is_limit = "429" in by_status and counts["retried"] > _LIMIT_PART * sent
    refused = f"{counts['retried']:,} of {sent:,} requests (status {_by_kind(by_status)})"
    words = f"the server refused {refused}, which were resent"
    return f"{words}: its limit on requests was measured" if is_limit else words


def _differing(counts: Mapping[str, Any]) -> str:
    if not counts.get("differing"):
        return ""
    mean = counts["differing_tokens"] / counts["differing"]
    return (
        f"in {counts['differing']:,} of {counts['answered']:,} answers the server counted other numbers of tokens than"
        f" the run's tokenizer, by {mean:,.1f} on average: the lower number counts"
    )


def remarks(text: Mapping[str, Any]) -> list[str]:
    """Return what must be known of a run beside its figures: what was measured, failed and repeated requests by kind,
    and tokens that were counted otherwise or not at all."""
    tally, counts = text["tally"], part(text, "engine", "counts") or {}
    found = [phases_text(text), model_text(text), measured_text(text)]
    if tally.get("failed"):
        kinds = _by_kind(tally.get("failure_kinds") or {})
        failed = f"{tally['failed']:,} of {counted(tally['issued'], 'request')} failed"
        found.append(
            f"{failed}{f' ({kinds})' if kinds else ''}: latencies are not reported, rates are those of the answers"
        )
    found += [*_client_remarks(text, counts), _retried(counts), _slowly_connected(counts), _differing(counts)]
    if counts.get("unsaid"):
        found.append(f"the server did not report the token counts of {counted(counts['unsaid'], 'answer')}")
    if tally.get("tokens_behind_end"):
        padded = counted(tally["padded_answers"], "answer")
        found.append(f"{counted(tally['tokens_behind_end'], 'token')} behind the end token of {padded} did not count")
    if text.get("end_tokens") == [] and not part(text, "sampling", "is_end_ignored") and _has_counts(text):
        found.append("the model's end token is unknown: tokens after the end are counted")
    return [one for one in (*found, *_doubts(text)) if one]


def _client_remarks(text: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the start of the client's times, its goodput, and the most requests that were in flight."""
    client = text.get("client") or {}
    if trace := text.get("trace"):
        late, prefixes = counts.get("sent_late", 0), ", prompts share prefixes as in the trace" * trace["has_prefixes"]
        yield (
            f"arrivals: trace ({trace['form']}, {counted(trace['requests'], 'request')} in {trace['duration_s']:,.1f} s"
            f"{prefixes}). LoadGen issued all at once, the client sent each at its time, {late:,} of them more than"
            " 10 ms late. TTFT and end-to-end count from the time in the trace"
        )
    elif talks := text.get("conversations"):
        cached = f" ({counts.get('cached_tokens', 0):,} tokens of prompts from a cache, by the server)"
        yield (
            f"{counted(talks['conversations'], 'conversation')} with {counted(talks['requests'], 'turn')}: each turn"
            f" was sent after the answer before it, with the history, so that prefixes are reused on purpose{cached}."
            " TTFT and end-to-end count from the sending of a turn"
        )
    elif client.get("times_from") == "send" and client.get("ttft_ms") and not text.get("ttft_ms"):
        yield "TTFT, TPOT, ITL and end-to-end were measured by the client, from when it sent each request"
    if goodput := client.get("goodput"):
        limits = f"TTFT {goodput['ttft_limit_ms']:g} ms and TPOT {goodput['tpot_limit_ms']:g} ms"
        issued = counted(text["tally"]["issued"], "request")
        yield f"goodput: {goodput['good']:,} of {issued} met both limits ({limits})"
    if counts.get("peak_in_flight"):
        yield f"{counted(counts['peak_in_flight'], 'request')} in flight at the peak"
    yield from _server_remarks(text.get("server") or {})


def _server_remarks(server: Mapping[str, Any]) -> Iterator[str]:
    """Yield the server's own load and settings during the run."""
    if why := server.get("why"):
        offered = "not known" if why == NO_ANSWER else "not offered"
        yield f"the server's own metrics: {offered} (GET /metrics: {why})"
    elif server:
        found = []
        for name, words, factor in _SERVER_GAUGES:
            if one := server.get(name):
                found.append(
                    f"{quantity(one['mean'] * factor, 3)} (at most {quantity(one['max'] * factor, 3)}) {words}"
                )
        if server.get("preemptions") is not None:
            found.append(counted(round(server["preemptions"]), "preemption"))
        if server.get("prefix_hit_rate") is not None:
            found.append(f"prefix cache hits {server['prefix_hit_rate']:.1%}")
        yield f"the server's own metrics ({server['server']}, {server['samples']:,} samples): {'; '.join(found)}"
    if settings := server.get("configuration"):
        yield "the server's settings: " + ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def _slowly_connected(counts: Mapping[str, Any]) -> str:
    """Return that connections took long; empty where none did."""
    slow = counts.get("slow_connects") or 0
    if not slow:
        return ""
    many = f"{slow:,} of {counted(counts.get('connected') or slow, 'connection')}"
    return f"{many} needed about 1 s or more to open: the server's queue of waiting connections (backlog) is short"


def _doubts(text: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the time per token may not be that of the server; nothing where LoadGen measured none."""
    counts, began_with = part(text, "engine", "counts") or {}, text["tally"].get("mean_first_tokens") or 1
    if not text.get("tpot_ms"):
        return
    if counts.get("in_one_read", 0) > _ONE_READ_PART * counts.get("answered", 0):
        many = f"{counts['in_one_read']:,} of {counted(counts['answered'], 'answer')}"
        yield f"{many} arrived all at once, as through a buffering proxy: TPOT is not meaningful"
    if began_with > _FEW_FIRST:
        yield f"answers begin with {began_with:,.1f} tokens at once on average, whose time is not in TPOT"


def limits_text(text: Mapping[str, Any]) -> str:
    """Return the limits of the scenario; empty where it has none."""
    limits = text.get("limits")
    if not limits:
        return ""
    return f"limits at p{limits['percentile']}: TTFT {limits['ttft_ms']:g} ms, TPOT {limits['tpot_ms']:g} ms"


def said_of(text: Mapping[str, Any]) -> list[str]:
    """Return the lines below the table of a run: its answers with their limits, and the remarks."""
    return ["; ".join(filter(None, (answers_text(text), limits_text(text)))), *remarks(text)]


def story(text: Mapping[str, Any]) -> str:
    """Return the latencies in words for one line about a run; empty where LoadGen measured none."""
    found = [(one.title, found_of(one, text)) for one in METRICS if one.title in ("TTFT", "TPOT")]
    return ", ".join(f"{name} p99 {quantity(row['p99'], 3)} ms" for name, row in found if row)


def page_part(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the table, the lengths and the histograms of performance runs, as finished HTML; empty without any.

    rows: what a run is called, and `text` of its result.json.
    """
    if not rows:
        return ""
    plots = [(f"Answers by tokens, {name}", _histogram(name, text)) for name, text in rows]
    said = [f"{name}: {words}" for name, text in rows for words in said_of(text)]
    cells = [(name, *cells) for name, text in rows for cells in metric_rows(text)]
    shown = table(("Scenario", *HEADINGS), cells, numbers=range(2, 6), kind="stacked")
    return "\n".join((shown, bullets(said), figures(plots)))


def _histogram(name: str, text: Mapping[str, Any]) -> str:
    from crowdperf.kit.plot import histogram_plot  # for pages only, while each run imports this module

    lengths = text["tally"]["lengths"]
    bars = [(int(bar["from"]), int(bar["count"])) for bar in lengths["histogram"]]
    return histogram_plot(f"Tokens of answers, {name}", bars, lengths["bar_width"] or 1)
