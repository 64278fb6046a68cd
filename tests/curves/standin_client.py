#!/usr/bin/env python3
"""Stands in for MLCommons' Endpoints client in tests: its command line, and its files from real streams of a server.

    standin_client.py benchmark from-config --config F [--mode perf|both]

Tokens are words. Written after the formats that mlperf_curves.clientfiles and events name; no line is the client's.
STANDIN_READY_S: seconds that its services take to report, without waiting for them.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import yaml

PERCENTS = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 75.0, 50.0, 25.0, 10.0, 5.0, 1.0)


class Log:
    """events.jsonl, as it grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.lock = threading.Lock()

    def add(self, kind: str, sample: str = "", data: object = None) -> int:
        now = time.monotonic_ns()
        event = {"event_type": kind, "timestamp_ns": now, "sample_uuid": sample, "conversation_id": "", "turn": None,
                 "data": data}  # fmt: skip
        with self.lock:
            self.lines.append(json.dumps(event, separators=(",", ":")))
        return now


class Sampler:
    """Sends samples and keeps what came of them, for a phase with a number of samples or an end in time."""

    def __init__(self, config: dict, log: Log) -> None:
        self.config, self.log = config, log
        self.done: list[dict] = []
        self.parts = urlsplit(config["endpoint_config"]["endpoints"][0])
        self.lock = threading.Lock()

    def run(self, prompts: list[str], samples: int, workers: int, most_s: float) -> None:
        left = iter(range(samples))
        until = time.monotonic() + most_s if most_s else float("inf")

        def work() -> None:
            connection = http.client.HTTPConnection(self.parts.netloc, timeout=30)
            while time.monotonic() < until:
                with self.lock:
                    number = next(left, None)
                if number is None:
                    break
                self.done.append(self.one(connection, prompts[number % len(prompts)]))
            connection.close()

        threads = [threading.Thread(target=work) for _ in range(min(workers, samples))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def one(self, connection: http.client.HTTPConnection, prompt: str) -> dict:
        sample, model = uuid.uuid4().hex, self.config["model_params"]
        body = {"model": model["name"], "stream": True, "max_tokens": model["max_new_tokens"],
                "messages": [{"role": "user", "content": prompt}]}  # fmt: skip
        prompt_data = ["PromptData", prompt, None, None, None, None, None, None]
        issued = self.log.add("sample.issued", sample, prompt_data)
        connection.request("POST", f"{self.parts.path}/v1/chat/completions", json.dumps(body),
                           {"Content-Type": "application/json"})  # fmt: skip
        first, chunks = 0, []
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            text = "".join(one["delta"].get("content") or "" for one in json.loads(line[6:])["choices"])
            if text and not first:
                first = self.log.add("sample.recv_first", sample)
            elif text:
                self.log.add("sample.recv_non_first", sample)
            chunks += [text] if text else []
        ended = self.log.add("sample.complete", sample, ["TextModelOutput", chunks, None, None])
        return {"issued": issued, "first": first, "ended": ended, "prompt": prompt, "chunks": chunks}


def figures(values: list) -> dict:
    ordered = sorted(values)
    if not ordered:
        return {}
    at = {str(percent): ordered[int((len(ordered) - 1) * percent / 100)] for percent in PERCENTS}
    return {"total": sum(ordered), "min": ordered[0], "max": ordered[-1], "median": at["50.0"],
            "avg": sum(ordered) / len(ordered), "std_dev": 0.0, "percentiles": at,
            "early_stopping_percentiles": {}, "histogram": {"buckets": [], "counts": []}}  # fmt: skip


def words(chunks: list[str]) -> int:
    return len("".join(chunks).split())


def summary(done: list[dict], began: int, config: dict) -> dict:
    ended = max((one["ended"] for one in done), default=began)
    seconds = (ended - began) / 1e9
    tokens = [words(one["chunks"]) for one in done]
    tpot = [(one["ended"] - one["first"]) / words(one["chunks"][1:]) for one in done if words(one["chunks"][1:])]
    return {
        "version": "0.1.0", "git_sha": None, "test_started_at": 0,
        "n_samples_issued": len(done), "n_samples_completed": len(done), "n_samples_failed": 0,
        "duration_ns": ended - began, "state": "complete", "complete": True,
        "ttft": figures([one["first"] - one["issued"] for one in done if one["first"]]),
        "tpot": figures(tpot),
        "latency": figures([one["ended"] - one["issued"] for one in done]),
        "output_sequence_lengths": figures(tokens),
        "input_sequence_lengths": figures([len(one["prompt"].split()) for one in done]),
        "qps": len(done) / seconds, "tps": sum(tokens) / seconds, "finish_reason_counts": {"length": len(done)},
        "run_config": {"name": config["name"]},
    }  # fmt: skip


def rows(dataset: dict) -> list[dict]:
    lines = Path(dataset["path"]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def score(dataset: dict, sampler: Sampler, workers: int) -> dict:
    given = rows(dataset)
    sampler.run([row[dataset["parser"]["prompt"]] for row in given], len(given), workers, 0.0)
    right = dataset["accuracy_config"]["ground_truth"]
    wanted = {row[dataset["parser"]["prompt"]]: row[right] for row in given}
    passed = sum("".join(one["chunks"]) == wanted[one["prompt"]] for one in sampler.done)
    return {
        "dataset_name": dataset["name"], "extractor": "IdentityExtractor", "ground_truth_column": right,
        "score": passed / len(given), "unit_samples": len(given), "num_repeats": 1, "total_samples": len(given),
        "complete": True, "dataset_type": "accuracy",
        "response_counts": {"issued": len(given), "scored": len(given), "empty": 0, "missing": 0},
    }  # fmt: skip


def run(config: dict, mode: str) -> None:
    report = Path(config["report_dir"])
    report.mkdir(parents=True, exist_ok=True)
    (report / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    runtime, pattern = config["settings"]["runtime"], config["settings"]["load_pattern"]
    performance = next(one for one in config["datasets"] if one["type"] == "performance")
    prompts = [row[performance["parser"]["prompt"]] for row in rows(performance)]
    samples = runtime["n_samples_to_issue"]
    workers = pattern.get("target_concurrency") or samples
    log = Log()
    log.add("session.started")
    began = log.add("session.start_performance_tracking")
    sampler = Sampler(config, log)
    sampler.run(prompts, samples, workers, runtime["max_duration_ms"] / 1000)
    log.add("session.stop_performance_tracking")
    write(report / "performance" / "result_summary.json", summary(sampler.done, began, config))
    if mode == "both":
        scores = [score(one, Sampler(config, log), workers) for one in config["datasets"] if one["type"] == "accuracy"]
        average = sum(one["score"] for one in scores) / len(scores)
        content = {"average_accuracy": average, "accuracy_scores": scores}
        write(report / "accuracy" / "accuracy_results.json", content)
    log.add("session.ended")
    (report / "events.jsonl").write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    (report / "report.txt").write_text("stand-in\n", encoding="utf-8")


def main() -> int:
    given = dict(zip(sys.argv[3::2], sys.argv[4::2], strict=True))
    assert sys.argv[1:3] == ["benchmark", "from-config"], sys.argv
    config = yaml.safe_load(Path(given["--config"]).read_text(encoding="utf-8"))
    ready_s = config["settings"]["service_ready_timeout_s"]
    if ready_s < float(os.environ.get("STANDIN_READY_S", "0")):
        print(f"TimeoutError: Ready check failed: 1/2 signals received within {ready_s}s", file=sys.stderr)
        return 3
    run(config, given["--mode"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
