"""Stands in for MLCommons' Endpoints client in tests: its command line, and its files from real streams of a server.

    python standin_client.py benchmark from-config --config F --mode perf|both

The files are written by `report_folder`, from what came. STANDIN_READY_S: seconds that its services claim to take.
STANDIN_CALLS: a file that gets a line for each run.
"""

import http.client
import json
import os
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from report_folder import _START_NS, Sample, Setup, write_report


class Sampler:
    """Sends samples: a number of them, or until a time. done: what came, in times from the start on."""

    def __init__(self, config: dict) -> None:
        self.model = config["model_params"]
        self.parts = urlsplit(config["endpoint_config"]["endpoints"][0])
        self.began_ns = time.monotonic_ns()
        self.done: list[Sample] = []
        self.lock = threading.Lock()

    def now_ns(self) -> int:
        return _START_NS + time.monotonic_ns() - self.began_ns

    def run(self, prompts: list[str], samples: int, workers: int, most_s: float) -> None:
        left = iter(range(samples))
        until = time.monotonic() + (most_s or 1e9)

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

    def one(self, connection: http.client.HTTPConnection, prompt: str) -> Sample:
        body = {"model": self.model["name"], "stream": True, "max_tokens": self.model["max_new_tokens"],
                "messages": [{"role": "user", "content": prompt}]}  # fmt: skip
        issued = self.now_ns()
        connection.request("POST", f"{self.parts.path}/v1/chat/completions", json.dumps(body),
                           {"Content-Type": "application/json"})  # fmt: skip
        chunks, times = [], []
        for line in connection.getresponse():
            if line.startswith(b"data: {"):
                text = "".join(one["delta"].get("content") or "" for one in json.loads(line[6:])["choices"])
                if text:
                    chunks.append(text)
                    times.append(self.now_ns())
        return Sample(prompt, issued, tuple(times), tuple(chunks), self.now_ns())


def run(config: dict, mode: str) -> None:
    runtime, pattern = config["settings"]["runtime"], config["settings"]["load_pattern"]
    performance = next(one for one in config["datasets"] if one["type"] == "performance")
    accuracy = [one for one in config["datasets"] if one["type"] == "accuracy"]
    rows = [json.loads(line) for line in Path(performance["path"]).read_text(encoding="utf-8").splitlines()]
    prompts = [row[performance["parser"]["prompt"]] for row in rows]
    samples, sampler = runtime["n_samples_to_issue"], Sampler(config)
    sampler.run(prompts, samples, pattern.get("target_concurrency") or samples, runtime["max_duration_ms"] / 1000)
    setup = Setup(
        concurrency=pattern.get("target_concurrency", 0),
        samples=len(sampler.done),
        is_offline=pattern["type"] == "max_throughput",
        dataset=performance["name"],
        accuracy_samples=len(rows) if mode == "both" and accuracy else 0,
        git_sha=None,
        started_at=0,
        extra=config,
    )
    write_report(Path(config["report_dir"]), setup, sampler.done)


def main() -> int:
    given = dict(zip(sys.argv[3::2], sys.argv[4::2], strict=True))
    assert sys.argv[1:3] == ["benchmark", "from-config"], sys.argv
    config = yaml.safe_load(Path(given["--config"]).read_text(encoding="utf-8"))
    if calls := os.environ.get("STANDIN_CALLS"):
        with open(calls, "a", encoding="utf-8") as stream:
            stream.write(f"{config['name']} {Path(config['report_dir']).name} {given['--mode']}\n")
    ready_s = config["settings"]["service_ready_timeout_s"]
    if ready_s < float(os.environ.get("STANDIN_READY_S", "0")):
        print(f"TimeoutError: Ready check failed: 1/2 signals received within {ready_s}s", file=sys.stderr)
        return 3
    run(config, given["--mode"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
