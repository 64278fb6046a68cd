"""deepseek-r1 (v5.1 to v6.1).

Sources: tables of the official checker (tools/submission/submission_checker/constants.py), loadgen/mlperf.conf and
language/deepseek-r1 (README.md: greedy, at most 20,000 tokens; prompts of at most 3,136), mlcommons/inference b66003e1
of 2026-08-20. The reference score is the checker's; inference_rules.adoc has 81.9132.
"""

from crowdperf.rules.record import (  # isort: skip
    DATACENTER_TEXT, OFF, SRV, SS, Generation, Recipes, Record, Reference, Sampling, Span, TokenLimits,
)  # fmt: skip

RECORD = Record(
    name="deepseek-r1",
    title="reasoning: DeepSeek-R1 on five sets of tasks",
    loadgen_name="deepseek-r1",
    dataset="tokenised",
    dataset_count=4_388,
    performance_sample_count=4_388,
    offline_min_sample_count=4_388,
    server_target_latency_ms=60_000.0,
    references=(
        Reference("exact_match", 81.3582),
        Reference("TOKENS_PER_SAMPLE", 3_886.2274, ratio=0.9, most=1.1),
    ),
    spans=(
        Span("v5.1", "v5.1", (), (OFF, SRV), both=(SS, OFF, SRV)),
        Span("v6.0", "v6.1", (), DATACENTER_TEXT),
    ),
    input_type="int32",
    response_type="int32",
    recipes=Recipes(dataset="get,dataset,mlperf-text,_deepseek-r1", model="get,ml-model,mlperf-text,_deepseek-r1"),
    generation=Generation(
        sampling=Sampling(max_tokens=20_000),
        longest_prompt=3_136,
        server=TokenLimits(ttft_ms=2_000.0, tpot_ms=80.0),
        interactive=TokenLimits(ttft_ms=1_500.0, tpot_ms=15.0),
        tests=("TEST06",),
    ),
)
