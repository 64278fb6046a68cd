"""How much space the models and data of each benchmark take, where somebody said so, and who said it.

Nothing here is a guess: a size has a source, or it is not there. Sizes are in bytes. What sources call GB and TB counts
in powers of ten. ``advised`` is what MLCommons asks for in all (archives, intermediate files and logs included).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MB, GB, TB = 10**6, 10**9, 10**12
MLC_DOCS = "mlcommons/inference main.py, 33c8ee92 of 2026-05-13"
INFERENCE = "mlcommons/inference b66003e1 of 2026-08-20"
CM_RECIPES = "mlcommons/cm4mlops e1d5c7cf of 2025-03-13"
NVIDIA_README = "NVIDIA, MLPerf Inference v0.7, closed/NVIDIA/README.md of 2020: at least 3 TB for everything"
ALL_BYTES = 3 * TB


class Size(NamedTuple):
    """A size in bytes, and who said it."""

    size_bytes: int
    source: str


class Benchmark(NamedTuple):
    """What a benchmark takes: model, data as it is fetched, data as it is prepared, all in all; None is unknown."""

    name: str
    model: Size | None = None
    data: Size | None = None
    prepared: Size | None = None
    advised: Size | None = None
    note: str = ""

    @property
    def needed_bytes(self) -> int:
        """The larger of what is advised and the sum of the known parts."""
        parts = sum(part.size_bytes for part in (self.model, self.data, self.prepared) if part)
        return max(parts, self.advised.size_bytes if self.advised else 0)

    @property
    def is_whole(self) -> bool:
        """Whether ``needed_bytes`` covers everything, as far as the sources go."""
        return self.advised is not None or None not in (self.model, self.data, self.prepared)


class BenchmarkError(Exception):
    """A benchmark that is not known; the text names those that are."""


TABLE: tuple[Benchmark, ...] = (
    Benchmark(
        "resnet50",
        model=Size(102 * MB, "our own ONNX export of the architecture: 25.6 million fp32 parameters"),
        prepared=Size(50_000 * 3 * 224 * 224 * 4, "reckoned: ImageNet's 50,000 images as float32[3, 224, 224]"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    Benchmark(
        "bert",
        model=Size(1_336 * MB, "our own ONNX export of the architecture: 334 million fp32 parameters"),
        prepared=Size(10_833 * 3 * 384 * 4, "reckoned: 10,833 samples of three int32[384]"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    Benchmark(
        "3d-unet", advised=Size(60 * GB, MLC_DOCS), note="of KiTS19; v0.7 used BraTS 2019, of which no size is known"
    ),
    Benchmark(
        "retinanet",
        model=Size(150 * MB, f"{CM_RECIPES}, get-ml-model-retinanet"),
        advised=Size(200 * GB, MLC_DOCS),
    ),
    Benchmark("rnnt", advised=Size(30 * GB, f"{INFERENCE}, retired_benchmarks/speech_recognition/rnnt/README.md")),
    Benchmark(
        "dlrm",
        model=Size(90 * GB, f"{INFERENCE}, retired_benchmarks/recommendation/dlrm: tb00_40M.pt"),
        data=Size(343 * GB + 1_100 * GB, f"{INFERENCE}, same file: 24 days packed and unpacked"),
    ),
    Benchmark(
        "dlrm-v2",
        model=Size(97_310 * MB, f"{INFERENCE}, recommendation/dlrm_v2/pytorch/README.md"),
        prepared=Size(169 * GB, "github.com/mlcommons/inference issue 1408, a user's report"),
        advised=Size(500 * GB, MLC_DOCS),
        note="with the prepared data that MLCommons hosts; preparing it oneself took 6 to 8 TB (issue 1408)",
    ),
    Benchmark(
        "dlrm-v3",
        model=Size(1 * TB, f"{INFERENCE}, recommendation/dlrm_v3/README.md"),
        note="its data is 1 % of a set of 2 TB, same file",
    ),
    Benchmark(
        "gptj",
        model=Size(22_700 * MB, f"{CM_RECIPES}, get-ml-model-gptj"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    Benchmark(
        "sdxl",
        model=Size(13_000 * MB, f"{CM_RECIPES}, get-ml-model-stable-diffusion: fp32"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    Benchmark("llama2-70b", advised=Size(900 * GB, MLC_DOCS), note="1.5 TB when MLC's scripts do it, same file"),
    Benchmark("llama3_1-405b", advised=Size(2_300 * GB, MLC_DOCS)),
    Benchmark("mixtral-8x7b", advised=Size(100 * GB, MLC_DOCS)),
    Benchmark("pointpainting", advised=Size(950 * GB, MLC_DOCS)),
    Benchmark(
        "rgat",
        data=Size(2_200 * GB, f"{INFERENCE}, graph/R-GAT/README.md"),
        advised=Size(2_300 * GB, MLC_DOCS),
    ),
    Benchmark(
        "e2e-rag",
        model=Size(283 * GB, f"{INFERENCE}, e2e-rag/MLCOMMONS_ASSETS.md"),
        advised=Size(350 * GB, f"{INFERENCE}, e2e-rag/MLCOMMONS_ASSETS.md"),
    ),
    Benchmark("ssd-mobilenet"),
    Benchmark("ssd-resnet34"),
    Benchmark("llama3_1-8b"),
    Benchmark("deepseek-r1"),
    Benchmark("whisper"),
)
KNOWN: Mapping[str, Benchmark] = {row.name: row for row in TABLE}
ALL_OF_NVIDIA = ("3d-unet", "bert", "dlrm", "rnnt", "resnet50", "ssd-mobilenet", "ssd-resnet34")
"""The seven of NVIDIA's README for v0.7."""
ALIASES: Mapping[str, str] = {
    "resnet": "resnet50",
    "unet": "3d-unet",
    "3dunet": "3d-unet",
    "ssd-large": "ssd-resnet34",
    "ssd-small": "ssd-mobilenet",
    "rnn-t": "rnnt",
    "bert-large": "bert",
    "gpt-j": "gptj",
    "stable-diffusion-xl": "sdxl",
    "llama2": "llama2-70b",
    "llama3.1-405b": "llama3_1-405b",
    "llama3.1-8b": "llama3_1-8b",
    "mixtral": "mixtral-8x7b",
    "r-gat": "rgat",
}
"""Other spellings: NVIDIA's v0.7 harness (its alias table) and those of MLCommons' documents."""


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
        plain = re.sub(r"-99(\.9)?$", "", word)
        plain = ALIASES.get(plain, plain)
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
