"""Reads run.json into one frozen RunConfig. Only this module knows the file's keys.

    {"format": 3, "model": "digits", "backend": "onnxruntime", "device": "cpu", "scenario": "Offline", "mode":
     "performance", "execution_mode": "test", "compliance_test": null, "find": false, "model_path": "digits.onnx",
     "model_info_path": "model.json", "dataset_path": "digits", "preprocessed_path": null, "output_dir": "out",
     "precision": "fp32", "gpus": null, "batch_size": null, "instances": null, "threads": null,
     "batch_timeout_us": null, "target_qps": null, "target_latency_ms": null, "min_duration_ms": null,
     "min_query_count": null, "performance_sample_count": null, "user_conf": null}

Every key is required, except `silence_s`, `power_command`, `price_per_hour`, `serving` (server_settings.py, for
backends that query a server), and `text` (TextRequest, for backends that answer prompts) with its `client_processes`.
Null in the second half means that the harness decides. Relative paths start at the current folder.

    "text": {"endpoint": {"url": "http://127.0.0.1:8000/v1", "model": null, "api": null, "key_variable": null},
             "max_in_flight": null, "client_processes": null, "kv_cache_bytes": null, "timeout_s": null,
             "server": null}                                                          (or endpoint null)
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from crowdperf.harness.base.errors import ConfigError
from crowdperf.harness.text.request import TextRequest
from crowdperf.kit.records import (
    COUNT,
    MAY_BE_MISSING,
    NOT_NULL,
    POSITIVE,
    Kind,
    Problem,
    Record,
    filled_text,
    found_text,
    list_of,
    one_of,
    spelled,
    whole,
)
from crowdperf.kit.text_documents import json_object
from crowdperf.kit.user_paths import unusual_path
from crowdperf.rules.compliance import TESTS as COMPLIANCE_TESTS
from crowdperf.rules.names import ExecutionMode, Mode, Scenario, parse_execution_mode, parse_mode, parse_scenario
from crowdperf.rules.run_settings import NUMBERS
from crowdperf.rules.server_settings import ServingRequest, check_serving

FORMAT = 3


PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8", "int4")
"""Number formats of the weights and of most operators. Each backend declares which of them it can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """The names that `model` and `backend` may have: the files in the folders of the harness."""

    models: tuple[str, ...]
    backends: tuple[str, ...]


_GPUS = list_of(whole(0), "")
_WORDS = list_of(filled_text(""), "the words of a command, or null")


