"""Writes report folders as MLCommons' Endpoints client does: `write_report` from samples, `simulated` makes samples.

Form: that of client 0.1.0 (mlcommons/endpoints ea332753): config.yaml with its defaults, result_summary.json,
accuracy_results.json and events.jsonl with the keys in the client's order. The figures are computed here from the
samples themselves, not from the events, so that deriving them from the events is a test. A token is a word.
"""

import heapq
import json
import math
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

PERCENTILES = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 75.0, 50.0, 25.0, 10.0, 5.0, 1.0)
SEED_SET_A = (10487924139932647040, 586478644936801402)
_START_NS = 3_000_000_000_000


@dataclass(frozen=True)
class Sample:
    """One request. chunks: the words of the answer as they came; at chunk_ns, the last with the end."""

    prompt: str
    issued_ns: int
    chunk_ns: tuple[int, ...]
    chunks: tuple[str, ...]
    completed_ns: int
    is_failed: bool = False


@dataclass(frozen=True)
class Setup:
    """Settings of the client, and what it knew of itself. span_s: least seconds over which samples are issued.

    words: least and most words of an answer. course: how much longer an answer takes in each pass over the data set.
    """

    concurrency: int
    samples: int
    span_s: float = 1500.0
    is_offline: bool = False
    model: str = "gpt-oss-120b"
    dataset: str = "echo64"
    dataset_samples: int = 64
    git_sha: str | None = "ea3327530376fef63d706f4105612e17c2c80a8d"
    started_at: int = _START_NS
    accuracy_samples: int = 0
    score: float = 0.84
    is_echo: bool = False
    words: tuple[int, int] = (4, 8)
    course: tuple[float, ...] = ()
    endpoint: str = "http://127.0.0.1:8000"
    tokenizer: str = "./tok"
    seeds: tuple[int, int] = SEED_SET_A
    extra: dict[str, object] = field(default_factory=dict)


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(("red", "green", "blue", "tall", "small", "house", "tree")) for _ in range(count))


