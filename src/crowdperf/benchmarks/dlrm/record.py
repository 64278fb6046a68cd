"""dlrm-99 and dlrm-99.9 (v0.7 to v3.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import DATACENTER, GB, INFERENCE, Recipes, Record, Reference, Size, Sizes, Span

RECORD = Record(
    name="dlrm",
    title="recommendation: DLRM on Criteo Terabyte",
    levels=(0.99, 0.999),
    loadgen_name="dlrm",
    dataset="criteo",
    dataset_count=330_067,
    performance_sample_count=204_800,
    server_target_latency_ms=30.0,
    # A sample is itself a batch of some 270 rows: on a CPU, several samples at once only overflow the caches (the
    # tiny model answers 2,100 samples/s one by one, 500 in batches of 16).
    batch_size=1,
    largest_batch_size=32,
    references=(Reference("AUC", 80.25),),
    spans=(Span("v0.7", "v3.0", (), DATACENTER),),
    input_type="fp32, int64",
    has_rows=True,
    serves_higher_level=True,
    is_in_nvidia_v07=True,
    recipes=Recipes(dataset="get,dataset,criteo,original", model="get,ml-model,dlrm"),
    sizes=Sizes(
        model=Size(90 * GB, f"{INFERENCE}, retired_benchmarks/recommendation/dlrm: tb00_40M.pt"),
        data=Size(343 * GB + 1_100 * GB, f"{INFERENCE}, same file: 24 days packed and unpacked"),
        memory=Size(240_365_959_690, "script/get-ml-model-dlrm: 2.5 times the float32 weights"),
    ),
    unservable="a sample is itself a batch of rows, and a server counts rows",
)
