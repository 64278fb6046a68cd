"""The onnxruntime_genai engine: the Engine of onnxruntime-genai over a folder of its model builder.

On a processor this Engine batches statically: it takes up to four requests that wait, works on them until the last one
is answered, and only then takes the next ones (its continuous batching needs paged attention, which the builder writes
for GPUs only). It takes the likeliest token. Each request has a cache of the greatest length. Names: the package
onnxruntime-genai 0.18.0; the batch of four: src/engine/scheduler.cpp, StaticBatchScheduler, of
microsoft/onnxruntime-genai a0c04eb1 (2026-08-22).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import onnxruntime_genai

from crowdperf.harness.base.cores import at_cores
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.engine import EngineRequest, Finish, TextEngine, Tokens
from crowdperf.harness.text.step_driver import Progress, StepEngine, cache_gib, fitting, places, probe, refusal
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

CONFIG = "genai_config.json"
BATCH = 4
"""Requests that the Engine works on at once on a processor; no setting changes it."""
_FLOAT_BYTES = 4
_LENGTHS = ("MAX_GENERATED_TOKENS", "MAX_SESSION_TOKENS")


@dataclass(slots=True)
class _Answer:
    number: int
    request: Any
    turn: int
    news: list[int] = field(default_factory=list)
    finish: Finish | None = None
    why: str = ""


class GenAiSteps:
    """What computes (crowdperf/harness/text/step_driver.py)."""

    def __init__(self, model: Any, sampling: Sampling, vocabulary: int, longest: int) -> None:
        self._model, self._sampling, self._vocabulary, self._longest = model, sampling, vocabulary, longest
        self._engine: Any = None
        self._events: Any = None
        self._answers: dict[Any, _Answer] = {}

    def enter(self) -> None:
        """Make the Engine: it obeys only the thread that made it."""
        self._engine = onnxruntime_genai.Engine(self._model)
        self._events = self._engine.create_event_buffer(2 * BATCH)

    def add(self, number: int, tokens: Tokens) -> str:
        if why := refusal(tokens, self._longest - self._sampling.max_tokens, self._vocabulary):
            return why
        options = onnxruntime_genai.RequestOptions()
        options.set_max_session_tokens(self._longest)
        request = self._engine.create_request(options=options)
        turn = onnxruntime_genai.TurnOptions(request)
        turn.set_do_sample(False)
        turn.set_max_generated_tokens(self._sampling.max_tokens)
        turn.set_min_generated_tokens(self._sampling.min_tokens)
        self._answers[request] = _Answer(number, request, request.begin_turn(tokens, turn))
        return ""

    def step(self) -> Sequence[Progress]:
        """Run the model once for the batch that it works on."""
        if self._engine.has_pending_requests():
            for event in self._engine.run(self._events):
                self._note(event)
        told = [
            Progress(one.number, one.news, one.finish, one.why)
            for one in self._answers.values()
            if one.news or one.finish is not None or one.why
        ]
        for answer in list(self._answers.values()):
            answer.news = []
            if answer.finish is not None or answer.why:
                self._leave(answer)
        return told

    def drop(self, number: int) -> None:
        """Forget a prompt; its place in the batch stays taken until the batch ends."""
        for answer in [one for one in self._answers.values() if one.number == number]:
            answer.request.cancel_turn(answer.turn)
            self._leave(answer)

    def close(self) -> None:
        """Free everything; not from the Engine's own thread, so that requests are let go as they are."""
        self._answers.clear()
        self._events = self._engine = self._model = None

    def _note(self, event: Any) -> None:
        """Take over what one event says of a request."""
        answer = self._answers.get(event.request)
        if answer is None:  # it was dropped
            return
        flags, ended = event.flags, event.finish_reason.name
        if flags & onnxruntime_genai.EngineEventFlags.TOKEN:
            answer.news.append(event.token)
        if flags & onnxruntime_genai.EngineEventFlags.FAILED or ended in ("FAILED", "CANCELLED"):
            answer.why = f"onnxruntime-genai could not answer: {event.error_code.name}"
        elif ended != "NONE":
            answer.finish = Finish.LENGTH if ended in _LENGTHS else Finish.STOP

    def _leave(self, answer: _Answer) -> None:
        del self._answers[answer.request]
        answer.request.close()


def _config(request: EngineRequest) -> tuple[Path, Mapping[str, Any]]:
    """Return the folder and the content of genai_config.json; raises HarnessError for what this engine cannot do."""
    sampling, folder = request.sampling, request.facts.folder
    draws = sampling.temperature > 0 and sampling.top_k != 1
    if draws or sampling.stop or sampling.is_end_ignored:
        asked = "to draw tokens" if draws else "end tokens in addition to the model's own, or none"
        raise HarnessError(
            f"onnxruntime_genai does not support a setting of the benchmark: {asked}", "--backend=torch_llm"
        )
    if folder is None or not (folder / CONFIG).is_file():
        raise HarnessError(f"onnxruntime_genai reads a folder with {CONFIG}", "use the variation _onnxruntime_genai")
    try:
        values = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model"]
        return folder, {**values, **values["decoder"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarnessError(f"{CONFIG} cannot be used: {error!r}", "rebuild the model") from error


def _open(folder: Path, request: EngineRequest, longest: int) -> Any:
    session = {"intra_op_num_threads": request.threads, "inter_op_num_threads": 1}
    changes = {"model": {"decoder": {"session_options": session}}, "search": {"max_length": longest}}
    try:
        with at_cores(request.cores):  # onnxruntime's threads stay on the cores of the thread that makes them
            config = onnxruntime_genai.Config(str(folder))
            config.overlay(json.dumps(changes))
            return onnxruntime_genai.Model(config)
    except Exception as error:  # RuntimeError, or what its reader meets in a damaged file
        version = metadata.version("onnxruntime-genai")
        said = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise HarnessError(f"onnxruntime-genai {version} cannot open the model: {said}", "rebuild it") from error


def open_engine(request: EngineRequest) -> TextEngine:
    """Return the engine; raises HarnessError for what it cannot do, and for a model that it cannot open."""
    folder, values = _config(request)
    longest = request.longest_prompt + request.sampling.max_tokens
    each = 2 * values["num_hidden_layers"] * values["num_key_value_heads"] * values["head_size"] * _FLOAT_BYTES
    wanted, (limit_gib, limit_origin) = places(request), cache_gib(request)
    if wanted[0] > BATCH:
        wanted = BATCH, "onnxruntime-genai's batch on a CPU"
    count, origin = fitting("onnxruntime_genai", wanted, longest, each, limit_gib)
    steps = GenAiSteps(_open(folder, request, longest), request.sampling, values["vocab_size"], longest)
    probe(steps, request.probes)
    record: dict[str, Json] = {
        "max_in_flight": {"value": count, "origin": origin},
        "batching": {"value": "static", "origin": "onnxruntime-genai on a CPU"},
        "kv_cache_bytes": {"value": count * longest * each, "origin": f"{longest} tokens a request"},
        "kv_cache_limit_gib": {"value": limit_gib, "origin": limit_origin},
        "threads": {"value": request.threads, "origin": "the run"},
        "prefix_caching": {"value": False, "origin": "the rules"},
    }
    bounded = replace(request, text=replace(request.text, max_in_flight=count))
    names = ("onnxruntime", "onnxruntime-genai")
    return StepEngine(steps, bounded, record, {name: metadata.version(name) for name in names})
