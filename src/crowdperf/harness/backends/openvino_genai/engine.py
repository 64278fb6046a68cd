"""The openvino_genai engine: OpenVINO GenAI's ContinuousBatchingPipeline, which batches in flight and reads a GGUF file
as it lies.

Prompts go in as tokens. Prefix caching is off: the rules forbid it across queries. A step of the pipeline holds
Python's global lock, so LoadGen's calls wait for the step to end, as the requests that they bring would. The pipeline
counts its cache in whole GiB and takes the pages only as they are used; where it is full, the newest request starts
again. Names: openvino_genai's type stubs and openvino/runtime/properties.hpp, 2026.4.
"""

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import openvino
import openvino_genai

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import gguf_file
from crowdperf.harness.text.engine import EngineRequest, Finish, TextEngine, Tokens
from crowdperf.harness.text.step_driver import Progress, StepEngine, cache_gib, places, probe, refusal
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

_KEPT_AS = {"int4": "u8", "int8": "u8", "fp16": "f16"}
"""The type of keys and values by that of the weights: no finer than those."""
_FINISHES = {"STOP": Finish.STOP, "LENGTH": Finish.LENGTH}


class GenAiSteps:
    """What computes (crowdperf/harness/text/step_driver.py)."""

    def __init__(self, pipeline: Any, sampling: Sampling, longest: int) -> None:
        self._pipeline, self._sampling, self._longest = pipeline, sampling, longest
        self._vocabulary = len(pipeline.get_tokenizer().get_vocab())
        self._config = generation_config(sampling, pipeline.get_config())
        self._handles: dict[int, Any] = {}

    def enter(self) -> None:
        """Nothing: the pipeline has threads of its own."""

    def add(self, number: int, tokens: Tokens) -> str:
        """Take a prompt. The pipeline does not survive a token that the model does not have."""
        if why := refusal(tokens, self._longest, self._vocabulary):
            return why
        self._config.rng_seed = (self._sampling.seed or 0) + number
        ids = openvino.Tensor(tokens.astype(np.int64)[None])
        try:
            self._handles[number] = self._pipeline.add_request(number, ids, self._config)
        except RuntimeError as error:
            return f"OpenVINO refuses the prompt: {_last_line(error)}"
        return ""

    def step(self) -> Sequence[Progress]:
        """Step, and read what every handle has; a handle without anything would wait for ever."""
        self._pipeline.step()
        told = [progress for number in list(self._handles) if (progress := self._news(number)) is not None]
        for progress in told:
            if progress.finish is not None or progress.why:
                del self._handles[progress.number]
        return told

    def drop(self, number: int) -> None:
        """Forget a prompt; the pipeline frees its cache with the next step."""
        self._handles.pop(number).cancel()

    def close(self) -> None:
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()
        self._pipeline = None

    def _news(self, number: int) -> Progress | None:
        handle, tokens, finish = self._handles[number], [], None
        while handle.can_read():
            (output,) = handle.read().values()
            tokens += output.generated_ids
            finish = _FINISHES.get(output.finish_reason.name)
        if finish is None and handle.get_status() == openvino_genai.GenerationStatus.IGNORED:
            return Progress(number, tokens, why="the KV cache is too small for this prompt: a larger --kv_cache_gb")
        return Progress(number, tokens, finish) if tokens or finish else None


def generation_config(sampling: Sampling, own: Any) -> Any:
    """Return OpenVINO's settings for `sampling`; `own`: the model's, which name its end tokens."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens, config.min_new_tokens = sampling.max_tokens, sampling.min_tokens
    config.ignore_eos = sampling.is_end_ignored
    if not sampling.is_end_ignored:
        config.stop_token_ids = {*own.stop_token_ids, *sampling.stop}
        if own.eos_token_id >= 0:
            config.set_eos_token_id(own.eos_token_id)
    config.do_sample = sampling.temperature > 0 and sampling.top_k != 1
    if config.do_sample:
        config.temperature, config.top_p = sampling.temperature, sampling.top_p
        if sampling.top_k:
            config.top_k = sampling.top_k
    return config


def _properties(request: EngineRequest) -> dict[str, Any]:
    return {
        "INFERENCE_NUM_THREADS": request.threads,
        "ENABLE_CPU_PINNING": bool(request.cores),
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": _KEPT_AS[request.precision],
    }


def _scheduler(in_flight: int, cache: int) -> Any:
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = cache
    scheduler.max_num_seqs = in_flight
    scheduler.enable_prefix_caching = False
    return scheduler


def open_engine(request: EngineRequest) -> TextEngine:
    """Return the engine; raises HarnessError for a file that OpenVINO refuses."""
    (count, origin), (cache, cache_origin) = places(request), cache_gib(request)
    path = gguf_file(request.facts, "openvino_genai")
    properties, scheduler = _properties(request), _scheduler(count, cache)
    try:
        pipeline = openvino_genai.ContinuousBatchingPipeline(path, scheduler, "CPU", properties)
    except Exception as error:  # RuntimeError, or what its reader meets in a damaged file
        raise HarnessError(
            f"OpenVINO GenAI {metadata.version('openvino-genai')} cannot open {path.name}: {_last_line(error)}",
            "it reads Llama and Qwen models, with weights of F16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K",
        ) from error
    steps = GenAiSteps(pipeline, request.sampling, request.longest_prompt)
    probe(steps, request.probes)
    record: dict[str, Json] = {
        "max_in_flight": {"value": count, "origin": origin},
        "kv_cache_bytes": {
            "value": pipeline.get_metrics().cache_size_in_bytes, "origin": cache_origin
        },
        "max_batched_tokens": {"value": scheduler.max_num_batched_tokens, "origin": "OpenVINO's default"},
        "prefix_caching": {"value": scheduler.enable_prefix_caching, "origin": "the rules"},
        **{name.lower(): {"value": value, "origin": "the run"} for name, value in properties.items()},
    }  # fmt: skip
    return StepEngine(steps, request, record, _versions())


def _versions() -> Mapping[str, str]:
    names = ("openvino", "openvino-genai", "openvino-tokenizers")
    return {name: metadata.version(name) for name in names}


def _last_line(error: Exception) -> str:
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return said[-1] if said else repr(error)
