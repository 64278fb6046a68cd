"""The reports of a server about itself during a run: its metrics, once a second, and its configuration.

A separate process asks (`python -m crowdperf.call.server_metrics`, with the URL and AccessSettings as input), so
that neither a large page nor a server that hangs disturbs the client. It prints one JSON object per line. `summary`
reads them after the run.

    {}                                        the first line: this process has started
    {"time_s": 2.0, "server": "vLLM", "path": "/metrics", "kv_cache": 0.4, "running": 4.0, "waiting": 0.0, ...}
    {"failed": "status 503"}                  a question without an answer, after others
    {"absent": "status 404"}                  the server has no known metrics. Nothing more is asked
    {"configuration": {"version": "0.32.0"}}  its reported settings

Names of metrics, all read 2026-11-28: vLLM docs.vllm.ai/en/v0.32.0/usage/metrics, before 0.10 gpu_cache_usage_perc and
gpu_prefix_cache_*; SGLang docs.sglang.io/references/production_metrics.html (with --enable-metrics); TensorRT-LLM
tensorrt_llm/metrics/collector.py 050f80de (at /prometheus/metrics); llama.cpp tools/server/README.md (with --metrics;
newer builds have no kv_cache_usage_ratio). Of these, only a stub was measured here.
"""

import http.client
import json
import math
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from crowdperf.call.model_server import ServerProblem, answer_at
from crowdperf.logs.answer_metrics import NO_ANSWER
from crowdperf.rules.names import printable
from crowdperf.rules.prompt_settings import AccessSettings

INTERVAL_S = 1.0
_TRIES = 3
"""So many rounds without any metrics end the questions: a server may still be loading. This project's choice."""
_NO_SUCH_PAGE = "status 404"
"""A server that says so is not loading: one round is enough."""
_GAUGES = ("kv_cache", "running", "waiting")
MAX_ROWS = 240
"""Of the series in result.json. Longer runs have means of several seconds: this project's choice."""
_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vLLM": {
        "kv_cache": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        "running": ("vllm:num_requests_running",),
        "waiting": ("vllm:num_requests_waiting",),
        "preemptions": ("vllm:num_preemptions_total",),
        "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    },
    "SGLang": {
        "kv_cache": ("sglang:token_usage",),
        "running": ("sglang:num_running_reqs",),
        "waiting": ("sglang:num_queue_reqs",),
        "preemptions": ("sglang:num_retracted_requests_total",),
        "hit_rate": ("sglang:cache_hit_rate",),
    },
    "TensorRT-LLM": {
        "kv_cache": ("trtllm_kv_cache_utilization",),
        "running": ("trtllm_num_requests_running",),
        "waiting": ("trtllm_num_requests_waiting",),
        "hit_rate": ("trtllm_kv_cache_hit_rate",),
    },
    "llama.cpp": {
        "kv_cache": ("llamacpp:kv_cache_usage_ratio",),
        "running": ("llamacpp:requests_processing",),
        "waiting": ("llamacpp:requests_deferred",),
    },
}
_PLACES = {name: (server, fact) for server, facts in _NAMES.items() for fact, names in facts.items() for name in names}
_RATIOS = ("kv_cache", "hit_rate")
_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="([^"\\]*)"')
_CONFIG_METRIC = "vllm:cache_config_info"
_PATHS = ("/metrics", "/prometheus/metrics")
_CONFIG_PATHS = ("/version", "/server_info", "/get_server_info", "/props")
"""Of vLLM, of SGLang (newer and older), and of llama.cpp."""
_SETTINGS = frozenset((
    "attention_backend", "block_size", "build_info", "cache_dtype", "chunked_prefill_size", "context_length",
    "disable_cuda_graph", "disable_radix_cache", "dp_size", "dtype", "enable_prefix_caching", "enable_torch_compile",
    "ep_size", "gpu_memory_utilization", "kv_cache_dtype", "max_prefill_tokens", "max_running_requests",
    "max_total_num_tokens", "max_total_tokens", "mem_fraction_static", "n_ctx", "num_gpu_blocks", "page_size",
    "pp_size",
    "quantization", "schedule_policy", "speculative_algorithm", "speculative_num_steps", "total_slots", "tp_size",
    "version",
))  # fmt: skip
"""The recorded settings of a configuration. Servers also tell keys, paths and host names, which are left out."""
_LONGEST_SETTING = 100


def parse_page(text: str) -> dict[str, Any] | None:
    """Return the facts of a page in Prometheus' text format (version 0.0.4), None without a known name. Of several
    engines, ratios are those of the fullest, numbers are added."""
    found: dict[str, dict[str, float]] = {}
    settings: dict[str, str] = {}
    for line in text.splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        if match[1] == _CONFIG_METRIC:
            settings = dict(_LABEL.findall(match[2] or ""))
        if (place := _PLACES.get(match[1])) is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if not 0.0 <= value < math.inf:
            continue
        server, fact = place
        facts = found.setdefault(server, {})
        before = facts.get(fact, 0.0)
        facts[fact] = max(before, value) if fact in _RATIOS else before + value
    if not found:
        return None
    server = max(found, key=lambda name: len(found[name]))
    return {"server": server, **found[server], **({"configuration": safe_settings(settings)} if settings else {})}


