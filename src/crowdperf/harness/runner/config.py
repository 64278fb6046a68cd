"""Reads run.json into one frozen RunConfig; the only place that knows the file's keys.

    {"format": 3, "model": "digits", "backend": "onnxruntime", "device": "cpu", "scenario": "Offline", "mode":
    "performance", "execution_mode": "test", "compliance_test": null, "find": false, "model_path": "digits.onnx",
    "model_info_path": "model.json", "dataset_path": "digits", "preprocessed_path": null, "output_dir": "out",
    "precision": "fp32", "gpus": null, "batch_size": null, "instances": null, "threads": null,
    "batch_timeout_us": null, "target_qps": null, "target_latency_ms": null, "min_duration_ms": null,
    "min_query_count": null, "performance_sample_count": null, "user_conf": null}

Every key is always there, but for `silence_s`, for `serving` (serving.py), which backends have that ask a server, and
for `text`, which those have that answer prompts (TextRequest); null in the second half means that the harness decides.
Relative paths start at the current folder.

    "text": {"endpoint": {"url": "http://127.0.0.1:8000/v1", "model": null, "api": null, "key_variable": null},
             "max_in_flight": null, "kv_cache_bytes": null, "timeout_s": null, "server": null}     (or endpoint null)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from crowdperf.call.text_inputs import APIS
from crowdperf.harness.base import json_values
from crowdperf.harness.base.errors import ConfigError, Problem
from crowdperf.harness.base.json_values import Reader
from crowdperf.harness.base.serving import BATCHING, TRANSPORTS, ServingRequest, check_serving
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.rules.compliance import TESTS as COMPLIANCE_TESTS
from crowdperf.rules.names import ExecutionMode, Mode, Scenario, parse_execution_mode, parse_mode, parse_scenario

FORMAT = 3


PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8", "int4")
"""Number formats of the weights and of most operators; which of them a backend can run, it says itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """The names that `model` and `backend` may have: the files in the folders of the harness."""

    models: tuple[str, ...]
    backends: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One LoadGen run as asked for; None where the harness decides.

    compliance_test: the MLPerf compliance test that the run is for; None in an ordinary run. find: look for the best
    target of the scenario instead of measuring at one.
    preprocessed_path: a store of preprocessed samples (`harness preprocess`). gpus: device indices for device cuda.
    instances: how many batches run at the same time. threads: CPU threads for inference in all. batch_timeout_us: how
    long a Server batch may wait to fill. target_qps: Offline and Server only. target_latency_ms: the limit in
    Server, the expected latency in the stream scenarios. user_conf: a LoadGen configuration file whose values count
    as given here, where the key of this file is null. silence_s: how long nothing may be answered while samples wait,
    before the run ends as failed; engines that answer prompts have `text.timeout_s`.
    """

    model: str
    backend: str
    device: str
    scenario: Scenario
    mode: Mode
    execution_mode: ExecutionMode
    compliance_test: str | None
    find: bool
    model_path: Path | None
    model_info_path: Path | None
    dataset_path: Path
    preprocessed_path: Path | None
    output_dir: Path
    precision: str
    gpus: tuple[int, ...]
    batch_size: int | None
    instances: int | None
    threads: int | None
    batch_timeout_us: int | None
    target_qps: float | None
    target_latency_ms: float | None
    min_duration_ms: int | None
    min_query_count: int | None
    performance_sample_count: int | None
    user_conf: Path | None
    serving: ServingRequest | None = None
    text: TextRequest | None = None
    silence_s: float | None = None


def _endpoint(reader: Reader, value: object) -> Endpoint | None:
    """Return `text.endpoint`, with the problems in it noted."""
    if not isinstance(value, Mapping):
        return None
    inner = Reader(value)
    endpoint = Endpoint(
        url=inner.take("url", "a URL that begins with http:// or https://", json_values.url) or "",
        model=inner.optional("model", "the name of a model", json_values.text),
        api=inner.optional("api", ", ".join(APIS), json_values.one_of(APIS)),
        key_variable=inner.optional("key_variable", "the name of an environment variable", json_values.text),
    )
    reader.take_over("endpoint", inner)
    return endpoint


def _text_request(reader: Reader, value: object) -> TextRequest | None:
    """Return `text`, with the problems in it noted."""
    if not isinstance(value, Mapping):
        return None
    inner = Reader(value)
    request = TextRequest(
        endpoint=inner.optional("endpoint", "an object", partial(_endpoint, inner)),
        max_in_flight=inner.optional("max_in_flight", "a whole number from 1", json_values.whole),
        kv_cache_bytes=inner.optional("kv_cache_bytes", "a whole number from 1", json_values.whole),
        timeout_s=inner.optional("timeout_s", "a number above 0", json_values.positive),
        server=inner.optional("server", "a path", json_values.path),
    )
    reader.take_over("text", inner)
    return request


def _serving(reader: Reader, value: object) -> ServingRequest | None:
    """Return `serving`, with the problems in it noted."""
    if not isinstance(value, Mapping):
        return None
    inner = Reader(value)
    server = inner.take("server", "a path", json_values.path)
    request = ServingRequest(
        server=server or Path(),
        batching=inner.optional("batching", ", ".join(BATCHING), json_values.one_of(BATCHING)),
        transport=inner.optional("transport", ", ".join(TRANSPORTS), json_values.one_of(TRANSPORTS)),
        instance_count=inner.optional("instance_count", "a whole number from 1", json_values.whole),
        max_queue_delay_us=inner.optional("max_queue_delay_us", "a whole number from 0", json_values.whole_from_zero),
        preferred_batch_size=inner.optional(
            "preferred_batch_size", "a list of whole numbers from 1", json_values.batch_sizes
        ),
        max_batch_size=inner.optional("max_batch_size", "a whole number from 1", json_values.whole),
    )
    reader.take_over("serving", inner)
    return request


def _check_purpose(reader: Reader, config: RunConfig) -> None:
    if config.compliance_test is not None and config.mode is not Mode.PERFORMANCE:
        reader.note("compliance_test", json.dumps(config.compliance_test), "null: it is a run in performance mode")
    if config.find and config.mode is not Mode.PERFORMANCE:
        reader.note("find", "true", "false: targets are looked for in performance mode")
    if config.find and config.text is not None:
        reader.note("find", "true", "false: targets of engines that answer prompts are not looked for")
    if config.find and config.compliance_test is not None:
        reader.note("find", "true", "false: a compliance test has the targets of the run that it is for")


def _check_targets(reader: Reader, config: RunConfig) -> None:
    if config.silence_s is not None and config.text is not None:
        reader.note("silence_s", str(config.silence_s), "null: text.timeout_s is that of engines that answer prompts")
    if config.gpus and config.device != "cuda":
        reader.note("gpus", str(list(config.gpus)), f"null: device {config.device} has none")
    if config.batch_timeout_us is not None and not config.scenario.is_server:
        reader.note("batch_timeout_us", str(config.batch_timeout_us), "null: only Server batches wait to fill")
    if config.instances is not None and config.threads is not None and config.threads % config.instances:
        reader.note("threads", str(config.threads), f"a multiple of instances ({config.instances})")
    if config.scenario.is_stream and config.target_qps is not None:
        reader.note("target_qps", str(config.target_qps), f"null: {config.scenario.value} has no target rate")
    if config.scenario is Scenario.OFFLINE and config.target_latency_ms is not None:
        reader.note("target_latency_ms", str(config.target_latency_ms), "null: Offline has no latency target")


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key of the file may be, in words, and its converter. is_optional: null leaves it to the harness."""

    allowed: str
    convert: Callable[[object], Any]
    is_optional: bool = True


