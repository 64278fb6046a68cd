"""The torch_llm engine: Llama in plain torch with in-flight batching, the reference of correctness for other engines.

Each step computes the prompts that were added, one by one, and then one token of every answer. The cache is static:
a row of the greatest length for each request, as many as memory allows; the rows in use are the first ones, so that
they are read where they lie. Answers are greedy, or drawn with a generator of each request's own, so that what is
worked on beside it changes nothing. On a GPU (not run on hardware) the tokens of a step come to the host at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from crowdperf.harness.backends.torch_llm.llama import Llama, open_llama
from crowdperf.harness.base.backend import choose_tf32
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.torch_cuda import set_fp32
from crowdperf.harness.text.engine import EngineRequest, Finish, TextEngine, Tokens
from crowdperf.harness.text.step_driver import Progress, StepEngine, places, probe, refusal
from crowdperf.harness.watch.machine import free_memory_bytes
from crowdperf.logs.run_log import Json
from crowdperf.rules.record import Sampling

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_CACHE_PART = 0.5
"""The part of free memory that keys and values may take; the rest is for activations and LoadGen."""


@dataclass(slots=True)
class _Row:
    """An answer in the making. length: tokens in the cache. last: the token that comes next into it."""

    number: int
    length: int
    last: int
    said: int
    generator: torch.Generator | None = field(default=None)


class TorchSteps:
    """What computes (crowdperf/harness/text/step_driver.py)."""

    def __init__(self, model: Llama, sampling: Sampling, threads: int, longest: int) -> None:
        self._model, self._sampling, self._threads, self._longest = model, sampling, threads, longest
        ends = () if sampling.is_end_ignored else (*model.config.end_tokens, *sampling.stop)
        self._ends = frozenset(ends)
        self._end_places = torch.tensor(sorted(self._ends), dtype=torch.int64, device=model.device)
        self._added: list[tuple[int, list[int]]] = []
        self._rows: list[_Row] = []

    def enter(self) -> None:
        """Bound torch's threads, which are counted for each calling thread."""
        torch.set_num_threads(self._threads)

    def add(self, number: int, tokens: Tokens) -> str:
        if why := refusal(tokens, self._longest - self._sampling.max_tokens, self._model.config.vocab):
            return why
        self._added.append((number, tokens.tolist()))
        return ""

    @torch.inference_mode()
    def step(self) -> Sequence[Progress]:
        """Compute the new prompts, then one token of every answer that had its first before."""
        told = []
        if self._rows:
            logits = self._model.following([row.last for row in self._rows], [row.length for row in self._rows])
            for row in self._rows:
                row.length += 1
            told = self._said(list(self._rows), logits)
        for number, tokens in self._added:
            row = _Row(number, len(tokens), last=0, said=0, generator=self._generator(number))
            first = self._model.prompt(len(self._rows), tokens)
            self._rows.append(row)
            told += self._said([row], first)
        self._added.clear()
        for progress in told:
            if progress.finish is not None:
                self._leave(progress.number)
        return told

    def drop(self, number: int) -> None:
        self._added = [one for one in self._added if one[0] != number]
        self._leave(number)

    def close(self) -> None:
        self._model.make_cache(0, 0)
        self._rows.clear()

    def _said(self, rows: Sequence[_Row], logits: torch.Tensor) -> list[Progress]:
        """Take the next token of each row, of float32[rows, vocab]; the device is waited for once."""
        early = [place for place, row in enumerate(rows) if row.said < self._sampling.min_tokens]
        if early and self._ends:
            places = torch.tensor(early, device=logits.device)[:, None]
            logits = logits.index_put((places, self._end_places), torch.tensor(-torch.inf, device=logits.device))
        if rows[0].generator is None:  # of all rows or of none: the benchmark decides
            tokens = logits.argmax(-1).tolist()
        else:
            tokens = [chosen(one, self._sampling, row.generator) for row, one in zip(rows, logits.cpu(), strict=True)]
        return [self._progress(row, token) for row, token in zip(rows, tokens, strict=True)]

    def _progress(self, row: _Row, token: int) -> Progress:
        row.last, row.said = token, row.said + 1
        finish = Finish.STOP if token in self._ends else None
        if finish is None and row.said >= self._sampling.max_tokens:
            finish = Finish.LENGTH
        return Progress(row.number, (token,), finish)

    def _leave(self, number: int) -> None:
        """Free a row; the last one moves into it."""
        for place, row in enumerate(self._rows):
            if row.number == number:
                last = self._rows.pop()
                if last is not row:
                    self._model.move(len(self._rows), place, last.length)
                    self._rows[place] = last
                return

    def _generator(self, number: int) -> torch.Generator | None:
        if self._sampling.temperature == 0 or self._sampling.top_k == 1:
            return None
        return torch.Generator().manual_seed((self._sampling.seed or 0) + number)


