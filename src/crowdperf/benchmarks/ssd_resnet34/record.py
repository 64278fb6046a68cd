"""ssd-resnet34 (v0.7 to v2.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import DATACENTER, EDGE2, EDGE3, Recipes, Record, Reference, Span

RECORD = Record(
    name="ssd-resnet34",
    title="object detection: SSD-ResNet34 on COCO 2017",
    loadgen_name="ssd-resnet34",
    checker_name="ssd-large",
    checker_aliases={"ssd-resnet34": "v0.7"},
    spellings=("ssd-large",),
    dataset="coco",
    dataset_count=5_000,
    performance_sample_count=64,
    server_target_latency_ms=100.0,
    multi_stream_target_latency_ms=66.0,
    batch_size=1,  # our choice: a batch of 32 is 553 MB of pixels
    largest_batch_size=32,
    references=(Reference("mAP", 20.0),),
    spans=(
        Span("v0.7", "v1.0", EDGE3, DATACENTER),
        Span("v1.1", "v1.1", EDGE2, DATACENTER),
        Span("v2.0", "v2.0", EDGE3, DATACENTER),
    ),
    test01_samples=256,
    has_test04=True,
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,coco,original",
        preprocessed="get,dataset,preprocessed,coco,_for.ssd-resnet34",
        model="get,ml-model,ssd-resnet34",
        is_detector=True,
    ),
)
