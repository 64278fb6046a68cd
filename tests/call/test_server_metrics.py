"""crowdperf.call.server_metrics: pages of metrics, settings of servers, and the process that asks for them."""

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from stub_openai import Stub, running_stub

from crowdperf.call.server_metrics import MAX_ROWS, answers, parse_page, safe_settings, series, summary
from crowdperf.harness.watch.server_watch import ServerWatch

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a{b}"} 3.0
vllm:num_requests_running{engine="1",model_name="a{b}"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:num_preemptions_total{engine="0"} 2.0
vllm:prefix_cache_queries_total{engine="0"} 1e+02
vllm:prefix_cache_hits_total{engine="0"} 40.0
vllm:num_requests_waiting{engine="0"} NaN
vllm:cache_config_info{block_size="16",cache_dtype="auto",instance="10.0.0.1"} 1.0
vllm:e2e_request_latency_seconds_bucket{le="0.3"} 7
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (VLLM, {"server": "vLLM", "running": 7.0, "kv_cache": 0.75, "preemptions": 2.0, "prefix_queries": 100.0,
                "prefix_hits": 40.0, "configuration": {"block_size": "16", "cache_dtype": "auto"}}),
        ("vllm:gpu_cache_usage_perc 0.5", {"server": "vLLM", "kv_cache": 0.5}),
        ('sglang:token_usage{model_name="m"} 0.28\nsglang:num_queue_reqs 5 1700000000000\nsglang:cache_hit_rate 0.01',
         {"server": "SGLang", "kv_cache": 0.28, "waiting": 5.0, "hit_rate": 0.01}),
        ("trtllm_kv_cache_utilization 0.1\ntrtllm_num_requests_running 2", {"server": "TensorRT-LLM", "kv_cache": 0.1,
                                                                          "running": 2.0}),
        ("llamacpp:requests_processing 4\r\nllamacpp:requests_deferred 46\r\n",
         {"server": "llama.cpp", "running": 4.0, "waiting": 46.0}),
        ("", None), ("<html>not found</html>", None), ("vllm:num_requests_running x", None),
        ("vllm:num_requests_running", None), ("python_info 1", None), ('[{"kvCacheStats": {}}]', None),
    ],
)  # fmt: skip
def test_a_page_has_the_facts_of_its_server(text: str, found: dict[str, Any] | None) -> None:
    assert parse_page(text) == found


def test_only_harmless_settings_of_a_server_are_kept() -> None:
    values = {"api_key": "s", "model_path": "/home/me/m", "host": "10.0.0.1", "tp_size": 2, "dtype": "bf16\x1b[0m",
              "quantization": None, "version": "0.5" * 99, "mem_fraction_static": float("nan"),
              "default_generation_settings": {"n_ctx": 4096, "params": {"n_ctx": 1}}, "block_size": [1]}  # fmt: skip
    found = safe_settings(values)
    assert found.keys() == {"tp_size", "dtype", "version", "n_ctx"}
    assert (found["tp_size"], found["n_ctx"], len(found["version"])) == (2, 4096, 100)
    assert "\x1b" not in found["dtype"]


def line(**facts: Any) -> str:
    return json.dumps({"server": "vLLM", "path": "/metrics", **facts})


def test_the_summary_has_means_maxima_and_what_was_counted_meanwhile() -> None:
    lines = [
        line(time_s=0.0, kv_cache=0.2, running=1, preemptions=5, prefix_queries=100, prefix_hits=90),
        json.dumps({"configuration": {"version": "1"}}), json.dumps({"failed": "status 503"}),
        line(time_s=1.0, kv_cache=0.6, running=4, preemptions=8, prefix_queries=300, prefix_hits=140),
        '{"server": "vLL',
    ]  # fmt: skip
    assert summary(lines) == {
        "configuration": {"version": "1"}, "samples": 2, "failed_samples": 1, "server": "vLLM", "path": "/metrics",
        "kv_cache": {"mean": 0.4, "max": 0.6}, "running": {"mean": 2.5, "max": 4}, "waiting": None,
        "preemptions": 3, "prefix_hit_rate": 0.25,
        "series": {"columns": ["time_s", "kv_cache", "running", "waiting"],
                   "rows": [[0.0, 0.2, 1.0, None], [1.0, 0.6, 4.0, None]]},
    }  # fmt: skip


def test_a_long_series_has_means_of_several_seconds() -> None:
    rows = [{"time_s": float(second), "running": second % 2} for second in range(2 * MAX_ROWS)]
    found = series(rows)["rows"]
    assert len(found) == MAX_ROWS and found[0] == [1.0, None, 0.5, None] and found[-1][0] == 2 * MAX_ROWS - 1
    assert series([{"running": 1.0}])["rows"] == [], "answers without a time"


def test_a_restarted_server_has_no_counts_and_one_without_metrics_says_why() -> None:
    assert summary([line(preemptions=5), line(preemptions=1)])["preemptions"] is None
    assert summary([line(hit_rate=0.5)])["prefix_hit_rate"] == 0.5
    assert summary([json.dumps({"absent": "status 404", "configuration": {"version": "2"}})]) == {
        "configuration": {"version": "2"}, "samples": 0, "failed_samples": 0, "why": "status 404"
    }  # fmt: skip
    assert summary([])["why"] == "no answer during the run"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Stub, str]]:
    with running_stub() as found:
        yield found


def watched(stub: Stub, url: str, pages: int) -> Any:
    """What a watch finds until the server was asked so often, or for 30 s."""
    end, wanted = time.monotonic() + 30, stub.pages + pages
    with ServerWatch({"url": url, "key_variable": None}) as watch:
        while stub.pages < wanted and time.monotonic() < end:
            time.sleep(0.02)
    return watch.record()


def test_a_server_is_asked_while_the_block_lasts(served: tuple[Stub, str]) -> None:
    stub, url = served
    found = watched(stub, f"{url}/metrics=vllm/v1", 2)
    assert (found["server"], found["path"], found["kv_cache"]["max"]) == ("vLLM", "/metrics", 0.25)
    assert found["series"]["rows"][0][1] == 0.25
    assert found["samples"] >= 1 and found["configuration"]["block_size"] == "16"
    assert found["configuration"]["version"] == "9.9", "of the page /version"
    assert "secret" not in json.dumps(found)


def test_the_block_begins_when_the_process_has_started(served: tuple[Stub, str]) -> None:
    with ServerWatch({"url": f"{served[1]}/metrics=hang/v1", "key_variable": None}) as watch:
        pass
    assert watch._lines[:1] == ["{}"]


@pytest.mark.parametrize(("why", "rounds"), [("status 404", 1), ("status 503", 3), ("no connection", 3)])
def test_a_server_without_such_a_page_is_asked_once(why: str, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    server = SimpleNamespace(sample=lambda: (asked.append(why), (None, why))[1], configuration=dict)
    waits_s: list[float] = []
    monkeypatch.setattr("crowdperf.call.server_metrics.time.sleep", waits_s.append)
    assert list(answers(server)) == [{"absent": why, "configuration": {}}]
    assert (len(asked), len(waits_s)) == (rounds, rounds - 1)


def test_a_server_that_hangs_or_is_gone_disturbs_nothing(served: tuple[Stub, str]) -> None:
    stub, url = served
    assert watched(stub, f"{url}/metrics=hang/v1", 1)["why"] == "no answer during the run"
    assert watched(stub, "http://127.0.0.1:1/v1", 0)["samples"] == 0
    with ServerWatch(None) as nothing:
        pass
    assert nothing.record() is None
