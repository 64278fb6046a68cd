"""ssd-mobilenet (v0.7 to v2.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import EDGE2, EDGE3, Recipes, Record, Reference, Span

RECORD = Record(
    name="ssd-mobilenet",
    title="object detection: SSD-MobileNet v1 on COCO 2017",
    loadgen_name="ssd-mobilenet",
    checker_name="ssd-small",
    checker_aliases={"ssd-mobilenet": "v0.7"},
    spellings=("ssd-small",),
    dataset="coco",
    dataset_count=5_000,
    performance_sample_count=256,
    multi_stream_target_latency_ms=50.0,
    batch_size=8,  # our choice
    largest_batch_size=128,
    references=(Reference("mAP", 22.0),),
    spans=(
        Span("v0.7", "v1.0", EDGE3, ()),
        Span("v1.1", "v1.1", EDGE2, ()),
        Span("v2.0", "v2.0", EDGE3, ()),
    ),
    test01_samples=1024,
    has_test04=True,
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,coco,original",
        preprocessed="get,dataset,preprocessed,coco,_for.ssd-mobilenet",
        model="get,ml-model,ssd-mobilenet",
        is_detector=True,
    ),
)