def safe_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a server that may be recorded, without paths, keys and host names."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and name == "default_generation_settings":  # llama.cpp's
            kept |= safe_settings(value)
        if name not in _SETTINGS or not isinstance(value, str | int | float | bool) or value in ("", "None"):
            continue
        if isinstance(value, float) and not math.isfinite(value):
            continue
        kept[name] = printable(value)[:_LONGEST_SETTING] if isinstance(value, str) else value
    return kept


def summary(lines: Iterable[str]) -> dict[str, Any]:
    """Return the content of the process's lines, for result.json: means, maxima and the series of KV cache, running and
    waiting requests, and what was counted between the first and the last answer. `why`: there are no metrics."""
    rows, failed, absent, settings = [], 0, "", dict[str, Any]()
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:  # the last line may be cut off: the process was ended
            continue
        settings |= row.pop("configuration", {})
        failed += "failed" in row
        absent = row.get("absent", absent)
        if "server" in row:
            rows.append(row)
    found: dict[str, Any] = {"configuration": settings, "samples": len(rows), "failed_samples": failed}
    if not rows:
        return {**found, "why": absent or NO_ANSWER}
    found |= {"server": rows[-1]["server"], "path": rows[-1]["path"]}
    for name in _GAUGES:
        values = [row[name] for row in rows if name in row]
        found[name] = {"mean": sum(values) / len(values), "max": max(values)} if values else None
    found["series"] = series(rows)
    found["preemptions"] = _increase(rows, "preemptions")
    queries, hits = _increase(rows, "prefix_queries"), _increase(rows, "prefix_hits")
    is_counted = queries is not None and hits is not None and queries > 0
    found["prefix_hit_rate"] = hits / queries if is_counted else rows[-1].get("hit_rate")  # type: ignore[operator]
    return found


def series(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the gauges over time as columns and rows, at most MAX_ROWS: means of as many answers as needed, at the
    time of the last of them. None where the server does not report a gauge."""
    size = max(1, -(-len(rows) // MAX_ROWS))
    found: list[list[float | None]] = []
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        values = [[row[name] for row in part if name in row] for name in _GAUGES]
        means = [round(sum(one) / len(one), 4) if one else None for one in values]
        found.append([part[-1].get("time_s"), *means])
    return {"columns": ["time_s", *_GAUGES], "rows": [row for row in found if row[0] is not None]}


def _increase(rows: list[dict[str, Any]], name: str) -> float | None:
    """Return by how much a counter grew, None if it is missing or the server was restarted."""
    values = [row[name] for row in rows if name in row]
    return values[-1] - values[0] if values and values[-1] >= values[0] else None


class _Server:
    """The server that is asked. bases: URLs without a path of the API, the nearest first."""

    def __init__(self, url: str, access: AccessSettings) -> None:
        self._access = access
        parts = urlsplit(url)
        root = f"{parts.scheme}://{parts.netloc}"
        self.bases = tuple(dict.fromkeys((url.rstrip("/").removesuffix("/v1"), root)))
        self._found: tuple[str, str] | None = None

    def _page(self, base: str, path: str) -> tuple[str, str]:
        """Return the text of a page, "" for none, and why."""
        try:
            answer = answer_at(base, path, self._access)
        except (ServerProblem, OSError, http.client.HTTPException) as error:
            return "", "no connection" if isinstance(error, ServerProblem) else type(error).__name__
        if answer is None:
            return "", "no answer in time"
        status, body = answer
        return (body.decode(errors="replace"), "") if status == 200 else ("", f"status {status}")

    def sample(self) -> tuple[dict[str, Any] | None, str]:
        """Return the facts now, None for none, and why."""
        why = ""
        places = [self._found] if self._found else [(base, path) for base in self.bases for path in _PATHS]
        for base, path in places:
            text, reason = self._page(base, path)
            if (facts := parse_page(text)) is not None:
                self._found = base, path
                return {**facts, "path": path}, ""
            why = why or reason or "no known metrics"
        return None, why[:_LONGEST_SETTING]

    def configuration(self) -> dict[str, Any]:
        """Return the settings that the server reports."""
        found: dict[str, Any] = {}
        for base in self.bases:
            for path in _CONFIG_PATHS:
                try:
                    values = json.loads(self._page(base, path)[0] or "null")
                except (ValueError, RecursionError):
                    continue
                found |= safe_settings(values) if isinstance(values, dict) else {}
            if found:
                break
        return found


def answers(server: _Server) -> Iterator[dict[str, Any]]:
    """Yield the objects of the lines, one a second, for ever if the server has metrics."""
    tries, has_any = 0, False
    start_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        facts, why = server.sample()
        tries += 1
        if facts is not None:
            yield {"time_s": round(began_s - start_s, 1), **facts}
        elif has_any:
            yield {"failed": why}
        if facts is not None and not has_any:
            has_any = True
            yield {"configuration": server.configuration()}
        if not has_any and (tries >= _TRIES or why == _NO_SUCH_PAGE):
            yield {"absent": why, "configuration": server.configuration()}
            return
        time.sleep(max(0.0, began_s + INTERVAL_S - time.monotonic()))


def main() -> None:
    """Ask until this process is ended."""
    given = json.load(sys.stdin)
    access = {name: given.get(name) for name in AccessSettings.INPUTS}
    server = _Server(given["url"], AccessSettings(**{**access, "headers": tuple(access["headers"] or ())}))
    print("{}", flush=True)
    for answer in answers(server):
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
