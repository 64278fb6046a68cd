"""own-onnx: *not* an MLPerf benchmark, but a network of the user. Every constant is this project's own choice.

The Server limit only decides the verdict of a run without --target_latency_ms. The samples are as many as the user
gives, or as many as are generated.
"""

from crowdperf.rules.record import OwnModel, Recipes, Record

RECORD = Record(
    name="own-onnx",
    title="your own ONNX file, with random inputs or your own",
    loadgen_name="own-onnx",  # unknown to LoadGen, which then takes its wildcard values: right for a model of our own
    dataset="own_onnx",
    dataset_count=64,
    performance_sample_count=None,
    offline_min_sample_count=1,
    server_target_latency_ms=1_000.0,
    batch_size=8,
    largest_batch_size=64,
    references=(),
    input_type="of the types in the file",
    recipes=Recipes(
        dataset="get,dataset,own-inputs",
        model="get,ml-model,own-onnx",
        is_fixed=True,
        own=OwnModel(suffix=".onnx", inputs=("expected", "inputs", "shape"), needs="model_path=FILE.onnx"),
    ),
)