def _gpus(value: object) -> tuple[int, ...] | None:
    """Return the numbers of GPUs, without duplicates, empty for null."""
    found = () if value is None else _GPUS.convert(value)
    return found if value is None or (found and len(set(found)) == len(found)) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One requested LoadGen run. A value is None if the harness decides it.

    compliance_test: the MLPerf compliance test of the run, None in an ordinary run. find: search the best target of the
    scenario instead of measuring at one. preprocessed_path: a store of preprocessed samples (`harness preprocess`).
    gpus: device indices for device cuda. instances: number of batches that run at the same time. threads: CPU threads
    for inference in all. batch_timeout_us: the time a Server batch may wait to fill. target_qps: Offline and Server
    only. target_latency_ms: the limit in Server, the expected latency in the stream scenarios. user_conf: a LoadGen
    configuration file whose values apply if the key of this file is null. silence_s: the run ends as failed if samples
    wait that long without any answer. Engines that answer prompts have `text.timeout_s` instead. power_command: the
    program that prints the power, with its arguments. price_per_hour: of the measured machine, in the user's currency.
    """

    model: str
    backend: str
    device: Annotated[str, filled_text("the name of a device")]
    scenario: Annotated[Scenario, spelled(parse_scenario, tuple(one.value for one in Scenario))]
    mode: Annotated[Mode, spelled(parse_mode, tuple(one.value for one in Mode))]
    execution_mode: Annotated[ExecutionMode, spelled(parse_execution_mode, tuple(one.value for one in ExecutionMode))]
    compliance_test: Annotated[str, one_of(COMPLIANCE_TESTS)] | None
    find: bool
    model_path: Path | None
    model_info_path: Path | None
    dataset_path: Path
    preprocessed_path: Path | None
    output_dir: Path
    precision: Annotated[str, one_of(PRECISIONS)]
    gpus: Annotated[tuple[int, ...], Kind("a list of GPU numbers, none twice, or null", _gpus)]
    batch_size: Annotated[int, COUNT] | None
    instances: Annotated[int, COUNT] | None
    threads: Annotated[int, COUNT] | None
    batch_timeout_us: Annotated[int, COUNT] | None
    target_qps: Annotated[float, POSITIVE] | None
    target_latency_ms: Annotated[float, POSITIVE] | None
    min_duration_ms: Annotated[int, COUNT] | None
    min_query_count: Annotated[int, COUNT] | None
    performance_sample_count: Annotated[int, COUNT] | None
    user_conf: Path | None
    serving: Annotated[ServingRequest | None, MAY_BE_MISSING] = None
    text: Annotated[TextRequest | None, MAY_BE_MISSING, NOT_NULL] = None
    silence_s: Annotated[float | None, POSITIVE, MAY_BE_MISSING] = None
    power_command: Annotated[tuple[str, ...] | None, _WORDS, MAY_BE_MISSING] = None
    price_per_hour: Annotated[float | None, POSITIVE, MAY_BE_MISSING] = None


def _check_purpose(reader: Record, config: RunConfig) -> None:
    if unusual_path(config.output_dir):
        reader.note("output_dir", ascii(str(config.output_dir)), "a path that is valid UTF-8, as LoadGen requires")
    if config.compliance_test is not None and config.mode is not Mode.PERFORMANCE:
        reader.note("compliance_test", json.dumps(config.compliance_test), "null: it is a run in performance mode")
    if config.find and config.mode is not Mode.PERFORMANCE:
        reader.note("find", "true", "false: targets are looked for in performance mode")
    if config.find and config.text is not None:
        reader.note("find", "true", "false: targets of engines that answer prompts are not looked for")
    if config.find and config.compliance_test is not None:
        reader.note("find", "true", "false: a compliance test has the targets of the run that it is for")


def _check_targets(reader: Record, config: RunConfig) -> None:
    if config.silence_s is not None and config.text is not None:
        reader.note("silence_s", str(config.silence_s), "null: text.timeout_s is that of engines that answer prompts")
    if config.gpus and config.device != "cuda":
        reader.note("gpus", str(list(config.gpus)), f"null: device {config.device} has none")
    for setting in NUMBERS:
        value, why = getattr(config, setting.place), setting.misplaced((config.scenario,))
        if value is not None and why:
            reader.note(setting.place, str(value), f"null: {why}")
    if config.instances is not None and config.threads is not None and config.threads % config.instances:
        reader.note("threads", str(config.threads), f"a multiple of instances ({config.instances})")
    if config.scenario.is_stream and config.target_qps is not None:
        reader.note("target_qps", str(config.target_qps), f"null: {config.scenario.value} has no target rate")
    if config.scenario is Scenario.OFFLINE and config.target_latency_ms is not None:
        reader.note("target_latency_ms", str(config.target_latency_ms), "null: Offline has no latency target")


def parse_run_config(text: str, source: str, known: KnownNames) -> RunConfig:
    """Return the request in the JSON `text`. Raises ConfigError with every problem in it. `source` is for the
    message."""
    try:
        values = dict(json_object(text))
    except ValueError as error:
        raise ConfigError(source, [Problem("the file", str(error), "one JSON object")]) from error
    reader = Record(values)
    version = values.pop("format", None)
    if version != FORMAT or version is True:
        reader.note("format", "nothing" if version is None else found_text(version), str(FORMAT))
    kinds = {"model": one_of(known.models), "backend": one_of(known.backends)}
    config = reader.filled(RunConfig, kinds, every_key=True)
    if config is None:
        raise ConfigError(source, reader.problems)
    if not config.gpus and config.device == "cuda":
        config = replace(config, gpus=(0,))
    if config.serving is not None:
        check_serving(config.serving, config.scenario, reader.note)
    _check_purpose(reader, config)
    _check_targets(reader, config)
    if reader.problems:
        raise ConfigError(source, reader.problems)
    return config
