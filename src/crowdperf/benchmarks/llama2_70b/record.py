"""llama2-70b-99.9 (v5.0 to v6.1; the level 99, which left with v6.1, and older rounds are not here).

Sources: tables of the official checker (tools/submission/submission_checker/constants.py), loadgen/mlperf.conf and
language/llama2-70b (README.md, SUT.py: greedy, 1 to 1,024 tokens; prompts of fewer than 1,024), mlcommons/inference
b66003e1 of 2026-08-20.
"""

from crowdperf.rules.record import (  # isort: skip
    DATACENTER, DATACENTER_TEXT, GB, MLC_DOCS, Generation, Recipes, Record, Reference, Sampling, Size, Sizes, Span,
    TokenLimits,
)  # fmt: skip

RECORD = Record(
    name="llama2-70b",
    title="answers: Llama 2 70B Chat on OpenOrca",
    levels=(0.999,),
    loadgen_name="llama2-70b",
    spellings=("llama2",),
    dataset="tokenised",
    dataset_count=24_576,
    performance_sample_count=24_576,
    offline_min_sample_count=24_576,
    server_target_latency_ms=20_000.0,
    references=(
        Reference("ROUGE1", 44.4312),
        Reference("ROUGE2", 22.0352),
        Reference("ROUGEL", 28.6162),
        Reference("TOKENS_PER_SAMPLE", 294.45, ratio=0.9, most=1.1),
    ),
    spans=(Span("v5.0", "v5.0", (), DATACENTER), Span("v5.1", "v6.1", (), DATACENTER_TEXT)),
    input_type="int32",
    response_type="int32",
    recipes=Recipes(dataset="get,dataset,mlperf-text,_llama2-70b", model="get,ml-model,mlperf-text,_llama2-70b"),
    generation=Generation(
        sampling=Sampling(max_tokens=1_024),
        longest_prompt=1_024,
        server=TokenLimits(ttft_ms=2_000.0, tpot_ms=200.0),
        interactive=TokenLimits(ttft_ms=450.0, tpot_ms=40.0),
        tests=("TEST06",),
    ),
    sizes=Sizes(advised=Size(900 * GB, MLC_DOCS), note="1.5 TB when MLC's scripts do it, same file"),
)
