"""gpt-oss-120b (v6.0 to v6.1).

Sources: tables of the official checker (tools/submission/submission_checker/constants.py), loadgen/mlperf.conf,
language/gpt-oss-120b/README.md (sampling; at most 10,240 tokens in performance runs, 32,768 in accuracy runs) and
compliance/TEST07, TEST09 (audit.config), mlcommons/inference b66003e1 of 2026-08-20. inference_rules.adoc has 10,000
tokens and 20 ms for each token of Interactive; README.md and mlperf.conf win.
"""

from crowdperf.rules.record import DATACENTER_TEXT, Generation, Recipes, Record, Reference, Sampling, Span, TokenLimits

RECORD = Record(
    name="gpt-oss-120b",
    title="reasoning: gpt-oss 120B on three sets of tasks",
    loadgen_name="gpt-oss-120b",
    dataset="tokenised",
    dataset_count=6_396,
    accuracy_sample_count=4_395,
    performance_sample_count=6_396,
    offline_min_sample_count=6_396,
    server_target_latency_ms=60_000.0,
    references=(Reference("exact_match", 83.13),),
    spans=(Span("v6.0", "v6.1", (), DATACENTER_TEXT),),
    input_type="int32",
    response_type="int32",
    recipes=Recipes(dataset="get,dataset,mlperf-text,_gpt-oss-120b", model="get,ml-model,mlperf-text,_gpt-oss-120b"),
    generation=Generation(
        sampling=Sampling(max_tokens=10_240, temperature=1.0, keeps_special=True),
        accuracy_sampling=Sampling(max_tokens=32_768, temperature=1.0, keeps_special=True),
        longest_prompt=32_768,  # no source gives one; the published prompts are to fit beside an answer
        server=TokenLimits(ttft_ms=3_000.0, tpot_ms=80.0),
        interactive=TokenLimits(ttft_ms=2_000.0, tpot_ms=15.0),
        tests=("TEST07", "TEST09"),
        least_score=60.698,
        mean_tokens=(1_150.38, 1_406.02),
    ),
)