def chosen(logits: torch.Tensor, sampling: Sampling, generator: torch.Generator | None) -> int:
    """Return the next token of float32[vocab]: the likeliest, or drawn after the cuts of `sampling`."""
    if generator is None:
        return int(logits.argmax())
    ordered, tokens = (logits / sampling.temperature).sort(descending=True)
    if sampling.top_k:
        ordered = ordered[: sampling.top_k]
    parts = ordered.softmax(-1)
    parts = parts[: int((parts.cumsum(-1) - parts < sampling.top_p).sum())]  # the first that reach top_p
    return int(tokens[torch.multinomial(parts, 1, generator=generator)])


def _cache_rows(request: EngineRequest, row_bytes: int) -> tuple[int, int, str]:
    """Return the rows of the cache, its bytes, and who chose them; raises HarnessError where not one fits."""
    wanted = places(request)[0]
    allowed, origin = request.text.kv_cache_bytes, "user"
    if allowed is None:
        is_gpu = request.device == "cuda"
        free = int(torch.cuda.mem_get_info(_device(request))[0]) if is_gpu else free_memory_bytes()
        allowed, origin = (wanted * row_bytes, "default") if free is None else (int(free * _CACHE_PART), "free memory")
    rows = min(wanted, allowed // row_bytes)
    if rows < 1:
        raise HarnessError(
            f"keys and values of one prompt need {row_bytes / 1e9:.2f} GB; available: {allowed / 1e9:.2f} GB "
            f"({origin})",
            "allow more with --kv_cache_gb, or use a machine with more memory",
        )
    return rows, rows * row_bytes, origin


def _device(request: EngineRequest) -> torch.device:
    """Return where the model computes; raises HarnessError where torch does not see it."""
    if request.device == "cpu":
        return torch.device("cpu")
    gpus, seen = request.gpus or (0,), torch.cuda.device_count() if torch.cuda.is_available() else 0
    if len(gpus) > 1:
        hint = "select one with --gpus, or use --backend=vllm, which splits a model"
        raise HarnessError(f"torch_llm runs on one GPU; requested: {', '.join(map(str, gpus))}", hint)
    if gpus[0] >= seen:
        raise HarnessError(f"torch {torch.__version__} sees {seen} GPUs; requested: {gpus[0]}", "or use --device=cpu")
    return torch.device("cuda", gpus[0])


def open_engine(request: EngineRequest) -> TextEngine:
    """Return the engine; raises HarnessError for another architecture, or too little memory."""
    folder, dtype = request.facts.folder, _TYPES[request.precision]
    files = sorted({file.path for file in request.facts.files.values() if file.path.suffix == ".safetensors"})
    if folder is None or not files:
        raise HarnessError("torch_llm needs a folder of Hugging Face with safetensors files", "use _huggingface")
    torch.set_num_threads(request.threads)
    device = _device(request)
    if request.device == "cuda":
        set_fp32(choose_tf32(request.precision))
    model = open_llama(folder, files, dtype, device)
    length = min(request.longest_prompt + request.sampling.max_tokens, model.config.longest)
    rows, cache_bytes, origin = _cache_rows(request, model.config.cache_bytes(length, dtype))
    model.make_cache(rows, length)
    steps = TorchSteps(model, request.sampling, request.threads, length)
    probe(steps, request.probes)
    is_less = rows < places(request)[0]
    record: dict[str, Json] = {
        "max_in_flight": {"value": rows, "origin": f"{origin} for the KV cache" if is_less else places(request)[1]},
        "kv_cache_bytes": {"value": cache_bytes, "origin": origin},
        "kv_cache_tokens": {"value": rows * length, "origin": origin},
        "device": {"value": str(device), "origin": "the run"},
        "threads": {"value": request.threads, "origin": "the run"},
        "precision": {"value": request.precision, "origin": "the run"},
        "prefix_caching": {"value": False, "origin": "the rules"},
    }
    bounded = replace(request, text=replace(request.text, max_in_flight=rows))
    return StepEngine(steps, bounded, record, _versions())


def _versions() -> Mapping[str, Any]:
    return {"torch": torch.__version__}
