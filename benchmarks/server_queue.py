"""What the order of work can make of Server: a simulation of the queue, without a model, in seconds of one core.

Queries come at random times at a rate; instances take them in batches; a run is VALID when no more of them are late
than LoadGen's early stopping allows. For each way of working the highest rate is looked for that is VALID in most of
the seeds, and shown beside the rate without a pause (Offline). The service times are arguments; the defaults are those
of ResNet-50 on the machine of docs/benchmarks.md.

    2 x 1 thread, one by one      an instance for each core, no batches (what the harness does for this limit)
    2 x 1 thread, batches of 2    the same, two at once where two wait
    1 x 2 threads, ...            one instance with all threads
    late ones last                one by one; what cannot be in time any more waits until nothing else does
"""

import argparse
import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

PART = 0.01
CONFIDENCE = 0.99
STEP = 0.0125


def allowed_late(queries: int) -> int:
    """Return how many late queries LoadGen's early stopping allows at p99 (-1: none would be VALID)."""
    late, chance = 0, math.exp(queries * math.log(1.0 - PART))
    sum_of_chances = chance
    while sum_of_chances <= 1.0 - CONFIDENCE:
        chance *= (queries - late) / (late + 1) * PART / (1.0 - PART)
        sum_of_chances += chance
        late += 1
    return late - 1


@dataclass(frozen=True)
class Way:
    """A way of working: seconds of a batch on one of `instances`, the largest batch, and whether late ones go last."""

    name: str
    instances: int
    largest: int
    seconds: Callable[[int], float]
    late_last: bool = False


def late_queries(way: Way, rate: float, queries: int, limit_s: float, seed: int) -> int:
    """Return how many of the queries are answered after the limit."""
    chance, now_s, arrivals = random.Random(seed), 0.0, deque[float]()
    for _ in range(queries):
        now_s += chance.expovariate(rate)
        arrivals.append(now_s)
    free_s = [0.0] * way.instances
    waiting, aside, late = deque[float](), deque[float](), 0
    while arrivals or waiting or aside:
        now_s = heapq.heappop(free_s)
        if not waiting and not aside:
            now_s = max(now_s, arrivals[0])
        while arrivals and arrivals[0] <= now_s:
            waiting.append(arrivals.popleft())
        while way.late_last and waiting and now_s + way.seconds(1) - waiting[0] > limit_s:
            aside.append(waiting.popleft())
        source = waiting or aside
        batch = [source.popleft() for _ in range(min(way.largest, len(source)))]
        end_s = now_s + way.seconds(len(batch))
        late += sum(end_s - arrival > limit_s for arrival in batch)
        heapq.heappush(free_s, end_s)
    return late


def highest_part(way: Way, offline: float, queries: int, limit_s: float, seeds: int) -> float:
    """Return the highest valid rate as a part of Offline's."""
    allowed, best, part = allowed_late(queries), 0.0, 0.5
    while part < 1.0 and part < best + 4 * STEP + 0.5 * (best == 0.0):
        valid = sum(late_queries(way, part * offline, queries, limit_s, seed) <= allowed for seed in range(seeds))
        best = part if 2 * valid > seeds else best
        part += STEP
    return best


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", type=float, default=38.7, help="samples/s in Offline")
    parser.add_argument("--one_core", type=float, default=19.07, help="samples/s of one instance on one core")
    parser.add_argument("--alone", type=float, default=34.7, help="samples/s one by one on all threads")
    parser.add_argument("--eight", type=float, default=39.1, help="samples/s in batches of eight on all threads")
    parser.add_argument("--limits", type=float, default=10.0, help="latency limit, in times of a query alone")
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--queries", default="800,2000,18000")
    arguments = parser.parse_args()
    fixed_s = 8 / 7 * (1 / arguments.alone - 1 / arguments.eight)  # of a batch: all else grows with its samples
    each_s = 1 / arguments.alone - fixed_s

    def together(count: int) -> float:
        return fixed_s + each_s * count

    def on_one_core(count: int) -> float:
        return count / arguments.one_core

    ways = [
        Way("2 x 1 thread, one by one", 2, 1, on_one_core),
        Way("2 x 1 thread, batches of 2", 2, 2, on_one_core),
        Way("1 x 2 threads, one by one", 1, 1, together),
        Way("1 x 2 threads, batches of 2", 1, 2, together),
        Way("1 x 2 threads, batches of 4", 1, 4, together),
        Way("2 x 1 thread, late ones last", 2, 1, on_one_core, late_last=True),
    ]
    counts = [int(text) for text in arguments.queries.split(",")]
    limit_s = arguments.limits / arguments.alone
    print(f"{'Server / Offline, queries:':<32}" + "".join(f"{count:>9,}" for count in counts))
    for way in ways:
        parts = [highest_part(way, arguments.offline, count, limit_s, arguments.seeds) for count in counts]
        print(f"{way.name:<32}" + "".join(f"{part:>9.2f}" for part in parts), flush=True)


if __name__ == "__main__":
    main()
