"""dlrm-v2-99 and dlrm-v2-99.9 (v3.1 to v5.1). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import (  # isort: skip
    DATACENTER, GB, INFERENCE, MB, MLC_DOCS, Recipes, Record, Reference, Size, Sizes, Span,
)  # fmt: skip

RECORD = Record(
    name="dlrm-v2",
    title="recommendation: DLRM-DCNv2 on multi-hot Criteo",
    levels=(0.99, 0.999),
    loadgen_name="dlrm-v2",
    dataset="criteo",
    dataset_count=330_067,
    performance_sample_count=204_800,
    server_target_latency_ms=60.0,
    batch_size=1,
    largest_batch_size=32,
    references=(Reference("AUC", 80.31),),
    spans=(Span("v3.1", "v5.1", (), DATACENTER),),
    input_type="fp32, int64",
    has_rows=True,
    serves_higher_level=True,
    recipes=Recipes(dataset="get,dataset,criteo,original,_multihot", model="get,ml-model,dlrm-v2"),
    sizes=Sizes(
        model=Size(97_310 * MB, f"{INFERENCE}, recommendation/dlrm_v2/pytorch/README.md"),
        prepared=Size(169 * GB, "github.com/mlcommons/inference issue 1408, a user's report"),
        advised=Size(500 * GB, MLC_DOCS),
        memory=Size(261_516_718_090, "script/get-ml-model-dlrm-v2: 2.5 times the float32 weights"),
        note="with the prepared data that MLCommons hosts (preparing it yourself needs 6 to 8 TB, issue 1408)",
    ),
    unservable="a sample is itself a batch of rows, and a server counts rows",
)
