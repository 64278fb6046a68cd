"""retinanet (v2.1 to v6.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import (  # isort: skip
    ALL_SCENARIOS, CM_RECIPES, DATACENTER, EDGE3, GB, MB, MLC_DOCS, Recipes, Record, Reference, Size, Sizes, Span,
)  # fmt: skip

RECORD = Record(
    name="retinanet",
    title="object detection: RetinaNet on OpenImages",
    loadgen_name="retinanet",
    checker_aliases={"ssd-resnet34": "v2.1"},
    dataset="openimages",
    dataset_count=24_781,
    performance_sample_count=64,
    server_target_latency_ms=100.0,
    batch_size=2,  # our choice: a batch of 32 is 245 MB of pixels
    largest_batch_size=32,
    references=(Reference("mAP", 37.55),),
    spans=(Span("v2.1", "v5.1", EDGE3, DATACENTER), Span("v6.0", "v6.0", (), (), both=ALL_SCENARIOS)),
    test01_samples=256,
    recipes=Recipes(
        dataset="get,dataset,openimages,original",
        preprocessed="get,dataset,preprocessed,openimages",
        model="get,ml-model,retinanet",
        is_detector=True,
    ),
    sizes=Sizes(
        model=Size(150 * MB, f"{CM_RECIPES}, get-ml-model-retinanet"),
        advised=Size(200 * GB, MLC_DOCS),
    ),
    published_md5=("4544f4e56e0a4684215831cc937ea45c",),
)
