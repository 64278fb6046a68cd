"""How much space the models and data of each benchmark take, where somebody said so, and who said it.

Nothing here is a guess: a size has a source, or it is not there. Sizes are in bytes. What sources call GB and TB counts
in powers of ten. ``advised`` is what MLCommons asks for in all (archives, intermediate files and logs included).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import UnknownName
from crowdperf.rules.official_names import parse_benchmark
from crowdperf.rules.record import GB, INFERENCE, MLC_DOCS, TB, Size, Sizes

NVIDIA_README = "NVIDIA, MLPerf Inference v0.7, closed/NVIDIA/README.md of 2020: at least 3 TB for everything"
ALL_BYTES = 3 * TB


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark takes on disk."""

    name: str
    sizes: Sizes

    @property
    def needed_bytes(self) -> int:
        """The larger of what is advised and the sum of the known parts."""
        return self.sizes.needed_bytes

    @property
    def is_whole(self) -> bool:
        """Whether ``needed_bytes`` covers everything, as far as the sources go."""
        sizes = self.sizes
        return sizes.advised is not None or None not in (sizes.model, sizes.data, sizes.prepared)


class BenchmarkError(Exception):
    """A benchmark that is not known; the text names those that are."""


_NOT_RUN: Mapping[str, Sizes] = {
    "dlrm-v3": Sizes(
        model=Size(1 * TB, f"{INFERENCE}, recommendation/dlrm_v3/README.md"),
        note="its data is 1 % of a set of 2 TB, same file",
    ),
    "llama3_1-405b": Sizes(advised=Size(2_300 * GB, MLC_DOCS)),
    "mixtral-8x7b": Sizes(advised=Size(100 * GB, MLC_DOCS)),
    "pointpainting": Sizes(advised=Size(950 * GB, MLC_DOCS)),
    "e2e-rag": Sizes(
        model=Size(283 * GB, f"{INFERENCE}, e2e-rag/MLCOMMONS_ASSETS.md"),
        advised=Size(350 * GB, f"{INFERENCE}, e2e-rag/MLCOMMONS_ASSETS.md"),
    ),
}
"""Benchmarks of MLPerf that this project does not run yet."""

_SPELLINGS_NOT_RUN: Mapping[str, str] = {
    "llama3.1-405b": "llama3_1-405b",
    "mixtral": "mixtral-8x7b",
}


def _rows() -> Iterator[Benchmark]:
    for record in RECORDS.values():
        if record.is_official:
            yield Benchmark(record.name, record.sizes)
    for name, sizes in _NOT_RUN.items():
        yield Benchmark(name, sizes)


KNOWN: Mapping[str, Benchmark] = {row.name: row for row in _rows()}
ALL_OF_NVIDIA = tuple(sorted(record.name for record in RECORDS.values() if record.is_in_nvidia_v07))
"""The seven of NVIDIA's README for v0.7."""


def _without_level(word: str) -> str:
    """The name of a benchmark in any spelling and at any accuracy level; an unknown one as it is."""
    plain = re.sub(r"-99(\.9)?$", "", word)
    try:
        return parse_benchmark(plain)[0]
    except UnknownName:
        return _SPELLINGS_NOT_RUN.get(plain, plain)


def named(text: str) -> tuple[Benchmark, ...]:
    """The benchmarks of a list separated by commas or blanks, each once; ``all`` stands for NVIDIA's seven.

    Accuracy levels (``bert-99``, ``dlrm-v2-99.9``) take the same space. Raises BenchmarkError.
    """
    names: list[str] = []
    unknown: list[str] = []
    for word in re.split(r"[,\s]+", text.strip().lower()):
        if word == "all":
            names += ALL_OF_NVIDIA
            continue
        plain = _without_level(word)
        if plain in KNOWN:
            names.append(plain)
        elif word not in ("", "none"):
            unknown.append(word)
    if unknown:
        raise BenchmarkError(
            f"no benchmark is called {', '.join(unknown)}\n"
            f"  known: all, {', '.join(sorted(KNOWN))}\n"
            "  hint: --benchmarks=resnet50,bert"
        )
    return tuple(KNOWN[name] for name in dict.fromkeys(names))
