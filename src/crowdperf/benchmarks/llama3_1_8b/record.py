"""llama3.1-8b (v5.1 to v6.1).

Sources: tables of the official checker (tools/submission/submission_checker/constants.py), loadgen/mlperf.conf and
language/llama3.1-8b (README.md, SUT_VLLM.py: greedy, seed 42, 128 tokens), mlcommons/inference b66003e1 of 2026-08-20.
The checker's gates win over those of inference_rules.adoc, which still has GPT-J's.
"""

from crowdperf.rules.record import DATACENTER_TEXT, Generation, Recipes, Record, Reference, Sampling, Span, TokenLimits

RECORD = Record(
    name="llama3.1-8b",
    title="summarization: Llama 3.1 8B on CNN/DailyMail",
    loadgen_name="llama3_1-8b",
    checker_aliases={"llama3_1-8b": "v5.1"},
    spellings=("llama3_1-8b",),
    dataset="tokenised",
    dataset_count=13_368,
    performance_sample_count=13_368,
    offline_min_sample_count=13_368,
    server_target_latency_ms=20_000.0,
    references=(
        Reference("ROUGE1", 38.7792),
        Reference("ROUGE2", 15.9075),
        Reference("ROUGEL", 24.4957),
        Reference("ROUGELSUM", 35.793),
        Reference("GEN_LEN", 8_167_644, ratio=0.9, most=1.1),
    ),
    spans=(Span("v5.1", "v6.1", (), DATACENTER_TEXT),),
    input_type="int32",
    response_type="int32",
    recipes=Recipes(dataset="get,dataset,mlperf-text,_llama3.1-8b", model="get,ml-model,mlperf-text,_llama3.1-8b"),
    generation=Generation(
        sampling=Sampling(max_tokens=128, top_k=1, seed=42),
        longest_prompt=8_000,
        server=TokenLimits(ttft_ms=2_000.0, tpot_ms=100.0),
        interactive=TokenLimits(ttft_ms=500.0, tpot_ms=30.0),
        tests=("TEST06",),
    ),
)