def simulated(setup: Setup, seed: int = 1) -> list[Sample]:
    """A closed loop: `concurrency` requests under way, the next one issued when one ends; all at once offline."""
    rng = random.Random(seed)
    prompts = [f"question {index} {_words(rng, rng.randint(3, 9))}" for index in range(setup.dataset_samples)]
    rounds = max(1.0, setup.samples / setup.concurrency - 1)
    latency_ns = int(1.3e9 * setup.span_s / rounds)
    free = [_START_NS + 1000 * slot for slot in range(setup.samples if setup.is_offline else setup.concurrency)]
    samples = []
    for index in range(setup.samples):
        prompt = prompts[index % len(prompts)]
        issued = heapq.heappop(free) + 10
        words = prompt.split() if setup.is_echo else _words(rng, rng.randint(*setup.words)).split()
        slower = setup.course[index // setup.dataset_samples] if setup.course else 1.0
        took = int(slower * latency_ns * rng.uniform(0.9, 1.1))
        step = took // (len(words) + 1)
        times = tuple(issued + step * (one + 1) for one in range(len(words)))
        chunks = (words[0], *(f" {word}" for word in words[1:]))
        samples.append(Sample(prompt, issued, times, chunks, issued + took))
        heapq.heappush(free, issued + took)
    return samples


def _series(values: Sequence[float]) -> dict[str, object]:
    ordered = sorted(values)
    mean = sum(ordered) / len(ordered)
    spread = math.sqrt(sum((one - mean) ** 2 for one in ordered) / max(1, len(ordered) - 1))
    at = {str(one): float(ordered[int(one / 100 * (len(ordered) - 1))]) for one in PERCENTILES}
    return {
        "total": sum(values),
        "min": ordered[0],
        "max": ordered[-1],
        "median": at["50.0"],
        "avg": mean,
        "std_dev": spread,
        "percentiles": at,
        "early_stopping_percentiles": {"99.0": None, "90.0": at["95.0"], "50.0": at["75.0"]},
        "histogram": {"buckets": [[ordered[0], ordered[-1]]], "counts": [len(ordered)]},
    }


def summary_of(setup: Setup, samples: Sequence[Sample]) -> dict[str, object]:
    """result_summary.json of a performance run."""
    good = [one for one in samples if not one.is_failed]
    duration = max(one.completed_ns for one in samples) - _START_NS
    tokens = [len(one.chunks) for one in good]
    return {
        "version": "0.1.0",
        "git_sha": setup.git_sha,
        "test_started_at": setup.started_at,
        "n_samples_issued": len(samples),
        "n_samples_completed": len(samples),
        "n_samples_failed": len(samples) - len(good),
        "duration_ns": duration,
        "state": "complete",
        "complete": True,
        "ttft": _series([one.chunk_ns[0] - one.issued_ns for one in good]),
        "tpot": _series([(one.completed_ns - one.chunk_ns[0]) / (len(one.chunks) - 1) for one in good]),
        "latency": _series([one.completed_ns - one.issued_ns for one in samples]),
        "output_sequence_lengths": _series(tokens),
        "input_sequence_lengths": _series([len(one.prompt.split()) for one in samples]),
        "legacy_loadgen_window_duration_ns": None,
        "qps": len(samples) / (duration / 1e9),
        "tps": sum(tokens) / (duration / 1e9),
        "finish_reason_counts": {"stop": len(good), "length": 0},
        "run_config": {
            "load_pattern": {"type": _pattern(setup), "target_concurrency": setup.concurrency},
            "scheduler_random_seed": setup.seeds[0],
            "dataloader_random_seed": setup.seeds[1],
        },
    }


def _pattern(setup: Setup) -> str:
    return "max_throughput" if setup.is_offline else "concurrency"


def config_of(setup: Setup) -> dict[str, object]:
    """config.yaml with the client's defaults filled in."""
    pattern: dict[str, object] = {"type": _pattern(setup)}
    if not setup.is_offline:
        pattern["target_concurrency"] = setup.concurrency
    return {
        "name": f"curve_r{setup.concurrency}",
        "version": "1.0",
        "type": "offline" if setup.is_offline else "online",
        "model_params": {
            "name": setup.model,
            "temperature": 0.0,
            "max_new_tokens": 64,
            "streaming": "off" if setup.is_offline else "on",
            "tokenizer_name": setup.tokenizer,
        },
        "datasets": [
            {"name": setup.dataset, "type": "performance", "path": "./data.jsonl", "parser": {"prompt": "prompt"}},
        ],
        "settings": {
            "runtime": {
                "min_duration_ms": int(1000 * setup.span_s),
                "n_samples_to_issue": setup.samples,
                "scheduler_random_seed": setup.seeds[0],
                "dataloader_random_seed": setup.seeds[1],
            },
            "load_pattern": pattern,
            "client": {"num_workers": 1, "stream_all_chunks": True},
            "warmup": {"enabled": False, "salt": False},
        },
        "endpoint_config": {"endpoints": [setup.endpoint], "api_type": "openai"},
        "report_dir": "./runs/r1",
        **setup.extra,
    }


def accuracy_of(setup: Setup) -> dict[str, object]:
    """accuracy_results.json of one accuracy data set."""
    count = setup.accuracy_samples
    entry = {
        "dataset_name": f"{setup.dataset}_acc",
        "extractor": "IdentityExtractor",
        "ground_truth_column": "answer",
        "score": setup.score,
        "unit_samples": count,
        "num_repeats": 1,
        "total_samples": count,
        "duration_s": 12.5,
        "complete": True,
        "dataset_type": "accuracy",
        "response_counts": {"issued": count, "scored": count, "empty": 0, "missing": 0},
        "output_sequence_lengths": _series([5, 6, 7]),
    }
    return {"average_accuracy": setup.score, "osl_tokenization_s": 0.02, "accuracy_scores": [entry]}


def _line(kind: str, time_ns: int, sample: str = "", data: object = None) -> tuple[int, str]:
    event = {
        "event_type": kind,
        "timestamp_ns": time_ns,
        "sample_uuid": sample,
        "conversation_id": "",
        "turn": None,
        "data": data,
    }
    if kind == "sample.complete":
        event |= {"finish_reason": "stop", "worker_id": 0}
    return time_ns, json.dumps(event, separators=(",", ":"))


def events_of(samples: Sequence[Sample]) -> list[str]:
    """The lines of events.jsonl: a warm-up sample, the tracked ones, one of the accuracy run behind them."""
    end = max(one.completed_ns for one in samples)
    lines = [
        _line("session.started", _START_NS - 9000),
        _line("sample.issued", _START_NS - 8000, "warmup", ["PromptData", "hello"]),
        _line("sample.complete", _START_NS - 7000, "warmup", ["TextModelOutput", "hello", None, None]),
        _line("session.start_performance_tracking", _START_NS),
        _line("session.stop_performance_tracking", end + 1),
        _line("sample.issued", end + 2, "accuracy", ["PromptData", "hello"]),
        _line("sample.complete", end + 3, "accuracy", ["TextModelOutput", "hello", None, None]),
        _line("session.ended", end + 4),
    ]
    for index, one in enumerate(samples):
        name = uuid.UUID(int=index).hex
        lines.append(_line("sample.issued", one.issued_ns, name, ["PromptData", one.prompt, None, None, None]))
        if one.is_failed:
            lines.append(_line("error.generic", one.completed_ns, name, {"message": "503"}))
            lines.append(_line("sample.complete", one.completed_ns, name, None))
            continue
        lines.append(_line("sample.recv_first", one.chunk_ns[0], name))
        lines += [_line("sample.recv_non_first", time_ns, name) for time_ns in one.chunk_ns[1:]]
        output = [one.chunks[0], "".join(one.chunks[1:])]
        lines.append(_line("sample.complete", one.completed_ns, name, ["TextModelOutput", output, None, None]))
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def write_report(folder: Path, setup: Setup, samples: Sequence[Sample] | None = None) -> Path:
    """Write the report folder of one run."""
    taken = simulated(setup) if samples is None else samples
    (folder / "performance").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config_of(setup), sort_keys=False), encoding="utf-8")
    summary = json.dumps(summary_of(setup, taken), indent=2)
    (folder / "performance" / "result_summary.json").write_text(summary, encoding="utf-8")
    (folder / "events.jsonl").write_text("\n".join(events_of(taken)) + "\n", encoding="utf-8")
    if setup.accuracy_samples:
        (folder / "accuracy").mkdir()
        scores = json.dumps(accuracy_of(setup), indent=2)
        (folder / "accuracy" / "accuracy_results.json").write_text(scores, encoding="utf-8")
    return folder
