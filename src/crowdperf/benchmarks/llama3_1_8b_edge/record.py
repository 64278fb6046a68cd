"""llama3.1-8b-edge (v5.1 to v6.1): llama3.1-8b on 5,000 of its samples. Sources: as there."""

from crowdperf.rules.record import EDGE2, Generation, Recipes, Record, Reference, Sampling, Span

RECORD = Record(
    name="llama3.1-8b-edge",
    title="summarization: Llama 3.1 8B, 5,000 articles",
    loadgen_name="llama3_1-8b-edge",
    checker_aliases={"llama3_1-8b-edge": "v5.1"},
    spellings=("llama3_1-8b-edge",),
    dataset="tokenised",
    dataset_count=5_000,
    performance_sample_count=5_000,
    offline_min_sample_count=5_000,
    references=(
        Reference("ROUGE1", 39.06),
        Reference("ROUGE2", 16.1147),
        Reference("ROUGEL", 24.6375),
        Reference("ROUGELSUM", 36.124),
        Reference("GEN_LEN", 3_051_113, ratio=0.9, most=1.1),
    ),
    spans=(Span("v5.1", "v6.1", EDGE2, ()),),
    input_type="int32",
    response_type="int32",
    recipes=Recipes(dataset="get,dataset,mlperf-text,_llama3.1-8b-edge", model="get,ml-model,mlperf-text,_llama3.1-8b"),
    generation=Generation(sampling=Sampling(max_tokens=128, top_k=1, seed=42), longest_prompt=8_000),
)
