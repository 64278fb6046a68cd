"""The published data sets: where they are, what their files are called, which columns mean what.

Sources: README.md of language/llama3.1-8b, llama2-70b, deepseek-r1 and gpt-oss-120b, their dataset.py and
eval_accuracy.py (mlcommons/inference b66003e1 of 2026-08-20); get-dataset-mlperf-inference-gpt-oss and
get-preprocessed-dataset-mlperf-deepseek-r1 of mlcommons/mlperf-automations (20d3d94c of 2026-07-22) for gpt-oss-data
and the data set of deepseek-r1 without its calibration part.
"""

from collections.abc import Mapping
from dataclasses import dataclass

STORAGE = "https://inference.mlcommons-storage.org/metadata/"
"""Where MLCommons keeps <name>.uri (the address of the files) and <name>.md5 (their names and checksums)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file. name: the folder that its samples go to, empty for a data set of one part. file: its name or pattern
    (shell style), at any place below the folder. count: how many samples the published one has. The others are names
    of columns, of which the first that is there counts; answers: what answers are held against, empty where nothing is
    scored."""

    file: str
    count: int
    name: str = ""
    tokens: tuple[str, ...] = ("tok_input",)
    answers: tuple[str, ...] = ("output",)
    subset: tuple[str, ...] = ()
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSet:
    """A benchmark's data. metadata: its name in STORAGE. is_for_members: only MLCommons members get it."""

    parts: tuple[Part, ...]
    metadata: str
    license: str
    readme: str
    is_for_members: bool = False


_NEWS = "Apache-2.0 (the collection CNN/DailyMail 3.0.0, and the articles are CNN's and the Daily Mail's)"
_REASONING = ("ground_truth", "gt_output")
_HARMONY = {"tokens": ("input_tokens", "tok_input"), "answers": ("ground_truth",), "subset": ("dataset",)}

SETS: Mapping[str, PublishedSet] = {
    "llama3.1-8b": PublishedSet(
        parts=(Part(file="cnn_eval.json", count=13_368),),
        metadata="llama3-1-8b-cnn-eval",
        license=_NEWS,
        readme="language/llama3.1-8b/README.md",
    ),
    "llama3.1-8b-edge": PublishedSet(
        parts=(Part(file="sample_cnn_eval_5000.json", count=5_000),),
        metadata="llama3-1-8b-sample-cnn-eval-5000",
        license=_NEWS,
        readme="language/llama3.1-8b/README.md",
    ),
    "llama2-70b": PublishedSet(
        parts=(Part(file="open_orca_gpt4_tokenized_llama.sampled_24576.pkl*", count=24_576, text=("input",)),),
        metadata="llama-2-70b-open-orca-dataset",
        license="OpenOrca's. MLCommons hands the tokenized set to its members, under a confidentiality notice",
        readme="language/llama2-70b/README.md",
        is_for_members=True,
    ),
    "deepseek-r1": PublishedSet(
        parts=(
            Part(
                file="mlperf_deepseek_r1_dataset_4388_fp8_eval.pkl",
                count=4_388,
                answers=_REASONING,
                subset=("dataset", "metric"),
                text=("text_input",),
            ),
        ),
        metadata="deepseek-r1-dataset-4388-fp8-eval",
        license="CC0 (AIME), MIT (MATH-500, MMLU-Pro), CC BY 4.0 (GPQA), CC (LiveCodeBench)",
        readme="language/deepseek-r1/README.md",
    ),
    "gpt-oss-120b": PublishedSet(
        parts=(
            Part(name="performance", file="perf_eval_ref.parquet", count=6_396, **{**_HARMONY, "answers": ()}),
            Part(name="accuracy", file="acc_eval_[!c]*.parquet", count=4_395, **_HARMONY),
            Part(name="TEST07", file="acc_eval_compliance_gpqa.parquet", count=990, **_HARMONY),
        ),
        metadata="gpt-oss-data",
        license="those of AIME 2025, GPQA and LiveCodeBench",
        readme="language/gpt-oss-120b/README.md",
    ),
}
