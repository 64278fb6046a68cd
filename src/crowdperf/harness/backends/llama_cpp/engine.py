"""The llama_cpp engine: starts llama.cpp's own server (serve.py) on a free port of 127.0.0.1, asks it as the backend
endpoint asks any server, and ends it with the run.

The server batches in flight: a request has a slot, and each step computes a token of every slot that has one. A slot's
keys and values are F16, for the longest prompt and its answer; there are as many slots as the memory for them holds.
"""

import json
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from crowdperf.harness.backends.endpoint.own_server import MODEL, Order, OwnServerEngine, open_own_server
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import gguf_file
from crowdperf.harness.base.supervised_server import free_ports
from crowdperf.harness.text.engine import EngineRequest
from crowdperf.harness.text.step_driver import cache_gib, fitting, places
from crowdperf.logs.run_log import Json

_PROGRAM = Path(__file__).with_name("serve.py")
_READY_S = 600.0
_PAGE = 256
"""llama.cpp rounds the tokens of a slot up to this (llama_context of b11549)."""
_KEPT_BYTES = 2
SPINS = 10_000
"""How often a thread looks for the others before it sleeps (GNU's OpenMP): some microseconds. With the usual
milliseconds at each barrier,
two threads on two cores beside some 20 programs gave 0.2 tokens/s through LoadGen, November 2026."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many requests are worked on at once, why so many, and the tokens and bytes of each one's keys and values."""

    count: int
    origin: str
    tokens: int
    bytes_each: int


def bytes_per_token(config: Path) -> int:
    """Return the bytes of one token's keys and values as F16, by a config.json of Llama's kind; raises HarnessError."""
    try:
        values = json.loads(config.read_text(encoding="utf-8"))
        heads = values["num_attention_heads"]
        size = values.get("head_dim") or values["hidden_size"] // heads
        return int(2 * values["num_hidden_layers"] * (values.get("num_key_value_heads") or heads) * size * _KEPT_BYTES)
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"llama_cpp needs {config.name} next to the model's model.json: {error!r}"
        raise HarnessError(words, "get the model again") from error


def slots_of(request: EngineRequest, each: int, limit_gib: int) -> Slots:
    """Return the slots for `each` bytes of a token and `limit_gib` of memory; raises HarnessError where none fits."""
    tokens = -(-(request.longest_prompt + request.sampling.max_tokens) // _PAGE) * _PAGE
    count, origin = fitting("llama_cpp", places(request), tokens, each, limit_gib)
    return Slots(count, origin, tokens, tokens * each)


def _model(request: EngineRequest) -> Path:
    """Return the GGUF file; raises HarnessError for what this engine cannot do."""
    is_least_kept = request.sampling.min_tokens <= 1 or request.sampling.is_end_ignored
    if not is_least_kept or request.sampling.stop:
        asked = f"min_tokens {request.sampling.min_tokens}, stop tokens {list(request.sampling.stop)}"
        raise HarnessError(
            f"llama.cpp's server does not support a setting of the benchmark: {asked}", "--backend=openvino_genai"
        )
    return gguf_file(request.facts, "llama_cpp")


def open_engine(request: EngineRequest) -> OwnServerEngine:
    """Return the client of a started and probed server; raises HarnessError saying why there is none."""
    model, (limit_gib, limit_origin) = _model(request), cache_gib(request)
    folder = request.facts.folder or model.parent
    slots = slots_of(request, bytes_per_token(folder / "config.json"), limit_gib)
    (port,) = free_ports(1)
    asked = {
        "model": str(model), "name": MODEL, "port": port, "slots": slots.count, "slot_tokens": slots.tokens,
        "threads": request.threads, "cores": list(request.cores),
    }  # fmt: skip
    order = Order(
        name="llama.cpp's server",
        port=port,
        command=[sys.executable, "-I", str(_PROGRAM), json.dumps(asked)],
        environment={"GOMP_SPINCOUNT": str(SPINS)},
        log=request.folder / "llama_cpp.log",
        remedy="--backend=openvino_genai also reads GGUF files",
        ready_s=_READY_S,
        versions={"xllamacpp": metadata.version("xllamacpp")},
    )
    settings: dict[str, Json] = {
        "max_in_flight": {"value": slots.count, "origin": slots.origin},
        "kv_cache_bytes": {"value": slots.count * slots.bytes_each, "origin": f"{slots.tokens} tokens a request"},
        "kv_cache_limit_gib": {"value": limit_gib, "origin": limit_origin},
        "kv_cache_precision": {"value": "fp16", "origin": "llama.cpp's default"},
        "threads": {"value": request.threads, "origin": "the run"},
        "openmp_spin_count": {"value": SPINS, "origin": "this project's choice"},
        "prefix_caching": {"value": False, "origin": "the rules"},
    }
    # One connection for each slot: the server has a thread for each of these, and few more.
    bounded = replace(request, text=replace(request.text, max_in_flight=slots.count))
    return open_own_server(order, bounded, settings)
