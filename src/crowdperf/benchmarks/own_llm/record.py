"""own-llm: *not* an MLPerf benchmark, but a language model of the user: a GGUF file or a Hugging Face folder. Every
constant is this project's own choice, and the user's inputs replace those that count (own_prompts/dataset.py).
"""

from crowdperf.rules.record import Generation, OwnModel, Recipes, Record, Sampling, TokenLimits

RECORD = Record(
    name="own-llm",
    title="your own language model: a GGUF file, or a Hugging Face folder",
    loadgen_name="own-llm",  # unknown to LoadGen, which then takes its wildcard values
    dataset="own_prompts",
    dataset_count=64,
    performance_sample_count=None,
    offline_min_sample_count=1,
    references=(),
    response_type="int32",
    recipes=Recipes(
        dataset="get,dataset,own-prompts",
        model="get,ml-model,own-llm",
        is_fixed=True,
        own=OwnModel(
            suffix=".gguf",
            takes_folders=True,
            inputs=("prompts", "input_tokens", "output_tokens", "slo"),
            needs="model_path=FILE.gguf",
        ),
    ),
    generation=Generation(
        sampling=Sampling(max_tokens=128),
        longest_prompt=512,
        server=TokenLimits(ttft_ms=10_000.0, tpot_ms=1_000.0, percentile=90),
        usual_backend="llama_cpp",
    ),
)
