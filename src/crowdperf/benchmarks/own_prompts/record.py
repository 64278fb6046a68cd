"""own-prompts: *not* an MLPerf benchmark, but the user's prompts for a server of the user. Every constant is this
project's own choice, and the user's inputs replace those that count (dataset.py).
"""

from crowdperf.rules.record import Generation, OwnModel, Recipes, Record, Sampling, TokenLimits

RECORD = Record(
    name="own-prompts",
    title="your own prompts, or synthetic ones of any length, for any server",
    loadgen_name="own-prompts",  # unknown to LoadGen, which then takes its wildcard values
    dataset="own_prompts",
    dataset_count=64,
    performance_sample_count=None,
    offline_min_sample_count=1,
    references=(),
    response_type="uint8",
    recipes=Recipes(
        dataset="get,dataset,own-prompts",
        model="",
        is_fixed=True,
        own=OwnModel(
            chosen_by=("prompts", "input_tokens", "trace", "concurrency", "rate"),
            inputs=("prompts", "conversations", "input_tokens", "trace", "output_tokens", "slo", "tokenizer"),
            needs="endpoint=http://HOST:PORT/v1",
        ),
    ),
    generation=Generation(
        sampling=Sampling(max_tokens=128),
        longest_prompt=1_000_000,  # the server decides
        server=TokenLimits(ttft_ms=10_000.0, tpot_ms=1_000.0, percentile=90),
        usual_backend="endpoint",
        has_messages=True,
    ),
)