def _keys(known: KnownNames) -> dict[str, _Key]:
    """Return the keys that are always there, in the file's order; each is a field of RunConfig."""

    def required(allowed: str, convert: Callable[[object], Any]) -> _Key:
        return _Key(allowed, convert, is_optional=False)

    def listed(names: Iterable[str], convert: Callable[[object], Any] | None = None) -> _Key:
        names = tuple(names)
        return required(", ".join(names), convert or json_values.one_of(names))

    path, whole = _Key("a path", json_values.path), _Key("a whole number from 1", json_values.whole)
    positive = _Key("a number above 0", json_values.positive)
    return {
        "model": listed(known.models),
        "backend": listed(known.backends),
        "device": required("the name of a device", json_values.text),
        "scenario": listed((one.value for one in Scenario), json_values.named(parse_scenario)),
        "mode": listed((one.value for one in Mode), json_values.named(parse_mode)),
        "execution_mode": listed((one.value for one in ExecutionMode), json_values.named(parse_execution_mode)),
        "compliance_test": _Key(", ".join(COMPLIANCE_TESTS), json_values.one_of(COMPLIANCE_TESTS)),
        "find": required("true, false", json_values.truth),
        "model_path": path,
        "model_info_path": path,
        "dataset_path": required("a path", json_values.path),
        "preprocessed_path": path,
        "output_dir": required("a path", json_values.path),
        "precision": listed(PRECISIONS),
        "gpus": _Key("a list of GPU numbers, none twice", json_values.gpu_numbers),
        "batch_size": whole,
        "instances": whole,
        "threads": whole,
        "batch_timeout_us": whole,
        "target_qps": positive,
        "target_latency_ms": positive,
        "min_duration_ms": whole,
        "min_query_count": whole,
        "performance_sample_count": whole,
        "user_conf": path,
    }


def parse_run_config(text: str, source: str, known: KnownNames) -> RunConfig:
    """Return the request in the JSON `text`; raises ConfigError with every problem in it. `source` is for the
    message."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(source, [Problem("the file", f"no JSON ({error})", "one JSON object")]) from error
    if not isinstance(values, dict):
        raise ConfigError(source, [Problem("the file", type(values).__name__, "one JSON object")])
    reader = Reader(values)
    reader.take("format", str(FORMAT), lambda value: value if value == FORMAT and value is not True else None)
    keys = _keys(known)
    taken: dict[str, Any] = {name: (reader.optional if key.is_optional else reader.take)(name, key.allowed, key.convert)
             for name, key in keys.items()}  # fmt: skip
    serving = None if "serving" not in values else reader.optional("serving", "an object", partial(_serving, reader))
    text_request = None if "text" not in values else reader.take("text", "an object", partial(_text_request, reader))
    silence_s = (
        reader.optional("silence_s", "a number above 0", json_values.positive) if "silence_s" in values else None
    )
    reader.refuse_others()
    if any(taken[name] is None for name, key in keys.items() if not key.is_optional):
        raise ConfigError(source, reader.problems)
    taken["gpus"] = taken["gpus"] or ((0,) if taken["device"] == "cuda" else ())
    config = RunConfig(**taken, serving=serving, text=text_request, silence_s=silence_s)
    if serving is not None:
        check_serving(serving, config.scenario, reader.note)
    _check_purpose(reader, config)
    _check_targets(reader, config)
    if reader.problems:
        raise ConfigError(source, reader.problems)
    return config
