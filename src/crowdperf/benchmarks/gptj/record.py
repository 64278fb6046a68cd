"""gptj-99 and gptj-99.9 (v3.1 to v5.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import (  # isort: skip
    CM_RECIPES, DATACENTER, EDGE2, GB, MB, MLC_DOCS, Recipes, Record, Reference, Size, Sizes, Span,
)  # fmt: skip

RECORD = Record(
    name="gptj",
    title="summarization: GPT-J 6B on CNN/DailyMail",
    levels=(0.99, 0.999),
    loadgen_name="gptj",
    spellings=("gpt-j",),
    dataset="cnndm",
    dataset_count=13_368,
    performance_sample_count=13_368,
    offline_min_sample_count=13_368,
    server_target_latency_ms=20_000.0,
    batch_size=4,  # our choice: a prompt's cache has up to 1.8 GB
    largest_batch_size=32,
    references=(
        Reference("ROUGE1", 42.9865),
        Reference("ROUGE2", 20.1235),
        Reference("ROUGEL", 29.9881),
        Reference("GEN_LEN", 4016878, ratio=0.9),
    ),
    spans=(Span("v3.1", "v5.0", EDGE2, DATACENTER),),
    input_type="int64",
    response_type="int64",
    end_token=50256,
    test06_since="v5.0",  # the checker of b66003e1 asks for it; that of tag v5.0 did not
    recipes=Recipes(dataset="get,dataset,cnndm,original", model="get,ml-model,gptj"),
    sizes=Sizes(
        model=Size(22_700 * MB, f"{CM_RECIPES}, get-ml-model-gptj"),
        advised=Size(50 * GB, MLC_DOCS),
        making=Size(95_310_593_408, "script/get-ml-model-gptj: archive, unpacked checkpoint, ONNX scattered and whole"),
        memory=Size(60_508_827_840, "script/get-ml-model-gptj: 2.5 times the float32 weights"),
    ),
    unservable="it passes states between calls, which a server would copy each time",
)
