"""llama.cpp's server, as the package xllamacpp has it, until it is ended; a process of its own, which reads nothing
else of this project.

    python3 -I serve.py '{"model": "FILE.gguf", "name": "model", "port": 8080, "slots": 8, "slot_tokens": 512,
                          "threads": 2, "cores": [0, 1]}'

Each of `slots` requests is worked on at once, in a cache of its own for `slot_tokens` tokens. Nothing of one prompt is
kept for another: no prompt cache, no state of idle slots, no checkpoints. What a request leaves open (top_k, min_p)
cuts nothing. Names: xllamacpp.CommonParams 2026.10.11549 and common/common.h of the llama.cpp in it (b11549).
"""

import json
import os
import sys
import threading
from typing import Any

import xllamacpp


def parameters(order: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = order["model"], {order["name"]}
    params.port, params.ui, params.endpoint_slots = order["port"], False, False
    params.n_parallel, params.n_ctx, params.kv_unified = order["slots"], order["slots"] * order["slot_tokens"], False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.cont_batching, params.fit_params, params.ctx_shift = True, False, False
    params.cache_prompt, params.cache_idle_slots, params.cache_ram_mib = False, False, 0
    params.n_ctx_checkpoints, params.n_cache_reuse, params.slot_prompt_similarity = 0, 0, 0.0
    params.sampling.top_k, params.sampling.top_p, params.sampling.min_p = 0, 1.0, 0.0
    return params


def main() -> None:
    """Serve until a signal ends this process."""
    order = json.loads(sys.argv[1])
    if order["cores"]:
        os.sched_setaffinity(0, order["cores"])
    server = xllamacpp.Server(parameters(order))
    print(f"serves at {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
