"""A bare batched onnxruntime loop: what the harness's Offline is measured against (see harness_limits.py).

Run as its own process: harness_bare_onnxruntime.py MODEL THREADS SECONDS. Prints {"samples_per_second": ...,
"batch_size": ...} of the best batch size; the session has the harness's own options, with THREADS threads for an
operator. Nothing is gathered, logged or answered.
"""

import json
import sys
import time

import numpy as np
import onnxruntime

from crowdperf.harness.backends.onnxruntime.backend import session_options

BATCH_SIZES = (16, 32, 64, 128, 256, 512, 1024)


def rate(session: onnxruntime.InferenceSession, batch_size: int, seconds: float) -> float:
    """Return samples per second of `run` called again and again with one ready batch."""
    feed = {"image": np.random.default_rng(0).random((batch_size, 1, 8, 8), dtype=np.float32)}
    names = ["logits"]
    session.run(names, feed)
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < seconds:
        for _ in range(4):
            session.run(names, feed)
        count += 4 * batch_size
    return count / (time.perf_counter() - start)


def main(model: str, threads: int, seconds: float) -> None:
    """Print the rate of the best batch size: all are tried shortly, the best one is then measured for `seconds`."""
    session = onnxruntime.InferenceSession(model, session_options(threads), providers=["CPUExecutionProvider"])
    tried = {size: max(rate(session, size, 0.05) for _ in range(2)) for size in BATCH_SIZES}
    best = max(tried, key=tried.__getitem__)
    print(json.dumps({"samples_per_second": rate(session, best, seconds), "batch_size": best}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
